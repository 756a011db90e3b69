package logic

import (
	"time"

	"github.com/airlock-ecs/airlock/registry"
)

// runFrame runs one frame, or the rest of one, and measures it. It begins at e.last.
func (e *Engine) runFrame() {
	if !e.stepper.midFrame() {
		e.began, e.rested = e.last, false
	}
	e.stepper.step()
	e.last = e.clock.now()
	e.frameTime.add(e.last - e.began)
	e.frames.Inc()
}

// frameShell is the engine as its core sees it. Logic only.
type frameShell Engine

func (e *frameShell) systems() []systemChange { return e.registrations.take() }

func (e *frameShell) peers() []peerChange { return e.peerTable.take() }

// collect takes over what waits, and opens the budget.
func (e *frameShell) collect() {
	e.backlog.add(&e.door, &e.lanes)
	if e.backlog.front() != nil {
		e.last = e.clock.now()
		e.door.until = e.last + int64(e.cfg.WindowBudget)
		e.door.served = 0
	}
}

// serve lets what waits have the window, oldest first, until the budget is spent; at least
// one operation.
func (e *frameShell) serve() {
	if e.backlog.front() == nil {
		return
	}
	e.last = e.clock.now()
	for b := e.backlog.front(); b != nil && e.serveOps(b) && e.serveCallers(b); b = e.backlog.front() {
		e.backlog.pop()
	}
}

// spent reports whether the budget is used up.
func (e *frameShell) spent() bool { return e.door.served > 0 && e.last >= e.door.until }

// serveOps runs the operations of a batch; false if the budget ended it.
func (e *frameShell) serveOps(b *batch) bool {
	for b.hasOps(&e.lanes) {
		if e.spent() {
			return false
		}
		o := b.take()
		e.queue.give(gaugeOp)
		e.door.served++
		e.run(o)
	}
	return true
}

// serveCallers lets the goroutines of a batch through; false if the budget ended it.
func (e *frameShell) serveCallers(b *batch) bool {
	for b.caller < len(b.callers) {
		if e.spent() {
			return false
		}
		before, served := e.last, e.door.served
		e.door.line = b.callers[b.caller:]
		yielded := e.door.admit(before)
		b.caller = len(b.callers) - len(e.door.line)
		e.left()
		if e.door.served > served {
			e.stalls.add(e.last - before)
			e.rested = yielded // who was woken sits in the queue of this processor
		}
	}
	return true
}

var opName = "deferred operation"

// run runs an operation and answers it, exactly once, also when it ends its goroutine.
func (e *frameShell) run(o op) {
	returned := false
	e.watch.begin(e.last, &opName)
	defer func() {
		if !returned {
			e.left()
			e.answer(o, &registry.PanicError{Value: registry.ErrGoexit, Where: opName, Frame: e.core.FrameNumber()})
		}
	}()
	err := e.core.CallbackRecover(o.fn)
	returned = true
	e.left()
	e.answer(o, err)
}

func (e *frameShell) answer(o op, err error) {
	switch {
	case o.ticket != nil:
		o.ticket.finish(err)
	case err != nil:
		(*Engine)(e).report(err)
	}
}

// phaseBegins reads the clock for the first system; the next ones begin where one left.
func (e *frameShell) phaseBegins() { e.last = e.clock.now() }

// entering, left and leftUntimed frame user code. The last reading of the clock is near enough
// for the beginning: nothing but the core's own work lies in between.
func (e *frameShell) entering(what *string) { e.watch.begin(e.last, what) }

func (e *frameShell) leftUntimed() { e.watch.clear() }

func (e *frameShell) left() {
	e.last = e.clock.now()
	overran := e.watch.late(e.last)
	e.watch.clear()
	if overran > 0 {
		what := e.watch.what.Load()
		(*Engine)(e).reportOverrun(*what, time.Duration(overran), "")
	}
}

// exited takes what ended its goroutine inside the core.
func (e *frameShell) exited(err error) { (*Engine)(e).report(err) }

// failed takes the panic of a system. Without an OnError it ends Run; Step returns it anyway.
func (e *frameShell) failed(err error) {
	x := (*Engine)(e)
	if e.cfg.OnError != nil {
		x.report(err)
		return
	}
	x.mu.Lock()
	running := x.mode == modeRunning
	if running {
		x.fatal = append(x.fatal, err)
	}
	x.mu.Unlock()
	if running {
		x.askStop(nil)
	}
}
