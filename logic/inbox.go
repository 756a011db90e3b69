package logic

import (
	"errors"
	"fmt"
	"sync"

	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// Inbox is the way for values of other goroutines to reach systems, client input say: many
// senders, drained in a frame. It is bounded and never waits.
type Inbox[T any] struct {
	e        *Engine
	capacity int

	mu     sync.Mutex   // guards the rest; leaf lock, held for an append or a swap
	values []T          // sent and not drained, oldest first; len <= capacity
	frames []drained[T] // what was drained, by frame, oldest first: of the last one, or of those that may be simulated again
	spare  [][]T        // emptied slices to fill again
	outs   [][][]T      // and lists of them
}

// drained is what a frame has drained. Its readers may still look at it.
type drained[T any] struct {
	frame uint64
	out   [][]T
	run   uint64 // for a frame that is simulated again: stepper.runs
	next  int    // and of out
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
	if len(b.values) >= b.capacity && !(planted.Enabled && planted.Is(planted.InboxOneTooMany) && len(b.values) == b.capacity) {
		return ErrQueueFull
	}
	b.values = append(b.values, v)
	return nil
}

// Drain takes out all values, in order of arrival. The slice is valid until the frame ends;
// then its memory takes new values. To be read only: a frame that is simulated again drains what it drained the
// first time.
//
// Panics: registry.ErrExpired after the frame.
// Concurrency: Logic and its workers, inside the frame. Allocates: no, but for growth.
func (b *Inbox[T]) Drain(f *registry.Frame) []T {
	now := f.FrameNumber()
	b.mu.Lock()
	defer b.mu.Unlock()
	again := now <= b.e.core.Present()
	d := b.of(now, again)
	if d == nil {
		return nil // it drained nothing the first time
	}
	if again {
		if runs := b.e.stepper.runs; d.run != runs {
			d.run, d.next = runs, 0
		}
		if d.next == len(d.out) {
			return nil
		}
		d.next++
		return d.out[d.next-1]
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
	d.out = append(d.out, drained)
	return drained
}

// of is what a frame has drained; nil if it is simulated again and has drained nothing. For a new frame it forgets
// the frames that will not be simulated again.
func (b *Inbox[T]) of(frame uint64, again bool) *drained[T] {
	for i := range b.frames {
		d := &b.frames[i]
		if d.frame == frame {
			return d
		}
	}
	if again {
		return nil
	}
	oldest := frame
	if b.e.stepper.ringed {
		oldest = b.e.core.Oldest()
	}
	kept := b.frames[:0]
	for _, d := range b.frames {
		if d.frame >= oldest {
			kept = append(kept, d)
			continue
		}
		for i, used := range d.out {
			clear(used) // what they refer to is free now
			b.spare = append(b.spare, used[:0])
			d.out[i] = nil
		}
		b.outs = append(b.outs, d.out[:0])
	}
	clear(b.frames[len(kept):])
	b.frames = kept
	d := drained[T]{frame: frame}
	if n := len(b.outs); n > 0 {
		d.out, b.outs = b.outs[n-1], b.outs[:n-1]
	}
	b.frames = append(b.frames, d)
	return &b.frames[len(b.frames)-1]
}

// Len is how many values wait.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (b *Inbox[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.values)
}
