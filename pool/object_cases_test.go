package pool_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/pool"
)

func TestObjectCases(t *testing.T) {
	t.Run("pool-1", releasedTwice)
	t.Run("pool-2", notOurs)
	t.Run("pool-3", asGoodAsNew)
	t.Run("pool-4", func(t *testing.T) {
		trimBelowUse(t)
		trimWhileOthersTake(t)
	})
	t.Run("pool-5", lostGuards)
	t.Run("pool-6", everyGrowth)
	t.Run("pool-7", func(t *testing.T) {
		for _, goroutines := range []int{2, 8, 100} {
			countersUnderFire(t, goroutines, pool.Config[widget]{Capacity: 6, Grow: pool.Fixed()})
			countersUnderFire(t, goroutines, pool.Config[widget]{Grow: pool.Additive(1), Max: 7})
			countersUnderFire(t, goroutines, pool.Config[widget]{Lazy: true, Capacity: 2})
		}
	})
	t.Run("pool-8", stableAndReused)
}

// widget is what these tests lend: it has one of everything that is easily forgotten.
type widget struct {
	part
	Name  string
	Tags  map[string]int
	Tail  []int
	Heard []func()
	Next  *widget

	owners atomic.Int32 // goroutines that have it at the moment: never two
	resets atomic.Int32 // kept by Reset, for the tests to count
}

type part struct {
	X, Y  float64
	Bytes [4]byte
	Deep  struct{ Seen map[int]bool }
}

func newWidget() (*widget, error) {
	w := &widget{Tags: map[string]int{}, Tail: make([]int, 0, 4)}
	w.Deep.Seen = map[int]bool{}
	return w, nil
}

func (w *widget) Reset() {
	w.resets.Add(1)
	clear(w.Tags)
	clear(w.Deep.Seen)
	clear(w.Heard)
	seen := w.Deep.Seen
	w.part = part{}
	w.Deep.Seen = seen
	w.Name, w.Tail, w.Heard, w.Next = "", w.Tail[:0], w.Heard[:0], nil
}

// newWidgets makes a pool whose structure is walked when the test is over.
func newWidgets(t testing.TB, c pool.Config[widget]) *pool.Pool[widget] {
	t.Helper()
	if c.New == nil {
		c.New = newWidget
	}
	p, err := pool.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Verify()) })
	return p
}

// taken is n guards.
func taken(t testing.TB, p *pool.Pool[widget], n int) []pool.Handle[widget] {
	t.Helper()
	hs := make([]pool.Handle[widget], n)
	for i := range hs {
		var err error
		hs[i], err = p.Take()
		require.NoError(t, err)
	}
	return hs
}

// eventually collects garbage until the cleanups have done what is expected of them.
func eventually(t require.TestingT, what string, done func() bool) {
	for deadline := time.Now().Add(20 * time.Second); !done(); {
		if time.Now().After(deadline) {
			require.FailNow(t, "garbage was collected for 20 s: still not "+what)
		}
		runtime.GC()
		runtime.Gosched()
	}
}

func releasedTwice(t *testing.T) {
	p := newWidgets(t, pool.Config[widget]{Capacity: 4})
	differ := func() {
		hs := taken(t, p, 2)
		require.NotSame(t, hs[0].Ptr(), hs[1].Ptr())
		require.NotEqual(t, hs[0], hs[1])
		for _, h := range hs {
			require.NoError(t, h.Release())
		}
	}
	h := taken(t, p, 1)[0]
	dup, before := h, p.Stats().Free
	require.True(t, h == dup)
	require.NoError(t, h.Release())
	for _, again := range []pool.Handle[widget]{dup, h} {
		require.ErrorIs(t, again.Release(), pool.ErrReleased)
		require.ErrorIs(t, p.GiveBack(again), pool.ErrReleased)
		_, err := again.Value()
		require.ErrorIs(t, err, pool.ErrReleased)
		require.Panics(t, func() { again.Ptr() })
	}
	require.Equal(t, before+1, p.Stats().Free)
	differ()

	for range 300 {
		h := taken(t, p, 1)[0]
		before := p.Stats().Free
		w := h.Ptr()
		was := w.resets.Load()
		var (
			wg   sync.WaitGroup
			errs [2]error
		)
		for i := range errs {
			wg.Go(func() { errs[i] = h.Release() })
		}
		wg.Wait()
		if errs[0] == nil {
			errs[0], errs[1] = errs[1], errs[0]
		}
		require.ErrorIs(t, errs[0], pool.ErrReleased)
		require.NoError(t, errs[1])
		require.Equal(t, before+1, p.Stats().Free)
		require.Equal(t, was+1, w.resets.Load())
		differ()
	}
}

