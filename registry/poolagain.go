package registry

import (
	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// What callbacks from outside do with pools, recorded, and done again.

// blocked notes that a pool was made, with its initial cells.
func (k *recording) blocked(b *Block) {
	k.rec.names = append(k.rec.names, b.name)
	k.add(op{kind: opBlock, class: int32(b.class), h: handles.NewLocal(b.first, b.r.locals.Word(b.first).Generation()), other: uint64(b.n)<<32 | uint64(len(k.rec.names)-1)})
	k.initials(b)
}

// initials notes the initial cells of a pool.
func (k *recording) initials(b *Block) {
	for _, comp := range b.arch.Components() {
		col := b.arch.Column(comp.ID)
		for i := range comp.Fields {
			f := &comp.Fields[i]
			log := b.r.recorded.log(f)
			at, p := log.add()
			f.Cell.Copy(p, b.initial[col+i])
			k.add(op{kind: opInitial, class: int32(b.number()), comp: comp.ID, field: int16(i), other: at})
			k.rec.use(log, at+1)
		}
	}
}

// number is what a record calls a block: the local index of its first slot. Its place among the others would not do, for
// systems may make more or less of them when they run again.
func (b *Block) number() int { return int(b.first) }

// pooled notes that somebody was spawned in a pool.
func (k *recording) pooled(h handles.Local, b *Block) {
	k.add(op{kind: opTake, h: h, class: int32(b.number()), other: uint64(b.class) + 1})
	k.born = append(k.born, h)
}

// numbered is the block of a number; nil if there is none.
func (r *Registry) numbered(number int) *Block {
	b, i, ok := r.blockOf(uint32(r.pools.homes.Get(uint32(number)) - 1))
	if !ok || i != 0 || b.first != uint32(number) {
		return nil
	}
	return b
}

// blockAgain makes a pool once more, under the names that it had.
func (r *Registry) blockAgain(class int, name string, n int, first handles.Local) {
	for i := range uint32(n) {
		h := handles.NewLocal(first.Index()+i, first.Generation())
		r.claimOuter(h)
		if r.recorded.fed == nil { // its room was lent, see spawnAgain
			r.takeBackRoom()
		}
	}
	a := r.store.Pool(class, r.class(class).sig, r.class(class).name, r.class(class).slots, n, len(r.pools.blocks)+1)
	if a == nil {
		return
	}
	b := r.blockFor(class, name, n, first)
	r.addBlock(b, a, first)
	r.log(undoOp{kind: undoArchetype})
	for i := range uint32(n) {
		h := handles.NewLocal(first.Index()+i, first.Generation())
		if !r.locals.Spawned(h, b.base+i) { // others have destroyed it meanwhile, or it was never there
			r.locals.SetPlace(h, b.base+i)
			r.killed.Add(1)
		}
		r.log(undoOp{kind: undoReserved, h: h, fresh: true, nslot: lentFlag(r.recorded.fed == nil)})
		b.settle(i, h)
	}
	b.settled()
}

func lentFlag(lent bool) uint32 {
	if lent {
		return 1
	}
	return 0
}

// initialAgain gives a pool an initial value.
func (r *Registry) initialAgain(o *op) {
	b := r.numbered(int(o.class))
	if b == nil || !b.arch.Has(o.comp) {
		return
	}
	comp, _ := r.schema.ByID(o.comp)
	f := &comp.Fields[o.field]
	col := b.arch.Column(o.comp) + int(o.field)
	f.Cell.Copy(b.initial[col], r.recorded.log(f).at(o.other))
	if int(o.field) == len(comp.Fields)-1 && lastWithCells(b.arch) == comp { // the last of them
		b.resetIdle()
	}
}

// lastWithCells is the last component of an archetype that has a column.
func lastWithCells(a *archetype.Archetype) (last *archetype.Component) {
	for _, comp := range a.Components() {
		if !comp.Tag() {
			last = comp
		}
	}
	return last
}

// pooledAgain spawns h in a pool once more, of the class that is one less than class, or of any if that is 0: in the slot
// that is the lowest this time. Where there is none, h is nobody.
func (r *Registry) pooledAgain(number int, class uint64, h handles.Local) {
	b := r.numbered(number)
	i, own, ok := uint32(0), handles.Local(0), false
	if b != nil && (class == 0 || uint64(b.class) == class-1) {
		i, own, ok = b.lowest()
	}
	if !ok {
		if h.Index() >= r.outerFirst && r.locals.Status(h) == handles.NotSpawned {
			_ = r.kill(h) // it waited for this
		}
		return
	}
	if !r.ringed() {
		r.activate(b, i, own)
		return
	}
	r.claimTenant(h)
	w := r.locals.Word(h.Index())
	if w.Generation() != h.Generation() || w.State() == handles.Alive {
		return
	}
	place := b.base + i
	r.pools.homes.Ensure(h.Index()).Store(uint64(place) + 1)
	if !r.locals.Spawned(h, place) { // others have destroyed it meanwhile: systems see it until the next window
		if w.Place() != handles.NoPlace || r.findDeath(h) != nil {
			return
		}
		r.locals.SetPlace(h, place)
		r.killed.Add(1)
	}
	ch, slot := b.at(i)
	slain := r.lodgeAs(b, i, own, h, ch, slot)
	r.activate(b, i, h)
	r.undo[len(r.undo)-1].fresh = slain // the step of activate
}

// claimTenant has an outer name reserved that was never issued here, for a slot of a pool, which has room.
func (r *Registry) claimTenant(h handles.Local) {
	if h.Index() >= r.outerFirst && r.locals.Word(h.Index()).Generation() < h.Generation() {
		r.outer.Claim(h, handles.Reserved, handles.NoPlace)
	}
}

// burntAgain has a name of a slot not given out again that a callback which failed had given to somebody. next says that
// the slot, idle, has it.
func (r *Registry) burntAgain(h handles.Local, next bool) {
	b, i, ok := r.blockOf(uint32(r.pools.homes.Get(h.Index()) - 1))
	if !ok || b.first+i != h.Index() || b.own(i).Generation() >= h.Generation() {
		return
	}
	if was := r.pools.burnt[h.Index()]; !next {
		if was < h.Generation() {
			r.setBurnt(h.Index(), h.Generation())
			r.log(undoOp{kind: undoBurnt, h: h, at: uint64(was)})
		}
		return
	}
	own := b.own(i)
	if !b.idle.Has(i) || r.seize(own) != nil {
		return
	}
	if _, ok := r.locals.Renew(own, h.Generation()-1, b.base+i); !ok {
		r.locals.Revive(own, b.base+i)
		return
	}
	ch, slot := b.at(i)
	ch.Occupy(slot, h)
	r.log(undoOp{kind: undoNext, h: h, at: uint64(own), slot: b.base + i})
}
