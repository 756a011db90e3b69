package registry

import (
	"sync/atomic"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// Obituary says in which frame an entity died, and of what: the system's name, what
// Window.Named said, or "" for a death from outside.
type Obituary struct {
	Frame uint64
	Cause string
}

const (
	obitsKept   = 4096 // deaths remembered
	obitBits    = 10
	obitsInBook = 1 << obitBits
	obitBooks   = obitsKept/obitsInBook + 1 // one more: the newest is not full
	mostCauses  = 1024                      // cause strings kept for sharing
)

// obituaries remembers the last deaths for any goroutine. The owner writes books of plain
// entries, so that a death costs no locked operation, and then raises head, which is the
// happens-before edge for readers: they read only below head.
//
// A book is written again when its deaths are forgotten. The owner first unlinks it and
// then looks whether a reader is inside; one that enters later cannot find it. If there is
// one, the garbage collector gets the book.
type obituaries struct {
	head    atomic.Uint64 // number of deaths written
	readers atomic.Int64
	books   [obitBooks]atomic.Pointer[obitBook] // book n at n modulo their count
}

type obitBook struct {
	number uint64 // written before the book is linked
	deaths [obitsInBook]obit
}

type obit struct {
	h     handles.Local
	frame uint64
	cause *string
}

// Obituary says when and of what a dead entity died, while that is remembered: for the
// last 4096 deaths up to the last boundary. False for the living and the forgotten.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Registry) Obituary(h handles.Local) (Obituary, bool) { return r.obits.find(h) }

func (o *obituaries) find(h handles.Local) (Obituary, bool) {
	o.readers.Add(1)
	defer o.readers.Add(-1)
	head := o.head.Load()
	for n := head; n > 0 && head-n < obitsKept && h != 0; n-- {
		number := (n - 1) >> obitBits
		b := o.books[number%obitBooks].Load()
		if b == nil || b.number != number {
			break // given up meanwhile, and so are all before it
		}
		if d := &b.deaths[(n-1)%obitsInBook]; d.h == h {
			return Obituary{Frame: d.frame, Cause: *d.cause}, true
		}
	}
	return Obituary{}, false
}

// book gives the book that death number n belongs to. Owner only.
func (o *obituaries) book(n uint64) *obitBook {
	number := n >> obitBits
	place := &o.books[number%obitBooks]
	b := place.Load()
	if b != nil && b.number == number {
		return b
	}
	place.Store(nil)
	if b == nil || o.readers.Load() != 0 {
		b = new(obitBook)
	}
	b.number = number
	place.Store(b)
	return b
}

// publishObituaries writes the deaths since the last boundary down. Owner only.
func (r *Registry) publishObituaries() {
	r.publishLeft()
	from := max(r.obitMark, len(r.dying)-obitsKept)
	if planted.Enabled && planted.Is(planted.ObituaryLost) {
		from = max(from, min(1, len(r.dying)-1))
	}
	r.obitMark = len(r.dying)
	if from >= len(r.dying) {
		return
	}
	o, frame := &r.obits, r.frame.Load()
	head := o.head.Load()
	if planted.Enabled && planted.Is(planted.ObituaryShownEarly) {
		o.book(head)
		o.head.Store(head + 1)
	}
	for i := from; i < len(r.dying); {
		b := o.book(head)
		page := b.deaths[head%obitsInBook:]
		n := min(len(page), len(r.dying)-i)
		for k := range page[:n] {
			page[k] = obit{h: r.dying[i+k], frame: frame, cause: r.causes[r.graves[i+k].cause()]}
		}
		i += n
		head += uint64(n)
	}
	o.head.Store(head)
}

// setCause says what deaths are of from now on. Owner only.
func (r *Registry) setCause(cause string) {
	if r.causeNow != cause {
		r.causeNow, r.causeAt = cause, 0
	}
}

// causeIndex gives the place of the present cause in causes. Deaths that follow each other
// share it, and equal causes share one string, so that a death allocates nothing.
func (r *Registry) causeIndex() uint32 {
	if r.causeAt == 0 {
		r.addCause()
	}
	return r.causeAt - 1
}

func (r *Registry) addCause() {
	s, ok := r.causeIntern[r.causeNow]
	if !ok {
		if r.causeIntern == nil || len(r.causeIntern) >= mostCauses {
			r.causeIntern = map[string]*string{}
		}
		cause := r.causeNow
		s = &cause
		r.causeIntern[cause] = s
	}
	r.causes = append(r.causes, s)
	r.causeAt = uint32(len(r.causes))
}
