package registry

import (
	"math/rand/v2"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/caller"
)

// forkWorker is what one worker of a Fork has for itself: nobody else touches it between begin and
// end.
type forkWorker struct {
	fork              *fork
	number            int
	part              int    // the one it does
	claimed, claimEnd int    // parts it has yet to do
	frame             *Frame // for all its parts in this Fork
	wishes            []wish
	deaths            []forkDeath
	seeded            bool // random draws for part
	pcg               *rand.PCG
	random            *rand.Rand
	run               func() // its work; made once
	_                 [64]byte
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

// rest ends the worker's frame and empties its lists.
func (k *forkWorker) rest() {
	k.frame.closed.Store(true)
	k.frame = nil
	clear(k.wishes)
	k.wishes, k.deaths = k.wishes[:0], k.deaths[:0]
}

// kill destroys h for a part: at once for everybody who asks and for loops, at the join for the
// registry's books. It takes no lock.
func (k *forkWorker) kill(r *Registry, h handles.Local) error {
	if r.hist.on && r.spares(h) {
		return ErrStale
	}
	old, won := r.locals.Kill(h)
	if !won {
		r.noteLost(h)
		return r.notKilled(h)
	}
	d := forkDeath{h: h, turn: lastTurn, place: handles.NoPlace}
	if old.State() == handles.Alive {
		d.place = old.Place()
		if r.late() { // before the bit: then nobody who still finds the entity can leave the bit set
			r.locals.SetPlace(h, handles.NoPlace)
		}
		ch := r.store.ChunkAt(d.place)
		d.turn = turnOf(ch, d.place-ch.Base())
		d.active = r.hide(ch, d.place-ch.Base())
	}
	k.deaths = append(k.deaths, d)
	return nil
}

// rand gives the generator of the part.
func (k *forkWorker) rand(frame uint64) *rand.Rand {
	if !k.seeded {
		// Fork and part are spread over the word, so that neighbours do not begin alike.
		k.pcg.Seed(randSeed^(k.fork.number<<32+uint64(k.part)+1)*0x9e37_79b9_7f4a_7c15, frame)
		k.seeded = true
	}
	return k.random
}

// inside is a Fork inside a part. The worker of that part does it all, with the frame it has, so that
// its parts keep their place in the order.
type inside struct {
	frame       *Frame
	task        Task
	next, parts int
	failure     failure
}

func forkInside(f *Frame, t Task, parts int) {
	in := inside{frame: f, task: t, parts: parts}
	whole := false
	defer func() { goOn(in.failure.err, !whole) }()
	in.work()
	whole = true
}

// work does all parts, as fork.work does.
func (in *inside) work() {
	whole := false
	defer func() {
		if !whole {
			in.work()
		}
	}()
	for in.next < in.parts {
		in.next++
		in.do(in.next - 1)
	}
	whole = true
}

func (in *inside) do(part int) {
	returned := false
	defer func() {
		if !returned {
			in.failure.note(in.frame.r, part, recover())
		}
	}()
	in.task.Part(in.frame, 0, part)
	returned = true
}
