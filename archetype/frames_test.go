package archetype_test

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/check"
)

// frameCopy is a plain copy of a closed frame, as its readers see it.
type frameCopy struct {
	frame uint64
	dir   *archetype.Directory
	text  map[*archetype.Ref][]string // by column, then the stamps
}

// columnsOf spells out what a chunk shows: each column, the plane, the entity column, and the stamps.
func columnsOf(a *archetype.Archetype, c *archetype.Chunk) []string {
	var all []string
	for _, f := range c.Layout().All() {
		switch {
		case f.FrameCount == 1:
			all = append(all, "")
		case f.Pointers:
			var labels []string
			for slot := range uint32(c.Slots()) {
				labels = append(labels, (*label)(c.Cell(f.Slot, slot, f.ElementSize)).Text)
			}
			all = append(all, fmt.Sprintf("%q", labels))
		default:
			all = append(all, string(c.Bytes(f.Slot)))
		}
	}
	stamps := []uint64{c.StructureChangedAt()}
	for column := range c.Layout().Len() - 2 {
		stamps = append(stamps, c.ChangedAt(column))
	}
	return append(all, fmt.Sprint(c.Base(), c.Slots(), c.Index(), c.Archetype() == a, stamps))
}

// readable says which columns of a frame are still there: those of three frames, and those of the
// temporal ring.
func readable(a *archetype.Archetype, f archetype.FieldDescriptor, short, long bool) bool {
	if f.FrameCount == 3 || !a.Temporal() && f.FrameCount > 1 {
		return short
	}
	return long && f.FrameCount > 1
}

func copyFrame(s *archetype.Store) *frameCopy {
	k := &frameCopy{frame: s.Frame(), dir: s.Directory(), text: map[*archetype.Ref][]string{}}
	for i, a := range k.dir.Archetypes() {
		for j, ref := range k.dir.Chunks(i) {
			k.text[ref] = columnsOf(a, a.Chunks()[j]) // from the write frame, which was closed
		}
	}
	return k
}

// agree compares what is left of the frame with the copy.
func (k *frameCopy) agree(t require.TestingT, s *archetype.Store) {
	short, long := s.Holds(k.frame)
	var look archetype.Chunk
	places := 0
	for i, a := range k.dir.Archetypes() {
		for _, ref := range k.dir.Chunks(i) {
			if a.Temporal() && !long || !a.Temporal() && !short {
				continue
			}
			ref.Show(&look, k.frame)
			want, got := k.text[ref], columnsOf(a, &look)
			for _, f := range ref.Archetype().Layout().All() {
				if readable(a, f, short, long) && got[f.Slot] != want[f.Slot] {
					require.Failf(t, "a closed frame has changed", "frame %d in frame %d: chunk %d of %s, column %s", k.frame, s.Frame(), look.Index(), a, f.Type)
				}
			}
			require.Equal(t, want[len(want)-1], got[len(got)-1], "stamps of frame %d in frame %d", k.frame, s.Frame())
			require.Equal(t, look.Entities(), ref.Entities(k.frame))
			require.Equal(t, look.Active(), ref.Active(k.frame))
			for slot := range ref.Slots() {
				if at := k.dir.At(ref.Base() + uint32(slot)); at != ref {
					require.Failf(t, "place", "%d leads to %v", ref.Base()+uint32(slot), at)
				}
			}
			look.Conceal()
			places += ref.Slots()
		}
	}
	require.Nil(t, k.dir.At(1<<29))
}

// frameModel is a storeModel whose frames go on, beside copies of those that are kept.
type frameModel struct {
	*storeModel
	kept []*frameCopy
}

// check is what storeModel.check says of the living. Free slots of a chunk in which wide loops have
// written may hold anything, so they are left to Verify.
func (m *frameModel) check(t require.TestingT) {
	require.NoError(t, m.store.Verify())
	for _, s := range m.shelves {
		require.Equal(t, len(s.slots), s.a.Allocated())
		for i, e := range s.slots {
			if c, slot := s.at(i); e.number != 0 {
				m.expect(t, s, c, slot, e.number)
				require.Equal(t, e.active, c.Bit(slot))
			}
		}
	}
	for _, k := range m.kept {
		k.agree(t, m.store)
	}
}

