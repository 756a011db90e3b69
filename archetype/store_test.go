package archetype_test

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/check"
)

// pair is a store with components position (Temporal) and label (Volatile).
func pair(t testing.TB, ring int) (*archetype.Store, *archetype.Component, *archetype.Component) {
	s := archetype.NewSchema()
	p, err := s.Register(reflect.TypeFor[position](), archetype.Options{Tier: archetype.Temporal})
	require.NoError(t, err)
	l, err := s.Register(reflect.TypeFor[label](), archetype.Options{Tier: archetype.Volatile})
	require.NoError(t, err)
	return archetype.NewStore(s, ring), p, l
}

func TestArchetypesAreFoundAgain(t *testing.T) {
	store, p, l := pair(t, 0)
	sig := archetype.Signature{}.With(p.ID)
	a := store.Archetype(1, sig, "one", 0)
	require.Same(t, a, store.Archetype(1, sig, "one", 0))
	b := store.Archetype(2, sig, "two", 64)
	c := store.Archetype(1, sig.With(l.ID), "one", 0)
	require.Equal(t, []*archetype.Archetype{a, b, c}, store.Archetypes())
	require.Same(t, b, store.Find(2, sig))
	require.Nil(t, store.Find(3, sig))
	require.Equal(t, uint64(3), store.Version())

	require.Equal(t, 1, c.Class())
	require.Equal(t, "one", c.ClassName())
	require.Equal(t, sig.With(l.ID), c.Signature())
	require.Equal(t, []*archetype.Component{p, l}, c.Components())
	require.Equal(t, "one[archetype_test.position archetype_test.label]", c.String())
	require.Equal(t, archetype.DefaultSlots, c.Layout().Slots())
	require.Equal(t, []int{0, 1, 2, 3, -1}, []int{
		c.Column(p.ID), c.Column(l.ID), c.Column(archetype.ActiveID), c.Column(archetype.EntityID), c.Column(60000),
	})
	require.Equal(t, -1, a.Column(l.ID))
	require.Equal(t, 1, c.ColumnOf(archetype.FieldKey{Component: l.ID}))
	require.Equal(t, -1, c.ColumnOf(archetype.FieldKey{Component: l.ID, Field: 1}))

	require.Nil(t, a.Edge(l.ID, true))
	a.SetEdge(l.ID, true, c)
	require.Same(t, c, a.Edge(l.ID, true))
	require.Nil(t, a.Edge(l.ID, false))
	require.Nil(t, a.Edge(255, true))
	require.Panics(t, func() { a.SetEdge(archetype.ActiveID, true, c) })
	require.Panics(t, func() { store.Drop(a) }, "not the last")
	c.Take()
	require.Panics(t, func() { store.Drop(c) }, "has a chunk")
	c.Clear()
	store.Drop(c)
	require.Nil(t, a.Edge(l.ID, true))
	require.Nil(t, store.Find(1, sig.With(l.ID)))
	require.Panics(t, func() { store.Archetype(1, sig.With(77), "unknown", 0) })
	require.NoError(t, store.Verify())
}

func TestFirstChunkIsSmall(t *testing.T) {
	store, p, _ := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "small", 0)
	for range 3000 {
		a.Take()
	}
	var sizes []int
	bytes := 0
	for i, c := range a.Chunks() {
		require.Equal(t, i, c.Index())
		sizes = append(sizes, c.Slots())
		bytes += c.Layout().Bytes() / c.Layout().Chunks()
	}
	require.Equal(t, []int{128, 1024, 1024, 1024}, sizes)
	last := a.Chunks()[3].Layout()
	require.Equal(t, 2, last.Chunks())
	require.Equal(t, bytes+last.Bytes()/2, a.Bytes(), "the last chunk came with a place for another one")
	a.Clear()
	require.Zero(t, a.Bytes())
	c, _, _ := a.Take()
	require.Equal(t, 128, c.Slots())
	require.Zero(t, c.Base())
}

