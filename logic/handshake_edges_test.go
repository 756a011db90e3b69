package logic_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func TestTheLastPlaceMayGoWhileACallerComes(t *testing.T) {
	g := logic.NewGate()
	require.ErrorIs(t, g.PassAsTheQueueFills(func() { t.Error("it has no place") }), logic.ErrQueueFull)
	n, _, _ := g.Serve()
	require.Zero(t, n, "who left is passed over")
	passed := make(chan error, 1)
	go func() { passed <- g.Pass(func() {}) }()
	for n == 0 {
		n, _, _ = g.Serve()
		yield()
	}
	require.NoError(t, <-passed)
	g.Shut()
	require.ErrorIs(t, g.Pass(func() {}), logic.ErrStopped)
}

// A queue that is full when the engine stops says that it has stopped: to wait and try again is of no use.
func TestAFullQueueOfAStoppingEngineIsStopped(t *testing.T) {
	w := newWorld(t, func(c *logic.Config) { c.QueueSize = 1 })
	var answers []error
	_, err := w.e.AddSystem(logic.Physics, "stops", func(*logic.Frame) {
		answers = append(answers, w.e.Defer(noChange), w.e.Defer(noChange), w.e.Stop(), w.e.Defer(noChange))
		_, err := w.e.Enqueue(noChange)
		answers = append(answers, err)
	})
	require.NoError(t, err)
	w.step()
	require.Equal(t, []error{nil, logic.ErrQueueFull, nil, logic.ErrStopped, logic.ErrStopped}, answers)
	require.NoError(t, soon(t, "Stop", w.e.Stop))
	told := w.told()
	require.Len(t, told, 1, "the one that was accepted is answered")
	require.ErrorIs(t, told[0], logic.ErrStopped)
	require.Zero(t, w.e.Stats().Queued)
}

// What a spent budget has left over is answered when the engine stops, before what came later.
func TestAStopAnswersWhatTheBudgetLeft(t *testing.T) {
	w := newWorld(t, func(c *logic.Config) { c.WindowBudget = time.Nanosecond })
	var tickets []*logic.Ticket
	enqueue := func() {
		ticket, err := w.e.Enqueue(noChange)
		require.NoError(t, err)
		tickets = append(tickets, ticket)
	}
	for range 3 {
		enqueue()
	}
	caller := make(chan error, 1)
	go func() { caller <- w.e.Spawn(background(), noChange) }()
	w.queued(1)
	w.step()
	enqueue()
	require.Equal(t, 3, w.e.Stats().Queued, "one was served")
	require.NoError(t, soon(t, "Stop", w.e.Stop))
	require.NoError(t, tickets[0].Err())
	for _, ticket := range tickets[1:] {
		<-ticket.Done()
		require.ErrorIs(t, ticket.Err(), logic.ErrStopped)
	}
	require.ErrorIs(t, soon(t, "the caller", func() error { return <-caller }), logic.ErrStopped)
	require.Zero(t, w.e.Stats().Queued+w.e.Stats().Waiting)
}

func TestRunInsideAnUpdateIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.update(func(*registry.Window) error {
		assert.ErrorIs(t, w.e.Run(background()), logic.ErrWouldDeadlock)
		return nil
	})
	w.step()
	stop := w.run()
	require.NoError(t, stop())
}

// A caller of Update who stops the engine that he keeps from running has ended it.
func TestStopInsideAnUpdateTakesEffect(t *testing.T) {
	w := newWorld(t)
	w.update(func(*registry.Window) error {
		require.NoError(t, w.e.Stop())
		require.ErrorIs(t, w.e.Run(background()), logic.ErrStopped)
		return nil
	})
	require.NoError(t, soon(t, "Stop", w.e.Stop))
	require.ErrorIs(t, w.e.Step(), logic.ErrStopped)
}

