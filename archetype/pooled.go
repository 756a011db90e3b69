package archetype

import "fmt"

// A pooled archetype has a fixed number of slots, all of them taken, with consecutive cache indices. Who is in
// them and which are idle is package registry's. Nobody finds it by class and components: it stands beside the
// ordinary archetype of both, and Take is not for it.

// Pool makes a pooled archetype of n slots. number, from 1 on, is what Pooled says. nil if there are not that many
// cache indices in a row. Drop takes the archetype back once its slots are untaken, the last one first.
//
// Panics: as Archetype; if n is less than 1.
// Concurrency: window holder; never waits. Allocates: its chunks.
func (s *Store) Pool(class int, sig Signature, className string, slotsPerChunk, n, number int) *Archetype {
	a := s.PoolShell(class, sig, className, slotsPerChunk, n, number)
	sizes := a.pooledSizes()
	total := uint64(0)
	for _, size := range sizes {
		total += uint64(size)
	}
	base, ok := s.cache.take(total)
	if !ok {
		s.Drop(a)
		return nil
	}
	for _, size := range sizes {
		c := a.addChunk(uint32(base))
		s.enter(c)
		a.chunks = append(a.chunks, c)
		a.tail = c
		a.bytes += int(c.layout.typed)
		c.allocated = uint32(min(size, n))
		c.touched = *c.now
		a.allocated += int(c.allocated)
		n -= int(c.allocated)
		base += uint64(size)
	}
	a.reshape()
	return a
}

// PoolShell is Pool without the chunks, which Rebuild makes.
//
// Panics: as Pool.
// Concurrency: window holder; never waits. Allocates: yes.
func (s *Store) PoolShell(class int, sig Signature, className string, slotsPerChunk, n, number int) *Archetype {
	if n < 1 || number < 1 {
		panic(fmt.Sprintf("archetype: pool %d of %d slots", number, n))
	}
	a := newArchetype(s, class, sig, className, slotsPerChunk)
	a.pooled, a.pooledSlots = number, n
	if size := roundUp64(n); size < a.layout.slots { // one chunk, no larger than it has to be
		a.first = NewLayout(a.comps, size, s.temporalFrames)
	} else {
		a.first = a.layout
	}
	s.list = append(s.list, a)
	s.version++
	return a
}

func roundUp64(n int) int { return (n + 63) &^ 63 }

// pooledSizes are the slots of the chunks of a pooled archetype.
func (a *Archetype) pooledSizes() []int { return pooledSizes(a.layout.slots, a.pooledSlots) }

func pooledSizes(regular, n int) []int {
	if n < regular {
		return []int{roundUp64(n)}
	}
	sizes := make([]int, (n+regular-1)/regular)
	for i := range sizes {
		sizes[i] = regular
	}
	return sizes
}

// Pooled is the number that Pool was called with, 0 for an ordinary archetype.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) Pooled() int { return a.pooled }

// PooledSlots is how many slots a pooled archetype has, 0 for an ordinary one.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) PooledSlots() int { return a.pooledSlots }

// Blank zeroes a slot that stays taken: its cells, its handle and its bits in the write frame.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (a *Archetype) Blank(c *Chunk, slot uint32) {
	a.wipe(c, slot, 1)
	c.entities[slot] = 0
	c.touched = *c.now
	c.ClearBit(slot)
	if c.bornWords != 0 {
		c.ClearBorn(slot)
	}
}

// Rewrite notes that cells of a slot are written in all columns, as by taking it.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (c *Chunk) Rewrite() { c.touched = *c.now }

// checkPooled is Check for a pooled archetype of n slots.
func (s *State) checkPooled(regular, n int) error {
	sizes := pooledSizes(regular, n)
	if len(s.Chunks) != len(sizes) || s.LargeFirst {
		return fmt.Errorf("archetype: a pool of %d slots in %d chunks", n, len(s.Chunks))
	}
	for i := range s.Chunks {
		c := &s.Chunks[i]
		if c.Slots != sizes[i] || c.Allocated != min(n, sizes[i]) || c.Base != s.Chunks[0].Base+uint32(i*sizes[0]) || c.Emptied != NotEmptied {
			return fmt.Errorf("archetype: chunk %d of a pool has %d of %d slots from cache index %d", i, c.Allocated, c.Slots, c.Base)
		}
		n -= c.Allocated
		if err := c.check(i == len(s.Chunks)-1); err != nil {
			return fmt.Errorf("archetype: chunk %d: %w", i, err)
		}
		for _, holes := range c.Holes {
			if holes != 0 {
				return fmt.Errorf("archetype: chunk %d of a pool has holes", i)
			}
		}
	}
	return nil
}
