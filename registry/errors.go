package registry

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/airlock-ecs/airlock/archetype"
)

// Errors a correct program can meet. On hot paths they are returned bare; elsewhere they
// are wrapped with what was asked, so test them with errors.Is.
var (
	// ErrStale reports a handle whose entity has been destroyed.
	ErrStale = errors.New("registry: stale handle")
	// ErrInvalidHandle reports a handle that was never issued here.
	ErrInvalidHandle = errors.New("registry: invalid handle")
	// ErrExhausted reports that the entity cap or an index space is used up.
	ErrExhausted = errors.New("registry: exhausted")
	// ErrExpired reports a token used after the callback or the frame it was made for.
	ErrExpired = errors.New("registry: token used after its callback or frame")
	// ErrDeterministic reports an operation that a deterministic registry refuses.
	ErrDeterministic = errors.New("registry: refused in a deterministic registry")
	// ErrNotSpawned reports a reserved handle that has no entity yet.
	ErrNotSpawned = errors.New("registry: reserved, not spawned yet")
	// ErrNotPublished reports that no published frame, or no published column, can be read.
	ErrNotPublished = errors.New("registry: not published")
	// ErrReadOnly reports what would write a published frame, or needs the frame that is being
	// written.
	ErrReadOnly = errors.New("registry: a published frame is never written")
	// ErrRunning reports an Update while an engine runs the registry, or a second engine.
	ErrRunning = errors.New("registry: an engine runs this registry")
	// ErrWouldDeadlock reports a call that waits for the goroutine that makes it.
	ErrWouldDeadlock = errors.New("registry: would deadlock: called from inside a callback of the same registry")
	// ErrTooOld reports a frame that is no longer kept.
	ErrTooOld = errors.New("registry: frame is no longer kept")
	// ErrNoComponent reports a living entity that lacks the component asked for.
	ErrNoComponent = errors.New("registry: entity has no such component")
	// ErrSplit reports Get of a split component, whose fields lie apart: there is no one
	// place a pointer could name. Use Peek and Set, or a query on its fields.
	ErrSplit = errors.New("registry: split component has no single address")
	// ErrGoexit stands for the panic value of a callback that called runtime.Goexit.
	ErrGoexit = errors.New("registry: callback called runtime.Goexit")

	// ErrNotRegistered reports a component type that this registry does not know.
	ErrNotRegistered = archetype.ErrNotRegistered
	// ErrAlreadyRegistered reports a component, class or name registered before.
	ErrAlreadyRegistered = archetype.ErrAlreadyRegistered
	// ErrPointerInTemporal reports a Temporal component that holds pointers.
	ErrPointerInTemporal = archetype.ErrPointerInTemporal
)

// PanicError is what a panic, or runtime.Goexit, in a callback becomes where it cannot
// continue in its caller.
type PanicError struct {
	Value any    // what was passed to panic; ErrGoexit after runtime.Goexit
	Stack []byte // the goroutine's stack at the panic; nil after runtime.Goexit
	Where string // the system, observer or operation
	Frame uint64 // the frame it happened in
}

// newPanicError makes one of a recovered value, nil for an exit, in the deferred function that
// recovered it. What Fork panics with has the value and the stack that are wanted already.
func newPanicError(where string, value any, frame uint64) *PanicError {
	err := &PanicError{Value: value, Where: where, Frame: frame}
	if inner, ok := value.(*PanicError); ok {
		err.Value, err.Stack = inner.Value, inner.Stack
	} else if value == nil {
		err.Value = ErrGoexit
	} else {
		err.Stack = debug.Stack()
	}
	return err
}

// Error says where it happened and what was thrown; the stack stays in Stack.
func (e *PanicError) Error() string {
	if e.Value == ErrGoexit {
		return fmt.Sprintf("registry: %s called runtime.Goexit in frame %d", e.Where, e.Frame)
	}
	return fmt.Sprintf("registry: %s panicked in frame %d: %v", e.Where, e.Frame, e.Value)
}

// Unwrap gives the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
