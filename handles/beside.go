package handles

import "math"

// Beside makes a second space over the words of l: what the word arbitrates (Word, WordAt, Alive,
// Status, Kill, Spawned, Revive, Move, SetPlace and the like) works in either space for the handles of
// both, and each issues, frees, takes back and counts the indices of its own stretch only, c.FirstIndex
// to c.Limit. A rolled back space and one that is never taken back can so share one world of handles.
//
// The words must reach up to c.Limit, which LocalsConfig.Words of the first space sees to. The
// generations are those of l. A third space goes beside the second.
//
// Panics: if the stretches overlap, the words do not reach, l has a space beside it already, or c names other generations.
// Concurrency: setup only. Allocates: the space.
func (l *Locals) Beside(c LocalsConfig) *Locals {
	switch {
	case l.limit >= uint64(c.FirstIndex) || uint64(c.Limit)+1 < uint64(c.FirstIndex):
		panic("handles: a space beside another one begins after it, and does not end before it begins")
	case c.Limit > l.words.limit:
		panic("handles: the words do not reach to the end of a space beside")
	case l.wordsTo != math.MaxUint64:
		panic("handles: a space has one other beside it at most")
	case (c.GenerationBits != 0 || c.FirstGeneration != 0) && newGenerations(c.GenerationBits, c.FirstGeneration) != l.generation:
		panic("handles: spaces beside each other have the same generations")
	}
	b := newLocals(c, l.words, l.generation)
	b.wordsFrom, b.wordsTo = b.firstIndex, math.MaxUint64
	l.wordsTo = b.firstIndex - 1
	return b
}

// Owns says whether an index lies in the stretch of this space: whether its names are issued and
// freed here.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *Locals) Owns(index uint32) bool {
	return uint64(index) >= l.firstIndex && uint64(index) <= l.limit
}
