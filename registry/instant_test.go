package registry_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// What others see, or do, between two steps of the owner.

// beside has fn called again and again by another goroutine, until the returned function is.
func beside(fn func()) (end func()) {
	var done atomic.Bool
	var other sync.WaitGroup
	other.Go(func() {
		for !done.Load() {
			fn()
		}
	})
	return func() {
		done.Store(true)
		other.Wait()
	}
}

func rounds(usual int) int {
	if testing.Short() {
		return usual / 10
	}
	return usual
}

// Names of slots go back to the others when a callback fails: who reserves one at once has room of his own, and gives it back.
func TestAReservationThatWasASlotsNameHasItsOwnRoom(t *testing.T) {
	for name, temporal := range map[string]int{"a pool taken back": 0, "a tenant taken back": 8} {
		t.Run(name, func(t *testing.T) {
			k := newWorld(t, registry.Config{MaxEntities: 1024, TemporalFrames: temporal})
			var b *registry.Block
			if temporal > 0 {
				k.update(func(w *registry.Window) { b = k.pool(w, 64) })
			}
			end := beside(func() {
				if h, err := k.r.Reserve(); err == nil {
					_ = k.r.Destroy(h)
				}
			})
			for range rounds(500) {
				k.fails(func(w *registry.Window) {
					if temporal == 0 {
						_, _ = registry.NewBlock(w, k.soldiers, "", 64, &soldier{}) // no indices in a row, perhaps
						return
					}
					for range 64 {
						_, err := registry.SpawnIn(w, k.soldiers, b, &soldier{})
						require.NoError(t, err)
					}
				})
				k.recycle()
			}
			end()
			k.recycle()
			require.NoError(t, k.r.Verify(), "room of a reservation is lost")
		})
	}
}

func (k *world) pool(w *registry.Window, n int) *registry.Block {
	k.t.Helper()
	b, err := registry.NewBlock(w, k.soldiers, "", n, &soldier{})
	require.NoError(k.t, err)
	return b
}

// A handle that is reserved until it is alive is never stale in between.
func TestAReservationIsNotStaleWhenItIsBorn(t *testing.T) {
	k := newWorld(t, registry.Config{})
	hs := make([]handles.Local, rounds(20_000))
	for i := range hs {
		var err error
		hs[i], err = k.r.Reserve()
		require.NoError(t, err)
	}
	var at, stale atomic.Int64
	end := beside(func() {
		h := hs[at.Load()]
		if _, err := k.r.Resolve(h); errors.Is(err, registry.ErrStale) {
			stale.Add(1)
		}
		if _, err := k.r.NetOf(h); errors.Is(err, registry.ErrStale) {
			stale.Add(1)
		}
	})
	k.update(func(w *registry.Window) {
		for i, h := range hs {
			at.Store(int64(i))
			require.NoError(t, k.soldiers.SpawnReserved(w, h, soldier{}))
		}
	})
	end()
	require.Zero(t, stale.Load(), "a living one, or one to be born, was said to be dead")
}

// A name of another owner is unknown until it is bound, and never stale in between.
func TestANameIsNotStaleWhenItIsBound(t *testing.T) {
	k := newWorld(t, registry.Config{})
	var at, stale atomic.Int64
	name := func(i int64) handles.Net { return handles.NewNet(7, uint32(i+1), 1) }
	end := beside(func() {
		n := name(at.Load())
		if _, err := k.r.ResolveNet(n); errors.Is(err, registry.ErrStale) {
			stale.Add(1)
		}
		if _, err := k.r.ResolveWire(n.Wire()); errors.Is(err, registry.ErrStale) {
			stale.Add(1)
		}
	})
	k.update(func(w *registry.Window) {
		hs, err := k.soldiers.SpawnBatch(w, rounds(20_000), nil)
		require.NoError(t, err)
		for i, h := range hs {
			at.Store(int64(i))
			require.NoError(t, w.BindNet(h, name(int64(i))))
		}
	})
	end()
	require.Zero(t, stale.Load(), "a name that nobody has lost was said to be dead")
}

