package logic

import (
	"context"
	"runtime/trace"

	"github.com/airlock-ecs/airlock/registry"
)

// What a trace of runtime/trace shows of an engine (go tool trace, User-defined regions and tasks).
const (
	traceFrame     = "airlock.frame"     // region: all of a frame, and its number as a log of the category "frame"
	traceWindow    = "airlock.window"    // region: the window is open, lent to callers or not
	tracePhase     = "airlock.phase."    // region: the systems of a phase; the name of the phase follows
	traceSystem    = "airlock.system."   // region: one system; its name follows
	tracePublish   = "airlock.publish"   // region: the frame is published
	traceHandshake = "airlock.handshake" // task: a call of Spawn or SpawnBatch
	traceWait      = "airlock.wait"      // region of a handshake: until the window is granted
	traceCallback  = "airlock.callback"  // region of a handshake: with the window
)

// regions are the open regions of Logic, the outer ones first; a nil one is not open. With nobody who
// traces each costs a frame a load. A region is ended by the goroutine that began it: what user code leaves open
// by ending its goroutine ends there, as a trace sees it, and is forgotten here.
type regions struct{ frame, part, system *trace.Region }

// phaseRegions are the names of the phases' regions.
var phaseRegions = [phaseCount]string{tracePhase + "PrePhysics", tracePhase + "Physics", tracePhase + "PostPhysics", tracePhase + "Late"}

// beginRegion opens a region of Logic.
func beginRegion(region **trace.Region, name string) {
	if trace.IsEnabled() {
		*region = trace.StartRegion(context.Background(), name)
	}
}

// endRegion ends a region, if it was opened.
func endRegion(region **trace.Region) {
	if *region != nil {
		(*region).End()
		*region = nil
	}
}

// beginFrame opens the region of a frame, and says which one it is.
func (r *regions) beginFrame(frame uint64) {
	if trace.IsEnabled() {
		r.frame = trace.StartRegion(context.Background(), traceFrame)
		trace.Logf(context.Background(), "frame", "%d", frame)
	}
}

// spawnTraced is Spawn as a task of a trace.
func (e *Engine) spawnTraced(ctx context.Context, fn func(*registry.Window) error) error {
	ctx, task := trace.NewTask(ctx, traceHandshake)
	defer task.End()
	w, err := e.enterTraced(ctx)
	if err != nil {
		return err
	}
	defer e.leave(w)
	defer trace.StartRegion(ctx, traceCallback).End()
	return e.core.Callback(fn)
}

// spawnBatchTraced is the same of SpawnBatch.
func (e *Engine) spawnBatchTraced(ctx context.Context, fns []func(*registry.Window) error, errs []error) error {
	ctx, task := trace.NewTask(ctx, traceHandshake)
	defer task.End()
	w, err := e.enterTraced(ctx)
	if err != nil {
		return err
	}
	defer e.leave(w)
	defer trace.StartRegion(ctx, traceCallback).End()
	e.runBatch(fns, errs)
	return nil
}

func (e *Engine) enterTraced(ctx context.Context) (*waiter, error) {
	defer trace.StartRegion(ctx, traceWait).End()
	return e.enter(ctx)
}
