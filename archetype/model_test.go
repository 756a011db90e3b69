package archetype_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// The components of the model's archetypes. Every entity has a number, and each of its cells
// is made from that number.
type (
	position struct{ X, Y float64 }
	label    struct{ Text string }
	odd      [7]byte
	marker   struct{}
)

// entity is what the model knows of a slot.
type entity struct {
	number int // 0: a hole
	active bool
	born   bool
}

// shelf is the model of an archetype: its slots in order, those that were ever taken.
type shelf struct {
	a     *archetype.Archetype
	slots []entity
}

type storeModel struct {
	store   *archetype.Store
	comps   []*archetype.Component // position, label, odd, marker
	shelves []*shelf
	next    int
}

func newStoreModel(t require.TestingT) *storeModel {
	return newStoreModelOf(t, 8, []int{64, 128, 0}, [][]int{{0, 1, 2, 3}, {0, 2}, {1}, {}})
}

// newStoreModelOf has an archetype for each size of chunks and each set of components.
func newStoreModelOf(t require.TestingT, temporalFrames int, sizes []int, sets [][]int) *storeModel {
	s := archetype.NewSchema()
	m := &storeModel{store: archetype.NewStore(s, temporalFrames)}
	register := func(typ reflect.Type, o archetype.Options) {
		c, err := s.Register(typ, o)
		require.NoError(t, err)
		m.comps = append(m.comps, c)
	}
	register(reflect.TypeFor[position](), archetype.Options{Tier: archetype.Temporal, Split: true})
	register(reflect.TypeFor[label](), archetype.Options{Tier: archetype.Volatile})
	register(reflect.TypeFor[odd](), archetype.Options{})
	register(reflect.TypeFor[marker](), archetype.Options{})
	for class, slots := range sizes {
		for _, with := range sets {
			m.shelf(class, slots, with)
		}
	}
	return m
}

func (m *storeModel) shelf(class, slots int, with []int) *shelf {
	var sig archetype.Signature
	for _, i := range with {
		sig = sig.With(m.comps[i].ID)
	}
	a := m.store.Archetype(class, sig, fmt.Sprint("class", class), slots)
	s := &shelf{a: a}
	m.shelves = append(m.shelves, s)
	return s
}

// at finds the chunk and slot of a slot's number in the archetype.
func (s *shelf) at(i int) (*archetype.Chunk, uint32) {
	for _, c := range s.a.Chunks() {
		if i < c.Slots() {
			return c, uint32(i)
		}
		i -= c.Slots()
	}
	panic("beyond the last chunk")
}

// cells are pointers to the cells of a slot, those the archetype has.
func (m *storeModel) cells(s *shelf, c *archetype.Chunk, slot uint32) (x, y *float64, l *label, o *odd) {
	if col := s.a.Column(m.comps[0].ID); col >= 0 {
		x, y = (*float64)(c.Cell(col, slot, 8)), (*float64)(c.Cell(col+1, slot, 8))
	}
	if col := s.a.Column(m.comps[1].ID); col >= 0 {
		l = (*label)(c.Cell(col, slot, 16))
	}
	if col := s.a.Column(m.comps[2].ID); col >= 0 {
		o = (*odd)(c.Cell(col, slot, 7))
	}
	return x, y, l, o
}

func (m *storeModel) write(s *shelf, c *archetype.Chunk, slot uint32, n int) {
	x, y, l, o := m.cells(s, c, slot)
	if x != nil {
		*x, *y = float64(n), -float64(n)
	}
	if l != nil {
		l.Text = fmt.Sprint("entity ", n)
	}
	if o != nil {
		*o = odd{byte(n), 1, 2, 3, 4, 5, byte(n >> 8)}
	}
	c.Entities()[slot] = handles.Local(n)
}

// expect checks a slot against the cells of entity n; n 0 wants zeros.
func (m *storeModel) expect(t require.TestingT, s *shelf, c *archetype.Chunk, slot uint32, n int) {
	x, y, l, o := m.cells(s, c, slot)
	if x != nil && (*x != float64(n) || *y != -float64(n)) {
		require.Failf(t, "position", "%v, %v in a slot of entity %d", *x, *y, n)
	}
	want, wantOdd := "", odd{}
	if n != 0 {
		want, wantOdd = fmt.Sprint("entity ", n), odd{byte(n), 1, 2, 3, 4, 5, byte(n >> 8)}
	}
	if l != nil && l.Text != want {
		require.Failf(t, "label", "%q in a slot of entity %d", l.Text, n)
	}
	if o != nil && *o != wantOdd {
		require.Failf(t, "odd", "%v in a slot of entity %d", *o, n)
	}
	if h := c.Entities()[slot]; h != handles.Local(n) {
		require.Failf(t, "handle", "%v in a slot of entity %d", h, n)
	}
}

