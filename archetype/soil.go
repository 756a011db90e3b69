package archetype

import (
	"math/bits"
	"sync/atomic"
)

// Wide loops compute all lanes of a chunk, free slots as well, and what they write there is not zero
// in the end. Such a chunk is soiled: a slot is zeroed when it is taken instead of when it is given
// back. Zeroing after each loop would cost those who leave free slots alone as much as the others.

// Soil notes that free slots of the chunk may be written.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Soil() {
	if atomic.LoadUint32(&c.soiled) == 0 {
		atomic.StoreUint32(&c.soiled, 1)
	}
}

// Soiled says whether free slots, and those of inactive entities, may have been written by a wide loop.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) Soiled() bool { return c.soiled != 0 }

// wipe zeroes the cells of slots that are about to be taken from a soiled chunk.
func (a *Archetype) wipe(c *Chunk, slot, n uint32) {
	for ; n > 0; slot, n = slot+1, n-1 {
		for column := range a.cells {
			cell := &a.cells[column]
			cell.Zero(c.Cell(column, slot, cell.size))
		}
	}
}

// clean zeroes all free slots of a soiled chunk.
func (c *Chunk) clean() {
	if c.soiled == 0 {
		return
	}
	for words := c.holeWords; words != 0; words &= words - 1 {
		w := bits.TrailingZeros64(words)
		for holes := c.holes[w]; holes != 0; holes &= holes - 1 {
			c.archetype.wipe(c, uint32(w<<6|bits.TrailingZeros64(holes)), 1)
		}
	}
	c.soiled = 0
	c.touched = *c.now // what was written there is in the frames before
}
