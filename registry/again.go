package registry

import "github.com/airlock-ecs/airlock/handles"

// Doing again what was recorded, when frames are simulated again. Whatever a step names that is not there
// this time is left out: each step has its own outcome, as it had the first time.

// UpdatesAgain does the Updates again that came before the next frame. If a callback exits the goroutine
// inside it, calling it again goes on behind that callback.
//
// Concurrency: Logic only, between frames. Allocates: as they do.
func (c *Core) UpdatesAgain() {
	r := c.r
	rs := &r.recorded
	if !rs.on && rs.fed == nil {
		return
	}
	if rs.fed != nil {
		if rs.again != rs.fed {
			rs.again, rs.next = rs.fed, 0
		}
	} else if next := r.frame.Load() + 1; rs.again == nil || rs.again.frame != next || rs.went {
		rs.again, rs.next, rs.went = &rs.list[next%uint64(len(rs.list))], 0, false
	}
	groups := rs.again.groups
	rs.updates = true
	for rs.updating != updateNone || rs.next < len(groups) && groups[rs.next].kind == groupUpdate {
		switch rs.updating {
		case updateNone:
			if r.delivering.open { // as Update does
				r.deliver()
				r.endFrame()
			}
			rs.next++
			rs.updating = updateWishes
			r.beginWriting(c.hooks.Workers, c.hooks.Spread)
			r.openWindow()
		case updateWishes:
			rs.updating = updateOps // also if this exits
			r.runWishes()
		case updateOps:
			for rs.next < len(groups) && groups[rs.next].kind != groupUpdateEnd {
				r.groupAgain()
			}
			ends := 0
			for ; rs.next < len(groups) && groups[rs.next].kind == groupUpdateEnd; rs.next++ {
				ends++
			}
			rs.updating = updateEvents
			if ends == endedInside || ends == endedInWishes { // nobody was told
				rs.updating = updateNone
				r.endFrame()
			}
			r.closeWindow()
		case updateEvents:
			rs.updating = updateNone // also if this exits
			r.deliver()
			r.endFrame()
			r.boundary()
		}
	}
	rs.updates = false
}

// How many ends the record of an Update has that was left by an exit, or by a panic of its callback: what it would
// have done then is not done again. One that returned has one.
const (
	endedInside   = 2
	endedInEvents = 3
	endedInWishes = 4
)

// Stages of an Update that is done again.
const (
	updateNone = iota
	updateWishes
	updateOps
	updateEvents
)

// OpsAgain does the operations of the frame's window again.
//
// Concurrency: Logic only, in the window. Allocates: as they do.
func (c *Core) OpsAgain() {
	for rs := &c.r.recorded; rs.next < len(rs.again.groups); {
		c.r.groupAgain()
	}
}

// destroyedAgain has the window that opens see the deaths that it saw the first time.
func (r *Registry) destroyedAgain() {
	rs := &r.recorded
	if rs.next < len(rs.again.groups) && rs.again.groups[rs.next].kind == groupDestroyed {
		r.groupAgain()
	}
}

// groupAgain does the next group of the record again.
func (r *Registry) groupAgain() {
	rs := &r.recorded
	g := rs.again.groups[rs.next]
	rs.next++
	switch g.kind {
	case groupDestroyed:
		was := r.causeNow
		r.setCause("")
		r.deadAgain(rs.again.ops[g.from:g.to])
		for _, o := range rs.again.ops[g.from:g.to] {
			r.seenAgain(&o)
		}
		r.setCause(was)
	case groupOps:
		rec := rs.again
		r.deadAgain(rec.ops[g.from:g.to])
		if err := r.callbackRecover("operation", func(w *Window) error {
			for i := range rec.ops[g.from:g.to] {
				r.opAgain(w, rec, &rec.ops[g.from+i])
			}
			return nil
		}); err != nil {
			r.report(err)
		}
	}
}

// seenAgain is what others have done, as a window sees it.
func (r *Registry) seenAgain(o *op) {
	r.claimOuter(o.h) // if this is the first that is heard of it
	if o.kind == opDestroyed {
		r.dieAgain(o.h)
	}
}

// dieAgain is the death of h from outside, as a window sees it.
func (r *Registry) dieAgain(h handles.Local) {
	w := r.locals.Word(h.Index())
	if w.Generation() != h.Generation() || r.asleep(h) {
		return
	}
	old, won := r.locals.Kill(h)
	switch {
	case won:
		if !r.pooled(h.Index()) {
			r.giveRoom(1)
		}
	case r.recorded.marked[h]:
		delete(r.recorded.marked, h)
		if old = w; w.Place() != handles.NoPlace {
			r.killed.Add(-1)
		}
	case w.State() == handles.Dying && (w.Place() != handles.NoPlace || r.findDeath(h) == nil && r.waitsOutside(h.Index())):
		old = w // others have destroyed it once more: this is the death they have seen before
		if w.Place() != handles.NoPlace {
			r.killed.Add(-1)
		}
		r.recorded.early[h] = true
	default:
		return
	}
	r.run = runNone
	if old.Place() == handles.NoPlace {
		r.addDeath(h, handles.NoPlace, r.causeIndex())
		r.noteDeath()
		return
	}
	r.tombstone(h, old.Place())
	r.noteDeath()
	r.killChildren(h)
	r.run = runNone
}

