package stress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// FaultWorld is an engine with a callback at every Site. A round has some of them end as it is told, and
// checks that each ran once and had one outcome, the one that was due; that what failed left no trace;
// that what was asked for beside it was done; and that the engine goes on.
//
// It is stepped by the goroutine that calls Round.
type FaultWorld struct {
	reg    *registry.Registry
	engine *logic.Engine
	class  *registry.Class[faultThing]
	pool   *pool.Entities[faultThing]
	lane   *logic.Producer

	armed  [sites]atomic.Pointer[faultOp] // taken by the callback that runs next
	beside [sites]atomic.Int32            // calls of a callback of the same kind that does not fail, in this round
	parts  atomic.Int32                   // of the parallel loop that were done, in this round

	mu      sync.Mutex // guards told, exits and strange; leaf lock
	told    map[*faultOp]int
	exits   int     // told without a name
	strange []error // told, and nobody's

	Rounds   int                 // played; written by Round
	Outcomes [sites][endings]int // how often each fault had its outcome; written by Round
}

type faultThing struct{ Value faultValue }

type faultValue struct{ N int64 }

type faultCells struct{ Value []faultValue }

// faultTag moves an entity to another archetype.
type faultTag struct{ N int64 }

// faultOp is a fault of a round.
type faultOp struct {
	fault Fault
	ran   atomic.Int32
	born  handles.Local // by its callback

	answered bool  // there is somebody who gets its outcome
	exited   bool  // that one's goroutine ended
	answer   error // what that one got, or recovered
}

const (
	faultParts = 8
	faultPool  = 8
)

