package archetype

import "math/bits"

// TakeRun hands out neighbouring slots of one chunk, at least one and at most n, lowest
// first as Take does. fresh goes for all of them. c is nil if the last cache index is in
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
	c, slot, fresh = a.Take()
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
	w := slot >> 6
	word := c.holes[w]
	if word == 0 {
		return c, slot, 1, false
	}
	// The holes right above the one taken, within its word.
	next := slot&63 + 1
	more := uint32(0)
	if next < 64 {
		more = min(uint32(bits.TrailingZeros64(^(word >> next))), 64-next, uint32(n-1))
	}
	if more == 0 {
		return c, slot, 1, false
	}
	if c.soiled != 0 {
		a.wipe(c, slot+1, more)
	}
	word &^= (1<<more - 1) << next
	c.holes[w] = word
	if word == 0 {
		if c.holeWords &= c.holeWords - 1; c.holeWords == 0 {
			a.filled(c)
		}
	}
	return c, slot, 1 + more, false
}