func TestTwoCounters(t *testing.T) {
	t.Run("archetype-4", func(t *testing.T) { // the part of it that is memory: deaths, then their reclaim
		store, p, _ := pair(t, 0)
		a := store.Archetype(0, archetype.Signature{}.With(p.ID), "counted", 64)
		spawn := func(n int) (slots []int) {
			for range n {
				c, slot, _ := a.Take()
				a.AddLive(1)
				slots = append(slots, c.Index()*64+int(slot))
			}
			return slots
		}
		spawn(100)
		a.AddLive(-40) // destroyed: slots 30 to 69 are tombstones
		require.Equal(t, []int{100, 60}, []int{a.Allocated(), a.Live()})
		require.Equal(t, 100, spawn(10)[0], "a tombstone's slot is not free")
		require.Equal(t, []int{110, 70}, []int{a.Allocated(), a.Live()})
		for i := 69; i >= 30; i-- {
			a.Reclaim(a.Chunks()[i/64], uint32(i%64))
		}
		require.Equal(t, []int{110, 70}, []int{a.Allocated(), a.Live()})
		for i, slot := range spawn(40) {
			require.Equal(t, 30+i, slot)
		}
		require.Equal(t, []int{110, 110}, []int{a.Allocated(), a.Live()})
		require.NoError(t, store.Verify())
	})
}

func TestCacheIndicesRunOut(t *testing.T) {
	store, p, _ := pair(t, 0)
	store.LimitCacheIndices(128)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "much", 64)
	for range 128 {
		c, _, _ := a.Take()
		require.NotNil(t, c)
	}
	c, _, _ := a.Take()
	require.Nil(t, c)
	require.Equal(t, 128, a.Allocated())
	a.Reclaim(a.Chunks()[0], 7)
	c, slot, _ := a.Take()
	require.Same(t, a.Chunks()[0], c)
	require.Equal(t, uint32(7), slot)
}

func TestAReleasedChunkIsOfNoUse(t *testing.T) {
	store, p, _ := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "gone", 64)
	c, slot, fresh := a.Take()
	require.Same(t, c, store.ChunkAt(63))
	require.Nil(t, store.ChunkAt(64))
	require.Equal(t, uint32(64), store.CacheCap())
	a.Untake(c, slot, fresh)
	require.Nil(t, store.ChunkAt(0))
	require.Zero(t, store.CacheCap())
	require.Zero(t, c.Slots())
	require.Panics(t, func() { c.SetBit(0) })
	require.Panics(t, func() { c.Cell(0, 0, 16) })
	require.Panics(t, func() { a.Reclaim(c, 0) })
	c.CommitBorn() // someone may still have it on a list
}

func TestOnlyTheWriteFrameIsWritten(t *testing.T) {
	for frame := range uint64(9) {
		store, p, l := pair(t, 8)
		store.SetWriteFrame(frame + 1)
		a := store.Archetype(0, archetype.Signature{}.With(p.ID).With(l.ID), "framed", 64)
		for range 80 {
			c, slot, _ := a.Take()
			*(*position)(c.Cell(0, slot, 16)) = position{1, 2}
			(*label)(c.Cell(1, slot, 16)).Text = "text"
			c.Entities()[slot] = 1
			c.SetBitAtomic(slot)
			require.NoError(t, store.Verify())
		}
		for slot := range uint32(40) {
			a.Reclaim(a.Chunks()[0], slot)
		}
		require.NoError(t, store.Verify(), "which looks at the other frames")
	}
}

func TestSlotsCostNoAllocation(t *testing.T) {
	store, p, l := pair(t, 8)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID).With(l.ID), "steady", 64)
	b := store.Archetype(0, archetype.Signature{}.With(p.ID), "steady", 64)
	for range 200 {
		a.Take()
		b.Take()
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for _, c := range a.Chunks() {
			for slot := range uint32(c.Allocated()) {
				a.Reclaim(store.ChunkAt(c.Base()+slot), slot)
			}
		}
		for range 200 {
			c, slot, _ := a.Take()
			c.SetBit(slot)
			b.CopyShared(b.Chunks()[0], 0, c, slot)
		}
		c, slot, fresh := b.Take()
		b.Untake(c, slot, fresh)
		store.Find(0, a.Signature())
		a.Layout().Lookup(archetype.FieldKey{Component: p.ID})
	}))
}

