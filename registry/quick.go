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
	r.hop = hop{}
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

// hop is how the last one moved by the short way. Whoever follows mostly moves likewise, so that the processor guesses where it
// goes, and by chunkNear where it lies, instead of loading its way there, one load after the other. Nothing of that begins before
// the locked operation of the one before has ended: it was a fifth of a move.
type hop struct {
	from, to *archetype.Archetype
	id       archetype.ComponentID
	kind     EventKind
}

// chunkNear is Store.ChunkAt, but looks first at the chunk that it gave last. One that was released has no slots.
func (r *Registry) chunkNear(place uint32) *archetype.Chunk {
	if c := r.near; c != nil && place-c.Base() < uint32(c.Slots()) {
		return c
	}
	return r.chunkFar(place)
}

func (r *Registry) chunkFar(place uint32) *archetype.Chunk {
	c := r.store.ChunkAt(place)
	if c != nil {
		r.near = c
	}
	return c
}

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
	ch := r.chunkNear(place)
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
	ch := r.chunkNear(w.Place())
	if ch == nil || w.Generation() != h.Generation() || w.State() != handles.Alive {
		return nil, 0
	}
	from, slot := ch.Archetype(), w.Place()-ch.Base()
	active, bit := &ch.Active()[slot>>6], uint64(1)<<(slot&63)
	to := r.hop.to
	if r.hop.from != from || r.hop.id != id || r.hop.kind != kind {
		if to = from.Edge(id, kind == Added); to == nil || from.Pooled() != 0 {
			return nil, 0
		}
		r.hop = hop{from: from, to: to, id: id, kind: kind}
	}
	if *active&bit == 0 {
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
