//go:build faults

package logic_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// traffic is goroutines that ask for everything there is until the engine stops, and what became of it.
type traffic struct {
	*world
	t testing.TB
	ledger
	group sync.WaitGroup
}

// once counts how often the callback of an operation runs; what it spawns shows whether it was applied.
func (tr *traffic) once(ran *atomic.Int32) func(*registry.Window) error {
	return func(win *registry.Window) error {
		ran.Add(1)
		h, err := tr.class.Spawn(win, thing{})
		if err != nil {
			return err
		}
		return win.Destroy(h)
	}
}

// ask does one thing after the other until one is answered with ErrStopped.
func (tr *traffic) ask(one func(ran *atomic.Int32) error) {
	tr.group.Go(func() {
		for {
			var ran atomic.Int32
			tr.asked.Add(1)
			err := one(&ran)
			tr.answer(tr.t, ran.Load(), err)
			if logic.StopAsked(tr.e) && errors.Is(err, logic.ErrStopped) {
				return
			}
		}
	})
}

func (tr *traffic) start() {
	tr.ask(func(ran *atomic.Int32) error { return tr.e.Spawn(background(), tr.once(ran)) })
	tr.ask(func(ran *atomic.Int32) error { // gives up now and then, early or late
		ctx, cancel := context.WithCancel(background())
		defer cancel()
		over := make(chan struct{})
		go func() {
			defer close(over)
			for range ran.Load() + int32(tr.asked.Load()%4) {
				yield()
			}
			cancel()
		}()
		err := tr.e.Spawn(ctx, tr.once(ran))
		<-over
		return err
	})
	tr.ask(func(ran *atomic.Int32) error {
		var first atomic.Int32
		errs := tr.e.SpawnBatch(background(), tr.once(&first), tr.once(ran))
		if (errs[0] == nil) != (errs[1] == nil) {
			return errors.New("a batch that half ran")
		}
		return errs[1]
	})
	lane := tr.e.Producer()
	for _, enqueue := range []func(func(*registry.Window) error) (*logic.Ticket, error){tr.e.Enqueue, lane.Enqueue} {
		tr.ask(func(ran *atomic.Int32) error {
			t, err := enqueue(tr.once(ran))
			if err != nil {
				return err
			}
			<-t.Done()
			return t.Err()
		})
	}
}

// stopAt has some goroutines stop a busy engine at the instant in which one comes by a point.
func stopAt(t *testing.T, p fault.Point, stoppers int) {
	w := newWorldIn(t, registry.Config{MaxEntities: 1 << 10}, fast, func(c *logic.Config) { c.QueueSize = 64 })
	tr := &traffic{world: w, t: t}
	stop := w.run()
	var stops sync.WaitGroup
	stopAll := func() {
		for range stoppers {
			stops.Go(func() { assert.NoError(t, w.e.Stop()) })
		}
		for !logic.StopAsked(w.e) {
			runtime.Gosched()
		}
	}
	var hit atomic.Bool
	done := make(chan struct{})
	defer fault.Hang(p, func() {
		if hit.CompareAndSwap(false, true) {
			stopAll()
			close(done)
		}
	})()
	tr.start()
	switch {
	case p == fault.Looking:
		tr.group.Go(func() {
			for !logic.StopAsked(w.e) {
				w.e.Doing()
				yield()
			}
		})
	case p >= fault.Stopping: // who stops comes by
		go func() { _ = w.e.Stop() }()
	}
	soon(t, "coming by "+p.String(), func() bool { <-done; return true })
	soon(t, "who asks", func() bool { tr.group.Wait(); return true })
	soon(t, "who stops", func() bool { stops.Wait(); return true })
	require.NoError(t, stop())
	assert.Equal(t, tr.asked.Load(), tr.done.Load()+tr.refused.Load()+tr.cancelled.Load()+tr.stopped.Load())
	assert.Zero(t, tr.failed.Load())
	s := w.e.Stats()
	assert.Zero(t, s.Waiting)
	assert.Zero(t, s.Queued)
	assert.Zero(t, w.r.Stats().Live)
	require.NoError(t, w.r.Verify())
}

