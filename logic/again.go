package logic

import (
	"errors"
	"fmt"
	"slices"

	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// systemChanges is what a frame's window has done to the lists of systems, and what they were before.
type systemChanges struct {
	frame   uint64
	changes []systemChange
	before  [phaseCount][]*System
}

// keepChanges notes what a window is about to do, for as long as its frame may be simulated again.
func (s *stepper) keepChanges(frame uint64, changes []systemChange) {
	if !s.ringed {
		return
	}
	oldest := s.core.Oldest()
	s.past = slices.DeleteFunc(s.past, func(c systemChanges) bool { return c.frame < oldest })
	s.past = append(s.past, systemChanges{frame, slices.Clone(changes), s.phases})
}

// changesOf is what a frame's window has done, if that is kept.
func (s *stepper) changesOf(frame uint64) []systemChange {
	for i := range s.past {
		if s.past[i].frame == frame {
			return s.past[i].changes
		}
	}
	return nil
}

// goBack goes back to the frame that was asked for, if one was.
func (s *stepper) goBack() {
	if frame, ok := s.shell.goBack(); ok {
		var err error
		defer func() { s.shell.wentBack(err) }() // also when an observer exits: the pin of the frame is given back
		err = s.goBackTo(frame)
	}
}

func (s *stepper) goBackTo(frame uint64) error {
	returned := false
	s.shell.entering(observers) // who is told what is undone
	defer func() {
		if !returned { // an observer has exited: the registry has gone back, and all others are told
			s.wentBack(frame)
			s.shell.exited(&registry.PanicError{Value: registry.ErrGoexit, Where: observers.String(), Frame: s.core.FrameNumber()})
		}
	}()
	err := s.core.GoBack(frame)
	returned = true
	if err == nil {
		s.wentBack(frame)
	}
	return err
}

// wentBack goes on from an earlier frame.
func (s *stepper) wentBack(frame uint64) {
	s.again = true
	s.runs++
	for i := range s.past {
		if s.past[i].frame > frame {
			s.phases = s.past[i].before
			break
		}
	}
}

// caughtUp ends the simulation of the past when the present is reached, and says whether it is.
func (s *stepper) caughtUp() bool {
	if s.core.FrameNumber() < s.core.Present() {
		return false
	}
	s.again = false
	s.core.Revive()
	return true
}

// ErrDesync reports a frame that came out otherwise when Config.SyncTest had it simulated again.
var ErrDesync = errors.New("logic: a frame came out otherwise when it was simulated again")

// DesyncError is an ErrDesync that says where: some system does not depend on the state and the inputs of its
// frame alone.
type DesyncError struct {
	Frame      uint64
	Difference snapshot.Difference
}

// Error names the frame and the first difference.
func (e *DesyncError) Error() string {
	return fmt.Sprintf("logic: frame %d came out otherwise when it was simulated again: %v", e.Frame, e.Difference)
}

// Unwrap is ErrDesync.
func (e *DesyncError) Unwrap() error { return ErrDesync }

// syncTest is the simulation of the last frames once more after every frame, see Config.SyncTest.
type syncTest struct {
	frames uint64 // how many
	on     bool
	first  []*registry.Snapshot // what the frames were the first time, oldest first
	inputs [][]registry.Input   // of frame n at n % len: those that it was last simulated with
	err    *DesyncError
}

// inputsOf are the inputs of a frame that begins. In a sync test they are those of the time before, whatever has come
// since: a late input has its own rollback, which comes before the next frame.
func (s *stepper) inputsOf(frame uint64) []registry.Input {
	t := &s.synced
	if t.frames == 0 {
		return s.shell.inputs(frame)
	}
	if t.inputs == nil {
		t.inputs = make([][]registry.Input, t.frames)
	}
	had := &t.inputs[frame%t.frames]
	if !t.on {
		*had = s.shell.inputs(frame)
	}
	return *had
}

// beginSync goes back over the last frames; false if there are not enough yet, or it is not asked for.
func (s *stepper) beginSync() bool {
	t := &s.synced
	now := s.core.Present()
	if t.frames == 0 || now <= t.frames || !s.core.Kept(now-t.frames) {
		return false
	}
	t.err = nil
	for frame := now - t.frames + 1; frame <= now; frame++ {
		snap, err := s.core.Registry().AcquireAt(frame)
		if err != nil { // readers hold too much
			t.release()
			return false
		}
		t.first = append(t.first, snap)
	}
	t.on = true
	s.core.Rehearse(true)
	if err := s.goBackTo(now - t.frames); err != nil {
		t.on = false
		s.core.Rehearse(false)
		t.release()
	}
	return t.on
}

// compareSync compares the frame that has just been simulated again with the first time.
func (s *stepper) compareSync() {
	t := &s.synced
	if !t.on || t.err != nil {
		return
	}
	now := s.core.FrameNumber()
	second, err := s.core.Registry().AcquireAt(now)
	if err != nil {
		return
	}
	defer second.Release()
	for _, first := range t.first {
		if first.FrameNumber() != now || planted.Enabled && planted.Is(planted.SyncTestSkipsLast) && now == s.core.Present() {
			continue
		}
		if d, differs := snapshot.DiffTemporal(first, second); differs {
			t.err = &DesyncError{now, d}
		}
	}
}

func (t *syncTest) release() {
	for _, snap := range t.first {
		snap.Release()
	}
	clear(t.first)
	t.first = t.first[:0]
}

// endSync ends it when the present is reached. What differs stops the engine.
func (s *stepper) endSync() {
	t := &s.synced
	t.on = false
	s.core.Rehearse(false)
	t.release()
	if t.err != nil {
		s.failures = append(s.failures, t.err)
		s.shell.desynced(t.err)
	}
}
