package archetype

import (
	"unsafe"

	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// ReclaimRun is Reclaim of n neighbouring slots, from slot on: column by column, so that a
// long run is a few clears of memory, and 64 slots at a time in the planes. With n 0 it does
// nothing.
//
// Panics: if the run goes beyond the chunk; then nothing was given back.
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (a *Archetype) ReclaimRun(c *Chunk, slot, n uint32) {
	// What is short goes by itself, so that it does not pay for the frame of a large function.
	switch n {
	case 0:
	case 1:
		a.Reclaim(c, slot)
	case 2: // two are cheaper one by one, three are not (BenchmarkReclaimRun)
		_ = c.entities[slot:][:2]
		a.Reclaim(c, slot)
		a.Reclaim(c, slot+1)
	default:
		a.reclaimMany(c, slot, n)
	}
}

func (a *Archetype) reclaimMany(c *Chunk, slot, n uint32) {
	clear(c.entities[slot:][:n]) // checks the bounds for everything below
	c.touched = *c.now
	for _, column := range c.table16 {
		// Sound: the column has as many cells of 16 bytes as the entity column has handles, and
		// they are free of pointers.
		clear(unsafe.Slice((*[16]byte)(unsafe.Add(column, uintptr(slot)*16)), n))
	}
	for _, column := range a.zeroing {
		cell := &a.cells[column]
		if cell.pointers() {
			for i := slot; i < slot+n; i++ {
				cell.zero(c.Cell(int(column), i, cell.size))
			}
			continue
		}
		zeroBytes(c.Cell(int(column), slot, cell.size), uintptr(n)*cell.size)
	}

	// The bits. Death has cleared the active ones, so that word is seldom written.
	opened := uint64(0) // words that had no hole before
	emptied := false    // a word is all holes now
	for end := slot + n; slot < end; {
		w := slot >> 6
		next := min(slot&^63+64, end)
		mask := ^uint64(0) >> (64 - (next - slot)) << (slot & 63)
		if c.active[w]&mask != 0 {
			c.active[w] &^= mask
		}
		if c.bornWords>>w&1 != 0 {
			if c.born[w] &^= mask; c.born[w] == 0 {
				c.bornWords &^= 1 << w
			}
		}
		holes := c.holes[w]
		if check.Enabled && (next > c.allocated || holes&mask != 0) {
			check.Failf("archetype %s: slots %d to %d of chunk %d are reclaimed, but some nobody has taken",
				a, slot, next-1, c.index)
		}
		if planted.Enabled && planted.Is(planted.RunPlaneNotCleared) {
			c.active[w] |= mask &^ (mask >> 1) & (1 << 63)
		}
		c.holes[w] = holes | mask
		if holes == 0 {
			opened |= 1 << w
		}
		emptied = emptied || holes|mask == ^uint64(0)
		slot = next
	}
	if opened != 0 {
		a.openHoles(c, opened)
	}
	if emptied {
		a.noteEmpty(c)
	}
}
