package registry

import (
	"math/bits"
	"reflect"
	"slices"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// Pools in a state, and out of it. Their slots are storage like any other, with living entities; here is which are
// idle, and who is whose.

// pools notes the pools.
func (k *capture) pools() {
	r := k.r
	dead := map[uint32]bool{} // where the dead lie
	for _, d := range k.s.Deaths {
		if !d.Replaced {
			dead[d.Place] = true
		}
	}
	for _, b := range r.pools.blocks {
		words := (b.n + 63) / 64
		st := PoolState{Name: b.name, First: b.first, Idle: make([]uint64, words), Empty: make([]uint64, words)}
		cosmetic := r.CosmeticClass(b.class)
		for i := range uint32(b.n) {
			ch, slot := b.at(i)
			h, tenant := ch.Entities()[slot], b.tenant[i].Load()
			bit := uint64(1) << (i & 63)
			switch {
			case dead[b.base+i]:
			case h == 0:
				st.Empty[i>>6] |= bit
				k.nobodyAt(ch, slot)
			case b.idle.Has(i):
				st.Idle[i>>6] |= bit
			case cosmetic && r.locals.Alive(h) && k.leaves(b, i, h):
				st.Idle[i>>6] |= bit
				continue // the slot is its own again
			}
			if tenant != b.first+i {
				st.Tenants = append(st.Tenants, Tenant{Slot: i, Index: tenant})
			}
		}
		k.s.Pools = append(k.s.Pools, st)
		if cosmetic {
			own := &k.s.Stores[k.at[b.arch]]
			clear(own.Live)
			for c := range own.Chunks {
				clear(own.Chunks[c].Active)
			}
		}
	}
	for index, generation := range r.pools.burnt {
		if r.pooled(index) && generation > r.locals.Word(index).Generation() {
			k.s.Burnt = append(k.s.Burnt, IndexGeneration{index, generation})
		}
	}
	slices.SortFunc(k.s.Burnt, func(a, b IndexGeneration) int { return int(a.Index) - int(b.Index) })
}

// leaves has a slot of a cosmetic pool, in use, as if its entity had been despawned; false if it has no further name.
func (k *capture) leaves(b *Block, i uint32, h handles.Local) bool {
	own := b.own(i)
	if own.Generation() >= k.r.spaceOf(own.Index()).LastGeneration() {
		return false
	}
	k.bumped = append(k.bumped, handles.NewLocal(own.Index(), max(own.Generation(), k.r.pools.burnt[own.Index()])+1))
	k.s.Deaths = append(k.s.Deaths, Death{Entity: h, Place: b.base + i, Replaced: true, Net: handles.Net(k.r.netOf.Get(h.Index()))})
	return true
}

// bumpCosmetic gives the slots their next names that leaves has seen.
func (k *capture) bumpCosmetic() {
	for _, h := range k.bumped {
		place := uint32(k.r.pools.homes.Get(h.Index()) - 1)
		*k.s.word(h.Index()) = uint64(handles.MakeWord(h.Generation(), handles.Alive, place))
	}
}

// replaced says whether the index of somebody dead is another entity's in a state: then nothing of it is the dead one's.
func (r *Registry) replaced(s *State, d Death) bool {
	if !d.Replaced {
		return false
	}
	w := s.word(d.Entity.Index())
	return w != nil && handles.Word(*w).Generation() > d.Entity.Generation()
}

// markAsleep marks the own names of slots that somebody has under another one.
func markAsleep(s *State, known *indexMarks) {
	for i := range s.Pools {
		for _, t := range s.Pools[i].Tenants {
			known.mark(s.Pools[i].First + t.Slot)
		}
	}
}

// storage makes an archetype of a state.
func (p *Restoration) storage(st *ArchetypeState) *archetype.Archetype {
	if st.Pooled == 0 {
		return p.archetype(st.Class, st.Components)
	}
	c := p.r.class(st.Class)
	return p.r.store.PoolShell(st.Class, st.Components, c.name, c.slots, st.Pooled, len(p.r.pools.blocks)+1)
}

// block makes the block of a pooled archetype; who is in it comes later.
func (p *Restoration) block(a *archetype.Archetype) {
	r := p.r
	st := &p.s.Pools[a.Pooled()-1]
	first := handles.NewLocal(st.First, 1)
	r.addBlock(r.blockFor(a.Class(), st.Name, a.PooledSlots(), first), a, first)
}

// blank says whether an archetype is a cosmetic pool: of its slots nothing is state but their names.
func (p *Restoration) blank(st *ArchetypeState) bool {
	return st.Pooled != 0 && p.r.CosmeticClass(st.Class)
}

// empties is how many slots of a pool have nobody alive.
func (p *Restoration) empties(number int) (n int) {
	for _, word := range p.s.Pools[number-1].Empty {
		n += bits.OnesCount64(word)
	}
	b := p.r.pools.blocks[number-1]
	for _, d := range p.s.Deaths {
		if !d.Replaced && d.Place != handles.NoPlace && d.Place-b.base < uint32(b.n) {
			n++
		}
	}
	return n
}

// Blocks are the pools of the state, for whoever fills in its cells, and with them what their slots are reset to. Those
// that slots of cosmetic classes have are not to be filled in.
//
// Concurrency: as the Restoration, while fill runs. Allocates: no.
func (p *Restoration) Blocks() []*Block { return p.r.pools.blocks }

// pools gives the slots of pools to whom they belong.
func (p *Restoration) pools() {
	r := p.r
	for number := range p.s.Pools {
		st, b := &p.s.Pools[number], r.pools.blocks[number]
		for i := range uint32(b.n) {
			r.pools.homes.Ensure(b.first + i).Store(uint64(b.base+i) + 1)
			b.tenant[i].Store(b.first + i)
			if w := handles.Word(*p.s.word(b.first + i)); st.Empty[i>>6]>>(i&63)&1 != 0 && w.State() == handles.Dying && p.retired(st, i) {
				b.retired++
			}
		}
		for i := range eachBit(st.Idle) {
			b.idle.Add(i)
			r.pools.idle++
		}
		for _, t := range st.Tenants {
			r.pools.homes.Ensure(t.Index).Store(uint64(b.base+t.Slot) + 1)
			b.tenant[t.Slot].Store(t.Index)
		}
		if r.CosmeticClass(b.class) {
			b.resetIdle()
		}
		b.count()
	}
	for _, burnt := range p.s.Burnt {
		r.setBurnt(burnt.Index, burnt.Generation)
	}
}

// retired says whether a slot that nobody is in will have nobody.
func (p *Restoration) retired(st *PoolState, i uint32) bool {
	if slices.ContainsFunc(st.Tenants, func(t Tenant) bool { return t.Slot == i }) {
		return false
	}
	index := st.First + i
	for _, d := range p.s.Deaths {
		if d.Entity.Index() == index && !d.Replaced {
			return false
		}
	}
	for _, h := range p.s.Outside {
		if h.Index() == index {
			return false
		}
	}
	return true
}

// replaced notes somebody dead whose slot has another entity.
func (p *Restoration) replaced(d Death) {
	r := p.r
	r.pools.homed++
	if d.Net != 0 {
		if r.pools.nets == nil {
			r.pools.nets = map[handles.Local]handles.Net{}
		}
		r.pools.nets[d.Entity] = d.Net
		r.netsUsed = true
	}
}

// checkPools checks what is said of pools against their archetypes.
func (p *Restoration) checkPools() error {
	number := 0
	own := newIndexMarks(p.s)
	for i := range p.s.Stores {
		st := &p.s.Stores[i]
		if st.Pooled == 0 {
			continue
		}
		if number++; number > len(p.s.Pools) {
			return p.impossible("archetype %d is a pool more than there are", i)
		}
		pool, n := &p.s.Pools[number-1], uint32(st.Pooled)
		if st.Components != p.r.class(st.Class).sig {
			return p.impossible("pool %d has other components than its class", number)
		}
		if len(pool.Idle) != int(n+63)/64 || len(pool.Empty) != len(pool.Idle) || n&63 != 0 && (pool.Idle[n>>6]|pool.Empty[n>>6])>>(n&63) != 0 {
			return p.impossible("pool %d has %d slots, and says what is in others", number, n)
		}
		for k := range n {
			if !own.mark(pool.First + k) {
				return p.impossible("slot %d of pool %d has index %d, which is another slot's, or does not exist", k, number, pool.First+k)
			}
		}
		for k, t := range pool.Tenants {
			if t.Slot >= n || k > 0 && t.Slot <= pool.Tenants[k-1].Slot || !own.mark(t.Index) {
				return p.impossible("slot %d of pool %d is index %d's", t.Slot, number, t.Index)
			}
		}
		p.pooled += st.Pooled
	}
	if number != len(p.s.Pools) {
		return p.impossible("%d pools, and %d archetypes of them", len(p.s.Pools), number)
	}
	for i, b := range p.s.Burnt {
		if i > 0 && b.Index <= p.s.Burnt[i-1].Index || !own.has(b.Index) {
			return p.impossible("index %d passes over generation %d", b.Index, b.Generation)
		}
	}
	return nil
}

// eachPool calls fn with every pool and its archetype, until it fails.
func (p *Restoration) eachPool(fn func(number int, pool *PoolState, st *ArchetypeState) error) error {
	number := 0
	for i := range p.s.Stores {
		if st := &p.s.Stores[i]; st.Pooled != 0 {
			if err := fn(number+1, &p.s.Pools[number], st); err != nil {
				return err
			}
			number++
		}
	}
	return nil
}

// ofPool says whether a place is a slot of a pool.
func (p *Restoration) ofPool(place uint32) bool {
	for i := range p.s.Stores {
		if st := &p.s.Stores[i]; st.Pooled != 0 && place-st.Chunks[0].Base < uint32(st.Pooled) {
			return true
		}
	}
	return false
}

// enterEmpty gives the slots that nobody is in to nobody.
func (p *Restoration) enterEmpty() error {
	return p.eachPool(func(number int, pool *PoolState, st *ArchetypeState) error {
		for i := range eachBit(pool.Empty) {
			if !p.enter(st.Chunks[0].Base + i) {
				return p.impossible("slot %d of pool %d is empty, and cannot be", i, number)
			}
		}
		return nil
	})
}

// checkTenants checks that whoever is in a slot of a pool is whom it belongs to, and that idle ones have their own
// entity. It counts who has room in pools, and those that checkActive does not see.
func (p *Restoration) checkTenants() error {
	return p.eachPool(func(number int, pool *PoolState, st *ArchetypeState) error {
		dead := map[uint32]bool{}
		for _, d := range p.s.Deaths {
			if d.Place != handles.NoPlace && !d.Replaced {
				dead[d.Place] = true
			}
		}
		tenants := pool.Tenants
		for i := range uint32(st.Pooled) {
			index, place := pool.First+i, st.Chunks[0].Base+i
			if len(tenants) > 0 && tenants[0].Slot == i {
				index, tenants = tenants[0].Index, tenants[1:]
				if own := handles.Word(*p.s.word(pool.First + i)); own.State() != handles.Dying || own.Place() != handles.NoPlace {
					return p.impossible("slot %d of pool %d is index %d's, and its own does not sleep, but is %v at %d", i, number, index, own.State(), own.Place())
				}
			}
			w := handles.Word(*p.s.word(index))
			empty, idle := pool.Empty[i>>6]>>(i&63)&1 != 0, pool.Idle[i>>6]>>(i&63)&1 != 0
			if w.State() == handles.Alive {
				p.lodged++
				if p.blank(st) && w.Place() == place {
					p.inactive++
				}
			}
			ch := &st.Chunks[int(i)/st.Chunks[0].Slots]
			slot := int(i) % st.Chunks[0].Slots
			active := ch.Active[slot>>6]>>(slot&63)&1 != 0
			switch {
			case w.State() == handles.Reserved,
				!empty && !dead[place] && (w.Place() != place || w.State() == handles.Free),
				empty && w.State() == handles.Alive && w.Place()-st.Chunks[0].Base < uint32(st.Pooled),
				idle && (empty || active || index != pool.First+i || w.Place() != place):
				return p.impossible("slot %d of pool %d is index %d's, which is %v at %d", i, number, index, w.State(), w.Place())
			}
		}
		return nil
	})
}

// Blocks are the pools there are, in the order of their making.
//
// Concurrency: window holder. Allocates: no.
func Blocks(w *Window) []*Block { return w.Registry().pools.blocks }

// InitialBytes are the bytes of the initial value of a column, by table slot; nil for one with pointers.
//
// Concurrency: window holder. Allocates: no.
func (b *Block) InitialBytes(tableSlot int) []byte {
	f := b.fields[tableSlot]
	if f.Pointers {
		return nil
	}
	// Sound: a value of the field's type, which has that size and no pointers.
	return unsafe.Slice((*byte)(b.initial[tableSlot]), f.Size)
}

// LoadInitial copies the initial value of a component that the block's slots have into what p points to.
//
// Panics: if p is no pointer to the component's type.
// Concurrency: window holder. Allocates: no.
func (b *Block) LoadInitial(comp *archetype.Component, p reflect.Value) {
	to := initialAt(comp, p)
	for i := range comp.Fields {
		f := &comp.Fields[i]
		// Sound: the field of a value of the component's type, which p points to, and a value of the field's type.
		f.Cell.Copy(unsafe.Add(to, f.Offset), b.initial[b.arch.Column(comp.ID)+i])
	}
}

// StoreInitial is the inverse of LoadInitial. Slots that are idle already stay as they are.
//
// Panics: if p is no pointer to the component's type.
// Concurrency: window holder. Allocates: no.
func (b *Block) StoreInitial(comp *archetype.Component, p reflect.Value) {
	from := initialAt(comp, p)
	for i := range comp.Fields {
		f := &comp.Fields[i]
		f.Cell.Copy(b.initial[b.arch.Column(comp.ID)+i], unsafe.Add(from, f.Offset)) // as in LoadInitial
	}
}

// initialAt is where the value is that p points to.
func initialAt(comp *archetype.Component, p reflect.Value) unsafe.Pointer {
	if p.Kind() != reflect.Pointer || p.Type().Elem() != comp.Type {
		panic("registry: a value of component " + comp.Name + " in a " + p.Type().String())
	}
	return p.UnsafePointer()
}

// Components are those of the block's class, by id.
//
// Concurrency: window holder. Allocates: no.
func (b *Block) Components() []*archetype.Component { return b.arch.Components() }

// Column is the table slot of a component's first column, -1 if it has none.
//
// Concurrency: window holder. Allocates: no.
func (b *Block) Column(id archetype.ComponentID) int { return b.arch.Column(id) }

// Cosmetic says whether the block is of a cosmetic class.
//
// Concurrency: any goroutine. Allocates: no.
func (b *Block) Cosmetic() bool { return b.r.CosmeticClass(b.class) }
