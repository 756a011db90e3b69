package registry

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// Verify walks every structure and says what is wrong with it: nil means that all
// invariants hold. It takes time in proportion to everything ever allocated.
//
// Errors: one that names the first broken invariants; ErrRunning while an engine runs.
// Concurrency: the owner, or any goroutine while nobody is inside; other goroutines must
// not Reserve or Destroy meanwhile. Allocates: yes.
func (r *Registry) Verify() error {
	if !r.owning() {
		if err := r.acquire(); err != nil {
			return err
		}
		defer r.release()
	}
	v := verifier{r: r, outside: r.outsideSet(), dying: map[handles.Local]bool{}, records: map[uint32]uint32{}}
	for _, h := range r.dying[r.hist.processed:] {
		v.dying[h] = true
	}
	v.parts()
	v.slots()
	v.words()
	v.deaths()
	v.room()
	v.links()
	v.blocks()
	return errors.Join(v.errs...)
}

// outsideSet is who waits in the outside list.
func (r *Registry) outsideSet() map[uint32]bool {
	set := map[uint32]bool{}
	for i := uint32(r.outside.Load()); i != 0 && !set[i]; i = uint32(r.nextDead.Get(i)) {
		set[i] = true
	}
	return set
}

const mostFaults = 16 // one broken invariant breaks many others

type verifier struct {
	r       *Registry
	outside map[uint32]bool
	dying   map[handles.Local]bool
	records map[uint32]uint32 // record index -> local index
	errs    []error

	live, inactive, reserved, unseen, pooled int
}

func (v *verifier) check(ok bool, format string, args ...any) {
	if !ok && len(v.errs) < mostFaults {
		v.errs = append(v.errs, fmt.Errorf("registry: "+format, args...))
	}
}

func (v *verifier) add(err error) {
	if err != nil {
		v.errs = append(v.errs, err)
	}
}

func (v *verifier) parts() {
	v.add(v.r.locals.Verify())
	if v.r.outerFirst != 0 {
		v.add(v.r.outer.Verify())
	}
	v.add(v.r.globals.Verify())
	v.add(v.r.nets.Verify())
	v.add(v.r.store.Verify())
}

// slots checks from storage to words: who is in a slot lives there.
func (v *verifier) slots() {
	for _, a := range v.r.store.Archetypes() {
		live := 0
		for _, ch := range a.Chunks() {
			for slot := range uint32(ch.Slots()) {
				h := ch.Entities()[slot]
				if h == 0 {
					v.check(!ch.Bit(slot) && !ch.Born(slot), "%s: slot %d is active and empty", a.ClassName(), ch.Base()+slot)
					continue
				}
				if v.dying[h] {
					v.check(!ch.Bit(slot) && !ch.Born(slot), "%s: slot %d is active, and a tombstone of %v", a.ClassName(), ch.Base()+slot, h)
					continue
				}
				live++
				v.slot(ch, slot, h)
			}
		}
		v.check(live == a.Live(), "%s: %d entities in slots, Live %d", a.ClassName(), live, a.Live())
	}
	v.check(v.inactive == v.r.inactive, "%d inactive entities, counted %d", v.inactive, v.r.inactive)
}

func (v *verifier) slot(ch *archetype.Chunk, slot uint32, h handles.Local) {
	r := v.r
	w := r.locals.Word(h.Index())
	alive := w.State() == handles.Alive || (w.State() == handles.Dying && v.outside[h.Index()])
	v.check(alive && w.Generation() == h.Generation(), "slot %d holds %v, whose word is %v %d", ch.Base()+slot, h, w.State(), w.Generation())
	v.check(w.Place() == ch.Base()+slot, "slot %d holds %v, whose word says %d", ch.Base()+slot, h, w.Place())
	v.live++
	if w.State() == handles.Dying {
		v.unseen++
	} else if r.pooled(h.Index()) {
		v.pooled++ // a pool has room for all of its slots, whoever is there
	}
	if !shown(ch, slot) {
		v.inactive++
	}
	g := r.recordOf(h.Index())
	other, taken := v.records[g]
	v.check(!taken, "record %d belongs to indices %d and %d", g, other, h.Index())
	v.records[g] = h.Index()
}

// words checks from words to storage, and the names.
func (v *verifier) words() {
	r := v.r
	r.eachIndex(func(i uint32) {
		w := r.locals.Word(i)
		h := handles.NewLocal(i, w.Generation())
		switch w.State() {
		case handles.Alive:
			ch := r.store.ChunkAt(w.Place())
			v.check(ch != nil && ch.Entities()[w.Place()-ch.Base()] == h, "%v is alive at %d, where it is not", h, w.Place())
		case handles.Reserved:
			v.reserved++
			v.check(w.Place() == handles.NoPlace, "%v is reserved, with place %d", h, w.Place())
		}
		if n := handles.Net(r.netOf.Get(i)); n != 0 {
			local, _ := r.nets.Local(n)
			v.check(local == i, "index %d is named %v, which names index %d", i, n, local)
		}
	})
}

