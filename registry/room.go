package registry

// Room is what MaxEntities leaves. Reserve, on any goroutine, and the owner's spawns draw
// from one atomic counter, so that the cap is exact. To spare the owner a locked operation
// a spawn, it draws a handful at a time and keeps the rest in stash until the boundary; a
// registry of at most exactRoom entities never does, so that nothing is refused while a
// place is free. In larger ones, a window in which more than exactRoom-stashSize others
// reserve can see ErrExhausted up to stashSize places early.
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

// giveRoom gives n places back. Owner only.
func (r *Registry) giveRoom(n int64) {
	if r.exact {
		r.room.Add(n)
		return
	}
	if r.stash += n; r.stash > stashSize {
		r.settleRoom()
	}
}

// settleRoom gives the stash back, so that others see all room. Owner only.
func (r *Registry) settleRoom() {
	if r.stash != 0 {
		r.room.Add(r.stash)
		r.stash = 0
	}
}
