package logic

import (
	"slices"
	"time"
)

// Mode says in which part of its life an engine is.
type Mode uint8

// The modes of an engine.
const (
	Idle     Mode = iota // neither Run nor Step is in progress
	Stepping             // in Step
	Running              // in Run
	Stopping             // answers what is left
	Stopped
)

// String is the mode's name.
func (m Mode) String() string {
	return [...]string{"idle", "stepping", "running", "stopping", "stopped"}[min(m, Stopped)]
}

// Doing is what an engine does at one moment.
type Doing struct {
	Mode   Mode
	Paused bool          // Run holds between frames, see Engine.Pause
	What   string        // the user code that runs on Logic or has the window, with the name of a system; "": none
	For    time.Duration // how long it has run by now
	Stacks string        // of the goroutines inside callbacks, once it has outlasted the watchdog; else ""
}

// Doing says what the engine does: whose code keeps Logic, and for how long.
//
// Concurrency: any goroutine; never waits for Logic. Allocates: the answer.
func (e *Engine) Doing() Doing {
	e.mu.Lock()
	d := Doing{Mode: Mode(e.mode), Paused: e.pause.on.Load()}
	e.mu.Unlock()
	stamp, what := e.watch.current()
	if stamp == 0 {
		return d
	}
	d.What, d.For = what, time.Duration(max(e.clock.now()-int64(stamp>>4), 0))
	if k := e.watch.stacks.Load(); k != nil && k.stamp == stamp {
		d.Stacks = k.text
	}
	return d
}

// Mode's numbers are those of mode.
var _ [0]struct{} = [modeEnded - mode(Stopped)]struct{}{}

// Rate is how many frames a second Run runs.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (e *Engine) Rate() int { return e.cfg.Rate }

// Systems are the systems of the last frame, or of the one in progress, phase by phase in the order in which they run. The
// caller does not change the slice.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (e *Engine) Systems() []*System {
	if list := e.stepper.shown.Load(); list != nil {
		return *list
	}
	return nil
}

// showSystems shows which systems there are.
func (s *stepper) showSystems() {
	list := slices.Concat(s.phases[:]...)
	s.shown.Store(&list)
}

// Phase is the phase it runs in.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *System) Phase() Phase { return s.phase }

// stacks are those of the goroutines inside callbacks, while the callback of a stamp overran.
type stacks struct {
	stamp uint64
	text  string
}

// keepStacks keeps the stacks of the callback whose overrun was counted last.
func (w *watch) keepStacks(text string) { w.stacks.Store(&stacks{w.told.Load(), text}) }

// Done is closed when the engine has ended: everything is answered, and the registry is free.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (e *Engine) Done() <-chan struct{} { return e.ended }
