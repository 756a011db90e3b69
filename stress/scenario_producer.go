package stress

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// act is a kind of operation.
type act uint8

const (
	spawnOne act = iota
	destroyOne
	setOne
	moveOne  // to another archetype and back
	nameOne  // gives a net handle
	useStale // works on a dead entity
	failing  // does much, and returns an error
	panicking
	exiting
	crowding // asks for more entities than there may be
)

// owned is an entity that a producer has: nobody else ends it or writes its mark.
type owned struct {
	h      handles.Local
	number uint64
	net    handles.Net
}

// producer is one goroutine that asks the engine for things. Everything in it is its own; what an operation's
// callback writes is read when the operation has been answered.
type producer struct {
	g       *rig
	id      int
	rng     *rand.Rand
	book    *Book
	lane    lane
	own     []owned // not those that an operation has that is under way
	dead    [32]buried
	died    int
	stopped bool
	refused bool // by a full queue, since the last rest
	ops     []*op
	fns     []func(*registry.Window) error
	tickets []ticket
}

// buried is an entity that a producer has ended.
type buried struct {
	h     handles.Local
	until uint64 // the last frame whose window may see it yet: one that was open when it died from outside, with late deaths
}

// op is an operation under way. It is used again.
type op struct {
	p      *producer
	fn     func(*registry.Window) error // o.run, made once
	act    act
	number uint64
	on     owned // whom it works on
	born   handles.Local
	net    handles.Net
	until  uint64 // of useStale: see buried
}

func (g *rig) newProducer(id int) *producer {
	return &producer{g: g, id: id, rng: g.random(id), book: g.ledger.Book(), lane: g.gate.Lane()}
}

// keep is how many entities a producer has, about.
const keep = 64

// op gives operation i of those under way, ready to be filled in.
func (p *producer) op(i int) *op {
	for len(p.ops) <= i {
		o := &op{p: p}
		o.fn = o.run
		p.ops = append(p.ops, o)
		p.fns = append(p.fns, o.fn)
	}
	o := p.ops[i]
	o.on, o.born, o.net, o.until = owned{}, 0, 0, 0
	return o
}

// plan chooses what an operation does. One that has no entity to work on spawns one.
func (p *producer) plan(o *op, a act) {
	o.act = a
	if a != spawnOne && a != useStale && a != crowding {
		if len(p.own) == 0 {
			o.act = spawnOne
		} else {
			i := p.rng.IntN(len(p.own))
			o.on = p.own[i]
			p.own[i] = p.own[len(p.own)-1]
			p.own = p.own[:len(p.own)-1]
		}
	}
	if a == useStale {
		d := p.dead[p.rng.IntN(len(p.dead))]
		if o.on.h, o.until = d.h, d.until; d.h == 0 {
			o.act = spawnOne
		}
	}
	o.number = p.book.Submit()
	p.g.ops.Inc()
}

// mixed is a random kind of operation, that keeps the number of entities about even.
func (p *producer) mixed() act {
	n := p.rng.IntN(100)
	switch {
	case n < 50:
		if len(p.own) < p.rng.IntN(2*keep) {
			return spawnOne
		}
		return destroyOne
	case n < 80:
		return setOne
	case n < 86:
		return moveOne
	case n < 90:
		return nameOne
	case n < 95:
		return useStale
	case p.g.o.Faults && n < 97:
		return panicking
	case p.g.o.Faults && n < 98:
		return crowding
	}
	return failing
}

