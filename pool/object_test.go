package pool_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/pool"
)

var errBroken = errors.New("broken")

// ending is how a callback came to its end.
type ending string

const (
	returned ending = "returned"
	panicked ending = "panicked"
	exited   ending = "exited"
)

// endingOf runs fn on a goroutine of its own, which it may end.
func endingOf(fn func()) ending {
	how := make(chan ending, 1)
	go func() {
		end := exited
		defer func() {
			if recover() != nil {
				end = panicked
			}
			how <- end
		}()
		fn()
		end = returned
	}()
	return <-how
}

// fail ends a callback in each of the ways there are.
func fail(how ending) error {
	switch how {
	case panicked:
		panic("on purpose")
	case exited:
		runtime.Goexit()
	}
	return errBroken
}

func TestNewRefusesWhatCannotBeMeant(t *testing.T) {
	_, err := pool.New(pool.Config[int]{})
	require.ErrorContains(t, err, "pool int: no reset")
	_, err = pool.New(pool.Config[int]{Name: "numbers", Capacity: 3, Max: 2, Reset: func(*int) {}})
	require.ErrorContains(t, err, "pool numbers: capacity 3 is above the maximum of 2")
	_, err = pool.New(pool.Config[int]{Capacity: 1, Reset: func(*int) {}, New: func() (*int, error) { return nil, errBroken }})
	require.ErrorIs(t, err, errBroken)
	_, err = pool.New(pool.Config[int]{Capacity: 1, Reset: func(*int) {}, New: func() (*int, error) { return nil, nil }})
	require.ErrorContains(t, err, "neither an instance nor an error")
	p, err := pool.New(pool.Config[widget]{}) // Reset is a method
	require.NoError(t, err)
	require.Equal(t, pool.Stats{Warm: true}, p.Stats())
}

func TestCapacityAndWarmthAreTwoThings(t *testing.T) {
	p := newWidgets(t, pool.Config[widget]{Capacity: 5, Max: 9, Grow: pool.Additive(2)})
	require.Equal(t, pool.Stats{Cap: 5, Free: 5, Built: 5, Max: 9, Grow: pool.Additive(2), Warm: true}, p.Stats())
	p = newWidgets(t, pool.Config[widget]{Capacity: 5, Lazy: true})
	require.Equal(t, pool.Stats{Cap: 5, Free: 5}, p.Stats())
	taken(t, p, 2)
	require.Equal(t, pool.Stats{Cap: 5, InUse: 2, Free: 3, Peak: 2, Built: 2}, p.Stats())
	p = newWidgets(t, pool.Config[widget]{Capacity: pool.MaxObjects, Lazy: true}) // nothing is there before it is wanted
	taken(t, p, 1)
}

func TestAFailingNewLosesNoCapacity(t *testing.T) {
	for _, how := range []ending{returned, panicked, exited} {
		broken := true
		p := newWidgets(t, pool.Config[widget]{Capacity: 1, Lazy: true, Grow: pool.Fixed(), New: func() (*widget, error) {
			if broken {
				return nil, fail(how)
			}
			return newWidget()
		}})
		for range 3 {
			assert.Equal(t, how, endingOf(func() {
				_, err := p.Take()
				assert.ErrorIs(t, err, errBroken)
			}))
			assert.Equal(t, pool.Stats{Cap: 1, Free: 1, Peak: 1, Grow: pool.Fixed()}, p.Stats())
		}
		broken = false
		assert.NoError(t, taken(t, p, 1)[0].Release())
	}
}

