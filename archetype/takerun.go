package archetype

import "math/bits"

// TakeRun hands out neighbouring slots of one chunk, at least one and at most n, lowest
// first as Take does: the end is that of the holes, or of the chunk. fresh goes for all of them. c is nil if the last cache index is in
// use. Untake takes them back one by one, highest first.
//
// Panics: if n < 1.
// Concurrency: the registry's owner with no workers about; never waits. Allocates: a chunk
// when all are full.
func (a *Archetype) TakeRun(n int) (c *Chunk, slot, count uint32, fresh bool) {
	if n < 1 {
		panic("archetype: TakeRun of no slots")
	}
	if len(a.chunks) == 0 {
		a.largeFirst = n > a.first.slots
	}
	a.asked = n / a.layout.slots
	c, slot, fresh = a.Take()
	a.asked = 0
	if c == nil {
		return nil, 0, 0, false
	}
	count = 1
	if fresh {
		more := min(n-1, len(c.entities)-int(c.allocated))
		c.allocated += uint32(more)
		a.allocated += more
		return c, slot, count + uint32(more), true
	}
	// The holes right above the one taken, word by word. They are the lowest of the chunk, so that a word which is full
	// now is the lowest in the summary.
	for next := slot + 1; int(count) < n && int(next>>6) < len(c.holes); next = slot + count {
		word, bit := c.holes[next>>6], next&63
		more := min(uint32(bits.TrailingZeros64(^(word >> bit))), 64-bit, uint32(n)-count)
		if more == 0 {
			break
		}
		if c.soiled != 0 {
			a.wipe(c, next, more)
		}
		word &^= ^uint64(0) >> (64 - more) << bit
		c.holes[next>>6] = word
		if count += more; word == 0 {
			if c.holeWords &= c.holeWords - 1; c.holeWords == 0 {
				a.filled(c)
				break
			}
		}
	}
	return c, slot, count, false
}
