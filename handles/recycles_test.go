package handles_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

// line is what the recycles should be: plain slices.
type line struct {
	free    []uint64
	pending []struct{ name, frame uint64 }
	taken   map[uint64]bool // by a scan; the owner may still meet them
	next    uint64
	deaths  uint64
	frame   uint64
}

func (m *line) confirm(n int) {
	for _, p := range m.pending[:n] {
		m.free = append(m.free, p.name)
	}
	m.pending = m.pending[n:]
}

// take removes the oldest free name.
func (m *line) take(t *rapid.T, name uint64, ok bool) {
	if ok != (len(m.free) > 0) || ok && name != m.free[0] {
		t.Fatalf("took %d, %t; %d free, the first is %v", name, ok, len(m.free), m.free[:min(len(m.free), 1)])
	}
	if ok {
		m.free = m.free[1:]
	}
}

func TestRecyclesAreAFIFOInTwoStretches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, m := &handles.Recycles{}, &line{taken: map[uint64]bool{}, frame: 1}
		many := rapid.SampledFrom([]int{1, 2, 500, 1023, 1024, 1025, 3000})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for range many.Draw(t, "n") {
					m.next++
					m.deaths++
					r.Add(m.next, m.frame)
					m.pending = append(m.pending, struct{ name, frame uint64 }{m.next, m.frame})
				}
			},
			"frame": func(*rapid.T) { m.frame++ },
			"next": func(t *rapid.T) {
				for range many.Draw(t, "n") {
					name, ok := r.Next()
					for ok && m.taken[name] {
						delete(m.taken, name)
						name, ok = r.Next()
					}
					m.take(t, name, ok)
				}
			},
			"scan": func(t *rapid.T) {
				for range many.Draw(t, "n") {
					name, ok := r.Scan(func(name uint64) bool { return len(m.free) > 0 && name == m.free[0] })
					m.take(t, name, ok)
					if !ok {
						break
					}
					m.taken[name] = true
				}
			},
			"confirm through": func(t *rapid.T) {
				frame := m.frame - min(m.frame, uint64(rapid.IntRange(0, 3).Draw(t, "back")))
				n := 0
				for n < len(m.pending) && m.pending[n].frame <= frame {
					n++
				}
				require.Equal(t, n, r.ConfirmThrough(frame))
				m.confirm(n)
			},
			"confirm while": func(t *rapid.T) {
				want := min(many.Draw(t, "n"), len(m.pending))
				n := 0
				require.Equal(t, want, r.ConfirmWhile(func(seq, frame uint64) bool {
					if n == want {
						return false
					}
					if frame != m.pending[n].frame || seq != m.deaths-uint64(len(m.pending)-n) {
						t.Fatalf("death %d of frame %d, not of %d", seq, frame, m.pending[n].frame)
					}
					n++
					return true
				}))
				m.confirm(want)
			},
			"publish": func(*rapid.T) { r.Publish() },
			"": func(t *rapid.T) {
				require.NoError(t, r.Verify())
				require.Equal(t, len(m.pending), r.Pending())
				if len(m.pending) > 0 {
					require.Equal(t, m.pending[0].frame, r.OldestFrame())
				}
			},
		})
	})
}

func TestRecyclesReuseTheirSegments(t *testing.T) {
	r := &handles.Recycles{}
	cycle := func() {
		for i := range uint64(5000) {
			r.Add(i, i/100)
		}
		r.ConfirmThrough(1 << 62)
		for range 5000 {
			r.Next()
		}
	}
	for range 10 {
		cycle()
	}
	assert.Zero(t, testing.AllocsPerRun(100, cycle))
	assert.LessOrEqual(t, r.Segments(), 14)
}

func TestRecyclesStaySmallWhenOnlyOthersClaim(t *testing.T) {
	r := &handles.Recycles{}
	for i := range uint64(100_000) {
		r.Add(i, 1)
		r.ConfirmThrough(1)
		_, ok := r.Scan(func(name uint64) bool { return name == i })
		require.True(t, ok)
	}
	assert.LessOrEqual(t, r.Segments(), 6)
}

