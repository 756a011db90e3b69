package logic

import (
	"sync"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// op is a deferred or enqueued operation.
type op struct {
	fn     func(*registry.Window) error
	ticket *Ticket // nil: deferred
}

// lane is where producers leave operations for Logic, in order. Logic takes a lane's
// operations out whole: that costs it one lock a lane and frame, not one an operation.
type lane struct {
	mu     sync.Mutex // guards the rest; leaf lock, held for an append or a swap
	ops    []op
	ahead  uint64 // places of the queue that were taken for operations to come; 0 unless it is linked
	linked bool   // in lanes.filled
	next   *lane  // filled before this one; written before it is linked, and under lanes.walk
	_      [64]byte
}

// lanes are all lanes that hold something. A lane links itself when its first operation
// comes and Logic unlinks it with its operations, so an idle producer costs Logic nothing and
// a forgotten one is garbage.
type lanes struct {
	_      [64]byte
	filled atomic.Pointer[lane] // last filled first; &closed after shut
	some   atomic.Bool          // some lane may have places ahead
	_      [64]byte
	closed lane // the sentinel
	queue  *gauge
	spare  [][]op     // emptied slices for lanes to fill again; Logic's
	walk   sync.Mutex // held by whoever goes from lane to lane: Logic, which takes it, and others, who only try; before lane.mu
	_      [64]byte
}

// addPaid puts o at the end of l, if l has a place for it ahead. Without a deferred call, which is a tenth of it.
func (l *lane) addPaid(o op) bool {
	l.mu.Lock()
	if l.ahead == 0 {
		l.mu.Unlock()
		return false
	}
	l.ahead--
	l.put(o)
	l.mu.Unlock()
	return true
}

// add puts o at the end of l, and keeps places ahead; false after shut.
func (ls *lanes) add(l *lane, o op, ahead uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Linked before o is in, and under the lock: whoever returns from here knows that Logic
	// will find o before it finds anything that this goroutine asks for later.
	if !l.linked && !ls.link(l) {
		return false
	}
	l.put(o)
	if ahead > 0 {
		l.ahead += ahead
		if !ls.some.Load() {
			ls.some.Store(true)
		}
	}
	return true
}

// put puts o at the end of l, whose lock is held.
func (l *lane) put(o op) {
	if planted.Enabled && planted.Is(planted.LaneOvertaken) && len(l.ops) > 0 {
		l.ops[len(l.ops)-1], o = o, l.ops[len(l.ops)-1]
	}
	l.ops = append(l.ops, o)
}

// recall gives places back that lanes have taken ahead, and reports whether there were any. It does not wait: while
// Logic empties the lanes, which gives them back, too, it finds none. Any goroutine.
func (ls *lanes) recall() bool {
	if !ls.some.Load() || !ls.walk.TryLock() {
		return false
	}
	defer ls.walk.Unlock()
	ls.some.Store(false) // before the look: a lane that has some later says so
	var unused uint64
	for l := ls.filled.Load(); l != nil && l != &ls.closed; {
		l.mu.Lock()
		unused += l.ahead
		l.ahead = 0
		next := l.next
		l.mu.Unlock()
		l = next
	}
	if unused > 0 {
		ls.queue.give(unused * gaugeOp)
	}
	return unused > 0
}

func (ls *lanes) link(l *lane) bool {
	for {
		head := ls.filled.Load()
		if head == &ls.closed {
			return false
		}
		l.next = head
		if ls.filled.CompareAndSwap(head, l) {
			l.linked = true
			return true
		}
	}
}

// collect takes all operations out, appending one run for each lane to runs, in the order in
// which lanes were first filled. Logic only.
func (ls *lanes) collect(runs [][]op) [][]op {
	for {
		head := ls.filled.Load()
		if head == nil || head == &ls.closed {
			return runs
		}
		ls.walk.Lock()
		taken := ls.filled.CompareAndSwap(head, nil)
		if taken {
			runs = ls.take(head, runs)
		}
		ls.walk.Unlock()
		if taken {
			return runs
		}
	}
}

// shut is the last collect: nothing is accepted after it. Logic only.
func (ls *lanes) shut(runs [][]op) [][]op {
	ls.walk.Lock()
	defer ls.walk.Unlock()
	head := ls.filled.Swap(&ls.closed)
	if head == &ls.closed {
		return runs
	}
	return ls.take(head, runs)
}

// take takes the operations out of lanes. Others only try for the lock that it holds, so that they may come by at a
// point.
func (ls *lanes) take(head *lane, runs [][]op) [][]op {
	var oldest *lane
	var unused uint64
	for l := head; l != nil; { // a linked lane's next is ours
		l.next, oldest, l = oldest, l, l.next
	}
	for l := oldest; l != nil; {
		next := l.next
		if fault.Enabled {
			fault.At(fault.Emptying)
		}
		l.mu.Lock()
		ops := l.ops
		l.ops, l.linked, l.next = ls.fresh(), false, nil
		unused += l.ahead
		l.ahead = 0
		l.mu.Unlock()
		if planted.Enabled && planted.Is(planted.LaneStarved) && next == nil && l != oldest {
			break
		}
		runs = append(runs, ops)
		l = next
	}
	if unused > 0 {
		ls.queue.give(unused * gaugeOp)
	}
	return runs
}

// fresh gives an empty slice, a used one if there is one.
func (ls *lanes) fresh() []op {
	n := len(ls.spare)
	if n == 0 {
		return nil
	}
	ops := ls.spare[n-1]
	ls.spare[n-1] = nil
	ls.spare = ls.spare[:n-1]
	return ops
}

const (
	spareSlices = 256     // kept for lanes to fill again
	spareOps    = 1 << 16 // a larger one is kept only while it is used well
)

// recycle takes a run back whose operations have all been taken out. Logic only.
func (ls *lanes) recycle(run []op) {
	if len(ls.spare) < spareSlices && (cap(run) <= spareOps || len(run) >= cap(run)/4) {
		clear(run)
		ls.spare = append(ls.spare, run[:0])
	}
}

// Producer is one goroutine's own lane to the engine: cheaper than Engine.Defer and
// Engine.Enqueue when many goroutines ask at once, and its operations apply in its order,
// before anything its goroutine asks for later by Spawn. It needs no closing.
type Producer struct {
	e    *Engine
	lane lane
}

// Producer gives a lane of one's own. Several goroutines may share it, at the price of its speed.
//
// Concurrency: any goroutine; never waits. Allocates: the lane.
func (e *Engine) Producer() *Producer { return &Producer{e: e} }

// Defer has fn run by Logic in the next window; see Engine.Defer.
//
// Errors: ErrQueueFull, ErrStopped.
// Concurrency: any goroutine; never waits. Allocates: no, but for growth.
func (p *Producer) Defer(fn func(*registry.Window) error) error {
	return p.e.accept(&p.lane, op{fn: fn})
}

// Enqueue has fn run by Logic in the next window and gives a ticket for its outcome.
//
// Errors: ErrQueueFull, ErrStopped.
// Concurrency: any goroutine; never waits. Allocates: the ticket.
func (p *Producer) Enqueue(fn func(*registry.Window) error) (*Ticket, error) {
	return p.e.enqueue(&p.lane, fn)
}

// Defer has fn run by Logic in the next window: as an operation of its own, undone if it
// fails. Its error goes to OnError, ErrStopped too if the engine is stopped before its turn.
// Operations of one goroutine run in its order; for many goroutines Producer is cheaper.
//
// Errors: ErrQueueFull, ErrStopped.
// Concurrency: any goroutine; never waits. Allocates: no, but for growth.
func (e *Engine) Defer(fn func(*registry.Window) error) error {
	return e.accept(&e.shared, op{fn: fn})
}

// Enqueue has fn run by Logic in the next window, as Defer does, and gives a ticket for its
// outcome. Do not wait for it inside a callback: that callback keeps Logic from running it.
//
// Errors: ErrQueueFull, ErrStopped.
// Concurrency: any goroutine; never waits. Allocates: the ticket.
func (e *Engine) Enqueue(fn func(*registry.Window) error) (*Ticket, error) {
	return e.enqueue(&e.shared, fn)
}

func (e *Engine) enqueue(l *lane, fn func(*registry.Window) error) (*Ticket, error) {
	t := new(Ticket)
	if err := e.accept(l, op{fn, t}); err != nil {
		return nil, err
	}
	return t, nil
}

func (e *Engine) accept(l *lane, o op) error {
	if o.fn == nil {
		return errNilCallback
	}
	if e.queue.stride > 1 && l.addPaid(o) {
		return nil
	}
	places := e.queue.takeAhead()
	if places == 0 && e.lanes.recall() {
		places = e.queue.takeAhead()
	}
	if places == 0 {
		return e.refusal()
	}
	if fault.Enabled {
		fault.At(fault.Accepted)
	}
	if !e.lanes.add(l, o, places-1) {
		e.queue.give(places * gaugeOp)
		return ErrStopped
	}
	return nil
}

// refusal says why the queue took nothing: a full queue of a stopped engine is stopped.
func (e *Engine) refusal() error {
	if e.stopAsked() {
		return ErrStopped
	}
	return ErrQueueFull
}