// NewFaultWorld makes one. Close ends it.
//
// Concurrency: any goroutine. Allocates: the world.
func NewFaultWorld(rc registry.Config, c logic.Config) (w *FaultWorld, err error) {
	w = &FaultWorld{told: make(map[*faultOp]int)}
	if w.reg, err = registry.New(rc); err != nil {
		return nil, err
	}
	if w.class, err = registry.RegisterClass[faultThing](w.reg); err != nil {
		return nil, err
	}
	if _, err = registry.RegisterComponent[faultTag](w.reg); err != nil {
		return nil, err
	}
	err = w.reg.Update(func(win *registry.Window) (err error) {
		w.pool, err = pool.NewEntities(win, w.class, faultPool)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	c.OnError = w.hear
	c.WindowBudget = time.Hour // a round is one window
	if w.engine, err = logic.New(w.reg, c); err != nil {
		return nil, err
	}
	w.lane = w.engine.Producer()
	err = w.register()
	if err == nil {
		err = w.engine.Step() // so that there is a frame to read
	}
	if err != nil {
		return nil, errors.Join(err, w.engine.Stop())
	}
	return w, nil
}

// Engine is the engine of the world.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (w *FaultWorld) Engine() *logic.Engine { return w.engine }

// register sets up the callbacks that are called again and again. Behind each that may fail comes one
// that does not.
func (w *FaultWorld) register() error {
	for site, phase := range map[Site]logic.Phase{
		InPrePhysics: logic.PrePhysics, InPhysics: logic.Physics, InPostPhysics: logic.PostPhysics, InLate: logic.Late,
	} {
		if _, err := w.engine.AddSystem(phase, site.String(), func(*logic.Frame) { w.strike(site) }); err != nil {
			return err
		}
		if _, err := w.engine.AddSystem(phase, "beside", func(*logic.Frame) { w.beside[site].Add(1) }); err != nil {
			return err
		}
	}
	_, err := w.engine.AddSystem(logic.Physics, "wishes", func(f *logic.Frame) {
		if o := w.armed[InSystemWish].Swap(nil); o != nil {
			f.Defer(func(win *registry.Window) error { return w.run(o, win) })
		}
	})
	if err != nil {
		return err
	}
	_, err = w.engine.AddSystem(logic.Physics, "parallel", func(f *logic.Frame) {
		if w.armed[InParallel].Load() != nil {
			registry.Fork(f, (*faultTask)(w), faultParts, true)
		}
	})
	if err != nil {
		return err
	}
	_, err = w.engine.AddSystem(logic.PostPhysics, "asks", func(f *logic.Frame) {
		if o := w.armed[InAskNow].Swap(nil); o != nil {
			w.pool.DespawnWhereNow(f.Frame, w.ask(o))
		}
	})
	if err != nil {
		return err
	}
	for site, kind := range map[Site]registry.EventKind{
		InSpawned: registry.Spawned, InAdded: registry.Added, InRemoved: registry.Removed, InMoved: registry.Moved,
		InDestroyed: registry.Destroyed,
	} {
		_, err := w.reg.Observe(kind, func(f *registry.Frame, _ []registry.Event) {
			if o := w.armed[InObserverWish].Swap(nil); o != nil {
				f.Defer(func(win *registry.Window) error { return w.run(o, win) })
			}
			w.strike(site)
		})
		if err != nil {
			return err
		}
		if _, err = w.reg.Observe(kind, func(*registry.Frame, []registry.Event) { w.beside[site].Add(1) }); err != nil {
			return err
		}
	}
	if _, err = w.reg.OnMove(func([]registry.Move) { w.strike(InOnMove) }); err != nil {
		return err
	}
	_, err = w.reg.OnMove(func([]registry.Move) { w.beside[InOnMove].Add(1) })
	return err
}

// ask is the condition of a despawn: of the pool's entities that are those of this site, the second one is where it
// ends. There are three.
func (w *FaultWorld) ask(o *faultOp) func(handles.Local, *faultThing) bool {
	asked := 0
	return func(_ handles.Local, e *faultThing) bool {
		if e.Value.N != int64(o.fault.Site) {
			return false
		}
		if asked++; asked == 2 {
			o.ran.Add(1)
			_ = o.end()
		}
		return true
	}
}

// strike ends the callback at a site if that is due.
func (w *FaultWorld) strike(site Site) {
	if o := w.armed[site].Swap(nil); o != nil {
		o.ran.Add(1)
		_ = o.end()
	}
}

// run is the callback of a fault that has a window: it changes something first.
func (w *FaultWorld) run(o *faultOp, win *registry.Window) (err error) {
	o.ran.Add(1)
	if o.born, err = w.class.Spawn(win, faultThing{}); err != nil {
		return err
	}
	if err := registry.Add(win, o.born, faultTag{1}); err != nil {
		return err
	}
	return o.end()
}

// faultTask is the world as the body of a parallel loop.
type faultTask FaultWorld

func (t *faultTask) Part(_ *registry.Frame, _, part int) {
	w := (*FaultWorld)(t)
	w.parts.Add(1)
	if part == faultParts/2 {
		w.strike(InParallel)
	}
}

// hear is the engine's OnError.
func (w *FaultWorld) hear(err error) {
	if w.note(err) == InOnError { // not for the failure of another one, which would take the exit for its own
		w.strike(InOnError)
	}
}

// note books what OnError is told, and answers whose it is.
func (w *FaultWorld) note(err error) Site {
	w.mu.Lock()
	defer w.mu.Unlock()
	var known *faultError
	switch {
	case errors.As(err, &known):
		w.told[known.op]++
		return known.op.fault.Site
	case errors.Is(err, registry.ErrGoexit):
		w.exits++
	default:
		w.strange = append(w.strange, err)
	}
	return Site(sites)
}

// faultRound is a round in progress.
type faultRound struct {
	*FaultWorld
	ops     []*faultOp
	callers sync.WaitGroup
	waiting int             // goroutines at the door
	tickets []func()        // what to ask when the frames have run
	moved   handles.Local   // by the operation that moves
	plain   []*logic.Ticket // operations that nothing is wrong with
}

// Round has the callbacks at some sites end as they are told, each site once. It answers what is
// wrong, nil if nothing is.
//
// Concurrency: one goroutine. Allocates: yes.
func (w *FaultWorld) Round(faults ...Fault) error {
	w.mu.Lock()
	clear(w.told)
	w.exits, w.strange = 0, nil
	w.mu.Unlock()
	for i := range w.beside {
		w.beside[i].Store(0)
	}
	w.parts.Store(0)
	r := &faultRound{FaultWorld: w}
	if err := r.prepare(); err != nil {
		return err
	}
	for _, f := range faults {
		r.ops = append(r.ops, &faultOp{fault: f})
	}
	// An Update first: observers of it that exit would end its goroutine, and rightly so.
	if i := slices.IndexFunc(r.ops, func(o *faultOp) bool { return o.fault.Site == InUpdate }); i > 0 {
		r.ops[0], r.ops[i] = r.ops[i], r.ops[0]
	}
	for _, o := range r.ops {
		if err := r.arm(o); err != nil {
			return fmt.Errorf("stress: %v: %w", o.fault, err)
		}
	}
	for w.engine.Stats().Waiting < r.waiting { // so that all are served in one window
		runtime.Gosched()
	}
	for range 3 { // what is put off comes a frame later, and what observers of that put off another one
		_ = w.engine.Step() // a failure of a system goes to OnError as well
	}
	r.callers.Wait()
	for _, ask := range r.tickets {
		ask()
	}
	w.Rounds++
	return r.check()
}

// prepare asks for what gives every kind of observer something to hear, beside what fails.
func (r *faultRound) prepare() error {
	for range 2 {
		t, err := r.engine.Enqueue(func(win *registry.Window) error {
			h, err := r.class.Spawn(win, faultThing{})
			if err != nil {
				return err
			}
			if err := registry.Add(win, h, faultTag{}); err != nil {
				return err
			}
			if err := registry.Remove[faultTag](win, h); err != nil {
				return err
			}
			return win.Destroy(h)
		})
		if err != nil {
			return err
		}
		r.plain = append(r.plain, t)
	}
	return nil
}

// arm asks for the callback of a fault.
func (r *faultRound) arm(o *faultOp) error {
	body := func(win *registry.Window) error { return r.run(o, win) }
	switch o.fault.Site {
	case InSpawn:
		r.call(o, func() error { return r.engine.Spawn(context.Background(), body) })
	case InSpawnBatch:
		done := 0
		plain := func(win *registry.Window) error { done++; return nil }
		r.call(o, func() error {
			errs := r.engine.SpawnBatch(context.Background(), plain, body, plain)
			return errors.Join(errs...)
		})
		r.tickets = append(r.tickets, func() {
			if done != 2 {
				o.ran.Store(-1)
			}
		})
	case InDefer:
		return r.engine.Defer(body)
	case InLaneDefer:
		return r.lane.Defer(body)
	case InEnqueue:
		return r.await(o)(r.engine.Enqueue(body))
	case InLaneEnqueue:
		return r.await(o)(r.lane.Enqueue(body))
	case InUpdate: // the engine rests
		r.alone(o, func() error { return r.reg.Update(body) })
	case InOnMove:
		return r.await(o)(r.engine.Enqueue(func(win *registry.Window) (err error) {
			if r.moved, err = r.class.Spawn(win, faultThing{}); err != nil {
				return err
			}
			r.armed[InOnMove].Store(o)
			return registry.Add(win, r.moved, faultTag{})
		}))
	case InInit:
		return r.await(o)(r.engine.Enqueue(func(win *registry.Window) error {
			hs, err := r.class.SpawnBatch(win, 3, func(i int, e *faultThing) {
				if i == 1 {
					o.ran.Add(1)
					_ = o.end()
				}
			})
			if err == nil {
				r.destroy(win, hs...)
			}
			return err
		}))
	case InFill:
		return r.await(o)(r.engine.Enqueue(func(win *registry.Window) error {
			runs := 0
			hs, err := views.SpawnColumns(win, r.class, 5, func(*faultCells) {
				if runs++; runs == 1 {
					o.ran.Add(1)
					_ = o.end()
				}
			})
			if err == nil {
				r.destroy(win, hs...)
			}
			return err
		}))
	case InPoolAsk:
		return r.await(o)(r.engine.Enqueue(func(win *registry.Window) error {
			if err := r.draw(o, win); err != nil {
				return err
			}
			r.pool.DespawnWhere(win, r.ask(o))
			return nil
		}))
	case InAskNow:
		r.armed[InAskNow].Store(o)
		return r.engine.Defer(func(win *registry.Window) error { return r.draw(o, win) })
	case InRead: // the engine rests; if it ran, that would be the same
		r.alone(o, func() error {
			return r.reg.Read(func(*registry.Snapshot) error {
				o.ran.Add(1)
				return o.end()
			})
		})
	case InOnError:
		r.armed[InOnError].Store(o)
		return r.engine.Defer(func(*registry.Window) error { return &faultError{o} })
	default:
		r.armed[o.fault.Site].Store(o)
	}
	return nil
}

// draw takes three entities out of the pool, for a site.
func (r *faultRound) draw(o *faultOp, win *registry.Window) error {
	for range 3 {
		if _, ok := r.pool.Spawn(win, faultThing{faultValue{int64(o.fault.Site)}}); !ok {
			return registry.ErrExhausted
		}
	}
	return nil
}

func (r *faultRound) destroy(win *registry.Window, hs ...handles.Local) {
	for _, h := range hs {
		_ = win.Destroy(h)
	}
}

// call has a goroutine of its own call something that waits for the window.
func (r *faultRound) call(o *faultOp, fn func() error) {
	r.waiting++
	r.start(&r.callers, o, fn)
}

// alone likewise, and waits for its end.
func (r *faultRound) alone(o *faultOp, fn func() error) {
	var done sync.WaitGroup
	r.start(&done, o, fn)
	done.Wait()
}

func (r *faultRound) start(group *sync.WaitGroup, o *faultOp, fn func() error) {
	o.answered = true
	group.Add(1)
	go func() {
		defer group.Done()
		o.exited = true
		defer func() {
			if v := recover(); v != nil {
				o.exited = false
				o.answer, _ = v.(error)
			}
		}()
		o.answer = fn()
		o.exited = false
	}()
}

// await takes the ticket of a fault's operation.
func (r *faultRound) await(o *faultOp) func(*logic.Ticket, error) error {
	return func(t *logic.Ticket, err error) error {
		if err != nil {
			return err
		}
		r.tickets = append(r.tickets, func() {
			o.answered = true
			select {
			case <-t.Done():
				o.answer = t.Err()
			default:
				o.answer = errUnanswered
			}
		})
		return nil
	}
}

var errUnanswered = errors.New("stress: an operation without an answer")

// check compares what happened with what was due, and cleans up.
func (r *faultRound) check() error {
	var wrong []error
	fail := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("stress: "+format, args...)) }
	r.mu.Lock()
	exits := 0
	for _, o := range r.ops {
		answers, told, due := r.due(o)
		if n := o.ran.Load(); n != 1 {
			fail("%v: its callback ran %d times", o.fault, n)
			continue
		}
		if n := r.told[o]; n != told {
			fail("%v: told %d times, want %d", o.fault, n, told)
		}
		if o.answered && !answers(o) {
			fail("%v: answered %v, exited %t", o.fault, o.answer, o.exited)
		}
		exits += due
		if o.fault.Site.window() && r.reg.Alive(o.born) != (o.fault.Ending == Returns) {
			fail("%v: what it did is there: %t", o.fault, r.reg.Alive(o.born))
		}
		r.Outcomes[o.fault.Site][o.fault.Ending]++
	}
	if r.exits != exits {
		fail("%v: %d exits were told, want %d", r.faults(), r.exits, exits)
	}
	for _, err := range r.strange {
		fail("%v: OnError was told what nobody did: %w", r.faults(), err)
	}
	r.mu.Unlock()
	for _, t := range r.plain {
		select {
		case <-t.Done():
			if err := t.Err(); err != nil {
				fail("%v: an operation beside them: %w", r.faults(), err)
			}
		default:
			fail("%v: an operation beside them has no answer", r.faults())
		}
	}
	for _, o := range r.ops {
		switch site := o.fault.Site; {
		case site >= InPrePhysics && site <= InLate && r.beside[site].Load() != 3,
			(site >= InSpawned && site <= InDestroyed || site == InOnMove && o.fault.Ending != Exits) && r.beside[site].Load() == 0:
			fail("%v: the one beside it ran %d times", o.fault, r.beside[site].Load())
		case site == InParallel && r.parts.Load() != faultParts:
			fail("%v: %d of %d parts were done", o.fault, r.parts.Load(), faultParts)
		}
		if r.armed[o.fault.Site].Swap(nil) != nil {
			fail("%v: nobody called it", o.fault)
		}
	}
	if err := r.leave(); err != nil {
		fail("%v: %w", r.faults(), err)
	}
	return errors.Join(wrong...)
}

