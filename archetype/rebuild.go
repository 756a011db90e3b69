package archetype

import (
	"cmp"
	"fmt"
	"math/bits"
	"reflect"
	"slices"
	"unsafe"
)

// State is what there is to know of an archetype's storage beside the cells and the entity column: which slots
// there are and which of them are in use. A store that is built of such states hands out the same slots
// and the same cache indices as the one that they are of, from then on.
//
// Not in it is where in memory all of that is, which nobody can tell.
type State struct {
	Pooled     int          // how many slots a pooled archetype has, 0 for an ordinary one
	LargeFirst bool         // a first chunk made now would be a regular one, see TakeRun
	Chunks     []ChunkState // in order
}

// ChunkState is what there is to know of a chunk.
type ChunkState struct {
	Base      uint32     // cache index of slot 0
	Slots     int        // how many it has
	Allocated int        // slots from here on were never taken
	Emptied   EmptyState // whether it is about to be given back
	Holes     []uint64   // slots that are free again, a bit each, 64 to a word
	Active    []uint64   // the Active plane, with those who are active when the loops that are open end
}

// EmptyState says whether a chunk was noted as empty, see ReleaseEmptied.
type EmptyState uint8

// What ReleaseEmptied will make of a chunk that is empty then.
const (
	NotEmptied   EmptyState = iota // it stays
	EmptiedNow                     // it goes the time after
	EmptiedLater                   // it goes, unless it is noted once more
)

// States are the states of all archetypes, in the order of their creation.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: the states.
func (s *Store) States() []State {
	noted := make(map[*Chunk]EmptyState, len(s.emptied))
	for _, e := range s.emptied {
		switch c := e.chunk; {
		case c.extent == nil || c.emptyPass != e.pass || c.index == 0:
		case e.pass == s.pass:
			noted[c] = EmptiedNow
		default:
			noted[c] = EmptiedLater
		}
	}
	states := make([]State, len(s.list))
	for i, a := range s.list {
		st := &states[i]
		st.LargeFirst, st.Pooled = a.largeFirst, a.pooledSlots
		st.Chunks = make([]ChunkState, len(a.chunks))
		for k, c := range a.chunks {
			words := make([]uint64, 2*len(c.holes))
			holes, active := words[:len(c.holes):len(c.holes)], words[len(c.holes):]
			copy(holes, c.holes)
			for w := range active {
				active[w] = c.active[w] | c.born[w]
			}
			st.Chunks[k] = ChunkState{
				Base: c.base, Slots: c.Slots(), Allocated: c.Allocated(), Emptied: noted[c], Holes: holes, Active: active,
			}
		}
	}
	return states
}

// Taken says which of the 64 slots of a word are in use.
//
// Concurrency: the caller keeps the state. Allocates: no.
func (c *ChunkState) Taken(w int) uint64 { return lowBits(c.Allocated-w<<6) &^ c.Holes[w] }

// lowBits has the lowest n bits set, of 64.
func lowBits(n int) uint64 {
	if n < 64 {
		return 1<<max(n, 0) - 1
	}
	return ^uint64(0)
}

// Reclaim makes in the state of a chunk, the index-th of its archetype, what Archetype.Reclaim makes in
// the chunk.
//
// Concurrency: the caller keeps the state. Allocates: no.
func (c *ChunkState) Reclaim(index int, slot uint32) {
	w := int(slot >> 6)
	c.Holes[w] |= 1 << (slot & 63)
	c.Active[w] &^= 1 << (slot & 63)
	if c.Holes[w] == ^uint64(0) && index != 0 && c.free() == c.Allocated {
		c.Emptied = EmptiedNow
	}
}

// free is how many slots are holes.
func (c *ChunkState) free() (n int) {
	for _, word := range c.Holes {
		n += bits.OnesCount64(word)
	}
	return n
}

// Check says whether an archetype whose class has chunks of that many slots, 0 for those of the default
// size, could be in the state.
//
// Errors: one that says what is wrong.
// Concurrency: the caller keeps the state. Allocates: for an error.
func (s *State) Check(slotsPerChunk int) error {
	slots, first := slotsPerChunk, slotsPerChunk
	if slotsPerChunk == 0 {
		slots, first = DefaultSlots, firstSlots
	}
	if s.Pooled != 0 {
		if s.Pooled < 0 || s.Pooled > cacheIndices {
			return fmt.Errorf("archetype: a pool of %d slots", s.Pooled)
		}
		return s.checkPooled(slots, s.Pooled)
	}
	if s.LargeFirst && len(s.Chunks) == 0 {
		return fmt.Errorf("archetype: a large first chunk, and there is none")
	}
	for i := range s.Chunks {
		c := &s.Chunks[i]
		if c.Slots != slots && (i > 0 || c.Slots != first) {
			return fmt.Errorf("archetype: chunk %d of %d slots, chunks of the class have %d", i, c.Slots, slots)
		}
		if err := c.check(i == len(s.Chunks)-1); err != nil {
			return fmt.Errorf("archetype: chunk %d: %w", i, err)
		}
		if i == 0 && c.Emptied != NotEmptied || c.Emptied > EmptiedLater {
			return fmt.Errorf("archetype: chunk %d is about to be given back in way %d", i, c.Emptied)
		}
	}
	return nil
}

