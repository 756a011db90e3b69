package registry

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// Lives in the slots of a pool. A slot is taken, by activating its entity, and comes home, when its entity has
// died and the next one has its place.

// ErrParallel reports a spawn or despawn in a pool by a part of a parallel loop: which part is first would decide
// who gets which slot.
var ErrParallel = errors.New("registry: a part of a parallel loop cannot spawn or despawn in a pool")

// entered checks a token for changes of pools: a window, or a frame on Logic itself.
func (b *Block) entered(a Access) (*Registry, error) {
	r, _, err := opened(a)
	switch {
	case err != nil:
		return nil, err
	case r != b.r:
		return nil, fmt.Errorf("registry: the pool belongs to another registry")
	case a.tokenOf().part:
		return nil, ErrParallel
	case r.hist.inert:
		return nil, errInert
	case b.arch == nil:
		return nil, fmt.Errorf("registry: the making of the pool was taken back: %w", ErrStale)
	}
	return r, nil
}

// SpawnIn activates the lowest idle slot of a block, and gives it the values of e; with a nil e it has those that it
// has, the initial ones as a rule. In a frame the entity is there at once.
//
// Errors: ErrExhausted if no slot is idle; ErrParallel; ErrExpired; ErrStale for a block whose making was taken back.
// Concurrency: window holder, or Logic inside a frame, not in parallel loops. Allocates: no, but for the logs' growth.
func SpawnIn[E any](a Access, c *Class[E], b *Block, e *E) (handles.Local, error) {
	if unsafe.Pointer(c) == b.of && isToken(a, b.r.shortIn) {
		h, ok := TrySpawnIn(a, c, b, e)
		if !ok {
			return 0, ErrExhausted
		}
		return h, nil
	}
	return spawnIn(a, c, b, e)
}

// trySpawnIn is TrySpawnIn the long way.
func trySpawnIn[E any](a Access, c *Class[E], b *Block, e *E) (handles.Local, bool) {
	h, err := spawnIn(a, c, b, e)
	if err == ErrExpired || err == ErrParallel || err == ErrReadOnly {
		panic(err)
	}
	return h, err == nil
}

// spawnIn is SpawnIn the long way.
func spawnIn[E any](a Access, c *Class[E], b *Block, e *E) (handles.Local, error) {
	r, err := b.entered(a)
	if err != nil {
		return 0, err
	}
	if c.r != r || c.index != b.class {
		return 0, fmt.Errorf("registry: a pool is not of class %s", c.name)
	}
	b.of = unsafe.Pointer(c)
	i, h, ok := b.lowest()
	if !ok {
		b.refuse()
		return 0, ErrExhausted
	}
	ch, slot, h := r.activate(b, i, h)
	if e != nil {
		c.write(ch, slot, e)
	}
	return h, nil
}

// SpawnFrom is SpawnIn with the components that another entity has, too.
//
// Errors: as SpawnIn; those of a handle for the caller.
// Concurrency: as SpawnIn. Allocates: as SpawnIn.
func (b *Block) SpawnFrom(a Access, caller handles.Local) (handles.Local, error) {
	r, err := b.entered(a)
	if err != nil {
		return 0, err
	}
	from, fromSlot, err := r.locate(caller)
	if err != nil {
		return 0, err
	}
	i, h, ok := b.lowest()
	if !ok {
		b.refuse()
		return 0, ErrExhausted
	}
	ch, slot, h := r.activate(b, i, h)
	b.arch.CopyShared(ch, slot, from, fromSlot)
	return h, nil
}

// refuse counts a spawn for which no slot was idle. Frames that are simulated again have had theirs counted.
func (b *Block) refuse() {
	if b.r.recorded.fed != nil || !b.r.replaying() {
		b.refused.Add(1)
	}
}

// lowest finds the lowest idle slot, and its entity. One whose entity another goroutine has destroyed is none, unless such
// deaths wait for the next window.
func (b *Block) lowest() (uint32, handles.Local, bool) {
	for i, ok := b.idle.First(); ok; i, ok = b.idle.Next(i + 1) {
		ch, slot := b.at(i)
		if h := ch.Entities()[slot]; b.r.locals.Alive(h) || b.r.late() {
			return i, h, true
		}
	}
	return 0, 0, false
}

