package registry

import (
	"iter"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// OpenCells is Cells for as long as a token is open: what an access has to ask of the token was asked once. It is made to
// be a variable of the function that loops, and of no use any more when the token has expired.
//
// Make one with Cells.Open.
type OpenCells[C any] struct {
	cells  *Cells[C]
	access Access

	// What the short way needs: from the word of a handle to its cell. There is no page where it must not be taken.
	token  *token
	pages  []atomic.Pointer[handles.Page]
	blocks *[]*[64]C
}

// Open resolves the token. With one of another registry nothing is found.
//
// Panics: ErrExpired.
// Concurrency: as the token. Allocates: at the first call for the component, a pointer for 64 slots.
func (c *Cells[C]) Open(a Access) OpenCells[C] {
	o := OpenCells[C]{cells: c, access: a}
	r, _, err := opened(a)
	switch {
	case err == ErrReadOnly:
	case err != nil:
		panic(err)
	case r == c.r && c.id != noColumn:
		o.token, o.pages, o.blocks = a.tokenOf(), c.locals.Pages(), archetype.Blocks[C](c.store, c.id)
	}
	return o
}

// Peek gives a copy of the component of h, as Cells.Peek does.
//
// Panics: ErrExpired.
// Concurrency: as the token. Allocates: no.
func (o *OpenCells[C]) Peek(h handles.Local) (v C, ok bool) {
	if n := int(h.Index() / handles.PageSize); n < len(o.pages) && !o.token.closed.Load() {
		if page := o.pages[n].Load(); page != nil {
			place := handles.Word(page[h.Index()%handles.PageSize].Load()).PlaceOf(h)
			if n := place >> 6; n < uint64(len(*o.blocks)) {
				if block := (*o.blocks)[n]; block != nil {
					return block[place&63], true
				}
			}
		}
	}
	return o.peekSlow(h)
}

// Each yields, of a list of handles in its order, the position of each that names somebody with the component, and a copy
// of that, as Cells.Peek gives it. Others are passed over. The body of the loop may do whatever the token allows; it sees
// what there is when its turn comes.
//
// This is the way to look at many. The compiler puts all of it into the caller's loop, which it cannot do with Peek: a call
// is half of what that takes.
//
// Panics: ErrExpired, in the loop.
// Concurrency: as the token. Allocates: no.
func (o *OpenCells[C]) Each(hs []handles.Local) iter.Seq2[int, C] {
	return func(yield func(int, C) bool) {
		// Written out, in the shape that leaves the fewest instructions in the caller's loop (module bench, "random access by
		// handle"): nested, for a condition of two parts becomes a value that is tested again, and with the index not cut to
		// 32 bits.
		token, pages, blocks := o.token, o.pages, o.blocks
		for i, h := range hs {
			index := uint64(h) >> 32
			if n := index / handles.PageSize; n < uint64(len(pages)) {
				if page := pages[n].Load(); page != nil {
					place := handles.Word(page[index%handles.PageSize].Load()).PlaceOf(h)
					if !token.closed.Load() {
						if n := place >> 6; n < uint64(len(*blocks)) {
							if block := (*blocks)[n]; block != nil {
								if !yield(i, block[place&63]) {
									return
								}
								continue
							}
						}
					}
				}
			}
			if v, ok := o.peekSlow(h); ok && !yield(i, v) {
				return
			}
		}
	}
}

// peekSlow is Peek for whoever has not been found in the short way, also because nobody is to be.
//
//go:noinline
func (o *OpenCells[C]) peekSlow(h handles.Local) (C, bool) { return o.cells.peekSlow(o.access, h) }
