package registry

import (
	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// grave is what is kept of an entity, or a reservation, that ended and is not reclaimed
// yet, beside its handle.
type grave struct {
	place uint32 // handles.NoPlace: it has no slot
	how   uint32 // place of the cause in causes, and the marks below
}

const (
	wasActive = 1 << 31 // an active entity
	wasIdle   = 1 << 30 // that of an idle slot of a pool
	wentHome  = 1 << 29 // the slot of a pool that it was in has another entity
	graveMark = wasActive | wasIdle | wentHome
)

func (g grave) cause() uint32 { return g.how &^ graveMark }

// addDeath notes a death.
func (r *Registry) addDeath(h handles.Local, place, how uint32) {
	r.dying = append(r.dying, h)
	r.graves = append(r.graves, grave{place: place, how: how})
	if place == handles.NoPlace {
		r.placeless++
	}
}

// Destroy ends an entity's life, or a reservation. From its return h resolves for nobody,
// and of several callers exactly one succeeds. Systems stop seeing the entity at the next
// phase, a window's loops at once; with Deterministic or rollback on, at the next window.
// The slot is reclaimed at the top of the next frame.
//
// A Destroy through the registry is no part of the callback it is called in: when that
// fails, it is not undone. While frames are simulated again, whoever was dead before that stays so
// for all callers but those that are simulated again themselves: systems, observers, and what they put off.
//
// Errors: ErrStale if h was destroyed before, ErrInvalidHandle if it was never issued.
// Concurrency: any goroutine; never waits. Allocates: no, but for who destroys somebody again while frames are simulated again.
func (r *Registry) Destroy(h handles.Local) error {
	if !r.ringed() && !r.recorded.kept.Load() {
		return r.destroyOutside(h)
	}
	inside := r.fates.enter()
	if !r.fates.sealed(h) {
		err := r.destroyOutside(h)
		inside.Add(-1)
		return err
	}
	inside.Add(-1)
	if r.owning() { // it is simulated again, and so is what it wants
		return r.destroyOutside(h)
	}
	return ErrStale
}

// destroyOutside is Destroy in the present. Any goroutine.
func (r *Registry) destroyOutside(h handles.Local) error {
	old, won := r.locals.Kill(h)
	if !won {
		return r.notKilled(h)
	}
	if !r.pooled(h.Index()) {
		r.giveRoomOutside()
	}
	if old.State() == handles.Alive {
		r.killed.Add(1)
	}
	r.pushOutside(h.Index())
	return nil
}

// pushOutside adds a dead index to the outside list: a stack of indices linked through
// nextDead that the owner takes whole. The store of the link happens before the swap of
// the head that makes it reachable. An index is in the list at most once, since only the
// winner of its death adds it and it cannot be issued again before the owner took it out.
func (r *Registry) pushOutside(index uint32) {
	next := r.nextDead.Ensure(index)
	for {
		head := r.outside.Load()
		next.Store(head)
		if r.outside.CompareAndSwap(head, uint64(index)) {
			return
		}
	}
}

// drainOutside makes tombstones of the deaths from outside, first come first, and says how
// many. Owner only.
func (r *Registry) drainOutside() int {
	if r.outside.Load() == 0 {
		return 0
	}
	r.collectRoom()
	var first, n = uint32(0), 0
	for i := uint32(r.outside.Swap(0)); i != 0; { // turn the stack round
		link := r.nextDead.At(i)
		next := uint32(link.Load())
		link.Store(uint64(first))
		first, i = i, next
		n++
	}
	was := r.causeNow
	r.setCause("")
	r.run = runNone // these deaths are not the callback's
	for i := first; i != 0; i = uint32(r.nextDead.Get(i)) {
		w := r.locals.Word(i)
		if planted.Enabled && planted.Is(planted.TombstoneDropped) {
			if i != first && r.nextDead.Get(i) == 0 { // the last of several
				break
			}
		}
		h := handles.NewLocal(i, w.Generation())
		if len(r.recorded.early) > 0 && r.recorded.early[h] {
			delete(r.recorded.early, h)
			continue
		}
		r.recordDestroyed(h)
		if w.Place() == handles.NoPlace {
			r.addDeath(h, handles.NoPlace, r.causeIndex())
		} else {
			r.killed.Add(-1)
			r.tombstone(h, w.Place())
		}
		if r.hist.on {
			r.noteDeath()
		}
		if w.Place() != handles.NoPlace {
			r.killChildren(h)
		}
		r.run = runNone
	}
	r.setCause(was)
	return n
}

// Destroy ends an entity's life, and its children's. A failed callback brings them back.
//
// Errors: ErrStale if h was destroyed before, ErrInvalidHandle if it was never issued;
// ErrExpired.
// Concurrency: window holder. Allocates: no.
func (w *Window) Destroy(h handles.Local) error {
	if w.inQuick() && w.r.killQuick(h) {
		return nil
	}
	r, err := w.open()
	if err != nil {
		return err
	}
	return r.kill(h)
}

// DestroyBatch destroys what is alive of hs and says how many that were, children not
// counted.
//
// Panics: ErrExpired.
// Concurrency: window holder; the caller keeps hs. Allocates: no.
func (w *Window) DestroyBatch(hs []handles.Local) int {
	r := w.Registry()
	n := 0
	together := r.inRuns() && !r.late() && len(r.family) == 0 && !r.pools.any && len(r.bornChunks) == 0
	quick := together && len(r.observers[Destroyed]) == 0
	for len(hs) > 0 {
		k := 0
		if together {
			k = r.killRun(hs)
			n += k
		}
		if hs = hs[k:]; k == 0 {
			if quick && r.killQuick(hs[0]) || r.kill(hs[0]) == nil {
				n++
			}
			hs = hs[1:]
		}
	}
	return n
}

// Destroy makes a tombstone of an entity at once, and of its children: no run that is
// yielded after it has them. In a parallel loop of a frame, children die when the loop ends.
//
// Errors: ErrStale if h was destroyed before, ErrInvalidHandle if it was never issued;
// ErrExpired.
// Concurrency: Logic and its workers, inside the frame. Allocates: no.
func (f *Frame) Destroy(h handles.Local) error {
	r, err := f.open()
	if err != nil {
		return err
	}
	if r.hist.inert {
		return errInert
	}
	if f.work != nil && !r.inCallback { // a part of a window's loop is the holder's: it can be undone at once, too
		return f.work.kill(r, h)
	}
	r.wishMu.Lock()
	defer r.wishMu.Unlock()
	return r.kill(h)
}

// kill ends h on the owner's side, and its children, logged while a callback runs.
func (r *Registry) kill(h handles.Local) error {
	if !r.killOne(h) {
		return r.notKilled(h)
	}
	if len(r.family) > 0 || r.rec != nil {
		r.finishKill(h)
	}
	return nil
}

// finishKill is the rest of kill, apart so that kill is inlined.
func (r *Registry) finishKill(h handles.Local) {
	if len(r.family) > 0 {
		r.killChildren(h)
	}
	if r.rec != nil { // behind what is noted of the children
		r.rec.add(op{kind: opDestroy, h: h})
	}
}

// killOne ends h alone, and says whether it was the one who did.
func (r *Registry) killOne(h handles.Local) bool {
	if r.hist.on && r.rec == nil && r.spares(h) {
		return false
	}
	old, won := r.locals.Kill(h)
	if !won {
		r.noteLost(h)
		return false
	}
	if !r.pools.any || !r.pooled(h.Index()) {
		r.giveRoom(1)
	}
	if old.State() == handles.Alive {
		r.tombstone(h, old.Place())
	} else {
		r.addDeath(h, handles.NoPlace, r.causeIndex())
	}
	if r.run == runDeaths { // noteDeath, written out
		r.undo[len(r.undo)-1].slot++
	} else if r.inCallback || r.hist.on {
		r.logDeath()
	}
	return true
}

// noteDeath logs the last of dying, if that can be undone.
func (r *Registry) noteDeath() {
	if r.run == runDeaths {
		r.undo[len(r.undo)-1].slot++
	} else if r.inCallback || r.hist.on {
		r.logDeath()
	}
}

// tombstone takes a dead entity out of the world. Its cells, the entity cell too, stay until
// reclaim: workers may be reading the column. With late deaths its word gives up its place,
// which tells a tombstone from an entity that another goroutine has killed since the last
// window.
func (r *Registry) tombstone(h handles.Local, place uint32) {
	ch := r.store.ChunkAt(place)
	slot := place - ch.Base()
	how := r.causeIndex()
	if r.late() {
		r.locals.SetPlace(h, handles.NoPlace)
	}
	if !r.inFrame && len(r.bornChunks) == 0 && ch.Bit(slot) {
		ch.ClearBit(slot) // as a rule: the rest of hide is for the others
		ch.MarkActive()
		how |= wasActive
	} else if r.hide(ch, slot) {
		how |= wasActive
	} else {
		how |= r.quit(ch, slot)
	}
	r.addTombstone(h, ch, place, how)
}

// quit takes an inactive entity that has died out of the counts, and says how it died: see wasIdle.
func (r *Registry) quit(ch *archetype.Chunk, slot uint32) uint32 {
	r.inactive--
	if ch.Archetype().Pooled() == 0 {
		return 0
	}
	b, i := r.blockAt(ch, slot)
	if !b.idle.Remove(i) {
		return 0
	}
	r.pools.idle--
	b.count()
	return wasIdle
}

// addTombstone counts an entity whose bit is clear among the dead.
func (r *Registry) addTombstone(h handles.Local, ch *archetype.Chunk, place, how uint32) {
	ch.Archetype().AddLive(-1)
	r.dying = append(r.dying, h)
	r.graves = append(r.graves, grave{place: place, how: how})
	if len(r.observers[Destroyed]) > 0 && how&wasIdle == 0 {
		r.event(Destroyed, h, 0)
	}
}

// ProcessDeferredDestructions reclaims what has died: slots are cleared and free, records
// are free, local and net indices wait for their confirm. It says how many handles that
// were. What the callback did so far is committed and not undone any more.
//
// Panics: ErrExpired.
// Concurrency: window holder. Allocates: no.
func (w *Window) ProcessDeferredDestructions() int {
	r := w.Registry()
	if !r.late() {
		r.drainOutside()
	}
	r.commit() // with the deaths of children of those whom others have destroyed
	if r.rec != nil {
		r.rec.add(op{kind: opProcess})
	}
	n := r.process()
	if r.hist.on || r.rec != nil || r.pools.any { // the slots of pools that got others were logged
		r.commit()
	}
	return n
}

// process reclaims every death, with history those that have left the ring. Owner only, with nothing left to undo.
func (r *Registry) process() int {
	r.homePooled()
	if r.hist.on {
		return r.processKept()
	}
	r.settleLoaded()
	r.publishObituaries()
	n := len(r.dying)
	if n == 0 {
		r.releaseEmptied()
		return 0
	}
	frame := r.frame.Load()
	r.buryPooled(frame)
	if r.netsUsed { // in the order of the deaths, which is how peers count them
		for _, h := range r.dying {
			r.freeNet(h.Index(), frame)
		}
	}
	r.sortByPlace()
	r.reclaimSlots()
	if !r.recordsPart && len(r.family) == 0 && r.placeless == 0 && !r.ringed() {
		r.globals.FreeOwnAll(r.dying)
	} else {
		for i, h := range r.dying {
			if r.graves[i].place != handles.NoPlace {
				r.freeNames(h)
			}
		}
	}
	r.freeLocals(r.dying, frame)
	r.namedDeaths, r.namedMark = 0, 0
	r.dying, r.graves, r.placeless = r.dying[:0], r.graves[:0], 0
	r.obitMark, r.deadBefore, r.frames.buried = 0, 0, 0
	r.causes, r.causeAt = r.causes[:0], 0
	r.countNamed()
	r.releaseEmptied()
	return n
}

// releaseEmptied gives the memory of chunks back that nobody has lived in for a while. A loop that
// is open walks along the lists of chunks: then they stay for this time. Owner only.
func (r *Registry) releaseEmptied() {
	if r.iterating == 0 && r.store.ReleaseEmptied() > 0 {
		r.moves++ // the board goes by it
	}
}

// reclaimSlots gives the slots of the dead back, neighbours that died one after another
// together: what was spawned in one go often ends so.
func (r *Registry) reclaimSlots() {
	graves := r.graves
	for i := 0; i < len(graves); {
		place := graves[i].place
		if place == handles.NoPlace {
			i++
			continue
		}
		ch := r.store.ChunkAt(place)
		slot := place - ch.Base()
		if r.iterating != 0 {
			ch.Soil() // the body of an open loop has slices over these slots, and may write them yet
		}
		most := min(len(graves)-i, ch.Slots()-int(slot))
		n := 1
		for n < most && graves[i+n].place == place+uint32(n) {
			n++
		}
		if n == 1 {
			ch.Archetype().Reclaim(ch, slot)
		} else {
			ch.Archetype().ReclaimRun(ch, slot, uint32(n))
		}
		i += n
	}
}

// freeNames frees the record of a dead entity, and its links.
func (r *Registry) freeNames(h handles.Local) {
	r.freeRecord(h)
	if i := h.Index(); r.hasKin(i) {
		r.cutLinks(i)
	}
}

// freeNet frees the net handle of a dead entity, if it has one.
func (r *Registry) freeNet(i uint32, frame uint64) {
	if n := r.netOf.Get(i); n != 0 {
		r.netOf.At(i).Store(0)
		r.nets.Free(handles.Net(n), frame)
	}
}

// countNamed shows how many deaths with a net handle there were, those that are not
// reclaimed yet included: peers that join are told by their number. Owner only, with
// nothing left to undo.
func (r *Registry) countNamed() {
	if !r.netsUsed {
		return
	}
	for _, h := range r.dying[r.namedMark:] {
		if r.nets.Returns(r.deadNet(h)) {
			r.namedDeaths++
		}
	}
	r.namedMark = len(r.dying)
	if deaths := r.nets.Deaths() + r.namedDeaths; deaths != r.netDeaths.Load() {
		r.netDeaths.Store(deaths)
	}
}

// gone says why h is not alive.
func (r *Registry) gone(h handles.Local) error { return notAlive(r.locals.Status(h)) }

// notKilled says why h could not be destroyed. A reservation that waits for its entity by now was dead then.
func (r *Registry) notKilled(h handles.Local) error {
	if r.locals.Status(h) == handles.Invalid {
		return ErrInvalidHandle
	}
	return ErrStale
}

// notAlive says why somebody is not alive, from a look that found him so: another one may find him born.
func notAlive(s handles.Status) error {
	switch s {
	case handles.NotSpawned:
		return ErrNotSpawned
	case handles.Invalid:
		return ErrInvalidHandle
	}
	return ErrStale
}

// locate finds the slot of a living entity. With late deaths it finds one that another
// goroutine has killed since the last window, too. Owner and its workers.
func (r *Registry) locate(h handles.Local) (*archetype.Chunk, uint32, error) {
	w := r.locals.Word(h.Index())
	if w.Generation() == h.Generation() && w.State() == handles.Alive {
		ch := r.store.ChunkAt(w.Place())
		return ch, w.Place() - ch.Base(), nil
	}
	return r.locateLate(h, w)
}

func (r *Registry) locateLate(h handles.Local, w handles.Word) (*archetype.Chunk, uint32, error) {
	if r.late() && h != 0 && w.Generation() == h.Generation() && w.State() == handles.Dying && w.Place() != handles.NoPlace {
		if ch := r.store.ChunkAt(w.Place()); ch != nil {
			if slot := w.Place() - ch.Base(); ch.Entities()[slot] == h {
				return ch, slot, nil
			}
		}
	}
	return nil, 0, r.gone(h)
}
