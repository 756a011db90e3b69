package views_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
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

// moveLanes moves the dead as well.
//
//go:noinline
func moveLanes(q *views.Query[moving], a registry.Access) {
	for m := range q.Spans(a) {
		moveSlices(m.Pos, m.Vel)
	}
}

// listed is a span as the best loop by lists would have it, without looking for it.
type listed struct {
	moving
	live []uint16
}

//go:noinline
func moveListed(spans []listed) {
	for i := range spans {
		pos, vel := spans[i].Pos, spans[i].Vel
		for _, i := range spans[i].live {
			pos[i].X += vel[i].X
			pos[i].Y += vel[i].Y
		}
	}
}

// BenchmarkSpansScattered loops over entities of which some have died here and there: by the lists of
// those that live, and over all lanes. Yardsticks are a loop without holes (dense), of which the ratio
// compares what an entity costs there with what a live one costs here, and lists over the same
// storage that were made beforehand (listed), which says what the memory costs.
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
						var lists []listed
						for m, mask := range q.Spans(f) {
							lists = append(lists, listed{*m, slices.Clone(mask.Live())})
						}
						moveDense := func() { moveRuns(all, whole) }
						byLive := func() { moveLive(q, f) }
						b.Run("by=live/to=dense", func(b *testing.B) { compareEach(b, n, live, moveDense, byLive) })
						b.Run("by=live/to=listed", func(b *testing.B) {
							compareEach(b, live, live, func() { moveListed(lists) }, byLive)
						})
						if dead <= 50 {
							b.Run("by=lanes/to=dense", func(b *testing.B) {
								compareEach(b, n, live, moveDense, func() { moveLanes(q, f) })
							})
						}
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