func notOurs(t *testing.T) {
	p, other := newWidgets(t, pool.Config[widget]{Capacity: 2}), newWidgets(t, pool.Config[widget]{Capacity: 2})
	mine, theirs := taken(t, p, 1)[0], taken(t, other, 1)[0]
	was, wasTheirs := p.Stats(), other.Stats()

	var zero pool.Handle[widget]
	require.ErrorIs(t, zero.Release(), pool.ErrForeign)
	require.ErrorIs(t, p.GiveBack(zero), pool.ErrForeign)
	_, err := zero.Value()
	require.ErrorIs(t, err, pool.ErrForeign)
	require.Panics(t, func() { zero.Ptr() })
	require.ErrorIs(t, p.GiveBack(theirs), pool.ErrForeign)
	require.ErrorIs(t, other.GiveBack(mine), pool.ErrForeign)

	require.Equal(t, was, p.Stats())
	require.Equal(t, wasTheirs, other.Stats())
	require.NoError(t, p.GiveBack(mine))
	require.NoError(t, other.GiveBack(theirs))
}

func asGoodAsNew(t *testing.T) {
	p := newWidgets(t, pool.Config[widget]{Capacity: 1, Grow: pool.Fixed()})
	h := taken(t, p, 1)[0]
	w := h.Ptr()
	w.Name, w.X, w.Y, w.Bytes = "used", 1, 2, [4]byte{1, 2, 3, 4}
	for i := range 1000 {
		w.Tags[fmt.Sprint(i)] = i
		w.Deep.Seen[i] = true
		w.Tail = append(w.Tail, i)
		w.Heard = append(w.Heard, func() { w.Name += "heard" })
	}
	w.Next = w
	tags, tail := reflect.ValueOf(w.Tags).Pointer(), cap(w.Tail)
	require.NoError(t, h.Release())

	again := taken(t, p, 1)[0].Ptr()
	require.Same(t, w, again)
	require.EqualValues(t, 1, again.resets.Load())
	again.resets.Store(0)
	never, err := newWidget()
	require.NoError(t, err)
	never.Heard = []func(){} // what has no elements is as good as nil
	require.Equal(t, never, again)
	for _, f := range again.Heard[:cap(again.Heard)] {
		require.Nil(t, f, "a listener is kept alive")
	}
	require.Equal(t, tags, reflect.ValueOf(again.Tags).Pointer())
	require.Equal(t, tail, cap(again.Tail))
	require.Equal(t, 1, p.Stats().Built)
}

func trimBelowUse(t *testing.T) {
	p := newWidgets(t, pool.Config[widget]{Capacity: 50})
	hs := taken(t, p, 50)
	for i, h := range hs {
		h.Ptr().Name = fmt.Sprint(i)
	}
	for _, target := range []int{41, 0, -1} {
		require.Equal(t, 50, p.Trim(target))
	}
	ws := make([]*widget, len(hs))
	for i, h := range hs {
		ws[i] = h.Ptr()
		require.Equal(t, fmt.Sprint(i), ws[i].Name)
		require.Zero(t, ws[i].resets.Load())
		require.NoError(t, h.Release())
	}
	require.Equal(t, 5, p.Trim(5))
	s := p.Stats()
	require.Equal(t, [3]int{5, 0, 5}, [3]int{s.Cap, s.InUse, s.Free})
	for _, w := range ws {
		require.EqualValues(t, 1, w.resets.Load())
	}
	for _, h := range hs {
		require.ErrorIs(t, h.Release(), pool.ErrReleased)
	}
	taken(t, p, 5)
	require.Equal(t, 50, p.Stats().Built, "what was kept is used first")
	again := taken(t, p, 1)[0] // a place that was closed opens again
	for _, h := range hs {
		require.ErrorIs(t, h.Release(), pool.ErrReleased)
	}
	require.NoError(t, again.Release())
}

