package archetype

import (
	"math/bits"
	"sync/atomic"
)

// Active is the Active plane: bit i&63 of word i>>6 says that systems see slot i. Beside the
// Atomic methods a plain read of it is a race; between fork and join, load its words atomically.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Active() []uint64 { return c.active }

// Bit says whether a slot is active.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Bit(slot uint32) bool {
	return atomic.LoadUint64(&c.active[slot>>6])>>(slot&63)&1 != 0
}

// SetBit makes a slot active.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) SetBit(slot uint32) { c.active[slot>>6] |= 1 << (slot & 63) }

// ClearBit makes a slot inactive.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) ClearBit(slot uint32) { c.active[slot>>6] &^= 1 << (slot & 63) }

// SetBitAtomic is SetBit for a word that others may change at the same time.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) SetBitAtomic(slot uint32) {
	// The words are untyped memory, hence a function where the rest of the project has typed
	// atomics. They are 8-byte aligned: planes begin at a cache line, and chunks have whole words.
	atomic.OrUint64(&c.active[slot>>6], 1<<(slot&63))
}

// ClearBitAtomic is ClearBit for a word that others may change at the same time.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) ClearBitAtomic(slot uint32) {
	atomic.AndUint64(&c.active[slot>>6], ^uint64(1<<(slot&63)))
}

// The born plane holds entities that were spawned while a loop runs over the chunk in a
// window: the loop must not meet them, so they become active when it ends.

// MarkBorn notes that a slot is to become active. It says whether the slot is the first of
// its chunk, so that the caller can keep a list of such chunks.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) MarkBorn(slot uint32) bool {
	first := c.bornWords == 0
	c.born[slot>>6] |= 1 << (slot & 63)
	c.bornWords |= 1 << (slot >> 6)
	return first
}

// ClearBorn takes MarkBorn back; without one it does nothing.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) ClearBorn(slot uint32) {
	w := slot >> 6
	c.born[w] &^= 1 << (slot & 63)
	if c.born[w] == 0 {
		c.bornWords &^= 1 << w
	}
}

// Born says whether a slot is marked as born.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) Born(slot uint32) bool { return c.born[slot>>6]>>(slot&63)&1 != 0 }

// AnyBorn says whether any slot of the chunk is marked as born.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) AnyBorn() bool { return c.bornWords != 0 }

// CommitBorn makes the born slots active.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) CommitBorn() {
	for ; c.bornWords != 0; c.bornWords &= c.bornWords - 1 {
		w := bits.TrailingZeros64(c.bornWords)
		c.active[w] |= c.born[w]
		c.born[w] = 0
	}
}
