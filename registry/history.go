package registry

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// With a temporal ring the registry can go back to a frame of the recent past. The buffers of the ring have
// the values of Temporal columns; the rest is put back by undoing:
//
//   - The undo log, which else lives for a callback, is kept as long as the ring is deep, and has the steps
//     of systems, too. Undone from its end, each step finds the world as it left it, so that slots, planes,
//     families and the words of local indices become what they were, whatever was built on them since.
//   - The inner space of local indices is rewound to a mark: the same operations then give the same
//     handles. The outer one stays as it is. An entity with an outer handle whose birth is undone leaves a
//     reservation, which the record of what was done from outside fills again.
//   - Nothing that is needed to bring somebody back is given away meanwhile: the slots of the dead, and
//     those that entities have moved out of, are reclaimed when they have left the ring, and so are names.
//     Chunks that become empty are kept.
//
// Not put back are net names (see netLimbo), obituaries, Cold and Volatile cells, and the values of cosmetic
// classes.

// history is what it takes to go back. Owner only, but for the atomics.
type history struct {
	on     bool   // there is a temporal ring, and an engine whose frames are kept in it
	frames uint64 // of the ring
	marks  []mark // of frame n at n % len: twice as many as the ring has frames

	oldest  atomic.Uint64 // frames before it are not to be gone back to, whatever is kept of them
	present atomic.Uint64 // the highest frame that ever ended: below it, frames are simulated again

	going bool // steps are being undone to go back
	inert bool // observers are told of that: what they ask for is refused

	// Positions of the logs' first elements, counted from the first one there ever was. Positions in steps
	// and marks are counted like that. 0 without a ring.
	undoBase, handleBase, deadBase, vacatedBase uint64

	processed        int    // dying[:processed] are reclaimed, and kept in case that is undone
	vacatedProcessed int    // the same of vacated
	outerFreed       uint64 // position in dying: the outer names before it are free and stay so

	waits    bool      // a state was loaded that had a history, and there is no engine yet
	leftover []vacancy // of that state: slots that are to be reclaimed when they have left the ring

	claimed  []handles.Local               // inner handles that the callback which fails has claimed, and whose deaths are to come; newest first
	recalled []handles.Local               // destroyed from outside, and not seen by the owner when it went back
	netLimbo map[handles.Local]handles.Net // names that undoing took from their entities, until the present is reached
}

// mark is what the registry was at the end of a frame, as far as it is not found by undoing.
type mark struct {
	frame, storage          uint64
	undo, handles           uint64 // ends of the logs
	dead, processed         uint64
	vacated, vacatedReached uint64
	homed                   uint64 // pools.seen
	locals                  handles.LocalsMark
	wishes                  []wish // what was put off to the next window
	begun                   bool   // was ever written
	restored                bool   // by a load: dead and vacated say when their part is to be reclaimed, and nothing else is known
}

func (r *Registry) initHistory() {
	h := &r.hist
	h.frames = uint64(r.cfg.TemporalFrames)
	h.oldest.Store(1)
}

// ringed says whether there is a temporal ring.
func (r *Registry) ringed() bool { return r.cfg.TemporalFrames > 0 }

// beginHistory has history kept from the frame that begins on. Owner only.
func (r *Registry) beginHistory() {
	h := &r.hist
	if h.on || h.frames == 0 {
		return
	}
	h.makeMarks()
	if r.frame.Load() == 0 {
		h.oldest.Store(0)
	}
	h.on = true
	r.held.begin(h.frames, r.stash)
	r.vacated, h.leftover, h.waits = append(r.vacated, h.leftover...), nil, false
	r.store.Keep(true)
	r.beginRecords()
	if r.frame.Load() == 0 { // what there is before the first frame can be gone back to, too
		r.closeFrame()
		r.frames.nextShort = (r.store.Frame() + 1) % 3
		r.frames.short[r.frames.nextShort].Store(wanted)
		r.frames.of(r.store.Frame()).storage.Store(r.store.Frame())
	}
}

// makeMarks makes the marks, once.
func (h *history) makeMarks() {
	if h.marks == nil {
		h.marks = make([]mark, 2*h.frames)
	}
}

