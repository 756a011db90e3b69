package handles

import "sync/atomic"

// KillAt is Kill of a living entity at a place, whose word is given. False, and nothing has changed, if h is not alive
// and there.
//
// Concurrency: the owner only, beside others that Kill; never waits. Allocates: no.
func KillAt(word *atomic.Uint64, h Local, place uint32) bool {
	old := uint64(MakeWord(h.Generation(), Alive, place))
	return word.CompareAndSwap(old, old^(uint64(Alive)^uint64(Dying))<<placeBits)
}

// MoveAt is Move of a living entity at a place, whose word is given, to another one. False, and nothing has changed, if
// h is not alive and there.
//
// Concurrency: the owner only, beside others that Kill; never waits. Allocates: no.
func MoveAt(word *atomic.Uint64, h Local, from, to uint32) bool {
	return word.CompareAndSwap(uint64(MakeWord(h.Generation(), Alive, from)), uint64(MakeWord(h.Generation(), Alive, to)))
}
