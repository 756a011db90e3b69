package views_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// pairCount is how many times yardstick and candidate take turns in one measurement.
const pairCount = 15

// compare times two functions by turns and reports their cost per entity, and the median of
// the ratios of neighbours: on a shared machine speed drifts from one second to the next, so
// only what ran side by side can be compared. One operation is all the turns.
func compare(b *testing.B, entities int, yardstick, candidate func()) {
	b.Helper()
	times := max(1, 1<<20/entities) // some 2 ms a turn
	turn := func(fn func()) float64 {
		start := time.Now()
		for range times {
			fn()
		}
		return float64(time.Since(start).Nanoseconds()) / float64(times*entities)
	}
	turn(yardstick)
	turn(candidate)
	b.ReportAllocs()
	var base, ours, ratios []float64
	ratios = make([]float64, 0, 1024)
	base, ours = make([]float64, 0, 1024), make([]float64, 0, 1024)
	for b.Loop() {
		for i := range pairCount {
			var y, c float64
			if i&1 == 0 {
				y, c = turn(yardstick), turn(candidate)
			} else {
				c, y = turn(candidate), turn(yardstick)
			}
			base, ours, ratios = append(base, y), append(ours, c), append(ratios, c/y)
		}
	}
	b.ReportMetric(median(base), "ns/yardstick")
	b.ReportMetric(median(ours), "ns/entity")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(0, "ns/op") // one operation is an arbitrary number of turns
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

//go:noinline
func moveSlices(pos []Position, vel []Velocity) {
	for i := range pos {
		pos[i].X += vel[i].X
		pos[i].Y += vel[i].Y
	}
}

type moving struct {
	Pos []Position
	Vel []Velocity `ecs:"read"`
}

//go:noinline
func moveRuns(q *views.Query[moving], a registry.Access) {
	for m := range q.Runs(a) {
		pos, vel := m.Pos, m.Vel
		for i := range pos {
			pos[i].X += vel[i].X
			pos[i].Y += vel[i].Y
		}
	}
}

func plain(n int) ([]Position, []Velocity) {
	pos, vel := make([]Position, n), make([]Velocity, n)
	for i := range vel {
		pos[i], vel[i] = Position{float64(i), 0}, Velocity{1, float64(i)}
	}
	return pos, vel
}

// moveCut is the best that any iteration can do in the given memory: all runs are known.
//
//go:noinline
func moveCut(runs []moving) {
	for i := range runs {
		moveSlices(runs[i].Pos, runs[i].Vel)
	}
}

// compareRuns compares a loop over q with two yardsticks: plain slices with as many entities,
// and the same runs of the same storage, cut beforehand. The first ratio is what a user pays
// for entities in chunks, the second what the query adds to the memory's own cost.
func compareRuns(b *testing.B, w *world, n int) {
	q := query[moving](w)
	pos, vel := plain(n)
	w.frame(func(f *registry.Frame) {
		if got := q.Count(f); got != n {
			b.Fatalf("%d live, want %d", got, n)
		}
		var cut []moving
		for m := range q.Runs(f) {
			cut = append(cut, *m)
		}
		b.Run("to=plain", func(b *testing.B) {
			compare(b, n, func() { moveSlices(pos, vel) }, func() { moveRuns(q, f) })
		})
		b.Run("to=cut", func(b *testing.B) {
			compare(b, n, func() { moveCut(cut) }, func() { moveRuns(q, f) })
		})
	})
}

// BenchmarkRunsDense has no holes.
func BenchmarkRunsDense(b *testing.B) {
	for _, n := range []int{1 << 10, 16 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("live=%d", n), func(b *testing.B) {
			w := newWorld(b)
			w.spawn(class[Mover](w), n)
			compareRuns(b, w, n)
		})
	}
}

// BenchmarkRunsClustered has as many dead slots as live ones, in alternate blocks.
func BenchmarkRunsClustered(b *testing.B) {
	for _, n := range []int{1 << 10, 16 << 10, 256 << 10, 1 << 20} {
		for _, block := range []int{64, 256, 1000} {
			if 2*block > n {
				continue
			}
			b.Run(fmt.Sprintf("slots=%d/block=%d", n, block), func(b *testing.B) {
				w := newWorld(b)
				hs := w.spawn(class[Mover](w), n)
				var dead []handles.Local
				for i, h := range hs {
					if i/block%2 == 1 {
						dead = append(dead, h)
					}
				}
				w.destroy(dead...)
				compareRuns(b, w, n-len(dead))
			})
		}
	}
}
