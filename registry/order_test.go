package registry_test

import (
	"math/rand/v2"
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
