package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// pooledState is a state with pools whose slots are idle, in use, dying, empty, and somebody's who has a name of his own.
func pooledState(t *testing.T, c registry.Config) *registry.State {
	k := newWorld(t, c)
	var small, large *registry.Block
	var hs []handles.Local
	take := func(w *registry.Window, b *registry.Block) handles.Local {
		h, err := registry.SpawnIn(w, k.soldiers, b, &soldier{Health: health{5}})
		require.NoError(t, err)
		return h
	}
	k.update(func(w *registry.Window) {
		var err error
		small, err = registry.NewBlock(w, k.soldiers, "small", 6, &soldier{})
		require.NoError(t, err)
		large, err = registry.NewBlock(w, k.soldiers, "large", 66, nil)
		require.NoError(t, err)
	})
	e := k.engine()
	require.NoError(t, e.frame(func(w *registry.Window) error {
		for range 5 {
			hs = append(hs, take(w, small))
			take(w, large)
		}
		_, err := w.AssignNet(hs[1])
		require.NoError(t, err)
		require.NoError(t, registry.SetActive(w, hs[2], false))
		require.NoError(t, registry.Add(w, hs[3], frozen{})) // he leaves the pool's storage
		require.NoError(t, registry.SetParent(w, hs[4], hs[1]))
		k.spawn(w)
		return nil
	}))
	require.NoError(t, e.frame(func(w *registry.Window) error {
		require.NoError(t, w.Destroy(hs[0]))
		require.NoError(t, small.Despawn(w, hs[2]))
		w.ProcessDeferredDestructions()
		return nil
	}))
	require.Error(t, e.frame(func(w *registry.Window) error {
		for range 3 { // names that are given out, and never again
			require.NoError(t, small.Despawn(w, take(w, small)))
		}
		take(w, large)
		return errPlanned
	}))
	var s saved
	k.update(func(w *registry.Window) {
		take(w, small)
		require.NoError(t, w.Destroy(hs[1])) // and who is below
		s = captureIn(t, w)
	})
	return s.state
}

func TestNoNumberOfAStateOfPoolsIsBelieved(t *testing.T) {
	for _, c := range []registry.Config{{MaxEntities: 100}, {MaxEntities: 100, TemporalFrames: 8}} {
		s := pooledState(t, c)
		require.Len(t, s.Pools, 2)
		require.NotZero(t, s.Pools[0].Idle[0])
		require.NotZero(t, s.Pools[0].Empty[0])
		if c.TemporalFrames > 0 {
			require.NotEmpty(t, s.Pools[0].Tenants)
			require.NotEmpty(t, s.Burnt)
		}
		nothingIsBelieved(t, c, s)
	}
}
