package archetype

import (
	"math/bits"
	"unsafe"
)

// sharedColumn is a column that two archetypes have, by its table slot in each.
type sharedColumn struct{ dst, src int32 }

// sharedWith lists the columns of components that a and another archetype have. The list of the last
// one is kept: what moves, mostly moves in crowds.
func (a *Archetype) sharedWith(src *Archetype) []sharedColumn {
	if a.sharedFrom != src {
		a.share(src)
	}
	return a.shared
}

func (a *Archetype) share(src *Archetype) {
	// Both lists of columns are sorted by key, so one walk along them finds the pairs. The two
	// columns at their ends, plane and handles, have no cell here.
	a.shared, a.sharedFrom = a.shared[:0], src
	dkeys, skeys := a.layout.keys[:len(a.cells)], src.layout.keys[:len(src.cells)]
	for d, s := 0, 0; d < len(dkeys) && s < len(skeys); {
		switch dk, sk := dkeys[d].order(), skeys[s].order(); {
		case dk < sk:
			d++
		case dk > sk:
			s++
		default:
			a.shared = append(a.shared, sharedColumn{int32(d), int32(s)})
			d++
			s++
		}
	}
}

// CopyShared copies a slot of another archetype into one of this archetype: the cells of every
// column that both have. Handles and bits are the caller's.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: now and then.
func (a *Archetype) CopyShared(dst *Chunk, dslot uint32, src *Chunk, sslot uint32) {
	for _, col := range a.sharedWith(src.archetype) {
		cell := &a.cells[col.dst]
		cell.Copy(dst.Cell(int(col.dst), dslot, cell.size), src.Cell(int(col.src), sslot, cell.size))
	}
}

// CopySharedRun is CopyShared of n neighbouring slots of each chunk.
//
// Panics: if either run goes beyond its chunk; then nothing was copied.
// Concurrency: the registry's owner with no workers about; never waits. Allocates: now and then.
func (a *Archetype) CopySharedRun(dst *Chunk, dslot uint32, src *Chunk, sslot, n uint32) {
	_, _ = dst.entities[dslot:][:n], src.entities[sslot:][:n] // checks the bounds for everything below
	for _, col := range a.sharedWith(src.archetype) {
		cell := &a.cells[col.dst]
		to, from := dst.Cell(int(col.dst), dslot, cell.size), src.Cell(int(col.src), sslot, cell.size)
		if !cell.pointers() {
			copyBytes(to, from, uintptr(n)*cell.size)
			continue
		}
		for i := range uintptr(n) {
			cell.copy(unsafe.Add(to, i*cell.size), unsafe.Add(from, i*cell.size)) // sound: n cells are there
		}
	}
}

// VacateRun is Vacate of n neighbouring slots.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) VacateRun(slot, n uint32) {
	clear(c.entities[slot:][:n])
	c.touched = *c.now
}

// ActiveRun says whether n neighbouring slots are all active.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) ActiveRun(slot, n uint32) bool {
	for end := slot + n; slot < end; {
		next := min(slot&^63+64, end)
		if mask := runMask(slot, next); c.active[slot>>6]&mask != mask {
			return false
		}
		slot = next
	}
	return true
}

// ActiveFrom is how many neighbouring slots from one on are active, as far as most.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) ActiveFrom(slot uint32, most int) int {
	at := slot
	for w := at >> 6; int(w) < len(c.active) && int(at-slot) < most; w = at >> 6 {
		n := uint32(bits.TrailingZeros64(^(c.active[w] >> (at & 63))))
		if at += n; at&63 != 0 || n == 0 {
			break
		}
	}
	return min(int(at-slot), most)
}

// HideRun makes n neighbouring slots inactive.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) HideRun(slot, n uint32) {
	c.MarkActive()
	for end := slot + n; slot < end; {
		next := min(slot&^63+64, end)
		c.active[slot>>6] &^= runMask(slot, next)
		slot = next
	}
}

// runMask has the bits of slots from lo up to hi, of one word, at least one.
func runMask(lo, hi uint32) uint64 { return ^uint64(0) >> (64 - (hi - lo)) << (lo & 63) }
