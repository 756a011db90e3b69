package registry

import (
	"runtime"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// What poolslot.go does, taken back, by a callback that fails or by going back; and what lasts of it all the same: names
// that were given to somebody are not given to anybody else.

// undoTakenSlot takes an activation back.
func (r *Registry) undoTakenSlot(op *undoOp) {
	h := op.h
	ch := r.store.ChunkAt(op.slot)
	slot := op.slot - ch.Base()
	b, i := r.blockAt(ch, slot)
	r.untell(Spawned, h, 0)
	if !r.locals.Alive(h) && r.findDeath(h) != nil { // others have destroyed it, and the owner knows: the slot comes home as ever
		r.unevent(Destroyed, h)
		return
	}
	if r.hide(ch, slot) {
		r.inactive++
	}
	if b.unsave(ch, slot, op.nslot); op.comp == tookInitial {
		b.reset(ch, slot)
	}
	switch own := b.own(i); {
	case own.Index() != h.Index():
		r.unlodge(b, i, own, h, ch, slot, op.fresh)
	case !r.hist.going:
		r.pools.burning = append(r.pools.burning, burnt{op.slot, h})
	}
	b.idle.Add(i)
	r.pools.idle++
	b.count()
}

// unlodge takes a name from outside from a slot whose own name is awake again. If that had been destroyed by others, it
// still is.
func (r *Registry) unlodge(b *Block, i uint32, own, h handles.Local, ch *archetype.Chunk, slot uint32, slain bool) {
	switch {
	case r.hist.going:
		if !r.locals.Unspawned(h) { // it waits for its birth to be repeated
			r.locals.SetPlace(h, handles.NoPlace)
			r.killed.Add(-1)
		}
	case r.unissue(h):
	default: // others have destroyed it: it is a death without a place
		r.locals.SetPlace(h, handles.NoPlace)
		r.killed.Add(-1)
	}
	ch.Occupy(slot, own)
	b.tenant[i].Store(own.Index())
	switch {
	case !slain:
		r.wake(own, b.base+i)
	case r.hist.going:
		r.fates.note(own)
		r.fates.wait()
		r.wake(own, b.base+i)
		r.hist.recalled = append(r.hist.recalled, own)
	default: // it never lives meanwhile, for somebody could destroy it a second time
		r.locals.SetPlace(own, b.base+i)
		r.killed.Add(1)
		r.pushOutside(own.Index())
	}
}

// wake has the own name of a slot live again.
func (r *Registry) wake(own handles.Local, place uint32) {
	if !r.locals.Revive(own, place) {
		panic("registry: a name of a pool that does not sleep")
	}
}

// locateBurning finds the idle slot of somebody whom others have destroyed since a callback that fails has spawned it: the
// next one gets the slot as it was.
func (r *Registry) locateBurning(h handles.Local) (*archetype.Chunk, uint32, error) {
	for _, given := range r.pools.burning {
		if given.h == h {
			ch := r.store.ChunkAt(given.place)
			return ch, given.place - ch.Base(), nil
		}
	}
	return nil, 0, ErrStale
}

// burnGiven gives slots the next name whose names a callback that failed has given to somebody, and notes what lasts of
// it. History takes that back.
func (r *Registry) burnGiven() {
	p := &r.pools
	for i := len(p.lasting) - 1; i >= 0; i-- {
		r.log(p.lasting[i])
	}
	p.lasting = p.lasting[:0]
	for _, given := range p.burning {
		ch := r.store.ChunkAt(given.place)
		if ch == nil || ch.Archetype().Pooled() == 0 || ch.Entities()[given.place-ch.Base()] != given.h {
			continue // its making was taken back, or the life before it, see undoHomeSlot
		}
		b, _ := r.blockAt(ch, given.place-ch.Base())
		if r.seize(given.h) != nil {
			continue // others have destroyed it, and the owner knows: it comes home
		}
		next, ok := r.locals.Renew(given.h, p.burnt[given.h.Index()], given.place)
		if !ok {
			r.tombstone(given.h, given.place) // the last generation: the slot goes with it
			r.noteDeath()
			r.recordGone(given.h)
			continue
		}
		ch.Occupy(given.place-ch.Base(), next)
		b.count()
		r.log(undoOp{kind: undoNext, h: next, at: uint64(given.h), slot: given.place})
		r.recordBurnt(next, true)
	}
	p.burning = p.burning[:0]
}

// recordBurnt notes for the record of the callback that it has left a generation behind, whatever became of it.
func (r *Registry) recordBurnt(h handles.Local, next bool) {
	if r.rec != nil {
		r.rec.burnt = append(r.rec.burnt, op{kind: opBurnt, h: h, flag: next})
	}
}

// recordGone notes for the record of the callback that the entity of an idle slot has died of its failure.
func (r *Registry) recordGone(h handles.Local) {
	if r.rec != nil {
		r.rec.burnt = append(r.rec.burnt, op{kind: opDestroy, h: h})
	}
}

// undoHomeSlot takes goHome back.
func (r *Registry) undoHomeSlot(op *undoOp) {
	p := &r.pools
	at := int(uint32(op.at) - uint32(r.hist.deadBase))
	dead := r.dying[at]
	ch := r.store.ChunkAt(op.slot)
	slot := op.slot - ch.Base()
	b, i := r.blockAt(ch, slot)
	h := b.own(i) // op.h, or one that it has got since in a part of the callback that was taken back
	seen := r.seize(h)
	if b.idle.Remove(i) {
		p.idle--
	}
	if seen != nil { // others have destroyed it, and the owner knows: a death of somebody who never was
		r.forgetDeath(h)
	} else {
		r.inactive--
		b.arch.AddLive(-1)
	}
	if !r.hist.going {
		p.lasting = slices.DeleteFunc(p.lasting, func(o undoOp) bool { return o.kind == undoNext && o.slot == op.slot })
		r.noteBurnt(h)
	}
	r.locals.Unrenew(h, uint32(op.at>>32))
	ch.Entities()[slot] = 0
	if op.fresh {
		ch.Entities()[slot] = dead
	}
	ch.Rewrite()
	b.tenant[i].Store(dead.Index())
	b.unsave(ch, slot, op.nslot)
	if n, ok := p.nets[dead]; ok {
		delete(p.nets, dead)
		r.netOf.At(dead.Index()).Store(uint64(n))
	}
	if g := uint32(r.records.Get(dead.Index())); g != 0 && !r.ringed() {
		r.globals.Free(g) // one generation more: that of the life taken back is nobody's
		r.nameRecord(dead.Index())
	}
	r.graves[at].how &^= wentHome
	p.homed--
	b.count()
}

// forgetDeath takes an idle entity out of the dead that others have destroyed while the callback ran that fails, and
// that has not come into being now.
func (r *Registry) forgetDeath(h handles.Local) {
	for k := len(r.dying) - 1; k >= 0; k-- {
		if r.dying[k] == h {
			r.dying, r.graves = slices.Delete(r.dying, k, k+1), slices.Delete(r.graves, k, k+1)
			return
		}
	}
}

// seize makes h dead by the owner's hand, and gives its grave if the owner has seen it die before. Others may destroy h
// until then, and one who was first has it in the outside list, or is about to.
func (r *Registry) seize(h handles.Local) *grave {
	for {
		if _, won := r.locals.Kill(h); won {
			return nil
		}
		if d := r.findDeath(h); d != nil {
			r.unlist(h)
			return d
		}
		if r.recorded.marked[h] {
			delete(r.recorded.marked, h)
			r.killed.Add(-1)
			return nil
		}
		if r.takeFromOutside(h.Index()) {
			r.killed.Add(-1)
			if r.hist.going { // it dies again when the present is reached, if it lives by then
				r.fates.note(h)
				r.fates.wait()
				r.hist.recalled = append(r.hist.recalled, h)
			}
			return nil
		}
		runtime.Gosched()
	}
}

// unlist takes a dead name out of the outside list that was seen dead before the owner came to it there: the list knows
// indices only, and this one is about to have another generation.
func (r *Registry) unlist(h handles.Local) {
	if !r.recorded.early[h] {
		return
	}
	for !r.takeFromOutside(h.Index()) {
		runtime.Gosched() // whoever destroyed it is about to put it there
	}
	delete(r.recorded.early, h)
}

// takeFromOutside takes an index out of the outside list, and says whether it was there. The others keep their order.
func (r *Registry) takeFromOutside(index uint32) bool {
	var list []uint32 // newest first
	for i := uint32(r.outside.Swap(0)); i != 0; {
		link := r.nextDead.At(i)
		next := uint32(link.Load())
		link.Store(0)
		list = append(list, i)
		i = next
	}
	found := false
	for k := len(list) - 1; k >= 0; k-- {
		if list[k] == index {
			found = true
			continue
		}
		r.pushOutside(list[k])
	}
	return found
}

// noteBurnt notes that a generation of a slot's own name was given out by a callback that fails, and is not to be given
// out again.
func (r *Registry) noteBurnt(h handles.Local) {
	p := &r.pools
	was := p.burnt[h.Index()]
	if was >= h.Generation() {
		return
	}
	r.setBurnt(h.Index(), h.Generation())
	p.lasting = append(p.lasting, undoOp{kind: undoBurnt, h: h, at: uint64(was)})
	r.recordBurnt(h, false)
}

func (r *Registry) setBurnt(index, generation uint32) {
	p := &r.pools
	switch {
	case generation == 0:
		delete(p.burnt, index)
	case p.burnt == nil:
		p.burnt = map[uint32]uint32{index: generation}
	default:
		p.burnt[index] = generation
	}
}

// lastName has the own name of a slot that is about to be no more, whose first one was h, pass over the generations that
// callbacks which failed have given to somebody: who gets the index next knows nothing of pools. It gives the name that
// the index has then.
func (r *Registry) lastName(h handles.Local) handles.Local {
	if r.hist.going {
		return h // all later names were taken back
	}
	p := &r.pools
	now := handles.NewLocal(h.Index(), r.locals.Word(h.Index()).Generation())
	last := now
	if was := p.burnt[h.Index()]; was > now.Generation() {
		last = r.spaceOf(now.Index()).Skip(now, was)
		for i := len(r.dying) - 1; i >= 0; i-- {
			if r.dying[i] == now {
				r.dying[i] = last // it is freed by that name
			}
		}
	}
	delete(p.burnt, h.Index())
	if last != h {
		r.claimedFrom(last, h.Generation())
		p.lasting = slices.DeleteFunc(p.lasting, func(o undoOp) bool { return o.h.Index() == h.Index() })
	}
	return last
}

// claimedFrom notes that the index of h, which is about to be in r.burned or hist.claimed, was claimed from a generation on,
// if that is not 0.
func (r *Registry) claimedFrom(h handles.Local, generation uint32) {
	if generation == 0 || !r.hist.on {
		return
	}
	if r.pools.claims == nil {
		r.pools.claims = map[handles.Local]uint32{}
	}
	r.pools.claims[h] = generation
}

// unclaimFrom takes the claims back of the generations before one that was.
func (r *Registry) unclaimFrom(op *undoOp) {
	for g := op.h.Generation() - 1; op.at != 0 && g >= uint32(op.at); g-- {
		r.locals.Unclaim(handles.NewLocal(op.h.Index(), g))
	}
}

// undoNextName takes burnGiven back for one slot, when the registry goes back. A callback that fails has it last.
func (r *Registry) undoNextName(op *undoOp) {
	if !r.hist.going {
		r.pools.lasting = append(r.pools.lasting, *op)
		r.recordBurnt(op.h, true)
		return
	}
	ch := r.store.ChunkAt(op.slot)
	was := handles.Local(op.at)
	r.seize(op.h)
	r.locals.Unrenew(op.h, was.Generation())
	r.fates.note(was)
	r.fates.wait()
	r.locals.Revive(was, op.slot)
	ch.Occupy(op.slot-ch.Base(), was)
}

// undoBurntName takes noteBurnt back, as undoNextName does.
func (r *Registry) undoBurntName(op *undoOp) {
	if !r.hist.going {
		r.pools.lasting = append(r.pools.lasting, *op)
		r.recordBurnt(op.h, false)
		return
	}
	r.setBurnt(op.h.Index(), uint32(op.at))
}
