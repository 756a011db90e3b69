package views_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

//go:noinline
func moveLive(q *views.Query[moving], a registry.Access) {
	for m, mask := range q.Spans(a) {
		pos, vel := m.Pos, m.Vel
		for _, i := range mask.Live() {
			pos[i].X += vel[i].X
			pos[i].Y += vel[i].Y
		}
	}
}

// BenchmarkSpansScattered goes by lists of live slots over entities of which some have died here and
// there. The yardstick is a loop without holes: what an entity costs there, and what a live one costs
// here.
func BenchmarkSpansScattered(b *testing.B) {
	for _, n := range []int{16 << 10, 1 << 20} {
		for _, dead := range []int{0, 10, 50, 90, 99} {
			b.Run(fmt.Sprintf("slots=%d/dead=%d", n, dead), func(b *testing.B) {
				dense, w := newWorld(b), newWorld(b)
				dense.spawn(class[Mover](dense), n)
				w.destroy(scattered(w.spawn(class[Mover](w), n), dead)...)
				all, q := query[moving](dense), query[moving](w)
				dense.frame(func(whole *registry.Frame) {
					w.frame(func(f *registry.Frame) {
						live := q.Count(f)
						compareEach(b, n, live, func() { moveRuns(all, whole) }, func() { moveLive(q, f) })
					})
				})
			})
		}
	}
}

// scattered draws some per cent of the entities.
func scattered(hs []handles.Local, percent int) (drawn []handles.Local) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, h := range hs {
		if rnd.IntN(100) < percent {
			drawn = append(drawn, h)
		}
	}
	return drawn
}

// compareEach is compare for two loops over different numbers of entities.
func compareEach(b *testing.B, ofYardstick, ofCandidate int, yardstick, candidate func()) {
	b.Helper()
	times := max(1, 1<<20/max(ofYardstick, ofCandidate))
	turn := func(fn func(), entities int) float64 {
		start := time.Now()
		for range times {
			fn()
		}
		return float64(time.Since(start).Nanoseconds()) / float64(times*entities)
	}
	turn(yardstick, ofYardstick)
	turn(candidate, ofCandidate)
	b.ReportAllocs()
	base, ours, ratios := make([]float64, 0, 1024), make([]float64, 0, 1024), make([]float64, 0, 1024)
	for b.Loop() {
		for range pairCount {
			y, c := turn(yardstick, ofYardstick), turn(candidate, ofCandidate)
			base, ours, ratios = append(base, y), append(ours, c), append(ratios, c/y)
		}
	}
	b.ReportMetric(median(base), "ns/yardstick")
	b.ReportMetric(median(ours), "ns/entity")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(0, "ns/op") // one operation is an arbitrary number of turns
}
