package registry

import (
	"sort"
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
	dead   [obitsInBook]handles.Local
	// Deaths that follow each other mostly share what is said of them. The first spans of them are in use: stored by the owner
	// after the spans that it covers, and before the head that shows their deaths.
	spans atomic.Int32
	said  [obitsInBook]obitSpan
}

// obitSpan is what is said of the deaths in a book from one on, up to the next span.
type obitSpan struct {
	from  int32
	frame uint64
	cause *string
}

// write notes deaths of one frame and one cause, from one on in the book. Owner only.
func (b *obitBook) write(at int, hs []handles.Local, frame uint64, cause *string) {
	copy(b.dead[at:], hs)
	n := b.spans.Load()
	if n > 0 && b.said[n-1].frame == frame && b.said[n-1].cause == cause {
		return
	}
	b.said[n] = obitSpan{from: int32(at), frame: frame, cause: cause}
	b.spans.Store(n + 1)
}

// of is what was said of a death that was shown.
func (b *obitBook) of(at int) Obituary {
	n := int(b.spans.Load())
	i := sort.Search(n, func(i int) bool { return b.said[i].from > int32(at) }) - 1
	return Obituary{Frame: b.said[i].frame, Cause: *b.said[i].cause}
}

// write notes deaths of one frame and one cause. They are shown when the caller stores the head that it gives. Owner only.
func (o *obituaries) write(head uint64, hs []handles.Local, frame uint64, cause *string) uint64 {
	for len(hs) > 0 {
		at := int(head % obitsInBook)
		n := min(len(hs), obitsInBook-at)
		o.book(head).write(at, hs[:n], frame, cause)
		hs, head = hs[n:], head+uint64(n)
	}
	return head
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
		if at := int((n - 1) % obitsInBook); b.dead[at] == h {
			return b.of(at), true
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
	b.spans.Store(0)
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
		end, cause := i+1, r.graves[i].cause()
		for end < len(r.dying) && r.graves[end].cause() == cause {
			end++
		}
		head = o.write(head, r.dying[i:end], frame, r.causes[cause])
		i = end
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
