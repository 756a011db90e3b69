package logic

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"go.uber.org/atomic"

	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/registry"
)

// Engine runs a registry's frames and lets other goroutines in. Every method may be called
// from any goroutine.
//
// The core of a frame is a stepper; the Engine is the shell around it: goroutines, clocks,
// queues, waiting. Logic is not a goroutine but a role: user code on Logic runs on an inner
// goroutine, which is replaced if user code ends it, and ownership passes with the replacement.
type Engine struct {
	reg  *registry.Registry
	core *registry.Core
	id   uintptr // marks callbacks of this registry on a stack
	cfg  Config  // complete; set once
	// frameLimit is how many nanoseconds a frame may take before the flight recorder is told; set once.
	frameLimit int64
	clock      clock

	// Logic's.
	stepper   stepper
	backlog   backlog
	serving   serving
	workers   workers
	stalls    meter // written by Logic
	frameTime meter // written by Logic
	last      int64 // the last reading of the clock
	began     int64 // when the frame in progress began
	rested    bool  // this frame gave other goroutines a chance to run
	schedule  schedule
	sleep     *time.Timer // of Run's waiting; made by the first wait
	dropped   []op        // what finish has still to answer
	unheard   int         // dropped operations with nobody to tell

	// The airlock.
	queue         gauge
	door          door
	lanes         lanes
	shared        lane // of Engine.Defer and Engine.Enqueue
	registrations registrations
	rewinder      rewinder
	peerTable     peerTable
	pause         pause

	// Supervision; see supervise.
	inner    func() // e.runInner, made once
	work     work   // what the inner goroutine does; set before it starts
	innerEnd chan bool
	tick     *time.Timer // made by the first supervise; whoever supervises
	watch    watch

	// Life.
	mu       sync.Mutex // guards mode, cause and fatal; leaf lock
	mode     mode
	cause    error         // why the engine stops, when not by Stop
	fatal    []error       // panics of systems that end Run
	stopping atomic.Bool   // stored under mu
	stop     chan struct{} // closed when stopping is set
	ended    chan struct{} // closed when everything is answered and the registry free

	frames, overdue atomic.Uint64
	rollbacks       atomic.Uint64
}

// New makes the engine of a registry. A registry has one engine at a time; Stop frees it.
//
// Errors: registry.ErrRunning if it has one already; a Config out of range.
// Concurrency: any goroutine. Allocates: the engine.
func New(r *registry.Registry, c Config) (*Engine, error) {
	if r == nil {
		return nil, errors.New("logic: nil registry")
	}
	rc := r.Config()
	c, err := c.complete(rc.TemporalFrames)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		reg:      r,
		cfg:      c,
		clock:    clock{time.Now()},
		innerEnd: make(chan bool, 1),
		stop:     make(chan struct{}),
		ended:    make(chan struct{}),
	}
	e.frameLimit = math.MaxInt64
	if c.Flight != nil {
		e.frameLimit = int64(c.Flight.Budget(c.Rate))
	}
	e.queue.init(uint64(c.QueueSize))
	e.lanes.queue = &e.queue
	e.watch.limit = int64(c.Watchdog)
	e.peerTable.members = make(map[uint32]*peer)
	e.pause.wake = make(chan struct{}, 1)
	e.inner = e.runInner
	e.serving.next = (*frameShell)(e).served
	if e.core, err = r.Attach(registry.Hooks{OnError: e.report, Workers: c.Workers, Spread: e.workers.spread, Held: e.reportHeld}); err != nil {
		return nil, fmt.Errorf("logic: %w", err)
	}
	e.id = e.core.ID()
	e.door.init(e.clock, &e.watch, &e.queue, e.inside)
	e.stepper = stepper{
		core:        e.core,
		shell:       (*frameShell)(e),
		delta:       1 / float64(c.Rate),
		localWindow: c.LocalWindow,
		netWindow:   c.NetWindow,
		ringed:      rc.TemporalFrames > 0,
		lateDeaths:  rc.Deterministic || rc.TemporalFrames > 0,
	}
	e.stepper.init()
	e.stepper.synced.frames = uint64(c.SyncTest)
	if err := e.stepper.compactor.init(r, e.core, c.Defrag); err != nil {
		e.core.Detach()
		return nil, err
	}
	if c.Flight != nil {
		if err := c.Flight.Begin(); err != nil {
			e.core.Detach()
			return nil, fmt.Errorf("logic: Config.Flight: %w", err)
		}
	}
	return e, nil
}

// Registry is the registry the engine runs.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (e *Engine) Registry() *registry.Registry { return e.reg }

// FrameNumber is the frame in progress, or the last one; 0 before the first.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (e *Engine) FrameNumber() uint64 { return e.core.FrameNumber() }

// inside answers whether the calling goroutine is inside a callback of this registry. It
// reads the goroutine's own stack, which costs several handshakes.
func (e *Engine) inside() bool { return caller.Inside(e.id) }
