package registry

import (
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
	Slots []SlotState
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
		list = append(list, ChunkSlots{Index: i, Base: c.Base(), Slots: r.slotStates(c)})
	}
	r.markTombstones(list)
	return list
}

// slotStates is what is in each slot of a chunk, but that all the dead are kept for rollback if there is a ring.
func (r *Registry) slotStates(c *archetype.Chunk) []SlotState {
	dead := SlotTombstoned
	if r.hist.on {
		dead = SlotKept
	}
	states := make([]SlotState, c.Slots())
	for slot := range uint32(c.Allocated()) {
		states[slot] = dead
		h := c.Entities()[slot]
		switch {
		case atomic.LoadUint64(&c.Active()[slot>>6])>>(slot&63)&1 != 0, c.Born(slot):
			states[slot] = SlotLive
		case c.Holes()[slot>>6]>>(slot&63)&1 != 0:
			states[slot] = SlotFree
		case h == 0 || !r.livesAt(h, c.Base()+slot):
		case r.idleAt(c, slot):
			states[slot] = SlotIdle
		default:
			states[slot] = SlotInactive
		}
	}
	return states
}

// markTombstones finds, with a ring, those who have died since the last frame ended.
func (r *Registry) markTombstones(list []ChunkSlots) {
	if !r.hist.on || len(list) == 0 {
		return
	}
	recent := uint64(0)
	if m := r.hist.markOf(r.hist.present.Load()); m.begun {
		recent = m.dead - min(m.dead, r.hist.deadBase)
	}
	for _, g := range r.graves[min(recent, uint64(len(r.graves))):] {
		for _, c := range list {
			if slot := g.place - c.Base; g.place >= c.Base && slot < uint32(len(c.Slots)) && c.Slots[slot] == SlotKept {
				c.Slots[slot] = SlotTombstoned
			}
		}
	}
}
