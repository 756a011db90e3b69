package stress

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// Outcome is what became of an operation.
type Outcome uint8

// The outcomes. All but Applied and Cancelled are refusals.
const (
	Applied   Outcome = iota
	Cancelled         // its context ended before its turn
	Failed            // its callback returned an error, and was undone
	Panicked          // its callback panicked, or ended its goroutine, and was undone
	Stale             // its target was dead
	Exhausted         // there was no room
	QueueFull
	Stopped
	Abandoned // nobody has waited for it: it may have run or not
	Lost      // any other answer
	outcomes
)

// String is the name of the outcome, as reports have it.
func (o Outcome) String() string {
	return [...]string{"applied", "cancelled", "failed", "panicked", "stale", "exhausted", "queue full", "stopped", "abandoned", "lost"}[min(o, Lost)]
}

// runs says how often the callback of such an operation has run: at least, and at most.
func (o Outcome) runs() (least, most int) {
	switch o {
	case Applied, Failed, Panicked, Stale, Exhausted:
		return 1, 1
	case Abandoned:
		return 0, 1
	}
	return 0, 0
}

// errPlanned is what callbacks fail with that are to fail.
var errPlanned = errors.New("stress: a callback that was to fail")

// OutcomeOf is the outcome that an answer of the engine stands for.
//
// Concurrency: any goroutine. Allocates: no.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Applied
	}
	var panicked *registry.PanicError // is on the heap
	switch {
	case errors.As(err, &panicked):
		return Panicked
	case errors.Is(err, errPlanned):
		return Failed
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Cancelled
	case errors.Is(err, registry.ErrStale):
		return Stale
	case errors.Is(err, registry.ErrExhausted):
		return Exhausted
	case errors.Is(err, logic.ErrQueueFull):
		return QueueFull
	case errors.Is(err, logic.ErrStopped):
		return Stopped
	}
	return Lost
}

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant string `json:"invariant"`
	Detail    string `json:"detail"`
}

// The invariants, as violations name them.
const (
	OneOutcome   = "every operation has exactly one outcome"
	Conservation = "nothing is lost and nothing comes from nowhere"
	Order        = "operations of one producer apply in its order"
	NoAlias      = "a handle names one entity, and for ever"
	SafeReuse    = "no index is used again before its window has closed"
	Structure    = "the structure is whole"
	NoTrace      = "a failed callback leaves no trace"
	WholeFrames  = "a published frame is whole and never written"
	Caps         = "caps are respected"
	NothingStays = "nothing is left after Stop"
	Determinism  = "the same frames give the same state"
	Linear       = "there is an order that explains all answers"
	Fairness     = "nobody starves"
	NoFailure    = "the engine goes on"
)

// Ledger has a book for each producer and the violations that anybody has found.
//
// Every operation has a number in its producer's book. What is noted about it goes to a buffer that belongs to one
// goroutine at a time, with no lock and no counter that goroutines share: its answer to the producer's own, its run
// to one that belongs to the holder of the window. Settle compares the two.
type Ledger struct {
	mu         sync.Mutex // guards the rest; leaf lock, not taken on the way of an operation that goes well
	books      []*Book
	violations []Violation
	found      map[string]int // by invariant; the first mostOfAKind of each are kept
	more       int
}

const mostOfAKind = 8

// Violate notes that an invariant did not hold.
//
// Concurrency: any goroutine. Allocates: yes.
func (l *Ledger) Violate(invariant, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == nil {
		l.found = map[string]int{}
	}
	if l.found[invariant]++; l.found[invariant] > mostOfAKind {
		l.more++
		return
	}
	l.violations = append(l.violations, Violation{invariant, fmt.Sprintf(format, args...)})
}

// Violations are the first violations of each invariant, and how many there were in all.
//
// Concurrency: any goroutine. Allocates: the copy.
func (l *Ledger) Violations() ([]Violation, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Violation(nil), l.violations...), len(l.violations) + l.more
}

