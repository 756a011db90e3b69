package work

import (
	"context"
	"sync"
	"time"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// handshakes let goroutines change what belongs to Logic while it waits; the size is how many
// there are. The engine runs frame after frame without a pause, and all sides work inside of its
// frames: ours by Spawn, the peer by two unbuffered channels a caller that a system serves, and raw
// is a mutex round the same counter, which a system locks and unlocks in every frame. What they
// change is one counter, so that the figures are those of the way there and back.
func handshakes() []*contest.Workload {
	return []*contest.Workload{
		{Name: "handshake, round trip", Sizes: []int{1, 8, 64}, Target: contest.Target{Peer: 0.6, From: 1, To: 1},
			Open: func(n int) *contest.Contest { return openHandshake(n, (*airlocked).trip) }},
		{Name: "handshake, stall a caller", Sizes: []int{1, 8, 64}, Target: contest.Target{Peer: 0.6, From: 64, To: 64},
			Open: func(n int) *contest.Contest { return openHandshake(n, (*airlocked).stall) }},
	}
}

// passesAll is how often callers go through in one repetition, all together.
const passesAll = 2048

// airlocked is what the sides of a handshake share.
type airlocked struct {
	engine  *logic.Engine
	callers int
	ran     chan error

	mu      sync.Mutex // guards counter on the raw side
	counter uint64     // else: whoever Logic lends it to
	queue   chan *caller

	mutexed bool          // changed by Logic only: the system locks mu
	waited  time.Duration // what Logic stood still for the peer, or for mu; Logic's
}

// figure takes what is measured of a side: all has every caller go through, stalled is how long Logic
// has stood still for them.
type figure func(l *airlocked, t *contest.Timer, all func(*contest.Timer), reps int, stalled func() time.Duration)

// caller is one goroutine at the peer's door.
type caller struct{ grant, done chan struct{} }

func openHandshake(n int, take figure) *contest.Contest {
	c := &contest.Contest{Ops: passesAll / n * n}
	w := newWorld(&c.Fault, 0)
	config := engineConfig()
	config.Rate = int(time.Second)
	e, err := logic.New(w.Registry, config)
	if err != nil {
		c.Check(err)
		return c
	}
	l := &airlocked{engine: e, callers: n, ran: make(chan error, 1), queue: make(chan *caller, n)}
	_, err = e.AddSystem(logic.PrePhysics, "door", func(*logic.Frame) { l.serve() })
	c.Check(err)
	go func() { l.ran <- e.Run(context.Background()) }()
	c.Close = func() {
		_ = e.Stop() // always nil
		<-l.ran
	}
	l.sides(c, take)
	return c
}

// sides are ours, the channels, and the mutex.
func (l *airlocked) sides(c *contest.Contest, take figure) {
	side := func(name string, all func(*contest.Timer), stalled func() time.Duration) contest.Side {
		var counted uint64
		return contest.Side{Name: name, Sum: func() uint64 { return counted },
			Run: func(t *contest.Timer, reps int) {
				before := l.count(t)
				take(l, t, all, reps, stalled)
				counted += l.count(t) - before
			}}
	}
	c.Ours = side("Spawn", l.spawning, func() time.Duration { return l.engine.Stats().WindowStall.Sum })
	c.Peers = []contest.Side{side("channels", l.passing, func() time.Duration { return l.stood(&c.Fault) })}
	raw := side("mutex", l.locking, func() time.Duration { return l.stood(&c.Fault) })
	c.Raw = &raw
}

// trip takes the time from a caller's call to its return.
func (l *airlocked) trip(t *contest.Timer, all func(*contest.Timer), reps int, _ func() time.Duration) {
	for range reps {
		begin := time.Now() // what counting takes is in no figure: then no time is taken
		t.Counted(func() { all(t) })
		t.Add(float64(time.Since(begin)) * float64(l.callers))
	}
}

// stall takes the time that Logic stands still.
func (l *airlocked) stall(t *contest.Timer, all func(*contest.Timer), reps int, stalled func() time.Duration) {
	before := stalled()
	for range reps {
		t.Counted(func() { all(t) })
	}
	t.Add(float64(stalled() - before))
}

// inWindow runs fn with Logic waiting.
func (l *airlocked) inWindow(fault *contest.Fault, fn func()) {
	fault.Check(l.engine.Spawn(context.Background(), func(*registry.Window) error {
		fn()
		return nil
	}))
}

// count is the counter.
func (l *airlocked) count(t *contest.Timer) (n uint64) {
	l.inWindow(&t.Fault, func() { n = l.counter })
	return n
}

// stood is how long Logic has stood still.
func (l *airlocked) stood(fault *contest.Fault) (d time.Duration) {
	l.inWindow(fault, func() { d = l.waited })
	return d
}

// together has every caller's goroutine go through so often. pass is called once in each.
func (l *airlocked) together(pass func() func()) {
	var all sync.WaitGroup
	for range l.callers {
		all.Go(func() {
			through := pass()
			for range passesAll / l.callers {
				through()
			}
		})
	}
	all.Wait()
}

func (l *airlocked) spawning(t *contest.Timer) {
	var mu sync.Mutex // guards t
	change := func(*registry.Window) error {
		l.counter++
		return nil
	}
	l.together(func() func() {
		return func() {
			if err := l.engine.Spawn(context.Background(), change); err != nil {
				mu.Lock()
				defer mu.Unlock()
				t.Check(err)
			}
		}
	})
}

func (l *airlocked) passing(*contest.Timer) {
	l.together(func() func() {
		me := &caller{make(chan struct{}), make(chan struct{})}
		return func() {
			l.queue <- me
			<-me.grant
			l.counter++
			me.done <- struct{}{}
		}
	})
}

func (l *airlocked) locking(t *contest.Timer) {
	l.inWindow(&t.Fault, func() { l.mutexed = true })
	l.together(func() func() {
		return func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.counter++
		}
	})
	l.inWindow(&t.Fault, func() { l.mutexed = false })
}

// serve is the system: it lets everybody through who waits at the peer's door, or locks the mutex.
func (l *airlocked) serve() {
	if l.mutexed {
		start := time.Now()
		l.mu.Lock()
		l.waited += time.Since(start)
		l.mu.Unlock()
		return
	}
	n := len(l.queue)
	if n == 0 {
		return
	}
	start := time.Now()
	for range n {
		next := <-l.queue
		next.grant <- struct{}{}
		<-next.done
	}
	l.waited += time.Since(start)
}
