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
// Errors: ErrStale, ErrInvalidHandle, ErrNotSpawned; ErrExpired; ErrNotPublished on a snapshot.
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

// Lease is the right that a token gave to one entity's cells, in a form that is checked in a
// few loads: a view that holds pointers to the cells asks it whether they are good. It ends with
// the token, with the entity, and when the entity or its chunk moves. The zero Lease holds
// nothing.
//
// Concurrency: as the token it was taken with.
type Lease struct {
	holder [2]uintptr // of the Access: its type and its pointer, which are only compared
	token  *token
	at     *atomic.Uint64
	word   uint64
	reg    *Registry
	laid   uint64 // Store.Laid at the time
}

// Take makes the lease that of h and a. It is to be called right after Locate answered for both.
//
// Concurrency: as the token. Allocates: no.
func (l *Lease) Take(a Access, h handles.Local) {
	t := a.tokenOf()
	l.holder, l.token, l.reg = holderOf(a), t, t.r
	l.at = t.r.locals.WordAt(h.Index())
	l.word = l.at.Load()
	l.laid = t.r.store.Laid()
}

// Holds says whether the cells that were located when the lease was taken are still where they
// were, and a still gives access to them.
//
// Concurrency: as the token. Allocates: no.
func (l *Lease) Holds(a Access) bool {
	// The holder is a hint only: what makes the answer sound is that the token which was asked
	// then is open. An Access that embeds a token may change it, and another one may lie at the
	// address of one that is gone; either way a right to these cells is still held.
	return holderOf(a) == l.holder && l.token != nil && !l.token.closed.Load() &&
		l.at.Load() == l.word && l.reg.store.Laid() == l.laid
}

// holderOf gives the two words of an interface value. Sound: an interface with methods is a
// pointer to its method table and a pointer to, or the pointer that is, its value.
func holderOf(a Access) [2]uintptr { return *(*[2]uintptr)(unsafe.Pointer(&a)) }
