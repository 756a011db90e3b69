package defrag_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// TestCellsAreFoundWhereChunksWereRepacked has chunks go to the places of older ones, without other cache indices,
// which are in use: Cells read what is written from then on, by those that were open and in later frames.
func TestCellsAreFoundWhereChunksWereRepacked(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	clouds, err := registry.RegisterClass[cloud](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	trees, err := registry.RegisterClass[tree](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	cells, err := registry.NewCells[self](r)
	require.NoError(t, err)
	d, err := defrag.New(r, defrag.Config{})
	require.NoError(t, err)
	window := func(fn func(*registry.Window)) {
		t.Helper()
		require.NoError(t, r.Update(func(w *registry.Window) error { fn(w); return nil }))
		require.NoError(t, r.Verify())
	}
	var hs []handles.Local
	window(func(w *registry.Window) {
		hs, err = clouds.SpawnBatch(w, 64*40, nil) // blocks of 1, 1, 2, 4, 8, 16, and a last one of 32 with 8 chunks
		require.NoError(t, err)
	})
	window(func(w *registry.Window) { w.DestroyBatch(hs[64*8 : 64*16]) })
	for range 3 {
		window(func(w *registry.Window) { w.ProcessDeferredDestructions() })
	}
	hs = hs[64*16:]
	window(func(w *registry.Window) {
		_, err := trees.SpawnBatch(w, 64*8, nil) // takes the cache indices
		require.NoError(t, err)
	})
	agree := func(open *registry.OpenCells[self]) {
		t.Helper()
		for i, h := range hs {
			v, ok := open.Peek(h)
			require.True(t, ok)
			require.Equal(t, handles.Local(i), v.H)
		}
	}
	write := func(w *registry.Window) {
		t.Helper()
		for i, h := range hs {
			require.NoError(t, registry.Set(w, h, self{handles.Local(i)}))
		}
	}
	window(func(w *registry.Window) {
		open := cells.Open(w)
		rep, err := d.Run(w)
		require.NoError(t, err)
		require.Zero(t, rep.Moved, "no cache index has changed")
		require.Positive(t, rep.Bytes, "a block went back")
		write(w)
		agree(&open)
	})
	window(func(w *registry.Window) {
		open := cells.Open(w)
		agree(&open)
	})
}