// check is Check for one chunk of that many slots.
func (c *ChunkState) check(last bool) error {
	words := c.Slots / 64
	switch {
	case len(c.Holes) != words || len(c.Active) != words:
		return fmt.Errorf("%d words of holes and %d of the plane, for %d slots", len(c.Holes), len(c.Active), c.Slots)
	case c.Base%64 != 0 || uint64(c.Base)+uint64(c.Slots) > cacheIndices:
		return fmt.Errorf("%d slots from cache index %d", c.Slots, c.Base)
	case c.Allocated < 1 || c.Allocated > c.Slots || !last && c.Allocated != c.Slots:
		return fmt.Errorf("%d of %d slots were taken", c.Allocated, c.Slots)
	}
	for w := range words {
		if c.Holes[w]&^lowBits(c.Allocated-w<<6) != 0 {
			return fmt.Errorf("word %d: holes %#x among slots never taken", w, c.Holes[w])
		}
		if c.Active[w]&^c.Taken(w) != 0 {
			return fmt.Errorf("word %d: %#x active, but not taken", w, c.Active[w]&^c.Taken(w))
		}
	}
	return nil
}

// CheckApart says whether the chunks of several archetypes, which Check has found right, have
// cache indices of their own.
//
// Errors: one that names the first that two of them have.
// Concurrency: the caller keeps the states. Allocates: a list of the chunks.
func CheckApart(states []*State) error {
	var all []span
	for _, s := range states {
		for i := range s.Chunks {
			lo := uint64(s.Chunks[i].Base)
			all = append(all, span{lo, lo + uint64(s.Chunks[i].Slots)})
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	for i := 1; i < len(all); i++ {
		if all[i].lo < all[i-1].hi {
			return fmt.Errorf("archetype: two chunks have cache index %d", all[i].lo)
		}
	}
	return nil
}

// Rebuild makes the chunks of an archetype that has none, as a state has them, planes included, in a store in which
// nobody has their cache indices. Cells and the entity column are zero, and for the caller to fill in.
//
// Panics: if the archetype has chunks, or a state that Check or CheckApart has something against.
// Concurrency: window holder; never waits. Allocates: chunks.
func (a *Archetype) Rebuild(st State) {
	s := a.store
	if len(a.chunks) != 0 {
		panic(fmt.Sprintf("archetype: rebuild of %s, which has %d chunks", a, len(a.chunks)))
	}
	for i := range st.Chunks {
		cs := &st.Chunks[i]
		// A first chunk of regular size may be one that was the second, whatever is made next.
		a.largeFirst = i > 0 && st.LargeFirst || i == 0 && cs.Slots == a.layout.slots
		s.cache.takeAt(uint64(cs.Base), uint64(cs.Slots))
		c := a.addChunk(cs.Base)
		s.enter(c)
		a.chunks = append(a.chunks, c)
		a.bytes += int(c.layout.typed)
		a.allocated += cs.Allocated
		c.allocated, c.touched = uint32(cs.Allocated), s.frame
		copy(c.holes, cs.Holes)
		copy(c.active, cs.Active)
		for w, holes := range c.holes {
			if holes != 0 {
				c.holeWords |= 1 << w
			}
		}
		if cs.Emptied != NotEmptied && !s.keep {
			c.emptyPass = s.pass
			if cs.Emptied == EmptiedLater {
				c.emptyPass-- // any other pass
			}
			s.emptied = append(s.emptied, emptied{c, c.emptyPass})
		}
	}
	a.largeFirst = st.LargeFirst
	a.reindex()
	a.reshape()
}

// LoadComponent copies the component of a slot into the value that p points to, its columns if it is
// split. The archetype has the component.
//
// Panics: if p is no pointer to the component's type.
// Concurrency: who may read the cells; never waits. Allocates: no.
func (c *Chunk) LoadComponent(comp *Component, slot uint32, p reflect.Value) {
	to, column := addressOf(comp, p), c.archetype.Column(comp.ID)
	for i := range comp.Fields {
		f := &comp.Fields[i]
		// Sound: a field of the value that p points to, and a cell of the same type.
		f.Cell.Copy(unsafe.Add(to, f.Offset), c.Cell(column+i, slot, f.Size))
	}
}

// StoreComponent copies the value that p points to into the component of a slot, the inverse of
// LoadComponent.
//
// Panics: if p is no pointer to the component's type.
// Concurrency: who may write the cells; never waits. Allocates: no.
func (c *Chunk) StoreComponent(comp *Component, slot uint32, p reflect.Value) {
	from, column := addressOf(comp, p), c.archetype.Column(comp.ID)
	for i := range comp.Fields {
		f := &comp.Fields[i]
		f.Cell.Copy(c.Cell(column+i, slot, f.Size), unsafe.Add(from, f.Offset)) // as in LoadComponent
	}
}

// addressOf is where the value is that p points to.
func addressOf(comp *Component, p reflect.Value) unsafe.Pointer {
	if p.Kind() != reflect.Pointer || p.Type().Elem() != comp.Type {
		panic(fmt.Sprintf("archetype: a value of component %s in a %s", comp.Name, p.Type()))
	}
	return p.UnsafePointer()
}
