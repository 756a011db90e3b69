package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// TestCellsOfEveryKindOfToken has tags, split and whole components, and such that are not there, of a window, a frame and a
// snapshot, one by one and by Cells.
func TestCellsOfEveryKindOfToken(t *testing.T) {
	type (
		whole struct{ N int }
		split struct{ X, Y float64 }
		cold  struct{ N int }
		tag   struct{}
		none  struct{ N int }
		being struct {
			Whole whole
			Split split
			Cold  cold
			Tag   tag
		}
	)
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	_, err = registry.RegisterComponent[whole](r, registry.InTier(archetype.Volatile))
	require.NoError(t, err)
	_, err = registry.RegisterComponent[split](r, registry.InTier(archetype.Volatile), registry.Split())
	require.NoError(t, err)
	_, err = registry.RegisterComponent[none](r)
	require.NoError(t, err)
	beings, err := registry.RegisterClass[being](r)
	require.NoError(t, err)
	wholes, err := registry.NewCells[whole](r)
	require.NoError(t, err)
	splits, err := registry.NewCells[split](r)
	require.NoError(t, err)
	colds, err := registry.NewCells[cold](r)
	require.NoError(t, err)
	tags, err := registry.NewCells[tag](r)
	require.NoError(t, err)
	nones, err := registry.NewCells[none](r)
	require.NoError(t, err)
	_, err = registry.NewCells[string](r)
	require.ErrorIs(t, err, registry.ErrNotRegistered)

	var h, dead handles.Local
	look := func(a registry.Access, published bool) {
		p, err := registry.Get[whole](a, h)
		require.NoError(t, err)
		require.Equal(t, whole{1}, *p)
		p, ok := wholes.Get(a, h)
		require.True(t, ok)
		require.Equal(t, whole{1}, *p)
		v, ok := wholes.Peek(a, h)
		require.True(t, ok)
		require.Equal(t, whole{1}, v)

		_, err = registry.Get[split](a, h)
		require.ErrorIs(t, err, registry.ErrSplit)
		_, ok = splits.Get(a, h)
		require.False(t, ok)
		s, ok := splits.Peek(a, h)
		require.True(t, ok)
		require.Equal(t, split{2, 3}, s)

		_, err = registry.Get[tag](a, h)
		require.NoError(t, err)
		_, ok = tags.Get(a, h)
		require.True(t, ok)
		_, ok = tags.Peek(a, h)
		require.True(t, ok)

		_, err = registry.Peek[cold](a, h)
		_, got := colds.Get(a, h)
		_, peeked := colds.Peek(a, h)
		if published {
			require.ErrorIs(t, err, registry.ErrNotPublished)
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, []bool{!published, !published}, []bool{got, peeked})

		_, err = registry.Get[none](a, h)
		require.ErrorIs(t, err, registry.ErrNoComponent)
		_, err = registry.Peek[none](a, h)
		require.ErrorIs(t, err, registry.ErrNoComponent)
		_, ok = nones.Get(a, h)
		require.False(t, ok)
		_, ok = nones.Peek(a, h)
		require.False(t, ok)
		require.False(t, registry.Has[none](a, h))
		require.True(t, registry.Has[tag](a, h))

		for _, nobody := range []handles.Local{0, dead, h + 1} {
			_, ok = wholes.Get(a, nobody)
			require.False(t, ok)
			_, ok = wholes.Peek(a, nobody)
			require.False(t, ok)
			require.False(t, registry.Has[whole](a, nobody))
		}
		_, err = registry.Peek[string](a, h)
		require.ErrorIs(t, err, registry.ErrNotRegistered)
	}
	k := &world{t: t, r: r}
	k.update(func(w *registry.Window) {
		var err error
		h, err = beings.Spawn(w, being{Whole: whole{1}, Split: split{2, 3}, Cold: cold{4}})
		require.NoError(t, err)
		dead, err = beings.Spawn(w, being{})
		require.NoError(t, err)
		require.NoError(t, w.Destroy(dead))
		look(w, false)
	})
	require.NoError(t, k.engine().frame(nil, system{"looks", func(f *registry.Frame) { look(f, false) }}))
	require.NoError(t, r.Read(func(s *registry.Snapshot) error {
		look(s, true)
		require.False(t, wholes.Set(s, h, whole{9}))
		require.ErrorIs(t, registry.Set(s, h, whole{9}), registry.ErrReadOnly)
		return nil
	}))
	other, err := registry.New(registry.Config{})
	require.NoError(t, err)
	require.NoError(t, other.Update(func(w *registry.Window) error {
		_, ok := wholes.Get(w, h)
		require.False(t, ok, "another registry's")
		_, ok = wholes.Peek(w, h)
		require.False(t, ok)
		require.False(t, wholes.Set(w, h, whole{9}))
		return nil
	}))
	require.NoError(t, r.Verify())
}
