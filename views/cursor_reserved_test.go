package views_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
)

// TestAReservationThatIsSpawnedTwice has one handle name two entities in one window, at the same
// cache index: the first is undone with the batch that it was spawned in.
func TestAReservationThatIsSpawnedTwice(t *testing.T) {
	w := newWorld(t)
	type first struct{ Name Name }
	type second struct {
		Name Name
		Pos  Position
	}
	type third struct{ Mark Mark }
	a, b, c := class[first](w), class[second](w), class[third](w)
	h, err := w.Reserve()
	require.NoError(t, err)
	e := entity[struct{ Name *Name }](w, h)
	w.window(func(win *registry.Window) {
		_, err := c.SpawnBatch(win, 1, nil) // its chunk stays when the batch is undone
		require.NoError(t, err)
		require.Panics(t, func() {
			_, _ = c.SpawnBatch(win, 1, func(int, *third) {
				require.NoError(t, a.SpawnReserved(win, h, first{Name{Text: "first"}}))
				v, err := e.Get(win)
				require.NoError(t, err)
				require.Equal(t, "first", v.Name.Text)
				panic("undo it")
			})
		})
		_, err = e.Get(win)
		require.ErrorIs(t, err, registry.ErrNotSpawned)
	})
	w.window(func(win *registry.Window) {
		var place uint32
		require.Panics(t, func() {
			_, _ = c.SpawnBatch(win, 1, func(int, *third) {
				require.NoError(t, a.SpawnReserved(win, h, first{Name{Text: "first"}}))
				_, err := e.Get(win)
				require.NoError(t, err)
				place, _ = registry.CacheIndex(win, h)
				panic("undo it")
			})
		})
		require.NoError(t, b.SpawnReserved(win, h, second{Name: Name{Text: "second"}}))
		now, ok := registry.CacheIndex(win, h)
		require.True(t, ok)
		require.Equal(t, place, now)
		v, err := e.Get(win)
		require.NoError(t, err)
		require.Equal(t, "second", v.Name.Text)
	})
}
