package handles_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

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

// BenchmarkAlive compares Alive, in random order, with one atomic load of a word in a paged table.
func BenchmarkAlive(b *testing.B) {
	for _, n := range scales {
		s, names := lived(n)
		names = shuffled(names)
		t := newTable(names)
		b.Run(fmt.Sprintf("yardstick/live=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				loadAll(t, names)
			}
			perName(b, n)
		})
		b.Run(fmt.Sprintf("alive/live=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				aliveAll(s, names)
			}
			perName(b, n)
		})
	}
}

//go:noinline
func cycleAll(s *handles.Locals, names []handles.Local) {
	killAll(s, names)
	s.Confirm()
	issueAll(s, names)
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

// BenchmarkIssue claims free names, warm.
func BenchmarkIssue(b *testing.B) {
	for _, n := range scales {
		b.Run(fmt.Sprintf("live=%d", n), func(b *testing.B) {
			s, names := lived(n)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				killAll(s, names)
				s.Confirm()
				b.StartTimer()
				issueAll(s, names)
			}
			perName(b, n)
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
		h, _ := s.Issue(0)
		s.Unissue(h)
		b.StartTimer()
		issueAll(s, names)
	}
	perName(b, n)
}

// BenchmarkKillAndFree ends names, in order and shuffled.
func BenchmarkKillAndFree(b *testing.B) {
	for _, n := range scales {
		b.Run(fmt.Sprintf("live=%d", n), func(b *testing.B) {
			s, names := lived(n)
			b.ReportAllocs()
			for b.Loop() {
				killAll(s, names)
				b.StopTimer()
				s.Confirm()
				issueAll(s, names)
				b.StartTimer()
			}
			perName(b, n)
		})
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
