package logic

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// mode is what the engine is doing. It goes from idle to stepping and back, from idle to
// running and on to ending, and ends once.
type mode uint8

const (
	modeIdle mode = iota
	modeStepping
	modeRunning
	modeEnding // somebody answers what is left
	modeEnded
)

// Run is the Logic loop: Config.Rate frames a second until Stop, the end of ctx, or, without
// an OnError, a panic of a system. A late engine catches up by at most 5 frames and counts
// the rest in Stats.DroppedFrames. When Run returns, the engine has ended.
//
// It returns nil after Stop, the context's error after its end, the panics as
// *registry.PanicError.
//
// Errors: ErrStopped after Stop; registry.ErrRunning during another Run or Step;
// ErrWouldDeadlock inside a callback.
// Concurrency: any goroutine. Allocates: not in a steady frame.
func (e *Engine) Run(ctx context.Context) error {
	over := ctx.Err() // here, so that a nil context panics before anything has begun
	if err := e.begin(modeRunning); err != nil {
		return err
	}
	if err := e.core.Enter(true); err != nil {
		e.release()
		return fmt.Errorf("logic: run: %w", err)
	}
	if over != nil {
		e.askStop(over)
	}
	e.last = e.clock.now()
	e.schedule = newSchedule(e.cfg.Rate, e.last)
	e.supervise(ctx, workRun)
	e.core.Leave()
	e.conclude()
	return join(append(e.fatal, e.cause)...) // nobody writes them any more
}

// Step runs one frame: for tests, and for engines embedded in someone's own loop. It returns
// the panics of the frame's systems as *registry.PanicError, which Config.OnError, if there is one, has been told
// of by then: who reports both reports them twice. What else OnError hears of is not returned.
//
// Errors: ErrStopped after Stop; registry.ErrRunning during Run or another Step; ErrDesync when Config.SyncTest finds a
// frame that differs; ErrWouldDeadlock inside a callback.
// Concurrency: any goroutine. Allocates: not in a steady frame.
func (e *Engine) Step() error {
	if err := e.begin(modeStepping); err != nil {
		return err
	}
	if err := e.core.Enter(false); err != nil {
		e.release()
		return fmt.Errorf("logic: step: %w", err)
	}
	if fault.Enabled {
		fault.Yield(fault.Owned)
	}
	e.supervise(context.Background(), workStep)
	err := join(e.stepper.failures...)
	e.core.Leave()
	e.release()
	return err
}

// Stop ends the engine and waits for that: the frame in progress completes, Run returns,
// whoever still waits is answered with ErrStopped, deferred operations by OnError, and the
// registry is free for another engine. A second call is harmless. Inside a callback Stop
// returns at once and takes effect after the frame. The error is always nil.
//
// Concurrency: any goroutine. Allocates: no.
func (e *Engine) Stop() error {
	e.askStop(nil)
	select {
	case <-e.ended:
		return nil
	default:
	}
	if e.inside() {
		return nil
	}
	if fault.Enabled {
		fault.Wait(fault.Stopped, e.over)
	}
	<-e.ended
	return nil
}

// Shutdown is Stop with a bound. If ctx ends first, the engine goes on stopping, and the
// error, the context's, says whose callback keeps Logic, with its stack.
//
// Errors: the context's; ErrWouldDeadlock inside a callback, where it does nothing.
// Concurrency: any goroutine. Allocates: no.
func (e *Engine) Shutdown(ctx context.Context) error {
	if e.inside() {
		return fmt.Errorf("logic: shutdown: %w", ErrWouldDeadlock)
	}
	e.askStop(nil)
	select {
	case <-e.ended:
		return nil
	default:
	}
	ended, late := e.ended, ctx.Done()
	if fault.Enabled {
		switch fault.Wait(fault.Shut, e.over, func() bool { return ctx.Err() != nil }) {
		case 0:
			late = nil
		case 1:
			ended = nil
		}
	}
	select {
	case <-ended:
		return nil
	case <-late:
	}
	_, what := e.watch.current() // and not look: an overrun is the watchdog's to tell
	if what == "" {
		return fmt.Errorf("logic: shutdown: %w", ctx.Err())
	}
	return fmt.Errorf("logic: shutdown: %w: waiting for %s:\n%s", ctx.Err(), what, caller.Stacks(e.id))
}

// join is errors.Join, but a lone error stays what it is.
func join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// over reports whether the engine has ended: what a simulation asks before those who wait for that run on.
func (e *Engine) over() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// stopAsked reports whether the engine stops or has stopped.
func (e *Engine) stopAsked() bool { return e.stopping.Load() }

