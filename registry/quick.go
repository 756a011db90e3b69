package registry

import (
	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// The short way of a window's Destroy, Add and Remove: what nearly every one of them is, while nobody records, listens or
// loops and no frame of the past is kept. It is one function each, which looks at the word once and knows from it what the
// locked operation has to find. Whatever is unusual is left, with nothing changed, to those that the others go through.

// openQuick opens the short way for a window's token, if nothing unusual is going on, and closes it for any before: see
// Registry.quick.
func (r *Registry) openQuick(t *token) {
	if t.kind == windowToken && r.inRuns() && !r.late() && !r.heard() && len(r.bornChunks) == 0 {
		r.quick = t
	} else if r.quick != nil {
		r.quick = nil
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

// killQuick is kill of an active entity, behind another death of the same callback and cause. False leaves it to kill.
func (r *Registry) killQuick(h handles.Local) bool {
	if r.run != runDeaths || r.causeAt == 0 || len(r.family) != 0 || r.pools.any {
		return false
	}
	word := r.locals.WordAt(h.Index())
	if word == nil {
		return false
	}
	place := handles.Word(word.Load()).Place()
	ch := r.store.ChunkAt(place)
	if ch == nil {
		return false
	}
	slot := place - ch.Base()
	active, bit := &ch.Active()[slot>>6], uint64(1)<<(slot&63)
	if *active&bit == 0 || !handles.KillAt(word, h, place) {
		return false
	}
	*active &^= bit
	ch.MarkActive()
	ch.Archetype().AddLive(-1)
	r.dying = append(r.dying, h)
	r.graves = append(r.graves, grave{place: place, how: r.causeAt - 1 | wasActive})
	r.undo[len(r.undo)-1].slot++
	if !r.exact && r.stash < stashSize {
		r.stash++
	} else {
		r.giveRoom(1)
	}
	return true
}

// moveQuick is change of an active entity whose archetype has moved somebody so before. A nil chunk leaves it to change.
func (r *Registry) moveQuick(h handles.Local, id archetype.ComponentID, kind EventKind) (*archetype.Chunk, uint32) {
	word := r.locals.WordAt(h.Index())
	if word == nil {
		return nil, 0
	}
	w := handles.Word(word.Load())
	ch := r.store.ChunkAt(w.Place())
	if ch == nil || w.Generation() != h.Generation() || w.State() != handles.Alive {
		return nil, 0
	}
	from, slot := ch.Archetype(), w.Place()-ch.Base()
	active, bit := &ch.Active()[slot>>6], uint64(1)<<(slot&63)
	to := from.Edge(id, kind == Added)
	if *active&bit == 0 || to == nil || from.Pooled() != 0 {
		return nil, 0
	}
	nch, nslot, fresh := to.Take()
	if nch == nil {
		return nil, 0
	}
	if !handles.MoveAt(word, h, w.Place(), nch.Base()+nslot) {
		to.Untake(nch, nslot, fresh)
		return nil, 0
	}
	r.moves++
	to.CopyShared(nch, nslot, ch, slot)
	nch.Entities()[nslot] = h
	nch.SetBit(nslot)
	ch.Vacate(slot)
	*active &^= bit
	ch.MarkActive()
	from.AddLive(-1)
	to.AddLive(1)
	if r.lastFresh = fresh; r.run == runMoves {
		// logMove, written out for the usual case.
		op, v := &r.undo[len(r.undo)-1], &r.vacatedRuns[len(r.vacatedRuns)-1]
		if v.ch == ch && v.slot+v.n == slot && op.comp == id && op.h == handles.Local(kind) && op.fresh == fresh {
			op.nslot++
			v.n++
			r.undoHandles = append(r.undoHandles, h)
			return nch, nslot
		}
	}
	r.logMove(h, ch, slot, id, kind)
	return nch, nslot
}
