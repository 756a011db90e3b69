package pool_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

func TestEveryKindOfPoolIsASource(t *testing.T) {
	type ship struct{ At struct{ X float64 } }
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	class, err := registry.RegisterClass[ship](r, registry.Named("ship"))
	require.NoError(t, err)
	prefabs := pool.NewPrefabs(r)
	objects, err := pool.New(pool.Config[int]{Name: "ints", Capacity: 3, Reset: func(*int) {}})
	require.NoError(t, err)
	require.NoError(t, r.Update(func(w *registry.Window) error {
		entities, err := pool.NewEntities(w, class, 5)
		require.NoError(t, err)
		require.NoError(t, prefabs.Declare(w, "Gull", 7, pool.Fixed(), false))
		caps := map[string]int{}
		for _, s := range []pool.Source{objects, entities, prefabs} {
			for name, stats := range maps.Collect(s.Pools()) {
				caps[name] = stats.Cap
			}
		}
		assert.Equal(t, map[string]int{"ints": 3, "ship": 5, "Gull": 7}, caps)
		return nil
	}))
}
