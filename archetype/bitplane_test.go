package archetype_test

import (
	"math/bits"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
)

// threeWords is a chunk with 192 active slots.
func threeWords(t testing.TB) *archetype.Chunk {
	store := archetype.NewStore(archetype.NewSchema(), 0)
	a := store.Archetype(0, archetype.Signature{}, "words", 192)
	for range 192 {
		c, slot, _ := a.Take()
		c.SetBit(slot)
	}
	t.Cleanup(func() { require.NoError(t, store.Verify()) })
	return a.Chunks()[0]
}

// The plane's part of the case: no bit of a word is lost or comes back, whoever else is at it.
func TestBitsOfOneWordAreClearedByManyAtOnce(t *testing.T) {
	t.Run("archetype-7", func(t *testing.T) {
		for _, workers := range []int{2, runtime.GOMAXPROCS(0), 16, 100} {
			c := threeWords(t)
			var all sync.WaitGroup
			for w := range workers {
				all.Go(func() {
					for i := range uint32(128) { // all of the middle word twice, each from another end
						slot := 64 + (i+uint32(w))%64
						c.ClearBitAtomic(slot)
						if c.Bit(slot) {
							t.Errorf("slot %d is active again", slot)
						}
						if !c.Bit(63) || !c.Bit(128) {
							t.Error("a slot of the words beside it is lost")
						}
					}
				})
			}
			all.Wait()
			require.Equal(t, []uint64{^uint64(0), 0, ^uint64(0)}, c.Active())
		}
	})
}

func TestBitsOfOneWordAreSetAndClearedAtOnce(t *testing.T) {
	c := threeWords(t)
	var all sync.WaitGroup
	for w := range uint32(64) {
		all.Go(func() {
			for range 101 { // an odd number: everyone ends with his own bit clear, or set if even
				c.ClearBitAtomic(64 + w)
				if w%2 == 0 {
					c.SetBitAtomic(64 + w)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, uint64(0x5555_5555_5555_5555), c.Active()[1])
	require.Equal(t, 32, bits.OnesCount64(c.Active()[1]))
}

func TestBornSlotsBecomeActiveTogether(t *testing.T) {
	c := threeWords(t)
	for _, slot := range []uint32{0, 70, 71, 191} {
		c.ClearBit(slot)
	}
	require.False(t, c.AnyBorn())
	require.True(t, c.MarkBorn(191))
	require.False(t, c.MarkBorn(70))
	require.False(t, c.MarkBorn(71))
	c.ClearBorn(70)
	c.ClearBorn(0) // was not marked
	require.True(t, c.AnyBorn())
	require.True(t, c.Born(71))
	require.False(t, c.Born(70))
	require.False(t, c.Bit(71))
	c.CommitBorn()
	require.False(t, c.AnyBorn())
	for slot, want := range map[uint32]bool{0: false, 70: false, 71: true, 191: true, 190: true} {
		require.Equal(t, want, c.Bit(slot), slot)
		require.False(t, c.Born(slot))
	}
}