func trimWhileOthersTake(t *testing.T) {
	var released, resets atomic.Int64
	p := newWidgets(t, pool.Config[widget]{
		Capacity: 50,
		Reset:    func(w *widget) { resets.Add(1); w.Reset() },
	})
	var takers sync.WaitGroup
	for g := range 8 {
		takers.Go(func() { released.Add(int64(churn(t, p, rand.New(rand.NewPCG(1, uint64(g))), 2000))) })
	}
	stop, trimmed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(trimmed)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			target := n % 60
			if got := p.Trim(target); got < 0 {
				t.Errorf("a capacity of %d", got)
			}
			runtime.Gosched()
		}
	}()
	takers.Wait()
	close(stop)
	<-trimmed
	require.Equal(t, released.Load(), resets.Load())
	require.Zero(t, p.Stats().InUse)
	require.Zero(t, p.Trim(0))
}

// churn takes and releases in random order, up to four at once, and sees that what it has is nobody
// else's. It returns how many it released.
func churn(t *testing.T, p *pool.Pool[widget], rng *rand.Rand, steps int) (released int) {
	var mine []pool.Handle[widget]
	release := func() {
		i := rng.IntN(len(mine))
		h := mine[i]
		mine[i] = mine[len(mine)-1]
		mine = mine[:len(mine)-1]
		w, err := h.Value()
		if err != nil || w.owners.Add(-1) != 0 || w.Name != "mine" {
			t.Errorf("an instance in use: %v, named %q", err, w.Name)
		}
		if err := h.Release(); err != nil {
			t.Error(err)
		}
		released++
	}
	for range steps {
		if len(mine) == 4 || len(mine) > 0 && rng.IntN(2) == 0 {
			release()
			continue
		}
		h, err := p.Take()
		if errors.Is(err, pool.ErrExhausted) {
			runtime.Gosched()
			continue
		}
		w := h.Ptr()
		if w.owners.Add(1) != 1 || w.Name != "" {
			t.Errorf("an instance as new has another owner, or is named %q", w.Name)
		}
		w.Name = "mine"
		mine = append(mine, h)
	}
	for len(mine) > 0 {
		release()
	}
	return released
}

func lostGuards(t *testing.T) {
	const n = 20
	p := newWidgets(t, pool.Config[widget]{Capacity: n, Grow: pool.Fixed(), OnLeak: func(pool.Leak) {}})
	lose := func() {
		hs := taken(t, p, n)
		hs[3].Ptr().Next = hs[4].Ptr() // among themselves they may know each other
		hs[4].Ptr().Next = hs[3].Ptr()
		clear(hs)
	}
	lose()
	eventually(t, "all leaked", func() bool { return p.Stats().Leaked == n })
	s := p.Stats()
	require.Equal(t, [4]int{n, 0, n, n}, [4]int{s.Cap, s.InUse, s.Free, s.Built})

	hs := taken(t, p, n) // with places filled by New
	require.Equal(t, 2*n, p.Stats().Built)
	_, err := p.Take()
	require.ErrorIs(t, err, pool.ErrExhausted)

	// A copy, a pointer to the instance and a pointer into it are all as good as the guard.
	dups, pointers, inner := make([]pool.Handle[widget], 0, n), []*widget{}, []*[4]byte{}
	for i, h := range hs {
		switch i % 3 {
		case 0:
			dups = append(dups, h)
		case 1:
			pointers = append(pointers, h.Ptr())
		default:
			inner = append(inner, &h.Ptr().Bytes)
		}
	}
	clear(hs)
	for range 5 {
		runtime.GC()
		runtime.Gosched()
	}
	s = p.Stats()
	require.Equal(t, [2]int{n, n}, [2]int{s.Leaked, s.InUse})
	runtime.KeepAlive(pointers)
	runtime.KeepAlive(inner)
	for _, h := range dups {
		require.NoError(t, h.Release())
	}
	clear(dups)
	eventually(t, "the rest leaked", func() bool { return p.Stats().InUse == 0 })
	require.Equal(t, n+len(pointers)+len(inner), p.Stats().Leaked)
	for _, h := range taken(t, p, n) {
		require.NoError(t, h.Release())
	}
}

func everyGrowth(t *testing.T) {
	for _, grow := range []pool.Grow{pool.Fixed(), pool.Additive(1), pool.Additive(16), pool.Double()} {
		for _, capacity := range []int{0, 1, 3} {
			for _, most := range []int{0, 1, 5, 1000} {
				for _, burst := range []int{1, 2, 7, 1001} {
					t.Run(fmt.Sprintf("%v/capacity=%d/max=%d/burst=%d", grow, capacity, most, burst), func(t *testing.T) {
						oneGrowth(t, pool.Config[widget]{Capacity: capacity, Max: most, Grow: grow}, burst)
					})
				}
			}
		}
	}
	for _, nonsense := range []pool.Config[widget]{
		{Grow: pool.Additive(0)},
		{Grow: pool.Additive(-1)},
		{Capacity: 6, Max: 5},
		{Capacity: -1},
		{Max: -1},
		{Capacity: pool.MaxObjects + 1},
		{Capacity: pool.MaxObjects + 1, Max: pool.MaxObjects + 2},
	} {
		_, err := pool.New(nonsense)
		require.Error(t, err, "%+v", nonsense)
	}
}