// turn closes the frame, and goes on in another one, some steps further.
func (m *frameModel) turn(steps uint64) {
	m.store.Close()
	m.kept = append(m.kept, copyFrame(m.store))
	m.store.Advance(m.store.Frame()+steps, 1, nil)
	oldest := m.store.Frame()
	m.kept = slices.DeleteFunc(m.kept, func(k *frameCopy) bool {
		short, long := m.store.Holds(k.frame)
		return !short && !long
	})
	for _, k := range m.kept {
		oldest = min(oldest, k.frame)
	}
	m.store.Reap(oldest)
}

// regroup has the slots of the model follow chunks that fn gives back or shortens.
func (s *shelf) regroup(fn func()) {
	slots := map[uint64][]entity{}
	i := 0
	for _, c := range s.a.Chunks() {
		slots[c.ID()] = s.slots[i : i+c.Allocated()]
		i += c.Allocated()
	}
	fn()
	var now []entity
	for _, c := range s.a.Chunks() {
		now = append(now, slots[c.ID()][:c.Allocated()]...)
	}
	s.slots = now
}

func TestClosedFramesStayAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &frameModel{storeModel: newStoreModelOf(t, rapid.SampledFrom([]int{8, 8, 0}).Draw(t, "ring"), []int{64, 0}, [][]int{{0, 1, 2, 3}, {1, 2}})}
		pick := func(t *rapid.T) *shelf { return rapid.SampledFrom(m.shelves).Draw(t, "archetype") }
		pickSlot := func(t *rapid.T, s *shelf) int {
			all := s.living()
			if len(all) == 0 {
				t.Skip("nobody lives there")
			}
			return rapid.SampledFrom(all).Draw(t, "slot")
		}
		t.Repeat(map[string]func(*rapid.T){
			"turn": func(t *rapid.T) { m.turn(1) },
			"step over": func(t *rapid.T) { // three and eight steps are in place, in one ring or the other
				m.turn(uint64(rapid.IntRange(1, 24).Draw(t, "steps")))
			},
			"a frame is given back": func(t *rapid.T) {
				if len(m.kept) == 0 {
					t.Skip("there is none")
				}
				i := rapid.IntRange(0, len(m.kept)-1).Draw(t, "which")
				m.kept = slices.Delete(m.kept, i, i+1)
			},
			"take": func(t *rapid.T) {
				s := pick(t)
				for range rapid.IntRange(1, 150).Draw(t, "n") {
					m.take(t, s)
				}
			},
			"take back": func(t *rapid.T) {
				s := pick(t)
				i, fresh := m.take(t, s)
				s.remove(i, func(c *archetype.Chunk, slot uint32) { s.a.Untake(c, slot, fresh) })
				if fresh {
					s.slots = s.slots[:i]
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
			"write": func(t *rapid.T) {
				s := pick(t)
				i := pickSlot(t, s)
				c, slot := s.at(i)
				for column := range c.Layout().Len() - 2 {
					c.Mark(column)
				}
				m.next++
				s.slots[i].number = m.next
				c.Vacate(slot) // marks the entity column
				m.write(s, c, slot, m.next)
			},
			"write where nobody is": func(t *rapid.T) { // as a wide loop does
				s := pick(t)
				for i, e := range s.slots {
					c, slot := s.at(i)
					c.Soil()
					if x, y, _, o := m.cells(s, c, slot); e.number == 0 && x != nil {
						c.Mark(s.a.Column(m.comps[0].ID))
						c.Mark(s.a.Column(m.comps[0].ID) + 1)
						*x, *y = 1, 2
						if o != nil {
							*o = odd{1}
						}
					}
				}
			},
			"activate": func(t *rapid.T) {
				s := pick(t)
				i := pickSlot(t, s)
				c, slot := s.at(i)
				c.MarkActive()
				if s.slots[i].active = !c.Bit(slot); s.slots[i].active {
					c.SetBit(slot)
				} else {
					c.ClearBit(slot)
				}
			},
			"release": func(t *rapid.T) {
				var release func(int)
				release = func(i int) {
					if i == len(m.shelves) {
						m.store.ReleaseEmptied()
						return
					}
					m.shelves[i].regroup(func() { release(i + 1) })
				}
				release(0)
			},
			"settle": func(t *rapid.T) {
				s := pick(t)
				s.regroup(func() { s.a.Settle() })
			},
			"repack": func(t *rapid.T) {
				s := pick(t)
				for _, c := range s.a.Surplus(nil) {
					s.a.Repack(c)
				}
			},
			"rebase": func(t *rapid.T) {
				for _, c := range pick(t).a.Chunks() {
					if _, ok := m.store.LowerBase(c); ok {
						m.store.Rebase(c)
					}
				}
			},
			"clear": func(t *rapid.T) {
				s := pick(t)
				if rapid.IntRange(0, 4).Draw(t, "often") != 0 {
					t.Skip("not so often")
				}
				s.a.Clear()
				s.slots = nil
			},
			"": func(t *rapid.T) { m.check(t) },
		})
	})
}