// endHistory ends that, when there is no engine any more: whoever is dead stays dead. Owner only.
func (r *Registry) endHistory() {
	if !r.hist.on {
		return
	}
	r.revive() // if the engine was left while frames were simulated again
	r.publishObituaries()
	r.homePooled()
	r.processTo(len(r.dying), len(r.vacated), r.frame.Load())
	r.hist.forgetDead(r)
	r.barrier()
	for i := range r.hist.marks { // nobody goes back to them, and values of wishes are forgotten otherwise from now on
		m := &r.hist.marks[i]
		clear(m.wishes)
		m.wishes = m.wishes[:0]
	}
	r.hist.on, r.recorded.on = false, r.recorded.kept.Load()
	r.locals.KeepFrom(nil)
	r.store.Keep(false)
}

func (h *history) markOf(frame uint64) *mark { return &h.marks[frame%uint64(len(h.marks))] }

// oldestKept is the oldest frame that could be gone back to, as far as the history goes.
func (h *history) oldestKept() uint64 {
	present := h.present.Load()
	return max(h.oldest.Load(), present-min(present, h.frames-1))
}

// markFrame notes what the registry is at the end of a frame, and forgets what nobody can ask for any
// more. storage is the frame's. Owner only.
func (r *Registry) markFrame(storage uint64) {
	h := &r.hist
	if !h.on {
		return
	}
	now := r.frame.Load()
	h.present.Store(max(h.present.Load(), now))
	m := h.markOf(now)
	if m.frame != now { // and not the same frame, simulated again: older ones need what was put off before
		r.forgetWishes(m.wishes)
	}
	clear(m.wishes)
	m.frame, m.storage, m.begun, m.restored = now, storage, true, false
	m.undo, m.handles = h.undoBase+uint64(len(r.undo)), h.handleBase+uint64(len(r.undoHandles))
	m.dead, m.processed = h.deadBase+uint64(len(r.dying)), h.deadBase+uint64(h.processed)
	m.homed = r.pools.seen
	m.vacated, m.vacatedReached = h.vacatedBase+uint64(len(r.vacated)), h.vacatedBase+uint64(h.vacatedProcessed)
	r.locals.Mark(&m.locals)
	m.wishes = append(m.wishes[:0], r.wishes...)
	r.run = runNone
	r.heldAtEnd(now)

	oldest := h.markOf(h.oldestKept())
	r.locals.KeepFrom(&oldest.locals)
	r.undo = trim(r.undo, &h.undoBase, oldest.undo)
	r.undoHandles = trim(r.undoHandles, &h.handleBase, oldest.handles)
	if n := trimmable(len(r.vacated), h.vacatedBase, oldest.vacatedReached); n > 0 {
		r.vacated = trim(r.vacated, &h.vacatedBase, oldest.vacatedReached)
		h.vacatedProcessed -= n
	}
	if n := trimmable(len(r.dying), h.deadBase, oldest.processed); n > 0 {
		base := h.deadBase
		r.graves = trim(r.graves, &base, oldest.processed)
		r.dying = trim(r.dying, &h.deadBase, oldest.processed)
		h.processed -= n
		r.obitMark, r.deadBefore, r.frames.buried = r.obitMark-n, r.deadBefore-n, r.frames.buried-n
		r.namedMark = max(r.namedMark-n, 0) // it stays behind until there is a net name
	}
	r.trimCauses()
}

// trimmable is how many elements trim would drop: those before a position, if they are the larger part.
func trimmable(length int, base, to uint64) int {
	if n := int(to - base); n > length/2 && n > 64 {
		return n
	}
	return 0
}

// trim drops the elements before a position from the front of a log, when that is worth the copying.
func trim[E any](log []E, base *uint64, to uint64) []E {
	n := trimmable(len(log), *base, to)
	if n == 0 {
		return log
	}
	*base += uint64(n)
	return slices.Delete(log, 0, n)
}

// forgetDead empties the lists of the dead, all of whom are reclaimed.
func (h *history) forgetDead(r *Registry) {
	h.deadBase += uint64(len(r.dying))
	h.vacatedBase += uint64(len(r.vacated))
	clear(r.vacated)
	r.dying, r.graves, r.vacated = r.dying[:0], r.graves[:0], r.vacated[:0]
	h.processed, h.vacatedProcessed = 0, 0
	r.obitMark, r.deadBefore, r.namedMark, r.frames.buried = 0, 0, 0, 0
	r.causes, r.causeAt = r.causes[:0], 0
}

