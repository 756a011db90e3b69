package logic

import "github.com/airlock-ecs/airlock/internal/fault"

// batch is what Logic found waiting in one look: operations of the lanes, then goroutines at
// the door. Logic looks at the door first and at the lanes second, so an operation that a
// goroutine asked for before it queued is in the same batch or an earlier one, and is served
// before it.
type batch struct {
	runs    [][]op
	callers []*waiter
	run, op int // the next operation is runs[run][op]
	caller  int // the next goroutine is callers[caller]
}

// backlog is everything taken over and not served yet, oldest batch first. Only what is at
// the front is served, so nobody starves, however often the budget cuts. It belongs to Logic;
// see door for who changes a line while it is served.
type backlog struct {
	batches []batch // served from next on
	next    int
}

// add takes in what waits; nothing if nothing does.
func (b *backlog) add(d *door, ls *lanes) {
	if b.next == len(b.batches) { // the steady state: start over, keep the slices
		b.batches, b.next = b.batches[:0], 0
	}
	var n batch
	if i := len(b.batches); i < cap(b.batches) {
		n = b.batches[:i+1][i]
	}
	n.callers = d.collect(n.callers[:0])
	if fault.Enabled {
		fault.At(fault.Draining)
	}
	n.runs = ls.collect(n.runs[:0])
	n.run, n.op, n.caller = 0, 0, 0
	b.keep(n)
}

// keep puts n at the end. Even an empty one goes there and is cut off again, so that its
// slices serve the next frame.
func (b *backlog) keep(n batch) {
	b.batches = append(b.batches, n)
	if len(n.callers) == 0 && len(n.runs) == 0 {
		b.batches = b.batches[:len(b.batches)-1]
	}
}

// front is the oldest batch that has something left, nil if none has.
func (b *backlog) front() *batch {
	if b.next == len(b.batches) {
		return nil
	}
	return &b.batches[b.next]
}

// pop drops the front batch, which has been served.
func (b *backlog) pop() {
	b.next++
	if b.next >= 64 && b.next > len(b.batches)/2 { // a budget that always cuts must not grow it for ever
		left := copy(b.batches, b.batches[b.next:])
		clear(b.batches[left:])
		b.batches, b.next = b.batches[:left], 0
	}
}

// hasOps reports whether an operation is left, and gives emptied runs back to ls.
func (b *batch) hasOps(ls *lanes) bool {
	for b.run < len(b.runs) {
		run := b.runs[b.run]
		if b.op < len(run) {
			return true
		}
		ls.recycle(run)
		b.runs[b.run] = nil
		b.run, b.op = b.run+1, 0
	}
	return false
}

// take gives the next operation; hasOps was true. The place moves on first, so an operation
// that never returns is not run twice. What it was stays in the run until that is emptied: all are forgotten at once.
func (b *batch) take() op {
	b.op++
	return b.runs[b.run][b.op-1]
}
