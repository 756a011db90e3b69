package logic

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/internal/planted"
)

const (
	sampling     = 16                    // of so many handshakes one is timed
	yields       = 2                     // looks at the state, a yield before each, before parking
	deadlockWait = 10 * time.Millisecond // after this long a waiter asks whether it waits for itself
)

// door is the airlock itself. Goroutines queue by pushing their waiter on a lock-free stack;
// Logic takes the stack out whole, turns it round, and grants the window to the oldest; each
// hands it on to the next, and the last one, or the one that used up the budget, hands it
// back. It knows nothing of what is done in the window.
//
// The line fields belong to whoever holds the window. The window passes by the state of a
// waiter or of the baton, which is the happens-before edge for them and for all that Logic owns.
type door struct {
	clock clock
	watch *watch
	queue *gauge
	waits meter      // how long callers waited; written by the window's holder
	pool  fault.Pool // a sync.Pool
	crowd crowd

	inside      func() bool // is the calling goroutine inside a callback; slow
	maxSpinners int32       // set once
	watched     atomic.Bool // a supervisor looks out for deadlocks; see nudge
	hurry       atomic.Bool // a callback takes long: look at the clock after it

	line   []*waiter // granted one by one
	budget budget
	back   chan struct{} // capacity 1: the last caller wakes Logic

	_     [64]byte // what callers write apart from what Logic reads
	baton atomic.Uint32
	_     [64]byte
	head  atomic.Pointer[waiter] // newest first; &closed after shut
	// spinners are tokens: of more spinning goroutines than other processors, some only take
	// time from the one they wait for.
	spinners atomic.Int32
	_        [64]byte

	closed waiter // the sentinel; never granted
}

// The baton's states.
const (
	batonAway    uint32 = iota // among the callers
	batonAwaited               // as before, and Logic sleeps on back
	batonHome                  // with Logic
)

func (d *door) init(c clock, w *watch, q *gauge, inside func() bool) {
	d.clock, d.watch, d.queue, d.inside = c, w, q, inside
	d.maxSpinners = int32(runtime.GOMAXPROCS(0) - 1)
	d.back = make(chan struct{}, 1)
	d.baton.Store(batonHome)
	d.pool.New = func() any {
		w := &waiter{wake: make(chan struct{}, 1)}
		d.crowd.add(w)
		return w
	}
}

// enter queues the calling goroutine and returns when it holds the window. It must call leave
// then.
func (d *door) enter(ctx context.Context) (*waiter, error) {
	if d.queue.full() {
		return nil, ErrQueueFull
	}
	w := d.pool.Get().(*waiter)
	if w.asked.Load() {
		w.asked.Store(false)
	}
	if w.turn++; w.turn%sampling == 1 {
		w.since.Store(d.clock.now())
	} else if w.since.Load() != 0 {
		w.since.Store(0)
	}
	w.state.Store(waiterSpinning)
	if !d.push(w) {
		d.pool.Put(w)
		return nil, ErrStopped
	}
	if fault.Enabled {
		fault.At(fault.Joining)
	}
	counted := d.queue.take(gaugeCaller)
	if !counted && w.state.CompareAndSwap(waiterSpinning, waiterCancelled) {
		return nil, ErrQueueFull // somebody else took the last place since we looked
	}
	if fault.Enabled {
		fault.At(fault.Queued)
	}
	err := d.await(ctx, w)
	if counted {
		d.queue.give(gaugeCaller)
	}
	if err != nil {
		return nil, err
	}
	if fault.Enabled {
		fault.At(fault.Granted)
	}
	if err := ctx.Err(); err != nil && !(planted.Enabled && planted.Is(planted.CancelledCallerRuns)) { // cancelled in the instant of the grant: it must not run
		d.budget.served--
		d.leave(w)
		return nil, err
	}
	return w, nil
}

func (d *door) push(w *waiter) bool {
	for {
		head := d.head.Load()
		if head == &d.closed {
			return false
		}
		w.next, w.first = head, head == nil
		if d.head.CompareAndSwap(head, w) {
			return true
		}
	}
}

