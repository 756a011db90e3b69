package archetype

import "math/bits"

// Chunks in which nobody lives any more give their memory and their cache indices back, so that
// other archetypes can have them. Not at once: an archetype whose entities all die and are
// replaced within a frame would make its chunks anew in every frame. A chunk goes when it was
// empty at one pass and is still so at the next, without having been used in between.
//
// The lowest chunk of an archetype stays, so that the first entity of a kind that comes and
// goes does not cost a chunk each time.

// Keep has empty chunks kept, or not any more: while frames can be gone back to, whoever lived in one may come
// back.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: for growth.
func (s *Store) Keep(on bool) {
	if s.keep == on {
		return
	}
	s.keep = on
	for _, a := range s.list {
		for _, c := range a.chunks {
			if !on && c.allocated > 0 {
				a.noteEmpty(c)
			}
		}
	}
}

// emptied says that a chunk became empty during a pass.
type emptied struct {
	chunk *Chunk
	pass  uint64
}

// noteEmpty puts a chunk onto the list if all that was taken of it is holes. It is called when a
// word of 64 slots has become empty: a chunk with less than that is seen only as the tail.
func (a *Archetype) noteEmpty(c *Chunk) {
	if a.store.keep || c.index == 0 || !c.empty() {
		return // where frames can be gone back to, chunks stay for those who may come back
	}
	s := a.store
	c.emptyPass = s.pass
	s.emptied = append(s.emptied, emptied{c, s.pass})
}

// empty says whether every slot of the chunk that was ever taken is a hole.
func (c *Chunk) empty() bool {
	words := (c.allocated + 63) >> 6
	if c.holeWords != ^uint64(0)>>(64-words) && words != 0 {
		return false
	}
	for w := range c.holes[:words] {
		if c.holes[w] != c.takenMask(w) {
			return false
		}
	}
	return true
}

// takenMask has a bit for each slot of a word that was ever taken.
func (c *Chunk) takenMask(w int) uint64 {
	if n := c.Allocated() - w<<6; n < 64 {
		return 1<<max(n, 0) - 1
	}
	return ^uint64(0)
}

// ReleaseEmptied gives chunks back that were empty at the last call and have not been used since,
// and says how many that were. Nobody may hold a chunk or a place in a list of chunks.
//
// Concurrency: the registry's owner with no workers about and no loop open; never waits.
// Allocates: no.
func (s *Store) ReleaseEmptied() int {
	if len(s.emptied) == 0 {
		return 0
	}
	kept := s.emptied[:0]
	for _, e := range s.emptied {
		switch c := e.chunk; {
		case c.extent == nil || c.emptyPass != e.pass || c.index == 0 || !c.empty():
			// Released meanwhile, noted again, the lowest by now, or in use.
		case e.pass == s.pass:
			kept = append(kept, e)
		default:
			c.doomed = true
			if a := c.archetype; !a.shrinking {
				a.shrinking = true
				s.shrinking = append(s.shrinking, a)
			}
		}
	}
	clear(s.emptied[len(kept):])
	s.emptied = kept
	s.pass++
	n := 0
	for i, a := range s.shrinking {
		if c := a.tail; c.index != 0 && c.empty() {
			c.doomed = true // less than a word of it may have been in use, so nobody noted it
		}
		n += a.releaseDoomed()
		a.shrinking, s.shrinking[i] = false, nil
	}
	s.shrinking = s.shrinking[:0]
	return n
}

// Settle gives all empty chunks back, the lowest and the last as well, and lowers the high-water
// mark to the highest slot in use. It says how many chunks it gave back. While all are kept (see Keep) it does
// nothing.
//
// Concurrency: the registry's owner with no workers about and no loop open; never waits.
// Allocates: no.
func (a *Archetype) Settle() int {
	n := 0
	if a.store.keep {
		return 0
	}
	for _, c := range a.chunks {
		if c.empty() {
			c.doomed = true
			n++
		}
	}
	if n > 0 {
		a.releaseDoomed()
	}
	if c := a.tail; c != nil {
		c.clean()
		for c.allocated > 0 && c.holes[(c.allocated-1)>>6]>>((c.allocated-1)&63)&1 != 0 {
			a.closeHole(c, c.allocated-1)
			c.high = max(c.high, c.allocated)
			c.allocated--
			a.allocated--
		}
	}
	return n
}

// releaseDoomed takes the doomed chunks out of the list, gives them back, and says how many.
func (a *Archetype) releaseDoomed() int {
	kept := a.chunks[:0]
	for _, c := range a.chunks {
		if !c.doomed {
			kept = append(kept, c)
			continue
		}
		a.allocated -= c.Allocated()
		a.bytes -= int(c.layout.typed)
		c.release()
	}
	n := len(a.chunks) - len(kept)
	clear(a.chunks[len(kept):])
	a.chunks = kept
	a.reshape()
	a.reindex()
	return n
}

// reindex numbers the chunks anew, and finds those with holes.
func (a *Archetype) reindex() {
	a.holes.Clear()
	a.hole, a.tail = nil, nil
	for i, c := range a.chunks {
		c.index, a.tail = i, c
		if c.holeWords == 0 {
			continue
		}
		a.holes.Add(uint32(i))
		if a.hole == nil {
			a.hole = c
		}
	}
	if a.tail == nil {
		a.largeFirst = false
	}
}

// Holes are the slots that were taken once and are free: bit i&63 of word i>>6 is slot i's. The
// caller does not change them.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Holes() []uint64 { return c.holes }

// Taken is how many slots of the chunk are in use.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Taken() int {
	n := c.Allocated()
	for words := c.holeWords; words != 0; words &= words - 1 {
		n -= bits.OnesCount64(c.holes[bits.TrailingZeros64(words)])
	}
	return n
}
