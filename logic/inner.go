package logic

import (
	"context"
	"runtime"
	"time"

	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/internal/fault"
)

// work is what the inner goroutine does. A constant and not a func value, so that a Step
// allocates nothing.
type work uint8

const (
	workStep   work = iota // one frame
	workRun                // frames until the engine stops, then workFinish
	workFinish             // answer what is left
)

// supervise has an inner goroutine do what, and returns when that is done. User code may end
// the goroutine by runtime.Goexit: then another one goes on where it stopped. The calling
// goroutine is the watchdog meanwhile, and asks for a stop when ctx ends.
//
// Everything Logic owns passes by the start of a goroutine and by innerEnd.
func (e *Engine) supervise(ctx context.Context, what work) {
	cancelled := ctx.Done()
	if e.tick == nil {
		e.tick = time.NewTimer(e.period(deadlockWait))
	} else {
		e.tick.Reset(e.period(deadlockWait))
	}
	e.work = what
	e.door.watched.Store(true)
	var due int64 // when the next tick is, for a simulation
	if fault.Enabled {
		due = e.clock.now() + int64(e.period(deadlockWait))
	}
	e.startInner()
	for {
		ended, tick, over := e.innerEnd, e.tick.C, cancelled
		if fault.Enabled {
			done := func() bool { return len(e.innerEnd) > 0 }
			asked := func() bool { return over != nil && ctx.Err() != nil }
			lasted := func() bool { return e.clock.now() >= due }
			switch fault.Wait(fault.Watching, done, asked, lasted) {
			case 0:
				tick, over = nil, nil
			case 1:
				ended, tick = nil, nil
			case 2:
				ended, over = nil, nil
			}
		}
		select {
		case done := <-ended:
			e.watch.clear()
			if done {
				e.door.watched.Store(false)
				e.tick.Stop()
				return
			}
			e.startInner()
		case <-tick:
			next := e.lookAround()
			if fault.Enabled {
				due = e.clock.now() + int64(next)
			}
			e.tick.Reset(next)
		case <-over:
			cancelled = nil
			e.askStop(ctx.Err())
		}
	}
}

// startInner starts the inner goroutine.
func (e *Engine) startInner() {
	if fault.Enabled {
		fault.Fork(fault.Inner)
	}
	go e.inner()
}

// runInner is the inner goroutine.
func (e *Engine) runInner() {
	if fault.Enabled {
		defer fault.End(fault.Begin())
	}
	done := false
	defer func() { e.innerEnd <- done }()
	switch e.work {
	case workStep:
		e.stepOnce()
	case workRun:
		e.loop()
	case workFinish:
		e.finish()
	}
	done = true
}

// restWatch is how often the supervisor looks while nothing runs.
const restWatch = 100 * time.Millisecond

// period is how often the supervisor looks: in time to see a callback before it overruns.
func (e *Engine) period(longest time.Duration) time.Duration {
	return min(longest, max(e.cfg.Watchdog/4, time.Millisecond))
}

// lookAround is the watchdog: it reports a callback that takes too long and wakes goroutines
// that may wait for themselves. It answers when to look again.
func (e *Engine) lookAround() time.Duration {
	what, ran, report := e.watch.look(e.clock.now())
	if what == "" {
		return e.period(restWatch)
	}
	if ran >= int64(e.period(deadlockWait)) {
		e.door.hurry.Store(true)
	}
	if ran >= int64(deadlockWait) {
		e.door.nudge()
	}
	if report {
		// A log handler that calls Spawn waits for a Logic that may wait for this goroutine:
		// it has to notice by itself.
		e.door.watched.Store(false)
		stack := caller.Stacks(e.id)
		e.watch.keepStacks(stack)
		told := make(chan struct{})
		go func() { // not here: a handler may end its goroutine, and with this one the engine would never end
			defer close(told)
			e.core.Beside(func() { e.reportOverrun(what, time.Duration(ran), stack) })
		}()
		<-told
		e.door.watched.Store(true)
	}
	next := e.period(deadlockWait)
	if left := e.cfg.Watchdog - time.Duration(ran); left >= 0 {
		next = min(next, left+1) // to the point, so that what lasts a little too long is seen, too
	}
	return next
}

// rest lets other goroutines run, once a frame: those that Logic woke sit in the queue of its
// own processor.
func (e *Engine) rest() {
	if !e.rested {
		e.rested = true
		runtime.Gosched()
		e.last = e.clock.now()
	}
}

// sleepFor waits; false if the engine is to stop.
func (e *Engine) sleepFor(wait int64) bool {
	if e.sleep == nil {
		e.sleep = time.NewTimer(time.Duration(wait))
	} else {
		e.sleep.Reset(time.Duration(wait))
	}
	timer, stop := e.sleep.C, e.stop
	if fault.Enabled {
		due := e.clock.now() + wait
		switch fault.Wait(fault.Pacing, e.stopAsked, func() bool { return e.clock.now() >= due }) {
		case 0:
			timer = nil
		case 1:
			stop = nil
		}
	}
	select {
	case <-timer:
		e.last = e.clock.now()
		return true
	case <-stop:
		e.sleep.Stop()
		return false
	}
}