// TestWhatWideLoopsLeftIsGone has a loop write where nobody is, and the chunk cleaned in a later frame: a
// slot that is taken when the ring has turned is zero.
func TestWhatWideLoopsLeftIsGone(t *testing.T) {
	store, p, l := pair(t, 0)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID).With(l.ID), "wide", 64)
	a.Take()
	c, slot, _ := a.Take()
	a.Reclaim(c, 0)
	c.Soil()
	for column := range 2 {
		c.Mark(column)
	}
	(*position)(c.Cell(0, 0, 16)).X = 5
	(*label)(c.Cell(1, 0, 16)).Text = "dirt"
	require.EqualValues(t, 1, slot)
	store.Turn()
	a.Settle()
	for range 10 {
		require.NoError(t, store.Verify())
		store.Turn()
		_, slot, _ = a.Take()
		require.EqualValues(t, 0, slot)
		require.Zero(t, *(*position)(c.Cell(0, 0, 16)))
		require.Zero(t, *(*label)(c.Cell(1, 0, 16)))
		a.Reclaim(c, 0)
	}
}

// TestWrittenOnce is the case archetype-8.
func TestWrittenOnce(t *testing.T) {
	for _, ring := range []int{0, 8} {
		for _, n := range []int{3, max(ring, 3)} {
			for _, every := range []int{1 << 20, 1, n - 1, n, n + 1} {
				t.Run(fmt.Sprintf("archetype-8/ring=%d/every=%d", ring, every), func(t *testing.T) {
					store, p, l := pair(t, ring)
					a := store.Archetype(0, archetype.Signature{}.With(p.ID).With(l.ID), "written", 64)
					c, slot, _ := a.Take()
					c.Entities()[slot] = 7
					value := 0
					for frame := range 3*n + 1 {
						if frame%every == 0 {
							value = frame + 1
							c.Mark(a.Column(p.ID))
							c.Mark(a.Column(l.ID))
							(*position)(c.Cell(a.Column(p.ID), slot, 16)).X = float64(value)
							(*label)(c.Cell(a.Column(l.ID), slot, 16)).Text = fmt.Sprint(value)
						}
						for range 2 { // before the frame ends, and in the next one
							require.Equal(t, float64(value), (*position)(c.Cell(a.Column(p.ID), slot, 16)).X)
							require.Equal(t, fmt.Sprint(value), (*label)(c.Cell(a.Column(l.ID), slot, 16)).Text)
							require.EqualValues(t, 7, c.Entities()[slot])
							require.NoError(t, store.Verify())
							store.Turn()
						}
						// The second turn was one in which nothing was written.
					}
				})
			}
		}
	}
}

// TestLateWritesAreFound writes into buffers of closed frames, and into a Cold column that is not marked.
func TestLateWritesAreFound(t *testing.T) {
	s := archetype.NewSchema()
	var comps []*archetype.Component
	sig := archetype.Signature{}
	for tier, typ := range []reflect.Type{reflect.TypeFor[[2]int32](), reflect.TypeFor[[3]int32](), reflect.TypeFor[position]()} {
		c, err := s.Register(typ, archetype.Options{Tier: archetype.Tier(tier), Split: typ.Kind() == reflect.Struct})
		require.NoError(t, err)
		comps, sig = append(comps, c), sig.With(c.ID)
	}
	for _, ring := range []int{0, 8} {
		store := archetype.NewStore(s, ring)
		a := store.Archetype(0, sig, "late", 64)
		for range 70 {
			a.Take()
		}
		c := a.Chunks()[1]
		cell := func(comp int, frame uint64) *byte { // of slot 5
			column := a.Column(comps[comp].ID)
			f := c.Layout().Slots()
			return &c.Frame(column, frame)[5*len(c.Frame(column, frame))/f]
		}
		found := func(want ...archetype.LateWrite) {
			t.Helper()
			store.Turn()
			if !check.Enabled {
				want = nil
			}
			require.Equal(t, want, store.LateWrites())
		}
		written := func(comp int, frame uint64) archetype.LateWrite {
			return archetype.LateWrite{Archetype: a, Component: comps[comp], Place: 64 + 5, Frame: frame}
		}
		found()
		for range 10 {
			now := store.Frame()
			for comp := range comps { // in the write frame
				column := a.Column(comps[comp].ID)
				c.Mark(column)
				*cell(comp, now) = byte(now)
			}
			found()
			found()
			found()
		}
		require.NoError(t, store.Verify())
		now := store.Frame()
		*cell(1, now-1)++
		*cell(2, now-2)++
		found(written(1, now-1), written(2, now-2))
		found()
		for comp := range comps { // in the buffers that were written, too
			c.Mark(a.Column(comps[comp].ID))
		}
		now = store.Frame()
		for range 2 * max(ring, 3) {
			found()
		}
		require.NoError(t, store.Verify(), "what was written late is gone")
		*cell(0, 0)++
		found(written(0, now))
		found()
		*cell(0, 0)++ // but somebody else has a right to
		c.Mark(a.Column(comps[0].ID))
		found()
	}
}

