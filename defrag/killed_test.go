package defrag_test

import (
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
