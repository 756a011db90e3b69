package registry

import (
	"sync/atomic"

	"github.com/airlock-ecs/airlock/handles"
)

// Obituary says in which frame an entity died, and of what: the system's name, what
// Window.Named said, or "" for a death from outside.
type Obituary struct {
	Frame uint64
	Cause string
}

const obitsKept = 4096 // deaths remembered; a power of two

// obituaries remembers the last deaths for any goroutine. The owner appends; readers scan
// backward. A death costs one atomic store, and deaths of one frame and cause share a
// chapter.
//
// Readers need no lock: the owner raises limit before it overwrites the places of deaths
// that are obitsKept older, and head after the new ones are whole. A reader that has found
// its death and its chapter looks at limit last: if the place was not given up by then,
// what it read before was that death's.
type obituaries struct {
	limit atomic.Uint64 // number of deaths that are written or being written
	head  atomic.Uint64 // number of deaths that are whole
	pages atomic.Pointer[obitPages]
}

type obitPages struct {
	handle   [obitsKept]atomic.Uint64 // by number of the death
	chapter  [obitsKept]obitChapter   // by number of the chapter
	chapters atomic.Uint64
}

// obitChapter is about the deaths from number first on, up to the next chapter's.
type obitChapter struct {
	first atomic.Uint64
	frame atomic.Uint64
	cause atomic.Pointer[string]
}

// Obituary says when and of what a dead entity died, while that is remembered: for the
// last 4096 deaths up to the last boundary. False for the living and the forgotten.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Registry) Obituary(h handles.Local) (Obituary, bool) { return r.obits.find(h) }

func (o *obituaries) find(h handles.Local) (Obituary, bool) {
	p := o.pages.Load()
	if p == nil || h == 0 {
		return Obituary{}, false
	}
	head := o.head.Load()
	for n := head; n > 0 && head-n < obitsKept; n-- {
		if handles.Local(p.handle[(n-1)%obitsKept].Load()) == h {
			return o.read(p, n-1)
		}
	}
	return Obituary{}, false
}

// read gives the chapter of a death, or false when it was given up meanwhile.
func (o *obituaries) read(p *obitPages, number uint64) (Obituary, bool) {
	chapters := p.chapters.Load()
	for c := chapters; c > 0 && chapters-c < obitsKept; c-- {
		ch := &p.chapter[(c-1)%obitsKept]
		if ch.first.Load() > number {
			continue
		}
		ob := Obituary{Frame: ch.frame.Load()}
		if s := ch.cause.Load(); s != nil {
			ob.Cause = *s
		}
		return ob, o.limit.Load() <= number+obitsKept
	}
	return Obituary{}, false
}

// publishObituaries writes the deaths since the last boundary down. Owner only.
func (r *Registry) publishObituaries() {
	from := max(r.obitMark, len(r.dying)-obitsKept)
	r.obitMark = len(r.dying)
	if from >= len(r.dying) {
		return
	}
	list, graves := r.dying[from:], r.graves[from:]
	o := &r.obits
	p := o.pages.Load()
	if p == nil {
		p = new(obitPages)
		o.pages.Store(p)
	}
	head := o.head.Load()
	o.limit.Store(head + uint64(len(list)))
	frame := r.frame.Load()
	for i, h := range list {
		if i == 0 || graves[i].cause() != graves[i-1].cause() {
			n := p.chapters.Load()
			ch := &p.chapter[n%obitsKept]
			ch.first.Store(^uint64(0)) // nobody's while it changes
			ch.frame.Store(frame)
			ch.cause.Store(r.causes[graves[i].cause()])
			ch.first.Store(head + uint64(i))
			p.chapters.Store(n + 1)
		}
		p.handle[(head+uint64(i))%obitsKept].Store(uint64(h))
	}
	o.head.Store(head + uint64(len(list)))
}

// mostCauses bounds the cause strings kept for sharing.
const mostCauses = 1024

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