// run is the callback.
func (o *op) run(w *registry.Window) error {
	p, r, ledger := o.p, o.p.g.reg, o.p.g.ledger
	p.book.Ran(o.number)
	if o.act >= setOne && o.act != useStale && o.act != crowding { // nobody else has touched it
		m, err := registry.Peek[mark](w, o.on.h)
		if want := (mark{o.on.h, uint64(p.id), o.on.number}); err != nil || m != want {
			ledger.Violate(NoAlias, "producer %d: the mark of %v is %v, and should be %v: %v", p.id, o.on.h, m, want, err)
		}
	}
	switch o.act {
	case spawnOne:
		return o.spawn(w)
	case destroyOne:
		return w.Destroy(o.on.h)
	case setOne:
		return registry.Set(w, o.on.h, mark{o.on.h, uint64(p.id), o.number})
	case moveOne:
		if err := registry.Add(w, o.on.h, extra{o.number}); err != nil {
			return err
		}
		if v, err := registry.Peek[extra](w, o.on.h); err != nil || v.Number != o.number {
			ledger.Violate(NoAlias, "producer %d: %v was given extra %d, and has %d: %v", p.id, o.on.h, o.number, v.Number, err)
		}
		if o.number%2 == 0 {
			return registry.Remove[extra](w, o.on.h)
		}
	case nameOne:
		n, err := w.AssignNet(o.on.h)
		if err != nil {
			return err
		}
		back, err := r.ResolveNet(n)
		if err != nil || back != o.on.h || o.on.net != 0 && o.on.net != n {
			ledger.Violate(NoAlias, "producer %d: %v was called %v, is called %v, and that names %v: %v", p.id, o.on.h, o.on.net, n, back, err)
		}
		o.net = n
	case useStale:
		if _, err := r.Resolve(o.on.h); err == nil {
			ledger.Violate(NoAlias, "producer %d: %v is dead, and resolves", p.id, o.on.h)
		}
		if err := w.Destroy(o.on.h); err == nil {
			ledger.Violate(NoAlias, "producer %d: %v is dead, and was destroyed again", p.id, o.on.h)
		}
		if err := registry.Set(w, o.on.h, mark{}); err != nil || w.FrameNumber() > o.until {
			return err
		}
		return errPlanned // this window sees it to its end, and what it does is taken back
	case failing, panicking, exiting:
		return o.fail(w)
	case crowding:
		return o.crowd(w)
	}
	return nil
}

func (o *op) spawn(w *registry.Window) (err error) {
	m := mark{Owner: uint64(o.p.id), Number: o.number}
	if o.born, err = o.p.g.bodies.Spawn(w, body{Mark: m, Pulse: pulse{0, ^uint64(0)}}); err != nil {
		return err
	}
	m.Self = o.born
	return registry.Set(w, o.born, m)
}

// fail does what has to be taken back.
func (o *op) fail(w *registry.Window) error {
	if err := o.spawn(w); err != nil {
		return err
	}
	if err := errors.Join(
		registry.Set(w, o.on.h, mark{}),
		registry.SetParent(w, o.on.h, o.born),
		w.Destroy(o.born), // and its child with it
	); err != nil {
		o.p.g.ledger.Violate(NoAlias, "producer %d: %v has a new parent, that is destroyed: %v", o.p.id, o.on.h, err)
	}
	switch o.act {
	case panicking:
		panic(errPlanned)
	case exiting:
		runtime.Goexit()
	}
	return errPlanned
}

// crowd asks for more than fits.
func (o *op) crowd(w *registry.Window) error {
	before := o.p.g.reg.CacheCap()
	_, err := o.p.g.bodies.SpawnBatch(w, o.p.g.rc.MaxEntities+1, nil)
	if err == nil {
		o.p.g.ledger.Violate(Caps, "a batch of %d was spawned", o.p.g.rc.MaxEntities+1)
		return errPlanned
	}
	if after := o.p.g.reg.CacheCap(); after != before {
		o.p.g.ledger.Violate(NoTrace, "a batch that did not fit changed CacheCap from %d to %d", before, after)
	}
	return err
}

// done books the answer to an operation.
func (p *producer) done(o *op, err error) Outcome {
	outcome := p.book.Answer(o.number, err)
	p.settle(o, outcome)
	return outcome
}

