package logic

import (
	"context"
	"runtime/debug"
	"runtime/trace"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// Spawn runs fn with the window: on the calling goroutine, at the top of the next frame that
// has time for it, while Logic waits. Callers are served in the order in which they came; each
// frame serves at least one operation. fn is for any change of structure, not only for births.
//
// If fn returns an error, panics, or calls runtime.Goexit, everything it did is undone; the
// error is returned, and a panic goes on in the caller. A context that ends before fn's turn
// takes the caller out of the queue: fn never runs. A context that ends later does not stop fn.
//
// Errors: fn's; the context's; ErrQueueFull; ErrStopped; ErrWouldDeadlock inside another
// callback of this registry, noticed after some 10 to 110 ms of waiting.
// Concurrency: any goroutine; waits for its turn. Allocates: no.
func (e *Engine) Spawn(ctx context.Context, fn func(*registry.Window) error) error {
	if fn == nil {
		return errNilCallback
	}
	if trace.IsEnabled() {
		return e.spawnTraced(ctx, fn)
	}
	w, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.leave(w) // also on a panic or an exit, which nobody stops
	return e.core.Callback(fn)
}

// SpawnBatch runs many callbacks in one handshake, one after the other, each an operation of
// its own: what fails is undone alone, and the rest applies. The error at i is the outcome of
// fns[i], a *registry.PanicError if it panicked. A callback that calls runtime.Goexit ends its
// goroutine when the rest has run. The batch is not cut by the budget, and counts as one
// operation in the queue.
//
// Errors: as Spawn; what keeps the batch from running is the outcome of every callback.
// Concurrency: any goroutine; waits for its turn. Allocates: the outcomes.
func (e *Engine) SpawnBatch(ctx context.Context, fns ...func(*registry.Window) error) []error {
	errs := make([]error, len(fns))
	if len(fns) == 0 {
		return errs
	}
	if err := e.spawnBatch(ctx, fns, errs); err != nil {
		for i := range errs {
			errs[i] = err
		}
	}
	return errs
}

// spawnBatch fills in what comes of fns; an error is what keeps all of them from running.
func (e *Engine) spawnBatch(ctx context.Context, fns []func(*registry.Window) error, errs []error) error {
	if trace.IsEnabled() {
		return e.spawnBatchTraced(ctx, fns, errs)
	}
	w, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer e.leave(w)
	e.runBatch(fns, errs)
	return nil
}

// runBatch runs fns. One that ends the goroutine leaves the rest to the deferred call.
func (e *Engine) runBatch(fns []func(*registry.Window) error, errs []error) {
	next := 0
	defer func() {
		if next < len(fns) {
			e.runBatch(fns[next:], errs[next:])
		}
	}()
	for next < len(fns) {
		i := next
		next++
		if fns[i] == nil {
			errs[i] = errNilCallback
			continue
		}
		if planted.Enabled && planted.Is(planted.WrongReply) {
			i = len(fns) - next
		}
		errs[i] = e.core.CallbackRecover(fns[next-1])
		if planted.Enabled && planted.Is(planted.BatchStopsAtError) && errs[i] != nil {
			next = len(fns)
		}
		if next < len(fns) { // the watchdog's limit is for a callback, not for the batch
			now := e.clock.now()
			e.overran(e.watch.late(now))
			e.watch.begin(now, callers)
		}
	}
}

// Spawn is the one-entity form of Engine.Spawn: it queues for the window and spawns one
// entity of the class with the value v.
//
// Errors: as Engine.Spawn; those of Class.Spawn.
// Concurrency: any goroutine; waits for its turn. Allocates: the callback.
func Spawn[E any](ctx context.Context, e *Engine, c *registry.Class[E], v E) (handles.Local, error) {
	var h handles.Local
	err := e.Spawn(ctx, func(w *registry.Window) (err error) {
		h, err = c.Spawn(w, v)
		return err
	})
	if err != nil {
		return 0, err
	}
	return h, nil
}

// enter waits for the window on behalf of the calling goroutine, which must leave it.
func (e *Engine) enter(ctx context.Context) (*waiter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := e.door.enter(ctx)
	if err == ErrQueueFull && e.lanes.recall() {
		w, err = e.door.enter(ctx)
	}
	if err == ErrQueueFull {
		err = e.refusal()
	}
	if fault.Enabled && err == nil {
		fault.At(fault.Entering)
	}
	return w, err
}

func (e *Engine) leave(w *waiter) {
	if fault.Enabled {
		fault.At(fault.Returned)
	}
	e.overran(e.door.leave(w))
}

// overran reports a callback of the calling goroutine that took ran too long, if any; its
// stack still shows who called.
func (e *Engine) overran(ran int64) {
	if ran > 0 {
		stack := string(debug.Stack())
		e.core.Beside(func() { e.reportOverrun(callers.String(), time.Duration(ran), stack) }) // the window is another's by now
	}
}
