package registry

import (
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// The short way through a pool: what nearly every spawn and despawn is, in a registry without a temporal ring. It does
// what poolslot.go does, with one locked operation for a life: the word of a slot's index goes from one generation to
// the next at once, and nobody is noted as dead, since nothing of the dead one is left to reclaim. Whatever is unusual is
// left to poolslot.go: BenchmarkEntities of package pool has what the detour costs.

// leftOf is the cause, by its place in causes, of those who left from one on.
type leftOf struct {
	from  int
	cause uint32
}

// tookInitial is what an undoTaken has for comp if the slot had its initial cells, of which nothing is kept.
const tookInitial = 1

// shortcut gives the registry if a token is good and nothing unusual is going on, else nil.
func (b *Block) shortcut(t *token) *Registry {
	r := b.r
	if t.r != r || t.closed.Load() || t.work != nil || !b.short || r.rec != nil || r.iterating != 0 {
		return nil
	}
	return r
}

// quickToken is the token of a window or a frame, nil for any other.
func quickToken(a Access) *token {
	switch a := a.(type) {
	case *Window:
		return a.tokenOf()
	case *Frame:
		return a.tokenOf()
	}
	return nil
}

// takeQuickly is lowest and activate. A zero handle says that this is not for the short way, or that no slot is idle.
func (b *Block) takeQuickly(a Access) (*archetype.Chunk, uint32, handles.Local) {
	t := quickToken(a)
	if t == nil {
		return nil, 0, 0
	}
	r := b.shortcut(t)
	if r == nil {
		return nil, 0, 0
	}
	i, ok := b.idle.TryNext(b.idle.low)
	if !ok {
		if i, ok = b.idle.First(); !ok {
			return nil, 0, 0
		}
	}
	ch, slot := b.at(i)
	h := ch.Entities()[slot]
	if ch.Soiled() || r.killed.Load() != 0 && !r.locals.Alive(h) {
		return nil, 0, 0
	}
	if r.inCallback {
		if b.untouched(ch, slot) {
			if r.run != runTakes || r.undo[len(r.undo)-1].slot != b.base {
				r.logQuick(b, undoTakes, runTakes)
			}
			r.undoHandles = append(r.undoHandles, h)
		} else {
			r.undo = append(r.undo, undoOp{kind: undoTaken, h: h, slot: b.base + i, nslot: b.save(ch, slot)})
			r.run = runNone
		}
	}
	if b.idle.low = i; !b.idle.TryRemove(i) {
		b.idle.Remove(i)
	}
	r.pools.idle--
	r.inactive--
	ch.Rewrite()
	ch.SetBit(slot)
	if len(r.observers[Spawned]) > 0 {
		r.event(Spawned, h, 0)
	}
	if b.rising = true; !b.dirty {
		b.changed()
	}
	return ch, slot, h
}

// logQuick begins a run of spawns or despawns.
func (r *Registry) logQuick(b *Block, kind undoKind, run logRun) {
	r.undo = append(r.undo, undoOp{kind: kind, slot: b.base, nslot: b.savedTo + 1, at: r.hist.handleBase + uint64(len(r.undoHandles))})
	r.run = run
}

// leaveQuickly is despawn. False says that this is not for the short way, and nothing has happened.
func (b *Block) leaveQuickly(a Access, h handles.Local) bool {
	t := quickToken(a)
	if t == nil {
		return false
	}
	r := b.shortcut(t)
	if r == nil {
		return false
	}
	i := h.Index() - b.first
	if i >= uint32(b.n) || len(r.family) > 0 || r.netsUsed || r.recordsPart || len(r.bornChunks) > 0 {
		return false
	}
	ch, slot := b.at(i)
	if ch.Entities()[slot] != h || !ch.Bit(slot) {
		return false // somewhere else, inactive, or idle
	}
	after := h.Generation()
	if len(r.pools.burnt) > 0 {
		after = max(after, r.pools.burnt[h.Index()])
	}
	next, ok := r.locals.Succeed(h, after)
	if !ok {
		return false // dead, or the last
	}
	if r.inCallback {
		if r.run != runLeaves || r.undo[len(r.undo)-1].slot != b.base {
			r.logQuick(b, undoLeaves, runLeaves)
		}
		r.undoHandles = append(r.undoHandles, h)
	}
	if b.rising {
		b.risen()
	}
	if b.plain && r.inCallback {
		b.swapOut(ch, slot)
	} else {
		b.save(ch, slot)
		b.reset(ch, slot)
	}
	p := &r.pools
	if p.left = append(p.left, h); r.causeAt != p.leftNow || r.causeAt == 0 {
		p.leftOf = append(p.leftOf, leftOf{len(p.left) - 1, r.causeIndex()})
		p.leftNow = r.causeAt
	}
	ch.ClearBit(slot)
	ch.Entities()[slot] = next
	if b.idle.low = min(b.idle.low, i); !b.idle.TryAdd(i) {
		b.idle.Add(i)
	}
	p.idle++
	r.inactive++
	if len(r.observers[Destroyed]) > 0 {
		r.event(Destroyed, h, 0)
	}
	if !b.dirty {
		b.changed()
	}
	return true
}

// undoQuick takes a run of spawns or despawns back, the last one first.
func (r *Registry) undoQuick(op *undoOp) {
	b, _, _ := r.blockOf(op.slot)
	at := int(op.at - r.hist.handleBase)
	for k := len(r.undoHandles) - 1; k >= at; k-- {
		h := r.undoHandles[k]
		place := b.base + h.Index() - b.first
		if op.kind == undoTakes {
			r.undoTakenSlot(&undoOp{h: h, slot: place, comp: tookInitial})
		} else {
			r.undoLeft(b, h, place, op.nslot+uint32(k-at))
		}
	}
	r.undoHandles = r.undoHandles[:at]
}

// undoLeft takes leaveQuickly back: see undoHomeSlot.
func (r *Registry) undoLeft(b *Block, dead handles.Local, place, saved uint32) {
	p := &r.pools
	ch := r.store.ChunkAt(place)
	slot, i := place-ch.Base(), place-b.base
	h := b.own(i)
	seen := r.seize(h)
	if b.idle.Remove(i) {
		p.idle--
	}
	if seen != nil {
		r.forgetDeath(h)
		b.arch.AddLive(1)
	} else {
		r.inactive--
	}
	p.lasting = slices.DeleteFunc(p.lasting, func(o undoOp) bool { return o.kind == undoNext && o.slot == place })
	r.noteBurnt(h)
	r.locals.Unrenew(h, dead.Generation())
	r.locals.Revive(dead, place)
	ch.Entities()[slot] = dead
	b.unsave(ch, slot, saved)
	ch.SetBit(slot)
	r.unevent(Destroyed, dead)
	p.left, p.leftNow = p.left[:len(p.left)-1], 0
	if last := len(p.leftOf) - 1; p.leftOf[last].from == len(p.left) {
		p.leftOf = p.leftOf[:last]
	}
	b.count()
}

// publishLeft writes the obituaries of those who left by the short way. Owner only.
func (r *Registry) publishLeft() {
	p := &r.pools
	if len(p.left) == 0 {
		return
	}
	o, frame := &r.obits, r.frame.Load()
	head, of, k := o.head.Load(), 0, max(0, len(p.left)-obitsKept)
	for k < len(p.left) {
		end := len(p.left) // of those with the same cause
		if of+1 < len(p.leftOf) {
			end = p.leftOf[of+1].from
		}
		cause := r.causes[p.leftOf[of].cause]
		for k < end {
			page := o.book(head).deaths[head%obitsInBook:]
			page = page[:min(len(page), end-k)]
			for i, h := range p.left[k : k+len(page)] {
				page[i] = obit{h: h, frame: frame, cause: cause}
			}
			k += len(page)
			head += uint64(len(page))
		}
		of++
	}
	o.head.Store(head)
	p.left, p.leftOf, p.leftNow = p.left[:0], p.leftOf[:0], 0
	if len(r.dying) == 0 { // nobody else names one
		r.causes, r.causeAt = r.causes[:0], 0
	}
}

// risen notes how many are in use. Before one is taken out again is early enough.
func (b *Block) risen() {
	_, n := b.tally()
	b.most, b.rising = max(b.most, n), false
}

// changed notes that the counters are to be shown at the next boundary: a locked operation for each spawn and
// despawn would be a third of what those cost. Owner only.
func (b *Block) changed() {
	b.dirty = true
	b.stale.Store(true)
	b.r.pools.dirty = append(b.r.pools.dirty, b)
}

// showCounts shows the counters of all pools that have changed. Owner only.
func (r *Registry) showCounts() {
	p := &r.pools
	if len(p.dirty) == 0 {
		return
	}
	for _, b := range p.dirty {
		b.count()
		b.dirty = false
		b.stale.Store(false)
	}
	clear(p.dirty)
	p.dirty = p.dirty[:0]
}
