package sim

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
)

// Name is a place that needs no type of its own.
type Name string

// String is the name.
func (n Name) String() string { return string(n) }

// actor is a goroutine that takes part.
type actor struct {
	id     int
	name   string
	at     fmt.Stringer
	ready  []func() bool // what it waits for: one of these. Nil when it waits for the token alone
	resume chan struct{} // capacity 1: the token
}

// can says whether the actor could run.
func (a *actor) can() bool {
	if a.ready == nil {
		return true
	}
	for _, ready := range a.ready {
		if ready() {
			return true
		}
	}
	return false
}

// Sim is one run.
//
// All of it belongs to the actor that has the token, and passes with it, by the channel of the next; but
// for what is marked.
type Sim struct {
	strategy Strategy
	limit    int

	alive   []*actor // in the order of their birth
	current *actor
	able    []*actor // those that can run, used again
	ids     []int    // theirs, likewise
	born    int
	steps   int
	hash    uint64
	trace   [traced]event // the last ones, round and round

	mu        sync.Mutex // guards unclaimed; leaf lock
	unclaimed *actor     // announced by Fork, and not begun yet

	over    atomic.Bool // a failure ends the actors; anybody
	failure *Failure
	gone    chan struct{} // an actor has been ended
	done    chan struct{} // closed when nobody is left
}

const traced = 256

// event is a decision: who went on, and from where.
type event struct {
	who *actor
	at  fmt.Stringer
}

// New makes a run whose decisions are s's. One with more than limit of them fails.
//
// Concurrency: any goroutine. Allocates: the run.
func New(s Strategy, limit int) *Sim {
	return &Sim{strategy: s, limit: limit, hash: 14695981039346656037, gone: make(chan struct{}), done: make(chan struct{})}
}

// Go starts an actor. Names need not differ.
//
// Concurrency: before Run, or the actor that has the token. Allocates: the actor.
func (s *Sim) Go(name string, fn func()) {
	a := s.birth(name, Name("start"))
	go func() {
		defer func() { // an exit ends an actor like a return
			s.End(a.id, recover())
		}()
		<-a.resume
		s.resumed()
		fn()
	}()
}

func (s *Sim) birth(name string, at fmt.Stringer) *actor {
	s.born++
	a := &actor{id: s.born, name: name, at: at, resume: make(chan struct{}, 1)}
	s.alive = append(s.alive, a)
	return a
}

// Run runs the actors, and returns when all have ended: nil, or a *Failure.
//
// Concurrency: one goroutine, once; not an actor. Allocates: for a failure.
func (s *Sim) Run() error {
	if len(s.alive) > 0 {
		a := s.pick()
		s.current = a
		a.resume <- struct{}{}
		<-s.done
	}
	if s.failure != nil { // a nil *Failure is no nil error
		return s.failure
	}
	return nil
}

// At is a place: others may run here.
//
// Concurrency: the actor that has the token; returns when it has it again. Allocates: no.
func (s *Sim) At(place fmt.Stringer) {
	if !s.over.Load() {
		s.stop(place, nil)
	}
}

// Wait returns when one of the cases is ready, and says which; the strategy chooses among several.
// The cases have no effects, and depend on what actors do, or on a bubble's clock.
//
// Concurrency: the actor that has the token; returns when it has it again. Allocates: no.
func (s *Sim) Wait(place fmt.Stringer, ready ...func() bool) int {
	s.resumed() // who is ended waits for nobody
	s.stop(place, ready)
	count, last := 0, 0
	for i := range ready {
		if ready[i]() {
			count, last = count+1, i
		}
	}
	if count < 2 {
		return last
	}
	chosen := s.Choose(count)
	for i := range ready {
		if ready[i]() {
			if chosen == 0 {
				return i
			}
			chosen--
		}
	}
	return last
}

// Choose draws a number below n.
//
// Concurrency: the actor that has the token. Allocates: no.
func (s *Sim) Choose(n int) int {
	k := s.strategy.Choose(n)
	s.note(uint64(k))
	return k
}

// Fail ends the run with err. It does not return, unless the run has failed already.
//
// Concurrency: the actor that has the token. Allocates: the failure.
func (s *Sim) Fail(err error) {
	if !s.over.Load() {
		s.fail(err)
	}
}

// Fork announces a goroutine that is no actor yet: the code under test starts it next.
//
// Concurrency: the actor that has the token. Allocates: the actor.
func (s *Sim) Fork(place fmt.Stringer) {
	if s.over.Load() {
		return
	}
	for { // the one before has not begun, as a rule it has
		s.mu.Lock()
		free := s.unclaimed == nil
		if free {
			s.unclaimed = s.birth(place.String(), place)
		}
		s.mu.Unlock()
		if free {
			return
		}
		runtime.Gosched()
	}
}