func TestAFailingResetLosesNoCapacity(t *testing.T) {
	for _, how := range []ending{panicked, exited} {
		broken := true
		p := newWidgets(t, pool.Config[widget]{Capacity: 1, Grow: pool.Fixed(), Reset: func(w *widget) {
			if broken {
				_ = fail(how)
			}
			w.Reset()
		}})
		h := taken(t, p, 1)[0]
		spoilt := h.Ptr()
		assert.Equal(t, how, endingOf(func() { _ = h.Release() }))
		assert.ErrorIs(t, h.Release(), pool.ErrReleased)
		assert.Equal(t, pool.Stats{Cap: 1, Free: 1, Peak: 1, Built: 1, Grow: pool.Fixed(), Warm: true}, p.Stats())
		broken = false
		h = taken(t, p, 1)[0]
		assert.NotSame(t, spoilt, h.Ptr(), "what half a reset has left is not lent again")
		assert.NoError(t, h.Release())
		// Nobody waits for the spoilt one to die.
		spoilt = nil
		for range 3 {
			runtime.GC()
		}
		assert.Zero(t, p.Stats().Leaked)
	}
}

// TestWhoIsRefusedFindsThePeakAtTheCapacity has one taker preempted between his place and the counter of the peak, while
// another is refused because of him, and a third gives back.
func TestWhoIsRefusedFindsThePeakAtTheCapacity(t *testing.T) {
	p, err := pool.New(pool.Config[widget]{Capacity: 2, Grow: pool.Fixed(), Reset: func(*widget) {}})
	require.NoError(t, err)
	h, err := p.Take()
	require.NoError(t, err)
	goOn := p.TakeHalfway()
	_, err = p.Take()
	require.ErrorIs(t, err, pool.ErrExhausted)
	require.NoError(t, h.Release())
	s := p.Stats()
	require.Equal(t, 1, s.Refused)
	require.Equal(t, 1, s.InUse)
	require.Equal(t, 2, s.Peak, "or else nobody would have been refused")
	require.NoError(t, goOn().Release())
	require.NoError(t, p.Verify())
}

func TestAResetMayUseItsPool(t *testing.T) {
	var p *pool.Pool[widget]
	var h pool.Handle[widget]
	depth := 0
	p = newWidgets(t, pool.Config[widget]{Reset: func(w *widget) {
		w.Reset()
		if depth++; depth == 1 {
			assert.ErrorIs(t, h.Release(), pool.ErrReleased)
			other := taken(t, p, 1)[0]
			assert.NotSame(t, w, other.Ptr())
			assert.NoError(t, other.Release())
			assert.Equal(t, 1, p.Stats().InUse, "what is being reset is still in use")
		}
	}})
	h = taken(t, p, 1)[0]
	require.NoError(t, h.Release())
}

func TestWithAlwaysReleases(t *testing.T) {
	p := newWidgets(t, pool.Config[widget]{Capacity: 1, Grow: pool.Fixed()})
	for _, how := range []ending{returned, panicked, exited} {
		assert.Equal(t, how, endingOf(func() {
			assert.ErrorIs(t, p.With(func(w *widget) error {
				w.Name = "mine"
				assert.Equal(t, 1, p.Stats().InUse)
				assert.ErrorIs(t, p.With(func(*widget) error { return nil }), pool.ErrExhausted)
				return fail(how)
			}), errBroken)
		}))
		assert.Zero(t, p.Stats().InUse)
	}
	assert.NoError(t, p.With(func(w *widget) error {
		assert.Empty(t, w.Name)
		assert.EqualValues(t, 3, w.resets.Load())
		return nil
	}))
}

// fire and drop are what an ecsdebug build names.
//
//go:noinline
func fire(p *pool.Pool[widget]) (pool.Handle[widget], error) { return p.Take() }

//go:noinline
func drop(h pool.Handle[widget]) error { return h.Release() }

func TestErrorsNameWhereItWasReleasedInADebugBuild(t *testing.T) {
	p := newWidgets(t, pool.Config[widget]{Name: "arrows", Capacity: 1})
	h, err := fire(p)
	require.NoError(t, err)
	require.NoError(t, drop(h))
	for range 3 { // of this guard's release, and not of later ones at the same place
		require.NoError(t, p.With(func(*widget) error { return nil }))
	}
	_, useAfter := h.Value()
	for _, err := range []error{h.Release(), useAfter} {
		require.ErrorIs(t, err, pool.ErrReleased)
		var detail *pool.ReleasedError
		if !check.Enabled {
			require.NotContains(t, err.Error(), "object_test.go")
			continue
		}
		require.ErrorAs(t, err, &detail)
		require.Equal(t, "arrows", detail.Pool)
		require.True(t, strings.HasPrefix(detail.Released, "pool_test.drop (object_test.go:"), detail.Released)
		require.Contains(t, err.Error(), detail.Released)
	}
}

