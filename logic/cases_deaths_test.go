package logic_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// killers are the ways to destroy an entity through an engine. Each has an answer when it returns.
var killers = map[string]func(w *world, h handles.Local) error{
	"Spawn": func(w *world, h handles.Local) error {
		answer := make(chan error, 1)
		go func() {
			answer <- w.e.Spawn(background(), func(win *registry.Window) error { return win.Destroy(h) })
		}()
		w.queued(1)
		w.step()
		return <-answer
	},
	"SpawnBatch": func(w *world, h handles.Local) error {
		answer := make(chan error, 1)
		go func() {
			answer <- w.e.SpawnBatch(background(), noChange, func(win *registry.Window) error { return win.Destroy(h) })[1]
		}()
		w.queued(1)
		w.step()
		return <-answer
	},
	"Defer": func(w *world, h handles.Local) (err error) {
		require.NoError(w.t, w.e.Defer(func(win *registry.Window) error { err = win.Destroy(h); return nil }))
		w.step()
		return err
	},
	"Enqueue": func(w *world, h handles.Local) error {
		ticket, err := w.e.Enqueue(func(win *registry.Window) error { return win.Destroy(h) })
		require.NoError(w.t, err)
		w.step()
		<-ticket.Done()
		return ticket.Err()
	},
	"Producer": func(w *world, h handles.Local) error {
		ticket, err := w.e.Producer().Enqueue(func(win *registry.Window) error { return win.Destroy(h) })
		require.NoError(w.t, err)
		w.step()
		return ticket.Err()
	},
	"Frame.Destroy": func(w *world, h handles.Local) (err error) {
		require.NoError(w.t, w.once(func(f *logic.Frame) { err = f.Destroy(h) }))
		return err
	},
	"Frame.Defer": func(w *world, h handles.Local) (err error) {
		require.NoError(w.t, w.once(func(f *logic.Frame) {
			f.Defer(func(win *registry.Window) error { err = win.Destroy(h); return nil })
		}))
		w.step()
		return err
	},
	"Registry.Destroy": func(w *world, h handles.Local) error { return w.r.Destroy(h) },
	"Registry.Destroy by a system": func(w *world, h handles.Local) (err error) {
		require.NoError(w.t, w.once(func(*logic.Frame) { err = w.r.Destroy(h) }))
		return err
	},
}

// heir steps until somebody new has the index of h, who is dead.
func (w *world) heir(h handles.Local) handles.Local {
	w.t.Helper()
	for range 10 {
		if next := w.spawn(2); next.Index() == h.Index() {
			return next
		}
		w.step()
	}
	require.FailNow(w.t, "an index does not come back")
	return 0
}

// TestHandles1EveryWayOfDyingIsFinal is the part of the case handles-1 that takes an engine.
func TestHandles1EveryWayOfDyingIsFinal(t *testing.T) {
	for name, kill := range killers {
		for _, deterministic := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorldIn(t, registry.Config{MaxEntities: 64, Deterministic: deterministic})
				h, n := w.spawnNet(1)
				w.step()
				require.NoError(t, kill(w, h))
				dead := func() {
					t.Helper()
					assert.False(t, w.r.Alive(h))
					assert.False(t, w.r.AliveNet(n))
					_, err := w.r.Resolve(h)
					assert.ErrorIs(t, err, registry.ErrStale)
					_, err = w.r.ResolveNet(n)
					assert.ErrorIs(t, err, registry.ErrStale)
				}
				dead()
				next := w.heir(h)
				dead()
				assert.True(t, w.r.Alive(next))
				assert.Equal(t, 2, w.n(next))
			})
		}
	}
}

// TestRegistry4DestroyedTwice is the part of the case registry-4 that takes an engine: all ordered pairs of ways to
// destroy, with and without a newcomer in between.
func TestRegistry4DestroyedTwice(t *testing.T) {
	for first, kill := range killers {
		for second, again := range killers {
			for _, cycle := range []bool{false, true} {
				t.Run(first+" then "+second, func(t *testing.T) {
					w := newWorld(t)
					told := map[handles.Local]int{}
					_, err := w.r.Observe(registry.Destroyed, func(_ *registry.Frame, es []registry.Event) {
						for _, e := range es {
							told[e.Entity]++
						}
					})
					require.NoError(t, err)
					h := w.spawn(1)
					require.NoError(t, kill(w, h))
					next := handles.Local(0)
					if cycle {
						next = w.heir(h)
					}
					assert.ErrorIs(t, again(w, h), registry.ErrStale)
					w.step()
					assert.Equal(t, map[handles.Local]int{h: 1}, told)
					assert.Equal(t, cycle, w.r.Alive(next))
					w.step()
					assert.Zero(t, w.r.Stats().Tombstoned, "gone by the next frame")
					assert.Empty(t, w.told())
				})
			}
		}
	}
}
