package archetype_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
)

// newPlainStore is a store with an archetype of chunks of 64 slots.
func newPlainStore(t *testing.T, slots int) (*archetype.Store, *archetype.Archetype) {
	t.Helper()
	schema := archetype.NewSchema()
	p, err := schema.Register(reflect.TypeFor[position](), archetype.Options{})
	require.NoError(t, err)
	l, err := schema.Register(reflect.TypeFor[label](), archetype.Options{})
	require.NoError(t, err)
	store := archetype.NewStore(schema, 0)
	t.Cleanup(func() { require.NoError(t, store.Verify()) })
	return store, store.Archetype(0, archetype.Signature{}.With(p.ID).With(l.ID), "plain", slots)
}

// reclaim gives slots of a chunk back, in one run or one by one.
func reclaim(a *archetype.Archetype, c *archetype.Chunk, from, n uint32, run bool) {
	if run {
		a.ReclaimRun(c, from, n)
		return
	}
	for i := range n {
		a.Reclaim(c, from+i)
	}
}

func TestAChunkGoesWhenItStaysEmpty(t *testing.T) {
	for _, run := range []bool{false, true} {
		store, a := newPlainStore(t, 128)
		fill(a, 500)
		require.Len(t, a.Chunks(), 4)
		full := store.SlabBytes()
		middle := a.Chunks()[1]
		reclaim(a, middle, 0, 128, run)
		require.Zero(t, store.ReleaseEmptied(), "not at once")
		require.Equal(t, 1, store.ReleaseEmptied())
		require.Len(t, a.Chunks(), 3)
		require.Equal(t, 500-128, a.Allocated())
		require.Zero(t, store.ReleaseEmptied())
		require.NoError(t, store.Verify())

		// The memory serves again.
		fill(a, 128)
		require.NoError(t, store.Verify())
		require.LessOrEqual(t, store.SlabBytes(), full+a.Layout().Bytes(), "in a block with one place more")
		require.Equal(t, uint32(512), store.CacheCap())
	}
}

func TestAChunkThatIsUsedInBetweenStays(t *testing.T) {
	store, a := newPlainStore(t, 64)
	fill(a, 192)
	for range 5 {
		reclaim(a, a.Chunks()[1], 0, 64, true)
		require.Zero(t, store.ReleaseEmptied(), "empty, but it was not a pass ago")
		fill(a, 64)
	}
	reclaim(a, a.Chunks()[1], 0, 64, false)
	require.Zero(t, store.ReleaseEmptied())
	fill(a, 1)
	require.Zero(t, store.ReleaseEmptied())
	a.Reclaim(a.Chunks()[1], 0)
	require.Zero(t, store.ReleaseEmptied(), "empty again, and only since now")
	require.Equal(t, 1, store.ReleaseEmptied())
	require.Len(t, a.Chunks(), 2)
}

func TestTheLowestChunkStaysAndTheTailGoesWithTheRest(t *testing.T) {
	store, a := newPlainStore(t, 0)
	fill(a, 1) // so that the first chunk is a small one
	fill(a, 5000)
	require.Len(t, a.Chunks(), 6)
	for _, c := range a.Chunks() {
		reclaim(a, c, 0, uint32(c.Allocated()), true)
	}
	store.ReleaseEmptied()
	require.Equal(t, 5, store.ReleaseEmptied())
	require.Len(t, a.Chunks(), 1)
	require.Equal(t, 128, a.Allocated())
	fill(a, 129)
	require.Len(t, a.Chunks(), 2)
}

func TestSettleLeavesNothingEmptyAndNoHoleAtTheEnd(t *testing.T) {
	store, a := newPlainStore(t, 64)
	fill(a, 300)
	cs := append([]*archetype.Chunk{}, a.Chunks()...)
	reclaim(a, cs[0], 0, 64, true)
	reclaim(a, cs[2], 0, 64, true)
	reclaim(a, cs[3], 10, 54, true)
	reclaim(a, cs[4], 0, 44, true)
	require.Equal(t, 3, a.Settle())
	require.Equal(t, []*archetype.Chunk{cs[1], cs[3]}, a.Chunks())
	require.Equal(t, 74, a.Allocated())
	require.Equal(t, 10, cs[3].Allocated())
	require.Zero(t, a.Settle())
	require.NoError(t, store.Verify())
	fill(a, 55)
	require.Equal(t, 129, a.Allocated(), "fresh slots first fill the chunk that was the last")
	require.Len(t, a.Chunks(), 3)

	for _, c := range a.Chunks() {
		reclaim(a, c, 0, uint32(c.Allocated()), false)
	}
	require.Equal(t, 3, a.Settle())
	require.Zero(t, store.SlabBytes())
	require.Zero(t, a.Bytes())
	require.Zero(t, store.ReleaseEmptied(), "what was noted is gone")
}

