package logic

import (
	"errors"
	"fmt"
	"strings"

	"github.com/airlock-ecs/airlock/registry"
)

var (
	// ErrStopped reports an operation that the engine will not run because it was stopped.
	ErrStopped = errors.New("logic: engine stopped")
	// ErrQueueFull reports that QueueSize operations, or an inbox's capacity of values, wait already.
	ErrQueueFull = errors.New("logic: queue full")

	// ErrWouldDeadlock reports a call that waits for the goroutine that makes it.
	ErrWouldDeadlock = registry.ErrWouldDeadlock
	// ErrTooOld reports a frame that is no longer kept.
	ErrTooOld = registry.ErrTooOld

	errNilCallback = errors.New("logic: nil callback")
)

// within says what err has come to. An error of this package begins with its name already, and stays in front.
func within(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if strings.HasPrefix(err.Error(), "logic: ") {
		return fmt.Errorf("%w: %s", err, what)
	}
	return fmt.Errorf("logic: %s: %w", what, err)
}