func TestAStopAtEveryPoint(t *testing.T) {
	for p := range fault.Points {
		t.Run(fault.Point(p).String(), func(t *testing.T) {
			for i := range many(2, 1000) {
				stopAt(t, fault.Point(p), 1+(p+i*5)%16)
				if t.Failed() {
					t.Fatalf("round %d", i)
				}
			}
		})
	}
}

// certain says what becomes of a caller whose context ends at a point: the callback runs if it was
// granted before, and does not if it was not. Where neither is certain it is one or the other.
var certain = map[fault.Point]bool{
	fault.Queued: false, fault.Parking: false, fault.Granted: false, fault.Collecting: false, fault.Admitting: false,
	fault.HandingOn: false, fault.Entering: true, fault.Returned: true, fault.HandingBack: true,
	fault.WindowShuts: true, fault.Publishing: true,
}

func TestACancellationAtEveryPoint(t *testing.T) {
	for _, p := range []fault.Point{
		fault.Queued, fault.Parking, fault.Cancelling, fault.Granted, fault.Entering, fault.Returned, fault.HandingOn,
		fault.HandingBack, fault.Collecting, fault.Admitting, fault.Sleeping, fault.WindowShuts, fault.Publishing,
	} {
		t.Run(p.String(), func(t *testing.T) {
			w := newWorld(t)
			for i := range many(20, 10_000) {
				cancelAt(t, w, p, i)
				if t.Failed() {
					t.Fatalf("round %d", i)
				}
			}
			require.NoError(t, w.r.Verify())
		})
	}
}

// cancelAt has the context of a caller end at a point, with others in line before and behind it.
func cancelAt(t *testing.T, w *world, p fault.Point, round int) {
	type caller struct {
		ran atomic.Int32
		err error
	}
	ctx, cancel := context.WithCancel(background())
	defer cancel()
	var hit, armed atomic.Bool
	down := fault.Hang(p, func() {
		if armed.Load() && hit.CompareAndSwap(false, true) {
			cancel()
		}
	})
	defer down()
	callers := make([]caller, 1+round%3)
	var group sync.WaitGroup
	ask := func(c *caller, ctx context.Context) {
		group.Go(func() {
			c.err = w.e.Spawn(ctx, func(win *registry.Window) error {
				c.ran.Add(1)
				h, err := w.class.Spawn(win, thing{})
				if err != nil {
					return err
				}
				return win.Destroy(h)
			})
		})
	}
	alone := len(callers) == 1
	for i := range callers[1:] {
		ask(&callers[i+1], background())
	}
	if !alone {
		w.queued(len(callers) - 1)
	}
	armed.Store(true)
	ask(&callers[0], ctx)
	early := p == fault.Queued || p == fault.Parking || p == fault.Cancelling
	if p == fault.Cancelling { // for that, it is cancelled already
		w.queuedOrCancelled(len(callers), ctx)
		cancel()
	}
	if !early {
		w.queued(len(callers))
	} else {
		w.queuedOrCancelled(len(callers), ctx)
	}
	w.step()
	soon(t, "callers", func() bool { group.Wait(); return true })
	for i := range callers {
		c := &callers[i]
		if c.err == nil {
			assert.EqualValues(t, 1, c.ran.Load(), "caller %d", i)
		} else {
			assert.ErrorIs(t, c.err, context.Canceled)
			assert.Zero(t, c.ran.Load(), "caller %d", i)
			assert.Zero(t, i, "only one was cancelled")
		}
	}
	if ran, sure := certain[p]; alone && sure && hit.Load() {
		assert.Equal(t, ran, callers[0].ran.Load() == 1, "alone at %v", p)
	}
	assert.True(t, hit.Load() || p == fault.Parking || p == fault.Cancelling || p == fault.Sleeping, "nobody came by %v", p)
	assert.Zero(t, w.e.Stats().Waiting)
}

// queuedOrCancelled waits until so many callers wait at the door, or ctx has ended.
func (w *world) queuedOrCancelled(callers int, ctx context.Context) {
	for w.e.Stats().Waiting < callers && ctx.Err() == nil {
		yield()
	}
}