func (r *faultRound) faults() (all []Fault) {
	for _, o := range r.ops {
		all = append(all, o.fault)
	}
	return all
}

// due is the outcome a fault must have: whether its answer is right, how often OnError hears of it by
// name, and how often of an exit.
func (r *faultRound) due(o *faultOp) (answers func(*faultOp) bool, told, exits int) {
	var known *faultError
	mine := func(o *faultOp) bool { return errors.As(o.answer, &known) && known.op == o && !o.exited }
	exited := func(o *faultOp) bool { return errors.Is(o.answer, registry.ErrGoexit) && !o.exited }
	fine := func(o *faultOp) bool { return o.answer == nil && !o.exited }
	gone := func(o *faultOp) bool { return o.exited }
	site, ending := o.fault.Site, o.fault.Ending
	switch {
	case site == InOnError: // told of the operation that failed; what it does itself goes to the log
		return fine, 1, 0
	case ending == Returns:
		return fine, 0, 0
	}
	switch site {
	case InSpawn, InSpawnBatch, InUpdate, InRead:
		if ending == Exits {
			return gone, 0, 0
		}
		return mine, 0, 0
	case InEnqueue, InLaneEnqueue, InInit, InFill, InPoolAsk:
		if ending == Exits {
			return exited, 0, 0
		}
		return mine, 0, 0
	case InOnMove: // the mover goes on after a panic, and not after an exit
		if ending == Exits {
			return exited, 0, 0
		}
		return fine, 1, 0
	}
	if ending == Exits {
		return nil, 0, 1
	}
	return nil, 1, 0
}