// What keeps an engine from ending need not be a callback: then Shutdown can name none.
func TestShutdownThatWaitsForTheLog(t *testing.T) {
	w := newWorld(t, func(c *logic.Config) { c.OnError = nil })
	require.NoError(t, w.e.Defer(noChange))
	logging, resume := make(chan struct{}), make(chan struct{})
	w.log.set(func() { close(logging); <-resume })
	ctx, cancel := context.WithCancel(background())
	cancel()
	err := w.e.Shutdown(ctx)
	require.ErrorIs(t, err, context.Canceled)
	<-logging
	err = w.e.Shutdown(ctx)
	require.EqualError(t, err, "logic: shutdown: context canceled")
	close(resume)
	require.NoError(t, soon(t, "Shutdown", func() error { return w.e.Shutdown(background()) }))
}

// busyLog is a log whose first line takes a second.
type busyLog struct {
	slog.Handler
	begun atomic.Bool
}

func (l *busyLog) Handle(ctx context.Context, r slog.Record) error {
	if l.begun.CompareAndSwap(false, true) {
		time.Sleep(time.Second)
	}
	return l.Handler.Handle(ctx, r)
}

// The watchdog hangs in the log while it tells of one callback. Another one that takes too long meanwhile is found by
// Logic, or by the next in line, once it has ended.
func TestOverrunsThatTheWatchdogIsTooBusyToSee(t *testing.T) {
	slow := func() { time.Sleep(60 * time.Millisecond) }
	slowOp := func(*registry.Window) error { slow(); return nil }
	for want, arrange := range map[string]func(t *testing.T, w *world, group *sync.WaitGroup){
		"Spawn callback": func(t *testing.T, w *world, group *sync.WaitGroup) { // told by who ran it
			for _, fn := range []func(*registry.Window) error{slowOp, slowOp, noChange} {
				group.Go(func() { assert.NoError(t, w.e.Spawn(background(), fn)) })
				synctest.Wait()
			}
		},
		"Spawn callback ": func(t *testing.T, w *world, group *sync.WaitGroup) { // it was the last in line: told by Logic
			for range 2 {
				group.Go(func() { assert.NoError(t, w.e.Spawn(background(), slowOp)) })
				synctest.Wait()
			}
		},
		"Spawn callback  ": func(t *testing.T, w *world, group *sync.WaitGroup) { // within a batch
			group.Go(func() {
				for _, err := range w.e.SpawnBatch(background(), slowOp, slowOp, noChange) {
					assert.NoError(t, err)
				}
			})
			synctest.Wait()
		},
		"deferred operation": func(t *testing.T, w *world, _ *sync.WaitGroup) {
			require.NoError(t, w.e.Defer(slowOp))
			require.NoError(t, w.e.Defer(slowOp))
		},
		"system second": func(t *testing.T, w *world, _ *sync.WaitGroup) {
			for _, name := range []string{"first", "second"} {
				_, err := w.e.AddSystem(logic.Physics, name, func(*logic.Frame) { slow() })
				require.NoError(t, err)
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var text bytes.Buffer
			w := newWorld(t, func(c *logic.Config) {
				c.Watchdog = 50 * time.Millisecond
				c.Logger = slog.New(&busyLog{Handler: slog.NewTextHandler(&text, nil)})
			})
			var group sync.WaitGroup
			arrange(t, w, &group)
			w.step()
			group.Wait()
			assert.EqualValues(t, 2, w.e.Stats().Overruns, want)
			assert.Equal(t, 2, bytes.Count(text.Bytes(), []byte("overran the watchdog")), "%s: %s", want, text.String())
			first, _, _ := bytes.Cut(text.Bytes(), []byte("\n"))
			assert.Contains(t, string(first), "took=60ms", "the one that ended is told first: the other line takes long")
		})
	}
}

