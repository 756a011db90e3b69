package logic

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
)

// Gate is a door without an engine, for the benchmarks.
type Gate struct {
	d    door
	w    watch
	q    gauge
	line []*waiter
}

// NewGate makes one whose callers have no deadlock to look for.
func NewGate() *Gate {
	g := new(Gate)
	g.w.limit = int64(time.Hour)
	g.q.init(1 << 16)
	g.d.init(clock{time.Now()}, &g.w, &g.q, func() bool { return false })
	g.d.watched.Store(true)
	return g
}

// Pass queues, runs fn with the window, and hands it on.
func (g *Gate) Pass(fn func()) error {
	w, err := g.d.enter(context.Background())
	if err != nil {
		return err
	}
	defer g.d.leave(w)
	fn()
	return nil
}

// Serve lets everybody through who waits, and says how many, how long that took, and whether
// it yielded.
func (g *Gate) Serve() (n int, stall time.Duration, yielded bool) {
	g.line = g.d.collect(g.line[:0])
	if len(g.line) == 0 {
		return 0, 0, false
	}
	start := g.d.clock.now()
	g.d.budget.open(start, int64(time.Hour))
	g.d.line = g.line
	yielded = g.d.admit()
	return g.d.budget.served, time.Duration(g.d.clock.now() - start), yielded
}

// PassAsTheQueueFills is Pass of a caller who finds a place, which somebody else takes before him.
func (g *Gate) PassAsTheQueueFills(fn func()) error {
	make, limit := g.d.pool.New, g.q.limit
	g.q.limit = 1
	g.d.pool.New = func() any { // comes between the look and the taking
		g.q.take(gaugeOp)
		return make()
	}
	defer func() {
		g.q.give(gaugeOp)
		g.d.pool.New, g.q.limit = make, limit
	}()
	return g.Pass(fn)
}

// Shut answers everybody.
func (g *Gate) Shut() { g.d.shut() }

// Callback runs fn as a window callback where the caller holds the registry anyway.
func Callback(e *Engine, fn func(*registry.Window) error) error { return e.core.Callback(fn) }

// CheckGauge counts on from a preset length and back.
func CheckGauge(t *testing.T, start uint64) {
	var g gauge
	g.limit = start + 4
	g.word.Store(start)
	for i := range 4 {
		require.True(t, g.take([]uint64{gaugeOp, gaugeCaller}[i%2]))
	}
	require.False(t, g.take(gaugeOp))
	require.False(t, g.take(gaugeCaller))
	callers, ops := g.read()
	require.Equal(t, 2, callers)
	require.EqualValues(t, start+2, ops)
	for i := range 4 {
		g.give([]uint64{gaugeOp, gaugeCaller}[i%2])
	}
	callers, ops = g.read()
	require.Zero(t, callers)
	require.EqualValues(t, start, ops)
}

// Observe is the histogram of some durations in ns.
func Observe(ns ...int64) Histogram {
	var m meter
	for _, n := range ns {
		m.add(n)
	}
	return m.read()
}

// Schedule is a schedule.
type Schedule struct{ s schedule }

func NewSchedule(rate int, now int64) *Schedule { return &Schedule{newSchedule(rate, now)} }

func (s *Schedule) Due(now int64) (int64, uint64) { return s.s.due(now) }

// Gauge is a gauge.
type Gauge struct{ g gauge }

func NewGauge(limit int) *Gauge {
	g := new(Gauge)
	g.g.init(uint64(limit))
	return g
}

func (g *Gauge) Take(caller bool) bool { return g.g.take(gaugeKind(caller)) }
func (g *Gauge) Give(caller bool)      { g.g.give(gaugeKind(caller)) }
func (g *Gauge) Full() bool            { return g.g.full() }
func (g *Gauge) Read() (int, int)      { return g.g.read() }

func gaugeKind(caller bool) uint64 {
	if caller {
		return gaugeCaller
	}
	return gaugeOp
}

