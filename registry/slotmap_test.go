package registry_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// drawn writes a map as a letter a slot.
func drawn(list []registry.ChunkSlots) (s string) {
	for _, c := range list {
		for slot := range c.Slots {
			s += string("_.LIPTK"[c.At(slot)])
		}
	}
	return s
}

func TestASlotMapShowsWhatIsInTheSlots(t *testing.T) {
	for _, test := range []struct {
		name              string
		frames            int
		dying, next, last string // in the window of the deaths, in the next one, and when all are reclaimed
	}{
		{"without a ring", 0, "TLILTL__", ".LIL.L__", ".LIL.L__"},
		{"with a ring", 8, "TLILTL__", "KLILKL__", ".LIL.L__"},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newWorld(t, registry.Config{TemporalFrames: test.frames})
			e := k.engine()
			var hs []handles.Local
			show := func(w *registry.Window) string {
				a, err := registry.ArchetypeOf(w, hs[1])
				require.NoError(t, err)
				list := w.SlotMap(a, 0, 1) // one chunk at least
				require.Len(t, list, 1)
				assert.Equal(t, a.Chunks()[0].Base(), list[0].Base)
				assert.Empty(t, w.SlotMap(a, 1, 1000))
				return drawn(list)[:8]
			}
			require.NoError(t, e.frame(func(w *registry.Window) (err error) {
				hs, err = k.soldiers.SpawnBatch(w, 6, nil)
				return err
			}))
			require.NoError(t, e.frame(func(w *registry.Window) error {
				require.NoError(t, registry.SetActive(w, hs[2], false))
				assert.Equal(t, 2, w.DestroyBatch([]handles.Local{hs[0], hs[4]}))
				assert.Equal(t, test.dying, show(w))
				return nil
			}))
			require.NoError(t, e.frame(func(w *registry.Window) error {
				assert.Equal(t, test.next, show(w))
				return nil
			}))
			for range test.frames {
				require.NoError(t, e.frame(nil))
			}
			require.NoError(t, e.frame(func(w *registry.Window) error {
				assert.Equal(t, test.last, show(w))
				return nil
			}))
		})
	}
}

// The dead of this window and those kept for rollback, in a map of the middle chunks of three, and of another archetype beside.
func TestASlotMapOfSomeChunksShowsTheirDead(t *testing.T) {
	k := newWorld(t, registry.Config{TemporalFrames: 8})
	e := k.engine()
	var hs, others []handles.Local
	require.NoError(t, e.frame(func(w *registry.Window) (err error) {
		if hs, err = k.soldiers.SpawnBatch(w, 4*64, nil); err == nil {
			others, err = k.scouts.SpawnBatch(w, 64, nil)
		}
		return err
	}))
	require.NoError(t, e.frame(func(w *registry.Window) error { return w.Destroy(hs[64]) }))
	require.NoError(t, e.frame(func(w *registry.Window) error {
		a, err := registry.ArchetypeOf(w, hs[1])
		require.NoError(t, err)
		require.NoError(t, registry.Add(w, hs[66], frozen{})) // leaves a slot that is kept
		for _, h := range []handles.Local{hs[0], hs[65], hs[128], hs[192], others[1]} {
			require.NoError(t, w.Destroy(h))
		}
		list := w.SlotMap(a, 1, 128)
		require.Len(t, list, 2)
		assert.Equal(t, "KTKLLLLL", drawn(list[:1])[:8])
		assert.Equal(t, "TLLLLLLL", drawn(list[1:])[:8])
		return nil
	}))
}

func TestASlotMapShowsIdleSlotsOfPools(t *testing.T) {
	k := newWorld(t, registry.Config{})
	k.update(func(w *registry.Window) {
		b, err := registry.NewBlock(w, k.soldiers, "", 5, nil)
		require.NoError(t, err)
		_, err = registry.SpawnIn(w, k.soldiers, b, nil)
		require.NoError(t, err)
		var a *archetype.Archetype
		a, err = registry.ArchetypeOf(w, b.Slot(0))
		require.NoError(t, err)
		assert.Equal(t, "LPPPP__", drawn(w.SlotMap(a, 0, 64))[:7])
	})
}
