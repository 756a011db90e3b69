package pool_test

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

type (
	caseAt   struct{ X, Y float64 }
	caseTag  struct{ Name string }
	caseShot struct {
		At  caseAt
		Tag caseTag
	}
	caseRock struct{ At caseAt }
)

// entityCases are the hostile cases of entity pools, by their names.
func TestEntityCases(t *testing.T) {
	t.Run("pool-2", entitiesNotOurs)
	t.Run("pool-9", entitiesAtTheEdgesOfWords)
}

// caseWorld is a registry with a class for pools and one for plain entities.
func caseWorld(t *testing.T, c registry.Config) (*registry.Registry, *registry.Class[caseShot], *registry.Class[caseRock]) {
	r, err := registry.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Verify()) })
	shots, err := registry.RegisterClass[caseShot](r)
	require.NoError(t, err)
	rocks, err := registry.RegisterClass[caseRock](r)
	require.NoError(t, err)
	return r, shots, rocks
}

func inWindow(t *testing.T, r *registry.Registry, fn func(w *registry.Window)) {
	t.Helper()
	require.NoError(t, r.Update(func(w *registry.Window) error {
		fn(w)
		return nil
	}))
	require.NoError(t, r.Verify())
}

func entitiesNotOurs(t *testing.T) {
	r, shots, rocks := caseWorld(t, registry.Config{})
	inWindow(t, r, func(w *registry.Window) {
		p, err := pool.NewEntities(w, shots, 4)
		require.NoError(t, err)
		other, err := pool.NewEntities(w, shots, 4)
		require.NoError(t, err)
		rock, err := rocks.Spawn(w, caseRock{})
		require.NoError(t, err)
		plain, err := shots.Spawn(w, caseShot{})
		require.NoError(t, err)
		mine, ok := p.Spawn(w, caseShot{})
		require.True(t, ok)
		theirs, ok := other.Spawn(w, caseShot{})
		require.True(t, ok)
		reserved, err := r.Reserve()
		require.NoError(t, err)

		before, beforeOther := p.Stats(), other.Stats()
		require.ErrorIs(t, p.Despawn(w, 0), registry.ErrInvalidHandle)
		require.ErrorIs(t, p.Despawn(w, rock), registry.ErrInvalidHandle)
		require.ErrorIs(t, p.Despawn(w, plain), registry.ErrInvalidHandle)
		require.ErrorIs(t, p.Despawn(w, theirs), registry.ErrInvalidHandle)
		require.ErrorIs(t, p.Despawn(w, handles.NewLocal(1<<20, 3)), registry.ErrInvalidHandle)
		require.ErrorIs(t, p.Despawn(w, reserved), registry.ErrNotSpawned)
		require.ErrorIs(t, p.Despawn(w, p.Slot(3)), pool.ErrIdle)
		require.Equal(t, before, p.Stats())
		require.Equal(t, beforeOther, other.Stats())
		for _, h := range []handles.Local{rock, plain, mine, theirs} {
			require.True(t, r.Alive(h))
		}
		require.NoError(t, p.Despawn(w, mine))
		require.ErrorIs(t, p.Despawn(w, mine), registry.ErrStale)
		require.ErrorIs(t, other.Despawn(w, mine), registry.ErrStale)
	})
}

func entitiesAtTheEdgesOfWords(t *testing.T) {
	for _, n := range []int{1, 63, 64, 65, 128} {
		for _, c := range []registry.Config{{}, {Deterministic: true}, {TemporalFrames: 8}} {
			t.Run(fmt.Sprintf("%d/%+v", n, c), func(t *testing.T) { edgesOfWords(t, n, c) })
		}
	}
}

func edgesOfWords(t *testing.T, n int, c registry.Config) {
	r, shots, _ := caseWorld(t, c)
	events := 0
	for _, kind := range []registry.EventKind{registry.Spawned, registry.Destroyed} {
		_, err := r.Observe(kind, func(_ *registry.Frame, list []registry.Event) { events += len(list) })
		require.NoError(t, err)
	}
	seen := func(w *registry.Window) (n int) { // what loops go by
		require.NoError(t, registry.EachChunk(w, func(l *registry.Look) bool {
			for word := range l.Chunk.Slots() / 64 {
				n += bits.OnesCount64(l.Active(word))
			}
			return true
		}))
		return n
	}

	var p *pool.Entities[caseShot]
	var err error
	inWindow(t, r, func(w *registry.Window) {
		p, err = pool.NewEntities(w, shots, n)
		require.NoError(t, err)
		require.Zero(t, seen(w))
	})
	require.Zero(t, r.Stats().Live)
	require.Zero(t, events)
	for i := range n {
		require.Equal(t, p.Slot(0).Index()+uint32(i), p.Slot(i).Index(), "consecutive")
		require.True(t, r.Alive(p.Slot(i)))
	}

	var all []handles.Local
	inWindow(t, r, func(w *registry.Window) {
		for i := range n {
			h, ok := p.Spawn(w, caseShot{At: caseAt{X: float64(i)}, Tag: caseTag{"new"}})
			require.True(t, ok)
			at, ok := p.SlotOf(h)
			require.True(t, ok)
			require.Equal(t, i, at, "lowest first")
			all = append(all, h)
		}
		h, ok := p.Spawn(w, caseShot{})
		require.False(t, ok)
		require.Zero(t, h)
		require.Equal(t, n, seen(w))
	})
	require.Equal(t, n, r.Stats().Live)
	require.Equal(t, n, events)
	require.Equal(t, 1, p.Stats().Refused)

	inWindow(t, r, func(w *registry.Window) {
		var freed []int
		for _, slot := range []int{0, 62, 63, 64} {
			if slot < n {
				require.NoError(t, p.Despawn(w, all[slot]))
				require.False(t, r.Alive(all[slot]))
				freed = append(freed, slot)
			}
		}
		require.Equal(t, n-len(freed), seen(w))
		for _, slot := range freed {
			h, ok := p.Spawn(w, caseShot{})
			require.True(t, ok)
			at, _ := p.SlotOf(h)
			require.Equal(t, slot, at, "ascending")
			require.NotEqual(t, all[slot], h)
			require.False(t, r.Alive(all[slot]))
		}
		_, ok := p.Spawn(w, caseShot{})
		require.False(t, ok)
	})

	failed := errors.New("failed")
	slots := make([]handles.Local, n)
	for i := range slots {
		slots[i] = p.Slot(i)
	}
	require.ErrorIs(t, r.Update(func(w *registry.Window) error {
		require.Equal(t, n, p.DespawnWhere(w, func(handles.Local, *caseShot) bool { return true }))
		require.Zero(t, seen(w))
		_, ok := p.Spawn(w, caseShot{Tag: caseTag{"never"}})
		require.True(t, ok)
		return failed
	}), failed)
	require.NoError(t, r.Verify())
	for i, h := range slots {
		require.Equal(t, h, p.Slot(i), "as it was")
	}
	require.Equal(t, n, p.Stats().InUse)
}
