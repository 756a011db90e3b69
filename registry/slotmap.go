package registry

import (
	"math/bits"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
)

// SlotState says what is in a slot of an archetype.
type SlotState uint8

// The states of a slot.
const (
	SlotUnused     SlotState = iota // was never taken
	SlotFree                        // reclaimed, for the next entity
	SlotLive                        // an active entity
	SlotInactive                    // an entity that SetActive has taken out of the world
	SlotIdle                        // the entity of an idle slot of a pool
	SlotTombstoned                  // somebody dead, not reclaimed
	SlotKept                        // somebody dead, or one who has moved away, kept for rollback
)

// ChunkSlots is a chunk as SlotMap shows it.
type ChunkSlots struct {
	Index int    // place in its archetype
	Base  uint32 // cache index of the first slot
	Slots int

	planes [SlotKept + 1][]uint64 // by state, a bit a slot; none for SlotUnused
}

// At is what is in a slot.
//
// Concurrency: any goroutine. Allocates: no.
func (c *ChunkSlots) At(slot int) SlotState {
	for state, plane := range c.planes {
		if plane != nil && plane[slot>>6]>>(slot&63)&1 != 0 {
			return SlotState(state)
		}
	}
	return SlotUnused
}

// SlotMap says what is in the slots of an archetype: of its chunks from first on, as many as have most slots together,
// and of one at least. It looks at nothing else and changes nothing, also not who was destroyed from outside: he counts as
// alive until the window of his death.
//
// Panics: ErrExpired.
// Concurrency: window holder. Allocates: the map.
func (w *Window) SlotMap(a *archetype.Archetype, first, most int) []ChunkSlots {
	r := must(w.open())
	var list []ChunkSlots
	chunks := a.Chunks()
	for i := max(first, 0); i < len(chunks); i++ {
		c := chunks[i]
		if most -= c.Slots(); most < 0 && len(list) > 0 {
			break
		}
		list = append(list, r.slotPlanes(i, c))
	}
	r.markTombstones(a, list)
	return list
}

// slotPlanes is what is in each slot of a chunk, but that all the dead are kept for rollback if there is a ring. Words are
// copied whole: only who is neither active nor reclaimed is looked at.
func (r *Registry) slotPlanes(i int, c *archetype.Chunk) ChunkSlots {
	s := ChunkSlots{Index: i, Base: c.Base(), Slots: c.Slots()}
	words := c.Slots() / 64
	all := make([]uint64, words*(len(s.planes)-1))
	for k := 1; k < len(s.planes); k++ {
		s.planes[k], all = all[:words:words], all[words:]
	}
	dead := s.planes[SlotTombstoned]
	if r.hist.on {
		dead = s.planes[SlotKept]
	}
	copy(s.planes[SlotFree], c.Holes())
	for w := range (c.Allocated() + 63) / 64 {
		live := atomic.LoadUint64(&c.Active()[w])
		rest := ^(live | c.Holes()[w])
		if beyond := (w+1)*64 - c.Allocated(); beyond > 0 {
			rest &= ^uint64(0) >> beyond
		}
		for ; rest != 0; rest &= rest - 1 {
			slot := uint32(w<<6 + bits.TrailingZeros64(rest))
			bit := rest & -rest
			switch h := c.Entities()[slot]; {
			case c.Born(slot):
				live |= bit
			case h == 0 || !r.livesAt(h, c.Base()+slot):
				dead[w] |= bit
			case r.idleAt(c, slot):
				s.planes[SlotIdle][w] |= bit
			default:
				s.planes[SlotInactive][w] |= bit
			}
		}
		s.planes[SlotLive][w] = live
	}
	return s
}

// markTombstones finds, with a ring, those who have died since the last frame ended. Logic waits for it: each of them is
// one look, however many chunks are in the list, which follow each other in a.
func (r *Registry) markTombstones(a *archetype.Archetype, list []ChunkSlots) {
	if !r.hist.on || len(list) == 0 {
		return
	}
	recent := uint64(0)
	if m := r.hist.markOf(r.hist.present.Load()); m.begun {
		recent = m.dead - min(m.dead, r.hist.deadBase)
	}
	for _, g := range r.graves[min(recent, uint64(len(r.graves))):] {
		ch := r.store.ChunkAt(g.place)
		if ch == nil || ch.Archetype() != a {
			continue
		}
		if i := ch.Index() - list[0].Index; i >= 0 && i < len(list) {
			c, slot := &list[i], g.place-ch.Base()
			bit := uint64(1) << (slot & 63)
			if c.planes[SlotKept][slot>>6]&bit != 0 {
				c.planes[SlotKept][slot>>6] &^= bit
				c.planes[SlotTombstoned][slot>>6] |= bit
			}
		}
	}
}
