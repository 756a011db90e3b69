package registry

import (
	"context"
	"errors"
	"runtime/trace"
	"time"

	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/internal/fault"
)

// deadlockCheck is how long a call waits for the registry before it asks whether it waits
// for its own goroutine. Asking costs microseconds, so nobody pays for it who is served.
const deadlockCheck = 10 * time.Millisecond

// acquire makes the caller the owner. It waits for a Step, another Update or a Stats to
// leave; while an engine runs there is nothing to wait for.
func (r *Registry) acquire() error {
	select {
	case r.owner <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(deadlockCheck)
	defer late.Stop()
	var due time.Time // when late is, for a simulation
	if fault.Enabled {
		due = time.Now().Add(deadlockCheck)
	}
	for {
		if r.running.Load() {
			if caller.Inside(r.id) {
				return ErrWouldDeadlock
			}
			return ErrRunning
		}
		owner, timer := r.owner, late.C
		if fault.Enabled {
			switch fault.Wait(fault.Owning, func() bool { return len(r.owner) == 0 }, func() bool { return !time.Now().Before(due) }) {
			case 0:
				timer = nil
			case 1:
				owner = nil
			}
		}
		select {
		case owner <- struct{}{}:
			return nil
		case <-timer: // look again, for an engine may have begun to run
			if caller.Inside(r.id) {
				return ErrWouldDeadlock
			}
			late.Reset(deadlockCheck)
			if fault.Enabled {
				due = time.Now().Add(deadlockCheck)
			}
		}
	}
}

func (r *Registry) release() { <-r.owner }

// Update runs fn with a window: the way to change structure while no engine runs. Between
// the steps of an engine it is an operation of the next window. What systems and observers
// have put off runs first, observers are told last.
//
// Errors: what fn returns, and then nothing of what it did has happened; ErrRunning while
// an engine runs; ErrWouldDeadlock inside a callback. When an observer or a deferred
// operation fails and no engine takes that, it is joined to the answer; fn's work stands.
// A panic of fn goes on through, after everything was taken back.
// Concurrency: any goroutine; waits for the one inside. Allocates: no.
func (r *Registry) Update(fn func(*Window) error) error {
	if fn == nil {
		panic("registry: Update without a function")
	}
	if err := r.acquire(); err != nil {
		return err
	}
	defer r.release()
	defer trace.StartRegion(context.Background(), "airlock.update").End()
	return r.update(fn)
}

// update is Update, of the owner.
func (r *Registry) update(fn func(*Window) error) error {
	done, more := false, 0 // what the record is told if it exits: see endedInside
	defer func() {
		if !done { // fn or an observer exited: the undoing is shown, observers hear next time
			for range more {
				r.note(groupUpdateEnd)
			}
			r.endFrame()
			r.publishObituaries()
			r.publish()
		} // what was reported joins the answer of the next Update, rather than be lost
	}()
	if r.delivering.open { // an observer exited the Update before: those behind it come first
		r.deliver()
		r.endFrame()
	}
	r.beginWriting(1, nil)
	if r.engine.Load() == nil {
		r.endHistory()
	}
	r.recorded.on = r.hist.on || r.recorded.kept.Load()
	r.note(groupUpdate)
	r.openWindow()
	more = endedInWishes
	r.runWishes()
	more = endedInside
	err := r.fromOutside(r.callback, fn)
	r.note(groupUpdateEnd)
	more = endedInEvents - 1
	r.closeWindow()
	r.deliver()
	r.endFrame()
	r.boundary()
	done = true
	if len(r.reported) > 0 {
		err = errors.Join(append([]error{err}, r.reported...)...)
		clear(r.reported)
		r.reported = r.reported[:0]
	}
	return err
}

// openWindow begins a window: subscriptions take effect, deaths from outside are seen.
func (r *Registry) openWindow() {
	r.admitObservers()
	if r.recorded.fed != nil {
		r.loseAgain()
		r.destroyedAgain()
		r.drainOutside() // what systems destroy in the way of others: the record has it, too
		return
	}
	if r.recorded.on && r.replaying() {
		r.destroyedAgain()
		return
	}
	r.drainOutside()
	r.drainReserved()
}

// closeWindow ends it: everybody may see the counters.
func (r *Registry) closeWindow() {
	r.publishObituaries()
	r.publish()
}

// boundary stands between phases.
func (r *Registry) boundary() {
	if !r.late() {
		r.drainOutside()
	}
	r.countNamed()
	r.publishObituaries()
	r.publish()
}
