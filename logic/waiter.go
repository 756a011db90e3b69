package logic

import (
	"sync"
	"sync/atomic"
	"weak"

	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// A waiter's states. Only the goroutine that waits makes it spinning, parked and cancelled;
// whoever holds the window grants; Stop stops. Each leaves spinning or parked by a
// compare-and-swap, so that a waiter has exactly one outcome.
const (
	waiterIdle      uint32 = iota // never queued
	waiterSpinning                // queued, its goroutine looks at the state now and then
	waiterParked                  // queued, its goroutine sleeps on wake
	waiterGranted                 // has the window, or had it and lies in the pool
	waiterCancelled               // left the queue; the node is still linked, or lies in the pool
	waiterStopped                 // answered by Stop
)

// waiter is one goroutine in front of the door.
//
// A node goes back to the pool once it is out of the queue: by its own goroutine after a
// grant, by whoever takes a cancelled one out of the queue. Never while it is linked.
type waiter struct {
	state atomic.Uint32
	asked atomic.Bool   // told to look whether it waits for itself; see door.nudge
	wake  chan struct{} // capacity 1. A token means "look at your state"; a stale one is harmless
	next  *waiter       // the one that queued before; written before it is published
	// since is when it began to wait, 0 if that is not measured: one in sampling is, and of
	// those that sleep the first in line. All of them would cost a tenth of the handshake.
	since atomic.Int64
	first bool     // nobody was in line; its goroutine's own
	turn  uint32   // handshakes of this node; its goroutine's own
	_     [64]byte // others spin on theirs
}

// grant gives w the window and answers what it did until now, idle if it has left the queue.
func (w *waiter) grant() uint32 { return w.settle(waiterGranted) }

// settle moves a waiting node to a final state and wakes its goroutine.
func (w *waiter) settle(final uint32) (was uint32) {
	for {
		switch was = w.state.Load(); was {
		case waiterSpinning:
			if w.state.CompareAndSwap(was, final) {
				return was
			}
		case waiterParked:
			if w.state.CompareAndSwap(was, final) {
				if planted.Enabled && planted.Is(planted.LostWakeUp) && w.turn%8 == 5 {
					return was
				}
				if fault.Enabled && final == waiterGranted { // a stop settles under a lock
					fault.At(fault.Waking)
				}
				w.look()
				return was
			}
		default:
			return waiterIdle
		}
	}
}

// answer is what a settled waiter's goroutine is told: nil if it has the window.
func (w *waiter) answer() error {
	if w.state.Load() == waiterStopped {
		return ErrStopped
	}
	return nil
}

// look wakes the goroutine of w to look at its state. A full channel means that it is about
// to look anyway.
func (w *waiter) look() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// woken reports whether the goroutine of w has been told to look and has not done so yet: what a
// simulation asks before that one runs on.
func (w *waiter) woken() bool { return len(w.wake) > 0 }

// crowd knows every waiter there is, without keeping them alive: the pool lets idle ones go.
// It is for rare occasions, Stop and the search for deadlocks. Keeping waiters out of a
// select on a stop channel and a timer saves 100 ns a case and caller in the window.
type crowd struct {
	mu    sync.Mutex // guards the rest; leaf lock
	nodes []weak.Pointer[waiter]
	limit int // clean up when nodes gets this long
}

func (c *crowd) add(w *waiter) {
	if !(planted.Enabled && planted.Is(planted.CrowdUnlocked)) {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	if len(c.nodes) >= c.limit {
		live := c.nodes[:0]
		for _, p := range c.nodes {
			if p.Value() != nil {
				live = append(live, p)
			}
		}
		clear(c.nodes[len(live):])
		c.nodes = live
		c.limit = max(64, 2*len(live))
	}
	c.nodes = append(c.nodes, weak.Make(w))
}

// each calls fn for every node, idle ones too.
func (c *crowd) each(fn func(*waiter)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.nodes {
		if w := p.Value(); w != nil {
			fn(w)
		}
	}
}
