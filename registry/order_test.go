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
	const n = 20_000
	var hs []handles.Local
	k.update(func(w *registry.Window) {
		var err error
		hs, err = k.soldiers.SpawnBatch(w, n, func(i int, e *soldier) { e.Health.Points = int64(i) })
		require.NoError(t, err)
	})
	for round := range 4 {
		rnd.Shuffle(n, func(i, j int) { hs[i], hs[j] = hs[j], hs[i] })
		dead := hs[:n/2]
		k.update(func(w *registry.Window) {
			require.Equal(t, n/2, w.DestroyBatch(dead))
			require.Equal(t, n/2, w.ProcessDeferredDestructions())
		})
		require.NoError(t, k.r.Verify())
		for _, h := range dead {
			o, ok := k.r.Obituary(h)
			require.True(t, !ok || o == registry.Obituary{}, "round %d", round)
			require.False(t, k.r.Alive(h))
		}
		for _, h := range hs[n/2:] {
			require.True(t, k.r.Alive(h))
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
