package defrag_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// TestWhoIsDestroyedMeanwhileStays destroys an entity from outside after the window has opened, so that
// its move fails, and those behind it go to slots that were never taken.
func TestWhoIsDestroyedMeanwhileStays(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	c, err := registry.RegisterClass[mover](r) // 128 slots, then 1024
	require.NoError(t, err)
	d, err := defrag.New(r, defrag.Config{})
	require.NoError(t, err)
	var hs []handles.Local
	require.NoError(t, r.Update(func(w *registry.Window) error {
		for range 228 {
			h, err := c.Spawn(w, mover{Pos: pos{X: float64(len(hs))}})
			require.NoError(t, err)
			hs = append(hs, h)
		}
		return nil
	}))
	require.NoError(t, r.Update(func(w *registry.Window) error {
		w.DestroyBatch(hs[:1])
		w.ProcessDeferredDestructions()
		return nil
	}))
	for _, dead := range []int{60, 127, 1} {
		require.NoError(t, r.Update(func(w *registry.Window) error {
			require.NoError(t, r.Destroy(hs[dead]))
			_, err := d.Run(w)
			return err
		}))
		require.NoError(t, r.Verify())
	}
	require.NoError(t, r.Update(func(w *registry.Window) error {
		w.ProcessDeferredDestructions()
		for i, h := range hs {
			if r.Alive(h) {
				p, err := registry.Peek[pos](w, h)
				require.NoError(t, err)
				require.Equal(t, float64(i), p.X)
			}
		}
		_, err := d.Run(w)
		return err
	}))
	require.NoError(t, r.Verify())
	require.Equal(t, 1, r.Stats().Chunks)
}

// TestATombstoneThatUndoMovedBackKeepsItsChunk has an entity destroyed from outside, and seen to be, inside
// a callback that had moved it and then fails. Its tombstone lies where the entity lay before, and the
// chunk must not change its place while it is there.
func TestATombstoneThatUndoMovedBackKeepsItsChunk(t *testing.T) {
	x := newWorld(t, 0)
	x.spawn(t, 2, 64)
	x.spawn(t, 0, 2)
	h := x.order[len(x.order)-1]
	x.destroy(t, slices.Clone(x.order[:64]), false)
	x.reclaim(t)
	failure := errors.New("after all")
	require.ErrorIs(t, x.r.Update(func(w *registry.Window) error {
		require.NoError(t, registry.Add(w, h, mark{}))
		require.NoError(t, x.r.Destroy(h))
		registry.Iterate(w) // whoever begins a loop sees the deaths from outside
		registry.Finish(w)
		return failure
	}), failure)
	require.NoError(t, x.r.Verify())
	d, err := defrag.New(x.r, defrag.Config{})
	require.NoError(t, err)
	x.window(t, func(w *registry.Window) {
		rep, err := d.Run(w)
		require.NoError(t, err)
		require.Zero(t, rep.Moved)
	})
	x.window(t, func(w *registry.Window) {
		require.Equal(t, 1, w.ProcessDeferredDestructions())
		rep, err := d.Run(w)
		require.NoError(t, err)
		require.Equal(t, 1, rep.Moved, "now it may")
	})
	require.NoError(t, x.r.Verify())
}
