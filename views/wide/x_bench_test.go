package wide_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/airlock-ecs/airlock/views/wide"
)

// pairCount is how many times yardstick and candidate take turns in one measurement.
const pairCount = 15

// compare times two functions by turns and reports their cost per element, and the median of
// how many times faster the candidate was than its neighbour: on a shared machine speed drifts from
// one second to the next, so only what ran side by side can be compared. One operation is all
// the turns.
func compare(b *testing.B, elements int, yardstick, candidate func()) {
	b.Helper()
	times := max(1, 1<<19/elements) // some 150 µs a turn
	turn := func(fn func()) float64 {
		start := time.Now()
		for range times {
			fn()
		}
		return float64(time.Since(start).Nanoseconds()) / float64(times*elements)
	}
	turn(yardstick)
	turn(candidate)
	b.ReportAllocs()
	var base, ours, speedups []float64
	for b.Loop() {
		for i := range pairCount {
			var y, c float64
			if i&1 == 0 {
				y, c = turn(yardstick), turn(candidate)
			} else {
				c, y = turn(candidate), turn(yardstick)
			}
			base, ours, speedups = append(base, y), append(ours, c), append(speedups, y/c)
		}
	}
	b.ReportMetric(median(base), "ns/yardstick")
	b.ReportMetric(median(ours), "ns/element")
	b.ReportMetric(median(speedups), "x-faster")
	b.ReportMetric(0, "ns/op") // one operation is an arbitrary number of turns
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// scales runs a benchmark for both types, over what fits the caches and what does not.
func scales(b *testing.B, singles func(b *testing.B, y, x []float32), doubles func(b *testing.B, y, x []float64)) {
	for _, n := range []int{1 << 10, 16 << 10, 1 << 20} {
		at(b, n, singles)
		at(b, n, doubles)
	}
}

func at[F wide.Float](b *testing.B, n int, run func(b *testing.B, y, x []F)) {
	b.Run(fmt.Sprintf("type=%s/n=%d", reflect.TypeFor[F](), n), func(b *testing.B) {
		y, x := make([]F, n), make([]F, n)
		for i := range x {
			x[i] = F(i%100) / 100
		}
		run(b, y, x)
	})
}

// The yardsticks are the loops one would write without this package. They are written for each type: a
// generic one would do, but that it costs no more is not for a yardstick to assume.

//go:noinline
func rawAxpy32(y []float32, a float32, x []float32) {
	for i := range x {
		y[i] += a * x[i]
	}
}

//go:noinline
func rawAxpy64(y []float64, a float64, x []float64) {
	for i := range x {
		y[i] += a * x[i]
	}
}

//go:noinline
func axpy[F wide.Float](y []F, a F, x []F) { wide.Axpy(y, a, x) }

func BenchmarkAxpy(b *testing.B) {
	scales(b, func(b *testing.B, y, x []float32) {
		compare(b, len(y), func() { rawAxpy32(y, 0.5, x) }, func() { axpy(y, 0.5, x) })
	}, func(b *testing.B, y, x []float64) {
		compare(b, len(y), func() { rawAxpy64(y, 0.5, x) }, func() { axpy(y, 0.5, x) })
	})
}

//go:noinline
func rawScale32(x []float32, a float32) {
	for i := range x {
		x[i] *= a
	}
}

//go:noinline
func rawScale64(x []float64, a float64) {
	for i := range x {
		x[i] *= a
	}
}

//go:noinline
func scale[F wide.Float](x []F, a F) { wide.Scale(x, a) }

// BenchmarkScale multiplies by 1, for a column that shrinks every time ends in denormal numbers, which are slow.
func BenchmarkScale(b *testing.B) {
	scales(b, func(b *testing.B, _, x []float32) {
		compare(b, len(x), func() { rawScale32(x, 1) }, func() { scale(x, 1) })
	}, func(b *testing.B, _, x []float64) {
		compare(b, len(x), func() { rawScale64(x, 1) }, func() { scale(x, 1) })
	})
}

//go:noinline
func rawAdd32(dst, src []float32) {
	for i := range src {
		dst[i] += src[i]
	}
}

//go:noinline
func rawAdd64(dst, src []float64) {
	for i := range src {
		dst[i] += src[i]
	}
}

//go:noinline
func add[F wide.Float](dst, src []F) { wide.Add(dst, src) }

func BenchmarkAdd(b *testing.B) {
	scales(b, func(b *testing.B, y, x []float32) {
		compare(b, len(y), func() { rawAdd32(y, x) }, func() { add(y, x) })
	}, func(b *testing.B, y, x []float64) {
		compare(b, len(y), func() { rawAdd64(y, x) }, func() { add(y, x) })
	})
}

//go:noinline
func rawClamp32(x []float32, lo, hi float32) {
	for i := range x {
		if x[i] < lo {
			x[i] = lo
		} else if x[i] > hi {
			x[i] = hi
		}
	}
}

//go:noinline
func rawClamp64(x []float64, lo, hi float64) {
	for i := range x {
		if x[i] < lo {
			x[i] = lo
		} else if x[i] > hi {
			x[i] = hi
		}
	}
}

//go:noinline
func clamp[F wide.Float](x []F, lo, hi F) { wide.Clamp(x, lo, hi) }

// BenchmarkClamp finds all elements inside: after the first time they would be, whatever they are.
func BenchmarkClamp(b *testing.B) {
	scales(b, func(b *testing.B, _, x []float32) {
		compare(b, len(x), func() { rawClamp32(x, 0, 1) }, func() { clamp(x, 0, 1) })
	}, func(b *testing.B, _, x []float64) {
		compare(b, len(x), func() { rawClamp64(x, 0, 1) }, func() { clamp(x, 0, 1) })
	})
}
