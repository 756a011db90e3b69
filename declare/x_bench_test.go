package declare_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// flying is the particles example with n slots, all in use and none at its end.
func flying(n int) string {
	return fmt.Sprintf(`world {
  entity emitter { state = (x = -6.0, vx = 0.000001) }
  pool p[%d] { state = (x = 0.0, vx = 0.0) }
}
systems {
  spawn   { on = emitter; pool = p; count = %d }
  update  { on = p; dt = 0.1 x = x + inte(0.0 + vx) }
  despawn { on = p; when = x > 6.0 }
}`, n, n)
}

// byHand is what a Go programmer would write over the same columns.
//
//go:noinline
func byHand(b *registry.Block, end func(slot int)) {
	n := 0
	for _, ch := range b.Chunks() {
		x, vx := archetype.CellsOf[float64](ch, 0), archetype.CellsOf[float64](ch, 1)
		ch.Mark(0)
		for w, word := range ch.Active() {
			if word == ^uint64(0) {
				x, vx := x[w<<6:w<<6+64], vx[w<<6:w<<6+64]
				for i := range x {
					x[i] += float64(0.1 * (0.0 + vx[i]))
				}
				continue
			}
			for ; word != 0; word &= word - 1 {
				i := w<<6 | bits.TrailingZeros64(word)
				x[i] += float64(0.1 * (0.0 + vx[i]))
			}
		}
	}
	for _, ch := range b.Chunks() {
		x := archetype.CellsOf[float64](ch, 0)
		for w, word := range ch.Active() {
			if word == ^uint64(0) {
				for i, v := range x[w<<6 : w<<6+64] {
					if v > 6 {
						end(n + w<<6 + i)
					}
				}
				continue
			}
			for ; word != 0; word &= word - 1 {
				if i := w<<6 | bits.TrailingZeros64(word); x[i] > 6 {
					end(n + i)
				}
			}
		}
		n += ch.Slots()
	}
}

// idle is a world like flying that does nothing from its second step on.
func idle(n int) string {
	return fmt.Sprintf(`world { entity emitter { state = (x = -6.0, vx = 0.000001) } pool p[%d] { state = (x = 0.0, vx = 0.0) } }
systems { spawn { on = emitter; pool = p; count = %d; every = 1000000000 } }`, n, n)
}

// turns times steps of several runners by turns, and reports what each costs a step and how many times that is of the
// first's: on a shared machine speed drifts from one second to the next, so only what ran side by side can be compared.
func turns(b *testing.B, slots int, names []string, runners []*declare.Runner) {
	b.Helper()
	const rounds = 5
	times := make([][]float64, len(runners))
	ratios := make([][]float64, len(runners))
	for b.Loop() {
		for range rounds {
			for i, r := range runners {
				start := time.Now()
				_ = r.Step()
				times[i] = append(times[i], float64(time.Since(start).Nanoseconds()))
				last := len(times[i]) - 1
				ratios[i] = append(ratios[i], times[i][last]/times[0][last])
			}
		}
	}
	for i, name := range names {
		b.ReportMetric(median(times[i])/float64(slots), "ns/"+name)
		if i > 0 {
			b.ReportMetric(median(ratios[i]), name+"/"+names[0])
		}
	}
	b.ReportMetric(0, "ns/op") // one operation is a round of turns
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkStep is a step of the particles example, per slot: of a loop by hand, in a system beside a world that does
// nothing, and of both backends. All have a frame of the engine around them, and the copy of a column for the published
// frames.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{1 << 10, 100_000} {
		b.Run(fmt.Sprintf("active=%d", n), func(b *testing.B) {
			hand := runner(b, idle(n), declare.RunnerOptions{Workers: 1})
			steps(b, hand, 2)
			block := hand.Engine().Registry().BlocksNamed("declare:world.p")[0]
			_, err := hand.Engine().AddSystem(logic.Physics, "hand", func(f *logic.Frame) {
				byHand(block, func(slot int) { _ = block.Despawn(f.Frame, block.Slot(slot)) })
			})
			require.NoError(b, err)
			batch := runner(b, flying(n), declare.RunnerOptions{Workers: 1})
			interpreter := runner(b, flying(n), declare.RunnerOptions{Workers: 1, Backend: declare.Interpreter})
			all := []*declare.Runner{hand, batch, interpreter}
			for _, r := range all {
				steps(b, r, 2)
				require.Equal(b, n, r.World().ActiveIn(1))
			}
			turns(b, n, []string{"hand", "batch", "interpreter"}, all)
			for _, r := range all {
				require.Equal(b, n, r.World().ActiveIn(1))
			}
		})
	}
}

// BenchmarkSpawn is a step that spawns in a pool of a million, whose one free slot is the first, or the last.
func BenchmarkSpawn(b *testing.B) {
	const n = 1 << 20
	b.Run(fmt.Sprintf("slots=%d", n), func(b *testing.B) {
		var all []*declare.Runner
		for _, slot := range []int{0, n - 1} {
			r := runner(b, fmt.Sprintf(`world { entity e { state = (x = 1) } pool p[%d] { state = (x = 0) } }
systems { spawn { on = e; pool = p; count = %d; every = 1000000000 } spawn { on = e; pool = p } }`, n, n), declare.RunnerOptions{Workers: 1})
			steps(b, r, 1)
			block := r.Engine().Registry().BlocksNamed("declare:world.p")[0]
			_, err := r.Engine().AddSystem(logic.Late, "free", func(f *logic.Frame) {
				if block.Despawn(f.Frame, block.Slot(slot)) != nil {
					panic("nobody is there")
				}
			})
			require.NoError(b, err)
			steps(b, r, 2)
			require.Equal(b, n, r.World().ActiveIn(1))
			all = append(all, r)
		}
		turns(b, 1, []string{"front", "end"}, all)
	})
}