func TestOnLeakNamesWhereItWasTakenInADebugBuild(t *testing.T) {
	leaks := make(chan pool.Leak, 8)
	p := newWidgets(t, pool.Config[widget]{Name: "arrows", OnLeak: func(l pool.Leak) {
		leaks <- l
		panic("on purpose") // ends here
	}})
	lose := func() {
		_, err := fire(p)
		require.NoError(t, err)
	}
	lose()
	eventually(t, "leaked", func() bool { return p.Stats().Leaked == 1 })
	l := <-leaks
	require.Equal(t, "arrows", l.Pool)
	require.Contains(t, l.String(), "pool arrows: an instance was lost")
	if check.Enabled {
		require.True(t, strings.HasPrefix(l.Taken, "pool_test.fire (object_test.go:"), l.Taken)
		require.Contains(t, l.String(), l.Taken)
	} else {
		require.Empty(t, l.Taken)
	}
}

func TestSmallThingsAreFoundWhenLostOneByOne(t *testing.T) {
	tiny, err := pool.New(pool.Config[byte]{Capacity: 16, Grow: pool.Fixed(), Reset: func(*byte) {}, OnLeak: func(pool.Leak) {}})
	require.NoError(t, err)
	kept, err := tiny.Take()
	require.NoError(t, err)
	loseAll := func() {
		for {
			h, err := tiny.Take()
			if err != nil {
				return
			}
			*h.Ptr() = 1
		}
	}
	loseAll()
	eventually(t, "all but one leaked", func() bool { return tiny.Stats().Leaked == 15 })
	require.NoError(t, kept.Release())
	require.NoError(t, tiny.Verify())
}