func oneGrowth(t *testing.T, c pool.Config[widget], burst int) {
	if c.Max > 0 && c.Capacity > c.Max {
		_, err := pool.New(c)
		require.Error(t, err)
		return
	}
	p := newWidgets(t, c)
	limit := burst
	if c.Grow == pool.Fixed() {
		limit = min(limit, c.Capacity)
	} else if c.Max > 0 {
		limit = min(limit, c.Max)
	}
	hs := taken(t, p, limit)
	distinct := map[*widget]bool{}
	for _, h := range hs {
		distinct[h.Ptr()] = true
	}
	require.Len(t, distinct, limit)
	for range burst - limit {
		_, err := p.Take()
		require.ErrorIs(t, err, pool.ErrExhausted)
	}
	s := p.Stats()
	require.Equal(t, [3]int{limit, limit, burst - limit}, [3]int{s.InUse, s.Peak, s.Refused})
	require.Equal(t, s.Cap, s.InUse+s.Free)
	require.GreaterOrEqual(t, s.Cap, c.Capacity)
	if c.Max > 0 {
		require.LessOrEqual(t, s.Cap, c.Max)
	}
	require.Equal(t, s.Grown > 0, s.Cap > c.Capacity)
	for _, h := range hs {
		require.NoError(t, h.Release())
	}
	require.Equal(t, s.Cap, p.Stats().Free, "a pool does not shrink by itself")
}

// countersUnderFire churns while others sample: no sample may be anything a pool can't be in.
func countersUnderFire(t *testing.T, goroutines int, c pool.Config[widget]) {
	p := newWidgets(t, c)
	var takers sync.WaitGroup
	for g := range goroutines {
		takers.Go(func() { churn(t, p, rand.New(rand.NewPCG(7, uint64(g))), 5_000/goroutines) })
	}
	over, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		var was pool.Stats
		for {
			s := p.Stats()
			switch {
			case s.InUse < 0 || s.InUse > s.Peak,
				s.InUse+s.Free != s.Cap,
				c.Max > 0 && s.Cap > c.Max,
				s.Peak < was.Peak || s.Refused < was.Refused || s.Cap < was.Cap || s.Built < was.Built:
				t.Errorf("%+v, after %+v", s, was)
				return
			}
			was = s
			select {
			case <-over:
				return
			default:
				runtime.Gosched()
			}
		}
	}()
	takers.Wait()
	close(over)
	<-sampled
	s := p.Stats()
	require.Zero(t, s.InUse)
	require.Zero(t, s.Leaked)
	require.LessOrEqual(t, s.Built, s.Cap)
	if c.Grow == pool.Fixed() {
		require.Equal(t, c.Capacity, s.Cap)
	}
}

func stableAndReused(t *testing.T) {
	p := newWidgets(t, pool.Config[widget]{Capacity: 10})
	hs := taken(t, p, 10)
	ws := make([]*widget, len(hs))
	for i, h := range hs {
		ws[i] = h.Ptr()
		ws[i].X = float64(i)
	}
	more := taken(t, p, 90)
	for i, h := range hs {
		ws[i].Y = float64(2 * i)
		require.Same(t, ws[i], h.Ptr())
		require.Equal(t, [2]float64{float64(i), float64(2 * i)}, [2]float64{h.Ptr().X, h.Ptr().Y})
	}
	for _, h := range more {
		require.Zero(t, h.Ptr().Y)
	}

	built := 0
	p = newWidgets(t, pool.Config[widget]{Capacity: 1, Lazy: true, New: func() (*widget, error) { built++; return newWidget() }})
	require.Zero(t, built)
	for i := range 1000 {
		if i%50 == 0 {
			runtime.GC()
		}
		h, err := p.Take()
		require.NoError(t, err)
		require.NoError(t, h.Release())
	}
	require.Equal(t, 1, built)
	require.Equal(t, 1, p.Stats().Cap)
}
