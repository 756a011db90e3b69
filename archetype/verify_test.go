package archetype_test

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
)

// broken is a store for Faults, some frames old.
func broken(t *testing.T) *archetype.Store {
	store, p, l := pair(t, 8)
	sig := archetype.Signature{}.With(p.ID)
	a := store.Archetype(0, sig, "whole", 64)
	fill(a, 64*4+10)
	for _, at := range [][2]int{{1, 5}, {1, 63}, {3, 0}} {
		c := a.Chunks()[at[0]]
		a.Untake(c, uint32(at[1]), false)
	}
	require.NotNil(t, store.Pool(1, sig.With(l.ID), "pool", 64, 100, 1))
	for range 12 {
		store.Turn()
	}
	return store
}

func TestVerifyFindsEveryFaultOfAStore(t *testing.T) {
	require.NoError(t, broken(t).Verify())
	for _, fault := range slices.Sorted(maps.Keys(broken(t).Faults())) {
		s := broken(t)
		f := s.Faults()[fault]
		f.Break()
		assert.ErrorContains(t, s.Verify(), f.Says, fault)
	}
}

func TestAPoolWithoutIndicesInARowIsNone(t *testing.T) {
	store, p, _ := pair(t, 0)
	store.LimitCacheIndices(192)
	sig := archetype.Signature{}.With(p.ID)
	require.Nil(t, store.Pool(0, sig, "large", 64, 193, 1))
	require.Empty(t, store.Archetypes(), "nothing of it is left")
	a := store.Archetype(0, sig, "between", 64)
	fill(a, 64*3)
	a.Untake(a.Chunks()[1], 3, false)
	require.Nil(t, store.Pool(0, sig, "none left", 64, 1, 1))
	require.Len(t, store.Archetypes(), 1)
}

func TestAComponentHasSoManyLeavesWhenSplit(t *testing.T) {
	s := archetype.NewSchema()
	many := func(n int, of reflect.Type) reflect.Type {
		fields := make([]reflect.StructField, n)
		for i := range fields {
			fields[i] = reflect.StructField{Name: fmt.Sprint("F", i), Type: of}
		}
		return reflect.StructOf(fields)
	}
	more := many(257, many(256, reflect.TypeFor[int8]()))
	_, err := s.Register(more, archetype.Options{Split: true})
	require.ErrorContains(t, err, "has 65792 leaf fields, a split component may have 65536")
	require.Zero(t, s.Len())
	_, err = s.Register(more, archetype.Options{})
	require.NoError(t, err, "whole it is but large")
}

func TestColumnsAreListedUntilItIsEnough(t *testing.T) {
	store, p, l := pair(t, 0)
	layout := store.Archetype(0, archetype.Signature{}.With(p.ID).With(l.ID), "listed", 64).Layout()
	var keys []archetype.FieldKey
	for key, f := range layout.All() {
		again, ok := layout.Lookup(key)
		require.True(t, ok)
		require.Equal(t, f.Slot, again.Slot)
		if keys = append(keys, key); len(keys) == 2 {
			break
		}
	}
	require.Len(t, keys, 2)
	require.Equal(t, p.ID, keys[0].Component)
}

// TestAStateForgetsWhoeverIsReclaimed makes in a state what Reclaim makes in a chunk, to the last one.
func TestAStateForgetsWhoeverIsReclaimed(t *testing.T) {
	store, p, _ := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "states", 64)
	fill(a, 64*2+40)
	state := store.States()[0]
	for i, c := range a.Chunks() {
		for slot := range uint32(c.Allocated()) {
			a.Reclaim(c, slot)
			state.Chunks[i].Reclaim(i, slot)
			require.Equal(t, store.States()[0], state, "chunk %d, slot %d", i, slot)
			require.NoError(t, state.Check(64))
		}
	}
	require.Equal(t, archetype.NotEmptied, state.Chunks[0].Emptied, "the first one stays")
	require.NoError(t, store.Verify())
}