func TestTakersThatTakeManyNeverShareOne(t *testing.T) {
	for _, goroutines := range []int{2, runtime.GOMAXPROCS(0), 100} {
		p := newWidgets(t, pool.Config[widget]{Capacity: 4 * goroutines, Grow: pool.Fixed(), Reset: func(*widget) {}})
		var takers sync.WaitGroup
		for g := range goroutines {
			takers.Go(func() {
				var hs [4]pool.Handle[widget]
				for range 20_000 / goroutines {
					for i := range hs[:1+g%4] {
						h, err := p.Take()
						if err != nil || h.Ptr().owners.Add(1) != 1 {
							t.Errorf("two owners, or %v", err)
							return
						}
						hs[i] = h
					}
					for _, h := range hs[:1+g%4] {
						h.Ptr().owners.Add(-1)
						if err := h.Release(); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		takers.Wait()
		require.Equal(t, p.Stats().Cap, p.Stats().Free)
	}
}

func TestAPoolGoesWithItsInstances(t *testing.T) {
	make := func() weak.Pointer[pool.Pool[widget]] {
		p, err := pool.New(pool.Config[widget]{Capacity: 8})
		require.NoError(t, err)
		h := taken(t, p, 3)[0]
		h.Ptr().Next = h.Ptr()
		return weak.Make(p)
	}
	p := make()
	eventually(t, "collected", func() bool { return p.Value() == nil })
}

func TestNewMayReturnAnyPointer(t *testing.T) {
	var block [4]spark // an array's elements live and die together
	next := 0
	p, err := pool.New(pool.Config[spark]{Capacity: 4, New: func() (*spark, error) {
		next++
		return &block[next-1], nil
	}})
	require.NoError(t, err)
	h, err := p.Take()
	require.NoError(t, err)
	require.NoError(t, h.Release())
	require.NoError(t, p.Verify())
}

func TestAWarmPoolAllocatesNothing(t *testing.T) {
	if check.Enabled {
		t.Skip("a debug build notes who takes and releases")
	}
	p := newWidgets(t, pool.Config[widget]{Capacity: 3, Grow: pool.Fixed()})
	touch := func(w *widget) error { w.X++; return nil }
	for name, f := range map[string]func(){
		"Take, Value, Release": func() {
			h, _ := p.Take()
			v, _ := h.Value()
			v.X = h.Ptr().Y
			_ = h.Release()
		},
		"GiveBack": func() {
			h, _ := p.Take()
			_ = p.GiveBack(h)
		},
		"With":  func() { _ = p.With(touch) },
		"Stats": func() { _ = p.Stats() },
		"Trim":  func() { p.Trim(3) },
		"a refusal": func() {
			var hs [4]pool.Handle[widget]
			for i := range hs {
				hs[i], _ = p.Take()
			}
			for _, h := range hs[:3] {
				_, _ = h.Value()
				_ = h.Release()
				_, _ = h.Value()
			}
		},
	} {
		assert.Zero(t, testing.AllocsPerRun(100, f), name)
	}
}

// TestLogLinesHaveStableKeys is the table of docs/OBSERVING.md, as far as it is of this package.
func TestLogLinesHaveStableKeys(t *testing.T) {
	for _, c := range []struct {
		name   string
		leaked func(pool.Leak)
		want   string // nothing is logged if it is empty
	}{
		{"an OnLeak that panics", func(pool.Leak) { panic("on purpose") }, "airlock: OnLeak panicked: pool panic stack"},
		{"a debug build", nil, map[bool]string{true: "airlock: an instance was lost: pool taken"}[check.Enabled]},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := make(lineKeys, 8)
			was := slog.Default()
			slog.SetDefault(slog.New(lines))
			defer slog.SetDefault(was)
			p := newWidgets(t, pool.Config[widget]{Name: "arrows", OnLeak: c.leaked})
			_, err := fire(p)
			require.NoError(t, err)
			eventually(t, "leaked", func() bool { return p.Stats().Leaked == 1 })
			if c.want == "" {
				require.Empty(t, lines)
				return
			}
			require.Equal(t, c.want, <-lines)
		})
	}
}

// TestALogHandlerThatPanicsEndsAlone has it panic where OnLeak has, and, in a debug build, where there is none.
func TestALogHandlerThatPanicsEndsAlone(t *testing.T) {
	for _, leaked := range []func(pool.Leak){func(pool.Leak) { panic("on purpose") }, nil} {
		lines := make(lineKeys, 8)
		was := slog.Default()
		slog.SetDefault(slog.New(panicking{lines}))
		defer slog.SetDefault(was)
		p := newWidgets(t, pool.Config[widget]{OnLeak: leaked})
		before := runtime.NumGoroutine()
		_, err := fire(p)
		require.NoError(t, err)
		eventually(t, "leaked", func() bool { return p.Stats().Leaked == 1 })
		if leaked != nil || check.Enabled {
			<-lines
		}
		eventually(t, "told", func() bool { return runtime.NumGoroutine() <= before })
		require.Empty(t, lines, "it is not told of itself")
	}
}

// panicking is a log handler that panics when it has told.
type panicking struct{ lineKeys }

func (p panicking) Handle(ctx context.Context, r slog.Record) error {
	_ = p.lineKeys.Handle(ctx, r)
	panic("in the handler")
}

// lineKeys is a log handler that tells the message and the keys of each line.
type lineKeys chan string

func (l lineKeys) Enabled(context.Context, slog.Level) bool { return true }
func (l lineKeys) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l lineKeys) WithGroup(string) slog.Handler            { return l }

func (l lineKeys) Handle(_ context.Context, r slog.Record) error {
	line := r.Message + ":"
	r.Attrs(func(a slog.Attr) bool { line += " " + a.Key; return true })
	l <- line
	return nil
}