// wide has many large columns, so that Advance spreads them.
func wide(t testing.TB, n int) (*archetype.Store, *archetype.Archetype) {
	s := archetype.NewSchema()
	p, err := s.Register(reflect.TypeFor[position](), archetype.Options{Tier: archetype.Temporal})
	require.NoError(t, err)
	store := archetype.NewStore(s, 8)
	a := store.Archetype(0, archetype.Signature{}.With(p.ID), "wide", 0)
	for i := range n {
		c, slot, _ := a.Take()
		(*position)(c.Cell(0, slot, 16)).X = float64(i)
	}
	return store, a
}

func TestWorkersCopyTheSame(t *testing.T) {
	store, a := wide(t, 100_000)
	calls := 0
	spread := func(n int, run func(int)) {
		calls++
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() { run(i) })
		}
		group.Wait()
	}
	for range 20 {
		for _, c := range a.Chunks() {
			c.Mark(0)
			for slot := range uint32(c.Allocated()) {
				(*position)(c.Cell(0, slot, 16)).Y++
			}
		}
		store.Close()
		store.Advance(store.Frame()+1, 3, spread)
		require.NoError(t, store.Verify())
	}
	require.Equal(t, 20, calls)
	i := 0
	for _, c := range a.Chunks() {
		for slot := range uint32(c.Allocated()) {
			require.Equal(t, position{float64(i), 20}, *(*position)(c.Cell(0, slot, 16)))
			i++
		}
	}
	alone := func(n int, run func(int)) {
		for i := range n {
			run(i)
		}
	}
	require.Zero(t, testing.AllocsPerRun(20, func() {
		for _, c := range a.Chunks() {
			c.Mark(0)
		}
		store.Close()
		store.Advance(store.Frame()+1, 3, alone)
	}), "a steady frame")
}

func TestChunksArePointedAtTheWriteFrame(t *testing.T) {
	const cold, volatile, temporal = archetype.Cold, archetype.Volatile, archetype.Temporal
	for _, ring := range []int{0, 1, 3, 5} {
		for _, tiers := range [][]archetype.Tier{{cold}, {volatile}, {temporal}, {cold, volatile}, {cold, temporal}, {volatile, temporal}, {cold, volatile, temporal}} {
			s := archetype.NewSchema()
			var sig archetype.Signature
			for i, tier := range tiers {
				c, err := s.Register(arrayType(i+16), archetype.Options{Tier: tier})
				require.NoError(t, err)
				sig = sig.With(c.ID)
			}
			store := archetype.NewStore(s, ring)
			a := store.Archetype(0, sig, "pointed", 64)
			for frame := range 16 {
				fill(a, 64*(frame/4))
				for _, c := range a.Chunks() {
					for key, f := range c.Layout().All() {
						at := unsafe.Pointer(&c.Frame(f.Slot, store.Frame())[0])
						require.Equal(t, at, c.Column(f.Slot), "tiers %v, ring %d, column %s", tiers, ring, key)
					}
					require.Equal(t, c.Column(0), c.Columns16()[0], "the first has 16 bytes")
					require.Equal(t, unsafe.Pointer(&c.Entities()[0]), c.Column(c.Layout().Len()-1))
				}
				require.NoError(t, store.Verify())
				store.Turn()
			}
		}
	}
}
