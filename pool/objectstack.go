package pool

import (
	"runtime"
	"sync/atomic"
)

// The head word of a stack, from its low end: the first free place and the one below it, each as index
// + 1 or 0 for none, how many are in use, and whether somebody is looking below. Three numbers of
// 21 bits limit a pool to two million places.
const (
	objectBits   = 21
	objectTop    = 1<<objectBits - 1       // mask of the first free place
	objectBelow  = objectTop << objectBits // mask of the one below; all ones while that is not known
	objectTaken  = 1 << (2 * objectBits)   // one in use
	objectLooks  = 1 << (3 * objectBits)   // somebody is looking
	objectPlaces = objectTop - 1           // the most places there can be
)

// objectStack has the free places of a pool, the last given back on top, and counts those in use. Both
// are in one word, so that whoever reads it knows how many were in use at that instant.
//
// This is Treiber's stack without its famous flaw. There a pop reads what is below the top and then
// installs it; meanwhile others may have popped both and pushed the first again, and the second
// becomes free though somebody has it. The usual remedy, a version number in the word, makes that
// unlikely, and 64 bits have no room for one that makes it impossible. Here the word itself says
// what is below: a push knows, since that was the top before, and a pop of such a word is one
// exchange that can't be wrong. After a pop it is not known. Then the next one marks the word, and
// while it looks others can put places on top, but not take any away.
//
// So a take and a release that follow each other cost one exchange each, which is what makes them
// cheaper than a mutex. A push never waits. A pop waits for the few instructions of a look.
type objectStack[T any] struct {
	_        [64]byte // see objectPlace
	head     atomic.Uint64
	_        [64]byte
	segments objectSegments[T]
}

// pop takes the first free place, adds taken to the count, and returns what the count was then. The
// place is nil if none is free.
func (f *objectStack[T]) pop(taken uint64) (*objectPlace[T], int) {
	for tries := 1; ; tries++ {
		head := f.head.Load()
		top, below := head&objectTop, head&objectBelow
		switch {
		case top == 0:
			return nil, 0
		case head&objectLooks != 0:
			if tries%32 == 0 {
				runtime.Gosched() // who looks was preempted, maybe on this thread
			}
		case below == objectBelow:
			if f.head.CompareAndSwap(head, head|objectLooks) {
				return f.popLooking(taken)
			}
		default:
			popped := head&^(objectTop|objectBelow) + taken | below>>objectBits
			if below != 0 {
				popped |= objectBelow
			}
			if f.head.CompareAndSwap(head, popped) {
				return f.at(uint32(top - 1)), int(popped / objectTaken)
			}
		}
	}
}

// popLooking is pop by the caller that marked the word: nobody else takes places away, so that those
// in the stack can be read. It looks at two, so that the next pop need not.
func (f *objectStack[T]) popLooking(taken uint64) (*objectPlace[T], int) {
	for {
		head := f.head.Load() // again, if somebody pushed
		s := f.at(uint32(head&objectTop - 1))
		popped := head&^(objectLooks|objectTop|objectBelow) + taken | uint64(s.next)
		if s.next != 0 {
			popped |= uint64(f.at(s.next-1).next) << objectBits
		}
		if f.head.CompareAndSwap(head, popped) {
			return s, int(popped / objectTaken)
		}
	}
}

// push makes the caller's place free, and takes taken off the count.
func (f *objectStack[T]) push(s *objectPlace[T], taken uint64) {
	for {
		head := f.head.Load()
		top := head & objectTop
		s.next = uint32(top)
		pushed := head&^(objectTop|objectBelow) - taken | top<<objectBits | uint64(s.index+1)
		if f.head.CompareAndSwap(head, pushed) {
			return
		}
	}
}

// count adds to the count and returns what it was then.
func (f *objectStack[T]) count(taken uint64) int {
	return int(f.head.Add(taken) &^ objectLooks / objectTaken)
}

// inUse is the count now.
func (f *objectStack[T]) inUse() int {
	return int(f.head.Load() &^ objectLooks / objectTaken)
}

// at is the place with this index, which was added before.
func (f *objectStack[T]) at(index uint32) *objectPlace[T] { return f.segments.at(index) }
