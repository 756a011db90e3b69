package archetype

import (
	"math/bits"
	"unsafe"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// Slots are taken lowest first: the lowest hole of the lowest chunk that has one, before any
// slot that was never taken. Entities stay close together, and after random deaths new ones
// walk through memory in order; a stack of freed slots costs five times as much at a million.
//
// Nothing is searched: a chunk has a bit for each hole and a word that says which words of
// them to look at, an archetype a bitmap of the chunks and a pointer to the lowest.

// Take hands out a slot. Its cells are zero, its handle is zero, its bits are clear. fresh
// says that it was never taken before, which Untake wants to know. c is nil if the last cache
// index is in use.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: a chunk
// when all are full.
func (a *Archetype) Take() (c *Chunk, slot uint32, fresh bool) {
	if c = a.hole; c != nil {
		w := uint32(bits.TrailingZeros64(c.holeWords))
		word := c.holes[w]
		slot = w<<6 | uint32(bits.TrailingZeros64(word))
		word &= word - 1
		if planted.Enabled && planted.Is(planted.SlotGivenTwice) {
			word |= 1 << 63 & c.holes[w]
		}
		c.holes[w] = word
		c.touched = *c.now
		if c.soiled != 0 {
			a.wipe(c, slot, 1)
		}
		if word == 0 {
			if c.holeWords &= c.holeWords - 1; c.holeWords == 0 {
				a.filled(c)
			}
		}
		return c, slot, false
	}
	if c = a.tail; c != nil && int(c.allocated) < len(c.entities) {
		slot = c.allocated
		c.allocated++
		a.allocated++
		c.touched = *c.now
		return c, slot, true
	}
	return a.takeFromNewChunk()
}

// Untake takes Take back. Calls come in the reverse order of the Takes, and nothing that was
// committed lies between. A chunk that Take made is released again.
//
// A slot that lies below one which is still in use, because undo had to leave that alone,
// becomes a hole instead of a fresh slot.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (a *Archetype) Untake(c *Chunk, slot uint32, fresh bool) {
	a.Reclaim(c, slot)
	if !fresh || c != a.tail || slot+1 != c.allocated {
		return
	}
	a.closeHole(c, slot)
	c.high = max(c.high, c.allocated) // a wide loop may have written the slot
	c.allocated--
	a.allocated--
	if c.allocated == 0 {
		a.releaseTail()
	}
}

// Reclaim gives a slot back: its cells, its handle and its bits in the write frame are zeroed,
// and the next Take may hand it out.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (a *Archetype) Reclaim(c *Chunk, slot uint32) {
	c.entities[slot] = 0 // checks the bounds for everything below
	c.touched = *c.now
	for _, column := range c.table16 {
		// Sound: the column has as many cells of 16 bytes as the entity column has handles, and
		// they are free of pointers.
		*(*[16]byte)(unsafe.Add(column, uintptr(slot)*16)) = [16]byte{}
	}
	if len(a.zeroing) != 0 && !(planted.Enabled && planted.Is(planted.ColumnNotZeroed)) {
		a.zeroRest(c, slot)
	}

	w, bit := slot>>6, uint64(1)<<(slot&63)
	if c.active[w]&bit != 0 {
		c.active[w] &^= bit // seldom: death has cleared it
	}
	if c.bornWords != 0 {
		c.ClearBorn(slot)
	}
	holes := c.holes[w]
	if check.Enabled && (slot >= c.allocated || holes&bit != 0) {
		check.Failf("archetype %s: slot %d of chunk %d is reclaimed, but nobody has taken it", a, slot, c.index)
	}
	c.holes[w] = holes | bit
	if holes == 0 { // seldom: the summary has to be told
		a.openHoles(c, 1<<w)
	}
	if holes|bit == ^uint64(0) { // seldom, too
		a.noteEmpty(c)
	}
}

// Vacate clears the handle of a slot that stays taken: whoever was there is dead.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) Vacate(slot uint32) {
	c.entities[slot] = 0
	c.touched = *c.now
}