// take takes a slot and checks that it is the lowest one and empty.
func (m *storeModel) take(t require.TestingT, s *shelf) (i int, fresh bool) {
	i = slices.IndexFunc(s.slots, func(e entity) bool { return e.number == 0 })
	if fresh = i < 0; fresh {
		i = len(s.slots)
		s.slots = append(s.slots, entity{})
	}
	c, slot, gotFresh := s.a.Take()
	wantChunk, wantSlot := s.at(i)
	require.Same(t, wantChunk, c)
	require.Equal(t, wantSlot, slot)
	require.Equal(t, fresh, gotFresh)
	m.expect(t, s, c, slot, 0)
	require.False(t, c.Bit(slot) || c.Born(slot))

	m.next++
	m.write(s, c, slot, m.next)
	s.slots[i] = entity{number: m.next}
	s.a.AddLive(1)
	return i, fresh
}

// remove does what the model does to a slot when it is given back.
func (s *shelf) remove(i int, untake func(*archetype.Chunk, uint32)) {
	c, slot := s.at(i)
	s.slots[i] = entity{}
	s.a.AddLive(-1)
	untake(c, slot)
}

// living are the numbers of the slots in use.
func (s *shelf) living() []int {
	var all []int
	for i, e := range s.slots {
		if e.number != 0 {
			all = append(all, i)
		}
	}
	return all
}

func (m *storeModel) check(t require.TestingT) {
	require.NoError(t, m.store.Verify())
	places := map[uint32]int{}
	for _, s := range m.shelves {
		require.Equal(t, len(s.slots), s.a.Allocated())
		require.Equal(t, len(s.living()), s.a.Live())
		bytes := 0
		for _, c := range s.a.Chunks() {
			bytes += c.Layout().Bytes() / c.Layout().Chunks()
		}
		require.GreaterOrEqual(t, s.a.Bytes(), bytes)
		i := 0
		for _, c := range s.a.Chunks() {
			for slot := range uint32(c.Allocated()) {
				e := s.slots[i]
				i++
				m.expect(t, s, c, slot, e.number)
				if c.Bit(slot) != e.active || c.Born(slot) != e.born {
					require.Failf(t, "bits", "slot %d: active %t, born %t, want %+v", i-1, c.Bit(slot), c.Born(slot), e)
				}
				place := c.Base() + slot
				if other := places[place]; other != 0 {
					require.Failf(t, "places", "cache index %d is that of entities %d and %d", place, other, e.number)
				}
				places[place] = max(e.number, 1)
				if m.store.ChunkAt(place) != c || place >= m.store.CacheCap() {
					require.Failf(t, "places", "cache index %d does not lead to its chunk", place)
				}
			}
		}
		require.Equal(t, len(s.slots), i)
	}
}

// signature of everything that undo must bring back.
func (m *storeModel) state() string {
	text := fmt.Sprint(m.store.CacheCap(), len(m.store.Archetypes()))
	for _, s := range m.shelves {
		text += fmt.Sprint(" ", s.a.Allocated(), s.a.Live(), len(s.a.Chunks()), s.a.Bytes(), s.slots)
	}
	return text
}

func TestSlotsAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newStoreModel(t)
		pick := func(t *rapid.T) *shelf { return rapid.SampledFrom(m.shelves).Draw(t, "archetype") }
		pickSlot := func(t *rapid.T, s *shelf) int {
			all := s.living()
			if len(all) == 0 {
				t.Skip("nobody lives there")
			}
			return rapid.SampledFrom(all).Draw(t, "slot")
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				s := pick(t)
				for range rapid.IntRange(1, 150).Draw(t, "n") {
					m.take(t, s)
				}
			},
			"reclaim": func(t *rapid.T) {
				s := pick(t)
				for range rapid.IntRange(1, 100).Draw(t, "n") {
					s.remove(pickSlot(t, s), s.a.Reclaim)
				}
			},
			"empty": func(t *rapid.T) {
				s := pick(t)
				for _, i := range s.living() {
					s.remove(i, s.a.Reclaim)
				}
			},
			"activate": func(t *rapid.T) {
				s := pick(t)
				i := pickSlot(t, s)
				c, slot := s.at(i)
				e := &s.slots[i]
				switch rapid.IntRange(0, 3).Draw(t, "how") {
				case 0:
					c.ClearBorn(slot)
					c.SetBit(slot)
					e.active, e.born = true, false
				case 1:
					c.SetBitAtomic(slot)
					c.ClearBorn(slot)
					e.active, e.born = true, false
				case 2:
					c.ClearBit(slot)
					first := !c.AnyBorn()
					require.Equal(t, first, c.MarkBorn(slot))
					e.active, e.born = false, true
				case 3:
					c.ClearBitAtomic(slot)
					c.ClearBorn(slot)
					e.active, e.born = false, false
				}
			},
			"commit": func(t *rapid.T) {
				s := pick(t)
				for _, c := range s.a.Chunks() {
					c.CommitBorn()
					require.False(t, c.AnyBorn())
				}
				for i := range s.slots {
					e := &s.slots[i]
					e.active, e.born = e.active || e.born, false
				}
			},
			"undo": func(t *rapid.T) {
				before := m.state()
				type step struct {
					s     *shelf
					i     int
					fresh bool
				}
				var steps []step
				for range rapid.IntRange(1, 4).Draw(t, "runs") {
					s := pick(t)
					for range rapid.IntRange(1, 100).Draw(t, "n") {
						i, fresh := m.take(t, s)
						steps = append(steps, step{s, i, fresh})
					}
				}
				keep := rapid.IntRange(0, 3).Draw(t, "keep") == 0
				left := -1
				if keep {
					left = rapid.IntRange(0, len(steps)-1).Draw(t, "left")
				}
				for k := len(steps) - 1; k >= 0; k-- {
					if st := steps[k]; k != left {
						st.s.remove(st.i, func(c *archetype.Chunk, slot uint32) {
							st.s.a.Untake(c, slot, st.fresh)
						})
						if st.fresh && st.i == len(st.s.slots)-1 {
							st.s.slots = st.s.slots[:st.i]
						}
					}
				}
				if !keep {
					require.Equal(t, before, m.state())
				}
			},
			"move": func(t *rapid.T) {
				from, to := pick(t), pick(t)
				if from == to {
					t.Skip("nowhere to go")
				}
				i := pickSlot(t, from)
				src, sslot := from.at(i)
				n := from.slots[i].number
				j, _ := m.take(t, to)
				dst, dslot := to.at(j)
				before := m.next
				to.a.CopyShared(dst, dslot, src, sslot)
				// What both have is the mover's, the rest the new slot's own.
				x, _, l, o := m.cells(to, dst, dslot)
				if sx, _, _, _ := m.cells(from, src, sslot); x != nil {
					want := before
					if sx != nil {
						want = n
					}
					require.Equal(t, float64(want), *x)
				}
				if _, _, sl, _ := m.cells(from, src, sslot); l != nil {
					want := before
					if sl != nil {
						want = n
					}
					require.Equal(t, fmt.Sprint("entity ", want), l.Text)
				}
				if _, _, _, so := m.cells(from, src, sslot); o != nil && so != nil {
					require.Equal(t, *so, *o)
				}
				m.write(to, dst, dslot, n)
				to.slots[j].number = n
				from.remove(i, from.a.Reclaim)
			},
			"clear": func(t *rapid.T) {
				s := pick(t)
				if rapid.IntRange(0, 4).Draw(t, "often") != 0 {
					t.Skip("not so often")
				}
				s.a.Clear()
				s.slots = nil
				require.Empty(t, s.a.Chunks())
				require.Zero(t, s.a.Bytes())
			},
			"drop": func(t *rapid.T) {
				before, version := m.state(), m.store.Version()
				s := m.shelf(99, 64, []int{0, 3})
				require.NotEqual(t, version, m.store.Version())
				version = m.store.Version()
				m.shelves[0].a.SetEdge(m.comps[1].ID, false, s.a)
				i, fresh := m.take(t, s)
				s.remove(i, func(c *archetype.Chunk, slot uint32) { s.a.Untake(c, slot, fresh) })
				m.store.Drop(s.a)
				require.Nil(t, m.shelves[0].a.Edge(m.comps[1].ID, false))
				require.NotEqual(t, version, m.store.Version())
				m.shelves = m.shelves[:len(m.shelves)-1]
				require.Equal(t, before, m.state())
			},
			"": func(t *rapid.T) { m.check(t) },
		})
	})
}