// Whoever knows a handle of a state that is loaded may destroy it as soon as it lives. The room that this gives is nobody's
// before all are there.
func TestNobodyReservesWhileAStateIsLoaded(t *testing.T) {
	for _, c := range []registry.Config{{MaxEntities: 100_000}, {MaxEntities: 100_000, Deterministic: true}} {
		k := newWorld(t, c)
		var hs []handles.Local
		k.update(func(w *registry.Window) {
			var err error
			hs, err = k.soldiers.SpawnBatch(w, rounds(50_000), nil)
			require.NoError(t, err)
		})
		s := capture(t, k.r)
		for range 4 {
			l := newWorld(t, c)
			var got []handles.Local
			next := 0
			end := beside(func() {
				if next == len(hs) || l.r.Destroy(hs[next]) != nil {
					return
				}
				next++
				if h, err := l.r.Reserve(); err == nil {
					got = append(got, h)
				}
			})
			require.NoError(t, saved{clone(s.state), s.cells}.into(l.r))
			end()
			for _, h := range got {
				_, err := l.r.Resolve(h)
				require.ErrorIs(t, err, registry.ErrNotSpawned, "%v names somebody else, too", h)
			}
			require.NoError(t, l.r.Verify())
		}
	}
}

// Whom nobody knew any more is reserved once more before a window has looked at the list of reservations, where he is already.
func TestAnIndexIsReservedTwiceBeforeAWindowLooks(t *testing.T) {
	k := newWorld(t, registry.Config{Deterministic: true})
	e := k.engine()
	require.NoError(t, e.Enter(false))
	defer e.Leave()
	require.NoError(t, e.KeepRecords())
	var last handles.Local
	require.NoError(t, e.Update(func(w *registry.Window) error {
		other, err := k.r.Reserve()
		require.NoError(t, err)
		first, err := k.r.Reserve()
		require.NoError(t, err)
		require.NoError(t, w.Destroy(first))
		w.ProcessDeferredDestructions()
		w.ConfirmLocalRecycles()
		last, err = k.r.Reserve()
		require.NoError(t, err)
		require.Equal(t, first.Index(), last.Index())
		require.NotEqual(t, other.Index(), last.Index())
		return nil
	}))
	require.NoError(t, e.Update(func(w *registry.Window) error { return k.soldiers.SpawnReserved(w, last, soldier{}) }))
	require.True(t, k.r.Alive(last))
}

// late runs a frame of an engine whose deaths from outside wait for the window, for the first time or again.
func (e *engine) late(again bool, fn func(f *registry.Frame)) {
	e.t.Helper()
	if again {
		e.UpdatesAgain()
	}
	e.Advance()
	e.ProcessDestructions()
	e.OpenWindow()
	e.RunWishes()
	if again {
		e.OpsAgain()
	}
	e.CloseWindow()
	f := e.NewFrame()
	e.Deliver()
	e.Boundary()
	e.System("system", func() { fn(f) })
	e.Deliver()
	e.Boundary()
	e.EndFrame()
}

// outside destroys h on another goroutine.
func (k *world) outside(h handles.Local) (err error) {
	var other sync.WaitGroup
	other.Go(func() { err = k.r.Destroy(h) })
	other.Wait()
	return err
}

// A name of a slot that a callback gave to somebody, and that failed, is dead. In the past it is alive, and nobody destroys it
// there.
func TestABurntNameIsNotDestroyedInThePast(t *testing.T) {
	k := newWorld(t, registry.Config{TemporalFrames: 8})
	var b *registry.Block
	k.update(func(w *registry.Window) { b = k.pool(w, 1) })
	e := k.engine()
	require.NoError(t, e.Enter(false))
	defer e.Leave()
	var burnt handles.Local
	quiet := func(*registry.Frame) {}
	e.late(false, quiet)
	e.late(false, func(f *registry.Frame) {
		f.Defer(func(w *registry.Window) error {
			h, err := registry.SpawnIn(w, k.soldiers, b, &soldier{})
			require.NoError(t, err)
			if burnt == 0 {
				burnt = h
				require.NoError(t, k.outside(h))
			}
			return errPlanned
		})
	})
	e.late(false, quiet)
	require.Equal(t, burnt.Index(), b.Slot(0).Index())
	next := b.Slot(0)
	require.NotEqual(t, burnt, next)
	require.ErrorIs(t, k.outside(burnt), registry.ErrStale)

	require.NoError(t, e.GoBack(2))
	require.ErrorIs(t, k.outside(burnt), registry.ErrStale, "it was destroyed twice")
	e.late(true, quiet)
	e.UpdatesAgain()
	e.Revive()
	require.Equal(t, next, b.Slot(0))
	require.True(t, k.r.Alive(next))
	require.ErrorIs(t, k.outside(burnt), registry.ErrStale)
	require.NoError(t, k.outside(next))
}

