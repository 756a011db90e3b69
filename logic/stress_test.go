package logic_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// ledger counts every operation of a stress: what was asked for, what ran, what was answered.
type ledger struct {
	asked, refused, cancelled, stopped, failed, done atomic.Int64 // asked = the sum of the others
	ran                                              atomic.Int64 // callbacks that ran = done + failed
	deferred, dropped                                atomic.Int64 // deferred = those that ran + dropped
	born, died                                       atomic.Int64
}

// answer books the outcome of an operation whose callback ran times times.
func (l *ledger) answer(t testing.TB, ran int32, err error) {
	l.ran.Add(int64(ran))
	switch {
	case err == nil:
		l.done.Add(1)
		assert.EqualValues(t, 1, ran, "done")
	case errors.Is(err, logic.ErrQueueFull):
		l.refused.Add(1)
		assert.Zero(t, ran, "refused")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		l.cancelled.Add(1)
		assert.Zero(t, ran, "cancelled")
	case errors.Is(err, logic.ErrStopped):
		l.stopped.Add(1)
		assert.Zero(t, ran, "stopped")
	default:
		l.failed.Add(1)
		assert.EqualValues(t, 1, ran, "failed")
	}
}

// stress is a world that many goroutines do random things to.
type stress struct {
	*world
	ledger

	mu    sync.Mutex // guards alive
	alive []handles.Local
}

// note remembers a living entity for others to destroy.
func (s *stress) note(h handles.Local) {
	s.born.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive = append(s.alive, h)
}

// pick takes a living entity, or one that somebody else has destroyed meanwhile.
func (s *stress) pick(rng *rand.Rand) handles.Local {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.alive) == 0 {
		return 0
	}
	i := rng.IntN(len(s.alive))
	h := s.alive[i]
	if rng.IntN(4) > 0 {
		s.alive[i] = s.alive[len(s.alive)-1]
		s.alive = s.alive[:len(s.alive)-1]
	}
	return h
}

// callback is an operation on the world, and how often it ran. What it spawned counts only if
// it committed, so its answer books that.
type callback struct {
	s    *stress
	ran  atomic.Int32
	born []handles.Local
	died int64
	fn   func(*registry.Window) error
}

func (s *stress) callback(rng *rand.Rand) *callback {
	c := &callback{s: s}
	what, victim, n := rng.IntN(10), s.pick(rng), rng.IntN(3)
	c.fn = func(win *registry.Window) error {
		c.ran.Add(1)
		for range n {
			h, err := s.class.Spawn(win, thing{value{n}})
			if err != nil {
				return err
			}
			c.born = append(c.born, h)
		}
		if win.Destroy(victim) == nil {
			c.died++
		}
		switch what {
		case 0:
			return errTest
		case 1:
			panic(errTest)
		}
		return nil
	}
	return c
}

// commit books what the callback did, if it came to stay.
func (c *callback) commit(err error) error {
	if err == nil && c.ran.Load() > 0 {
		c.s.died.Add(c.died)
		for _, h := range c.born {
			c.s.note(h)
		}
	}
	return err
}

