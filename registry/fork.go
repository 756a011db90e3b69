package registry

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/handles"
)

// Task is work in parts for Fork.
type Task interface {
	// Part does one part, with a frame that is for it and its goroutine alone. Parts of one worker
	// come one after another, with the same worker number, which is below Workers.
	//
	// Concurrency: several workers at once, with different parts. Allocates: as the task.
	Part(f *Frame, worker, part int)
}

// Workers is how many workers Fork has for a: 1 if there is nothing to spread work over.
//
// Panics: ErrExpired; ErrReadOnly on a snapshot.
// Concurrency: as the token. Allocates: no.
func Workers(a Access) int {
	if h := lent(mustOpen(a), a); h != nil {
		return h.Workers
	}
	return 1
}

// lent is the hooks of the engine whose frame a is, if it lends goroutines. A window has one holder,
// a part its own worker, and Update, in whose time an engine may come or go, no engine.
func lent(r *Registry, a Access) *Hooks {
	if t := a.tokenOf(); t.kind != frameToken || t.part {
		return nil
	}
	if h := r.lender; h != nil && h.Spread != nil && h.Workers > 1 {
		return h
	}
	return nil
}

// Fork has the workers of the engine do all parts of a task, 0 up to parts, and returns when all
// are done. If spread is false, or a is not the frame of a system or observer, the caller does them
// alone, in order. Parts get frames of their own, which end with Fork, so that what comes out is the
// same either way: what parts put off is merged in the order of the parts, what they destroy, in a
// frame, in the order of loops, children with it, and Frame.Rand depends on the part alone. In a deterministic
// registry, and with a temporal ring, a part that takes a handle waits until those before it are done.
// A Fork inside a part is done by its worker, with the part's frame.
//
// A part that panics or exits does not stop the others. The first of them in the order of the parts
// panics on from here, with a *PanicError that has its value and its stack; an exit of the calling
// goroutine goes on.
//
// Panics: ErrExpired; ErrReadOnly on a snapshot.
// Concurrency: as the token. Allocates: no, as testing.AllocsPerRun counts, but for growth.
func Fork(a Access, t Task, parts int, spread bool) {
	r := mustOpen(a)
	if k := a.tokenOf().worker(); k != nil {
		forkInside(k.frame, t, parts)
		return
	}
	workers, hooks := 1, lent(r, a)
	if spread && hooks != nil {
		workers = min(hooks.Workers, max(parts, 1))
	}
	fk := &r.fork
	if !fk.busy.CompareAndSwap(false, true) {
		// Another goroutine of the same system is inside, or a part goes on with its system's frame.
		fk, workers = new(fork), 1
	}
	if a.tokenOf().kind == windowToken { // loops of the parts have frames, which do not count as open loops
		Iterate(a)
		defer Finish(a)
	}
	fk.begin(r, t, parts, workers)
	joined := false
	defer func() { goOn(fk.end(), !joined) }()
	if workers == 1 {
		fk.work(fk.workers[0])
	} else {
		hooks.Spread(workers, fk.runWorker)
	}
	joined = true
}

// goOn has the first failure of a Fork go on in its caller: as a panic, unless it is an exit and so
// is how the caller's goroutine leaves.
func goOn(first *PanicError, exiting bool) {
	if first != nil && !(exiting && first.Value == ErrGoexit) {
		panic(first)
	}
}

// fork is a Fork in progress. A registry keeps one, for its buffers.
//
// What workers write is a worker's own (forkWorker), or an element of pieces that only the worker of
// that part writes, or guarded by mu. All of it is prepared before the workers start and read after
// they have been joined, which are the happens-before edges.
type fork struct {
	busy      atomic.Bool
	r         *Registry
	task      Task
	parts     int
	number    uint64       // of the Fork in its frame
	inOrder   bool         // parts take handles in their order
	next      atomic.Int64 // the next part to hand out
	oneByOne  atomic.Bool  // parts take handles: see claim
	workers   []*forkWorker
	working   int // how many of them
	pieces    []piece
	deaths    []forkDeath      // buffer of end
	runWorker func(worker int) // made once

	mu      sync.Mutex // guards what follows; leaf lock
	turn    *sync.Cond // of mu: lowest has risen
	lowest  int        // all parts below are done; kept if inOrder
	done    []bool     // by part, if inOrder
	failure failure
}

// piece is what a part has left in the lists of its worker: wishes and deaths from one place to
// another.
type piece struct{ worker, wish, wishEnd, death, deathEnd int32 }

// forkDeath is an entity, or a reservation, that a part has destroyed. Its handle is dead and its bit
// clear, all else is done at the join.
type forkDeath struct {
	h      handles.Local
	turn   uint64 // when loops meet it, see turnOf
	place  uint32
	active bool
}

// failure is the first part that failed, in the order of the parts.
type failure struct {
	err  *PanicError
	part int
}

// note keeps the failure of a part if it is the first; a nil value is an exit. It is to be called in the
// deferred function that recovered the value.
func (f *failure) note(r *Registry, part int, value any) {
	if f.err == nil || part < f.part {
		f.err, f.part = newPanicError("part of a parallel loop", value, r.frame.Load()), part
	}
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
	fk.oneByOne.Store(false)
	fk.lowest = 0
	fk.pieces = slices.Grow(fk.pieces[:0], parts)[:parts]
	clear(fk.pieces)
	if fk.inOrder {
		fk.done = slices.Grow(fk.done[:0], parts)[:parts]
		clear(fk.done)
	}
	r.wishMu.Lock() // for goroutines of one system that fork side by side
	defer r.wishMu.Unlock()
	r.forks++
	fk.number = r.forks
	for i := range workers {
		if i == len(fk.workers) {
			k := &forkWorker{fork: fk, number: i, pcg: rand.NewPCG(0, 0)}
			k.random = rand.New(k.pcg)
			k.run = func() { fk.work(k) }
			fk.workers = append(fk.workers, k)
		}
		k := fk.workers[i]
		k.claimed, k.claimEnd = 0, 0
		k.frame = r.cutFrame()
		k.frame.part, k.frame.work = true, k
	}
}