func (p *producer) settle(o *op, outcome Outcome) {
	ledger := p.g.ledger
	p.stopped = p.stopped || outcome == Stopped
	p.refused = p.refused || outcome == QueueFull
	switch {
	case outcome == Stale && o.act != useStale:
		ledger.Violate(NoAlias, "producer %d: %v is alive, and the answer was that it is stale", p.id, o.on.h)
		return
	case outcome == Applied && o.act >= useStale:
		ledger.Violate(OneOutcome, "producer %d: an operation that must fail was applied: %d on %v", p.id, o.act, o.on.h)
	case outcome == Exhausted && o.act != crowding && p.g.roomy():
		ledger.Violate(Caps, "producer %d: exhausted with %d of %d", p.id, p.g.reg.Stats().Live, p.g.rc.MaxEntities)
	}
	switch o.act {
	case spawnOne:
		if outcome == Applied && o.born == 0 {
			ledger.Violate(OneOutcome, "producer %d: the answer was that operation %d was applied, and it was not", p.id, o.number)
		} else if outcome == Applied {
			p.book.Spawned++
			p.own = append(p.own, owned{h: o.born, number: o.number})
		} else if p.g.shows() && o.born != 0 && p.g.reg.Alive(o.born) {
			ledger.Violate(NoTrace, "producer %d: %v lives, whose spawn was answered with: %v", p.id, o.born, outcome)
		}
		return
	case destroyOne:
		if outcome == Applied {
			p.book.Destroyed++
			p.bury(o.on.h, 0)
			return
		}
	case setOne:
		if outcome == Applied {
			o.on.number = o.number
		}
	case nameOne:
		if outcome == Applied {
			o.on.net = o.net
		}
	case useStale, crowding:
		return
	default:
		if p.g.shows() && o.born != 0 && p.g.reg.Alive(o.born) {
			ledger.Violate(NoTrace, "producer %d: %v lives, which a failed callback has spawned", p.id, o.born)
		}
	}
	if p.g.shows() && !p.g.reg.Alive(o.on.h) {
		ledger.Violate(NoTrace, "producer %d: %v is dead after an operation that did not end it, %d: %v", p.id, o.on.h, o.act, outcome)
	}
	p.own = append(p.own, o.on)
}

// shows says whether an answer of Alive is about the present: while frames are simulated again it may be about one of
// them. Callbacks see the present in any case.
func (g *rig) shows() bool { return g.rc.TemporalFrames == 0 }

// late says whether a window that is open sees who dies from outside until it closes.
func (g *rig) late() bool { return g.rc.Deterministic || g.rc.TemporalFrames > 0 }

// roomy says whether nobody has a reason to be exhausted.
func (g *rig) roomy() bool { return !g.o.Faults }

// bury notes a handle that is dead for ever, though windows up to a frame may see it.
func (p *producer) bury(h handles.Local, until uint64) {
	if p.g.shows() && p.g.reg.Alive(h) {
		p.g.ledger.Violate(NoAlias, "producer %d: %v is destroyed, and alive", p.id, h)
	}
	p.dead[p.died%len(p.dead)] = buried{h, until}
	p.died++
}

// cull ends the oldest entity from outside, without a window.
func (p *producer) cull() {
	victim := p.own[0]
	p.own = append(p.own[:0], p.own[1:]...)
	if err := p.g.gate.Destroy(victim.h); err != nil {
		p.g.ledger.Violate(NoAlias, "producer %d: %v is alive, and cannot be destroyed: %v", p.id, victim.h, err)
		return
	}
	p.book.Destroyed++
	if err := p.g.gate.Destroy(victim.h); err == nil {
		p.g.ledger.Violate(OneOutcome, "producer %d: %v was destroyed twice", p.id, victim.h)
	}
	until := uint64(0)
	if p.g.late() {
		until = p.g.eng.FrameNumber() // while frames are simulated again a lower one: no window is open
	}
	p.bury(victim.h, until)
}

// rest ends a round: the book is settled if it is long, and who was refused waits a moment before it tries again.
func (p *producer) rest() {
	p.book.Rest()
	if p.refused {
		p.refused = false
		pause()
	}
}

// handshake runs one operation in a handshake of its own.
func (p *producer) handshake(ctx context.Context, a act) Outcome {
	o := p.op(0)
	p.plan(o, a)
	if o.act == exiting {
		return p.exit(ctx, o)
	}
	outcome := p.done(o, recovered(func() error { return p.g.gate.Spawn(ctx, o.fn) }))
	p.rest()
	return outcome
}

// recovered gives what fn panicked with as its answer.
func recovered(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &registry.PanicError{Value: v}
		}
	}()
	return fn()
}

// exit runs an operation on a goroutine that its callback ends.
func (p *producer) exit(ctx context.Context, o *op) Outcome {
	answer := make(chan error, 1)
	go func() {
		err := error(&registry.PanicError{Value: registry.ErrGoexit})
		defer func() { answer <- err }()
		err = p.g.gate.Spawn(ctx, o.fn)
	}()
	return p.done(o, <-answer)
}