// Begin makes the calling goroutine the announced actor, and returns when that has the token. The id is
// for End.
//
// Concurrency: the goroutine that was announced, first of all. Allocates: no.
func (s *Sim) Begin() (id int) {
	s.mu.Lock()
	a := s.unclaimed
	s.unclaimed = nil
	s.mu.Unlock()
	if a == nil { // started by somebody who is being ended
		runtime.Goexit()
	}
	<-a.resume
	if s.over.Load() {
		s.gone <- struct{}{}
		runtime.Goexit()
	}
	return a.id
}

// End is the end of an actor, of one that was announced as of any other. A panic is a failure.
//
// Concurrency: the actor, last of all. Allocates: no.
func (s *Sim) End(id int, panicked any) {
	if s.over.Load() {
		if s.current == nil || s.current.id != id { // who has failed is the last, and ends by itself
			s.gone <- struct{}{}
		}
		return
	}
	me := s.current
	if panicked != nil {
		s.fail(fmt.Errorf("sim: %s panicked: %v\n%s", me.name, panicked, debug.Stack()))
	}
	for i, a := range s.alive {
		if a == me {
			s.alive = append(s.alive[:i], s.alive[i+1:]...)
			break
		}
	}
	if len(s.alive) == 0 {
		close(s.done)
		return
	}
	next := s.pick()
	s.current = next
	next.resume <- struct{}{}
}

// stop puts the current actor down at a place, lets the chosen one run, and returns when it is its turn.
func (s *Sim) stop(place fmt.Stringer, ready []func() bool) {
	me := s.current
	me.at, me.ready = place, ready
	next := s.pick()
	if next != me {
		s.current = next
		next.resume <- struct{}{}
		<-me.resume
		s.resumed()
	}
	me.ready = nil
}

// resumed ends the calling actor if the run has failed.
func (s *Sim) resumed() {
	if s.over.Load() {
		runtime.Goexit()
	}
}

// pick decides who goes on.
func (s *Sim) pick() *actor {
	s.able, s.ids = s.able[:0], s.ids[:0]
	current := -1
	for _, a := range s.alive {
		if !a.can() {
			continue
		}
		if a == s.current {
			current = len(s.ids)
		}
		s.able, s.ids = append(s.able, a), append(s.ids, a.id)
	}
	switch {
	case len(s.ids) == 0:
		s.fail(ErrNobody)
	case s.steps >= s.limit:
		s.fail(fmt.Errorf("%w: %d", ErrSteps, s.limit))
	}
	a := s.able[s.strategy.Next(s.ids, current)]
	s.steps++
	s.note(uint64(a.id))
	s.trace[s.steps%traced] = event{a, a.at}
	return a
}

// note adds a decision to the fingerprint (FNV-1a, by words).
func (s *Sim) note(decision uint64) { s.hash = (s.hash ^ decision) * 1099511628211 }

// Steps is how many decisions there were.
//
// Concurrency: the actor that has the token, or after Run. Allocates: no.
func (s *Sim) Steps() int { return s.steps }

// Fingerprint is a hash of all decisions. Two runs that differ in one have different ones, as good as
// certainly.
//
// Concurrency: as Steps. Allocates: no.
func (s *Sim) Fingerprint() uint64 { return s.hash }

// fail ends everybody, one after the other, so that their deferred calls do not meet, and then the caller.
func (s *Sim) fail(err error) {
	me := s.current
	s.failure = s.explain(err)
	s.over.Store(true)
	for _, a := range s.alive {
		if a != me {
			a.resume <- struct{}{}
			<-s.gone
		}
	}
	close(s.done)
	runtime.Goexit()
}

// explain writes a failure down, with who stands where.
func (s *Sim) explain(err error) *Failure {
	f := &Failure{Err: err, Steps: s.steps}
	for i := max(1, s.steps-traced+1); i <= s.steps; i++ {
		e := s.trace[i%traced]
		f.Trace = append(f.Trace, fmt.Sprintf("%s#%d: %v", e.who.name, e.who.id, e.at))
	}
	for _, a := range s.alive {
		state := "could run"
		if !a.can() {
			state = "waits"
		}
		f.Actors = append(f.Actors, fmt.Sprintf("%s#%d: %v, %s", a.name, a.id, a.at, state))
	}
	return f
}

// Failure is how a run went wrong.
type Failure struct {
	Err    error
	Steps  int
	Trace  []string // the last decisions, oldest first: who went on, and from where
	Actors []string // who had not ended, and where it stood
}

// shown is how much of the trace the text has.
const shown = 60

// Error is what went wrong, who stood where, and the last decisions.
func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\nafter %d steps there are\n", f.Err, f.Steps)
	for _, a := range f.Actors {
		fmt.Fprintf(&b, "\t%s\n", a)
	}
	fmt.Fprintf(&b, "and the last to go on were\n")
	for _, e := range f.Trace[max(0, len(f.Trace)-shown):] {
		fmt.Fprintf(&b, "\t%s\n", e)
	}
	return b.String()
}

// Unwrap is what went wrong.
func (f *Failure) Unwrap() error { return f.Err }