// take adds the violations of a part of a run, which had a ledger and a seed of its own.
func (l *Ledger) take(part *Ledger, seed uint64) {
	violations, n := part.Violations()
	for _, v := range violations {
		l.Violate(v.Invariant, "seed %d: %s", seed, v.Detail)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.more += n - len(violations)
}

// Book opens a book for a producer.
//
// Concurrency: any goroutine. Allocates: the book.
func (l *Ledger) Book() *Book {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := &Book{l: l, id: len(l.books)}
	l.books = append(l.books, b)
	return b
}

// Totals is what all books come to.
type Totals struct {
	Submitted          uint64
	By                 [outcomes]uint64
	Spawned, Destroyed uint64
}

// Total settles all books, and adds them up.
//
// Concurrency: one goroutine, when all producers and the engine have ended. Allocates: for violations.
func (l *Ledger) Total() (t Totals) {
	l.mu.Lock()
	books := l.books
	l.mu.Unlock()
	for _, b := range books {
		b.Settle()
		sum := uint64(0)
		t.Submitted += b.next
		for o, n := range b.by {
			t.By[o] += n
			sum += n
		}
		if sum != b.next {
			l.Violate(Conservation, "producer %d submitted %d operations, and was given %d outcomes", b.id, b.next, sum)
		}
		if b.by[Lost] > 0 {
			l.Violate(OneOutcome, "producer %d had %d answers that are no outcome, the first: %v", b.id, b.by[Lost], b.lost)
		}
		t.Spawned += b.Spawned
		t.Destroyed += b.Destroyed
	}
	return t
}

// Book is one producer's part of a ledger.
type Book struct {
	l  *Ledger
	id int

	// The producer's.
	next, settled      uint64 // operations with numbers below settled are done with
	answers            []answer
	by                 [outcomes]uint64
	lost               error  // the first answer that is no outcome
	Spawned, Destroyed uint64 // entities, by its own operations

	// The window holder's. The producer reads them when none of its operations is under way.
	runs []uint64
	last uint64 // one past the number of the last operation that ran

	answered, ran []uint8 // Settle's marks, used again
}

type answer struct {
	n uint64
	o Outcome
}

// settleAt is how many answers a book gathers before it is worth settling.
const settleAt = 1 << 13

// Submit gives the number of the next operation. It is to be submitted before the next one is.
//
// Concurrency: the producer. Allocates: no.
func (b *Book) Submit() uint64 {
	b.next++
	return b.next - 1
}

// Ran notes that the callback of an operation runs.
//
// Concurrency: the holder of the window, in that callback. Allocates: for growth.
func (b *Book) Ran(n uint64) {
	if n < b.last {
		b.l.Violate(Order, "operation %d of producer %d ran after number %d: out of order, or twice", n, b.id, b.last-1)
	}
	b.last = max(b.last, n+1)
	b.runs = append(b.runs, n)
}

// Answer notes the outcome of an operation.
//
// Concurrency: the producer. Allocates: for growth.
func (b *Book) Answer(n uint64, err error) Outcome {
	o := OutcomeOf(err)
	if o == Lost && b.lost == nil {
		b.lost = err
	}
	b.note(n, o)
	return o
}

// Abandon notes that nobody will wait for an operation.
//
// Concurrency: the producer. Allocates: for growth.
func (b *Book) Abandon(n uint64) { b.note(n, Abandoned) }

func (b *Book) note(n uint64, o Outcome) { b.answers = append(b.answers, answer{n, o}) }

// Rest settles the book if that is worth it. No operation of the producer may be under way.
//
// Concurrency: the producer. Allocates: for violations.
func (b *Book) Rest() {
	if len(b.answers) >= settleAt {
		b.Settle()
	}
}

// grown makes room for all that a book gathers before it is settled, so that nothing grows on the way.
func (b *Book) grown() *Book {
	b.answers, b.runs = make([]answer, 0, 2*settleAt), make([]uint64, 0, 2*settleAt)
	b.answered, b.ran = make([]uint8, 2*settleAt), make([]uint8, 2*settleAt)
	return b
}

// zeroed is n zeroes, in the memory of marks if they fit.
func zeroed(marks []uint8, n uint64) []uint8 {
	if uint64(cap(marks)) < n {
		return make([]uint8, n)
	}
	marks = marks[:n]
	clear(marks)
	return marks
}

// Settle compares what ran with what was answered: each operation since the last time has one answer, and ran as
// often as that says. No operation of the producer may be under way, but for abandoned ones when the engine has
// stopped.
//
// Concurrency: the producer. Allocates: the marks.
func (b *Book) Settle() {
	count := b.next - b.settled
	answered, ran := zeroed(b.answered, count), zeroed(b.ran, count)
	b.answered, b.ran = answered, ran
	for _, n := range b.runs {
		if n < b.settled || n >= b.next {
			b.l.Violate(OneOutcome, "operation %d of producer %d ran after its answer", n, b.id)
			continue
		}
		ran[n-b.settled] = min(ran[n-b.settled]+1, 3)
	}
	for _, a := range b.answers {
		if a.n < b.settled || a.n >= b.next {
			b.l.Violate(OneOutcome, "operation %d of producer %d was answered again: %v", a.n, b.id, a.o)
			continue
		}
		i := a.n - b.settled
		b.by[a.o]++
		if answered[i]++; answered[i] > 1 {
			b.l.Violate(OneOutcome, "operation %d of producer %d was answered %d times, now %v", a.n, b.id, answered[i], a.o)
		}
		if least, most := a.o.runs(); int(ran[i]) < least || int(ran[i]) > most {
			b.l.Violate(OneOutcome, "operation %d of producer %d ran %d times, and its outcome is: %v", a.n, b.id, ran[i], a.o)
		}
	}
	for i, n := range answered {
		if n == 0 {
			b.l.Violate(OneOutcome, "operation %d of producer %d has no outcome; it ran %d times", b.settled+uint64(i), b.id, ran[i])
		}
	}
	b.settled, b.answers, b.runs = b.next, b.answers[:0], b.runs[:0]
}