// begin takes an idle engine into a mode.
func (e *Engine) begin(m mode) error {
	e.mu.Lock()
	idle := e.mode == modeIdle
	if idle {
		e.mode = m
	}
	e.mu.Unlock()
	switch {
	case idle:
		return nil
	case e.stopAsked():
		return ErrStopped
	case e.inside():
		return ErrWouldDeadlock
	}
	return fmt.Errorf("logic: %w", registry.ErrRunning)
}

// release makes the engine idle again, or ends it if a stop was asked for meanwhile.
func (e *Engine) release() {
	e.mu.Lock()
	end := e.stopAsked()
	if end {
		e.mode = modeEnding
	} else {
		e.mode = modeIdle
	}
	e.mu.Unlock()
	if end {
		e.windUp()
	}
}

// askStop lets nobody in any more and answers everybody at the door; the rest is done by
// whoever runs Logic, or here if nobody does. The first cause stands.
func (e *Engine) askStop(cause error) {
	e.mu.Lock()
	first := !e.stopAsked()
	idle := e.mode == modeIdle
	if first {
		e.cause = cause
		e.stopping.Store(true)
		close(e.stop)
	}
	if idle {
		e.mode = modeEnding
	}
	e.mu.Unlock()
	if first {
		if fault.Enabled {
			fault.At(fault.Stopping)
		}
		e.door.shut()
	}
	if idle {
		if fault.Enabled {
			fault.Fork(fault.Ending)
		}
		go e.windUpAlone() // not here: OnError may take its time, and Shutdown has a bound
	}
}

// windUpAlone is windUp on a goroutine of its own.
func (e *Engine) windUpAlone() {
	if fault.Enabled {
		defer fault.End(fault.Begin())
	}
	e.windUp()
}

// windUp ends an engine that has no Run. An Update that goes on comes first: OnError is told by the registry's owner, one
// thing at a time.
func (e *Engine) windUp() {
	entered := e.core.Enter(false) == nil // else this is inside of what owns it
	e.supervise(context.Background(), workFinish)
	if entered {
		e.core.Leave()
	}
	e.conclude()
}

// conclude gives the registry back. Everything is answered by now.
func (e *Engine) conclude() {
	if fault.Enabled {
		fault.At(fault.Concluding)
	}
	e.core.Detach()
	e.rewinder.forget()
	if f := e.cfg.Flight; f != nil {
		f.End()
	}
	e.mu.Lock()
	e.mode = modeEnded
	e.mu.Unlock()
	close(e.ended)
}

// stepOnce is one Step on the inner goroutine.
func (e *Engine) stepOnce() {
	if !e.stepper.midFrame() {
		e.last = e.clock.now()
	}
	e.runFrame()
}

// loop is Run on the inner goroutine.
func (e *Engine) loop() {
	for e.stepper.midFrame() || e.pace() {
		e.runFrame()
	}
	e.finish()
}

// pace waits until the next frame is due; false when the engine is to stop.
func (e *Engine) pace() bool {
	if e.stopAsked() {
		return false
	}
	wait, dropped := e.schedule.due(e.last)
	if dropped > 0 {
		e.overdue.Add(dropped)
	}
	if wait <= 0 {
		e.rest() // a Logic that never sleeps must not starve who shares its processor
	} else if !e.sleepFor(wait) {
		return false
	}
	return !e.pause.on.Load() || e.hold()
}

// finish answers the operations that will not run. When user code exits in the middle, the
// next inner goroutine goes on.
func (e *Engine) finish() {
	if fault.Enabled {
		fault.At(fault.Finishing)
	}
	e.door.shut() // once more: who stops may not have come so far
	late := e.lanes.shut(nil)
	for b := e.backlog.front(); b != nil; b = e.backlog.front() {
		for b.hasOps(&e.lanes) {
			e.dropped = append(e.dropped, b.take())
		}
		e.backlog.pop()
	}
	for _, run := range late {
		e.dropped = append(e.dropped, run...)
	}
	for len(e.dropped) > 0 {
		o := e.dropped[0]
		e.dropped[0] = op{}
		e.dropped = e.dropped[1:]
		e.queue.give(gaugeOp)
		switch {
		case planted.Enabled && planted.Is(planted.StoppedTicketForgotten) && o.ticket != nil:
		case o.ticket != nil:
			o.ticket.finish(ErrStopped)
		case e.cfg.OnError != nil:
			e.report(fmt.Errorf("%w: a deferred operation did not run", ErrStopped))
		default:
			e.unheard++
		}
	}
	if n := e.unheard; n > 0 {
		e.unheard = 0
		e.report(fmt.Errorf("%w: %d deferred operations did not run", ErrStopped, n))
	}
	e.closeJournal()
}
