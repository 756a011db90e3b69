package work

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/puzpuzpuz/xsync/v3"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// deferrals are operations that producers leave for Logic while it runs frame after frame, from the
// first that is queued to the last that has run; the size is how many. The peer is a queue that a system
// empties in every frame, calling each operation; ours also makes each an operation that would be
// undone if it failed.
func deferrals() []*contest.Workload {
	sizes := []int{1 << 15}
	return []*contest.Workload{
		{Name: "deferred operations, 8 lanes", Sizes: sizes, Target: contest.Target{Peer: 0.3},
			Open: func(n int) *contest.Contest { return openDeferrals(n, true) }},
		{Name: "deferred operations, one shared lane", Sizes: sizes, Target: contest.Target{Peer: 0.6},
			Open: func(n int) *contest.Contest { return openDeferrals(n, false) }},
	}
}

// producers is how many goroutines ask at once.
const producers = 8

func openDeferrals(n int, lanes bool) *contest.Contest {
	n = (n + producers - 1) / producers * producers
	c := &contest.Contest{Ops: n}
	w := newWorld(&c.Fault, 0)
	config := engineConfig()
	config.Rate, config.QueueSize, config.WindowBudget = int(time.Second), 2*n, time.Hour
	e, err := logic.New(w.Registry, config)
	if err != nil {
		c.Check(err)
		return c
	}
	queue := xsync.NewMPMCQueueOf[func(*registry.Window) error](2 * n)
	_, err = e.AddSystem(logic.PrePhysics, "empties", func(*logic.Frame) {
		for fn, ok := queue.TryDequeue(); ok; fn, ok = queue.TryDequeue() {
			_ = fn(nil) // always nil
		}
	})
	c.Check(err)
	ran := make(chan error, 1)
	go func() { ran <- e.Run(context.Background()) }()
	c.Close = func() {
		_ = e.Stop() // always nil
		<-ran
	}

	ways := make([]func(func(*registry.Window) error) error, producers)
	name := "Engine.Defer"
	for i := range ways {
		ways[i] = e.Defer
		if lanes {
			ways[i], name = e.Producer().Defer, "Producer.Defer"
		}
	}
	c.Ours = producing(name, n, func(i int, fn func(*registry.Window) error) error { return ways[i](fn) })
	c.Peers = []contest.Side{producing("xsync.MPMCQueueOf", n, func(_ int, fn func(*registry.Window) error) error {
		if !queue.TryEnqueue(fn) {
			return logic.ErrQueueFull
		}
		return nil
	})}
	return c
}

// producing is a side whose producers add n operations in all, and wait until all have run.
func producing(name string, n int, add func(producer int, fn func(*registry.Window) error) error) contest.Side {
	var ran uint64 // written by Logic, read when all have run
	return contest.Side{Name: name, Sum: func() uint64 { return ran },
		Run: func(t *contest.Timer, reps int) {
			for range reps {
				var all sync.WaitGroup
				done := make(chan struct{})
				left := n // Logic's
				fn := func(*registry.Window) error {
					ran++
					if left--; left == 0 {
						close(done)
					}
					return nil
				}
				t.Start()
				for i := range producers {
					all.Go(func() {
						for range n / producers {
							for errors.Is(add(i, fn), logic.ErrQueueFull) {
								runtime.Gosched()
							}
						}
					})
				}
				all.Wait()
				<-done
				t.Stop()
			}
		}}
}
