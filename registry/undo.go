package registry

import (
	"math"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
)

type undoKind uint8

const (
	undoBirths    undoKind = iota // undoHandles[at:], the first slot of them in reused slots
	undoDeaths                    // dying[at:at+slot]
	undoReserved                  // h, fresh: SpawnReserved; nslot 1: a Spawn that was done again
	undoMove                      // h came from place slot by Added or Removed (at); fresh
	undoSet                       // h, comp, at: index of the old value
	undoActive                    // h, fresh: was active
	undoParent                    // h, slot: old parent, nslot: old elder sibling
	undoNet                       // h, at: net handle issued or bound
	undoRelease                   // at: another owner's net handle, slot: the dead index that had it
	undoArchetype                 // the last one
	undoBirthRun                  // h and nslot-1 more of its generation, index by index; fresh
	undoMoveRun                   // undoHandles[at:], nslot of them, came from places slot on by Added or Removed (h); comp, fresh

	// Steps that only history takes back: callbacks do not make them, or do not undo them.
	undoClaim    // h: a reservation of SpawnLater; at: the generation from which on the index was claimed, if not only for h
	undoBurn     // h: its claim was taken back; at: likewise
	undoProcess  // dying from position at on, nslot of them: reclaimed
	undoVacated  // nslot more of vacated: reclaimed
	undoRelocate // h was moved by compaction from place slot to place nslot; fresh
	undoRebase   // a chunk went from cache index slot to nslot

	// Of pools. Slots are cache indices, nslot is where Block.save has kept the cells.
	undoTaken // h: of the slot, was activated
	undoQuick // undoHandles[at:] came into the pool that begins at slot, pools.left[h:] left it, both the short way; nslot: of the first of these
	undoHome  // h came into the slot; at: its generation before, and lower half of the place in dying of who is dead; fresh: who was there
	undoNext  // h has the slot instead of at: a callback that failed had given that name to somebody
	undoBurnt // h is the highest generation of its index that a failed callback gave to somebody; before it was at
)

// undoOp is one step of a callback, with what it takes to go back. Steps are undone in
// reverse order, so that each finds the world as its step left it. It holds no pointers,
// so that a long log is nothing to the garbage collector.
type undoOp struct {
	h     handles.Local
	at    uint64
	slot  uint32
	nslot uint32
	comp  archetype.ComponentID
	kind  undoKind
	fresh bool
}

// logRun is what the last step of the log may still take up: births and deaths come in
// long runs, which are one step each.
type logRun uint8

const (
	runNone   logRun = 0
	runReused logRun = 1
	runFresh  logRun = 2
	runDeaths logRun = 4
	runQuick  logRun = 8
	runMoves  logRun = 16
	runBirths logRun = 32
)

// vacancy is a slot that an entity has moved out of. It is reclaimed when the callback
// commits: until then undo may need its cells.
type vacancy struct {
	ch   *archetype.Chunk
	slot uint32
}

// log notes a step. Without history only inside a callback: outside of one nothing can fail later.
func (r *Registry) log(op undoOp) {
	if r.inCallback || r.hist.on {
		r.undo = append(r.undo, op)
		r.run = runNone
	}
}

// logBirth notes a birth. Within a step the slots are first reused, then fresh.
func (r *Registry) logBirth(h handles.Local, fresh bool) {
	run := runReused
	if fresh {
		run = runFresh
	}
	if r.run != run {
		r.logBirthRun(run)
	}
	r.undoHandles = append(r.undoHandles, h)
}

func (r *Registry) logBirthRun(run logRun) {
	n := r.hist.handleBase + uint64(len(r.undoHandles))
	switch {
	case r.run == runReused && run == runFresh:
		op := &r.undo[len(r.undo)-1]
		op.slot = uint32(n - op.at)
	case run == runFresh:
		r.undo = append(r.undo, undoOp{kind: undoBirths, at: n})
	default:
		r.undo = append(r.undo, undoOp{kind: undoBirths, at: n, slot: math.MaxUint32})
	}
	r.run = run
}

// logBirths notes births in slots that were all fresh, or all not. Handles that follow each other are noted as such: a
// list of them would keep eight bytes for each entity of a large batch.
func (r *Registry) logBirths(hs []handles.Local, fresh bool) {
	const next = handles.Local(1) << 32 // the same generation of the next index
	for i := 1; i < len(hs); i++ {
		if hs[i] != hs[i-1]+next {
			r.logBirth(hs[0], fresh)
			r.undoHandles = append(r.undoHandles, hs[1:]...)
			return
		}
	}
	if r.run == runBirths {
		if op := &r.undo[len(r.undo)-1]; op.fresh == fresh && op.h+handles.Local(op.nslot)*next == hs[0] {
			op.nslot += uint32(len(hs))
			return
		}
	}
	r.undo = append(r.undo, undoOp{kind: undoBirthRun, h: hs[0], nslot: uint32(len(hs)), fresh: fresh})
	r.run = runBirths
}

