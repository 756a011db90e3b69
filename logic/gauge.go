package logic

import "sync/atomic"

// gauge counts what waits for the window, exactly: its bound holds at every instant, a
// refused operation never shows, and one that left makes room at once. One word holds both
// counts, because a bound over two words could not be kept exactly without a lock.
//
// A caller is counted once it stands in line, so that who sees n of them knows the next one to
// come behind them.
//
// Layout: callers in line in the high 24 bits, all that wait in the low 40.
// Invariant: callers <= all <= limit.
type gauge struct {
	word  atomic.Uint64
	limit uint64 // set once
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

// give returns the place of one.
func (g *gauge) give(what uint64) { g.word.Add(-what) }

func (g *gauge) read() (callers, ops int) {
	w := g.word.Load()
	callers = int(w >> 40)
	return callers, int(w&gaugeAll) - callers
}