// batch has n mixed operations under way in one handshake.
func (p *producer) batch(n int) {
	for i := range n {
		p.plan(p.op(i), p.mixed())
	}
	for i, err := range p.g.gate.SpawnBatch(context.Background(), p.fns[:n]...) {
		p.done(p.ops[i], err)
	}
	p.rest()
}

// queue has n mixed operations under way in its lane.
func (p *producer) queue(n int) {
	p.tickets = p.tickets[:0]
	for i := range n {
		o := p.op(i)
		p.plan(o, p.mixed())
		if p.g.o.Faults && p.rng.IntN(500) == 0 && o.act == failing {
			o.act = exiting // Logic's goroutine
		}
		t, err := p.lane.Enqueue(o.fn)
		if err != nil {
			p.done(o, err)
			t = nil
		}
		p.tickets = append(p.tickets, t)
	}
	for i, t := range p.tickets {
		if t != nil {
			<-t.Done()
			p.done(p.ops[i], t.Err())
		}
	}
	p.rest()
}

// cancelled runs an operation whose context ends before it, while it waits, or after it.
func (p *producer) cancelled() {
	ctx, cancel := context.WithCancel(context.Background())
	switch p.rng.IntN(3) {
	case 0:
		cancel()
	case 1:
		cancel()
		ctx, cancel = context.WithTimeout(context.Background(), time.Duration(p.rng.IntN(300))*time.Microsecond)
	}
	p.handshake(ctx, p.mixed())
	cancel()
}

// vanish leaves operations in a lane, and forgets them with the lane.
func (p *producer) vanish() {
	gone := p.g.newProducer(1_000_000 + p.id)
	for i := range 3 {
		o := gone.op(i)
		gone.plan(o, useStale)
		o.on.h = handles.NewLocal(p.rng.Uint32(), p.rng.Uint32()|1<<31) // forged
		o.act = useStale
		if _, err := gone.lane.Enqueue(o.fn); err != nil {
			gone.done(o, err)
		} else {
			gone.book.Abandon(o.number)
		}
	}
}

// fault does something that goes wrong.
func (p *producer) fault() {
	switch p.rng.IntN(6) {
	case 0:
		p.handshake(context.Background(), panicking)
	case 1:
		p.handshake(context.Background(), exiting)
	case 2:
		p.cancelled()
	case 3:
		p.vanish()
	case 4: // a reservation that comes to nothing
		if h, err := p.g.reg.Reserve(); err == nil {
			if p.g.reg.Alive(h) {
				p.g.ledger.Violate(NoAlias, "producer %d: %v is only reserved, and alive", p.id, h)
			}
			if err := p.g.reg.Destroy(h); err != nil {
				p.g.ledger.Violate(NoAlias, "producer %d: %v is reserved, and cannot be destroyed: %v", p.id, h, err)
			}
		}
	case 5:
		if p.rng.IntN(50) == 0 {
			p.handshakeSlow()
		}
	}
}

// handshakeSlow keeps the window for longer than the watchdog likes.
func (p *producer) handshakeSlow() {
	o := p.op(0)
	p.plan(o, setOne)
	p.done(o, recovered(func() error {
		return p.g.gate.Spawn(context.Background(), func(w *registry.Window) error {
			<-time.After(25 * time.Millisecond)
			return o.run(w)
		})
	}))
}

// inventory looks whether everything is as the producer left it.
func (p *producer) inventory(w *registry.Window) {
	for _, o := range p.own {
		m, err := registry.Peek[mark](w, o.h)
		if want := (mark{o.h, uint64(p.id), o.number}); err != nil || m != want {
			p.g.ledger.Violate(NoAlias, "producer %d: at the end the mark of %v is %v, and should be %v: %v", p.id, o.h, m, want, err)
		}
		if n, err := p.g.reg.NetOf(o.h); err != nil || o.net != 0 && n != o.net {
			p.g.ledger.Violate(NoAlias, "producer %d: at the end %v is called %v, and was called %v: %v", p.id, o.h, n, o.net, err)
		}
	}
	for _, d := range p.dead {
		if h := d.h; h != 0 && (p.g.reg.Alive(h) || OutcomeOf(registry.Set(w, h, mark{})) != Stale) {
			p.g.ledger.Violate(NoAlias, "producer %d: %v died, and is alive at the end", p.id, h)
		}
	}
}
