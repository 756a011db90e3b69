//go:build faults

package logic_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/internal/sim"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	accounts "github.com/airlock-ecs/airlock/stress" // its name is taken here
)

// simulated is a registry whose engines, one after the other, are run by actors of a simulation. All of it
// belongs to the actor that has the token; what callbacks do is the holder's of the window, who is one.
type simulated struct {
	*sim.Sim
	rng   *rand.Rand
	r     *registry.Registry
	class *registry.Class[thing]
	alive []handles.Local // of callbacks that were applied

	life   *simulatedLife
	busy   int          // callbacks that run: never two
	begun  int          // callbacks ever
	asking *simulatedOp // what the actor asks for that is about to stand in line

	by          [accounts.Lost + 1]uint64 // outcomes, of all lives that have ended
	verifyEvery int                       // frames; 0: at the end of a life only
	spoil       func() error              // what else is to hold between frames; nil: nothing
}

// simulatedLife is one engine, from New to its end.
type simulatedLife struct {
	e      *logic.Engine
	ledger accounts.Ledger
	over   bool // nobody asks for anything more
	ranOut bool // Run has returned
	actors int  // that have not ended, but for Logic and the clock
	line   int  // callers that ever stood in line
	served int  // the place of the last one that had the window

	unrun   int            // deferred operations that were told to have been stopped
	told    map[simOp]int  // and those that were told to have failed
	exited  int            // and those that ended Logic's goroutine, and so have no name
	pending []*simulatedOp // deferred
}

// simOp names an operation, and is what its callback fails with: to the ledger, its target was dead.
type simOp struct {
	producer int
	n        uint64
}

func (o simOp) Error() string { return fmt.Sprintf("operation %d of producer %d", o.n, o.producer) }
func (o simOp) Unwrap() error { return registry.ErrStale }

// simEnd is how a callback ends.
type simEnd uint8

const (
	endsWell simEnd = iota
	endsSlow        // and the window's time is up
	endsFailing
	endsPanicking
	endsExiting
)

// simulatedOp is one operation.
type simulatedOp struct {
	simOp
	book *accounts.Book
	end  simEnd
	ran  int

	place int             // in line, from 1; 0: it never stood in one
	ctx   context.Context // of one that may be cancelled
	ended int             // callbacks that had begun when ctx ended
}

func newSimulated(s *sim.Sim, seed uint64) (*simulated, error) {
	w := &simulated{Sim: s, rng: rand.New(rand.NewPCG(seed, 4)), verifyEvery: 1}
	var err error
	if w.r, err = registry.New(registry.Config{MaxEntities: 64}); err != nil {
		return nil, err
	}
	w.class, err = registry.RegisterClass[thing](w.r)
	return w, err
}

// begin makes the next engine.
func (w *simulated) begin(edit func(*logic.Config)) {
	l := &simulatedLife{told: map[simOp]int{}}
	c := logic.Config{
		Rate: 1000, Workers: 1, WindowBudget: time.Millisecond, Watchdog: time.Hour, Logger: slog.New(slog.DiscardHandler),
		OnError: w.onError,
	}
	if edit != nil {
		edit(&c)
	}
	var err error
	if l.e, err = logic.New(w.r, c); err != nil {
		w.Fail(fmt.Errorf("the registry is not free: %w", err))
	}
	w.life = l
}

// onError is told by whoever holds the window.
func (w *simulated) onError(err error) {
	l := w.life
	var panicked *registry.PanicError
	var op simOp
	switch {
	case errors.Is(err, logic.ErrStopped):
		l.unrun++
	case errors.As(err, &op):
		l.told[op]++
	case errors.As(err, &panicked) && panicked.Where == "system":
	case errors.As(err, &panicked):
		if op, ok := panicked.Value.(simOp); ok {
			l.told[op]++
		} else {
			l.exited++
		}
	default:
		w.Fail(fmt.Errorf("OnError was told: %w", err))
	}
}

// actor starts one that has to end before the life does.
func (w *simulated) actor(name string, fn func()) {
	l := w.life
	l.actors++
	w.Go(name, func() {
		defer func() { l.actors-- }()
		fn()
	})
}

// callback is what an operation does with the window.
func (w *simulated) callback(o *simulatedOp) func(*registry.Window) error {
	return func(win *registry.Window) error {
		if w.busy++; w.busy != 1 {
			w.Fail(fmt.Errorf("%w runs while another one does", o.simOp))
		}
		defer func() { w.busy-- }()
		w.begun++
		w.turn(o)
		o.ran++
		o.book.Ran(o.n)
		h, err := w.class.Spawn(win, thing{value{int(o.n)}})
		if err != nil {
			return err
		}
		w.At(sim.Name("inside"))
		switch o.end {
		case endsFailing:
			return o.simOp
		case endsPanicking:
			panic(o.simOp)
		case endsExiting:
			runtime.Goexit()
		case endsSlow:
			w.pass(time.Millisecond)
		}
		if len(w.alive) >= 8 {
			if err := win.Destroy(w.alive[0]); err != nil {
				return err
			}
			w.alive = slices.Delete(w.alive, 0, 1)
		}
		w.alive = append(w.alive, h)
		return nil
	}
}

