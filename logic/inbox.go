package logic

import (
	"errors"
	"fmt"
	"sync"

	"github.com/airlock-ecs/airlock/registry"
)

// Inbox is the way for values of other goroutines to reach systems, client input say: many
// senders, drained in a frame. It is bounded and never waits.
type Inbox[T any] struct {
	e        *Engine
	capacity int

	mu     sync.Mutex // guards the rest; leaf lock, held for an append or a swap
	values []T        // sent and not drained, oldest first; len <= capacity
	out    [][]T      // drained in frame; their readers may still look at them
	frame  uint64
	spare  [][]T // emptied slices to fill again
}

// NewInbox makes an inbox of an engine that holds up to capacity values.
//
// Errors: a nil engine; a capacity below 1.
// Concurrency: any goroutine; never waits. Allocates: the inbox; it grows up to its capacity with use.
func NewInbox[T any](e *Engine, capacity int) (*Inbox[T], error) {
	if e == nil {
		return nil, errors.New("logic: inbox of a nil engine")
	}
	if capacity < 1 {
		return nil, fmt.Errorf("logic: inbox of capacity %d", capacity)
	}
	return &Inbox[T]{e: e, capacity: capacity}, nil
}

// Send puts v into the inbox.
//
// Errors: ErrQueueFull; ErrStopped after the engine's Stop.
// Concurrency: any goroutine; never waits. Allocates: no, but for growth.
func (b *Inbox[T]) Send(v T) error {
	if b.e.stopAsked() {
		return ErrStopped
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.values) >= b.capacity {
		return ErrQueueFull
	}
	b.values = append(b.values, v)
	return nil
}

// Drain takes out all values, in order of arrival. The slice is valid until the frame ends;
// then its memory takes new values.
//
// Panics: registry.ErrExpired after the frame.
// Concurrency: Logic and its workers, inside the frame. Allocates: no, but for growth.
func (b *Inbox[T]) Drain(f *registry.Frame) []T {
	now := f.FrameNumber()
	b.mu.Lock()
	defer b.mu.Unlock()
	if now != b.frame {
		for i, used := range b.out {
			clear(used) // what they refer to is free now
			b.spare = append(b.spare, used[:0])
			b.out[i] = nil
		}
		b.out, b.frame = b.out[:0], now
	}
	if len(b.values) == 0 {
		return nil
	}
	drained := b.values
	b.values = nil
	if n := len(b.spare); n > 0 {
		b.values = b.spare[n-1]
		b.spare[n-1] = nil
		b.spare = b.spare[:n-1]
	}
	b.out = append(b.out, drained)
	return drained
}

// Len is how many values wait.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (b *Inbox[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.values)
}