// await returns nil when w has the window.
func (d *door) await(ctx context.Context, w *waiter) error {
	settled := d.spin(w)
	if !settled && w.first && w.since.Load() == 0 {
		w.since.Store(d.clock.now())
	}
	if settled || !w.state.CompareAndSwap(waiterSpinning, waiterParked) {
		return w.answer()
	}
	if fault.Enabled {
		fault.At(fault.Parking)
	}
	if ctx.Done() != nil || !d.watched.Load() {
		return d.park(ctx, w, false)
	}
	// A supervisor is about and the context cannot end: one channel is enough. Each further one
	// costs its share of every handshake.
	if fault.Enabled {
		fault.Wait(fault.Asleep, w.woken)
	}
	<-w.wake
	if w.state.Load() == waiterParked { // nudged
		return d.park(ctx, w, true)
	}
	return w.answer()
}

// spin looks whether something happened to w, yielding in between, if there is a token left
// (and nobody took or gave one this instant).
// A yield is what helps: it lets Logic run on this very processor. To let only the first in
// line spin is no gain: a processor without work is put to sleep and woken again, at Logic's cost.
func (d *door) spin(w *waiter) bool {
	n := d.spinners.Load()
	if n >= d.maxSpinners || !d.spinners.CompareAndSwap(n, n+1) {
		return false
	}
	defer d.spinners.Add(-1)
	for range yields {
		if fault.Enabled {
			fault.Yield(fault.Spinning)
		}
		runtime.Gosched()
		if w.state.Load() != waiterSpinning {
			return true
		}
	}
	return false
}

// park sleeps until w is settled, ctx ends, or it turns out that the goroutine waits for
// itself. Somebody has asked about that, or will: the supervisor, or a timer where there is none.
func (d *door) park(ctx context.Context, w *waiter, asked bool) error {
	var late <-chan time.Time
	var due int64 // when late is, for a simulation
	if !asked && !d.watched.Load() {
		if fault.Enabled {
			due = d.clock.now() + int64(deadlockWait)
		}
		t := time.NewTimer(deadlockWait)
		defer t.Stop()
		late = t.C
	}
	for checked := false; ; asked = true {
		if asked && !checked { // once is enough: a goroutine that waits does not move
			checked = true
			if d.inside() && w.state.CompareAndSwap(waiterParked, waiterCancelled) {
				return ErrWouldDeadlock
			}
		}
		wake, over, later := w.wake, ctx.Done(), late
		if fault.Enabled {
			ended := func() bool { return ctx.Err() != nil }
			lasted := func() bool { return late != nil && d.clock.now() >= due }
			switch fault.Wait(fault.Parked, w.woken, ended, lasted) {
			case 0:
				over, later = nil, nil
			case 1:
				wake, later = nil, nil
			case 2:
				wake, over = nil, nil
			}
		}
		select {
		case <-wake:
		case <-later:
			late = nil
		case <-over:
			if fault.Enabled {
				fault.At(fault.Cancelling)
			}
			if w.state.CompareAndSwap(waiterParked, waiterCancelled) {
				return ctx.Err()
			}
		}
		if w.state.Load() != waiterParked {
			return w.answer()
		}
	}
}

// leave hands the window on. It answers how long the callback ran if that overran the
// watchdog and is not reported yet, else 0. The last in line does not look at the clock: Logic
// does when it wakes.
func (d *door) leave(w *waiter) (overran int64) {
	passed := waiterIdle
	if len(d.line) > 0 {
		overran = d.ended(callers)
		passed = d.pass()
		if planted.Enabled && planted.Is(planted.BatonPassedTwice) {
			d.pass()
		}
	}
	if passed == waiterIdle {
		if fault.Enabled {
			fault.At(fault.HandingBack)
		}
		if d.baton.Swap(batonHome) == batonAwaited {
			d.back <- struct{}{}
		}
	}
	d.pool.Put(w)
	return overran
}

// ended counts a callback of the window and watches over the next one. It answers as leave.
func (d *door) ended(next activity) (overran int64) {
	if !d.due() {
		return 0
	}
	return d.look(next)
}

// due counts a callback and says whether to look at the clock after it.
func (d *door) due() bool { return d.budget.due() || d.hurry.Load() }

// look is what ended does when it is due.
func (d *door) look(next activity) (overran int64) {
	now := d.clock.now()
	overran = d.watch.late(now)
	d.budget.read(now, d.watch.limit)
	if d.hurry.Load() {
		d.hurry.Store(false)
	}
	d.watch.begin(now, next)
	return overran
}