// Who asks what Logic does as it passes from one callback to another is told of neither.
func TestAtThePointOfLookingAnotherCallbackBegins(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	e, err := logic.New(r, logic.Config{})
	require.NoError(t, err)
	begun, over := [2]chan struct{}{make(chan struct{}), make(chan struct{})}, make(chan struct{}, 2)
	for i, name := range []string{"one", "other"} {
		_, err := e.AddSystem(logic.Late, name, func(*logic.Frame) { begun[i] <- struct{}{}; <-over })
		require.NoError(t, err)
	}
	var frame sync.WaitGroup
	frame.Go(func() { assert.NoError(t, e.Step()) })
	<-begun[0]
	assert.Equal(t, "system one", e.Doing().What)
	down := fault.Hang(fault.Looking, func() { over <- struct{}{}; <-begun[1] })
	d := e.Doing()
	down()
	assert.Empty(t, d.What)
	assert.Equal(t, "system other", e.Doing().What)
	over <- struct{}{}
	frame.Wait()
	require.NoError(t, e.Stop())
}

// Whatever the order in which goroutines run, a window is handed on without a loss: everybody who comes by a point
// lets the others go first.
func TestYieldsAtEveryPointLoseNobody(t *testing.T) {
	var turn atomic.Uint32
	for p := range fault.Points {
		defer fault.Hang(fault.Point(p), func() {
			for range turn.Add(0x9e3779b9) >> 29 {
				runtime.Gosched()
			}
		})()
	}
	for range many(1, 100) {
		w := newWorld(t, fast)
		tr := &traffic{world: w, t: t}
		stop := w.run()
		tr.start()
		tr.start()
		for tr.done.Load() < 500 {
			yield()
		}
		require.NoError(t, stop())
		tr.group.Wait()
		assert.Equal(t, tr.asked.Load(), tr.done.Load()+tr.refused.Load()+tr.cancelled.Load()+tr.stopped.Load())
		assert.Equal(t, tr.ran.Load(), tr.done.Load())
	}
}

// Who stops is held up between the mark and the door, or between the door and those in front of it. Logic sees the mark, and
// ends: by then everybody who waits is answered all the same.
func TestAnEngineHasNotEndedBeforeAllAreAnswered(t *testing.T) {
	for _, p := range []fault.Point{fault.Stopping, fault.Shutting} {
		t.Run(p.String(), func(t *testing.T) {
			w := newWorld(t)
			busy, resume := make(chan struct{}), make(chan struct{})
			_, err := w.e.AddSystem(logic.Late, "busy", func(*logic.Frame) { close(busy); <-resume })
			require.NoError(t, err)
			stepped, answer := make(chan error, 1), make(chan error, 1)
			go func() { stepped <- w.e.Step() }()
			<-busy
			go func() { answer <- w.e.Spawn(background(), func(*registry.Window) error { return nil }) }()
			w.queued(1)
			held, release := make(chan struct{}), make(chan struct{})
			var once atomic.Bool
			down := fault.Hang(p, func() {
				if once.CompareAndSwap(false, true) {
					close(held)
					<-release
				}
			})
			defer down()
			stopped := make(chan error, 1)
			go func() { stopped <- w.e.Stop() }()
			<-held
			close(resume)
			require.NoError(t, <-stepped)
			<-w.e.Done()
			select {
			case err := <-answer:
				assert.ErrorIs(t, err, logic.ErrStopped)
			case <-time.After(time.Second):
				assert.Fail(t, "the engine has ended, and somebody waits")
			}
			close(release)
			require.NoError(t, <-stopped)
		})
	}
}

// A caller who is cancelled as he gets the window is not the one operation that every frame serves.
func TestACancelledCallerDoesNotCountAsServed(t *testing.T) {
	w := newWorldIn(t, registry.Config{MaxEntities: 8}, func(c *logic.Config) { c.WindowBudget = time.Nanosecond })
	ctx, cancel := context.WithCancel(background())
	defer cancel()
	cancelled, served := make(chan error, 1), make(chan error, 1)
	nothing := func(*registry.Window) error { return nil }
	go func() { cancelled <- w.e.Spawn(ctx, nothing) }()
	w.queued(1)
	go func() { served <- w.e.Spawn(background(), nothing) }()
	w.queued(2)
	defer fault.Hang(fault.Granted, cancel)()
	w.step()
	require.ErrorIs(t, <-cancelled, context.Canceled)
	w.queued(0)
	require.NoError(t, <-served)
}
