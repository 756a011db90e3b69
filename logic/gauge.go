package logic

import "sync/atomic"

// gauge counts what waits for the window, exactly: its bound holds at every instant, a
// refused operation never shows, and one that left makes room at once. One word holds both
// counts, because a bound over two words could not be kept exactly without a lock.
//
// A caller books a place first and shows in line once it stands there, so that who sees n
// callers in line knows the next one to come behind them. In between it counts as an operation.
//
// Layout: callers in line in the high 24 bits, all that wait in the low 40.
// Invariant: callers <= all <= limit.
type gauge struct {
	word  atomic.Uint64
	limit uint64 // set once
}

const (
	gaugePlace  = 1       // of an operation, or of a caller that is not in line yet
	gaugeInLine = 1 << 40 // what a caller in line has beside its place
	gaugeAll    = gaugeInLine - 1
)

// take books a place; false when there is none.
func (g *gauge) take() bool {
	for {
		w := g.word.Load()
		if w&gaugeAll >= g.limit {
			return false
		}
		if g.word.CompareAndSwap(w, w+gaugePlace) {
			return true
		}
	}
}

// lineUp shows a caller in line.
func (g *gauge) lineUp() { g.word.Add(gaugeInLine) }

// give returns a place.
func (g *gauge) give() { g.word.Add(^uint64(gaugePlace - 1)) }

// leaveLine returns the place of a caller in line.
func (g *gauge) leaveLine() { g.word.Add(^uint64(gaugePlace + gaugeInLine - 1)) }

func (g *gauge) read() (callers, ops int) {
	w := g.word.Load()
	callers = int(w / gaugeInLine)
	return callers, int(w&gaugeAll) - callers
}
