package archetype_test

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
)

// fill takes n slots, so few at a time that blocks grow as they do for single ones.
func fill(a *archetype.Archetype, n int) {
	for n > 0 {
		_, _, count, _ := a.TakeRun(min(n, 64))
		n -= int(count)
	}
}

func TestExtentsGrowWithTheirArchetype(t *testing.T) {
	for _, c := range []struct {
		name         string
		tier         archetype.Tier
		slots, taken int // of a chunk; in all
		places       []int
		chunksOfLast int
	}{
		{"default", archetype.Cold, 0, 128 + 1024*1030 + 1, []int{1, 1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 256, 256, 256}, 7},
		{"smallest", archetype.Cold, 64, 64 * 600, []int{1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 256}, 88},
		{"one chunk", archetype.Cold, 4096, 10, []int{1}, 1},
		{"bounded by bytes", archetype.Temporal, 4096, 4096 * 20, []int{1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := archetype.NewSchema()
			p, err := schema.Register(reflect.TypeFor[position](), archetype.Options{Tier: c.tier})
			require.NoError(t, err)
			store := archetype.NewStore(schema, 64)
			a := store.Archetype(0, archetype.Signature{}.With(p.ID), "grown", c.slots)
			need := 0
			for taken := 0; taken < c.taken; {
				n := min(c.taken-taken, 64)
				if taken == 0 {
					n = 1 // so that the first chunk is a small one
				}
				ch, slot, count, _ := a.TakeRun(n)
				taken += int(count)
				if slot == 0 {
					need += ch.Layout().Bytes() / ch.Layout().Chunks()
					require.LessOrEqual(t, a.Bytes(), 2*need, "%d chunks", len(a.Chunks()))
				}
			}
			places, chunks := a.Extents()
			require.Equal(t, c.places, places)
			require.Equal(t, c.chunksOfLast, chunks[len(chunks)-1])
			require.Equal(t, a.Bytes(), store.SlabBytes())
			a.Clear()
			require.Zero(t, store.SlabBytes())
			require.Zero(t, a.Bytes())
			require.NoError(t, store.Verify())
		})
	}
}

func TestColumnsOfAnExtentLieEndToEnd(t *testing.T) {
	for frame := uint64(1); frame < 10; frame++ {
		store, p, l := pair(t, 8)
		store.SetWriteFrame(frame)
		a := store.Archetype(0, archetype.Signature{}.With(p.ID).With(l.ID), "row", 128)
		fill(a, 128*16)
		chunks := a.Chunks()
		for i, c := range chunks {
			extent, place := c.Place()
			layout := c.Layout()
			require.Equal(t, 128, layout.Slots())
			for key, f := range layout.All() {
				if key.Component != l.ID {
					offset := f.Offset + uintptr(frame%uint64(f.FrameCount))*f.FrameStride
					part := uintptr(len(c.Frame(f.Slot, frame)))
					zeroth := unsafe.Add(c.Column(f.Slot), -int(offset+uintptr(place)*part))
					require.Zero(t, uintptr(zeroth)%64, "the formula leads back to the block")
				}
				require.Equal(t, c.Column(f.Slot), unsafe.Pointer(&c.Frame(f.Slot, frame)[0]))
				if place > 0 && key.Component != l.ID {
					before := chunks[i-1]
					e, q := before.Place()
					require.Equal(t, []int{extent, place - 1}, []int{e, q})
					require.Equal(t, before.Base()+128, c.Base())
					for k := range uint64(f.FrameCount) {
						first := before.Frame(f.Slot, k)
						require.Equal(t, unsafe.Add(unsafe.Pointer(&first[0]), len(first)), unsafe.Pointer(&c.Frame(f.Slot, k)[0]))
					}
				}
			}
		}
		require.NoError(t, store.Verify())
	}
}