// work does parts until none is left. If a part ends the goroutine, the rest of its worker's work is
// done on the way out.
func (fk *fork) work(k *forkWorker) {
	whole := false
	defer func() {
		if !whole {
			fk.work(k)
		}
	}()
	for k.claimed < k.claimEnd || fk.claim(k) {
		k.claimed++
		fk.do(k, k.claimed-1)
	}
	whole = true
}

// mostClaimed is how many parts a worker takes at once, and mostWaiting if there may be others waiting
// for them.
const (
	mostClaimed = 32
	mostWaiting = 4
)

// claim gives a worker the next parts, in order; false if there are none left. It takes a quarter of its
// share of what is left, so that workers walk through memory far from each other, as they would over
// slices cut in two (one by one, a loop over a million entities ran at 0.8 of that speed), and still
// end together. Where parts take handles in order, those behind wait for all that were taken: then
// they go one by one.
func (fk *fork) claim(k *forkWorker) bool {
	for {
		from := fk.next.Load()
		left := int64(fk.parts) - from
		if left <= 0 {
			return false
		}
		n := min(max(left/int64(4*fk.working), 1), mostClaimed)
		switch {
		case fk.oneByOne.Load():
			n = 1
		case fk.inOrder:
			n = min(n, mostWaiting)
		}
		if fk.next.CompareAndSwap(from, from+n) {
			k.claimed, k.claimEnd = int(from), int(from+n)
			return true
		}
	}
}

// do does one part.
func (fk *fork) do(k *forkWorker, part int) {
	k.part, k.seeded = part, false
	p := piece{worker: int32(k.number), wish: int32(len(k.wishes)), death: int32(len(k.deaths))}
	returned := false
	defer func() {
		p.wishEnd, p.deathEnd = int32(len(k.wishes)), int32(len(k.deaths))
		fk.pieces[part] = p
		if !returned {
			fk.fail(part, recover())
		}
		fk.finished(part)
	}()
	fk.task.Part(k.frame, k.number, part)
	returned = true
}

func (fk *fork) fail(part int, value any) {
	fk.mu.Lock()
	defer fk.mu.Unlock()
	fk.failure.note(fk.r, part, value)
}

// finished lets the parts behind this one take handles.
func (fk *fork) finished(part int) {
	if !fk.inOrder {
		return
	}
	fk.mu.Lock()
	defer fk.mu.Unlock()
	fk.done[part] = true
	was := fk.lowest
	for fk.lowest < fk.parts && fk.done[fk.lowest] {
		fk.lowest++
	}
	if fk.lowest != was {
		fk.turn.Broadcast()
	}
}

// await waits until all parts before the worker's are done, if handles have to be taken in order.
// Parts are handed out in order, and done in order by the worker that has claimed some, so the lowest
// that is not done is being done, or next, and never waits.
func (fk *fork) await(part int) {
	if !fk.inOrder {
		return
	}
	if !fk.oneByOne.Load() {
		fk.oneByOne.Store(true)
	}
	fk.mu.Lock()
	defer fk.mu.Unlock()
	for fk.lowest != part {
		fk.turn.Wait()
	}
}

// end ends the frames of the parts, merges what they did and says what failed first.
func (fk *fork) end() *PanicError {
	r := fk.r
	r.wishMu.Lock() // as in begin
	defer r.wishMu.Unlock()
	for _, p := range fk.pieces {
		k := fk.workers[p.worker]
		r.wishes = append(r.wishes, k.wishes[p.wish:p.wishEnd]...)
		fk.deaths = append(fk.deaths, k.deaths[p.death:p.deathEnd]...)
	}
	for _, k := range fk.workers[:fk.working] {
		k.rest()
	}
	// In an order of its own, for which of two parts has destroyed an entity must not matter. As a rule a
	// part destroys what it looks at, in order, and parts are numbered as loops meet what is in them.
	if !slices.IsSortedFunc(fk.deaths, byTurn) {
		slices.SortFunc(fk.deaths, byTurn)
	}
	for _, d := range fk.deaths {
		r.bury(d)
	}
	fk.deaths = fk.deaths[:0]
	first := fk.failure.err
	fk.failure, fk.task = failure{}, nil
	fk.busy.Store(false)
	return first
}

// byTurn orders deaths as loops meet the dead, and those without a slot, which come last, by handle.
func byTurn(a, b forkDeath) int {
	if a.turn != b.turn {
		return cmp.Compare(a.turn, b.turn)
	}
	return cmp.Compare(a.h, b.h)
}

// bury does what forkWorker.kill left over. Owner, or holder of wishMu.
func (r *Registry) bury(d forkDeath) {
	if !r.pools.any || !r.pooled(d.h.Index()) {
		r.giveRoom(1)
	}
	how := r.causeIndex()
	switch {
	case d.place == handles.NoPlace:
		r.addDeath(d.h, d.place, how)
	case d.active:
		r.addTombstone(d.h, r.store.ChunkAt(d.place), d.place, how|wasActive)
	default:
		ch := r.store.ChunkAt(d.place)
		r.addTombstone(d.h, ch, d.place, how|r.quit(ch, d.place-ch.Base()))
	}
	if r.hist.on {
		r.noteDeath()
	}
	if len(r.family) > 0 {
		r.killChildren(d.h)
	}
}
