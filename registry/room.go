package registry

import "math"

// Room is what MaxEntities leaves. Reserve, on any goroutine, and the owner's spawns draw
// from one atomic counter, so that the cap is exact. To spare the owner a locked operation
// a spawn, it draws a handful at a time and keeps the rest in stash until the boundary; a
// registry of at most exactRoom entities never does, so that nothing is refused while a
// place is free. In larger ones, a window in which more than exactRoom-stashSize others
// reserve can see ErrExhausted up to stashSize places early.
//
// While frames can be gone back to, what dies gives its room to the stash, in registries of any size, and there
// it stays for as long as a frame is kept that had more room than the present: those that were born with it
// are born once more when that frame is simulated again, and no Reserve may have taken it meanwhile. Systems
// and windows have it at once, for when they are simulated again they do so, too.
const (
	exactRoom = 1 << 17
	stashSize = 1 << 10
)

// takeRoom takes one place, or says that there is none. Owner only.
func (r *Registry) takeRoom() bool {
	if r.stash > 0 {
		r.stash--
		return true
	}
	return r.takeRoomSlow()
}

func (r *Registry) takeRoomSlow() bool {
	for {
		free := r.room.Load()
		if free <= 0 {
			return false
		}
		n := int64(1)
		if !r.exact && free > exactRoom {
			n = stashSize
		}
		if r.room.CompareAndSwap(free, free-n) {
			r.stash = n - 1
			r.held.drawn(n, r.stash)
			return true
		}
	}
}

// takeRooms takes n places or none. Owner only.
func (r *Registry) takeRooms(n int64) bool {
	if r.stash >= n {
		r.stash -= n
		return true
	}
	for {
		free := r.room.Load()
		if free+r.stash < n {
			return false
		}
		if r.room.CompareAndSwap(free, free+r.stash-n) {
			r.held.drawn(n-r.stash, 0)
			r.stash = 0
			return true
		}
	}
}

// takeRoomOutside takes one place. Any goroutine.
func (r *Registry) takeRoomOutside() bool {
	for {
		free := r.room.Load()
		if free <= 0 {
			return false
		}
		if r.room.CompareAndSwap(free, free-1) {
			return true
		}
	}
}

// giveRoomOutside gives one place back. Any goroutine.
func (r *Registry) giveRoomOutside() {
	if r.ringed() {
		r.freed.Add(1) // a frame of the past may need it
	} else {
		r.room.Add(1)
	}
}

// giveRoom gives n places back. Owner only.
func (r *Registry) giveRoom(n int64) {
	switch {
	case r.hist.on:
		r.held.low = min(r.held.low, r.stash)
		r.stash += n
	case r.exact:
		r.room.Add(n)
	default:
		if r.stash += n; r.stash > stashSize {
			r.settleRoom()
		}
	}
}

// settleRoom gives the stash back, so that others see all room. Owner only.
func (r *Registry) settleRoom() {
	r.collectRoom()
	if r.stash != 0 {
		r.room.Add(r.stash)
		r.held.drawn(-r.stash, 0)
		r.stash = 0
	}
}

// collectRoom takes over the room of those whom others have destroyed where deaths wait for the ring. Owner only.
func (r *Registry) collectRoom() {
	if r.freed.Load() != 0 {
		r.giveRoom(r.freed.Swap(0))
	}
}

// heldRoom says how much of the stash the frames need that can be gone back to. What the owner has in use is its budget
// less the stash; both count from an arbitrary zero. Owner only.
//
// Invariant: budget less the stash never exceeds the peak of the frame in progress.
type heldRoom struct {
	budget int64   // what the owner has drawn of room, less what it has given back to it
	low    int64   // the least that the stash was in this frame, when it last rose or was filled
	peaks  []int64 // of frame n at n % len: the most that was in use in it
}

// drawn notes that the stash was filled with n places, after which it has some left.
func (h *heldRoom) drawn(n, left int64) {
	h.budget += n
	h.low = left
}

// begin forgets what was before the first frame that can be gone back to.
func (h *heldRoom) begin(frames uint64, stash int64) {
	if h.peaks == nil {
		h.peaks = make([]int64, frames)
	}
	for i := range h.peaks {
		h.peaks[i] = math.MinInt64
	}
	h.low = stash
}

// heldAtEnd notes what a frame had in use when it has ended, and lets others have what no frame needs any more.
// Owner only.
func (r *Registry) heldAtEnd(frame uint64) {
	h, n := &r.held, uint64(len(r.held.peaks))
	h.peaks[frame%n] = h.budget - min(h.low, r.stash)
	if r.stash > 0 && frame >= r.hist.present.Load() { // and not one that is simulated again: those behind it have their needs
		most := h.budget - r.stash
		for f := r.hist.oldestKept() + 1; f <= frame; f++ {
			most = max(most, h.peaks[f%n])
		}
		if free := h.budget - most; free > 0 {
			r.room.Add(free)
			r.stash -= free
			h.budget -= free
		}
	}
	h.low = r.stash
}
