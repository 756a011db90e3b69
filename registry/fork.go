package registry

import (
	"cmp"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/caller"
)

// Task is work in parts for Fork.
type Task interface {
	// Part does one part, with a frame of its own. Parts of one worker come one after another, with
	// the same worker number, which is below Workers.
	//
	// Concurrency: several workers at once, with different parts.
	Part(f *Frame, worker, part int)
}

// Workers is how many workers Fork has for a: 1 if there is nothing to spread work over.
//
// Panics: ErrExpired; ErrNotPublished on a snapshot.
// Concurrency: as the token. Allocates: no.
func Workers(a Access) int {
	r := mustOpen(a)
	if t := a.tokenOf(); t.kind != frameToken || t.work != nil {
		return 1
	}
	if c := r.engine.Load(); c != nil && c.hooks.Spread != nil {
		return max(1, c.hooks.Workers)
	}
	return 1
}

// Fork has the workers of the engine do all parts of a task, 0 up to parts, and returns when all
// are done. If spread is false, or a is not the frame of a system or observer, the caller does them
// alone, in order. Parts get frames of their own, which end with Fork, so that what comes out is the
// same either way: what parts put off is merged in the order of the parts, what they destroy in the
// order of slots, and Frame.Rand depends on the part alone. In a deterministic registry a part
// that takes a handle waits until those before it are done.
//
// A part that panics or exits does not stop the others. The first of them in the order of the parts
// panics on from here, with a *PanicError that has its stack.
//
// Panics: ErrExpired; ErrNotPublished on a snapshot.
// Concurrency: as the token. Allocates: no, but for growth.
func Fork(a Access, t Task, parts int, spread bool) {
	r := mustOpen(a)
	if k := a.tokenOf().work; k != nil { // inside a part: it keeps its place in the order
		for part := range parts {
			t.Part(k.frame, 0, part)
		}
		return
	}
	workers := 1
	if spread {
		workers = min(Workers(a), max(parts, 1))
	}
	fk := &r.fork
	if !fk.busy.CompareAndSwap(false, true) {
		// Another goroutine of the same system is inside, or a part goes on with its system's frame.
		fk, workers = new(fork), 1
	}
	fk.begin(r, t, parts, workers)
	joined := false
	defer func() {
		err := fk.end()
		if joined && err != nil { // otherwise the caller's goroutine exits
			panic(err)
		}
	}()
	if workers == 1 {
		fk.work(0)
	} else {
		r.engine.Load().hooks.Spread(workers, fk.runWorker)
	}
	joined = true
}

// fork is a Fork in progress. A registry keeps one, for its buffers.
//
// What workers write is either a worker's own (forkWorker), or an element of pieces that only the
// worker of that part writes, or guarded by mu. All of it is prepared before the workers start and
// read after they have been joined, which are the happens-before edges.
type fork struct {
	busy      atomic.Bool
	r         *Registry
	task      Task
	parts     int
	inOrder   bool         // parts take handles in their order
	next      atomic.Int64 // the next part to hand out
	workers   []*forkWorker
	working   int // how many of them
	pieces    []piece
	deaths    []forkDeath
	runWorker func(worker int)

	mu       sync.Mutex // guards what follows; leaf lock
	turn     *sync.Cond // of mu: lowest has risen
	lowest   int        // all parts below are done
	done     []bool     // by part, if inOrder
	failure  *PanicError
	failedAt int // part
}

// forkWorker is what one worker has for itself.
type forkWorker struct {
	fork   *fork
	number int
	part   int
	frame  *Frame
	wishes []wish
	deaths []forkDeath
	seeded bool // random draws for this part
	pcg    *rand.PCG
	random *rand.Rand
	run    func() // made once
	_      [64]byte
}

// piece is the wishes of a part: those of a worker from one place to another.
type piece struct{ worker, from, to int32 }

// forkDeath is an entity, or a reservation, that a part has destroyed. Its handle is dead and its bit
// clear, all else is done at the join.
type forkDeath struct {
	h      handles.Local
	place  uint32
	active bool
}

// begin prepares everything for the workers.
func (fk *fork) begin(r *Registry, t Task, parts, workers int) {
	if fk.turn == nil {
		fk.turn = sync.NewCond(&fk.mu)
		fk.runWorker = func(i int) { fk.workers[i].start() }
	}
	fk.r, fk.task, fk.parts, fk.working = r, t, parts, workers
	fk.inOrder = workers > 1 && r.late()
	fk.next.Store(0)
	fk.lowest, fk.failure = 0, nil
	fk.pieces = slices.Grow(fk.pieces[:0], parts)[:parts]
	clear(fk.pieces)
	if fk.inOrder {
		fk.done = slices.Grow(fk.done[:0], parts)[:parts]
		clear(fk.done)
	}
	r.wishMu.Lock()
	defer r.wishMu.Unlock()
	r.forks++
	for i := range workers {
		if i == len(fk.workers) {
			k := &forkWorker{fork: fk, number: i, pcg: rand.NewPCG(0, 0)}
			k.random = rand.New(k.pcg)
			k.run = func() { fk.work(k.number) }
			fk.workers = append(fk.workers, k)
		}
		k := fk.workers[i]
		k.frame = r.cutFrame()
		k.frame.work = k
	}
}

