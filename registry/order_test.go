package registry_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// A massacre is sorted by slot before it is reclaimed: nobody may be lost or doubled, and
// who died in an earlier frame still comes back first.
func TestManyShuffledDeathsAreReclaimedOnce(t *testing.T) {
	k := newWorld(t, registry.Config{})
	rnd := rand.New(rand.NewPCG(7, 8))
	const n = 10_000
	var hs []handles.Local
	k.update(func(w *registry.Window) {
		var err error
		hs, err = k.soldiers.SpawnBatch(w, n, func(i int, e *soldier) { e.Health.Points = int64(i) })
		require.NoError(t, err)
	})
	for round := range 3 {
		rnd.Shuffle(n, func(i, j int) { hs[i], hs[j] = hs[j], hs[i] })
		dead := hs[:n/2]
		k.update(func(w *registry.Window) {
			require.Equal(t, n/2, w.DestroyBatch(dead))
			require.Equal(t, n/2, w.ProcessDeferredDestructions())
		})
		require.NoError(t, k.r.Verify())
		for i, h := range hs {
			if k.r.Alive(h) != (i >= n/2) {
				t.Fatalf("round %d: %v alive: %t", round, h, k.r.Alive(h))
			}
		}
		k.update(func(w *registry.Window) {
			require.Equal(t, n/2, w.ConfirmLocalRecycles())
			again, err := k.soldiers.SpawnBatch(w, n/2, nil)
			require.NoError(t, err)
			copy(hs, again)
		})
		require.NoError(t, k.r.Verify())
		require.Equal(t, n, k.r.Stats().Live)
		require.Equal(t, n, k.r.Stats().Allocated)
	}
}

// Which names are free afterwards, and in which order, depends on the deaths and not on how large chunks are.
func TestChunksDoNotDecideWhichNamesAreFreeFirst(t *testing.T) {
	const n = 10_000
	freed := func(slots int) (dead, again []handles.Local) {
		r, err := registry.New(registry.Config{Deterministic: true})
		require.NoError(t, err)
		soldiers, err := registry.RegisterClass[soldier](r, registry.SlotsPerChunk(slots))
		require.NoError(t, err)
		scouts, err := registry.RegisterClass[scout](r, registry.SlotsPerChunk(slots))
		require.NoError(t, err)
		update := func(fn func(w *registry.Window)) {
			require.NoError(t, r.Update(func(w *registry.Window) error { fn(w); return nil }))
		}
		update(func(w *registry.Window) {
			for range n / 2 {
				h, err := soldiers.Spawn(w, soldier{})
				require.NoError(t, err)
				other, err := scouts.Spawn(w, scout{})
				require.NoError(t, err)
				dead = append(dead, h, other)
			}
			reserved, err := r.Reserve()
			require.NoError(t, err)
			dead = append(dead, reserved)
		})
		rand.New(rand.NewPCG(3, 4)).Shuffle(len(dead), func(i, j int) { dead[i], dead[j] = dead[j], dead[i] })
		update(func(w *registry.Window) {
			require.Equal(t, n/2, w.DestroyBatch(dead[:n/2]))
			require.Equal(t, n/2, w.ProcessDeferredDestructions())
			w.ConfirmLocalRecycles()
		})
		update(func(w *registry.Window) {
			again, err = soldiers.SpawnBatch(w, n/2, nil)
			require.NoError(t, err)
		})
		require.NoError(t, r.Verify())
		return dead, again
	}
	dead, again := freed(64)
	deadToo, againToo := freed(1024)
	require.True(t, slices.Equal(dead, deadToo))
	require.True(t, slices.Equal(again, againToo), "the same names come out in another order")
}