// Core is the pure core of a frame with a script for a world: no clock, no queue, no
// goroutine but the test's own.
type Core struct {
	s       stepper
	Log     []string // what the core asked of the shell, in order
	Serve   func(*registry.Core)
	changes []systemChange
	core    *registry.Core
}

// NewCore attaches a core to r; free gives r back.
func NewCore(r *registry.Registry) (c *Core, free func(), err error) {
	c = new(Core)
	if c.core, err = r.Attach(registry.Hooks{}); err != nil {
		return nil, nil, err
	}
	c.s = stepper{core: c.core, shell: (*script)(c), delta: 0.5, localWindow: 2}
	c.s.init()
	return c, c.core.Detach, c.core.Enter(true)
}

// Add registers a system for the next frame.
func (c *Core) Add(p Phase, name string, fn func(*Frame)) {
	c.changes = append(c.changes, systemChange{system: &System{phase: p, name: name, fn: fn}})
}

// Step runs a frame or goes on with one; MidFrame says which it would be.
func (c *Core) Step()          { c.s.step() }
func (c *Core) MidFrame() bool { return c.s.midFrame() }
func (c *Core) Leave()         { c.core.Leave() }

type script Core

func (c *script) say(what string) { c.Log = append(c.Log, what) }

func (c *script) systems() []systemChange {
	changes := c.changes
	c.changes = nil
	return changes
}
func (c *script) peers() []peerChange { return nil }
func (c *script) collect()            { c.say("collect") }
func (c *script) serve() {
	c.say("serve")
	if c.Serve != nil {
		c.Serve(c.core)
	}
}
func (c *script) entering(activity)              {}
func (c *script) phaseBegins()                   {}
func (c *script) enteringSystem(*System)         {}
func (c *script) leftSystem()                    {}
func (c *script) exited(err error)               { c.say("exited: " + err.Error()) }
func (c *script) compacted(error)                {}
func (c *script) goBack() (uint64, bool)         { return 0, false }
func (c *script) wentBack(error)                 {}
func (c *script) desynced(error)                 {}
func (c *script) journal()                       {}
func (c *script) inputs(uint64) []registry.Input { return nil }
func (c *script) failed(err error)               { c.say("failed: " + err.Error()) }

// Lanes are lanes without an engine, for the benchmarks.
type Lanes struct {
	ls   lanes
	q    gauge
	all  []lane
	runs [][]op
}

func NewLanes(n int) *Lanes {
	l := &Lanes{all: make([]lane, n)}
	l.q.init(1 << 16)
	l.ls.queue = &l.q
	return l
}

func (l *Lanes) Add(lane int, fn func(*registry.Window) error) {
	if !l.all[lane].addPaid(op{fn: fn}) {
		l.ls.add(&l.all[lane], op{fn: fn}, l.q.takeAhead()-1)
	}
}

// Collect takes everything out and looks at each.
func (l *Lanes) Collect() (n int) {
	l.runs = l.ls.collect(l.runs[:0])
	for _, run := range l.runs {
		for _, o := range run {
			if o.fn != nil {
				n++
			}
		}
		l.q.give(uint64(len(run)) * gaugeOp)
		l.ls.recycle(run)
	}
	return n
}

// CompactionFails has compaction end with an error, as it would by a bug of it, in every frame.
func CompactionFails(e *Engine, err error, before ...func()) {
	c := &e.stepper.compactor
	c.run = func() {
		for _, fn := range before {
			fn()
		}
		c.err = err
	}
}

// WhenInputsAreTaken calls fn whenever Logic has taken the inputs of a frame, as somebody might who comes at that instant.
func WhenInputsAreTaken(e *Engine, fn func(frame uint64)) {
	e.stepper.shell = &lookedAt{e.stepper.shell, fn}
}

type lookedAt struct {
	shell
	fn func(frame uint64)
}

func (l *lookedAt) inputs(frame uint64) []registry.Input {
	list := l.shell.inputs(frame)
	l.fn(frame)
	return list
}