// A reader that is held up inside must not see a segment that is written anew; the race
// detector watches the entries.
func TestRecyclesDoNotWriteOverAReader(t *testing.T) {
	var (
		r       handles.Recycles
		taken   [1 << 16]atomic.Bool
		stop    atomic.Bool
		readers sync.WaitGroup
		scans   atomic.Int64
	)
	claim := func(name uint64) bool {
		if name%7 == 0 {
			runtime.Gosched()
		}
		return taken[name].CompareAndSwap(false, true)
	}
	for range 6 {
		readers.Go(func() {
			for !stop.Load() {
				if _, ok := r.Scan(claim); ok {
					scans.Add(1)
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	own := 0
	for i := range uint64(len(taken)) {
		r.Add(i, i>>6)
		if i%64 == 0 {
			r.ConfirmThrough(i >> 6)
			for range 24 {
				if name, ok := r.Next(); ok && taken[name].CompareAndSwap(false, true) {
					own++
				}
			}
		}
		if i%512 == 0 {
			r.Publish()
			runtime.Gosched()
		}
	}
	r.ConfirmThrough(1 << 62)
	for {
		name, ok := r.Next()
		if !ok {
			break
		}
		if taken[name].CompareAndSwap(false, true) {
			own++
		}
	}
	stop.Store(true)
	readers.Wait()
	require.NoError(t, r.Verify())
	assert.EqualValues(t, len(taken), int64(own)+scans.Load(), "every name went to exactly one")
}

func TestUndoneIsAStack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, m, next := &handles.Undone{}, []uint64{}, uint64(0)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "n") {
					next++
					u.Push(next)
					m = append(m, next)
				}
			},
			"pop": func(t *rapid.T) {
				name, ok := u.Pop()
				require.Equal(t, len(m) > 0, ok)
				if ok {
					require.Equal(t, m[len(m)-1], name)
					m = m[:len(m)-1]
				}
			},
		})
	})
}

func TestUndoneGivesEachNameToOnePopper(t *testing.T) {
	const names = 1 << 14
	var (
		u       handles.Undone
		taken   [names + 1]atomic.Int32
		left    atomic.Int64
		poppers sync.WaitGroup
	)
	left.Store(names)
	for range 6 {
		poppers.Go(func() {
			for left.Load() > 0 {
				if name, ok := u.Pop(); ok {
					taken[name].Add(1)
					left.Add(-1)
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	for i := uint64(1); i <= names; i++ {
		u.Push(i)
		if i%3 == 0 {
			if name, ok := u.Pop(); ok {
				taken[name].Add(1)
				left.Add(-1)
			}
		}
	}
	poppers.Wait()
	for i := 1; i <= names; i++ {
		require.EqualValues(t, 1, taken[i].Load(), "name %d", i)
	}
}

// The top comes back to the same length all the time: a pop that slept must notice.
func TestUndoneNoticesThatItsTopCameBack(t *testing.T) {
	const names = 1 << 17
	var (
		u       handles.Undone
		taken   [names + 1]atomic.Int32
		stop    atomic.Bool
		poppers sync.WaitGroup
	)
	for range 3 {
		poppers.Go(func() {
			for !stop.Load() {
				if name, ok := u.Pop(); ok {
					taken[name].Add(1)
				}
			}
		})
	}
	for i := uint64(1); i <= names; i += 2 {
		u.Push(i)
		if name, ok := u.Pop(); ok {
			taken[name].Add(1)
		}
		u.Push(i + 1)
	}
	stop.Store(true)
	poppers.Wait()
	// What a sleeping pop compares: equal lengths, and yet another top.
	empty := u.Top()
	u.Push(0)
	_, _ = u.Pop()
	assert.NotEqual(t, empty, u.Top())
	for name, ok := u.Pop(); ok; name, ok = u.Pop() {
		taken[name].Add(1)
	}
	for i := 1; i <= names; i++ {
		require.EqualValues(t, 1, taken[i].Load(), "name %d", i)
	}
}
