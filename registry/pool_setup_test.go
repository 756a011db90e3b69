package registry_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

func TestInitialCellsMayBeThoseOfASlot(t *testing.T) {
	for _, c := range []registry.Config{{}, {TemporalFrames: 8}} {
		k := newWorld(t, c)
		var b *registry.Block
		var kept *registry.Window
		k.update(func(w *registry.Window) {
			kept = w
			var err error
			b, err = registry.NewBlock(w, k.soldiers, "", 70, &soldier{Health: health{1}})
			require.NoError(t, err)
			h, err := registry.SpawnIn(w, k.soldiers, b, &soldier{Health: health{5}})
			require.NoError(t, err)
			require.NoError(t, registry.Set(w, h, self{7}))
			require.Equal(t, h, b.Slot(0))
			require.NoError(t, b.SetInitial(w, 0), "also of one that is in use")
			for i := 1; i < b.Len(); i++ {
				v, err := registry.Peek[health](w, b.Slot(i))
				require.NoError(t, err)
				require.Equal(t, health{5}, v, "slot %d", i)
				s, err := registry.Peek[self](w, b.Slot(i))
				require.NoError(t, err)
				require.Equal(t, self{7}, s)
			}
			require.NoError(t, registry.Set(w, h, health{9}))
			require.NoError(t, b.Despawn(w, h))
			v, err := registry.Peek[health](w, b.Slot(0))
			require.NoError(t, err)
			require.Equal(t, health{5}, v, "it is reset to them")
			require.NotEqual(t, h, b.Slot(0))
		})
		require.ErrorIs(t, b.SetInitial(kept, 0), registry.ErrExpired)
		require.Zero(t, b.Slot(-1))
		require.Zero(t, b.Slot(70))
	}
}

func TestABlockIsForItsClassAndItsRegistry(t *testing.T) {
	k, other := newWorld(t, registry.Config{MaxEntities: 100}), newWorld(t, registry.Config{MaxEntities: 100})
	var b, theirs *registry.Block
	other.update(func(w *registry.Window) {
		var err error
		theirs, err = registry.NewBlock(w, other.soldiers, "", 3, nil)
		require.NoError(t, err)
	})
	before := k.r.Stats()
	k.update(func(w *registry.Window) {
		_, err := registry.NewBlock(w, other.soldiers, "", 3, nil)
		require.ErrorContains(t, err, "belongs to another registry")
		for _, n := range []int{0, -1} {
			_, err = registry.NewBlock(w, k.soldiers, "", n, nil)
			require.ErrorContains(t, err, "a pool of")
		}
		_, err = registry.NewBlock(w, k.soldiers, "", 101, nil)
		require.ErrorIs(t, err, registry.ErrExhausted)
	})
	require.Equal(t, before.Live, k.r.Stats().Live)
	k.update(func(w *registry.Window) {
		var err error
		b, err = registry.NewBlock(w, k.soldiers, "", 3, nil)
		require.NoError(t, err)
		_, err = registry.SpawnIn(w, k.scouts, b, &scout{})
		require.ErrorContains(t, err, "not of class")
		_, err = registry.SpawnIn(w, k.soldiers, theirs, &soldier{})
		require.ErrorContains(t, err, "belongs to another registry")
		_, err = theirs.SpawnFrom(w, 0)
		require.ErrorContains(t, err, "belongs to another registry")
		require.ErrorContains(t, theirs.Despawn(w, 0), "belongs to another registry")
		_, err = b.SpawnFrom(w, handles.NewLocal(9999, 1))
		require.ErrorIs(t, err, registry.ErrInvalidHandle)
		require.Zero(t, b.InUse())
		require.Equal(t, 3, b.Free())
	})
	k.fails(func(w *registry.Window) {
		_, err := registry.NewBlock(w, k.soldiers, "gone", 5, nil)
		require.NoError(t, err)
	})
	require.Empty(t, k.r.BlocksNamed("gone"))
	require.Equal(t, []*registry.Block{b}, registry.BlocksOf(k.r, k.soldiers))
}

// TestABlockNeedsIndicesInARow has the local indices taken here and there, so that there is room, and no row.
func TestABlockNeedsIndicesInARow(t *testing.T) {
	c := registry.Config{MaxEntities: 100}
	k := worldOf(t, registry.NewPreset(c, registry.Preset{LocalIndex: registry.LastLocalIndex(c) - 2}))
	before := k.r.Stats()
	k.update(func(w *registry.Window) {
		_, err := registry.NewBlock(w, k.soldiers, "", 4, &soldier{})
		require.ErrorIs(t, err, registry.ErrExhausted)
		require.ErrorContains(t, err, "no consecutive local indices")
	})
	require.Equal(t, before.Archetypes, k.r.Stats().Archetypes, "nothing is left of it")
	require.Equal(t, before.Chunks, k.r.Stats().Chunks)
	k.update(func(w *registry.Window) {
		b, err := registry.NewBlock(w, k.soldiers, "", 3, &soldier{})
		require.NoError(t, err)
		require.Equal(t, 3, b.Free())
	})
}

// The name of an idle slot, destroyed by somebody, sleeps while a callback that fails has the slot: it wakes dead, and nobody
// destroys it once more.
func TestASleepingNameThatWasDestroyedIsNotDestroyedAgain(t *testing.T) {
	k := newWorld(t, registry.Config{TemporalFrames: 8})
	var b *registry.Block
	k.update(func(w *registry.Window) {
		var err error
		b, err = registry.NewBlock(w, k.soldiers, "", 1, &soldier{})
		require.NoError(t, err)
	})
	rounds := 20_000
	if testing.Short() {
		rounds = 2000
	}
	var own, done atomic.Uint64
	var again atomic.Int32
	var other sync.WaitGroup
	other.Go(func() {
		for done.Load() == 0 {
			if h := handles.Local(own.Load()); h != 0 && k.r.Destroy(h) == nil {
				again.Add(1)
			}
		}
	})
	for range rounds {
		k.fails(func(w *registry.Window) {
			h := b.Slot(0)
			require.NoError(t, k.r.Destroy(h))
			own.Store(uint64(h))
			_, err := registry.SpawnIn(w, k.soldiers, b, &soldier{})
			require.NoError(t, err)
		})
		own.Store(0)
		k.recycle()
	}
	done.Store(1)
	other.Wait()
	require.Zero(t, again.Load(), "somebody destroyed it a second time")
	require.NoError(t, k.r.Verify())
}
