package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// init may change structure, and finds the entities of its own batch that are made already.
// One that it has not filled in it can't find, let alone move.
func TestAnInitThatAddsFindsNobodyHalfMade(t *testing.T) {
	k := newWorld(t, registry.Config{})
	var hs []handles.Local
	k.update(func(w *registry.Window) {
		k.spawn(w) // so that the batch begins in the middle of a chunk
		var err error
		hs, err = k.soldiers.SpawnBatch(w, 100, func(i int, e *soldier) {
			e.Health.Points = int64(i + 1)
			found := everybody(w)
			require.NotEmpty(t, found)
			require.LessOrEqual(t, len(found), 1+i)
			require.Equal(t, len(found), registry.AddBatch(w, found, frozen{}))
		})
		require.NoError(t, err)
	})
	k.update(func(w *registry.Window) {
		for i, h := range hs {
			p, err := registry.Peek[health](w, h)
			require.NoError(t, err)
			require.EqualValues(t, i+1, p.Points)
		}
	})
}

func everybody(a registry.Access) (hs []handles.Local) {
	store := registry.Iterate(a)
	defer registry.Finish(a)
	for _, arch := range store.Archetypes() {
		for _, ch := range arch.Chunks() {
			for slot := range uint32(ch.Allocated()) {
				if ch.Bit(slot) {
					hs = append(hs, ch.Entities()[slot])
				}
			}
		}
	}
	return hs
}

// In a window of a large registry the owner keeps some room to itself: fewer than 1024 places,
// however many died in it.
func TestReserveFindsTheRoomOfTheDeadInAFullRegistry(t *testing.T) {
	const full, dead, early = 1<<17 + 1, 5000, 1023
	k := newWorld(t, registry.Config{MaxEntities: full})
	reserved := 0
	reserve := func() {
		for {
			if _, err := k.r.Reserve(); err != nil {
				require.ErrorIs(t, err, registry.ErrExhausted)
				return
			}
			reserved++
		}
	}
	k.update(func(w *registry.Window) {
		hs, err := k.scouts.SpawnBatch(w, full, nil)
		require.NoError(t, err)
		reserve()
		require.Zero(t, reserved)
		require.Equal(t, dead, w.DestroyBatch(hs[:dead]))
		reserve()
		require.GreaterOrEqual(t, reserved, dead-early)
	})
	reserve()
	require.Equal(t, dead, reserved, "outside of a window the cap is exact")
}