// logDeath notes that the last of dying died by the callback's own hand.
func (r *Registry) logDeath() {
	if r.run != runDeaths {
		r.undo = append(r.undo, undoOp{kind: undoDeaths, at: r.hist.deadBase + uint64(len(r.dying)-1)})
		r.run = runDeaths
	}
	r.undo[len(r.undo)-1].slot++
}

// commit makes what the callback did so far final.
func (r *Registry) commit() {
	if r.rec != nil {
		r.rec.seal(r)
	}
	if r.hist.on {
		r.commitKept()
		return
	}
	for _, v := range r.vacated {
		r.reclaimVacated(v)
	}
	for _, v := range r.vacatedRuns {
		if r.iterating != 0 {
			v.ch.Soil()
		}
		v.ch.Archetype().ReclaimRun(v.ch, v.slot, v.n)
	}
	clear(r.vacatedRuns)
	r.vacatedRuns = r.vacatedRuns[:0]
	r.pools.forgetSaved()
	clear(r.vacated)
	r.vacated = r.vacated[:0]
	r.undo, r.undoHandles, r.run = r.undo[:0], r.undoHandles[:0], runNone
	for _, id := range r.valuesUsed {
		r.values[id].forgetOld()
	}
	r.valuesUsed = r.valuesUsed[:0]
	r.countNamed()
}

// reclaimVacated reclaims a slot that an entity has moved out of. That of a pool is nobody else's, and may have another
// entity by now. The body of an open loop may write either yet.
func (r *Registry) reclaimVacated(v vacancy) {
	a := v.ch.Archetype()
	if r.iterating != 0 {
		v.ch.Soil()
	}
	switch {
	case a.Pooled() == 0:
		a.Reclaim(v.ch, v.slot)
	case v.ch.Entities()[v.slot] == 0:
		a.Blank(v.ch, v.slot)
	}
}

// commitKept is commit where the log is kept. Values are not: those of frames are in their buffers.
func (r *Registry) commitKept() {
	kept := r.undo[:r.undoFrom]
	for _, op := range r.undo[r.undoFrom:] {
		if op.kind != undoSet {
			kept = append(kept, op)
		}
	}
	r.undo, r.undoFrom, r.run = kept, len(kept), runNone
	r.pools.forgetSaved()
	for _, id := range r.valuesUsed {
		r.values[id].forgetOld()
	}
	r.valuesUsed = r.valuesUsed[:0]
	r.countNamed()
}

// rollback takes back what the callback did since it began or last committed.
func (r *Registry) rollback() {
	if r.rec != nil {
		r.rec.drop()
	}
	r.undoTo(r.undoFrom)
	if r.rec != nil {
		r.rec.leave()
	}
	r.commit()
}

// undoTo takes back the steps from mark on, newest first, and their events. What lasts of them, though they are taken
// back, is logged anew, oldest first.
func (r *Registry) undoTo(mark int) {
	r.deaths = deathsByName{undoing: !r.pools.any}
	defer func() { r.deaths = deathsByName{} }()
	for n := len(r.undo); n > mark; n = len(r.undo) {
		if planted.Enabled && planted.Is(planted.UndoOutOfOrder) {
			if n-mark > 1 {
				r.undo[n-1], r.undo[n-2] = r.undo[n-2], r.undo[n-1]
			}
		}
		op := r.undo[n-1]
		r.undo, r.run = r.undo[:n-1], runNone
		r.undoOne(&op)
	}
	for i := len(r.hist.claimed) - 1; i >= 0; i-- {
		r.log(undoOp{kind: undoClaim, h: r.hist.claimed[i], at: uint64(r.pools.claims[r.hist.claimed[i]])})
	}
	for i := len(r.burned) - 1; i >= 0; i-- {
		r.log(undoOp{kind: undoBurn, h: r.burned[i], at: uint64(r.pools.claims[r.burned[i]])})
	}
	clear(r.pools.claims)
	r.hist.claimed, r.burned = r.hist.claimed[:0], r.burned[:0]
	if r.pools.any && !r.hist.going {
		r.burnGiven()
	}
}

