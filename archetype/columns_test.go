package archetype_test

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
)

type (
	splitOuter struct {
		Inner struct {
			Grid [3]int16
			Name string
			Deep struct{ X float64 }
		}
		List [2][]int
	}
	huge   [65537]byte
	lookup map[string]int
	three  [3]byte
)

// row is one value of every component, made from a number.
type row struct {
	small
	huge huge // apart: too large to compare by reflection
}

type small struct {
	split splitOuter
	one   [1]byte
	three three
	seven odd
	text  string
	look  lookup
}

func makeRow(n int) row {
	r := row{small: small{one: [1]byte{byte(n)}, three: three{byte(n), 2, byte(n)}, seven: odd{0: byte(n), 6: byte(n)}}}
	r.split.Inner.Grid = [3]int16{int16(n), -1, int16(-n)}
	r.split.Inner.Name = fmt.Sprint("name ", n)
	r.split.Inner.Deep.X = float64(n) / 3
	r.split.List = [2][]int{{n, n + 1}, {n + 2}}
	r.huge[0], r.huge[65536] = byte(n), byte(n+1)
	r.text = fmt.Sprint("text ", n)
	r.look = lookup{fmt.Sprint(n): n}
	return r
}

// table moves rows between values and chunks as the registry does.
type table struct{ comps []*archetype.Component }

func (tb *table) each(r *row, c *archetype.Chunk, slot uint32, move func(f *archetype.Field, cell, value unsafe.Pointer)) {
	values := []unsafe.Pointer{
		unsafe.Pointer(&r.split), unsafe.Pointer(&r.one), unsafe.Pointer(&r.three), unsafe.Pointer(&r.seven),
		unsafe.Pointer(&r.huge), unsafe.Pointer(&r.text), unsafe.Pointer(&r.look),
	}
	for i, comp := range tb.comps {
		for k := range comp.Fields {
			f := &comp.Fields[k]
			if column := c.Archetype().ColumnOf(f.Key); column >= 0 {
				move(f, c.Cell(column, slot, f.Size), unsafe.Add(values[i], f.Offset))
			}
		}
	}
}

func (tb *table) write(r row, c *archetype.Chunk, slot uint32) {
	tb.each(&r, c, slot, func(f *archetype.Field, cell, value unsafe.Pointer) { f.Cell.Copy(cell, value) })
}

func (tb *table) read(t *testing.T, c *archetype.Chunk, slot uint32) (r row) {
	tb.each(&r, c, slot, func(f *archetype.Field, cell, value unsafe.Pointer) {
		require.Zero(t, uintptr(cell)%f.Align, "%s is not aligned", f.Type)
		f.Cell.Copy(value, cell)
	})
	return r
}

func TestEveryShapeReadsBackItsOwn(t *testing.T) {
	t.Run("archetype-5", func(t *testing.T) {
		s := archetype.NewSchema()
		tb := &table{}
		for _, typ := range []reflect.Type{
			reflect.TypeFor[splitOuter](), reflect.TypeFor[[1]byte](), reflect.TypeFor[three](), reflect.TypeFor[odd](),
			reflect.TypeFor[huge](), reflect.TypeFor[string](), reflect.TypeFor[lookup](), reflect.TypeFor[marker](),
		} {
			c, err := s.Register(typ, archetype.Options{Split: typ == reflect.TypeFor[splitOuter](), Tier: archetype.Tier(len(tb.comps) % 2)})
			require.NoError(t, err)
			tb.comps = append(tb.comps, c)
		}
		store := archetype.NewStore(s, 8)
		t.Cleanup(func() { require.NoError(t, store.Verify()) })
		var all archetype.Signature
		for _, c := range tb.comps[:7] {
			all = all.With(c.ID)
		}
		a := store.Archetype(0, all, "rows", 64)
		b := store.Archetype(0, all.With(tb.comps[7].ID), "rows", 64) // and a tag
		less := store.Archetype(0, all.Without(tb.comps[4].ID), "rows", 64)
		require.True(t, b.Has(tb.comps[7].ID))
		require.False(t, a.Has(tb.comps[7].ID))
		require.False(t, a.Has(archetype.ActiveID))

		want := map[uint32]row{}
		for n := range 65 { // one more than a chunk has
			c, slot, _ := a.Take()
			tb.write(makeRow(n), c, slot)
			want[c.Base()+slot] = makeRow(n)
		}
		look := func() {
			t.Helper()
			runtime.GC()
			for place, r := range want {
				c := store.ChunkAt(place)
				got := tb.read(t, c, place-c.Base())
				require.True(t, r.huge == got.huge, "the huge cell at %d", place)
				require.True(t, reflect.DeepEqual(r.small, got.small), "the row at %d", place)
			}
		}
		look()

		c := store.ChunkAt(32)
		tb.write(makeRow(1000), c, 32)
		want[32] = makeRow(1000)
		look()

		// A row moves to the archetype with a tag more, and its slot is given back.
		nc, nslot, _ := b.Take()
		b.CopyShared(nc, nslot, c, 32)
		a.Reclaim(c, 32)
		want[nc.Base()+nslot] = want[32]
		delete(want, 32)
		look()
		require.True(t, reflect.DeepEqual(row{}.small, tb.read(t, c, 32).small))
		require.True(t, tb.read(t, c, 32).huge == huge{})

		// And to one that lacks a component, where the rest arrives.
		lc, lslot, _ := less.Take()
		less.CopyShared(lc, lslot, nc, nslot)
		delete(want, nc.Base()+nslot)
		b.Untake(nc, nslot, true)
		r := makeRow(1000)
		r.huge = huge{}
		want[lc.Base()+lslot] = r
		require.Empty(t, b.Chunks())
		look()
	})
}

func TestAReclaimedSlotPinsNothing(t *testing.T) {
	s := archetype.NewSchema()
	comp, err := s.Register(reflect.TypeFor[*[64]byte](), archetype.Options{Tier: archetype.Volatile})
	require.NoError(t, err)
	store := archetype.NewStore(s, 0)
	a := store.Archetype(0, archetype.Signature{}.With(comp.ID), "pin", 64)
	gone := make(chan int, 3)
	take := func(n int) (*archetype.Chunk, uint32) {
		c, slot, _ := a.Take()
		p := new([64]byte)
		runtime.AddCleanup(p, func(n int) { gone <- n }, n)
		comp.Fields[0].Cell.Copy(c.Cell(a.Column(comp.ID), slot, 8), unsafe.Pointer(&p))
		return c, slot
	}
	c, first := take(1)
	_, second := take(2)
	take(3)
	runtime.GC()
	require.Empty(t, gone)

	a.Reclaim(c, first)
	runtime.GC()
	require.Equal(t, 1, <-gone)
	a.Reclaim(c, second)
	a.Clear()
	runtime.GC()
	require.ElementsMatch(t, []int{2, 3}, []int{<-gone, <-gone})
	runtime.KeepAlive(store)
}