// A name that a slot had in a callback that failed is given again when that callback runs again, and nobody destroys it a second
// time then.
func TestABurntNameIsNotDestroyedInTheCallbackThatRunsAgain(t *testing.T) {
	k := newWorld(t, registry.Config{TemporalFrames: 8})
	var b *registry.Block
	k.update(func(w *registry.Window) { b = k.pool(w, 1) })
	e := k.engine()
	require.NoError(t, e.Enter(false))
	defer e.Leave()
	quiet := func(*registry.Frame) {}
	var h, next handles.Local
	var answers []error
	e.late(false, quiet)
	e.late(false, func(f *registry.Frame) {
		var err error
		h, err = registry.SpawnIn(f, k.soldiers, b, &soldier{})
		require.NoError(t, err)
		f.Defer(func(w *registry.Window) error {
			require.NoError(t, b.Despawn(w, h))
			next = b.Slot(0)
			answers = append(answers, k.outside(next))
			return errPlanned
		})
	})
	e.late(false, quiet)
	require.NoError(t, e.GoBack(2))
	e.late(true, quiet)
	e.UpdatesAgain()
	e.Revive()
	require.Len(t, answers, 2)
	require.NoError(t, answers[0])
	require.ErrorIs(t, answers[1], registry.ErrStale, "it was destroyed twice")
	require.NoError(t, k.outside(h), "the one before it lives")
}

// Who is destroyed while the registry goes back, and is not born yet where it goes, is dead when it comes back.
func TestADestroyIsNotLostWhileTheRegistryGoesBack(t *testing.T) {
	const slots = 64
	k := newWorld(t, registry.Config{TemporalFrames: 8})
	var b *registry.Block
	k.update(func(w *registry.Window) { b = k.pool(w, slots) })
	e := k.engine()
	require.NoError(t, e.Enter(false))
	defer e.Leave()
	quiet := func(*registry.Frame) {}
	for range rounds(300) {
		e.late(false, quiet)
		first := e.FrameNumber()
		var away [slots]handles.Local
		spawn := func(f *registry.Frame) {
			for i := range away {
				h, err := registry.SpawnIn(f, k.soldiers, b, &soldier{})
				require.NoError(t, err)
				away[i] = h
			}
		}
		despawn := func(f *registry.Frame) {
			for _, h := range away {
				require.NoError(t, b.Despawn(f, h))
			}
		}
		e.late(false, spawn)
		e.late(false, despawn)
		var names [slots]handles.Local
		var wins [slots]int
		for i := range names {
			names[i] = b.Slot(i)
		}
		at, going := 0, false
		end := beside(func() {
			if going = going || b.Slot(slots-1) != names[slots-1]; !going {
				return // the last to come is the first that is taken back
			}
			if k.r.Destroy(names[at%slots]) == nil {
				wins[at%slots]++
			}
			at++
		})
		require.NoError(t, e.GoBack(first))
		e.late(true, spawn)
		e.late(true, despawn)
		e.UpdatesAgain()
		e.Revive()
		end()
		for i, h := range names {
			require.LessOrEqual(t, wins[i], 1, "%v was destroyed twice", h)
			require.Equal(t, wins[i] == 0, k.r.Alive(h), "somebody was told that %v is dead: %t", h, wins[i] > 0)
		}
	}
}

// Children of somebody whom others destroy die with him: what is reclaimed in the middle of a callback stays so, if it fails.
func TestChildrenReclaimedWithAParentOfOthersStayDead(t *testing.T) {
	k := newWorld(t, registry.Config{})
	var parent, child, last handles.Local
	k.update(func(w *registry.Window) {
		parent, child, last = k.spawn(w), k.spawn(w), k.spawn(w)
		require.NoError(t, registry.SetParent(w, child, parent))
	})
	k.fails(func(w *registry.Window) {
		require.NoError(t, k.outside(parent))
		require.Equal(t, 2, w.ProcessDeferredDestructions())
		require.NoError(t, w.Destroy(last))
	})
	k.dead(parent, 0)
	k.dead(child, 0)
	require.True(t, k.r.Alive(last))
	require.NoError(t, k.r.Verify())
}

// A frame that readers hold while a state is loaded is no frame of the loaded registry, not the one before the first either.
func TestAFrameFromBeforeALoadIsNotFound(t *testing.T) {
	s := newStage(t, 0)
	for range 3 {
		s.frame(nil, nil)
	}
	held := s.acquire()
	require.NoError(t, capture(t, s.r).into(s.r))
	require.NotZero(t, held.FrameNumber())
	for frame := range uint64(4) {
		_, err := s.r.AcquireAt(frame)
		require.Error(t, err, "frame %d", frame)
	}
	held.Release()
}

