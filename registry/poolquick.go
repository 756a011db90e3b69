package registry

import (
	"slices"
	"sync/atomic"
	"unsafe"

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

// noCause is pools.leftNow while the cause of the next one is to be noted anew.
const noCause = ^uint32(0)

// tookInitial is what an undoTaken has for comp if the slot had its initial cells, of which nothing is kept.
const tookInitial = 1

// openShort opens the short ways for a window or a frame, as far as nothing unusual is going on, and closes them for any
// before: see Registry.shortIn, shortOut and quick. What is as it should be is not stored: these are pointers.
func (r *Registry) openShort(t *token) {
	r.openQuick(t)
	if r.cfg.TemporalFrames != 0 || r.rec != nil || r.iterating != 0 || t.part {
		if r.shortIn != nil {
			r.shortIn, r.shortOut = nil, nil
		}
		return
	}
	r.shortIn = t
	if len(r.family) == 0 && !r.netsUsed && !r.recordsPart {
		r.shortOut = t
	} else if r.shortOut != nil {
		r.shortOut = nil
	}
}

func (r *Registry) closeShort() { r.shortIn, r.shortOut, r.quick = nil, nil, nil }

// isToken says whether a token is a certain window's or frame's, and there is one. No type switch: that looks for a hash first.
func isToken(a Access, t *token) bool {
	if w, ok := a.(*Window); ok {
		return w != nil && &w.token == t
	}
	f, ok := a.(*Frame)
	return ok && f != nil && &f.token == t
}

// TrySpawnIn is SpawnIn where no error can be returned: false for any that is not a misuse.
//
// It and Despawn are written for few live values: what is seldom is in functions of its own, not to be inlined.
//
// Panics: ErrExpired; ErrParallel; ErrReadOnly.
// Concurrency: as SpawnIn. Allocates: as SpawnIn.
func TrySpawnIn[E any](a Access, c *Class[E], b *Block, e *E) (handles.Local, bool) {
	r := b.r
	if unsafe.Pointer(c) != b.of || !isToken(a, r.shortIn) || r.killed.Load() != 0 {
		return trySpawnIn(a, c, b, e) // the last: an idle one may have been destroyed
	}
	i, ok := b.idle.TryTake(b.idle.low)
	if !ok {
		if i, ok = b.idle.takeSlow(); !ok {
			return trySpawnIn(a, c, b, e)
		}
	}
	ch, slot := b.at(i)
	if ch.Soiled() {
		b.idle.Set.Add(i)
		return trySpawnIn(a, c, b, e)
	}
	h := ch.Entities()[slot]
	if r.inCallback {
		columns, diff := ch.Columns16()[:len(b.pairs)], uint64(0)
		for k := range b.pairs {
			cell, initial := pair(columns[k], slot), &b.pairs[k]
			diff |= cell[0] ^ initial[0] | cell[1] ^ initial[1]
		}
		switch {
		case diff != 0 || !b.plain && !b.restUntouched(ch, slot):
			b.logTouched(ch, slot, h)
		case r.run != runQuick || r.runOf != b:
			b.logTake(h)
		default:
			r.undoHandles = append(r.undoHandles, h)
		}
	}
	ch.Rewrite()
	ch.SetBit(slot)
	if n := b.idle.Len(); n < b.least {
		b.least = n
	}
	if !b.hushed {
		b.tell(Spawned, h)
	}
	if e != nil {
		writePairs(ch.Columns16(), c.pairs, slot, unsafe.Pointer(e)) // as write
		if len(c.parts) > 0 {
			c.writeRest(ch, slot, e)
		}
	}
	return h, true
}

// Despawn ends an entity of the block, and its children; its slot is idle again at once, with another entity and
// the initial cells.
//
// Errors: ErrStale if it is dead; ErrInvalidHandle if it was never of this block; ErrIdle for the entity of an idle
// slot; ErrParallel; ErrExpired.
// Concurrency: window holder, or Logic inside a frame, not in parallel loops. Allocates: no, but for the logs' growth.
func (b *Block) Despawn(a Access, h handles.Local) error {
	r, i := b.r, h.Index()-b.first
	if i >= uint32(b.n) || b.of == nil || !isToken(a, r.shortOut) {
		return b.despawnIn(a, h)
	}
	ch, slot := b.at(i)
	if ch.Entities()[slot] != h || !ch.Bit(slot) {
		return b.despawnIn(a, h) // somewhere else, inactive, or idle
	}
	next := h.Generation() + 1
	if len(r.pools.burnt) > 0 && r.pools.burns(h) {
		return b.despawnIn(a, h)
	}
	var word *atomic.Uint64
	if int(i) < len(b.words) {
		word = &b.words[i]
	} else {
		word = r.locals.WordAt(h.Index())
	}
	if next > b.lastName || !handles.Succeed(word, h, next, b.base+i) {
		return b.despawnIn(a, h) // the last, or dead
	}
	ch.Entities()[slot] = handles.NewLocal(h.Index(), next)
	ch.ClearBit(slot)
	p := &r.pools
	p.left = append(p.left, h)
	if r.causeAt != p.leftNow || r.inCallback && (r.run != runQuick || r.runOf != b) {
		b.logLeave()
	}
	if pairs, n := b.pairs, len(b.savedPairs); b.keeping && cap(b.savedPairs)-n >= len(pairs) {
		b.savedTo++
		b.savedPairs = b.savedPairs[:n+len(pairs)]
		columns, row := ch.Columns16()[:len(pairs)], b.savedPairs[n:][:len(pairs)]
		for k := range pairs {
			cell := pair(columns[k], slot)
			row[k], *cell = *cell, pairs[k]
		}
		ch.Rewrite()
	} else {
		if r.inCallback {
			b.save(ch, slot)
		}
		b.reset(ch, slot)
	}
	if !b.idle.TryAdd(i) {
		b.idle.Set.Add(i)
	}
	if i>>6 < b.idle.low {
		b.idle.low = i >> 6
	}
	if !b.hushed {
		b.tell(Destroyed, h)
	}
	return nil
}

// logTake begins a run with a spawn.
//
//go:noinline
func (b *Block) logTake(h handles.Local) {
	b.logQuick(len(b.r.pools.left))
	b.r.undoHandles = append(b.r.undoHandles, h)
}

// logLeave begins a run with the despawn of the last of pools.left, or notes another cause.
//
//go:noinline
func (b *Block) logLeave() {
	r := b.r
	p := &r.pools
	last := len(p.left) - 1
	if r.causeAt != p.leftNow {
		p.leftOf = append(p.leftOf, leftOf{last, r.causeIndex()})
		p.leftNow = r.causeAt
	}
	if r.inCallback && (r.run != runQuick || r.runOf != b) {
		b.logQuick(last)
	}
}

// logQuick begins a run, in which those of pools.left from one on leave.
func (b *Block) logQuick(from int) {
	r := b.r
	if b.keeping = b.plain; b.savedTo == 0 && b.keeping {
		r.pools.saving = append(r.pools.saving, b)
	}
	r.log(undoOp{kind: undoQuick, slot: b.base, nslot: b.savedTo + 1, at: r.hist.handleBase + uint64(len(r.undoHandles)), h: handles.Local(from)})
	r.run, r.runOf = runQuick, b
}

// logTouched notes a spawn in a slot that has been written to while it was idle.
//
//go:noinline
func (b *Block) logTouched(ch *archetype.Chunk, slot uint32, h handles.Local) {
	b.r.log(undoOp{kind: undoTaken, h: h, slot: ch.Base() + slot, nslot: b.save(ch, slot)})
}

// tell notes an event, and that the counters are to be shown at the next boundary: a locked operation for each
// spawn and despawn would be a third of what those cost.
//
//go:noinline
func (b *Block) tell(kind EventKind, h handles.Local) {
	r := b.r
	r.event(kind, h, 0)
	if b.hushed = len(r.observers[Spawned])+len(r.observers[Destroyed]) == 0; !b.dirty {
		b.dirty = true
		b.stale.Store(true)
		r.pools.dirty = append(r.pools.dirty, b)
	}
}

// burns says whether a callback that failed has given the next name after h to somebody.
//
//go:noinline
func (p *pools) burns(h handles.Local) bool { return p.burnt[h.Index()] > h.Generation() }

// undoQuickRun takes a run of spawns and despawns back. In which order they came is known for each slot, and that
// is enough: if whoever came last is still there, he may go first, and else somebody has left since, the last of whom is not
// replaced.
func (r *Registry) undoQuickRun(op *undoOp) {
	b, _, _ := r.blockOf(op.slot)
	p, at, from := &r.pools, int(op.at-r.hist.handleBase), int(op.h)
	for len(r.undoHandles) > at || len(p.left) > from {
		if n := len(r.undoHandles) - 1; n >= at {
			h := r.undoHandles[n]
			if i := h.Index() - b.first; !b.idle.Has(i) && b.own(i) == h {
				r.undoTakenSlot(&undoOp{h: h, slot: b.base + i, comp: tookInitial})
				r.undoHandles = r.undoHandles[:n]
				continue
			}
		}
		n := len(p.left) - 1
		r.undoLeft(b, p.left[n], op.nslot+uint32(n-from))
		p.left, p.leftNow = p.left[:n], noCause
		if last := len(p.leftOf) - 1; p.leftOf[last].from == n {
			p.leftOf = p.leftOf[:last]
		}
	}
}

// undoLeft takes Despawn back: see undoHomeSlot.
func (r *Registry) undoLeft(b *Block, dead handles.Local, saved uint32) {
	p, i := &r.pools, dead.Index()-b.first
	place := b.base + i
	ch, slot := b.at(i)
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
	b.count()
}

// publishLeft writes the obituaries of those who left by the short way. Owner only.
func (r *Registry) publishLeft() {
	p := &r.pools
	if len(p.left) == 0 {
		return
	}
	r.locals.Succeeded(len(p.left))
	o, frame := &r.obits, r.frame.Load()
	head, of, k := o.head.Load(), 0, max(0, len(p.left)-obitsKept)
	for k < len(p.left) {
		end := len(p.left) // of those with the same cause
		if of+1 < len(p.leftOf) {
			end = p.leftOf[of+1].from
		}
		cause := r.causes[p.leftOf[of].cause]
		if k < end {
			head = o.write(head, p.left[k:end], frame, cause)
			k = end
		}
		of++
	}
	o.head.Store(head)
	p.left, p.leftOf, p.leftNow = p.left[:0], p.leftOf[:0], noCause
	if len(r.dying) == 0 { // nobody else names one
		r.causes, r.causeAt = r.causes[:0], 0
	}
}

// showCounts shows the counters of all pools that have changed. Owner only.
func (r *Registry) showCounts() {
	p := &r.pools
	if len(p.dirty) == 0 {
		return
	}
	for _, b := range p.dirty {
		b.reconcile()
		b.count()
		b.dirty, b.hushed, b.keeping = false, false, false
		b.stale.Store(false)
	}
	clear(p.dirty)
	p.dirty = p.dirty[:0]
}
