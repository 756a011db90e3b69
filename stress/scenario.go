package stress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/puzpuzpuz/xsync/v3"
	"go.uber.org/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/flight"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// Options say how a scenario is run. The zero value works.
type Options struct {
	For       time.Duration    // 0 means 10 s
	Producers int              // 0 means the scenario's own number
	Seed      uint64           // of every random choice that producers and systems make
	Faults    bool             // callbacks that fail, panic and exit, contexts that end, small queues, vanishing producers
	Logger    *slog.Logger     // the engine's; nil: nothing is logged
	Flight    *flight.Recorder // the engine's, for frames that overrun; nil: nothing is recorded
	Progress  func(Progress)   // called some ten times a second, by one goroutine at a time

	// Beside is called with the engine of a scenario before it runs, for what is to run beside it; nil: nothing is. What it returns
	// is called before the engine is stopped, and ends all that Beside has started. Soak has none.
	Beside func(e *logic.Engine) (leave func())
}

// Progress is how far a run has come.
type Progress struct {
	Scenario   string
	Elapsed    time.Duration
	For        time.Duration
	Operations uint64
	Frame      uint64
	Violations int
}

// Scenario is a load generator.
type Scenario struct {
	Name      string
	About     string
	Producers int // unless Options say otherwise

	play func(ctx context.Context, g *rig) error
}

// Scenarios are all scenarios, in the order in which they are worth running.
//
// Concurrency: any goroutine. Allocates: the list.
func Scenarios() []Scenario {
	return []Scenario{
		{"sync", "one blocking spawn in flight for each producer", 16, playSync},
		{"batched", "32 mixed operations in flight for each producer", 16, playBatched},
		{"crowd", "two thousand producers with one spawn in flight each", 2000, playCrowd},
		{"paced", "60 frames a second, 100,000 live, 2,000 spawned and 2,000 destroyed in each", 4, playPaced},
		{"churn", "one slot whose entity is replaced as fast as possible", 1, playChurn},
		{"readers", "published frames held for random times, while four producers write", 16, playReaders},
		{"rollback", "every frame simulated a second time, seven at a time, and compared", 4, playRollback},
		{"history", "eight goroutines whose calls and answers have to have an order", 8, playHistory},
		{"soak", "all of these in turn, in short pieces, with faults", 0, nil},
	}
}