// A system that meets a reservation whom others have destroyed is told so again when its frame is simulated again, where the
// reservation waits still.
func TestADestroyIsAnsweredAgainAsItWas(t *testing.T) {
	k := newWorld(t, registry.Config{TemporalFrames: 8})
	e := k.engine()
	require.NoError(t, e.Enter(false))
	defer e.Leave()
	quiet := func(*registry.Frame) {}
	e.late(false, quiet)
	h, err := k.r.Reserve()
	require.NoError(t, err)
	var answers []error
	e.late(false, func(f *registry.Frame) {
		if len(answers) == 0 {
			require.NoError(t, k.outside(h))
		}
		answers = append(answers, f.Destroy(h))
	})
	e.late(false, quiet)
	require.NoError(t, e.GoBack(1))
	e.late(true, func(f *registry.Frame) { answers = append(answers, f.Destroy(h)) })
	e.late(true, quiet)
	e.UpdatesAgain()
	e.Revive()
	require.Len(t, answers, 2)
	require.ErrorIs(t, answers[0], registry.ErrStale)
	require.ErrorIs(t, answers[1], registry.ErrStale)
}

// A callback that fails brings reservations back that it has destroyed. Others who destroy them meanwhile are told that they are
// dead, or succeed.
func TestADestroyIsNotToldThatAReservationWaits(t *testing.T) {
	k := newWorld(t, registry.Config{})
	var odd int
	for range rounds(1_000) {
		var hs [256]handles.Local
		for i := range hs {
			var err error
			hs[i], err = k.r.Reserve()
			require.NoError(t, err)
		}
		var other sync.WaitGroup
		k.fails(func(w *registry.Window) {
			require.Equal(t, len(hs), w.DestroyBatch(hs[:]))
			begun := make(chan struct{})
			other.Go(func() {
				for i := len(hs) - 1; i >= 0; i-- { // as they come back
					err := k.r.Destroy(hs[i])
					if i == len(hs)-1 {
						close(begun)
					}
					for ; err != nil; err = k.r.Destroy(hs[i]) {
						if !errors.Is(err, registry.ErrStale) {
							odd++
						}
					}
				}
			})
			<-begun
		})
		other.Wait()
		k.recycle()
	}
	require.Zero(t, odd)
}

// A batch that fails puts a child back below a parent that others have destroyed meanwhile, and the callback goes on: the child
// dies with it.
func TestABatchThatFailsDoesNotSpareAChild(t *testing.T) {
	k := newWorld(t, registry.Config{})
	var parent, child handles.Local
	k.update(func(w *registry.Window) {
		parent, child = k.spawn(w), k.spawn(w)
		require.NoError(t, registry.SetParent(w, child, parent))
	})
	k.update(func(w *registry.Window) {
		defer func() { require.NotNil(t, recover()) }()
		_, _ = k.soldiers.SpawnBatch(w, 1, func(int, *soldier) {
			require.NoError(t, registry.ClearParent(w, child))
			require.NoError(t, k.outside(parent))
			registry.Iterate(w)
			registry.Finish(w)
			panic("planned")
		})
	})
	require.False(t, k.r.Alive(child), "a child outlives its parent")
	k.recycle()
	require.NoError(t, k.r.Verify())
}

// Whom a system finds dead before a window has seen it is noted for the journal, also if the one who destroys it is not through
// with that.
func TestAReservationThatJustDiedIsLost(t *testing.T) {
	for name, c := range map[string]registry.Config{"journal": {Deterministic: true}, "ring": {Deterministic: true, TemporalFrames: 8}} {
		t.Run(name, func(t *testing.T) {
			k := newWorld(t, c)
			e := k.engine()
			require.NoError(t, e.Enter(false))
			defer e.Leave()
			require.NoError(t, e.KeepRecords())
			for range rounds(300) {
				var hs [256]handles.Local
				for i := range hs {
					var err error
					hs[i], err = k.r.Reserve()
					require.NoError(t, err)
				}
				dead := map[handles.Local]bool{}
				e.late(false, func(f *registry.Frame) {
					var at atomic.Int64
					var other sync.WaitGroup
					other.Go(func() {
						for i := range hs {
							at.Store(int64(i + 1))
							_ = k.r.Destroy(hs[i])
						}
					})
					for i := range hs {
						for at.Load() <= int64(i) {
						}
						if f.Destroy(hs[i]) != nil {
							dead[hs[i]] = true
						}
					}
					other.Wait()
				})
				lost := map[handles.Local]bool{}
				for _, l := range e.TakeLost() {
					lost[l.Entity] = true
				}
				require.Equal(t, dead, lost)
				e.late(false, func(*registry.Frame) {})
				require.NoError(t, e.Update(func(w *registry.Window) error {
					w.ConfirmLocalRecycles()
					return nil
				}))
			}
		})
	}
}
