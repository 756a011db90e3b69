package registry_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

func TestClearParentSetsFree(t *testing.T) {
	k := newWorld(t, registry.Config{})
	hs := k.spawnMany(4)
	parent := func(w *registry.Window, h handles.Local) handles.Local {
		p, err := registry.Parent(w, h)
		require.NoError(t, err)
		return p
	}
	k.update(func(w *registry.Window) {
		require.NoError(t, registry.SetParent(w, hs[1], hs[0]))
		require.NoError(t, registry.SetParent(w, hs[2], hs[1]))
		require.NoError(t, registry.SetParent(w, hs[3], hs[0]))
	})
	failed := errors.New("no")
	require.ErrorIs(t, k.r.Update(func(w *registry.Window) error {
		require.NoError(t, registry.ClearParent(w, hs[1]))
		require.Zero(t, parent(w, hs[1]))
		return failed
	}), failed)
	k.update(func(w *registry.Window) {
		require.Equal(t, hs[0], parent(w, hs[1]), "a failed callback takes it back")
		require.NoError(t, registry.ClearParent(w, hs[1]))
		require.NoError(t, registry.ClearParent(w, hs[1]), "without a parent it is free already")
		require.Equal(t, hs[1], parent(w, hs[2]), "what is below stays below")
		require.NoError(t, w.Destroy(hs[0]))
		require.ErrorIs(t, registry.ClearParent(w, hs[3]), registry.ErrStale)
	})
	for i, alive := range []bool{false, true, true, false} {
		require.Equal(t, alive, k.r.Alive(hs[i]), i)
	}
}