// leave ends what the round left alive, and looks whether the world is whole.
func (r *faultRound) leave() error {
	err := r.reg.Update(func(win *registry.Window) error {
		for _, o := range r.ops {
			_ = win.Destroy(o.born)
		}
		_ = win.Destroy(r.moved)
		r.pool.DespawnWhere(win, func(handles.Local, *faultThing) bool { return true })
		return nil
	})
	if err != nil {
		return err
	}
	_ = r.engine.Step()
	if s := r.reg.Stats(); s.Live != 0 || s.Idle != faultPool || s.PendingDestructions > faultPool*8 || s.Pinned != 0 {
		return fmt.Errorf("%d live, %d idle, %d dying entities and %d frames held are left", s.Live, s.Idle, s.PendingDestructions, s.Pinned)
	}
	if s := r.engine.Stats(); s.Waiting != 0 || s.Queued != 0 {
		return fmt.Errorf("%d callers and %d operations are left", s.Waiting, s.Queued)
	}
	return nil
}

// Verify walks the structure of the registry.
//
// Concurrency: between rounds. Allocates: yes.
func (w *FaultWorld) Verify() error { return w.reg.Verify() }

// Close stops the engine and walks the structure.
//
// Concurrency: between rounds. Allocates: yes.
func (w *FaultWorld) Close() error { return errors.Join(w.engine.Stop(), w.reg.Verify()) }
