package registry

import (
	"sync/atomic"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// What packages above need to reach the cells of one entity. Users have Get, Peek and Set.

// Locate finds the slot of a living entity.
//
// Errors: ErrStale, ErrInvalidHandle, ErrNotSpawned; ErrExpired; ErrReadOnly on a snapshot.
// Concurrency: as the token. Allocates: no.
func Locate(a Access, h handles.Local) (*archetype.Chunk, uint32, error) {
	r, _, err := opened(a)
	if err != nil {
		return nil, 0, err
	}
	return r.locate(h)
}

// Keep notes the present value of the component C of h, which has it, so that a failed callback
// brings it back. The caller then writes the cells. Outside of callbacks it does nothing.
//
// Concurrency: as the token that located h. Allocates: no, but for the undo log's growth.
func Keep[C any](r *Registry, comp *archetype.Component, h handles.Local, ch *archetype.Chunk, slot uint32) {
	keep[C](r, comp, h, ch, slot)
}

// Opened checks a token and gives the registry it opens.
//
// Errors: ErrExpired; ErrReadOnly on a snapshot.
// Concurrency: as the token. Allocates: no.
func Opened(a Access) (*Registry, error) {
	r, _, err := opened(a)
	return r, err
}

// Lease is the right that a token gave to one entity's cells, in a form that is checked in a
// few loads: a view that holds pointers to the cells asks it whether they are good. It ends with
// the token, with the entity, and when the entity or its chunk moves. The zero Lease holds
// nothing.
//
// Concurrency: as the token it was taken with.
type Lease struct {
	holder unsafe.Pointer // of the Access it was taken with: the pointer in it, which is only compared
	token  *token         // nil: holds nothing
	at     *atomic.Uint64 // the word of the entity's index
	word   uint64         // what it was: alive, with generation and place
	moved  *uint64        // Registry.moves
	moves  uint64         // what that was
}

// Take is Locate, and keeps the right to what it found. After an error the lease holds nothing.
//
// Errors: as Locate.
// Concurrency: as the token. Allocates: no.
func (l *Lease) Take(a Access, h handles.Local) (*archetype.Chunk, uint32, error) {
	*l = Lease{}
	r, _, err := opened(a)
	if err != nil {
		return nil, 0, err
	}
	w := r.locals.Word(h.Index())
	if w.Generation() != h.Generation() || w.State() != handles.Alive {
		// What another goroutine has killed since the last window can still be reached, with late
		// deaths, but its word will not tell when that ends.
		return r.locateLate(h, w)
	}
	// The place comes from the word that is kept: were it loaded twice, a destroyer in between
	// would leave a lease on a dead entity, whose word stays as it is when its slot is reused.
	*l = Lease{holder: holderOf(a), token: a.tokenOf(), at: r.locals.WordAt(h.Index()), word: uint64(w), moved: &r.moves, moves: r.moves}
	ch := r.store.ChunkAt(w.Place())
	return ch, w.Place() - ch.Base(), nil
}

// Shift makes a lease that holds one of another entity's cells, for the same token: it is to be
// called right after Holds said yes. False, and then the lease is as before, if h is not alive.
//
// Concurrency: as the token. Allocates: no.
func (l *Lease) Shift(h handles.Local) bool {
	locals := l.token.r.locals
	at := locals.WordAt(h.Index())
	if at == nil {
		return false
	}
	w := handles.Word(at.Load())
	if w.Generation() != h.Generation() || w.State() != handles.Alive {
		return false
	}
	l.at, l.word = at, uint64(w)
	return true
}

// Holds says whether the cells that were located when the lease was taken are still where they
// were, and a still gives access to them.
//
// Concurrency: as the token. Allocates: no.
func (l *Lease) Holds(a Access) bool {
	// The holder is a hint only: what makes the answer sound is that the token which was asked
	// then is open. An Access that embeds a token may change it, and another one may lie at the
	// address of one that is gone; either way a right to these cells is still held.
	//
	// That the entity has the same place is not enough: within a window it may have come back to
	// a place that is other memory by now, or the chunk's memory may have moved. All that raises
	// moves, and nothing else does. It is plain memory of the owner's, and looked at last: until
	// the token is known to be open, the caller may be anyone.
	return holderOf(a) == l.holder && l.token != nil && !l.token.closed.Load() &&
		l.at.Load() == l.word && *l.moved == l.moves
}

// holderOf gives the pointer of an interface value. Sound: an interface with methods is a
// pointer to its method table and a pointer to, or the pointer that is, its value.
func holderOf(a Access) unsafe.Pointer { return (*[2]unsafe.Pointer)(unsafe.Pointer(&a))[1] }