func (r *Registry) undoOne(op *undoOp) {
	switch op.kind {
	case undoBirths:
		at := int(op.at - r.hist.handleBase)
		for i := len(r.undoHandles) - 1; i >= at; i-- {
			r.unspawn(r.undoHandles[i], i-at >= int(op.slot))
		}
		r.undoHandles = r.undoHandles[:at]
	case undoBirthRun:
		for i := op.nslot; i > 0; i-- {
			r.unspawn(handles.NewLocal(op.h.Index()+i-1, op.h.Generation()), op.fresh)
		}
	case undoDeaths:
		at := int(op.at - r.hist.deadBase)
		for i := at + int(op.slot) - 1; i >= at; i-- {
			r.unkill(r.dying[i], r.graves[i])
			if i < r.namedMark { // in history only
				if r.nets.Returns(r.deadNet(r.dying[i])) {
					r.namedDeaths--
				}
				r.namedMark = i
			}
		}
		r.dying = slices.Delete(r.dying, at, at+int(op.slot))
		r.graves = slices.Delete(r.graves, at, at+int(op.slot))
		r.deaths.at, r.deaths.walked = nil, 0
	case undoReserved:
		r.unspawnReserved(op.h, op.fresh)
		if op.nslot != 0 {
			r.giveRoom(1) // see spawnAgain
		}
	case undoMove:
		r.unmove(op)
	case undoMoveRun:
		r.unmoveRun(op)
	case undoSet:
		ch, slot, err := r.locate(op.h)
		if err != nil && len(r.pools.burning) > 0 {
			ch, slot, err = r.locateBurning(op.h)
		}
		if err == nil && !(planted.Enabled && planted.Is(planted.ValueNotRestored)) {
			r.values[op.comp].restore(ch, slot, int(op.at))
		}
	case undoActive:
		if ch, slot, err := r.locate(op.h); err == nil {
			r.setActive(ch, slot, op.fresh)
		}
	case undoParent:
		if planted.Enabled && planted.Is(planted.ParentNotRestored) {
			return
		}
		r.link(op.h.Index(), op.slot, op.nslot)
	case undoNet:
		r.unname(op.h, handles.Net(op.at))
	case undoRelease:
		r.nets.Bind(handles.Net(op.at), op.slot)
		r.netOf.At(op.slot).Store(op.at)
	case undoArchetype:
		r.dropArchetype()
	case undoClaim:
		if r.hist.going {
			r.unclaim(op.h)
			r.unclaimFrom(op)
			r.noHome(op.h.Index())
		} else { // a callback that fails leaves it to dropWishes to end the reservation
			r.hist.claimed = append(r.hist.claimed, op.h)
			r.claimedFrom(op.h, uint32(op.at))
		}
	case undoBurn:
		if r.hist.going {
			r.locals.Unclaim(op.h)
			r.unclaimFrom(op)
			r.noHome(op.h.Index())
		} else {
			r.burned = append(r.burned, op.h)
			r.claimedFrom(op.h, uint32(op.at))
		}
	case undoProcess:
		r.unprocess(op)
	case undoVacated:
		r.unvacate(op)
	case undoRelocate:
		r.unrelocate(op)
	case undoRebase:
		r.unrebase(op)
	case undoTaken:
		r.undoTakenSlot(op)
	case undoQuick:
		r.undoQuickRun(op)
	case undoHome:
		r.undoHomeSlot(op)
	case undoNext:
		r.undoNextName(op)
	case undoBurnt:
		r.undoBurntName(op)
	}
}

// untell takes the event of an undone step back. When the registry goes back it has been told, and the
// contrary is told.
func (r *Registry) untell(kind EventKind, h handles.Local, comp archetype.ComponentID) {
	if !r.hist.going {
		r.unevent(kind, h)
		return
	}
	contrary := [kinds]EventKind{Spawned: Destroyed, Added: Removed, Removed: Added, Moved: Moved, Destroyed: Spawned}
	r.event(contrary[kind], h, comp)
}

// unspawn takes a birth back: slot, record and index go where they came from, the handle
// is dead for ever. If another goroutine has destroyed the entity meanwhile, the index
// goes the way of every death instead.
func (r *Registry) unspawn(h handles.Local, fresh bool) {
	place := r.locals.Word(h.Index()).Place()
	ch := r.store.ChunkAt(place)
	slot := place - ch.Base()
	if ch.Archetype().Pooled() == 0 {
		r.untell(Spawned, h, 0)
	} else {
		r.unsettle(ch, slot)
		h = r.lastName(h)
	}
	switch inner := h.Index() < r.outerFirst; {
	case r.hist.going && inner:
		r.leave(ch, slot)
		r.unclaim(h)
		r.noHome(h.Index())
	case r.hist.going: // a name that others may hold: it waits for its birth to be repeated, and lends its room
		if r.locals.Unspawned(h) {
			r.leave(ch, slot)
		} else {
			r.disown(h, ch, slot)
		}
		r.giveRoom(1)
	case r.unissue(h):
		r.leave(ch, slot)
		r.giveRoom(1)
		if r.hist.on && inner {
			r.burned = append(r.burned, h)
		}
	default:
		if r.hist.on && inner { // its death is to come
			r.hist.claimed = append(r.hist.claimed, h)
		}
		if ch.Archetype().Pooled() != 0 {
			r.giveRoom(1) // whoever destroyed it has not
		}
		r.disown(h, ch, slot)
	}
	if !r.ringed() {
		r.globals.Unissue(r.recordOf(h.Index()))
	}
	ch.Archetype().Untake(ch, slot, fresh)
}

