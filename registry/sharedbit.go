package registry

import (
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// In a frame, workers change bits of one plane word at the same time, and one may destroy the entity
// whose bit another changes. Who has changed a bit is then what the atomic operation answers: looking
// first and changing after would have two count one change.

// clearShared clears the Active bit of a slot and says whether it was this call that did.
func clearShared(ch *archetype.Chunk, slot uint32) bool {
	word, bit := &ch.Active()[slot>>6], uint64(1)<<(slot&63)
	if atomic.LoadUint64(word)&bit == 0 { // an entity that is inactive, or destroyed twice: leave the line alone
		return false
	}
	ch.MarkActive()
	return atomic.AndUint64(word, ^bit)&bit != 0
}

// setShared sets the Active bit of a slot and says whether it was this call that did.
func setShared(ch *archetype.Chunk, slot uint32) bool {
	word, bit := &ch.Active()[slot>>6], uint64(1)<<(slot&63)
	if atomic.LoadUint64(word)&bit != 0 {
		return false
	}
	ch.MarkActive()
	return atomic.OrUint64(word, bit)&bit == 0
}

// setActiveShared is SetActive of an entity that was found, in a frame; wishMu is held.
//
// A worker that destroys the entity takes no lock: it makes the handle dead, then clears the bit, and
// counts the entity as active or not by the bit it has cleared.
func (r *Registry) setActiveShared(h handles.Local, ch *archetype.Chunk, slot uint32, active bool) {
	if !active {
		if clearShared(ch, slot) {
			r.inactive++
			r.log(undoOp{kind: undoActive, h: h, fresh: true})
		}
		return
	}
	if !setShared(ch, slot) {
		return
	}
	// It may have been destroyed since it was found, and its bit cleared before it was set. If this
	// call clears it again, the destroyer has found or will find it clear, as if nothing had happened
	// here. If not, the destroyer has cleared it, after it was set.
	if _, _, err := r.locate(h); err != nil && clearShared(ch, slot) {
		return
	}
	r.inactive--
	r.log(undoOp{kind: undoActive, h: h})
}
