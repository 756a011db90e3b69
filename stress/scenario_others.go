package stress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"go.uber.org/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

func playReaders(ctx context.Context, g *rig) error {
	readers := g.o.Producers
	g.o.Producers = min(4, max(readers, 1)) // who writes
	if err := g.build(ctx, archetype.Volatile, g.worldOf(), g.free()); err != nil {
		return err
	}
	others := make([]func(context.Context), readers)
	for i := range others {
		rng := g.random(1000 + i)
		others[i] = func(ctx context.Context) { g.read(ctx, rng) }
	}
	g.drive(ctx, (*producer).batches, others...)
	g.counts["frames read"] = g.looks.Load()
	g.counts["readers"] = uint64(readers)
	g.o.Producers = readers // what the command line says
	return nil
}

// read holds published frames for random times, and sees that they are whole and stay as they are.
func (g *rig) read(ctx context.Context, rng *rand.Rand) {
	for ctx.Err() == nil {
		s, err := g.reg.Acquire()
		if err != nil {
			pause()
			continue // before the first frame
		}
		before := g.look(s)
		if d := time.Duration(rng.IntN(20_000)) * time.Microsecond; rng.IntN(2) == 0 {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
		if after := g.look(s); after != before {
			g.ledger.Violate(WholeFrames, "frame %d was %+v, and is %+v", s.FrameNumber(), before, after)
		}
		s.Release()
		g.looks.Inc()
	}
}

// sum is what a published frame comes to.
type sum struct {
	entities int
	of       uint64
}

func (g *rig) look(s *registry.Snapshot) (all sum) {
	now := s.FrameNumber()
	for m := range g.seen.Runs(s) {
		all.entities += len(m.ID)
		for i, h := range m.ID {
			if m.Mark[i].Self != h {
				g.ledger.Violate(WholeFrames, "frame %d: %v has the cells of %v", now, h, m.Mark[i].Self)
			}
			if m.Pulse[i] != (pulse{now, ^now}) {
				g.ledger.Violate(WholeFrames, "frame %d: %v has the pulse %+v", now, h, m.Pulse[i])
			}
			all.of = all.of*31 + uint64(h) + m.Mark[i].Number
		}
	}
	return all
}

type (
	// motion is what systems of rollback compute with.
	motion  struct{ X, V float64 }
	age     struct{ Frames int32 }
	critter struct {
		Motion motion
		Age    age
	}
	critters struct {
		ID     []handles.Local
		Motion []motion
		Age    []age
	}
)

const (
	ringFrames = 32
	syncFrames = 7 // simulated a second time after each frame
)

func playRollback(ctx context.Context, g *rig) error {
	rc, lc := g.worldOf(), g.free()
	rc.Deterministic, rc.TemporalFrames = true, ringFrames
	rc.MaxEntities = max(rc.MaxEntities, 1<<14) // the dead take room until they leave the ring
	lc.SyncTest, lc.LocalWindow = syncFrames, 0
	if err := g.build(ctx, archetype.Temporal, rc, lc); err != nil {
		return err
	}
	if err := g.breed(); err != nil {
		return err
	}
	var again atomic.Uint64
	if _, err := g.eng.AddSystem(logic.Late, "count", func(*logic.Frame) { again.Inc() }); err != nil {
		return err
	}
	inputs := g.random(1000)
	g.drive(ctx, (*producer).batches, func(ctx context.Context) {
		for ctx.Err() == nil { // in time: an input for a frame of the past would be a change
			_ = g.eng.Input(uint8(inputs.IntN(4)), g.eng.FrameNumber()+uint64(2*syncFrames+inputs.IntN(4)), []byte{byte(inputs.Uint32())})
			<-time.After(time.Millisecond)
		}
	})
	g.counts["frames simulated again"] = again.Load() - g.stats.Frames
	return nil
}

// breed adds systems that spawn, move and destroy entities of their own by the frame's random numbers and inputs.
func (g *rig) breed() error {
	for _, register := range []func() error{
		func() error {
			_, err := registry.RegisterComponent[motion](g.reg, registry.InTier(archetype.Temporal))
			return err
		},
		func() error {
			_, err := registry.RegisterComponent[age](g.reg, registry.InTier(archetype.Temporal))
			return err
		},
	} {
		if err := register(); err != nil {
			return err
		}
	}
	class, err := registry.RegisterClass[critter](g.reg)
	if err != nil {
		return err
	}
	living, err := views.NewQuery[critters](g.reg)
	if err != nil {
		return err
	}
	if _, err := g.eng.AddSystem(logic.PrePhysics, "birth", func(f *logic.Frame) {
		rng, n := f.Rand(), 2
		for player := range uint8(4) {
			if in, ok := f.Input(player); ok {
				n += int(in[0]) % 3
			}
		}
		for range n {
			_, _ = class.SpawnLater(f.Frame, critter{motion{0, rng.Float64()}, age{rng.Int32N(60)}}) // there may be no room
		}
	}); err != nil {
		return err
	}
	_, err = g.eng.AddSystem(logic.PostPhysics, "life", func(f *logic.Frame) {
		for m := range living.Runs(f) {
			for i, h := range m.ID {
				m.Motion[i].X += m.Motion[i].V * f.Delta
				if m.Age[i].Frames--; m.Age[i].Frames < 0 {
					_ = f.Destroy(h)
				}
			}
		}
	})
	return err
}

// historyCalls is how many calls each client makes in one history.
const historyCalls = 400

func playHistory(ctx context.Context, g *rig) error {
	over := time.Now().Add(g.o.For)
	began := time.Now()
	seed := g.o.Seed
	for round := 0; round == 0 || time.Now().Before(over) && ctx.Err() == nil; round++ {
		next := &rig{name: g.name, o: g.o, ledger: &Ledger{}, ops: g.ops, counts: map[string]uint64{}, goroutines: g.goroutines}
		next.o.Seed, next.o.Progress = seed+uint64(round), nil
		h, err := next.recordHistory(ctx, historyCalls)
		if err != nil {
			return err
		}
		if err := h.Check(); err != nil {
			next.ledger.Violate(Linear, "%v", err)
		}
		g.ledger.take(next.ledger, next.o.Seed)
		calls := uint64(0)
		for _, c := range h.clients {
			calls += uint64(len(c))
		}
		g.totals.Submitted += calls
		g.totals.By[Applied] += calls
		g.totals.Spawned += next.totals.Spawned
		g.totals.Destroyed += next.totals.Destroyed
		g.stats = next.stats
		g.counts["histories"]++
		if g.o.Progress != nil {
			_, violations := g.ledger.Violations()
			g.o.Progress(Progress{g.name, time.Since(began), g.o.For, g.totals.Submitted, next.eng.FrameNumber(), violations})
		}
	}
	g.began, g.ended = began, time.Now()
	g.interrupted = ctx.Err() != nil
	g.markHeap()
	return nil
}

// RecordHistory has Options.Producers goroutines call everything that histories know, so many times each, at most
// for the time of the Options.
//
// Errors: none; what goes wrong otherwise is in the report.
// Concurrency: any goroutine; returns when everything it started has ended. Allocates: yes.
func RecordHistory(ctx context.Context, o Options, calls int) (*History, Report) {
	g := &rig{name: "history", o: o, ledger: &Ledger{}, counts: map[string]uint64{}, goroutines: runtime.NumGoroutine()}
	g.o.Logger = discard
	h, err := g.recordHistory(ctx, calls)
	if err != nil {
		g.ledger.Violate(NoFailure, "%v", err)
	}
	return h, g.report()
}

func (g *rig) recordHistory(ctx context.Context, calls int) (*History, error) {
	c := g.free()
	c.LocalWindow, c.NetWindow, c.QueueSize = -1, -1, 0 // confirmed by hand
	h := NewHistory(g.o.Producers)
	if err := g.build(ctx, archetype.Volatile, registry.Config{MaxEntities: 24}, c); err != nil {
		return h, err
	}
	around, done := context.WithCancel(ctx)
	defer done()
	left := make(chan struct{}, g.o.Producers)
	known := newHall(64)
	g.drive(around, func(p *producer) {
		defer func() { left <- struct{}{} }()
		for range calls {
			if err := p.call(h, known); err != nil {
				if OutcomeOf(err) != Stopped {
					g.ledger.Violate(NoFailure, "a client was answered: %v", err)
				}
				return
			}
		}
	}, func(context.Context) {
		for range g.o.Producers {
			<-left
		}
		done()
	})
	return h, nil
}

// soak runs all scenarios in short pieces, with faults in every second one.
func soak(ctx context.Context, o Options) (Report, error) {
	all := Report{Scenario: "soak", Seed: o.Seed, Producers: o.Producers, Faults: true, Race: racing, GOMAXPROCS: runtime.GOMAXPROCS(0)}
	all.Goroutines[0] = runtime.NumGoroutine()
	began := time.Now()
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	scenarios := Scenarios()
	scenarios = scenarios[:len(scenarios)-1]
	mark := 1
	all.Heap = append(all.Heap, heapNow(began))
	for i := 0; ctx.Err() == nil; i++ {
		rest := o.For - time.Since(began)
		if rest <= 0 {
			break
		}
		s := scenarios[i%len(scenarios)]
		piece := Options{Seed: rng.Uint64(), Faults: i/len(scenarios)%2 == 0 || s.Name == "batched", Producers: o.Producers, Logger: o.Logger, Flight: o.Flight}
		piece.For = min(rest, o.For/time.Duration(2*len(scenarios))+time.Duration(rng.Int64N(int64(o.For/20)+1)), time.Minute)
		if o.Progress != nil {
			piece.Progress = func(p Progress) {
				p.Scenario, p.Elapsed, p.For = fmt.Sprintf("soak (%s)", p.Scenario), time.Since(began), o.For
				p.Operations += all.Operations
				p.Frame += all.Frames
				p.Violations += all.Violated
				o.Progress(p)
			}
		}
		r, err := s.Run(ctx, piece)
		if err != nil {
			return all, err
		}
		all.merge(r)
		if time.Since(began) > time.Duration(mark)*time.Minute {
			mark++
			all.Heap = append(all.Heap, heapNow(began))
		}
	}
	all.Seconds = time.Since(began).Seconds()
	all.Rate /= max(all.Seconds, 1e-9)
	all.Interrupted = ctx.Err() != nil
	all.Heap = append(all.Heap, heapNow(began))
	all.Goroutines[1] = runtime.NumGoroutine()
	return all, nil
}

func heapNow(began time.Time) HeapMark {
	runtime.GC()
	return HeapMark{time.Since(began).Seconds(), readMetric("/memory/classes/heap/objects:bytes")}
}