func TestWhatHasChunksIsNotRebuilt(t *testing.T) {
	store, p, _ := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "full", 64)
	fill(a, 3)
	state := store.States()[0]
	require.PanicsWithValue(t, "archetype: rebuild of "+a.String()+", which has 1 chunks", func() { a.Rebuild(state) })
	require.NoError(t, store.Verify())
}

func TestKeptChunksAreNotSettled(t *testing.T) {
	store, p, _ := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "kept", 64)
	fill(a, 64*3)
	store.Keep(true)
	store.Keep(true)
	for _, c := range a.Chunks() {
		for slot := range uint32(c.Slots()) {
			a.Reclaim(c, slot)
		}
	}
	require.Zero(t, a.Settle())
	require.Len(t, a.Chunks(), 3)
	require.NoError(t, store.Verify())
	store.Keep(false)
	require.Equal(t, 3, a.Settle())
	require.Empty(t, a.Chunks())
	require.NoError(t, store.Verify())
}

func TestAPoolsStateIsLookedAtWordByWord(t *testing.T) {
	store, p, _ := pair(t, 0)
	store.Pool(0, archetype.Signature{}.With(p.ID), "pool", 64, 100, 1)
	for want, change := range map[string]func(c *archetype.ChunkState){
		"words of holes": func(c *archetype.ChunkState) { c.Holes = nil },
		"active, but not taken": func(c *archetype.ChunkState) {
			c.Active[0] = 1 << 40
		},
		"holes 0x8000000000 among slots never taken": func(c *archetype.ChunkState) { c.Holes[0] = 1 << 39 },
		"of a pool has holes":                        func(c *archetype.ChunkState) { c.Holes[0] = 1 },
		"has 35 of 64 slots":                         func(c *archetype.ChunkState) { c.Allocated-- },
	} {
		state := store.States()[0]
		require.NoError(t, state.Check(64))
		change(&state.Chunks[1])
		require.ErrorContains(t, state.Check(64), want)
	}
}

// TestCellsOfEverySize are copied whole, and zero when a slot is handed out again.
func TestCellsOfEverySize(t *testing.T) {
	s := archetype.NewSchema()
	sig := archetype.Signature{}
	for _, of := range []reflect.Type{
		reflect.TypeFor[struct{}](), reflect.TypeFor[byte](), reflect.TypeFor[[3]byte](), reflect.TypeFor[float32](), reflect.TypeFor[int64](),
		reflect.TypeFor[[3]float32](), reflect.TypeFor[[2]float64](), reflect.TypeFor[[3]float64](), reflect.TypeFor[[65]byte](),
	} {
		c, err := s.Register(of, archetype.Options{})
		require.NoError(t, err)
		sig = sig.With(c.ID)
	}
	store := archetype.NewStore(s, 0)
	a := store.Archetype(0, sig, "sizes", 64)
	fill(a, 3)
	c := a.Chunks()[0]
	cells := func(slot int) (all []byte) { // of all columns
		for i := range c.Layout().Len() - 2 {
			size := len(c.Bytes(i)) / 64
			all = append(all, c.Bytes(i)[slot*size:][:size]...)
		}
		return all
	}
	want := func(slot int, with byte) {
		t.Helper()
		all := cells(slot)
		require.Len(t, all, 1+3+4+8+12+16+24+65)
		require.Equal(t, bytes.Repeat([]byte{with}, len(all)), all, "slot %d", slot)
	}
	for slot := range 3 {
		for i := range c.Layout().Len() - 2 {
			size := len(c.Bytes(i)) / 64
			copy(c.Bytes(i)[slot*size:], bytes.Repeat([]byte{byte(0xa0 + slot)}, size))
		}
	}
	a.Reclaim(c, 1)
	want(1, 0)
	require.NoError(t, store.Verify())
	a.TakeSlot(c, 1)
	a.CopySlots([]archetype.SlotMove{{From: c, FromSlot: 2, To: c, ToSlot: 1}})
	for slot, with := range []byte{0xa0, 0xa2, 0xa2} {
		want(slot, with)
	}
	for slot := range uint32(3) {
		a.Reclaim(c, slot)
	}
	require.NoError(t, store.Verify())
}