// opAgain does a step again.
func (r *Registry) opAgain(w *Window, rec *record, o *op) {
	switch o.kind {
	case opSpawn, opSpawnReserved:
		r.spawnAgain(int(o.class), o.h, int(o.other), o.kind == opSpawn && r.recorded.fed == nil)
	case opDestroy:
		_ = r.kill(o.h)
	case opChange:
		if comp, ok := r.schema.ByID(o.comp); ok {
			if o.flag {
				_ = r.addQuietly(comp, o.h)
			} else {
				_ = r.removeQuietly(comp, o.h)
			}
			r.tellMoves()
		}
	case opActive:
		_ = SetActive(w, o.h, o.flag)
	case opParent:
		_ = SetParent(w, o.h, handles.Local(o.other))
	case opAssign:
		_, _ = w.AssignNet(o.h)
	case opBind:
		_ = w.BindNet(o.h, handles.Net(o.other))
	case opNamed:
		r.setCause(rec.names[o.other])
	case opProcess:
		w.ProcessDeferredDestructions()
	case opConfirm:
		w.ConfirmLocalRecyclesThrough(o.other)
	case opWish:
		r.wishes = append(r.wishes, rec.wishes[o.other])
	case opWrite:
		r.writeAgain(o)
	case opReserve, opDestroyed:
		r.seenAgain(o)
	case opBlock:
		r.blockAgain(int(o.class), rec.names[uint32(o.other)], int(o.other>>32), o.h)
	case opInitial:
		r.initialAgain(o)
	case opTake:
		r.pooledAgain(int(o.class), o.other, o.h)
	case opDespawn:
		if b, i, ok := r.blockOf(uint32(r.pools.homes.Get(o.h.Index()) - 1)); ok {
			_ = r.despawn(b, i, o.h)
		}
	case opBurnt:
		r.burntAgain(o.h, o.flag)
	case opHome:
		r.archetypeOf(int(o.class), r.class(int(o.class)).sig)
	case opReset:
		_ = w.Reset()
	case opConfirmNet:
		if r.recorded.fed != nil { // else they have not gone back
			w.ConfirmNetRecyclesThrough(o.other)
		}
	case opBurnNet:
		r.burnNets(o.other)
	case opLost:
		if r.recorded.fed != nil { // else it lives again, and dies in its time
			r.markDead(o.h)
		}
	}
}

// spawnAgain gives h, which is reserved or never was here, its entity of a class, with cells of zero. It is the
// first of a batch of some, if they are more than one. lent says that its place was given back when its birth was
// undone, for what is simulated again before it to have the room it had.
func (r *Registry) spawnAgain(class int, h handles.Local, batch int, lent bool) {
	r.claimOuter(h)
	flag := uint32(0)
	if lent {
		flag = 1
		r.takeBackRoom()
	}
	a := r.archetypeOf(class, r.class(class).sig)
	ch, slot, fresh := takeAgain(a, batch)
	if ch == nil {
		return
	}
	place := ch.Base() + slot
	r.nameReserved(h)
	if !r.locals.Spawned(h, place) {
		w := r.locals.Word(h.Index())
		if !r.ringed() && !r.recorded.marked[h] || w.Generation() != h.Generation() || w.State() != handles.Dying || w.Place() != handles.NoPlace {
			a.Untake(ch, slot, fresh)
			return
		}
		r.locals.SetPlace(h, place) // others have destroyed it meanwhile: systems see it until the next window
		r.killed.Add(1)
	}
	r.log(undoOp{kind: undoReserved, h: h, fresh: fresh, nslot: flag})
	r.settle(a, ch, slot, h)
}

// writeAgain gives a cell its value.
func (r *Registry) writeAgain(o *op) {
	ch, slot, err := r.locate(o.h)
	if err != nil || !ch.Archetype().Has(o.comp) {
		return
	}
	comp, _ := r.schema.ByID(o.comp)
	f := &comp.Fields[o.field]
	col := ch.Archetype().Column(o.comp) + int(o.field)
	ch.Mark(col)
	f.Cell.Copy(ch.Cell(col, slot, f.Size), r.recorded.log(f).at(o.other))
}
