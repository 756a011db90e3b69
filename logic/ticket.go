package logic

import (
	"sync"

	"github.com/airlock-ecs/airlock/internal/planted"
)

// Ticket is the outcome to come of an enqueued operation.
type Ticket struct {
	mu       sync.Mutex    // guards the rest; leaf lock
	done     chan struct{} // made when someone asks, so that a ticket nobody waits for stays small
	err      error
	finished bool
}

// ready is what Done of a finished ticket gives: always ready. One for all of them, since to make and close a channel takes
// longer than to run a short operation.
var ready = closedChan()

func closedChan() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Done is closed when the operation has run, or was answered with ErrStopped.
//
// Concurrency: any goroutine; never waits. Allocates: on the first call before the answer.
func (t *Ticket) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		if t.finished {
			t.done = ready
		} else {
			t.done = make(chan struct{})
		}
	}
	return t.done
}

// Err is what the operation returned, a *registry.PanicError if it panicked, or ErrStopped
// if the engine was stopped before its turn. Nil before Done.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (t *Ticket) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// finish answers the ticket; once.
func (t *Ticket) finish(err error) {
	if !(planted.Enabled && planted.Is(planted.TicketUnlocked)) {
		t.mu.Lock()
		defer t.mu.Unlock()
	}
	t.err, t.finished = err, true
	if t.done != nil {
		close(t.done)
	}
}