// start runs a worker on a goroutine of its own, marked as one inside the registry. The first worker
// is on the goroutine of the system, which is marked already.
func (k *forkWorker) start() {
	if k.number == 0 {
		k.run()
		return
	}
	caller.Within(k.fork.r.id, k.run)
}

// work does parts until none is left.
func (fk *fork) work(worker int) {
	for {
		part := int(fk.next.Add(1)) - 1
		if part >= fk.parts {
			return
		}
		fk.do(fk.workers[worker], part)
	}
}

// do does one part. If that ends the goroutine, the rest of its work is done on the way out.
func (fk *fork) do(k *forkWorker, part int) {
	k.part, k.seeded = part, false
	from, returned := len(k.wishes), false
	defer func() {
		fk.pieces[part] = piece{int32(k.number), int32(from), int32(len(k.wishes))}
		fk.finished(part)
		if returned {
			return
		}
		value := recover()
		fk.fail(part, value)
		if value == nil {
			fk.work(k.number)
		}
	}()
	fk.task.Part(k.frame, k.number, part)
	returned = true
}

// finished lets the parts behind this one take handles.
func (fk *fork) finished(part int) {
	if !fk.inOrder {
		return
	}
	fk.mu.Lock()
	defer fk.mu.Unlock()
	fk.done[part] = true
	for fk.lowest < fk.parts && fk.done[fk.lowest] {
		fk.lowest++
	}
	fk.turn.Broadcast()
}

// await waits until all parts before the worker's are done, if handles have to be taken in order.
// Parts are handed out in order, so the lowest that is not done is being done, and never waits.
func (k *forkWorker) await() {
	fk := k.fork
	if !fk.inOrder {
		return
	}
	fk.mu.Lock()
	defer fk.mu.Unlock()
	for fk.lowest != k.part {
		fk.turn.Wait()
	}
}

// fail keeps the first failure in the order of the parts; a nil value is an exit.
func (fk *fork) fail(part int, value any) {
	err := &PanicError{Value: value, Where: "part of a parallel loop", Frame: fk.r.frame.Load()}
	if inner, ok := value.(*PanicError); ok {
		err = inner
	} else if value == nil {
		err.Value = ErrGoexit
	} else {
		err.Stack = debug.Stack()
	}
	fk.mu.Lock()
	defer fk.mu.Unlock()
	if fk.failure == nil || part < fk.failedAt {
		fk.failure, fk.failedAt = err, part
	}
}

// end ends the frames of the parts, merges what they did and says what failed first.
func (fk *fork) end() error {
	r := fk.r
	r.wishMu.Lock()
	defer r.wishMu.Unlock()
	for _, p := range fk.pieces {
		r.wishes = append(r.wishes, fk.workers[p.worker].wishes[p.from:p.to]...)
	}
	for _, k := range fk.workers[:fk.working] {
		k.frame.closed.Store(true)
		k.frame = nil
		fk.deaths = append(fk.deaths, k.deaths...)
		clear(k.wishes)
		k.wishes, k.deaths = k.wishes[:0], k.deaths[:0]
	}
	// By slot: which of two workers has destroyed an entity must not matter.
	slices.SortFunc(fk.deaths, func(a, b forkDeath) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.h, b.h))
	})
	for _, d := range fk.deaths {
		r.bury(d)
	}
	fk.deaths = fk.deaths[:0]
	failure := fk.failure
	fk.failure, fk.task = nil, nil
	fk.busy.Store(false)
	if failure == nil {
		return nil
	}
	return failure
}

// kill destroys h for a part: at once for everybody who asks, at the join for the registry's books.
func (k *forkWorker) kill(r *Registry, h handles.Local) error {
	old, won := r.locals.Kill(h)
	if !won {
		return r.gone(h)
	}
	d := forkDeath{h: h, place: handles.NoPlace}
	if old.State() == handles.Alive {
		d.place = old.Place()
		ch := r.store.ChunkAt(d.place)
		r.wishMu.Lock() // SetActive counts by the bit
		d.active = r.hide(ch, d.place-ch.Base())
		r.wishMu.Unlock()
		if r.late() {
			r.locals.SetPlace(h, handles.NoPlace)
		}
	}
	k.deaths = append(k.deaths, d)
	return nil
}

// bury does what kill left over. Owner, or holder of wishMu.
func (r *Registry) bury(d forkDeath) {
	r.giveRoom(1)
	how := r.causeIndex()
	switch {
	case d.place == handles.NoPlace:
		r.addDeath(d.h, d.place, how)
	case d.active:
		r.addTombstone(d.h, r.store.ChunkAt(d.place), d.place, how|wasActive)
	default:
		r.inactive--
		r.addTombstone(d.h, r.store.ChunkAt(d.place), d.place, how)
	}
	r.noteDeath()
	if len(r.family) > 0 {
		r.killChildren(d.h)
	}
}

// rand gives the generator of the part.
func (k *forkWorker) rand(r *Registry, frame uint64) *rand.Rand {
	if !k.seeded {
		// Fork and part are spread over the word, so that neighbours do not begin alike.
		k.pcg.Seed(randSeed^(uint64(r.forks)<<32|uint64(k.part)+1)*0x9e37_79b9_7f4a_7c15, frame)
		k.seeded = true
	}
	return k.random
}