// activate takes an idle slot. The caller writes its cells, all of which count as written. Owner only.
func (r *Registry) activate(b *Block, i uint32, h handles.Local) (*archetype.Chunk, uint32, handles.Local) {
	ch, slot := b.at(i)
	saved := b.save(ch, slot)
	if ch.Soiled() {
		b.reset(ch, slot)
	}
	slain := false
	if r.issuer == r.outer && r.ringed() {
		h, slain = r.lodge(b, i, h, ch, slot)
	}
	b.idle.Remove(i)
	b.least = min(b.least, b.idle.Len())
	r.pools.idle--
	r.inactive--
	ch.Rewrite()
	ch.MarkActive()
	r.show(ch, slot)
	if len(r.observers[Spawned]) > 0 {
		r.event(Spawned, h, 0)
	}
	if r.inCallback || r.hist.on {
		r.undo = append(r.undo, undoOp{kind: undoTaken, h: h, slot: b.base + i, nslot: saved, fresh: slain})
		r.run = runNone
	}
	if r.rec != nil {
		r.rec.pooled(h, b)
	}
	b.count()
	return ch, slot, h
}

// lodge gives a slot that somebody from outside takes a name of the outer space. The slot's own name sleeps.
func (r *Registry) lodge(b *Block, i uint32, own handles.Local, ch *archetype.Chunk, slot uint32) (h handles.Local, slain bool) {
	place := b.base + i
	h, ok := r.outer.Issue(place)
	if !ok {
		return own, false // there is no name left in the world: better this one than none
	}
	return h, r.lodgeAs(b, i, own, h, ch, slot)
}

// lodgeAs gives a slot another name, whose word has its place already. It says whether others had destroyed the slot's
// own name: that has not been seen and is not any more, but if the name wakes again it is to die.
func (r *Registry) lodgeAs(b *Block, i uint32, own, h handles.Local, ch *archetype.Chunk, slot uint32) (slain bool) {
	if _, won := r.locals.Kill(own); !won {
		r.seize(own)
		slain = true
	}
	slain = slain || slices.Contains(r.hist.recalled, own)
	r.locals.SetPlace(own, handles.NoPlace)
	r.pools.homes.Ensure(h.Index()).Store(uint64(b.base+i) + 1)
	ch.Entities()[slot] = h
	b.tenant[i].Store(h.Index())
	return slain
}

// asleep says whether h is, or was last, the own name of a slot that has another name now.
func (r *Registry) asleep(h handles.Local) bool {
	b, i, ok := r.blockOf(uint32(r.pools.homes.Get(h.Index()) - 1))
	return ok && b.first+i == h.Index() && b.tenant[i].Load() != h.Index()
}

// despawnIn is Despawn the long way.
func (b *Block) despawnIn(a Access, h handles.Local) error {
	r, err := b.entered(a)
	if err != nil {
		return err
	}
	i, ok := b.slotOf(h.Index())
	switch {
	case !ok && r.locals.Status(h) == handles.Live, !ok && h == 0:
		return fmt.Errorf("registry: %v is not of this pool: %w", h, ErrInvalidHandle)
	case !ok:
		return r.gone(h)
	case b.idle.Has(i) && b.tenant[i].Load() == h.Index() && r.locals.Alive(h):
		return ErrIdle
	}
	return r.despawn(b, i, h)
}

// despawn ends who is in a slot, in use. Owner only.
func (r *Registry) despawn(b *Block, i uint32, h handles.Local) error {
	at := len(r.dying)
	if !r.killOne(h) {
		return r.gone(h)
	}
	if len(r.family) > 0 {
		r.killChildren(h)
	}
	if r.rec != nil {
		r.rec.add(op{kind: opDespawn, h: h})
	}
	r.goHome(b, i, at)
	return nil
}

