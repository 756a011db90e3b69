package views

import (
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
)

// spareCount is how many view structs a query keeps. More loops than that at one time each
// allocate theirs.
const spareCount = 8

// spares keeps view structs between loops. A yielded struct is reached through a pointer that
// the loop's body might keep, so it can't live on the stack; taking it from here is what makes
// a loop free of allocation.
//
// Rejected: a sync.Pool, which drops its content at collections, so that a steady frame
// allocates now and then; and swapping atomic pointers, which carries write
// barriers and is a call: the pair was half of the 45 ns that a loop over one entity cost, and
// that shows in a loop over a thousand.
//
// Concurrency: any goroutine.
type spares[T any] [spareCount]spare[T]

// spare is the place of one struct.
type spare[T any] struct {
	busy  atomic.Bool
	view  *T              // owned by whoever set busy; nil until first needed
	spans []span          // likewise
	look  archetype.Chunk // at a chunk of a snapshot; likewise
}

// take hands out a struct and the place it belongs to, nil if all places are busy.
func (s *spares[T]) take() (*T, *spare[T]) {
	for i := range s {
		// Looking before swapping spares the locked operation on a place that is busy.
		if p := &s[i]; !p.busy.Load() && p.busy.CompareAndSwap(false, true) {
			if p.view == nil {
				p.view = new(T)
			}
			return p.view, p
		}
	}
	return new(T), nil
}

// giveBack empties a struct and frees its place, if it has one. Emptied, it keeps no chunk
// from the collector, and a loop variable kept past its loop shows nothing instead of another
// loop's entities.
func (p *spare[T]) giveBack(t *T) {
	var empty T
	*t = empty
	if p != nil {
		p.look.Conceal()
		p.busy.Store(false)
	}
}