// observed tells a simulation who stands in line.
type observed struct{ *simulated }

// At notes the place of a caller that has just joined the line: nobody else has run since it asked.
func (s observed) At(place fmt.Stringer) {
	if o := s.asking; place == fault.Joining && o != nil {
		s.asking = nil
		s.life.line++
		o.place = s.life.line
	}
	s.Sim.At(place)
}

// asks says what the calling actor asks for next. Of a batch it is the first.
func (w *simulated) asks(o *simulatedOp) { w.asking = o }

// turn looks whether it is the turn of an operation that begins.
func (w *simulated) turn(o *simulatedOp) {
	if o.place > 0 {
		if o.place < w.life.served {
			w.Fail(fmt.Errorf("%w stood in line before one that has had the window", o.simOp))
		}
		w.life.served = o.place
	}
	// The window was given to it after the callback before it had begun, so that a context that had ended by then
	// has ended in time.
	if o.ctx != nil && o.ctx.Err() != nil && w.begun-1 > o.ended {
		w.Fail(fmt.Errorf("%w runs, and %d callbacks have begun since its context ended", o.simOp, w.begun-1-o.ended))
	}
}

// called has the calling actor do something that may panic.
func called(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &registry.PanicError{Value: v}
		}
	}()
	return fn()
}

// producer is an actor that asks for everything there is.
type simulatedProducer struct {
	*simulated
	id      int
	e       *logic.Engine
	lane    *logic.Producer // nil: the shared one
	book    *accounts.Book
	tickets []simulatedTicket
}

type simulatedTicket struct {
	op *simulatedOp
	*logic.Ticket
}

func (w *simulated) producer(id int) *simulatedProducer {
	p := &simulatedProducer{simulated: w, id: id, e: w.life.e, book: w.life.ledger.Book()}
	if w.rng.IntN(2) == 0 {
		p.lane = p.e.Producer()
	}
	return p
}

func (p *simulatedProducer) op(ends ...simEnd) *simulatedOp {
	return &simulatedOp{simOp: simOp{p.id, p.book.Submit()}, book: p.book, end: ends[p.rng.IntN(len(ends))]}
}

// work asks until the life is over.
func (p *simulatedProducer) work() {
	for !p.life.over && p.one() {
		p.At(sim.Name("between operations"))
		if p.rng.IntN(4) == 0 {
			p.collect()
		}
	}
	p.collect()
}

// one asks for one thing; false when the engine has stopped.
func (p *simulatedProducer) one() bool {
	usual := []simEnd{ // few panics: each has a stack, which costs as much as ten decisions
		endsWell, endsWell, endsWell, endsWell, endsWell, endsWell, endsWell, endsWell, endsWell, endsWell, endsWell, endsWell,
		endsWell, endsWell, endsWell, endsSlow, endsSlow, endsFailing, endsFailing, endsFailing, endsFailing, endsPanicking,
	}
	switch k := p.rng.IntN(16); {
	case k < 5:
		o := p.op(usual...)
		p.asks(o)
		return p.answer(o, called(func() error { return p.e.Spawn(background(), p.callback(o)) }))
	case k < 8:
		return p.cancelled(p.op(usual...))
	case k < 9:
		return p.exiting(p.op(endsExiting))
	case k < 10:
		return p.batch(usual)
	case k < 13:
		return p.deferred(p.op(append(usual, endsExiting)...))
	default:
		return p.enqueued(p.op(append(usual, endsExiting)...))
	}
}

func (p *simulatedProducer) answer(o *simulatedOp, err error) bool {
	p.book.Answer(o.n, err)
	return !errors.Is(err, logic.ErrStopped)
}

// cancelled asks with a context that another actor ends at some moment.
func (p *simulatedProducer) cancelled(o *simulatedOp) bool {
	ctx, cancel := context.WithCancel(background())
	o.ctx = ctx
	p.actor("canceller", func() {
		o.ended = p.begun
		cancel()
	})
	p.asks(o)
	return p.answer(o, called(func() error { return p.e.Spawn(ctx, p.callback(o)) }))
}