// pass gives the window to the next in line and answers whether that one spun or was parked;
// idle when the window goes back to Logic, for nobody is left or the budget is spent. Holder of
// the window only, and but for idle it is that no more.
func (d *door) pass() uint32 {
	for len(d.line) > 0 {
		if d.budget.spent() {
			return waiterIdle
		}
		w := d.line[0]
		d.line[0] = nil
		d.line = d.line[1:]
		if fault.Enabled {
			fault.At(fault.HandingOn)
		}
		// All of this before the grant: after it, the window is another's. If the grant fails,
		// the next round or admit overwrites it.
		d.budget.served++
		now, since := d.budget.now, w.since.Load()
		if was := w.grant(); was != waiterIdle {
			if since > 0 { // a meter bears a second writer, and grants go on meanwhile
				d.waits.add(now - since)
			}
			return was
		}
		d.budget.served--
		d.unlinked(w)
	}
	return waiterIdle
}

// unlinked takes a node that was out of the queue before its turn back into the pool.
func (d *door) unlinked(w *waiter) {
	if w.state.Load() == waiterCancelled { // for good: its goroutine has left it here
		d.pool.Put(w)
	}
}

// admit lets the goroutines in line through the window, oldest first, and returns when the
// window is back. What is left of the line stays in d.line. It answers whether Logic yielded to
// a spinning caller. Logic only.
func (d *door) admit() (yielded bool) {
	if fault.Enabled {
		fault.At(fault.Admitting)
	}
	d.watch.begin(d.budget.now, callers)
	d.baton.Store(batonAway)
	first := d.pass()
	if first == waiterIdle {
		d.baton.Store(batonHome)
		return false
	}
	// A yield reaches a caller that spins, and spares both the parking. One that sleeps runs
	// next on this processor if Logic parks at once, and then wakes it as directly; a Logic that
	// yields would sit in the global queue until another thread wakes up for it.
	yielded = first == waiterSpinning
	if yielded {
		for range yields {
			if fault.Enabled {
				fault.Yield(fault.Lingering)
			}
			runtime.Gosched()
			if d.baton.Load() == batonHome {
				return yielded
			}
		}
	}
	if fault.Enabled {
		fault.At(fault.Sleeping)
	}
	if d.baton.CompareAndSwap(batonAway, batonAwaited) {
		if fault.Enabled {
			fault.Wait(fault.Away, func() bool { return len(d.back) > 0 })
		}
		<-d.back
	}
	return yielded
}

// collect takes everybody out of the stack, appending to line, oldest first. Logic only.
func (d *door) collect(line []*waiter) []*waiter {
	for {
		head := d.head.Load()
		if head == nil || head == &d.closed {
			return line
		}
		if d.head.CompareAndSwap(head, nil) { // a swap could take the sentinel out
			return ordered(head, line)
		}
	}
}

// ordered appends a stack to line, oldest first.
func ordered(head *waiter, line []*waiter) []*waiter {
	from := len(line)
	for w := head; w != nil; {
		next := w.next
		w.next = nil // else a node in the pool would keep forgotten ones alive
		line = append(line, w)
		w = next
	}
	for i, j := from, len(line)-1; i < j && !(planted.Enabled && planted.Is(planted.LineReversed)); i, j = i+1, j-1 {
		line[i], line[j] = line[j], line[i]
	}
	return line
}

// shut answers everybody who waits, also those in a line, with ErrStopped and lets nobody
// queue again. Any goroutine.
func (d *door) shut() {
	d.head.Swap(&d.closed)
	if fault.Enabled {
		fault.At(fault.Shutting)
	}
	d.crowd.each(func(w *waiter) { w.settle(waiterStopped) })
}

// nudge has every goroutine that sleeps at the door look, once, whether it waits for itself.
// The supervisor calls it when a callback takes long: a goroutine that waits for the callback
// it runs in never ends that callback. Any goroutine.
func (d *door) nudge() {
	d.crowd.each(func(w *waiter) {
		if w.state.Load() == waiterParked && w.asked.CompareAndSwap(false, true) {
			w.look()
		}
	})
}