// act does one random thing.
func (s *stress) act(rng *rand.Rand, lane *logic.Producer) {
	switch rng.IntN(8) {
	case 0, 1: // a handshake, now and then one that gives up
		ctx, cancel := context.Background(), context.CancelFunc(func() {})
		if rng.IntN(3) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(rng.IntN(300))*time.Microsecond)
		}
		c := s.callback(rng)
		s.asked.Add(1)
		err := recovered(func() error { return c.commit(s.e.Spawn(ctx, c.fn)) })
		s.answer(s.t, c.ran.Load(), err)
		cancel()
	case 2:
		cs := []*callback{s.callback(rng), s.callback(rng), s.callback(rng)}
		s.asked.Add(3)
		errs := s.e.SpawnBatch(context.Background(), cs[0].fn, cs[1].fn, cs[2].fn)
		for i, err := range errs {
			s.answer(s.t, cs[i].ran.Load(), cs[i].commit(err))
		}
	case 3, 4:
		c := s.callback(rng)
		s.asked.Add(1)
		enqueue := s.e.Enqueue
		if rng.IntN(2) == 0 {
			enqueue = lane.Enqueue
		}
		ticket, err := enqueue(c.fn)
		if err == nil {
			<-ticket.Done()
			err = c.commit(ticket.Err())
		}
		s.answer(s.t, c.ran.Load(), err)
	case 5: // deferred ones answer to OnError
		fn := func(win *registry.Window) error {
			s.deferred.Add(-1)
			_, err := s.class.Spawn(win, thing{})
			if err == nil {
				s.born.Add(1) // nothing can fail any more
			}
			return err
		}
		s.deferred.Add(1)
		enqueue := s.e.Defer
		if rng.IntN(2) == 0 {
			enqueue = lane.Defer
		}
		if err := enqueue(fn); err != nil {
			s.deferred.Add(-1)
		}
	case 6:
		if s.r.Destroy(s.pick(rng)) == nil {
			s.died.Add(1)
		}
	case 7:
		h, err := s.r.Reserve()
		if err != nil {
			return
		}
		if rng.IntN(2) == 0 {
			_ = s.r.Destroy(h)
			return
		}
		err = s.e.Spawn(context.Background(), func(win *registry.Window) error { return s.class.SpawnReserved(win, h, thing{}) })
		if err == nil {
			s.note(h)
		} else {
			_ = s.r.Destroy(h)
		}
	}
}

// recovered gives the error that fn panicked with as its answer.
func recovered(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = v.(error)
		}
	}()
	return fn()
}

func TestSixteenGoroutinesAndEveryOperationHasOneOutcome(t *testing.T) {
	for _, goroutines := range []int{2, 16, 100} {
		for _, queue := range []int{4, 0} {
			took := 500 * time.Millisecond
			if goroutines == 16 && queue == 0 && !testing.Short() {
				took = 3 * time.Second
			}
			s := &stress{world: newWorld(t, fast, func(c *logic.Config) {
				c.WindowBudget = 200 * time.Microsecond
				c.QueueSize = queue
			})}
			stop := s.run()
			var wg sync.WaitGroup
			seed := rand.Uint64()
			t.Logf("%d goroutines, queue %d, seed %d", goroutines, queue, seed)
			over := time.Now().Add(took)
			for g := range goroutines {
				wg.Go(func() {
					rng, lane := rand.New(rand.NewPCG(seed, uint64(g))), s.e.Producer()
					for time.Now().Before(over) || rng.IntN(8) > 0 { // some are still at it when the engine stops
						s.act(rng, lane)
					}
				})
			}
			<-time.After(took)
			require.NoError(t, soon(t, "Stop", stop))
			soon(t, "the goroutines", func() error { wg.Wait(); return nil })
			require.NoError(t, s.r.Verify())
			for _, err := range s.told() {
				if errors.Is(err, logic.ErrStopped) {
					s.dropped.Add(1)
				} else {
					t.Error(err)
				}
			}
			l := &s.ledger
			assert.Equal(t, l.asked.Load(), l.refused.Load()+l.cancelled.Load()+l.stopped.Load()+l.failed.Load()+l.done.Load())
			assert.Equal(t, l.ran.Load(), l.done.Load()+l.failed.Load())
			assert.Equal(t, l.deferred.Load(), l.dropped.Load())
			assert.EqualValues(t, l.born.Load()-l.died.Load(), s.r.Stats().Live)
			st := s.e.Stats()
			assert.Zero(t, st.Waiting)
			assert.Zero(t, st.Queued)
			t.Logf("%d frames, %d asked, %d done, %d failed, %d refused, %d cancelled, %d stopped, %d dropped, %d born",
				st.Frames, l.asked.Load(), l.done.Load(), l.failed.Load(), l.refused.Load(), l.cancelled.Load(), l.stopped.Load(), l.dropped.Load(), l.born.Load())
		}
	}
}