// exiting asks on an actor of its own, which the callback ends.
func (p *simulatedProducer) exiting(o *simulatedOp) bool {
	answered := false
	var err error = &registry.PanicError{Value: registry.ErrGoexit}
	p.actor("exiting", func() {
		defer func() { answered = true }()
		p.asks(o)
		err = p.e.Spawn(background(), p.callback(o))
	})
	p.Wait(sim.Name("one that exits"), func() bool { return answered })
	return p.answer(o, err)
}

func (p *simulatedProducer) batch(ends []simEnd) bool {
	ops := make([]*simulatedOp, 1+p.rng.IntN(3))
	fns := make([]func(*registry.Window) error, len(ops))
	for i := range ops {
		ops[i] = p.op(ends...)
		fns[i] = p.callback(ops[i])
	}
	on := true
	p.asks(ops[0])
	for i, err := range p.e.SpawnBatch(background(), fns...) {
		on = p.answer(ops[i], err)
	}
	return on
}

func (p *simulatedProducer) deferred(o *simulatedOp) bool {
	put := p.e.Defer
	if p.lane != nil {
		put = p.lane.Defer
	}
	if err := put(p.callback(o)); err != nil {
		return p.answer(o, err)
	}
	p.life.pending = append(p.life.pending, o)
	return true
}

func (p *simulatedProducer) enqueued(o *simulatedOp) bool {
	put := p.e.Enqueue
	if p.lane != nil {
		put = p.lane.Enqueue
	}
	t, err := put(p.callback(o))
	if err != nil {
		return p.answer(o, err)
	}
	p.tickets = append(p.tickets, simulatedTicket{o, t})
	return true
}

// collect waits for the tickets.
func (p *simulatedProducer) collect() {
	for _, t := range p.tickets {
		p.Wait(sim.Name("ticket"), func() bool {
			select {
			case <-t.Done():
				return true
			default:
				return false
			}
		})
		p.answer(t.op, t.Err())
	}
	p.tickets = p.tickets[:0]
}

// check is what must hold between two frames.
func (w *simulated) check() {
	if live := w.r.Stats().Live; live != len(w.alive) {
		w.Fail(fmt.Errorf("%d live, and %d were applied", live, len(w.alive)))
	}
	if s := w.life.e.Stats(); s.Waiting < 0 || s.Queued < 0 {
		w.Fail(fmt.Errorf("%d wait, %d are queued", s.Waiting, s.Queued))
	}
	w.violations()
	if w.spoil != nil {
		if err := w.spoil(); err != nil {
			w.Fail(err)
		}
	}
	if w.verifyEvery > 0 && w.frame()%uint64(w.verifyEvery) == 0 {
		if err := w.r.Verify(); err != nil {
			w.Fail(err)
		}
	}
}

func (w *simulated) violations() {
	if found, n := w.life.ledger.Violations(); n > 0 {
		w.Fail(fmt.Errorf("%s: %s, and %d more", found[0].Invariant, found[0].Detail, n-1))
	}
}

// close ends the life, and settles it: everything has had exactly one outcome, and nothing is left.
func (w *simulated) close() {
	l := w.life
	l.over = true
	if err := l.e.Stop(); err != nil {
		w.Fail(err)
	}
	w.Wait(sim.Name("the end of a life"), func() bool { return l.actors == 0 })
	exited, unrun := 0, 0
	for _, o := range l.pending {
		told := l.told[o.simOp]
		delete(l.told, o.simOp)
		var outcome error
		switch {
		case o.ran == 0:
			unrun++
			outcome = logic.ErrStopped
		case o.end == endsFailing && told == 1, o.end == endsPanicking && told == 1:
			outcome = o.simOp
		case o.end == endsExiting && told == 0:
			exited++
			outcome = o.simOp
		case told > 0 || o.end >= endsFailing:
			w.Fail(fmt.Errorf("%w was deferred, and OnError was told %d times", o.simOp, told))
		}
		o.book.Answer(o.n, outcome)
	}
	if exited != l.exited || unrun != l.unrun || len(l.told) > 0 {
		w.Fail(fmt.Errorf("OnError was told of %d exits and %d that did not run, and there were %d and %d; of nobody's: %v",
			l.exited, l.unrun, exited, unrun, l.told))
	}
	total := l.ledger.Total()
	for o := range w.by {
		w.by[o] += total.By[o]
	}
	w.violations()
	if s := l.e.Stats(); s.Waiting != 0 || s.Queued != 0 {
		w.Fail(fmt.Errorf("%d wait and %d are queued after the end", s.Waiting, s.Queued))
	}
	w.check()
	if err := w.r.Verify(); err != nil {
		w.Fail(err)
	}
}

// frame is the number of the last frame, of whatever engine.
func (w *simulated) frame() uint64 {
	if w.life == nil {
		return 0
	}
	return w.life.e.FrameNumber()
}
