package work

import (
	"sync"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/pool"
)

// pools lend objects and get them back, one after the other, by one goroutine and by eight at once;
// the size is how often each of them does. Raw is a slice behind a mutex.
func pools() []*contest.Workload {
	return []*contest.Workload{
		{Name: "pool, take and release", Sizes: []int{1 << 12}, Open: func(n int) *contest.Contest { return openPools(n, 1) }},
		{Name: "pool, take and release, 8 goroutines", Sizes: []int{1 << 12}, Open: func(n int) *contest.Contest { return openPools(n, 8) }},
	}
}

// spark is what is lent: a cache line that has to be reset.
type spark struct {
	X, Y, Z, Heat float64
	Tail          []float64
	Frames        int
}

// Reset makes it as good as new.
func (s *spark) Reset() { s.Frames, s.Tail = 0, s.Tail[:0] }

// shelf is the pool one would write by hand.
type shelf struct {
	mu   sync.Mutex // guards free
	free []*spark
}

//go:noinline
func (s *shelf) take() *spark {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	return v
}

//go:noinline
func (s *shelf) giveBack(v *spark) {
	v.Reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, v)
}

//go:noinline
func viaShelf(s *shelf, n int) (used uint64) {
	for range n {
		v := s.take()
		v.Frames++
		used += uint64(v.Frames)
		s.giveBack(v)
	}
	return used
}

//go:noinline
func viaSync(s *sync.Pool, n int) (used uint64) {
	for range n {
		v := s.Get().(*spark)
		v.Frames++
		used += uint64(v.Frames)
		v.Reset()
		s.Put(v)
	}
	return used
}

//go:noinline
func viaPool(p *pool.Pool[spark], n int) (used uint64) {
	for range n {
		h, err := p.Take()
		if err != nil {
			continue // the sum tells
		}
		v := h.Ptr()
		v.Frames++
		used += uint64(v.Frames)
		if h.Release() != nil {
			used--
		}
	}
	return used
}

// lending is a side in which several goroutines do something at once. One alone is the caller.
func lending(name string, goroutines int, do func() uint64) contest.Side {
	var used atomic.Uint64
	return contest.Side{Name: name, Sum: used.Load, Run: func(t *contest.Timer, reps int) {
		t.Start()
		for range reps {
			var all sync.WaitGroup
			for range goroutines - 1 {
				all.Go(func() { used.Add(do()) })
			}
			used.Add(do())
			all.Wait()
		}
		t.Stop()
	}}
}

func openPools(n, goroutines int) *contest.Contest {
	const warm = 64
	c := &contest.Contest{Ops: n * goroutines}
	p, err := pool.New(pool.Config[spark]{Capacity: warm})
	c.Check(err)
	lib := &sync.Pool{New: func() any { return new(spark) }}
	hand := new(shelf)
	for range warm {
		hand.free = append(hand.free, new(spark))
	}
	c.Ours = lending("pool.Pool", goroutines, func() uint64 { return viaPool(p, n) })
	c.Peers = []contest.Side{lending("sync.Pool", goroutines, func() uint64 { return viaSync(lib, n) })}
	raw := lending("slice and mutex", goroutines, func() uint64 { return viaShelf(hand, n) })
	c.Raw = &raw
	return c
}
