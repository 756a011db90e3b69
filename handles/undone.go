package handles

import "sync/atomic"

// undone is the stack of names whose claim was taken back: the last one taken back is the next
// to be claimed, so that undoing claims in reverse order restores the order of claims. The
// owner pushes, any goroutine pops; nobody waits.
//
// The top carries a version, so that a pop which slept through a push and a pop of others
// fails (the ABA fault of such stacks). A version that comes round after 2^32 steps during
// one pop could at worst lose a name: the claim is the compare-and-swap of the word.
type undone struct {
	top   atomic.Uint64                   // version:32 | length:32; the store that publishes a name
	names atomic.Pointer[[]atomic.Uint64] // grown by the owner before it publishes a length that needs it
}

// push puts a name on the stack. Owner only.
func (u *undone) push(name entry) {
	for {
		top := u.top.Load()
		n := uint32(top)
		names := u.names.Load()
		if names == nil || int(n) == len(*names) {
			names = u.grow(names)
		}
		// Beyond the length: a pop that still reads there has an old version, and fails.
		(*names)[n].Store(uint64(name))
		if u.top.CompareAndSwap(top, stepped(top, n+1)) {
			return
		}
	}
}

// pop takes the top name. Any goroutine.
func (u *undone) pop() (entry, bool) {
	for {
		top := u.top.Load()
		n := uint32(top)
		if n == 0 {
			return 0, false
		}
		name := (*u.names.Load())[n-1].Load()
		if u.top.CompareAndSwap(top, stepped(top, n-1)) {
			return entry(name), true
		}
	}
}

// len is the number of names; exact only while nobody else is inside.
func (u *undone) len() int { return int(uint32(u.top.Load())) }

// at is the name at height i. Owner only; what others pop meanwhile is still there.
func (u *undone) at(i int) entry { return entry((*u.names.Load())[i].Load()) }

// has says whether a name is on the stack, and looks from the top. Owner only.
func (u *undone) has(name entry) bool {
	for i := u.len() - 1; i >= 0; i-- {
		if u.at(i) == name {
			return true
		}
	}
	return false
}

// trim takes names off the top as long as gone says that they are out of date. Owner only.
func (u *undone) trim(gone func(name entry) bool) {
	for {
		top := u.top.Load()
		n := uint32(top)
		if n == 0 || !gone(u.at(int(n)-1)) {
			return
		}
		u.top.CompareAndSwap(top, stepped(top, n-1)) // fails if somebody popped it: look again
	}
}

// appendTo appends the names to a slice, the top one last. Owner only, while nobody else is inside.
func (u *undone) appendTo(names []entry) []entry {
	for i := range u.len() {
		names = append(names, u.at(i))
	}
	return names
}

// set makes names the whole stack, the last one its top. Owner only, while nobody else is inside.
func (u *undone) set(names []entry) {
	for have := u.names.Load(); len(names) > 0 && (have == nil || len(*have) < len(names)); {
		have = u.grow(have)
	}
	for i, name := range names {
		(*u.names.Load())[i].Store(uint64(name))
	}
	u.top.Store(stepped(u.top.Load(), uint32(len(names))))
}

func (u *undone) grow(old *[]atomic.Uint64) *[]atomic.Uint64 {
	if old == nil {
		names := make([]atomic.Uint64, 64)
		u.names.Store(&names)
		return &names
	}
	names := make([]atomic.Uint64, 2*len(*old))
	for i := range *old {
		names[i].Store((*old)[i].Load())
	}
	u.names.Store(&names)
	return &names
}

// stepped is the top after one more step, with a new length.
func stepped(top uint64, length uint32) uint64 {
	return (top>>32+1)<<32 | uint64(length)
}