// barrier forgets the history: what has been done cannot be undone. Owner only.
func (r *Registry) barrier() {
	h := &r.hist
	if h.frames == 0 {
		return
	}
	first := r.frame.Load() // the first frame that can be gone back to: the one in progress
	if !r.frames.begun {
		first++
	}
	h.oldest.Store(first)
	h.undoBase += uint64(len(r.undo))
	h.handleBase += uint64(len(r.undoHandles))
	r.undo, r.undoHandles, r.undoFrom, r.run = r.undo[:0], r.undoHandles[:0], 0, runNone
}

// Kept says whether a frame can be gone back to.
//
// Concurrency: Logic only. Allocates: no.
func (c *Core) Kept(frame uint64) bool { return c.r.kept(frame) }

func (r *Registry) kept(frame uint64) bool {
	h := &r.hist
	if !h.on || frame < h.oldestKept() || frame > h.present.Load() {
		return false
	}
	m := h.markOf(frame)
	_, long := r.store.Holds(m.storage)
	return m.begun && m.frame == frame && long
}

// Present is the highest frame that ever ended. While frames are simulated again, FrameNumber is below.
//
// Concurrency: any goroutine. Allocates: no.
func (c *Core) Present() uint64 { return c.r.hist.present.Load() }

// Oldest is a frame before which none can be gone back to.
//
// Concurrency: any goroutine. Allocates: no.
func (c *Core) Oldest() uint64 { return c.r.hist.oldestKept() }

// GoBack makes the registry what it was at the end of a frame. The next frames are to be run again, up to
// Present; Revive ends that. Observers are told what was undone, but have no say.
//
// Errors: ErrTooOld, and nothing has changed.
// Concurrency: Logic only, between frames. Allocates: for growth.
func (c *Core) GoBack(frame uint64) error {
	r := c.r
	if !r.kept(frame) {
		return fmt.Errorf("frame %d in frame %d: %w", frame, r.frame.Load(), ErrTooOld)
	}
	h := &r.hist
	m := h.markOf(frame)
	r.voidFrames(frame)
	r.beginWriting(c.hooks.Workers, c.hooks.Spread)
	r.fates.begin()
	for _, dead := range r.dying[m.dead-h.deadBase:] {
		r.fates.note(dead)
	}
	r.fates.noteBurnt(r.undo[m.undo-h.undoBase:])
	r.recall()
	h.going = true
	r.undoTo(int(m.undo - h.undoBase))
	h.going = false
	r.locals.Rewind(&m.locals)
	r.held.low = r.stash
	if got := h.deadBase + uint64(len(r.dying)); got != m.dead || h.vacatedBase+uint64(len(r.vacated)) != m.vacated || h.handleBase+uint64(len(r.undoHandles)) != m.handles {
		panic(fmt.Sprintf("registry: gone back to frame %d, and %d deaths are left of %d", frame, got, m.dead))
	}
	n := len(r.dying)
	r.pools.seen = m.homed
	r.obitMark, r.deadBefore, r.frames.buried = min(r.obitMark, n), min(r.deadBefore, n), min(r.frames.buried, n)
	clear(r.wishes)
	if planted.Enabled && planted.Is(planted.WishesNotRewound) {
		m.wishes = m.wishes[:0]
	}
	r.wishes = append(r.wishes[:0], m.wishes...)
	clear(r.granted.list) // what an Update that exited has left over is put off once more
	r.granted.list, r.granted.next = r.granted.list[:0], 0
	r.store.Restore(m.storage, r.cosmetic)
	r.undoFrom, r.run = len(r.undo), runNone
	r.frame.Store(frame)
	r.recorded.went, r.recorded.updating = true, updateNone
	r.forgetLost()
	r.moves++
	r.tellMoves()
	h.inert = true
	defer func() {
		r.endFrame()
		h.inert = false
	}()
	r.tellUndone()
	if check.Enabled {
		if err := r.store.Same(m.storage); err != nil {
			check.Failf("gone back to frame %d: %v", frame, err)
		}
	}
	return nil
}