// leave takes a living entity out of its slot's counts and planes.
func (r *Registry) leave(ch *archetype.Chunk, slot uint32) {
	if !r.hide(ch, slot) {
		r.inactive--
	}
	ch.Archetype().AddLive(-1)
}

// disown parts an entity that another goroutine has destroyed from a slot that undo takes
// back. It stays among the deaths, without a place.
func (r *Registry) disown(h handles.Local, ch *archetype.Chunk, slot uint32) {
	r.locals.SetPlace(h, handles.NoPlace)
	if d := r.findDeath(h); d != nil { // the owner has seen it die
		d.place = handles.NoPlace
		r.placeless++
		r.unevent(Destroyed, h)
		return
	}
	r.killed.Add(-1)
	r.leave(ch, slot)
}

func (r *Registry) unspawnReserved(h handles.Local, fresh bool) {
	place := r.locals.Word(h.Index()).Place()
	ch := r.store.ChunkAt(place)
	slot := place - ch.Base()
	if ch.Archetype().Pooled() == 0 {
		r.untell(Spawned, h, 0)
	} else {
		r.unsettle(ch, slot)
	}
	if r.locals.Unspawned(h) {
		r.leave(ch, slot)
	} else {
		r.disown(h, ch, slot)
	}
	r.moves++ // h may be spawned again at once, at this place: a lease on the cells must not outlive them
	if !r.ringed() {
		r.reuseRecord(h)
	}
	ch.Archetype().Untake(ch, slot, fresh)
}

// unkill brings an entity back, or a reservation, that this callback destroyed.
func (r *Registry) unkill(h handles.Local, d grave) {
	if !r.pooled(h.Index()) {
		r.takeBackRoom()
	}
	if d.place == handles.NoPlace {
		r.placeless--
		if !r.locals.ReviveReserved(h) {
			panic("registry: undo of a destroyed reservation")
		}
		return
	}
	ch := r.store.ChunkAt(d.place)
	slot := d.place - ch.Base()
	if d.how&wasIdle != 0 {
		b, i := r.blockAt(ch, slot)
		b.idle.Add(i)
		r.pools.idle++
		b.count()
	} else {
		r.untell(Destroyed, h, 0)
	}
	ch.Occupy(slot, h) // its cell may have been cleared with the frame in which it died
	ch.Archetype().AddLive(1)
	r.inactive++
	r.setActive(ch, slot, d.how&wasActive != 0 || planted.Enabled && planted.Is(planted.RevivedActive))
	if !r.locals.Revive(h, d.place) {
		panic("registry: undo of a death")
	}
}

// takeBackRoom takes the place of an entity that lives again. A Reserve may have taken it
// meanwhile: then the cap is passed by one until something dies, rather than lose the
// entity.
func (r *Registry) takeBackRoom() {
	if r.stash > 0 {
		r.stash--
		return
	}
	r.room.Add(-1)
	r.held.drawn(1, 0)
}

// deathsByName finds graves while undo takes steps of entities back that others have destroyed by the thousand: a walk for
// each of them took a fifth of a second for sixteen thousand. It is made once as much was walked as it costs.
type deathsByName struct {
	undoing bool                  // and nobody joins the dead meanwhile
	walked  int                   // deaths that were passed since the list was cut
	at      map[handles.Local]int // places in dying; nil: none was made
}

func (r *Registry) findDeath(h handles.Local) *grave {
	d := &r.deaths
	if d.at != nil {
		if i, ok := d.at[h]; ok {
			return &r.graves[i]
		}
		return nil
	}
	for i := len(r.dying) - 1; i >= 0; i-- {
		if r.dying[i] == h {
			d.walk(r.dying, len(r.dying)-i)
			return &r.graves[i]
		}
	}
	d.walk(r.dying, len(r.dying))
	return nil
}

// walk notes that deaths were passed.
func (d *deathsByName) walk(dying []handles.Local, passed int) {
	const worth = 16 // names passed take as long as one noted
	if d.walked += passed; !d.undoing || d.walked < worth*len(dying) {
		return
	}
	d.at = make(map[handles.Local]int, len(dying))
	for i, h := range dying {
		d.at[h] = i
	}
}

// dropArchetype takes a new archetype back, with every pointer to it.
func (r *Registry) dropArchetype() {
	as := r.store.Archetypes()
	a := as[len(as)-1]
	if a.Pooled() != 0 {
		r.dropBlock()
	}
	r.hop = hop{}
	r.mu.Lock()
	for _, c := range r.classes {
		c.forget(a)
	}
	r.mu.Unlock()
	r.store.Drop(a)
}