func TestABatchHasItsRoomInFewBlocks(t *testing.T) {
	for _, c := range []struct {
		n      int
		places []int
	}{
		{1024, []int{1}},
		{1024 * 2, []int{1, 1}},
		{1024 * 4, []int{1, 2, 2}},
		{1024 * 32, []int{1, 16, 16}},
		{1024*33 + 1, []int{1, 32, 32}},
		{1024 * 1000, []int{1, 256, 256, 256, 256}},
	} {
		schema := archetype.NewSchema()
		p, err := schema.Register(reflect.TypeFor[position](), archetype.Options{})
		require.NoError(t, err)
		store := archetype.NewStore(schema, 0)
		a := store.Archetype(0, archetype.Signature{}.With(p.ID), "batch", 0)
		for n := c.n; n > 0; {
			_, _, count, _ := a.TakeRun(n)
			n -= int(count)
		}
		places, _ := a.Extents()
		require.Equal(t, c.places, places, "%d", c.n)
		need := 0
		for _, ch := range a.Chunks() {
			need += ch.Layout().Bytes() / ch.Layout().Chunks()
		}
		require.LessOrEqual(t, a.Bytes(), 2*need)
		require.NoError(t, store.Verify())
	}
}

func TestAVacantPlaceIsTakenFirst(t *testing.T) {
	store, p, _ := pair(t, 8)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "middle", 64)
	fill(a, 64*12) // extents of 1, 1, 2, 4 and 8 places, of which 4 are in use
	bytes := a.Bytes()
	released := a.Chunks()[5]
	base := released.Base()
	extent, place := released.Place()
	require.Equal(t, []int{3, 1}, []int{extent, place})
	for range 8 {
		released.Mark(0)
		*(*byte)(released.Cell(0, 0, 16)) = 7
		store.Turn()
	}
	column := released.Column(0)
	a.ReclaimRun(released, 0, 64)
	a.ReleaseChunk(5)
	store.Reap(store.Frame() - 1)
	require.NoError(t, store.Verify(), "readers may still have it")
	store.Reap(store.Frame())
	require.Equal(t, bytes, a.Bytes())
	require.NoError(t, store.Verify(), "which looks at vacant places")

	fill(a, 1)
	again := a.Chunks()[11]
	require.Equal(t, []any{column, base}, []any{again.Column(0), again.Base()})
	require.NotSame(t, released, again)
	require.Zero(t, released.Slots(), "the old chunk stays of no use")
	require.NoError(t, store.Verify())

	for range 2 { // the extent of two places
		a.ReclaimRun(a.Chunks()[2], 0, 64)
		a.ReleaseChunk(2)
	}
	store.Reap(store.Frame())
	places, _ := a.Extents()
	require.Equal(t, []int{1, 1, 4, 8}, places)
	require.Less(t, a.Bytes(), bytes)
	require.NoError(t, store.Verify())
}

func TestUndoLeavesNoExtent(t *testing.T) {
	store, p, l := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID).With(l.ID), "undone", 64)
	fill(a, 64*4)
	bytes, slab := a.Bytes(), store.SlabBytes()
	for range 3 {
		type taken struct {
			c    *archetype.Chunk
			slot uint32
		}
		var all []taken
		for range 64*5 + 1 { // beyond the extent of four
			c, slot, _ := a.Take()
			*(*position)(c.Cell(0, slot, 16)) = position{1, 2}
			all = append(all, taken{c, slot})
		}
		require.Greater(t, a.Bytes(), bytes)
		for i := len(all) - 1; i >= 0; i-- {
			a.Untake(all[i].c, all[i].slot, true)
		}
		require.Equal(t, []int{bytes, slab}, []int{a.Bytes(), store.SlabBytes()})
		require.NoError(t, store.Verify())
	}
}

func TestVerifyFindsBrokenExtents(t *testing.T) {
	store, p, _ := pair(t, 8)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "broken", 64)
	fill(a, 64*5)
	b := a.VacantByte()
	*b = 1
	require.ErrorContains(t, store.Verify(), "vacant")
	*b = 0
	require.NoError(t, store.Verify())
	layout := a.Chunks()[4].Layout()
	require.Equal(t, 4, layout.Chunks())
	plane, _ := layout.Lookup(archetype.FieldKey{Component: archetype.ActiveID})
	words := unsafe.Slice((*uint64)(a.Chunks()[4].Column(plane.Slot)), 8)
	words[7] = 1 // four chunks have a word each, and the frame a whole line
	require.ErrorContains(t, store.Verify(), "beyond its end")
	words[7] = 0
	require.NoError(t, store.Verify())
}