func TestVerifyFindsWhatIsBroken(t *testing.T) {
	for claim, corrupt := range map[string]func(a *archetype.Archetype, c *archetype.Chunk){
		"more live than allocated":       func(a *archetype.Archetype, _ *archetype.Chunk) { a.AddLive(1000) },
		"a negative count":               func(a *archetype.Archetype, _ *archetype.Chunk) { a.AddLive(-1) },
		"a value in a free cell":         func(_ *archetype.Archetype, c *archetype.Chunk) { *(*byte)(c.Cell(0, 3, 16)) = 1 },
		"a value in a free typed cell":   func(_ *archetype.Archetype, c *archetype.Chunk) { *(*string)(c.Cell(1, 3, 16)) = "x" },
		"a value beyond the high-water":  func(_ *archetype.Archetype, c *archetype.Chunk) { *(*byte)(c.Cell(0, 63, 16)) = 1 },
		"a handle in a free slot":        func(_ *archetype.Archetype, c *archetype.Chunk) { c.Entities()[3] = 1 },
		"an active free slot":            func(_ *archetype.Archetype, c *archetype.Chunk) { c.SetBit(3) },
		"an active slot never taken":     func(_ *archetype.Archetype, c *archetype.Chunk) { c.SetBit(50) },
		"a born free slot":               func(_ *archetype.Archetype, c *archetype.Chunk) { c.MarkBorn(3) },
		"a slot both active and born":    func(_ *archetype.Archetype, c *archetype.Chunk) { c.SetBit(4); c.MarkBorn(4) },
		"a hole without summary":         func(_ *archetype.Archetype, c *archetype.Chunk) { holes, _ := c.Corrupt(); holes[0] = 0 },
		"a hole that was never taken":    func(_ *archetype.Archetype, c *archetype.Chunk) { holes, _ := c.Corrupt(); holes[0] |= 1 << 60 },
		"a born slot without summary":    func(_ *archetype.Archetype, c *archetype.Chunk) { _, born := c.Corrupt(); born[0] = 2 },
		"a frame that is not written to": func(_ *archetype.Archetype, c *archetype.Chunk) { c.Frame(0, 2)[0] = 1 },
	} {
		store, p, l := pair(t, 8)
		a := store.Archetype(0, archetype.Signature{}.With(p.ID).With(l.ID), "broken", 64)
		for range 10 {
			a.Take()
		}
		a.Reclaim(a.Chunks()[0], 3)
		require.NoError(t, store.Verify())
		corrupt(a, a.Chunks()[0])
		require.ErrorContains(t, store.Verify(), "broken", claim)
	}
}

func TestReclaimTwiceIsReportedInDebugBuilds(t *testing.T) {
	store, p, _ := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "twice", 64)
	c, slot, _ := a.Take()
	a.Reclaim(c, slot)
	if check.Enabled {
		require.Panics(t, func() { a.Reclaim(c, slot) })
		require.Panics(t, func() { a.Reclaim(c, 60) })
	}
}

func Example() {
	type position struct{ X, Y float64 }
	schema := archetype.NewSchema()
	pos, err := schema.Register(reflect.TypeFor[position](), archetype.Options{Tier: archetype.Volatile})
	if err != nil {
		panic(err)
	}
	store := archetype.NewStore(schema, 0)
	arrows := store.Archetype(0, archetype.Signature{}.With(pos.ID), "Arrow", 64)

	for i := range 3 {
		chunk, slot, _ := arrows.Take()
		cell := chunk.Cell(arrows.Column(pos.ID), slot, unsafe.Sizeof(position{}))
		*(*position)(cell) = position{X: float64(i)}
		chunk.SetBit(slot)
		arrows.AddLive(1)
	}
	chunk := store.ChunkAt(1) // the chunk of cache index 1
	chunk.ClearBit(1)
	arrows.AddLive(-1)
	arrows.Reclaim(chunk, 1)
	fmt.Println("allocated", arrows.Allocated(), "live", arrows.Live())

	_, slot, fresh := arrows.Take()
	fmt.Println("slot", slot, "fresh", fresh)
	for key, f := range arrows.Layout().All() {
		fmt.Printf("%-3d %-8s %d frames, %d bytes apart\n", key.Component, f.Tier, f.FrameCount, f.FrameStride)
	}
	// Output:
	// allocated 3 live 2
	// slot 1 fresh false
	// 0   Volatile 3 frames, 1600 bytes apart
	// 256 Volatile 3 frames, 1600 bytes apart
	// 257 Volatile 3 frames, 1600 bytes apart
}