// Find is the scenario of a name.
//
// Concurrency: any goroutine. Allocates: no.
func Find(name string) (Scenario, bool) {
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

// Run runs the scenario until its time is over or ctx ends, which is no failure: the report is of what was done
// until then. What was found wrong is in the report, too.
//
// Errors: options that make no sense, and what kept the scenario from being set up.
// Concurrency: any goroutine; returns when everything it started has ended. Allocates: yes.
func (s Scenario) Run(ctx context.Context, o Options) (Report, error) {
	if s.Name == "" {
		return Report{}, fmt.Errorf("stress: no scenario")
	}
	if o.For < 0 || o.Producers < 0 {
		return Report{}, fmt.Errorf("stress: %v and %d producers: neither can be negative", o.For, o.Producers)
	}
	if o.For == 0 {
		o.For = 10 * time.Second
	}
	if o.Producers == 0 {
		o.Producers = s.Producers
	}
	if o.Logger == nil {
		o.Logger = discard
	}
	if s.play == nil {
		return soak(ctx, o)
	}
	g := &rig{name: s.Name, o: o, ledger: &Ledger{}, ops: xsync.NewCounter(), counts: map[string]uint64{}, goroutines: runtime.NumGoroutine()}
	if err := s.play(ctx, g); err != nil {
		return Report{}, fmt.Errorf("stress: %s: %w", s.Name, err)
	}
	return g.report(), nil
}

type (
	// mark says whose an entity is, and what it was last set to.
	mark struct {
		Self   handles.Local
		Owner  uint64
		Number uint64
	}
	// pulse is the number of the last frame, in two cells that belong together.
	pulse struct{ Frame, Not uint64 }
	// extra comes and goes, so that entities move between archetypes.
	extra struct{ Number uint64 }

	body struct {
		Mark  mark
		Pulse pulse
	}
	pulses struct {
		Pulse []pulse
	}
	marked struct {
		ID    []handles.Local
		Mark  []mark  `ecs:"read"`
		Pulse []pulse `ecs:"read"`
	}
)

// rig is the world of one run.
type rig struct {
	name       string
	o          Options
	ledger     *Ledger
	ops        *xsync.Counter // submitted: for the progress
	goroutines int

	reg    *registry.Registry
	rc     registry.Config
	eng    *logic.Engine
	queue  int // operations that may wait
	gate   gate
	bodies *registry.Class[body]
	seen   *views.Query[marked]
	roll   *Roll // nil if frames are gone back over

	producers []*producer
	workers   sync.WaitGroup
	looks     atomic.Uint64 // by those who only look

	began, ended time.Time
	interrupted  bool
	stats        logic.Stats // at the end
	totals       Totals
	heap         []HeapMark
	counts       map[string]uint64
	figures      []Figure
}

// gate is the way in. Tests put one there that lies.
type gate interface {
	Spawn(ctx context.Context, fn func(*registry.Window) error) error
	SpawnBatch(ctx context.Context, fns ...func(*registry.Window) error) []error
	Lane() lane
	Destroy(h handles.Local) error
}

type lane interface {
	Enqueue(fn func(*registry.Window) error) (ticket, error)
}

type ticket interface {
	Done() <-chan struct{}
	Err() error
}

// openGate is the engine as it is.
type openGate struct{ *logic.Engine }

func (g openGate) Lane() lane                    { return openLane{g.Producer()} }
func (g openGate) Destroy(h handles.Local) error { return g.Registry().Destroy(h) }

type openLane struct{ *logic.Producer }

func (l openLane) Enqueue(fn func(*registry.Window) error) (ticket, error) {
	t, err := l.Producer.Enqueue(fn)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// wrapKey is the key of a context under which tests have a function that changes the gate.
type wrapKey struct{}

// build makes the registry, its class and its engine.
func (g *rig) build(ctx context.Context, tier archetype.Tier, rc registry.Config, lc logic.Config) (err error) {
	if g.reg, err = registry.New(rc); err != nil {
		return err
	}
	g.rc = g.reg.Config()
	for _, register := range []func() error{
		func() (err error) {
			_, err = registry.RegisterComponent[mark](g.reg, registry.InTier(tier))
			return err
		},
		func() (err error) {
			_, err = registry.RegisterComponent[pulse](g.reg, registry.InTier(tier))
			return err
		},
		func() (err error) {
			_, err = registry.RegisterComponent[extra](g.reg, registry.InTier(tier))
			return err
		},
		func() (err error) { g.bodies, err = registry.RegisterClass[body](g.reg); return err },
		func() (err error) { g.seen, err = views.NewQuery[marked](g.reg); return err },
	} {
		if err := register(); err != nil {
			return err
		}
	}
	beat, err := views.NewQuery[pulses](g.reg)
	if err != nil {
		return err
	}
	if rc.TemporalFrames == 0 {
		if g.roll, err = NewRoll(g.ledger, g.reg, lc.LocalWindow); err != nil {
			return err
		}
	}
	lc.Logger, lc.Flight = g.o.Logger, g.o.Flight
	lc.OnError = func(err error) {
		if OutcomeOf(err) == Lost {
			g.ledger.Violate(NoFailure, "told to OnError: %v", err)
		}
	}
	if g.o.Faults {
		lc.Watchdog = 20 * time.Millisecond
	}
	if g.queue = lc.QueueSize; g.queue == 0 {
		g.queue = 1 << 16
	}
	if g.eng, err = logic.New(g.reg, lc); err != nil {
		return err
	}
	if _, err := g.eng.AddSystem(logic.Physics, "pulse", func(f *logic.Frame) {
		now := f.FrameNumber()
		for m := range beat.Runs(f) {
			for i := range m.Pulse {
				m.Pulse[i] = pulse{now, ^now}
			}
		}
	}); err != nil {
		return err
	}
	g.gate = openGate{g.eng}
	if wrap, ok := ctx.Value(wrapKey{}).(func(gate) gate); ok {
		g.gate = wrap(g.gate)
	}
	return nil
}

// random is the generator of one goroutine of the run.
func (g *rig) random(number int) *rand.Rand {
	return rand.New(rand.NewPCG(g.o.Seed, uint64(number)+1))
}

// free is the configuration of an engine whose frames follow each other as fast as they go.
func (g *rig) free() logic.Config {
	c := logic.Config{Rate: 100_000, LocalWindow: 2, NetWindow: 3, WindowBudget: 2 * time.Millisecond}
	if g.o.Faults {
		c.QueueSize = []int{g.o.Producers/2 + 4, 20 * g.o.Producers, 30 * g.o.Producers, 0}[g.o.Seed%4]
		c.WindowBudget = 200 * time.Microsecond
	}
	return c
}

const (
	progressEvery = 100 * time.Millisecond
	stopLimit     = 20 * time.Second
)

// drive runs the engine with its producers, stops it amid their work, and checks what is left. work is one
// producer's loop, which ends when it is answered with ErrStopped; others run beside it and end with their context.
func (g *rig) drive(ctx context.Context, work func(p *producer), others ...func(ctx context.Context)) {
	for i := range g.o.Producers {
		g.producers = append(g.producers, g.newProducer(i))
	}
	g.driveProducers(ctx, work, others...)
}

func (g *rig) driveProducers(ctx context.Context, work func(p *producer), others ...func(ctx context.Context)) {
	leave := func() {}
	if g.o.Beside != nil {
		leave = g.o.Beside(g.eng)
	}
	run := make(chan error, 1)
	g.began = time.Now()
	g.markHeap()
	go func() { run <- g.eng.Run(context.Background()) }()
	around, enough := context.WithCancel(context.Background())
	defer enough()
	for _, other := range others {
		g.workers.Go(func() { other(around) })
	}
	for _, p := range g.producers {
		g.workers.Go(func() { work(p) })
	}
	failure, ended := g.watch(ctx, run)
	g.ended = time.Now()
	leave()
	enough()
	stop, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := g.eng.Shutdown(stop); err != nil {
		g.ledger.Violate(NothingStays, "the engine does not stop: %v", err)
		return // and neither will the producers
	}
	if !ended {
		failure = <-run
	}
	if early := g.interrupted && errors.Is(failure, logic.ErrStopped); failure != nil && !early { // Run had not begun
		g.ledger.Violate(NoFailure, "the engine ended with: %v", failure)
	}
	home := make(chan struct{})
	go func() {
		defer close(home)
		g.workers.Wait()
	}()
	select {
	case <-home:
	case <-stop.Done():
		g.ledger.Violate(NothingStays, "producers still wait %v after Stop", stopLimit)
		return
	}
	g.audit()
}

// watch waits until the time is over, and reports on the way.
func (g *rig) watch(ctx context.Context, run <-chan error) (failure error, ended bool) {
	over := time.NewTimer(g.o.For)
	defer over.Stop()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	minute := 1
	for {
		select {
		case <-over.C:
			if late := time.Since(g.began) > g.o.For+stopLimit; !late && g.idle() {
				over.Reset(progressEvery)
				continue
			}
			return nil, false
		case <-ctx.Done():
			g.interrupted = true
			return nil, false
		case err := <-run:
			return err, true
		case <-tick.C:
		}
		elapsed := time.Since(g.began)
		if elapsed >= time.Duration(minute)*time.Minute {
			minute++
			g.markHeap()
		}
		if s := g.eng.Stats(); s.Waiting+s.Queued > g.queue {
			g.ledger.Violate(Caps, "%d callers wait and %d operations are queued, of %d", s.Waiting, s.Queued, g.queue)
		}
		if g.o.Progress != nil {
			_, violations := g.ledger.Violations()
			g.o.Progress(Progress{g.name, elapsed, g.o.For, uint64(g.ops.Value()), g.eng.FrameNumber(), violations})
		}
	}
}

// idle says that nothing has been done yet: on a machine with much else to do, a short time passes before anybody runs.
func (g *rig) idle() bool {
	return g.eng.FrameNumber() < 2 || g.ops.Value() < int64(len(g.producers)) || g.reg.Stats().Allocated == 0
}

// markHeap notes what the heap holds after a collection.
func (g *rig) markHeap() {
	runtime.GC()
	g.heap = append(g.heap, HeapMark{time.Since(g.began).Seconds(), readMetric("/memory/classes/heap/objects:bytes")})
}

func readMetric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// audit checks what is left when the engine has stopped and everybody is home.
func (g *rig) audit() {
	g.stats = g.eng.Stats()
	g.totals = g.ledger.Total()
	g.totals.Spawned += g.counts["spawned at first"]
	if err := g.reg.Verify(); err != nil {
		g.ledger.Violate(Structure, "%v", err)
	}
	bodies := 0
	if err := g.reg.Update(func(w *registry.Window) error { // sees the last deaths from outside, and tells of them
		if err := Distinct(w); err != nil {
			g.ledger.Violate(NoAlias, "%v", err)
		}
		for m := range g.seen.Runs(w) {
			bodies += len(m.ID)
			for i, h := range m.ID {
				if m.Mark[i].Self != h {
					g.ledger.Violate(NoAlias, "%v has the cells of %v", h, m.Mark[i].Self)
				}
			}
		}
		for _, p := range g.producers {
			p.inventory(w)
		}
		return nil
	}); err != nil {
		g.ledger.Violate(NoFailure, "the last look: %v", err)
	}
	if g.totals.Spawned-g.totals.Destroyed != uint64(bodies) {
		g.ledger.Violate(Conservation, "%d were spawned, %d destroyed, and %d live", g.totals.Spawned, g.totals.Destroyed, bodies)
	}
	stats := g.reg.Stats()
	if g.roll != nil {
		g.roll.Audit(stats, g.rc.MaxEntities)
		if g.roll.Spawned != g.totals.Spawned || g.roll.Destroyed != g.totals.Destroyed {
			g.ledger.Violate(Conservation, "producers spawned %d and destroyed %d, and observers were told of %d and %d",
				g.totals.Spawned, g.totals.Destroyed, g.roll.Spawned, g.roll.Destroyed)
		}
	}
	if g.stats.Frames == 0 && !g.interrupted {
		g.ledger.Violate(NoFailure, "no frame ran")
	}
	if err := g.reg.Verify(); err != nil {
		g.ledger.Violate(Structure, "after the last look: %v", err)
	}
	if err := NothingLeft(g.eng, g.goroutines); err != nil {
		g.ledger.Violate(NothingStays, "%v", err)
	}
	g.markHeap()
}

// report puts together what there is.
func (g *rig) report() Report {
	r := Report{
		Scenario: g.name, Seed: g.o.Seed, Producers: g.o.Producers, Faults: g.o.Faults, Race: racing, GOMAXPROCS: runtime.GOMAXPROCS(0),
		Seconds: g.ended.Sub(g.began).Seconds(), Interrupted: g.interrupted,
		Operations: g.totals.Submitted, Rate: g.rate(), Spawned: g.totals.Spawned, Destroyed: g.totals.Destroyed,
		Outcomes: map[string]uint64{}, Counts: g.counts,
		Frames: g.stats.Frames, Dropped: g.stats.DroppedFrames, Skipped: g.stats.PublishSkips, Overruns: g.stats.Overruns,
		Frame: timesOf(g.stats.FrameTime), Handshake: timesOf(g.stats.HandshakeWait), Stall: timesOf(g.stats.WindowStall),
		Heap: g.heap, Goroutines: [2]int{g.goroutines, runtime.NumGoroutine()}, Figures: g.figures,
	}
	for o, n := range g.totals.By {
		if n > 0 {
			r.Outcomes[Outcome(o).String()] = n
		}
	}
	r.Violations, r.Violated = g.ledger.Violations()
	return r
}
