package archetype

import (
	"unsafe"

	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// What compaction is made of. Nothing here knows who lives in a slot: words, handles and
// subscribers are package registry's.

// SlotMove is an entity's way from one slot of an archetype to another one of the same archetype.
type SlotMove struct {
	From, To         *Chunk
	FromSlot, ToSlot uint32
}

// TakeSlot hands out a slot of the caller's choice, a hole or the one at the high-water mark of the
// last chunk, as Take does.
//
// Panics: if the slot is in use, or lies beyond the mark.
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (a *Archetype) TakeSlot(c *Chunk, slot uint32) {
	switch {
	case slot < c.allocated && c.holes[slot>>6]>>(slot&63)&1 != 0:
		a.closeHole(c, slot)
		if c.soiled != 0 {
			a.wipe(c, slot, 1)
		}
	case slot == c.allocated && c == a.tail && int(slot) < len(c.entities):
		c.allocated++
		a.allocated++
	default:
		panic("archetype: TakeSlot of a slot that is not free")
	}
	c.touched = *c.now
}

// CopySlots copies the cells of the moves, column by column. Handles and bits are the caller's.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (a *Archetype) CopySlots(moves []SlotMove) {
	for i := range a.cells {
		cell := &a.cells[i]
		switch cell.kind {
		case kind4:
			copyCells[[4]byte](i, moves)
		case kind8:
			copyCells[[8]byte](i, moves)
		case kind16:
			copyCells[[16]byte](i, moves)
		default:
			for k := range moves {
				m := &moves[k]
				if planted.Enabled && planted.Is(planted.MovedColumnLost) && k > 0 {
					continue
				}
				cell.Copy(m.To.Cell(i, m.ToSlot, cell.size), m.From.Cell(i, m.FromSlot, cell.size))
			}
		}
	}
}

// copyCells copies pointer-free cells of a size that is known: sound as Copier.Copy is.
func copyCells[T any](column int, moves []SlotMove) {
	size := unsafe.Sizeof(*new(T))
	for k := range moves {
		m := &moves[k]
		*(*T)(m.To.Cell(column, m.ToSlot, size)) = *(*T)(m.From.Cell(column, m.FromSlot, size))
	}
}

// Surplus is the chunks of the newest extent, if there is room for them at vacant places of older
// ones: moved there with Repack, they leave a whole block of the slab empty. Otherwise it is
// empty. The caller keeps buf, which the answer is appended to.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: for buf's growth.
func (a *Archetype) Surplus(buf []*Chunk) []*Chunk {
	last := len(a.extents) - 1
	if last < 1 {
		return buf
	}
	e, room := a.extents[last], 0
	for _, older := range a.extents[:last] {
		if older.layout.slots == e.layout.slots {
			room += older.vacant()
		}
	}
	if room < e.chunks {
		return buf
	}
	for _, c := range a.chunks {
		if c.extent == e {
			buf = append(buf, c)
		}
	}
	return buf
}

// Repack moves the memory of a chunk of the newest extent to the lowest vacant place of an older
// one, all frames of it. Cache indices stay. Pointers into the chunk's columns are no good any more.
//
// Panics: if Surplus did not name the chunk.
// Concurrency: the registry's owner with no workers about and no loop open; never waits.
// Allocates: no.
func (a *Archetype) Repack(c *Chunk) {
	e := a.roomFor(c)
	place := e.used.lowestOutside()
	e.used.flip(place)
	e.chunks++
	a.vacant--

	old := *c
	c.extent, c.place, c.layout = e, place, e.layout
	for i := range e.layout.fields {
		f := &e.layout.fields[i]
		if f.Pointers {
			continue // memory of its own
		}
		c.bases[i] = e.column(i, place)
		from, to := &old.layout.fields[i], f
		for frame := range uintptr(f.FrameCount) {
			// Sound: the parts of the same column, of the same length, in two different blocks.
			copyBytes(unsafe.Add(c.bases[i], frame*to.FrameStride),
				unsafe.Add(old.extent.column(i, old.place), frame*from.FrameStride), e.layout.parts[i])
		}
	}
	c.tabulate()
	c.resolve(a.store)
	a.store.mapEntered(c)
	c.touched = *c.now
	a.reshape()
	if c.made == a.store.frame {
		old.extent.clear(old.place)
		a.vacatePlace(old.extent, old.place)
	} else {
		a.store.bury(a, old.extent, old.place)
	}
}

func (a *Archetype) roomFor(c *Chunk) *extent {
	for _, e := range a.extents {
		if e != c.extent && e.vacant() > 0 && e.layout.slots == c.layout.slots {
			return e
		}
	}
	panic("archetype: Repack of a chunk for which there is no room")
}

// LowerBase is the lowest free range of cache indices below the chunk's own that the chunk fits
// into; false if there is none.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (s *Store) LowerBase(c *Chunk) (uint32, bool) {
	lo, ok := s.cache.fit(uint64(c.layout.slots))
	return uint32(lo), ok && lo < uint64(c.base)
}

// Rebase gives the chunk the cache indices that LowerBase has found for it.
//
// Concurrency: the registry's owner with no workers about and no loop open; never waits.
// Allocates: no.
func (s *Store) Rebase(c *Chunk) {
	old := uint64(c.base)
	base, ok := s.cache.take(uint64(c.layout.slots))
	if check.Enabled && (!ok || base >= old) {
		check.Failf("archetype: chunk at %d rebased to %d, %v", old, base, ok)
	}
	s.rebase(c, base)
}

// RebaseTo gives the chunk cache indices that it had before, and that nobody has now.
//
// Concurrency: the registry's owner with no workers about and no loop open; never waits.
// Allocates: no.
func (s *Store) RebaseTo(c *Chunk, base uint32) {
	s.cache.takeAt(uint64(base), uint64(c.layout.slots))
	s.rebase(c, uint64(base))
}

func (s *Store) rebase(c *Chunk, base uint64) {
	old, slots := uint64(c.base), uint64(c.layout.slots)
	s.leave(c)
	c.base = uint32(base)
	c.touched = *c.now
	s.enter(c)
	c.archetype.reshape()
	s.cache.give(old, slots)
	s.cacheCap.Store(uint32(s.cache.high()))
}

// HighestChunk is the chunk with the highest cache indices, nil in an empty store.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (s *Store) HighestChunk() *Chunk { return s.ChunkAt(s.CacheCap() - 1) }
