package pool

import (
	"fmt"

	"github.com/airlock-ecs/airlock/internal/check"
)

// Handle guards an instance that was taken: with it the instance is reached, and given back once. It
// is a plain value, to be copied and compared; all copies end together. The zero Handle guards
// nothing.
//
// Guards and pointers from Value keep the instance from being lost. A copy kept after the release is
// void, but still counts as such a pointer.
type Handle[T any] struct {
	// Four fields, since the compiler keeps no larger struct in registers: a fifth made a take and a
	// release half as slow again. The pool is found through the place.
	place      *objectPlace[T]
	value      *T
	generation uint64
	life       objectLife
}

// Value is the instance. The pointer is good until the guard is released; then the instance belongs
// to the next taker, which a pointer can't tell.
//
// Errors: ErrReleased when the guard or a copy of it was released, ErrForeign for the zero Handle.
// Concurrency: any goroutine; what it does with the instance is its own business. Allocates: no.
func (h Handle[T]) Value() (*T, error) {
	if h.good() {
		return h.value, nil
	}
	return nil, h.badError()
}

// Ptr is Value where a released guard is a bug.
//
// Panics: where Value has an error.
// Concurrency: any goroutine. Allocates: no.
func (h Handle[T]) Ptr() *T {
	if !h.good() {
		h.panicBad()
	}
	return h.value
}

// Release resets the instance and gives it back. It is reset once, by the one call that succeeds,
// and it can be taken by others when that returns.
//
// Errors: ErrReleased, as *ReleasedError, when the guard or a copy of it was released before, also
// when the reset is still at work; ErrForeign for the zero Handle.
// Panics: as the reset does; the place is free all the same, and the instance is not used again.
// Concurrency: any goroutine; of several calls one succeeds. Allocates: no.
func (h Handle[T]) Release() error {
	s := h.place
	if s == nil {
		return fmt.Errorf("%w: release of the zero guard", ErrForeign)
	}
	if !s.generation.CompareAndSwap(h.generation, h.generation+1) {
		return h.releasedError()
	}
	if check.Enabled {
		h.life.end()
	}
	s.pool.putBack(s, h.value)
	return nil
}

// good says whether the guard has been taken and not yet been released.
func (h Handle[T]) good() bool {
	return h.place != nil && h.place.generation.Load() == h.generation
}

// badError says why a guard is not good. Who polls for that gets a bare error, except in a debug build.
func (h Handle[T]) badError() error {
	switch {
	case h.place == nil:
		return ErrForeign
	case check.Enabled:
		return h.releasedError()
	}
	return ErrReleased
}

// panicBad stands apart so that Ptr is inlined.
func (h Handle[T]) panicBad() { panic(fmt.Errorf("pool: Ptr: %w", h.badError())) }

// releasedError says what is known of the end of this guard.
func (h Handle[T]) releasedError() error {
	return &ReleasedError{Pool: h.place.pool.name, Released: h.life.released()}
}
