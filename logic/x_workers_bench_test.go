package logic_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

//go:noinline
func inTwo(other, own func(), group *sync.WaitGroup) {
	group.Add(1)
	go other()
	own()
	group.Wait()
}

// adding is a loop over slices in parts of 1024.
type adding struct{ to, from []float64 }

func (a *adding) Part(_ *registry.Frame, _, part int) { a.add(part<<10, (part+1)<<10) }

//go:noinline
func (a *adding) add(low, high int) {
	to, from := a.to[low:high], a.from[low:high]
	for i := range to {
		to[i] += from[i]
	}
}

// BenchmarkFork has two workers and parts of 1024 numbers on slices: what Fork adds to a loop. All take
// turns; speedup is that over one goroutine, yardstick the one of two bare goroutines, share the median
// of the one by the other. live=0 is a Fork of two parts that do nothing, in ns, beside two bare
// goroutines that do nothing.
func BenchmarkFork(b *testing.B) {
	for _, n := range []int{0, 64 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("live=%d", n), func(b *testing.B) {
			w := newWorldIn(b, registry.Config{}, workers(2))
			a := &adding{make([]float64, n), make([]float64, n)}
			var t registry.Task = a
			parts := n >> 10
			if n == 0 {
				t, parts = task(func(*registry.Frame, int, int) {}), 2
			}
			var group sync.WaitGroup
			other := func() {
				defer group.Done()
				a.add(n/2, n)
			}
			own := func() { a.add(0, n/2) }
			times := max(1, 1<<20/max(n, 1<<10))
			turn := func(fn func()) float64 {
				start := time.Now()
				for range times {
					fn()
				}
				return float64(time.Since(start).Nanoseconds()) / float64(times)
			}
			var yardsticks, speedups, shares, bares, forks []float64
			require.NoError(b, w.once(func(f *logic.Frame) {
				for b.Loop() {
					for range 15 {
						one := turn(func() { a.add(0, n) })
						two := turn(func() { inTwo(other, own, &group) })
						forked := turn(func() { registry.Fork(f, t, parts, true) })
						yardsticks, speedups = append(yardsticks, one/two), append(speedups, one/forked)
						shares = append(shares, two/forked)
						bares, forks = append(bares, two), append(forks, forked)
					}
				}
			}))
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(shares), "share")
			if n == 0 {
				b.ReportMetric(median(bares), "bare-ns")
				b.ReportMetric(median(forks), "fork-ns")
				return
			}
			b.ReportMetric(median(yardsticks), "yardstick")
			b.ReportMetric(median(speedups), "speedup")
		})
	}
}
