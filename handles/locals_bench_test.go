package handles_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/airlock-ecs/airlock/handles"
)

var scales = []int{1 << 10, 1 << 14, 1 << 18, 1 << 20}

// lived gives a space in which n entities are alive, in order.
func lived(n int) (*handles.Locals, []handles.Local) {
	s := handles.NewLocals(handles.LocalsConfig{Limit: uint32(4 * n)})
	names := make([]handles.Local, n)
	for i := range names {
		names[i], _ = s.Issue(uint32(i))
	}
	return s, names
}

func shuffled(names []handles.Local) []handles.Local {
	names = slices.Clone(names)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

// table is the yardstick of Alive: pages of atomic words, and nothing else.
type table struct {
	pages []atomic.Pointer[[4096]atomic.Uint64]
}

func newTable(names []handles.Local) *table {
	t := &table{pages: make([]atomic.Pointer[[4096]atomic.Uint64], len(names)/4096+2)}
	for i := range t.pages {
		t.pages[i].Store(new([4096]atomic.Uint64))
	}
	for _, h := range names {
		t.pages[h.Index()>>12].Load()[h.Index()&4095].Store(uint64(h.Generation()))
	}
	return t
}

//go:noinline
func loadAll(t *table, names []handles.Local) (n int) {
	for _, h := range names {
		if t.pages[h.Index()>>12].Load()[h.Index()&4095].Load() == uint64(h.Generation()) {
			n++
		}
	}
	return n
}

//go:noinline
func aliveAll(s *handles.Locals, names []handles.Local) (n int) {
	for _, h := range names {
		if s.Alive(h) {
			n++
		}
	}
	return n
}

func perName(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/name")
}

// inPairs runs yardstick and candidate by turns, and reports the median of each and of their ratio.
// What prepare does is not timed.
func inPairs(b *testing.B, n int, prepare, yardstick, candidate func()) {
	var base, cost, ratio []float64
	b.ReportAllocs()
	for b.Loop() {
		prepare()
		start := time.Now()
		yardstick()
		middle := time.Now()
		candidate()
		y, c := float64(middle.Sub(start)), float64(time.Since(middle))
		base, cost, ratio = append(base, y/float64(n)), append(cost, c/float64(n)), append(ratio, c/y)
	}
	b.ReportMetric(median(base), "yardstick-ns/name")
	b.ReportMetric(median(cost), "ns/name")
	b.ReportMetric(median(ratio), "ratio")
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// BenchmarkAlive compares Alive, in random order, with one atomic load of a word in a paged
// table; quiet, and beside an owner that moves entities all the time.
func BenchmarkAlive(b *testing.B) {
	for _, n := range scales {
		s, names := lived(n)
		mixed := shuffled(names)
		t := newTable(names)
		run := func(b *testing.B) {
			inPairs(b, n, func() {}, func() { loadAll(t, mixed) }, func() { aliveAll(s, mixed) })
		}
		b.Run(fmt.Sprintf("quiet/live=%d", n), run)
		b.Run(fmt.Sprintf("beside-a-writer/live=%d", n), func(b *testing.B) {
			var stop atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; !stop.Load(); i++ {
					h := names[i%n] // writes to both tables, so that both are as disturbed
					s.Move(h, uint32(i)&handles.NoPlace)
					t.pages[h.Index()>>12].Load()[h.Index()&4095].Store(uint64(h.Generation()))
				}
			}()
			run(b)
			stop.Store(true)
			<-done
		})
	}
}

//go:noinline
func killAll(s *handles.Locals, names []handles.Local) {
	for _, h := range names {
		s.Kill(h)
		s.Free(h, 1)
	}
}

//go:noinline
func issueAll(s *handles.Locals, names []handles.Local) {
	for i := range names {
		names[i], _ = s.Issue(uint32(i))
	}
}

// swapAll is the yardstick of every step of a life: one compare-and-swap of a word for each name.
//
//go:noinline
func swapAll(t *table, names []handles.Local) {
	for _, h := range names {
		w := &t.pages[h.Index()>>12].Load()[h.Index()&4095]
		old := w.Load()
		w.CompareAndSwap(old, old+1<<32)
	}
}

// BenchmarkIssue claims free names, warm, and compares it with a bare compare-and-swap.
func BenchmarkIssue(b *testing.B) {
	for _, n := range scales {
		s, names := lived(n)
		t := newTable(names)
		b.Run(fmt.Sprintf("live=%d", n), func(b *testing.B) {
			prepare := func() {
				killAll(s, names)
				s.Confirm()
			}
			inPairs(b, n, prepare, func() { swapAll(t, names) }, func() { issueAll(s, names) })
		})
	}
}

// BenchmarkIssueFresh claims fresh names, of pages that exist.
func BenchmarkIssueFresh(b *testing.B) {
	const n = 1 << 14
	b.ReportAllocs()
	names := make([]handles.Local, n)
	for b.Loop() {
		b.StopTimer()
		s := handles.NewLocals(handles.LocalsConfig{Limit: n})
		s.CreatePages()
		b.StartTimer()
		issueAll(s, names)
	}
	perName(b, n)
}

// BenchmarkKillAndFree ends names, in order and shuffled, and compares it with a bare compare-and-swap.
func BenchmarkKillAndFree(b *testing.B) {
	for _, n := range scales {
		for _, order := range []string{"in-order", "shuffled"} {
			s, names := lived(n)
			t := newTable(names)
			b.Run(fmt.Sprintf("%s/live=%d", order, n), func(b *testing.B) {
				prepare := func() {
					s.Confirm()
					issueAll(s, names)
					if order == "shuffled" {
						names = shuffled(names)
					}
				}
				killAll(s, names)
				inPairs(b, n, prepare, func() { swapAll(t, names) }, func() { killAll(s, names) })
				s.Confirm()
				issueAll(s, names)
			})
		}
	}
}

// BenchmarkReserve reserves free names, from one goroutine and from several.
func BenchmarkReserve(b *testing.B) {
	const n = 1 << 14
	b.Run("alone", func(b *testing.B) {
		s, names := lived(n)
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			killAll(s, names)
			s.Confirm()
			s.Publish()
			b.StartTimer()
			for i := range names {
				names[i], _ = s.Reserve()
			}
		}
		perName(b, n)
	})
	b.Run("parallel", func(b *testing.B) {
		s := handles.NewLocals(handles.LocalsConfig{Limit: 1 << 30})
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				s.Reserve()
			}
		})
	})
}

// BenchmarkMove changes the place of living entities.
func BenchmarkMove(b *testing.B) {
	const n = 1 << 14
	s, names := lived(n)
	b.ReportAllocs()
	for b.Loop() {
		for i, h := range names {
			s.Move(h, uint32(i))
		}
	}
	perName(b, n)
}
