package registry

import (
	"errors"
	"fmt"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// ErrIterating reports a compaction inside a loop over storage, which would meet entities twice or
// not at all.
var ErrIterating = errors.New("registry: a loop is open in this window")

// Relocation is the right to move entities without changing them, for package defrag: what it
// decides is carried out here, where words, handles and subscribers are.
//
// Concurrency: the window's holder, inside the function that Relocate calls.
type Relocation struct {
	r      *Registry
	moved  int
	moves  []archetype.SlotMove // of the batch at hand
	hs     []handles.Local      // who moves, one each
	placed []uint32             // where each lies when it has moved
}

// Relocate commits what the callback did so far and runs fn with the right to move entities. When
// it returns, chunks left empty are given back, and every subscriber to moves has been told, in
// one batch whose order moves inside an array can follow. The moves are not undone.
//
// Errors: what fn returns; ErrIterating inside a loop; ErrExpired.
// Concurrency: window holder. Allocates: for growth.
func Relocate(w *Window, fn func(*Relocation) error) error {
	r, err := w.open()
	if err != nil {
		return err
	}
	if r.iterating != 0 {
		return ErrIterating
	}
	r.commit()
	m := &r.relocation
	m.r, m.moved = r, 0
	defer func() {
		m.clear()
		if m.moved > 0 {
			r.moves++ // the board goes by it
		}
		r.tellMoves()
	}()
	return fn(m)
}

func (m *Relocation) clear() {
	clear(m.moves)
	m.moves, m.hs, m.placed = m.moves[:0], m.hs[:0], m.placed[:0]
}

// Store is the storage to look at.
//
// Concurrency: as the Relocation. Allocates: no.
func (m *Relocation) Store() *archetype.Store { return m.r.store }

// MayMove says whether the entities of an archetype may be moved: all, but in a deterministic
// registry only those of cosmetic classes.
//
// Concurrency: as the Relocation. Allocates: no.
func (m *Relocation) MayMove(a *archetype.Archetype) bool { return m.r.mayMove(a) }

func (r *Registry) mayMove(a *archetype.Archetype) bool {
	return a.Pooled() == 0 && (!r.cfg.Deterministic || r.class(a.Class()).cosmetic)
}

// Movable says whether a slot that is taken has a living entity. What has died stays where it is
// until it is reclaimed.
//
// Concurrency: as the Relocation. Allocates: no.
func (m *Relocation) Movable(c *archetype.Chunk, slot uint32) bool {
	h := c.Entities()[slot]
	return h != 0 && m.r.locals.Alive(h)
}

// Expect says how many moves are to come, so that they are noted without growth.
//
// Concurrency: as the Relocation. Allocates: for growth.
func (m *Relocation) Expect(moves int) {
	if len(m.r.movers) > 0 {
		m.r.moveBatch = slices.Grow(m.r.moveBatch, moves)
	}
}

// MoveSlots moves entities to free slots of their archetype, and says how many it has moved: one
// that another goroutine destroys first stays. The slots they leave are free. No slot is named
// twice.
//
// Concurrency: as the Relocation. Allocates: for growth.
func (m *Relocation) MoveSlots(a *archetype.Archetype, moves []archetype.SlotMove) int {
	r := m.r
	m.clear()
	// Words first: who is destroyed meanwhile does not move.
	for i := range moves {
		mv := &moves[i]
		fresh := mv.ToSlot >= uint32(mv.To.Allocated())
		a.TakeSlot(mv.To, mv.ToSlot) // also for who stays: the next fresh slot comes after this one
		h := mv.From.Entities()[mv.FromSlot]
		place := mv.To.Base() + mv.ToSlot
		if !r.locals.Move(h, place) {
			if !r.late() {
				a.Reclaim(mv.To, mv.ToSlot)
				continue
			}
			r.locals.SetPlace(h, place) // dead from the next window on, and until then like any other
		}
		if r.hist.on {
			r.log(undoOp{kind: undoRelocate, h: h, slot: mv.From.Base() + mv.FromSlot, nslot: place, fresh: fresh})
		}
		m.moves, m.hs, m.placed = append(m.moves, *mv), append(m.hs, h), append(m.placed, place)
	}
	a.CopySlots(m.moves)
	for i := range m.moves {
		mv, h := &m.moves[i], m.hs[i]
		mv.To.Entities()[mv.ToSlot] = h
		if r.hide(mv.From, mv.FromSlot) {
			r.show(mv.To, mv.ToSlot)
		}
		a.Reclaim(mv.From, mv.FromSlot)
		m.note(h, mv.From.Base()+mv.FromSlot, m.placed[i])
	}
	m.moved += len(m.moves)
	return len(m.moves)
}

func (m *Relocation) note(h handles.Local, old, now uint32) {
	if !(planted.Enabled && planted.Is(planted.MoveNotTold)) {
		m.r.noteMove(h, old, now)
	}
	if len(m.r.observers[Moved]) > 0 {
		m.r.event(Moved, h, 0)
	}
}

// MoveChunk gives a chunk lower cache indices, which moves everybody in it, and says how many that
// were. It does nothing if there are none, or if something in the chunk is dead and not
// reclaimed.
//
// Concurrency: as the Relocation. Allocates: for growth.
func (m *Relocation) MoveChunk(c *archetype.Chunk) (int, bool) {
	r := m.r
	if _, ok := r.store.LowerBase(c); !ok || !m.Rests(c) {
		return 0, false
	}
	old := c.Base()
	r.store.Rebase(c)
	if r.hist.on {
		r.log(undoOp{kind: undoRebase, slot: old, nslot: c.Base()})
	}
	n := 0
	for slot, h := range c.Entities()[:c.Allocated()] {
		if h == 0 {
			continue
		}
		place := c.Base() + uint32(slot)
		if !r.locals.Move(h, place) {
			r.locals.SetPlace(h, place) // destroyed by another goroutine: its list comes later
		}
		m.note(h, old+uint32(slot), place)
		n++
	}
	m.moved += max(n, 1)
	return n, true
}

// unrelocate takes the move of an entity by compaction back. What no frame keeps goes along.
func (r *Registry) unrelocate(op *undoOp) {
	to, from := r.store.ChunkAt(op.nslot), r.store.ChunkAt(op.slot)
	a, toSlot, slot := to.Archetype(), op.nslot-to.Base(), op.slot-from.Base()
	a.TakeSlot(from, slot)
	a.CopySlots([]archetype.SlotMove{{From: to, FromSlot: toSlot, To: from, ToSlot: slot}})
	from.Occupy(slot, op.h)
	r.locals.SetPlace(op.h, op.slot)
	if r.hide(to, toSlot) {
		from.MarkActive()
		r.show(from, slot)
	}
	a.Untake(to, toSlot, op.fresh)
	r.noteMove(op.h, op.nslot, op.slot)
	r.event(Moved, op.h, 0)
}

// unrebase takes the move of a chunk by compaction back.
func (r *Registry) unrebase(op *undoOp) {
	c := r.store.ChunkAt(op.nslot)
	r.store.RebaseTo(c, op.slot)
	for slot, h := range c.Entities()[:c.Allocated()] {
		if h != 0 {
			r.locals.SetPlace(h, op.slot+uint32(slot))
			r.noteMove(h, op.nslot+uint32(slot), op.slot+uint32(slot))
			r.event(Moved, h, 0)
		}
	}
}

// Rests says that nothing in the chunk is dead and waits to be reclaimed.
//
// Concurrency: as the Relocation. Allocates: no.
func (m *Relocation) Rests(c *archetype.Chunk) bool {
	alive := 0
	for slot := range uint32(c.Allocated()) {
		if m.Movable(c, slot) {
			alive++
		}
	}
	return alive == c.Taken()
}

// Repack moves the memory of a chunk to an older block, see archetype.Repack. Cache indices stay,
// so subscribers have nothing to hear.
//
// Concurrency: as the Relocation. Allocates: no.
func (m *Relocation) Repack(c *archetype.Chunk) {
	c.Archetype().Repack(c)
	m.moved++
}

// Settle gives the empty chunks of an archetype back and says how many there were.
//
// Concurrency: as the Relocation. Allocates: no.
func (m *Relocation) Settle(a *archetype.Archetype) int {
	before := a.Allocated()
	n := a.Settle()
	if n > 0 || a.Allocated() != before {
		m.moved++
	}
	return n
}

// Relocatable says whether entities may be moved at all.
//
// Errors: ErrDeterministic for a deterministic registry without a cosmetic class.
// Concurrency: any goroutine. Allocates: for an error.
func (r *Registry) Relocatable() error {
	if !r.cfg.Deterministic {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.classes {
		if c.cosmetic {
			return nil
		}
	}
	return fmt.Errorf("moving entities: %w", ErrDeterministic)
}
