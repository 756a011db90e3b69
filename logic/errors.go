package logic

import (
	"errors"

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
