package pool_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/pool"
)

// spark is what the benchmarks lend: a cache line that has to be reset.
type spark struct {
	X, Y, Z, Heat float64
	Tail          []float64
	Frames        int
}

func (s *spark) Reset() { s.Frames, s.Tail = 0, s.Tail[:0] }

// sliced is the pool one would write by hand, without counters, refusals or guards.
type sliced struct {
	mu   sync.Mutex
	free []*spark
}

//go:noinline
func (s *sliced) take() *spark {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return v
}

//go:noinline
func (s *sliced) giveBack(v *spark) {
	v.Reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, v)
}

//go:noinline
func viaSlice(s *sliced, n int) {
	for range n {
		v := s.take()
		v.Frames++
		s.giveBack(v)
	}
}

//go:noinline
func viaSync(s *sync.Pool, n int) {
	for range n {
		v := s.Get().(*spark)
		v.Frames++
		v.Reset()
		s.Put(v)
	}
}

//go:noinline
func viaPool(p *pool.Pool[spark], n int) {
	for range n {
		h, err := p.Take()
		if err != nil {
			panic(err)
		}
		h.Ptr().Frames++
		if err := h.Release(); err != nil {
			panic(err)
		}
	}
}

// median is the middle of what was measured, and sorts it.
func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// together has each of several goroutines do it, and says how long that took. One alone is the caller:
// to hand over to another and back takes as long as a thousand pairs.
func together(goroutines int, do func()) float64 {
	var wg sync.WaitGroup
	began := time.Now()
	for range goroutines - 1 {
		wg.Go(do)
	}
	do()
	wg.Wait()
	return float64(time.Since(began))
}

// BenchmarkTakeRelease compares a take and a release with the same from a sync.Pool, and from a slice
// behind a mutex, by turns: the figures are medians of many short rounds, and the quotients those of
// neighbours.
func BenchmarkTakeRelease(b *testing.B) {
	for _, goroutines := range []int{1, 8} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) { takeRelease(b, goroutines) })
	}
}

func takeRelease(b *testing.B, goroutines int) {
	const each, warm = 2_000, 64
	p, err := pool.New(pool.Config[spark]{Capacity: warm})
	require.NoError(b, err)
	lib := &sync.Pool{New: func() any { return new(spark) }}
	hand := &sliced{}
	for range warm {
		hand.free = append(hand.free, new(spark))
	}
	var ours, libs, hands, ofLib, ofHand []float64
	b.ReportAllocs() // a few of a round are its goroutines
	for b.Loop() {
		o := together(goroutines, func() { viaPool(p, each) })
		l := together(goroutines, func() { viaSync(lib, each) })
		h := together(goroutines, func() { viaSlice(hand, each) })
		ours, libs, hands = append(ours, o), append(libs, l), append(hands, h)
		ofLib, ofHand = append(ofLib, o/l), append(ofHand, o/h)
	}
	pairs := float64(goroutines * each)
	b.ReportMetric(median(ours)/pairs, "ns/pair")
	b.ReportMetric(median(libs)/pairs, "ns/sync.Pool")
	b.ReportMetric(median(hands)/pairs, "ns/slice")
	b.ReportMetric(median(ofLib), "of-sync.Pool")
	b.ReportMetric(median(ofHand), "of-slice")
	b.ReportMetric(0, "ns/op")
}

//go:noinline
func burstPool(p *pool.Pool[spark], hs []pool.Handle[spark]) {
	for i := range hs {
		hs[i], _ = p.Take()
	}
	for _, h := range hs {
		_ = h.Release()
	}
}

//go:noinline
func burstSync(p *sync.Pool, vs []*spark) {
	for i := range vs {
		vs[i] = p.Get().(*spark)
	}
	for _, v := range vs {
		v.Reset()
		p.Put(v)
	}
}

// BenchmarkBurst takes many before it releases the first, beside a sync.Pool, by turns.
func BenchmarkBurst(b *testing.B) {
	for _, n := range []int{64, 4096} {
		b.Run(fmt.Sprintf("size=%d", n), func(b *testing.B) {
			p, err := pool.New(pool.Config[spark]{Capacity: n})
			require.NoError(b, err)
			lib := &sync.Pool{New: func() any { return new(spark) }}
			hs, vs := make([]pool.Handle[spark], n), make([]*spark, n)
			var ours, libs, ofLib []float64
			for b.Loop() {
				o := together(1, func() { burstPool(p, hs) })
				l := together(1, func() { burstSync(lib, vs) })
				ours, libs, ofLib = append(ours, o), append(libs, l), append(ofLib, o/l)
			}
			b.ReportMetric(median(ours)/float64(n), "ns/pair")
			b.ReportMetric(median(libs)/float64(n), "ns/sync.Pool")
			b.ReportMetric(median(ofLib), "of-sync.Pool")
			b.ReportMetric(0, "ns/op")
		})
	}
}

var latest *spark // what new makes is used, so that it is made

//go:noinline
func fillNew(n, floats int) {
	for range n {
		latest = &spark{Tail: make([]float64, floats)}
		latest.Frames++
	}
}

//go:noinline
func fillPool(p *pool.Pool[spark], n, floats int) {
	for range n {
		h, _ := p.Take()
		v := h.Ptr()
		if cap(v.Tail) < floats {
			v.Tail = make([]float64, floats)
		}
		v.Tail = v.Tail[:floats]
		clear(v.Tail) // as make does
		v.Frames++
		_ = h.Release()
	}
}

// BenchmarkAgainstNew says when a pool pays: an instance with a buffer of this many numbers, from a pool
// and made anew, by turns, the collector's work included.
func BenchmarkAgainstNew(b *testing.B) {
	for _, floats := range []int{0, 16, 256, 8192} {
		b.Run(fmt.Sprintf("floats=%d", floats), func(b *testing.B) {
			each := 200_000 / (floats + 100)
			p, err := pool.New(pool.Config[spark]{Capacity: 1})
			require.NoError(b, err)
			var ours, news, ofNew []float64
			for b.Loop() {
				o := together(1, func() { fillPool(p, each, floats) })
				n := together(1, func() { fillNew(each, floats) })
				ours, news, ofNew = append(ours, o), append(news, n), append(ofNew, o/n)
			}
			b.ReportMetric(median(ours)/float64(each), "ns/pair")
			b.ReportMetric(median(news)/float64(each), "ns/new")
			b.ReportMetric(median(ofNew), "of-new")
			b.ReportMetric(0, "ns/op")
		})
	}
}
