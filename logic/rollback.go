package logic

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/atomic"

	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// rewinder holds what the world wants of the past: the frame to go back to, and the inputs of frames.
type rewinder struct {
	any atomic.Bool // there is a frame to go back to: spares a steady frame the lock

	mu     sync.Mutex         // guards the rest; leaf lock
	asked  bool               // for frame
	frame  uint64             // to go back to
	pin    *registry.Snapshot // of it, so that it is kept until then; nil if it could not be pinned
	inputs []frameInputs      // by frame, ascending

	old *registry.Snapshot // Logic's: the pin of the frame it goes back to
}

// frameInputs is what the players have given for a frame. The lists are replaced, never changed: a frame may
// be reading them.
type frameInputs struct {
	frame uint64
	list  []registry.Input // by player
}

// mostAhead is how many frames ahead inputs are taken.
const mostAhead = 1 << 16

// now is the frame in progress, or the last one; while frames are simulated again the one they lead up to.
func (e *Engine) now() uint64 { return max(e.core.FrameNumber(), e.core.Present()) }

// Rollback has Logic go back to what the world was at the end of a frame, and simulate from there to the present
// again before its next frame: systems and observers run again, with the inputs known by then, and what came
// from outside is done again from its record. Handles of systems come out the same if nothing has changed;
// handles that callers from outside got stay theirs. Cold components are not rolled back, nor is anything
// outside the registry.
//
// Of several requests before a frame the deepest is served. Rollback to the present does nothing.
//
// Errors: ErrTooOld for a frame that is not kept: older than the ring is deep, less what readers hold, before
// a Reset, or without a temporal ring; registry.ErrNotPublished for one that has not run; ErrStopped. After an
// error nothing has changed.
// Concurrency: any goroutine; never waits. Allocates: no, as testing.AllocsPerRun counts, but for the error.
func (e *Engine) Rollback(frame uint64) error {
	e.rewinder.mu.Lock()
	err := e.askBackLocked(frame)
	e.rewinder.mu.Unlock()
	if err != nil {
		return within(err, "rollback to frame %d in frame %d", frame, e.now())
	}
	return nil
}

func (e *Engine) askBackLocked(frame uint64) error {
	w := &e.rewinder
	switch now := e.now(); {
	case e.stopAsked():
		return ErrStopped
	case frame == now:
		return nil
	case frame > now:
		return registry.ErrNotPublished
	case !e.stepper.ringed, frame < e.core.Oldest():
		return ErrTooOld
	case w.asked && w.frame <= frame:
		return nil
	}
	pin, err := e.reg.AcquireAt(frame)
	if err != nil && e.core.FrameNumber() >= e.core.Present() { // else it is being simulated again
		return ErrTooOld
	}
	w.pin.Release()
	w.asked, w.frame, w.pin = true, frame, pin
	w.any.Store(true)
	return nil
}

// Input gives a player's input for a frame, which its systems find by Frame.Input. For a frame that has begun
// it implies a rollback to the frame before, unless it is what is known already; for one to come it waits.
// The bytes are copied. A second input of a player for a frame replaces the first.
//
// Errors: ErrTooOld when the frame before is not kept; registry.ErrNotPublished for a frame more than 65536
// ahead; ErrStopped. After an error nothing has changed.
// Concurrency: any goroutine; never waits. Allocates: the copy.
func (e *Engine) Input(player uint8, frame uint64, data []byte) error {
	e.rewinder.mu.Lock()
	err := e.inputLocked(player, frame, data)
	e.rewinder.mu.Unlock()
	if err != nil {
		return within(err, "input of player %d for frame %d in frame %d", player, frame, e.now())
	}
	return nil
}

func (e *Engine) inputLocked(player uint8, frame uint64, data []byte) error {
	w := &e.rewinder
	now := e.now()
	switch {
	case e.stopAsked():
		return ErrStopped
	case frame > now+mostAhead:
		return registry.ErrNotPublished
	case frame == 0:
		return ErrTooOld
	}
	i, ok := slices.BinarySearchFunc(w.inputs, frame, func(f frameInputs, frame uint64) int { return cmp.Compare(f.frame, frame) })
	if ok {
		for _, in := range w.inputs[i].list {
			if in.Player == player && bytes.Equal(in.Data, data) {
				return nil
			}
		}
	}
	if frame <= now {
		if err := e.askBackLocked(frame - 1); err != nil {
			return err
		}
	}
	if !ok {
		w.inputs = slices.Insert(w.inputs, i, frameInputs{frame: frame})
	}
	list := slices.DeleteFunc(slices.Clone(w.inputs[i].list), func(in registry.Input) bool { return in.Player == player })
	list = append(list, registry.Input{Player: player, Data: append([]byte{}, data...)})
	slices.SortFunc(list, func(a, b registry.Input) int { return cmp.Compare(a.Player, b.Player) })
	w.inputs[i].list = list
	return nil
}

// goBack hands out the frame that was asked for.
func (e *frameShell) goBack() (uint64, bool) {
	w := &e.rewinder
	if !w.any.Load() {
		return 0, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.any.Store(false)
	w.asked = false
	w.old, w.pin = w.pin, nil
	return w.frame, true
}

// forget lets go of the frame that was asked for.
func (w *rewinder) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pin.Release()
	w.asked, w.pin = false, nil
	w.any.Store(false)
}

// wentBack counts a rollback, or reports why there is none.
func (e *frameShell) wentBack(err error) {
	e.rewinder.old.Release()
	e.rewinder.old = nil
	if err != nil {
		(*Engine)(e).report(fmt.Errorf("logic: rollback: %w", err))
		return
	}
	e.rollbacks.Inc()
}

// inputs are those of a frame. What no frame can ask for any more is forgotten.
func (e *frameShell) inputs(frame uint64) []registry.Input {
	w := &e.rewinder
	w.mu.Lock()
	defer w.mu.Unlock()
	oldest, n := frame, 0
	if e.stepper.ringed {
		oldest = min(e.core.Oldest(), frame)
	}
	if planted.Enabled && planted.Is(planted.InputMissed) {
		oldest = max(oldest, frame-min(frame, 2))
	}
	for n < len(w.inputs) && w.inputs[n].frame < oldest {
		n++
	}
	w.inputs = slices.Delete(w.inputs, 0, n)
	for _, f := range w.inputs {
		if f.frame == frame {
			return f.list
		}
	}
	return nil
}

// desynced stops the engine.
func (e *frameShell) desynced(err error) { (*Engine)(e).askStop(err) }