// tellUndone tells the observers what was undone. Every one is told now, even if one before it exits the goroutine:
// with the next events they would have a say.
func (r *Registry) tellUndone() {
	told := false
	defer func() {
		if !told {
			r.tellUndone()
		}
	}()
	r.deliver()
	told = true
}

// cosmetic says whether an archetype is of a cosmetic class.
func (r *Registry) cosmetic(a *archetype.Archetype) bool { return r.class(a.Class()).cosmetic }

// voidFrames says that what is kept of the frames after one is of no use any more. Their readers keep it.
func (r *Registry) voidFrames(after uint64) {
	for i := range r.frames.kept {
		if k := &r.frames.kept[i]; k.frame.Load() > after {
			k.storage.Store(0)
		}
	}
}

// recall brings those back whom others have destroyed since the last window: their deaths are of a window
// to come. Revive lets them die again.
func (r *Registry) recall() {
	h := &r.hist
	first := uint32(r.outside.Swap(0))
	for i := first; i != 0; i = uint32(r.nextDead.Get(i)) {
		r.fates.note(handles.NewLocal(i, r.locals.Word(i).Generation()))
	}
	r.fates.wait()
	r.collectRoom() // theirs is among it
	for i := first; i != 0; {
		link := r.nextDead.At(i)
		next := uint32(link.Load())
		link.Store(0)
		w := r.locals.Word(i)
		name := handles.NewLocal(i, w.Generation())
		if r.recorded.early[name] { // that death has been seen
			delete(r.recorded.early, name)
			i = next
			continue
		}
		if w.Place() == handles.NoPlace {
			r.locals.ReviveReserved(name)
		} else {
			r.killed.Add(-1)
			r.locals.Revive(name, w.Place())
		}
		if !r.pooled(i) {
			r.takeBackRoom()
		}
		h.recalled = append(h.recalled, name)
		i = next
	}
}

// Revive ends the time in which frames are simulated again: those whom others had destroyed when it began
// die again, and net names that nobody got again are dead.
//
// Concurrency: Logic only, between frames. Allocates: no.
func (c *Core) Revive() { c.r.revive() }

func (r *Registry) revive() {
	h := &r.hist
	for i := len(h.recalled) - 1; i >= 0; i-- { // the list was a stack
		_ = r.destroyOutside(h.recalled[i]) // nobody, if it was not born again
	}
	r.fates.end()
	h.recalled = h.recalled[:0]
	clear(r.pools.gone)
	r.pools.gone = r.pools.gone[:0]
	for _, n := range slices.Sorted(maps.Values(h.netLimbo)) {
		r.nets.Free(n, r.frame.Load())
	}
	clear(h.netLimbo)
}

// errInert answers an observer that wants to change what a rollback has just put back: then nothing would
// be simulated again as it was.
var errInert = fmt.Errorf("an observer is told what a rollback has undone, and has no say: %w", ErrDeterministic)

// unclaim takes the claim of an inner handle back, as if it had never been. Others may destroy h until it is the owner
// who has: one of them that was first has its word in the outside list, or is about to.
func (r *Registry) unclaim(h handles.Local) {
	for {
		if _, won := r.locals.Kill(h); won {
			break
		}
		r.recall()
		runtime.Gosched()
	}
	r.locals.Unclaim(h)
	r.giveRoom(1)
}

// processKept reclaims what has died and left the ring, and what was left by moving. Owner only, with
// nothing in a callback left to undo.
func (r *Registry) processKept() int {
	r.publishObituaries()
	h := &r.hist
	now := r.frame.Load()
	if now <= h.frames {
		return 0
	}
	m := h.markOf(now - h.frames)
	if !m.begun || m.frame != now-h.frames || m.frame < h.oldest.Load() && !m.restored {
		return 0
	}
	return r.processTo(int(m.dead-h.deadBase), int(m.vacated-h.vacatedBase), now)
}

