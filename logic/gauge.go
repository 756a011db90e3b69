package logic

import "sync/atomic"

// gauge counts what waits for the window, exactly: its bound holds at every instant, a
// refused operation never shows, and one that left makes room at once. One word holds both
// counts, because a bound over two words could not be kept exactly without a lock.
//
// A caller is counted once it stands in line, so that who sees n of them knows the next one to
// come behind them.
//
// A lane takes places for operations ahead, many at once: a word that every operation's producer and Logic write,
// by turns, would cost them more than all the rest. They count as taken, the limit holds with them, and who finds no place
// has them given back first; see lanes.recall.
//
// Layout: callers in line in the high 24 bits, all that wait in the low 40.
// Invariant: callers <= all <= limit.
type gauge struct {
	_      [64]byte
	word   atomic.Uint64
	_      [64]byte
	limit  uint64 // set once
	stride uint64 // places that a lane takes at once, while no more than half of them are taken; set once
}

const (
	mostStride = 64   // places that a lane takes at once
	leastSteps = 1024 // and so many times that is the limit, at least: a small queue counts one by one
)

// init sets the limit.
func (g *gauge) init(limit uint64) {
	g.limit, g.stride = limit, max(min(limit/leastSteps, mostStride), 1)
}

const (
	gaugeOp     = 1
	gaugeCaller = 1<<40 | 1
	gaugeAll    = 1<<40 - 1
)

// full is a hint: a caller that comes now need not even try.
func (g *gauge) full() bool { return g.word.Load()&gaugeAll >= g.limit }

// take counts one, gaugeOp or gaugeCaller; false when there is no place.
func (g *gauge) take(what uint64) bool {
	for {
		w := g.word.Load()
		if w&gaugeAll >= g.limit {
			return false
		}
		if g.word.CompareAndSwap(w, w+what) {
			return true
		}
	}
}

// takeAhead counts as many operations at once as a lane may take, or one when more than half of the places are
// taken; 0 when there is no place.
func (g *gauge) takeAhead() uint64 {
	for {
		w := g.word.Load()
		n := g.stride
		if w&gaugeAll+n > g.limit/2 {
			n = 1
		}
		if w&gaugeAll+n > g.limit {
			return 0
		}
		if g.word.CompareAndSwap(w, w+n*gaugeOp) {
			return n
		}
	}
}

// give returns the place of one.
func (g *gauge) give(what uint64) { g.word.Add(-what) }

func (g *gauge) read() (callers, ops int) {
	w := g.word.Load()
	callers = int(w >> 40)
	return callers, int(w&gaugeAll) - callers
}
