package logic_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

type place struct{ X, Y float64 }

type speed struct{ X, Y float64 }

type mover struct {
	Place place
	Speed speed
}

type movers struct {
	Place []place
	Speed []speed `ecs:"read"`
}

//go:noinline
func moveSlices(p []place, s []speed) {
	for i := range p {
		p[i].X += s[i].X
		p[i].Y += s[i].Y
	}
}

//go:noinline
func moveRuns(q *views.Query[movers], a registry.Access) {
	for m := range q.Runs(a) {
		p, s := m.Place, m.Speed
		for i := range p {
			p[i].X += s[i].X
			p[i].Y += s[i].Y
		}
	}
}

//go:noinline
func moveParallel(q *views.Query[movers], a registry.Access) {
	q.Parallel(a, func(_ *registry.Frame, m *movers) {
		p, s := m.Place, m.Speed
		for i := range p {
			p[i].X += s[i].X
			p[i].Y += s[i].Y
		}
	})
}

//go:noinline
func moveInTwo(p []place, s []speed) {
	var other sync.WaitGroup
	half := len(p) / 2
	other.Go(func() { moveSlices(p[half:], s[half:]) })
	moveSlices(p[:half], s[:half])
	other.Wait()
}

// BenchmarkParallel has two workers. speedup is that of Parallel over Runs, yardstick that of two bare
// goroutines over one on slices; all four take turns, so that what else the machine does is the
// same for all. share is the median of the one by the other.
func BenchmarkParallel(b *testing.B) {
	for _, n := range []int{1 << 10, 16 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("live=%d", n), func(b *testing.B) {
			w := newWorldIn(b, registry.Config{}, func(c *logic.Config) { c.Workers = 2 })
			class, err := registry.RegisterClass[mover](w.r)
			require.NoError(b, err)
			q, err := views.NewQuery[movers](w.r)
			require.NoError(b, err)
			w.update(func(win *registry.Window) error {
				_, err := class.SpawnBatch(win, n, func(i int, e *mover) { e.Speed.X = 1 })
				return err
			})
			p, s := make([]place, n), make([]speed, n)
			for i := range s {
				p[i], s[i] = place{1, 1}, speed{1, 1}
			}
			times := max(1, 1<<20/n)
			turn := func(fn func()) float64 {
				start := time.Now()
				for range times {
					fn()
				}
				return float64(time.Since(start).Nanoseconds()) / float64(times*n)
			}
			var yardsticks, speedups, shares, each []float64
			require.NoError(b, w.once(func(f *logic.Frame) {
				for b.Loop() {
					for range 15 {
						one, two := turn(func() { moveSlices(p, s) }), turn(func() { moveInTwo(p, s) })
						runs, parallel := turn(func() { moveRuns(q, f) }), turn(func() { moveParallel(q, f) })
						yardsticks, speedups = append(yardsticks, one/two), append(speedups, runs/parallel)
						shares, each = append(shares, runs/parallel*two/one), append(each, parallel)
					}
				}
			}))
			b.ReportMetric(median(yardsticks), "yardstick")
			b.ReportMetric(median(speedups), "speedup")
			b.ReportMetric(median(shares), "share")
			b.ReportMetric(median(each), "ns/entity")
			b.ReportMetric(0, "ns/op")
		})
	}
}
