//go:build faults

package logic_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/internal/sim"
	"github.com/airlock-ecs/airlock/logic"
	accounts "github.com/airlock-ecs/airlock/stress" // its name is taken here
)

// smallPrograms are few actors that do one thing each, beside a Logic that makes some frames and then stops.
var smallPrograms = []struct {
	name            string
	queue, spinners int
	frames          uint64
	short, long     int // preemptions
	play            func(w *simulated)
}{
	{"a caller", 64, 0, 1, 3, 3, func(w *simulated) { w.calls(0) }},
	{"a caller that spins", 64, 1, 1, 3, 3, func(w *simulated) { w.calls(0) }},
	{"a caller whose context ends", 64, 0, 1, 3, 3, func(w *simulated) {
		p := w.producer(0)
		w.actor("caller", func() { p.cancelled(p.op(endsWell)) })
	}},
	{"two callers", 64, 0, 1, 2, 3, func(w *simulated) {
		w.calls(0)
		w.calls(1)
	}},
	{"two callers for one place", 1, 0, 1, 2, 3, func(w *simulated) {
		w.calls(0)
		w.calls(1)
	}},
	{"a caller and a stop", 64, 0, 1, 2, 3, func(w *simulated) {
		w.calls(0)
		w.actor("stopper", w.stopper(w.life.e, 0))
	}},
	{"a deferred operation", 64, 0, 2, 3, 3, func(w *simulated) {
		p := w.producer(0)
		w.actor("producer", func() { p.deferred(p.op(endsWell)) })
	}},
	{"an enqueued operation and a call", 64, 0, 1, 3, 3, func(w *simulated) {
		p := w.producer(0)
		w.actor("producer", func() {
			p.enqueued(p.op(endsExiting))
			o := p.op(endsWell)
			p.asks(o)
			p.answer(o, p.e.Spawn(background(), p.callback(o)))
			p.collect()
		})
	}},
}

// calls adds a caller.
func (w *simulated) calls(id int) {
	p := w.producer(id)
	w.actor("caller", func() {
		o := p.op(endsWell)
		p.asks(o)
		p.answer(o, p.e.Spawn(background(), p.callback(o)))
	})
}

func TestEveryScheduleOfFewPreemptions(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, program := range smallPrograms {
		t.Run(program.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := sim.NewExplorer(many(program.short, program.long))
				w, err := newSimulated(nil, 1)
				require.NoError(t, err)
				w.verifyEvery = 0
				for {
					s := sim.New(x, 10_000)
					over := fault.Simulate(observed{w})
					w.Sim, w.rng = s, rand.New(rand.NewPCG(1, 4)) // the same one each time
					s.Go("logic", func() {
						w.begin(func(c *logic.Config) { c.QueueSize = program.queue })
						logic.Spinners(w.life.e, program.spinners)
						program.play(w)
						w.steps(w.frame() + program.frames)
						w.close()
					})
					err := s.Run()
					over()
					require.NoError(t, err, "schedule %d", x.Runs())
					if !x.More() {
						break
					}
				}
				require.False(t, x.Astray())
				t.Logf("%d schedules", x.Runs())
			})
		})
	}
}

// Who waits for long with nobody to watch over him looks whether he waits for himself, and goes on waiting.
func TestASimulationOfACallerThatLooksWhetherItWaitsForItself(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for seed := uint64(1); seed <= 20; seed++ {
		synctest.Test(t, func(t *testing.T) {
			s := sim.New(sim.BySeed(seed), 10_000)
			w, err := newSimulated(s, seed)
			require.NoError(t, err)
			over := fault.Simulate(observed{w})
			defer over()
			s.Go("logic", func() {
				w.begin(nil)
				w.calls(0)
				for range 64 { // it is asleep
					w.At(sim.Name("nobody steps"))
				}
				w.pass(time.Second)
				for range 64 { // it has looked
					w.At(sim.Name("nobody steps"))
				}
				w.steps(w.frame() + 1)
				w.close()
			})
			require.NoError(t, s.Run(), "seed %d", seed)
			require.EqualValues(t, 1, w.by[accounts.Applied])
		})
	}
}
