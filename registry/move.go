package registry

import (
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// Add gives h the component C with a value; one that h has already is set. The entity
// moves to another archetype: pointers to its cells end, its cache index changes.
//
// Errors: ErrStale, ErrInvalidHandle, ErrNotSpawned; ErrIdle for an idle slot of a pool; ErrNotRegistered; ErrExpired.
// Concurrency: window holder. Allocates: a chunk or an archetype now and then.
func Add[C any](w *Window, h handles.Local, v C) error {
	r, err := w.open()
	if err != nil {
		return err
	}
	comp, err := component[C](r)
	if err != nil {
		return err
	}
	if r.quick == &w.token && addQuick(r, comp, h, &v) {
		return nil
	}
	return add(r, comp, h, &v)
}

// addQuick is Add by the short way. False leaves it to add.
func addQuick[C any](r *Registry, comp *archetype.Component, h handles.Local, v *C) bool {
	ch, slot := r.moveQuick(h, comp.ID, Added)
	if ch == nil {
		return false
	}
	storeNew(comp, ch, slot, v)
	return true
}

// add also says through moveBatch who has moved; the caller tells the subscribers.
func add[C any](r *Registry, comp *archetype.Component, h handles.Local, v *C) error {
	err := addOne(r, comp, h, v)
	r.tellMoves()
	return err
}

func addOne[C any](r *Registry, comp *archetype.Component, h handles.Local, v *C) error {
	ch, slot, err := r.locate(h)
	if err != nil {
		return err
	}
	if ch.Archetype().Has(comp.ID) {
		set(r, comp, h, ch, slot, v)
		return nil
	}
	if ch, slot, err = r.change(h, ch, slot, comp.ID, Added); err != nil {
		return err
	}
	if r.inCallback && r.rec != nil {
		r.rec.touch(h, comp.ID, -1)
	}
	store(comp, ch, slot, v) // what was there goes with the slot, if the move is undone
	return nil
}

// addQuietly moves h to where it has comp, with a zero value, if it has not.
func (r *Registry) addQuietly(comp *archetype.Component, h handles.Local) error {
	ch, slot, err := r.locate(h)
	if err != nil {
		return err
	}
	if ch.Archetype().Has(comp.ID) {
		return nil
	}
	_, _, err = r.change(h, ch, slot, comp.ID, Added)
	return err
}

// change moves a living entity to the archetype that has one component more or less, as
// the event says that it causes, and says where it is then.
func (r *Registry) change(h handles.Local, ch *archetype.Chunk, slot uint32, id archetype.ComponentID, kind EventKind) (*archetype.Chunk, uint32, error) {
	if r.idleAt(ch, slot) {
		return nil, 0, ErrIdle
	}
	more := kind == Added
	nch, nslot, err := r.move(h, ch, slot, r.edge(ch.Archetype(), id, more))
	if err != nil {
		return nil, 0, err
	}
	r.event(kind, h, id)
	if r.inRuns() && ch.Archetype().Pooled() == 0 {
		r.logMove(h, ch, slot, id, kind)
		return nch, nslot, nil
	}
	r.vacated = append(r.vacated, vacancy{ch, slot})
	r.log(undoOp{kind: undoMove, h: h, comp: id, slot: ch.Base() + slot, fresh: r.lastFresh, at: uint64(kind)})
	if r.rec != nil {
		r.rec.add(op{kind: opChange, flag: more, h: h, comp: id})
	}
	return nch, nslot, nil
}

// edge is the archetype with one component more or less. It is looked for once.
func (r *Registry) edge(from *archetype.Archetype, id archetype.ComponentID, more bool) *archetype.Archetype {
	if to := from.Edge(id, more); to != nil {
		return to
	}
	sig := from.Signature().Without(id)
	if more {
		sig = from.Signature().With(id)
	}
	to := r.archetypeOf(from.Class(), sig)
	from.SetEdge(id, more, to)
	return to
}

// AddBatch gives C to each living entity of hs that lacks it, sets it for those that have
// it, and says how many that were.
//
// Panics: ErrExpired.
// Concurrency: window holder; the caller keeps hs. Allocates: chunks now and then.
func AddBatch[C any](w *Window, hs []handles.Local, v C) int {
	r := w.Registry()
	comp, err := component[C](r)
	if err != nil {
		return 0
	}
	n := 0
	for len(hs) > 0 {
		k := 0
		if ch, slot, err := r.locate(hs[0]); err == nil && r.inRuns() && !ch.Archetype().Has(comp.ID) {
			for run := runAt(hs, ch, slot); k < len(run); {
				nch, nslot, moved := r.moveRun(run[k:], ch, slot+uint32(k), comp.ID, Added)
				if moved == 0 {
					break
				}
				storeRun(comp, nch, nslot, moved, &v)
				k += moved
			}
		}
		n += k
		if hs = hs[k:]; k == 0 {
			if w.inQuick() && addQuick(r, comp, hs[0], &v) || addOne(r, comp, hs[0], &v) == nil {
				n++
			}
			hs = hs[1:]
		}
	}
	r.tellMoves()
	return n
}

// Remove takes the component C from h. The entity moves to another archetype.
//
// Errors: ErrNoComponent when h has no C; else as Add.
// Concurrency: window holder. Allocates: a chunk or an archetype now and then.
func Remove[C any](w *Window, h handles.Local) error {
	r, err := w.open()
	if err != nil {
		return err
	}
	comp, err := component[C](r)
	if err != nil {
		return err
	}
	if r.quick == &w.token && r.removeQuick(comp, h) {
		return nil
	}
	err = r.removeQuietly(comp, h)
	r.tellMoves()
	return err
}

// RemoveBatch takes C from each living entity of hs that has it, and says how many that
// were.
//
// Panics: ErrExpired.
// Concurrency: window holder; the caller keeps hs. Allocates: chunks now and then.
func RemoveBatch[C any](w *Window, hs []handles.Local) int {
	r := w.Registry()
	comp, err := component[C](r)
	if err != nil {
		return 0
	}
	n := 0
	for len(hs) > 0 {
		k := 0
		if ch, slot, err := r.locate(hs[0]); err == nil && r.inRuns() && ch.Archetype().Has(comp.ID) {
			for run := runAt(hs, ch, slot); k < len(run); {
				_, _, moved := r.moveRun(run[k:], ch, slot+uint32(k), comp.ID, Removed)
				if moved == 0 {
					break
				}
				k += moved
			}
		}
		n += k
		if hs = hs[k:]; k == 0 {
			if w.inQuick() && r.removeQuick(comp, hs[0]) || r.removeQuietly(comp, hs[0]) == nil {
				n++
			}
			hs = hs[1:]
		}
	}
	r.tellMoves()
	return n
}

// removeQuick is Remove by the short way. False leaves it to removeQuietly.
func (r *Registry) removeQuick(comp *archetype.Component, h handles.Local) bool {
	ch, _ := r.moveQuick(h, comp.ID, Removed)
	return ch != nil
}

func (r *Registry) removeQuietly(comp *archetype.Component, h handles.Local) error {
	ch, slot, err := r.locate(h)
	if err != nil {
		return err
	}
	if !ch.Archetype().Has(comp.ID) {
		return ErrNoComponent
	}
	_, _, err = r.change(h, ch, slot, comp.ID, Removed)
	return err
}

// move takes a living entity to another archetype of its class with the columns that both
// have. The slot it leaves is empty at once, and reclaimed when the callback commits. If
// another goroutine destroys h first, nothing moves and the answer is ErrStale, unless such
// deaths wait for the next window. The caller notes the slot among those that were vacated. Whether the new slot was fresh is left in lastFresh. Owner only.
func (r *Registry) move(h handles.Local, ch *archetype.Chunk, slot uint32, to *archetype.Archetype) (*archetype.Chunk, uint32, error) {
	nch, nslot, fresh := to.Take()
	if nch == nil {
		return nil, 0, ErrExhausted
	}
	if place := nch.Base() + nslot; !r.locals.Move(h, place) {
		if !r.late() {
			to.Untake(nch, nslot, fresh)
			return nil, 0, ErrStale
		}
		r.locals.SetPlace(h, place) // dead from the next window on, and until then like any other
	}
	r.lastFresh = fresh
	r.moves++
	to.CopyShared(nch, nslot, ch, slot)
	nch.Entities()[nslot] = h
	ch.Vacate(slot)
	if r.hide(ch, slot) || planted.Enabled && planted.Is(planted.MoveActivates) {
		r.show(nch, nslot)
	}
	ch.Archetype().AddLive(-1)
	to.AddLive(1)
	r.noteMove(h, ch.Base()+slot, nch.Base()+nslot)
	r.event(Moved, h, 0)
	return nch, nslot, nil
}

// unmove takes a move back: the entity, or its tombstone, lies where it lay before. Who
// undoes tells the subscribers when all is undone: they may exit.
func (r *Registry) unmove(op *undoOp) {
	r.vacated = r.vacated[:len(r.vacated)-1]
	r.moveBack(op)
}

// moveBack is unmove but for the slot's place in vacated.
func (r *Registry) moveBack(op *undoOp) {
	r.untell(EventKind(op.at), op.h, op.comp)
	r.untell(Moved, op.h, 0)
	place := r.locals.Word(op.h.Index()).Place()
	nch := r.store.ChunkAt(place)
	nslot := place - nch.Base()
	r.moves++
	back := op.slot
	ch := r.store.ChunkAt(back)
	slot := back - ch.Base()
	r.locals.SetPlace(op.h, back)
	ch.Occupy(slot, op.h) // a tombstone keeps its cell, too
	if d := r.findDeathIfDead(op.h); d != nil {
		d.place = back // another goroutine has destroyed it, and the owner knows
	} else {
		if r.hide(nch, nslot) {
			r.show(ch, slot)
		}
		nch.Archetype().AddLive(-1)
		ch.Archetype().AddLive(1)
	}
	if r.hist.going { // what no frame keeps goes on from where it is
		ch.Archetype().CopyShared(ch, slot, nch, nslot)
	}
	nch.Archetype().Untake(nch, nslot, op.fresh)
	r.noteMove(op.h, place, back)
}

func (r *Registry) findDeathIfDead(h handles.Local) *grave {
	if r.locals.Alive(h) {
		return nil
	}
	return r.findDeath(h)
}

// CacheIndex is where h lies in every column and external array: a number below CacheCap
// that changes only when the entity moves, which OnMove tells.
//
// Panics: ErrExpired.
// Concurrency: as the token. Allocates: no.
func CacheIndex(a Access, h handles.Local) (uint32, bool) {
	if s := published(a); s != nil {
		ref, slot, err := s.find(h)
		if err != nil {
			return 0, false
		}
		return ref.Base() + slot, true
	}
	r := mustOpen(a)
	ch, slot, err := r.locate(h)
	if err != nil {
		return 0, false
	}
	return ch.Base() + slot, true
}

// Active says whether h is alive and active: systems see it.
//
// Panics: ErrExpired.
// Concurrency: as the token. Allocates: no.
func Active(a Access, h handles.Local) bool {
	if s := published(a); s != nil {
		ref, slot, err := s.find(h)
		return err == nil && ref.Active(s.storage)[slot>>6]>>(slot&63)&1 != 0
	}
	r := mustOpen(a)
	ch, slot, err := r.locate(h)
	return err == nil && shown(ch, slot)
}

// SetActive takes h out of the world, or back into it, without ending it: inactive, it is
// alive, its handles and cells are good, and systems and presentation skip it.
//
// Errors: ErrStale, ErrInvalidHandle, ErrNotSpawned; ErrIdle for an idle slot of a pool, which spawning activates;
// ErrExpired; ErrReadOnly on a snapshot.
// Concurrency: as the token; what two workers want of one entity has no order. Allocates: no.
func SetActive(a Access, h handles.Local, active bool) error {
	r, inWindow, err := opened(a)
	if err != nil {
		return err
	}
	if !inWindow {
		r.wishMu.Lock()
		defer r.wishMu.Unlock()
	}
	ch, slot, err := r.locate(h)
	if err != nil {
		return err
	}
	if r.hist.inert {
		return errInert
	}
	if active && r.idleAt(ch, slot) {
		return ErrIdle
	}
	if r.inFrame {
		r.setActiveShared(h, ch, slot, active)
		return nil
	}
	if was := shown(ch, slot); was != active {
		r.log(undoOp{kind: undoActive, h: h, fresh: was})
		if r.rec != nil {
			r.rec.add(op{kind: opActive, flag: active, h: h})
		}
		r.setActive(ch, slot, active)
	}
	return nil
}

func (r *Registry) setActive(ch *archetype.Chunk, slot uint32, active bool) {
	switch {
	case !active:
		if r.hide(ch, slot) {
			r.inactive++
		}
	case shown(ch, slot):
	default:
		ch.MarkActive()
		r.show(ch, slot)
		r.inactive--
	}
}

// OnMove calls fn whenever entities move to other cache indices: before the call that
// moves them returns, on its goroutine, with one batch in an order that moves inside an
// array can follow. If the callback fails, fn is told the moves back. It runs inside the callback, so it
// must not wait, and must keep only what it copies. It takes effect at the next window.
//
// Errors: a nil fn.
// Concurrency: any goroutine. Allocates: yes.
func (r *Registry) OnMove(fn func([]Move)) (*Observer, error) {
	if fn == nil {
		return nil, fmt.Errorf("registry: OnMove without a function")
	}
	return r.subscribe(&Observer{r: r, move: fn}), nil
}

// Move says that an entity went from one cache index to another.
type Move struct {
	Entity   handles.Local
	Old, New uint32 // cache indices
}

func (r *Registry) noteMove(h handles.Local, old, now uint32) {
	if len(r.movers) > 0 {
		r.moveBatch = append(r.moveBatch, Move{Entity: h, Old: old, New: now})
	}
}

// tellMoves tells the subscribers what has moved since it last did. Every one is told, even
// if one before it exits the goroutine.
func (r *Registry) tellMoves() {
	if len(r.moveBatch) == 0 {
		return
	}
	batch := r.moveBatch
	r.moveBatch = nil // a subscriber that moves entities fills its own
	defer func() {
		if r.moveBatch == nil {
			r.moveBatch = batch[:0]
		}
	}()
	r.tellMovers(r.movers, batch)
}

func (r *Registry) tellMovers(movers []*Observer, batch []Move) {
	told := 0
	defer func() {
		if told < len(movers) { // the last one called has exited
			r.tellMovers(movers[told:], batch)
		}
	}()
	for told < len(movers) {
		o := movers[told]
		told++
		r.tellMover(o, batch)
	}
}

// tellMover calls one subscriber; its panic is reported and stops no other.
func (r *Registry) tellMover(o *Observer, batch []Move) {
	defer func() {
		if v := recover(); v != nil {
			r.report(r.panicError("move subscriber", v))
		}
	}()
	caller.Within(r.id, func() { o.move(batch) })
}