// Occupy takes Vacate back; where it was not called it does nothing.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) Occupy(slot uint32, h handles.Local) {
	if c.entities[slot] != h {
		c.entities[slot] = h
		c.touched = *c.now
	}
}

// Clear releases all chunks. Nobody may use one of them any more.
//
// Concurrency: window holder; never waits. Allocates: no.
func (a *Archetype) Clear() {
	for len(a.chunks) > 0 {
		a.releaseTail()
	}
	a.allocated, a.live = 0, 0
}

// planZeroing splits the columns into those that Reclaim zeroes on the spot and the rest. A
// loop with neither a call nor a choice in it keeps everything in registers: with both, giving
// back a slot of two 16-byte columns cost 7.7 ns instead of 5.7 (BenchmarkReuse).
func (a *Archetype) planZeroing() {
	for column := range a.cells {
		if a.cells[column].kind == kind16 {
			a.zeroing16 = append(a.zeroing16, uint32(column))
		} else {
			a.zeroing = append(a.zeroing, uint32(column))
		}
	}
}

// zeroRest zeroes the cells of a slot in the columns that Reclaim leaves to it.
func (a *Archetype) zeroRest(c *Chunk, slot uint32) {
	for _, column := range a.zeroing {
		cell := &a.cells[column]
		p := c.Cell(int(column), slot, cell.size)
		switch cell.kind {
		case kind4:
			*(*[4]byte)(p) = [4]byte{}
		case kind8:
			*(*[8]byte)(p) = [8]byte{}
		case kind12:
			*(*[12]byte)(p) = [12]byte{}
		default:
			cell.zero(p)
		}
	}
}

// openHoles notes which words of a chunk, a bit each, have their first hole.
func (a *Archetype) openHoles(c *Chunk, words uint64) {
	if c.holeWords == 0 {
		a.holes.Add(uint32(c.index))
		if a.hole == nil || c.index < a.hole.index {
			a.hole = c
		}
	}
	c.holeWords |= words
}

// closeHole makes a hole an ordinary slot.
func (a *Archetype) closeHole(c *Chunk, slot uint32) {
	w := slot >> 6
	if c.holes[w] &^= 1 << (slot & 63); c.holes[w] != 0 {
		return
	}
	if c.holeWords &^= 1 << w; c.holeWords == 0 {
		a.filled(c)
	}
}

// filled notes that a chunk has no hole left.
func (a *Archetype) filled(c *Chunk) {
	a.holes.Remove(uint32(c.index))
	if a.hole != c {
		return
	}
	a.hole = nil
	if i, ok := a.holes.First(); ok {
		a.hole = a.chunks[i]
	}
}

// takeFromNewChunk appends a chunk and takes its first slot.
func (a *Archetype) takeFromNewChunk() (*Chunk, uint32, bool) {
	slots := a.layout.slots
	if len(a.chunks) == 0 {
		slots = a.firstLayout().slots
	}
	s := a.store
	base, ok := s.cache.take(uint64(slots))
	if !ok {
		return nil, 0, false
	}
	c := a.addChunk(uint32(base))
	s.enter(c)
	a.chunks = append(a.chunks, c)
	a.reshape()
	a.tail = c
	a.bytes += int(c.layout.typed)
	c.allocated = 1
	c.touched = *c.now
	a.allocated++
	return c, 0, true
}

// releaseTail gives back the last chunk, whatever it holds.
func (a *Archetype) releaseTail() {
	last := len(a.chunks) - 1
	c := a.chunks[last]
	a.chunks[last] = nil
	a.chunks = a.chunks[:last]
	a.reshape()
	a.tail = nil
	if last > 0 {
		a.tail = a.chunks[last-1]
	} else {
		a.largeFirst = false
	}
	if c.holeWords != 0 {
		a.holes.Remove(uint32(last))
		if a.hole == c { // the lowest one with holes is the last chunk: no other has any
			a.hole = nil
		}
	}
	a.bytes -= int(c.layout.typed)
	c.release()
}