// Shutdown, which names the callback that keeps Logic, does not take its overrun from the watchdog, who tells it.
func TestAnOverrunThatShutdownSeesFirstIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		w := newWorld(t, func(c *logic.Config) {
			c.Watchdog = 50 * time.Millisecond
			c.Logger = slog.New(&busyLog{Handler: slog.NewTextHandler(&text, nil)})
		})
		require.NoError(t, w.e.Defer(func(*registry.Window) error { time.Sleep(60 * time.Millisecond); return nil }))
		require.NoError(t, w.e.Defer(func(*registry.Window) error { time.Sleep(2 * time.Second); return nil }))
		stepped := make(chan error, 1)
		go func() { stepped <- w.e.Step() }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(background(), 500*time.Millisecond) // the watchdog hangs in the log for twice that
		defer cancel()
		require.ErrorContains(t, w.e.Shutdown(ctx), "deferred operation")
		require.NoError(t, <-stepped)
		assert.EqualValues(t, 2, w.e.Stats().Overruns)
		assert.Equal(t, 2, bytes.Count(text.Bytes(), []byte("overran the watchdog")), text.String())
	})
}

func TestCompactionThatTakesTooLongIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := scattered(t, 20_000, registry.Config{})
		var text bytes.Buffer
		e, err := logic.New(r, logic.Config{
			Defrag: logic.Defrag{Moves: 150}, Watchdog: 50 * time.Millisecond, WindowBudget: time.Hour,
			Logger: slog.New(&busyLog{Handler: slog.NewTextHandler(&text, nil)}),
		})
		require.NoError(t, err)
		slow := func() { time.Sleep(60 * time.Millisecond) }
		_, err = r.OnMove(func([]registry.Move) { slow() })
		require.NoError(t, err)
		require.NoError(t, e.Defer(func(*registry.Window) error { slow(); return nil })) // the watchdog tells of that one
		require.NoError(t, e.Step())
		require.EqualValues(t, 2, e.Stats().Overruns)
		require.Contains(t, text.String(), "cause=compaction")
		require.NoError(t, e.Stop())
	})
}

func TestOneOfSeveralSystemsLeaves(t *testing.T) {
	w := newWorld(t)
	var ran []string
	systems := map[string]*logic.System{}
	for _, name := range []string{"a", "b", "c"} {
		var err error
		systems[name], err = w.e.AddSystem(logic.Physics, name, func(*logic.Frame) { ran = append(ran, name) })
		require.NoError(t, err)
	}
	w.step()
	require.NoError(t, systems["b"].Remove())
	w.step()
	require.Equal(t, []string{"a", "b", "c", "a", "c"}, ran)
}

// A copy of a histogram may have counted an observation that is in none of its buckets yet.
func TestAQuantileBeyondTheBucketsIsTheLargest(t *testing.T) {
	h := logic.Observe(1000, 2000, 4000)
	h.Count++
	require.Equal(t, h.Max, h.Quantile(1))
	require.Equal(t, 4*time.Microsecond, h.Max)
}

// An engine that is stopped while an Update goes on ends behind it: OnError hears of one thing at a time, from who owns the registry.
func TestAStopWaitsForAnUpdate(t *testing.T) {
	var inside, most atomic.Int32
	hearing, resume := make(chan struct{}), make(chan struct{})
	let := sync.OnceFunc(func() { close(resume) })
	defer let()
	w := newWorld(t, func(c *logic.Config) {
		c.OnError = func(err error) {
			most.Store(max(most.Load(), inside.Add(1)))
			defer inside.Add(-1)
			if !errors.Is(err, logic.ErrStopped) {
				close(hearing)
				<-resume
			}
		}
	})
	_, err := w.r.Observe(registry.Spawned, func(*registry.Frame, []registry.Event) { panic(errTest) })
	require.NoError(t, err)
	require.NoError(t, w.e.Defer(noChange))
	updated, stopped := make(chan error, 1), make(chan error, 1)
	go func() {
		updated <- w.r.Update(func(win *registry.Window) error { _, err := w.class.Spawn(win, thing{}); return err })
	}()
	<-hearing
	go func() { stopped <- w.e.Stop() }()
	ctx, cancel := context.WithTimeout(background(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, w.e.Shutdown(ctx), context.DeadlineExceeded)
	let()
	require.NoError(t, <-updated)
	require.NoError(t, soon(t, "Stop", func() error { return <-stopped }))
	require.EqualValues(t, 1, most.Load())
}
