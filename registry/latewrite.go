package registry

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/internal/check"
)

// ErrLateWrite reports a write through a pointer or a slice that was kept past its frame, in an ecsdebug
// build: see LateWriteError.
var ErrLateWrite = errors.New("registry: write through a pointer kept past its frame")

// LateWriteError is an ErrLateWrite that says what was written. OnError is told of it at the end of the
// frame in which it was noticed, once for each component and chunk. A component with pointers is not
// looked at, nor is a Cold one that was also written as it should be in that frame.
type LateWriteError struct {
	Class, Component string
	Place            uint32 // cache index of the cell; of several neighbours the lowest
	// Frame is the frame that the pointer was taken in; of a Cold component the last one in which it was
	// written as it should be. 0 if that is too long ago to tell.
	Frame uint64
}

// Error names the component, the class, the cell and the frame.
func (e *LateWriteError) Error() string {
	return fmt.Sprintf("%v: component %s of class %s at cache index %d, taken in frame %d", ErrLateWrite, e.Component, e.Class, e.Place, e.Frame)
}

// Unwrap is ErrLateWrite.
func (e *LateWriteError) Unwrap() error { return ErrLateWrite }

// noteLateWrites takes over what the store has found when it closed a frame. Owner only.
func (r *Registry) noteLateWrites() {
	if !check.Enabled {
		return
	}
	for _, w := range r.store.LateWrites() {
		r.frames.late = append(r.frames.late, &LateWriteError{
			Class: w.Archetype.ClassName(), Component: w.Component.Name, Place: w.Place, Frame: r.frames.numberOf(w.Frame),
		})
	}
}

// tellLateWrites reports them. What is told may end the goroutine: then the next call goes on. Owner only.
func (r *Registry) tellLateWrites() {
	for check.Enabled && len(r.frames.late) > 0 {
		err := r.frames.late[0]
		r.frames.late = r.frames.late[1:]
		r.report(err)
	}
}

// numberOf is the number of the frame in a storage frame, 0 if that is long ago. Owner only.
func (f *frames) numberOf(storage uint64) uint64 {
	for i := range f.recent {
		if n := &f.recent[i]; n.storage.Load() == storage {
			return n.frame.Load()
		}
	}
	if !f.apart.Load() {
		return storage
	}
	return 0
}