// deaths checks what waits to be reclaimed.
func (v *verifier) deaths() {
	r, stones, homed := v.r, 0, 0
	v.check(len(r.graves) == len(r.dying), "%d deaths with %d graves", len(r.dying), len(r.graves))
	for i, h := range r.dying {
		d := r.graves[i]
		if i < r.hist.processed {
			continue // kept in case that is undone
		}
		w := r.locals.Word(h.Index())
		if d.how&wentHome != 0 {
			homed++
		}
		if d.how&wentHome != 0 && w.Generation() > h.Generation() {
			if d.place != handles.NoPlace {
				stones++
			}
			continue // the index has another entity
		}
		v.check(w.State() == handles.Dying && w.Generation() == h.Generation(), "death of %v, whose word is %v %d", h, w.State(), w.Generation())
		v.check(w.Place() == d.place || r.late() && w.Place() == handles.NoPlace, "death of %v at %d, whose word says %d", h, d.place, w.Place())
		if d.place != handles.NoPlace {
			stones++
		}
	}
	v.check(stones == len(r.dying)-r.hist.processed-r.placeless, "%d tombstones and %d deaths without a place, of %d", stones, r.placeless, len(r.dying)-r.hist.processed)
	v.check(homed == r.pools.homed, "%d of the dead have left their slot to others, counted %d", homed, r.pools.homed)
	v.check(int(r.killed.Load()) == v.unseen, "%d deaths from outside unseen, counted %d", v.unseen, r.killed.Load())
	v.check(len(r.undo) == 0 && len(r.vacated) == 0 && len(r.vacatedRuns) == 0 || r.inCallback || r.hist.on, "undo log outlives its callback")
}

// room checks that every place is taken by somebody.
func (v *verifier) room() {
	r := v.r
	taken := v.live - v.unseen + v.reserved - v.pooled
	for _, b := range r.pools.blocks {
		taken += b.n
	}
	room := int(r.room.Load() + r.stash + r.freed.Load())
	v.check(taken+room == r.cfg.MaxEntities, "%d alive or reserved and room for %d, of %d", taken, room, r.cfg.MaxEntities)
}

// blocks checks the slots of pools.
func (v *verifier) blocks() {
	r, idle := v.r, 0
	for number, b := range r.pools.blocks {
		v.check(b.arch.Pooled() == number+1 && b.arch.PooledSlots() == b.n, "pool %d is pool %d of the storage", number+1, b.arch.Pooled())
		idle += b.idle.Len()
		away := 0
		for i := range uint32(b.n) {
			ch, slot := b.at(i)
			h, tenant := ch.Entities()[slot], b.tenant[i].Load()
			home := r.pools.homes.Get(tenant)
			v.check(home == uint64(b.base+i)+1, "slot %d of pool %d has the tenant %d, whose home is %d", i, number+1, tenant, home)
			switch {
			case h == 0:
				away++
				v.check(!b.idle.Has(i), "slot %d of pool %d is idle and empty", i, number+1)
			case b.idle.Has(i):
				v.check(!ch.Bit(slot) && !ch.Born(slot) && h.Index() == b.first+i, "slot %d of pool %d is idle and has %v", i, number+1, h)
			}
			if h != 0 {
				v.check(h.Index() == tenant, "slot %d of pool %d has %v, its tenant is %d", i, number+1, h, tenant)
			}
		}
		c := b.Counts()
		v.check(c.Free == b.idle.Len() && c.InUse == b.n-b.retired-b.idle.Len() && b.retired <= away, "pool %d counts %+v, %d slots are idle and %d retired", number+1, c, b.idle.Len(), b.retired)
	}
	v.check(idle == r.pools.idle, "%d idle slots, counted %d", idle, r.pools.idle)
}

// links checks the tree of parents and children.
func (v *verifier) links() {
	r := v.r
	if len(r.family) == 0 {
		return
	}
	r.eachIndex(func(i uint32) {
		if !r.hasKin(i) {
			return
		}
		k := r.kin(i)
		if k.parent != 0 {
			p := r.kin(k.parent)
			v.check(k.prev != 0 || p.first == i, "index %d is no child of its parent %d", i, k.parent)
			v.check(k.next != 0 || p.last == i, "index %d is no last child of its parent %d", i, k.parent)
		}
		for c, prev := k.first, uint32(0); c != 0; prev, c = c, r.kin(c).next {
			v.check(r.kin(c).parent == i && r.kin(c).prev == prev, "child %d of index %d is linked wrongly", c, i)
			if r.kin(c).parent != i {
				break
			}
		}
	})
}