// processTo reclaims the dead and the vacated slots up to a place in their lists.
func (r *Registry) processTo(dead, vacated int, now uint64) int {
	h := &r.hist
	n := max(dead-h.processed, 0)
	if n > 0 {
		from := h.processed
		r.log(undoOp{kind: undoProcess, at: h.deadBase + uint64(from), nslot: uint32(n)})
		for i := from; i < dead; i++ {
			r.processOne(i, now)
		}
		h.processed = dead
		h.outerFreed = max(h.outerFreed, h.deadBase+uint64(dead))
	}
	if k := vacated - h.vacatedProcessed; k > 0 {
		r.log(undoOp{kind: undoVacated, nslot: uint32(k)})
		for _, v := range r.vacated[h.vacatedProcessed:vacated] {
			r.reclaimVacated(v)
		}
		h.vacatedProcessed = vacated
	}
	return n
}

// processOne reclaims one of the dead.
func (r *Registry) processOne(i int, now uint64) {
	h, g := r.dying[i], r.graves[i]
	if r.pools.any && r.ofPool(h, g) {
		r.buryKept(i, now)
		return
	}
	if place := g.place; place != handles.NoPlace {
		ch := r.store.ChunkAt(place)
		if r.iterating != 0 {
			ch.Soil()
		}
		ch.Archetype().Reclaim(ch, place-ch.Base())
	} else {
		r.placeless--
	}
	if r.hasKin(h.Index()) {
		r.cutLinks(h.Index())
	}
	if r.netsUsed && i < r.namedMark {
		if n := handles.Net(r.netOf.Get(h.Index())); r.nets.Returns(n) {
			r.namedDeaths--
		}
		r.freeNet(h.Index(), now)
	}
	if h.Index() < r.outerFirst || r.hist.deadBase+uint64(i) >= r.hist.outerFreed {
		r.spaceOf(h.Index()).Free(h, now)
	}
}

// buryKept is processOne for somebody dead who was of a pool.
func (r *Registry) buryKept(i int, now uint64) {
	h := r.dying[i]
	if r.netsUsed && i < r.namedMark && r.nets.Returns(r.deadNet(h)) {
		r.namedDeaths--
	}
	r.buryOne(h, r.graves[i], now, h.Index() < r.outerFirst || r.hist.deadBase+uint64(i) >= r.hist.outerFreed)
}

// trimCauses forgets the causes that no grave names any more, when there are many. Owner only.
func (r *Registry) trimCauses() {
	if len(r.causes) < 2*len(r.graves)+mostCauses {
		return
	}
	kept, place := []*string(nil), map[uint32]uint32{}
	for i := range r.graves {
		g := &r.graves[i]
		at, ok := place[g.cause()]
		if !ok {
			at = uint32(len(kept))
			place[g.cause()] = at
			kept = append(kept, r.causes[g.cause()])
		}
		g.how = g.how&graveMark | at
	}
	r.causes, r.causeAt = kept, 0
}

// forgetWishes forgets the values of what was put off in a frame that nobody can go back to.
func (r *Registry) forgetWishes(list []wish) {
	for i := range list {
		switch wi := &list[i]; wi.kind {
		case wishSpawn:
			wi.class.trimWished(wi.at)
		case wishAdd:
			r.values[wi.comp].trimWished(wi.at)
		}
	}
}

// unprocess takes processTo back, as far as the dead are concerned.
func (r *Registry) unprocess(op *undoOp) {
	h := &r.hist
	from := int(op.at - h.deadBase)
	for i := from + int(op.nslot) - 1; i >= from; i-- {
		place := r.graves[i].place
		if r.pools.any && r.ofPool(r.dying[i], r.graves[i]) {
			r.unbury(r.dying[i], r.graves[i])
			continue
		}
		if place == handles.NoPlace {
			r.placeless++
			continue
		}
		ch := r.store.ChunkAt(place)
		ch.Archetype().TakeSlot(ch, place-ch.Base())
	}
	h.processed = from
}

// unvacate takes it back for the slots that entities had moved out of.
func (r *Registry) unvacate(op *undoOp) {
	h := &r.hist
	for range op.nslot {
		h.vacatedProcessed--
		if v := r.vacated[h.vacatedProcessed]; v.ch.Archetype().Pooled() == 0 {
			v.ch.Archetype().TakeSlot(v.ch, v.slot)
		}
	}
}
