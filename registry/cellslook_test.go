package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
)

// embedded is a token inside something else, as an engine hands it out.
type embedded struct{ *registry.Window }

func TestPeekTakesEveryKindOfToken(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	type pos struct{ X, Y float64 }
	type mover struct{ Pos pos }
	c, err := registry.RegisterClass[mover](r)
	require.NoError(t, err)
	cells, err := registry.NewCells[pos](r)
	require.NoError(t, err)
	var kept *registry.Window
	require.NoError(t, r.Update(func(w *registry.Window) error {
		kept = w
		h, err := c.Spawn(w, mover{pos{1, 2}})
		require.NoError(t, err)
		for _, a := range []registry.Access{w, embedded{w}} {
			p, ok := cells.Peek(a, h)
			require.True(t, ok)
			require.Equal(t, pos{1, 2}, p)
			_, ok = cells.Peek(a, h+1)
			require.False(t, ok)
		}
		require.NoError(t, w.Destroy(h))
		_, ok := cells.Peek(w, h)
		require.False(t, ok)
		return nil
	}))
	for _, a := range []registry.Access{nil, (*registry.Window)(nil), (*registry.Frame)(nil), (*registry.Snapshot)(nil), kept, embedded{kept}} {
		require.PanicsWithValue(t, registry.ErrExpired, func() { cells.Peek(a, 0) })
	}
}
