package pool

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/registry"
)

// Errors a correct program can meet. Test them with errors.Is: most are wrapped with the name of
// the pool and what was asked of it.
var (
	// ErrReleased reports a guard that has been given back, or a copy of one.
	ErrReleased = errors.New("pool: already given back")
	// ErrForeign reports a guard that this pool never gave out: another pool's, or the zero
	// guard, which is nobody's.
	ErrForeign = errors.New("pool: not of this pool")

	// ErrExhausted reports a pool in which all is in use and that may not grow.
	ErrExhausted = registry.ErrExhausted
)

// ReleasedError is an ErrReleased that says whose guard it was.
type ReleasedError struct {
	Pool     string // the name of the pool
	Released string // where it was released, in a debug build; else ""
}

// Error says it in a line.
//
// Concurrency: any goroutine. Allocates: yes.
func (e *ReleasedError) Error() string {
	if e.Released == "" {
		return fmt.Sprintf("pool %s: %v", e.Pool, ErrReleased)
	}
	return fmt.Sprintf("pool %s: %v, by %s", e.Pool, ErrReleased, e.Released)
}

// Unwrap is ErrReleased.
//
// Concurrency: any goroutine. Allocates: no.
func (e *ReleasedError) Unwrap() error { return ErrReleased }