func TestRepackEmptiesTheNewestBlock(t *testing.T) {
	store, a := newPlainStore(t, 64)
	fill(a, 64*40) // extents of 1, 1, 2, 4, 8, 16, and a last one of 32 with 8 chunks
	for i, c := range a.Chunks() {
		for slot := range uint32(64) {
			*(*position)(c.Cell(0, slot, 16)) = position{float64(i), float64(slot)}
			(*(*label)(c.Cell(1, slot, 16))).Text = "kept"
			c.Entities()[slot] = 1
		}
	}
	require.Empty(t, a.Surplus(nil), "everything is full")
	for _, i := range []int{3, 9, 10, 11, 12, 13, 14, 15} {
		reclaim(a, a.Chunks()[i], 0, 64, true)
	}
	require.Equal(t, 8, a.Settle())
	blocks := archetype.Blocks[position](store, a.Components()[0].ID) // Verify looks at them, too
	bytes := a.Bytes()
	surplus := a.Surplus(nil)
	require.Len(t, surplus, 8)
	for _, c := range surplus {
		base := c.Base()
		a.Repack(c)
		require.Equal(t, base, c.Base())
		require.Same(t, (*position)(c.Cell(0, 0, 16)), &(*blocks)[base>>6][0])
		require.NoError(t, store.Verify())
	}
	require.Less(t, a.Bytes(), bytes)
	for _, c := range a.Chunks() {
		first := (*position)(c.Cell(0, 0, 16)).X
		for slot := range uint32(64) {
			require.Equal(t, position{first, float64(slot)}, *(*position)(c.Cell(0, slot, 16)))
			require.Equal(t, "kept", (*label)(c.Cell(1, slot, 16)).Text)
		}
	}
	require.Panics(t, func() { a.Repack(a.Chunks()[0]) })
}

func TestRebaseTakesTheLowestRangeThatFits(t *testing.T) {
	store, a := newPlainStore(t, 64)
	fill(a, 64*4)
	reclaim(a, a.Chunks()[1], 0, 64, true)
	a.Settle()
	last := store.HighestChunk()
	require.Equal(t, uint32(192), last.Base())
	base, ok := store.LowerBase(last)
	require.True(t, ok)
	require.Equal(t, uint32(64), base)
	store.Rebase(last)
	require.Equal(t, uint32(64), last.Base())
	require.Equal(t, uint32(192), store.CacheCap())
	require.Same(t, last, store.ChunkAt(100))
	require.Nil(t, store.ChunkAt(200))
	require.NoError(t, store.Verify())
	_, ok = store.LowerBase(store.HighestChunk())
	require.False(t, ok)
}

func TestTakeSlotTakesWhatIsFree(t *testing.T) {
	store, a := newPlainStore(t, 64)
	fill(a, 70)
	first, last := a.Chunks()[0], a.Chunks()[1]
	a.Reclaim(first, 5)
	a.Reclaim(first, 7)
	a.TakeSlot(first, 7)
	require.Panics(t, func() { a.TakeSlot(first, 7) })
	require.Panics(t, func() { a.TakeSlot(last, 7) }, "beyond the mark")
	a.TakeSlot(last, 6)
	require.Equal(t, 71, a.Allocated())
	require.NoError(t, store.Verify())
	c, slot, _ := a.Take()
	require.Same(t, first, c)
	require.Equal(t, uint32(5), slot)
}

func TestMemoryOfOneKindServesAnother(t *testing.T) {
	store, a := newPlainStore(t, 0)
	b := store.Archetype(1, a.Signature(), "other", 0)
	fill(a, 1)
	fill(a, 100_000)
	peak := store.SlabBytes()
	for range 10 {
		for _, from := range []*archetype.Archetype{a, b} {
			to := a
			if from == a {
				to = b
			}
			for _, c := range from.Chunks() {
				reclaim(from, c, 0, uint32(c.Allocated()), true)
			}
			store.ReleaseEmptied()
			store.ReleaseEmptied()
			require.Len(t, from.Chunks(), 1)
			fill(to, 100_000)
			require.LessOrEqual(t, store.SlabBytes(), peak+peak/50)
		}
	}
}