// TestChunksComeAndGoInAnyOrder keeps a number in every slot, and looks whether it stays.
func TestChunksComeAndGoInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newStoreModel(t)
		numbers := map[*archetype.Archetype]map[uint32]int{} // by cache index
		for _, s := range m.shelves {
			numbers[s.a] = map[uint32]int{}
		}
		pick := func(t *rapid.T) *shelf { return rapid.SampledFrom(m.shelves).Draw(t, "archetype") }
		t.Repeat(map[string]func(*rapid.T){
			"grow": func(t *rapid.T) {
				s := pick(t)
				for n := rapid.IntRange(1, 1000).Draw(t, "n"); n > 0; {
					c, slot, count, _ := s.a.TakeRun(n)
					for k := slot; k < slot+count; k++ {
						m.expect(t, s, c, k, 0)
						m.next++
						m.write(s, c, k, m.next)
						numbers[s.a][c.Base()+k] = m.next
					}
					n -= int(count)
				}
			},
			"release": func(t *rapid.T) {
				s := pick(t)
				if len(s.a.Chunks()) == 0 {
					t.Skip("no chunk")
				}
				i := rapid.IntRange(0, len(s.a.Chunks())-1).Draw(t, "chunk")
				c := s.a.Chunks()[i]
				extent, _ := c.Place()
				_, chunks := s.a.Extents()
				for slot := range uint32(c.Allocated()) {
					if n := numbers[s.a][c.Base()+slot]; n != 0 {
						s.a.Reclaim(c, slot)
						delete(numbers[s.a], c.Base()+slot)
					}
				}
				bytes := s.a.Bytes()
				s.a.ReleaseChunk(i)
				_, after := s.a.Extents()
				require.Equal(t, chunks[extent] == 1, len(after) < len(chunks), "the extent lives as long as it has chunks")
				require.GreaterOrEqual(t, bytes, s.a.Bytes())
				require.Zero(t, c.Slots())
			},
			"reclaim": func(t *rapid.T) {
				s := pick(t)
				for place := range numbers[s.a] { // any
					c := m.store.ChunkAt(place)
					s.a.Reclaim(c, place-c.Base())
					delete(numbers[s.a], place)
					break
				}
			},
			"clear": func(t *rapid.T) {
				s := pick(t)
				if rapid.IntRange(0, 9).Draw(t, "often") == 0 {
					s.a.Clear()
					clear(numbers[s.a])
				}
			},
			"": func(t *rapid.T) {
				require.NoError(t, m.store.Verify())
				for _, s := range m.shelves {
					for _, c := range s.a.Chunks() {
						for slot := range uint32(c.Allocated()) {
							m.expect(t, s, c, slot, numbers[s.a][c.Base()+slot])
						}
					}
				}
			},
		})
	})
}

func TestALayoutOfManyChunksIsThatOfALargeOne(t *testing.T) {
	s := archetype.NewSchema()
	var comps []*archetype.Component
	for i, tier := range []archetype.Tier{archetype.Cold, archetype.Volatile, archetype.Temporal} {
		c, err := s.Register(arrayType(5+i), archetype.Options{Tier: tier})
		require.NoError(t, err)
		comps = append(comps, c)
	}
	store := archetype.NewStore(s, 8)
	var sig archetype.Signature
	for _, c := range comps {
		sig = sig.With(c.ID)
	}
	a := store.Archetype(0, sig, "many", 192)
	fill(a, 192*8)
	for _, c := range a.Chunks() {
		l := c.Layout()
		want := archetype.NewLayout(comps, 192*l.Chunks(), 8)
		require.Equal(t, want.Bytes(), l.Bytes())
		for key, f := range l.All() {
			g, _ := want.Lookup(key)
			require.Equal(t, g, f, fmt.Sprint(key))
		}
	}
}
