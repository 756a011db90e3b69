package logic

import (
	"time"

	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// runFrame runs one frame, or the rest of one, and measures it. It begins at e.last.
func (e *Engine) runFrame() {
	if !e.stepper.midFrame() {
		e.began, e.rested = e.last, false
	}
	e.stepper.step()
	e.watch.clear()
	e.last = e.clock.now()
	e.frameTime.add(e.last - e.began)
	e.frames.Inc()
	if took := e.last - e.began; took > e.frameLimit {
		e.cfg.Flight.Overran(e.FrameNumber(), "frame", time.Duration(took))
	}
}

// frameShell is the engine as its core sees it. Logic only.
type frameShell Engine

func (e *frameShell) systems() []systemChange { return e.registrations.take() }

func (e *frameShell) peers() []peerChange { return e.peerTable.take() }

// collect takes over what waits, and opens the budget.
func (e *frameShell) collect() {
	if fault.Enabled {
		fault.At(fault.Collecting)
	}
	e.backlog.add(&e.door, &e.lanes)
	if e.backlog.front() != nil {
		e.last = e.clock.now()
		e.door.budget.open(e.last, int64(e.cfg.WindowBudget))
	}
}

// serve lets what waits have the window, oldest first, until the budget is spent; at least
// one operation.
func (e *frameShell) serve() {
	if e.backlog.front() == nil {
		return
	}
	for b := e.backlog.front(); b != nil && e.serveOps(b) && e.serveCallers(b); b = e.backlog.front() {
		e.backlog.pop()
	}
	e.last = e.door.budget.now
}

// serving is the operation that runs. Logic's.
type serving struct {
	ticket *Ticket // nil: deferred
	batch  *batch
	open   bool   // it is not answered yet
	late   int64  // how long it ran, if it succeeded and overran the watchdog
	freed  uint64 // operations that were taken, and whose places are not given back yet

	next func() func(*registry.Window) error // frameShell.served, made once
}

// serveOps runs the operations of a batch; false if the budget ended it.
func (e *frameShell) serveOps(b *batch) bool {
	if !b.hasOps(&e.lanes) {
		return true
	}
	e.watch.begin(e.door.budget.now, queuedOp)
	e.serving.batch = b
	for fn := e.takeOp(); fn != nil; fn = e.takeOp() {
		e.run(fn)
	}
	e.serving.ticket, e.serving.batch = nil, nil
	return !b.hasOps(&e.lanes)
}

// takeOp takes the next operation of the batch; nil if none is left, or the budget is spent. Its place is given back
// before it runs if a clock was read just now, or with the next one for which one is: amid very short ones, of which
// none can keep a producer out for long.
func (e *frameShell) takeOp() func(*registry.Window) error {
	s, budget := &e.serving, &e.door.budget
	if !s.batch.hasOps(&e.lanes) || budget.spent() {
		return nil
	}
	o := s.batch.take()
	if s.ticket != o.ticket { // a load is cheaper than a store of a pointer
		s.ticket = o.ticket
	}
	s.open = true
	if s.freed++; budget.unread == 0 || e.queue.stride == 1 {
		e.free()
	}
	budget.served++
	if fault.Enabled {
		fault.At(fault.Serving)
	}
	return o.fn
}

// free gives places back of operations that were taken.
func (e *frameShell) free() {
	if n := e.serving.freed; n > 0 {
		e.serving.freed = 0
		e.queue.give(n * gaugeOp)
	}
}

// serveCallers lets the goroutines of a batch through; false if the budget ended it.
func (e *frameShell) serveCallers(b *batch) bool {
	for b.caller < len(b.callers) {
		budget := &e.door.budget
		if budget.spent() {
			return false
		}
		before, served := budget.now, budget.served
		e.door.line = b.callers[b.caller:]
		yielded := e.door.admit()
		b.caller = len(b.callers) - len(e.door.line)
		e.endedNow(callers)
		if budget.served > served {
			e.stalls.add(budget.now - before)
			e.rested = yielded // who was woken sits in the queue of this processor
		}
	}
	return true
}

// run runs the operation that was taken, and those behind it until one fails or overruns the watchdog, none is
// left, or the budget is spent. Each is answered exactly once, also when it ends its goroutine.
func (e *frameShell) run(fn func(*registry.Window) error) {
	s := &e.serving
	defer func() {
		if s.open { // it ended its goroutine
			s.open = false
			e.free()
			defer e.answer(s.ticket, &registry.PanicError{Value: registry.ErrGoexit, Where: queuedOp.String(), Frame: e.core.FrameNumber()})
			e.endedNow(queuedOp)
		}
	}()
	err := e.core.Operations(fn, s.next)
	e.free()
	if !s.open {
		return
	}
	s.open = false
	overran := s.late
	if err != nil {
		overran = e.door.ended(queuedOp)
	}
	if s.ticket != nil || err != nil {
		defer e.answer(s.ticket, err) // also when who logs the overrun ends this goroutine
	}
	if overran > 0 {
		(*Engine)(e).reportOverrun(queuedOp.String(), time.Duration(overran), "")
	}
}

// served answers the operation that runs, which has succeeded, and gives the next one to run; nil if there is
// none, or this one is to be reported first: who takes reports is not to be called from inside.
func (e *frameShell) served() func(*registry.Window) error {
	s := &e.serving
	if e.door.due() {
		if s.late = e.door.look(queuedOp); s.late > 0 {
			return nil
		}
	}
	s.open = false
	if s.ticket != nil {
		e.answer(s.ticket, nil)
	}
	return e.takeOp()
}

// endedNow is the door's ended with a reading of the clock in any case.
func (e *frameShell) endedNow(what activity) {
	e.door.budget.skip = 0
	if overran := e.door.ended(what); overran > 0 {
		(*Engine)(e).reportOverrun(what.String(), time.Duration(overran), "")
	}
}

func (e *frameShell) answer(t *Ticket, err error) {
	if fault.Enabled {
		fault.At(fault.Answering)
	}
	switch {
	case t != nil:
		t.finish(err)
		if planted.Enabled && planted.Is(planted.DoubleReply) {
			t.finish(ErrStopped)
		}
	case err != nil:
		(*Engine)(e).report(err)
	}
}

// entering begins with the last reading of the clock, which is near enough: nothing but the
// core's own work lies in between.
func (e *frameShell) entering(what activity) { e.watch.begin(e.last, what) }

// phaseBegins reads the clock for the first system; the next ones begin where one left.
func (e *frameShell) phaseBegins() { e.last = e.clock.now() }

func (e *frameShell) enteringSystem(s *System) { e.watch.beginSystem(e.last, s) }

// leftSystem reads the clock.
func (e *frameShell) leftSystem() {
	e.last = e.clock.now()
	if overran := e.watch.late(e.last); overran > 0 {
		(*Engine)(e).reportOverrun(e.watch.what(), time.Duration(overran), "")
	}
}

// exited takes what ended its goroutine inside the core.
func (e *frameShell) exited(err error) { (*Engine)(e).report(err) }

// compacted reads the clock, for what runs next is not to be blamed for it.
func (e *frameShell) compacted(err error) {
	if err != nil {
		defer (*Engine)(e).report(err) // also when who logs the overrun ends this goroutine
	}
	e.last = e.clock.now()
	if overran := e.watch.late(e.last); overran > 0 {
		(*Engine)(e).reportOverrun(compaction.String(), time.Duration(overran), "")
	}
	e.watch.clear()
}

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