// goHome gives the slot of a dead entity, who is in dying at a place, to the next one, idle. The slot that the dead one
// may have moved to, and its name if that was another one's, are left to who reclaims. A loop that is open must not write to the
// slot any more. Owner only.
func (r *Registry) goHome(b *Block, i uint32, at int) {
	p := &r.pools
	dead := r.dying[at]
	ch, slot := b.at(i)
	own := b.own(i)
	if len(r.recorded.early) > 0 {
		r.unlist(dead)
	}
	h, ok := r.locals.Renew(own, p.burnt[own.Index()], b.base+i)
	if !ok {
		return // its last generation: see retire
	}
	if len(p.burnt) > 0 && !r.ringed() { // with a ring it may be gone back behind that
		delete(p.burnt, own.Index())
	}
	there := ch.Entities()[slot] == dead
	saved := b.save(ch, slot)
	if r.netsUsed || len(r.family) > 0 || r.recordsPart {
		r.partNames(dead)
	}
	ch.Entities()[slot] = h
	if dead.Index() != h.Index() {
		b.tenant[i].Store(h.Index())
	}
	b.reset(ch, slot)
	b.arch.AddLive(1)
	r.inactive++
	p.idle++
	p.homed++
	r.graves[at].how |= wentHome
	b.idle.Add(i)
	if r.inCallback || r.hist.on {
		position := uint32(r.hist.deadBase) + uint32(at)
		r.undo = append(r.undo, undoOp{kind: undoHome, h: h, at: uint64(own.Generation())<<32 | uint64(position), slot: b.base + i, nslot: saved, fresh: there})
		r.run = runNone
	}
	b.count()
}

// partNames takes from a dead entity what is found by its local index, which somebody else has now: its net
// handle, its links, and its record.
func (r *Registry) partNames(dead handles.Local) {
	index := dead.Index()
	if r.netsUsed {
		if n := r.netOf.Get(index); n != 0 {
			if r.pools.nets == nil {
				r.pools.nets = map[handles.Local]handles.Net{}
			}
			r.pools.nets[dead] = handles.Net(n)
			r.netOf.At(index).Store(0)
		}
	}
	if r.hasKin(index) {
		r.cutLinksLogged(index)
	}
	if g := uint32(r.records.Get(index)); g != 0 && !r.ringed() {
		r.globals.Free(g)
		r.nameRecord(index)
	}
}

// cutLinksLogged is cutLinks, which a failed callback takes back.
func (r *Registry) cutLinksLogged(i uint32) {
	for c := i; c != 0; c = r.kin(i).first {
		if k := r.kin(c); k.parent != 0 {
			r.log(undoOp{kind: undoParent, h: handles.NewLocal(c, 1), slot: k.parent, nslot: k.prev})
		}
		r.unlink(c)
	}
}

// deadNet is the net handle of somebody dead.
func (r *Registry) deadNet(dead handles.Local) handles.Net {
	if n, ok := r.pools.nets[dead]; ok {
		return n
	}
	if r.pools.any && r.hasHome(dead) {
		return 0 // the index has another entity
	}
	return handles.Net(r.netOf.Get(dead.Index()))
}

// hasHome says whether the local index of somebody dead has another entity already.
func (r *Registry) hasHome(dead handles.Local) bool {
	return r.locals.Word(dead.Index()).Generation() > dead.Generation() && r.pooled(dead.Index())
}

// homePooled lets the slots of all dead have other entities, that have none yet. Owner only, with nothing left to undo.
func (r *Registry) homePooled() {
	p := &r.pools
	if !p.any {
		return
	}
	from := 0
	if r.hist.on {
		from = max(int(p.seen-min(p.seen, r.hist.deadBase)), r.hist.processed)
	}
	for k := from; k < len(r.dying); k++ {
		if home := p.homes.Get(r.dying[k].Index()); home != 0 && r.graves[k].how&wentHome == 0 {
			r.homeOf(uint32(home-1), k)
		}
	}
	p.seen = 0 // without history the dead are about to be forgotten
	if r.hist.on {
		p.seen = r.hist.deadBase + uint64(len(r.dying))
	}
}

// homeOf lets the slot at a place have another entity, if who is in dying at a place was the one in it.
func (r *Registry) homeOf(place uint32, at int) {
	b, i, ok := r.blockOf(place)
	dead := r.dying[at]
	if ok && b.tenant[i].Load() == dead.Index() && r.locals.Word(dead.Index()).Generation() == dead.Generation() {
		r.goHome(b, i, at)
	}
}

