package registry

import (
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// The short way of a window's Destroy, Add and Remove: what nearly every one of them is, while nobody records, listens or
// loops and no frame of the past is kept. It is one function each, which looks at the word once and knows from it what the
// locked operation has to find. Whatever is unusual is left, with nothing changed, to those that the others go through.

// openQuick opens the short way for a window's token, if nothing unusual is going on: see Registry.quick.
func (r *Registry) openQuick(t *token) {
	if t.kind == windowToken && r.inRuns() && !r.late() && !r.heard() && len(r.bornChunks) == 0 {
		r.quick = t
	}
}

// heard says whether anybody observes deaths or moves.
func (r *Registry) heard() bool {
	n := len(r.movers)
	for _, kind := range [...]EventKind{Added, Removed, Moved, Destroyed} {
		n += len(r.observers[kind])
	}
	return n > 0
}

// inQuick says whether the short way is open for the window.
func (w *Window) inQuick() bool { return w != nil && w.r != nil && w.r.quick == &w.token }

// find looks for the word of a living entity that a short way may be for: active, and in no pool.
func (r *Registry) find(h handles.Local) (word *atomic.Uint64, ch *archetype.Chunk, slot uint32) {
	word = r.locals.WordAt(h.Index())
	if word == nil {
		return nil, nil, 0
	}
	w := handles.Word(word.Load())
	if w.Generation() != h.Generation() || w.State() != handles.Alive {
		return nil, nil, 0
	}
	ch = r.store.ChunkAt(w.Place())
	if slot = w.Place() - ch.Base(); !ch.Bit(slot) || ch.Archetype().Pooled() != 0 {
		return nil, nil, 0
	}
	return word, ch, slot
}

// killQuick is kill of an active entity, behind another death of the same callback. False leaves it to kill.
func (r *Registry) killQuick(h handles.Local) bool {
	if r.run != runDeaths || len(r.family) != 0 || r.pools.any {
		return false
	}
	word, ch, slot := r.find(h)
	if word == nil || !handles.KillAt(word, h, ch.Base()+slot) {
		return false
	}
	if !r.exact && r.stash < stashSize {
		r.stash++
	} else {
		r.giveRoom(1)
	}
	ch.ClearBit(slot)
	ch.MarkActive()
	ch.Archetype().AddLive(-1)
	r.dying = append(r.dying, h)
	r.graves = append(r.graves, grave{place: ch.Base() + slot, how: r.causeIndex() | wasActive})
	r.undo[len(r.undo)-1].slot++
	return true
}

// moveQuick is change of an active entity whose archetype has moved somebody so before. A nil chunk leaves it to change.
func (r *Registry) moveQuick(h handles.Local, id archetype.ComponentID, kind EventKind) (*archetype.Chunk, uint32) {
	word, ch, slot := r.find(h)
	if word == nil {
		return nil, 0
	}
	from := ch.Archetype()
	to := from.Edge(id, kind == Added)
	if to == nil {
		return nil, 0
	}
	nch, nslot, fresh := to.Take()
	if nch == nil {
		return nil, 0
	}
	if !handles.MoveAt(word, h, ch.Base()+slot, nch.Base()+nslot) {
		to.Untake(nch, nslot, fresh)
		return nil, 0
	}
	r.moves++
	r.lastFresh = fresh
	to.CopyShared(nch, nslot, ch, slot)
	nch.Entities()[nslot] = h
	ch.Vacate(slot)
	ch.MarkActive()
	ch.ClearBit(slot)
	nch.SetBit(nslot)
	from.AddLive(-1)
	to.AddLive(1)
	r.logMove(h, ch, slot, id, kind)
	return nch, nslot
}