// blockOf finds the block and slot of a cache index, if it is one of a pool.
func (r *Registry) blockOf(place uint32) (*Block, uint32, bool) {
	ch := r.store.ChunkAt(place)
	if ch == nil || ch.Archetype().Pooled() == 0 {
		return nil, 0, false
	}
	b, i := r.blockAt(ch, place-ch.Base())
	return b, i, i < uint32(b.n)
}

// buryPooled reclaims the dead of pools, without history, and takes them out of the lists.
func (r *Registry) buryPooled(frame uint64) {
	if !r.pools.any {
		return
	}
	kept := 0
	for k, dead := range r.dying {
		if g := r.graves[k]; r.ofPool(dead, g) {
			r.buryOne(dead, g, frame, true)
			continue
		}
		r.dying[kept], r.graves[kept] = dead, r.graves[k]
		kept++
	}
	r.dying, r.graves = r.dying[:kept], r.graves[:kept]
}

// ofPool says whether somebody dead was of a pool.
func (r *Registry) ofPool(dead handles.Local, g grave) bool {
	return g.how&wentHome != 0 || r.pooled(dead.Index())
}

// buryOne reclaims what a dead entity of a pool has left: the slot that it had moved to, its net handle, and a name that
// was not the slot's own, unless that is free already. Where the slot has no other entity there will be none.
func (r *Registry) buryOne(dead handles.Local, g grave, frame uint64, free bool) {
	p := &r.pools
	if g.place == handles.NoPlace {
		r.placeless--
	} else if ch := r.store.ChunkAt(g.place); ch.Archetype().Pooled() == 0 {
		if r.iterating != 0 {
			ch.Soil()
		}
		ch.Archetype().Reclaim(ch, g.place-ch.Base())
	}
	if n, ok := p.nets[dead]; ok {
		delete(p.nets, dead)
		r.nets.Free(n, frame)
	} else if r.netsUsed && g.how&wentHome == 0 {
		r.freeNet(dead.Index(), frame)
	}
	if g.how&wentHome != 0 {
		p.homed--
	} else if r.hasKin(dead.Index()) {
		r.cutLinks(dead.Index())
	}
	b, i, ok := r.blockOf(uint32(p.homes.Get(dead.Index()) - 1))
	own := ok && b.first+i == dead.Index()
	if ok && g.how&wentHome == 0 {
		if r.locals.Word(dead.Index()).Generation() == dead.Generation() && b.tenant[i].Load() == dead.Index() {
			r.retire(b, i, frame, free || !own)
		}
		if ch, slot := b.at(i); ch.Entities()[slot] == dead {
			ch.Archetype().Blank(ch, slot)
		}
	}
	if !own && free { // somebody's from outside
		p.homes.Ensure(dead.Index()).Store(0)
		r.spaceOf(dead.Index()).Free(dead, frame)
	}
}

// retire gives a slot up whose own name has no generation left that nobody has ever had. It keeps its room. If it is a
// name from outside that was in the slot, or the last generations were given by callbacks that failed, going back does not take that back:
// there has been nobody since.
func (r *Registry) retire(b *Block, i uint32, frame uint64, free bool) {
	own := b.own(i)
	own = r.spaceOf(own.Index()).Skip(own, r.pools.burnt[own.Index()])
	b.tenant[i].Store(own.Index())
	b.retired++
	if !r.ringed() {
		r.freeRecord(own)
	}
	if free {
		r.spaceOf(own.Index()).Free(own, frame)
	}
	b.count()
}

// unbury takes buryOne back.
func (r *Registry) unbury(dead handles.Local, g grave) {
	if g.how&wentHome != 0 {
		r.pools.homed++
	} else if b, i, ok := r.blockOf(uint32(r.pools.homes.Get(dead.Index()) - 1)); ok && b.first+i == dead.Index() && b.tenant[i].Load() == dead.Index() && !r.hasHome(dead) {
		b.retired--
		b.count()
	}
	if g.place == handles.NoPlace {
		r.placeless++
	} else if ch := r.store.ChunkAt(g.place); ch.Archetype().Pooled() == 0 {
		ch.Archetype().TakeSlot(ch, g.place-ch.Base())
	}
}
