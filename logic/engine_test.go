package logic_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func TestNewRefusesAConfigOutOfRange(t *testing.T) {
	for name, c := range map[string]logic.Config{
		"Rate":         {Rate: -1},
		"Rate ":        {Rate: 2e9},
		"Workers":      {Workers: -1},
		"WindowBudget": {WindowBudget: -1},
		"QueueSize":    {QueueSize: -1},
		"QueueSize ":   {QueueSize: 1 << 50},
		"Watchdog":     {Watchdog: -1},
		"SyncTest":     {SyncTest: -1},
		"SyncTest ":    {SyncTest: 2},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := registry.New(registry.Config{})
			require.NoError(t, err)
			_, err = logic.New(r, c)
			require.ErrorContains(t, err, "logic: Config."+name[:len(name)-1])
		})
	}
	_, err := logic.New(nil, logic.Config{})
	assert.ErrorContains(t, err, "nil registry")
}

func TestNewRefusesALocalWindowBelowTheRing(t *testing.T) {
	for window, ok := range map[int]bool{-1: true, 0: true, 7: false, 8: true} {
		r, err := registry.New(registry.Config{TemporalFrames: 8})
		require.NoError(t, err)
		_, err = logic.New(r, logic.Config{LocalWindow: window})
		if ok {
			assert.NoError(t, err, window)
		} else {
			assert.ErrorContains(t, err, "below the ring depth 8", window)
		}
	}
}

func TestARegistryHasOneEngineAtATime(t *testing.T) {
	w := newWorld(t)
	_, err := logic.New(w.r, logic.Config{})
	require.ErrorIs(t, err, registry.ErrRunning)
	require.NoError(t, w.e.Stop())
	next, err := logic.New(w.r, logic.Config{})
	require.NoError(t, err)
	require.NoError(t, next.Step())
	require.NoError(t, next.Stop())
}

func TestStepAndRunExcludeEachOther(t *testing.T) {
	w := newWorld(t, fast)
	stop := w.run()
	require.ErrorIs(t, w.e.Step(), registry.ErrRunning)
	require.ErrorIs(t, w.e.Run(background()), registry.ErrRunning)
	require.ErrorIs(t, w.r.Update(noChange), registry.ErrRunning)
	require.NoError(t, stop())
	require.ErrorIs(t, w.e.Run(background()), logic.ErrStopped)
	require.ErrorIs(t, w.e.Step(), logic.ErrStopped)
	require.NoError(t, w.r.Update(noChange))
}

func TestNothingIsAcceptedAfterStop(t *testing.T) {
	w := newWorld(t)
	inbox, err := logic.NewInbox[int](w.e, 1)
	require.NoError(t, err)
	p := w.e.Producer()
	require.NoError(t, w.e.Stop())
	for what, err := range map[string]error{
		"Spawn":      w.e.Spawn(background(), noChange),
		"SpawnBatch": w.e.SpawnBatch(background(), noChange)[0],
		"Defer":      w.e.Defer(noChange),
		"lane":       p.Defer(noChange),
		"Inbox":      inbox.Send(1),
		"AddPeer":    w.e.AddPeer(1),
	} {
		assert.ErrorIs(t, err, logic.ErrStopped, what)
	}
	_, err = w.e.Enqueue(noChange)
	assert.ErrorIs(t, err, logic.ErrStopped)
	_, err = w.e.AddSystem(logic.Late, "late", func(*logic.Frame) {})
	assert.ErrorIs(t, err, logic.ErrStopped)
}

func TestNilCallbacksAreRefused(t *testing.T) {
	w := newWorld(t)
	assert.Error(t, w.e.Spawn(background(), nil))
	assert.Error(t, w.e.Defer(nil))
	_, err := w.e.Enqueue(nil)
	assert.Error(t, err)
	_, err = w.e.AddSystem(logic.Late, "nil", nil)
	assert.Error(t, err)
	_, err = w.e.AddSystem(logic.Phase(9), "nowhere", func(*logic.Frame) {})
	assert.ErrorContains(t, err, "phase 9")
	_, err = logic.NewInbox[int](w.e, 0)
	assert.Error(t, err)
	_, err = logic.NewInbox[int](nil, 1)
	assert.Error(t, err)

	errs := make(chan []error, 1)
	go func() { errs <- w.e.SpawnBatch(background(), noChange, nil, noChange) }()
	w.queued(1)
	w.step()
	got := <-errs
	assert.NoError(t, got[0])
	assert.Error(t, got[1])
	assert.NoError(t, got[2])
	assert.Empty(t, w.e.SpawnBatch(background()))
}

func TestRunReturnsTheContextsError(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(background())
	done := make(chan error, 1)
	go func() { done <- w.e.Run(ctx) }()
	require.NoError(t, w.e.Spawn(background(), noChange))
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.ErrorIs(t, w.e.Spawn(background(), noChange), logic.ErrStopped)
}

func TestAnEngineSleepsBetweenFramesAndCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *logic.Config) { c.Rate = 100 })
		began := time.Now()
		stop := w.run() // in the first frame, or in the second if that was quicker
		time.Sleep(time.Second - time.Millisecond - time.Since(began))
		synctest.Wait()
		require.EqualValues(t, 100, w.e.Stats().Frames)

		require.NoError(t, w.e.Spawn(background(), func(*registry.Window) error {
			time.Sleep(time.Second) // 100 frames late
			return nil
		}))
		synctest.Wait()
		s := w.e.Stats()
		assert.EqualValues(t, 94, s.DroppedFrames, "of 99 late ones, all but five are given up")
		assert.EqualValues(t, 107, s.Frames, "five late ones and the one that is due")
		assert.EqualValues(t, 107, w.e.FrameNumber())
		time.Sleep(time.Second)
		synctest.Wait()
		assert.EqualValues(t, 207, w.e.Stats().Frames, "then it goes on at its rate")
		require.NoError(t, stop())
	})
}

func TestStopWakesASleepingLogic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *logic.Config) { c.Rate = 1 })
		stop := w.run()
		start := time.Now()
		blocked := make(chan error, 1)
		go func() { blocked <- w.e.Spawn(background(), noChange) }()
		synctest.Wait()
		require.NoError(t, stop())
		require.ErrorIs(t, <-blocked, logic.ErrStopped)
		require.Zero(t, time.Since(start))
	})
}

func TestShutdownNamesWhoHoldsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.run()
		holding, release := make(chan struct{}), make(chan struct{})
		held := make(chan error, 1)
		go func() { held <- w.e.Spawn(background(), theStubbornOne(holding, release)) }()
		<-holding
		waiting := make(chan error, 1)
		go func() { waiting <- w.e.Spawn(background(), noChange) }()
		synctest.Wait()

		ctx, cancel := context.WithTimeout(background(), time.Second)
		defer cancel()
		err := w.e.Shutdown(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorContains(t, err, "Spawn callback")
		assert.ErrorContains(t, err, "theStubbornOne")
		require.ErrorIs(t, <-waiting, logic.ErrStopped, "nobody waits for the one who holds it")
		close(release)
		require.NoError(t, <-held)
		require.NoError(t, w.e.Shutdown(background()), "the second time it has come to an end")
	})
}

//go:noinline
func theStubbornOne(holding, release chan struct{}) func(*registry.Window) error {
	return func(*registry.Window) error {
		close(holding)
		<-release
		return nil
	}
}

func TestAnIdleEngineShutsDown(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.e.Shutdown(background()))
	require.NoError(t, w.e.Shutdown(background()))
	require.ErrorIs(t, w.e.Step(), logic.ErrStopped)
}

func TestStopAnswersDeferredOperations(t *testing.T) {
	for _, silent := range []bool{false, true} {
		w := newWorld(t, func(c *logic.Config) {
			if silent {
				c.OnError = nil
			}
		})
		tickets := make([]*logic.Ticket, 3)
		for i := range tickets {
			require.NoError(t, w.e.Defer(noChange))
			var err error
			tickets[i], err = w.e.Producer().Enqueue(noChange)
			require.NoError(t, err)
			require.NoError(t, tickets[i].Err(), "nil before Done")
		}
		require.Equal(t, 6, w.e.Stats().Queued)
		require.NoError(t, w.e.Stop())
		for _, ticket := range tickets {
			<-ticket.Done()
			require.ErrorIs(t, ticket.Err(), logic.ErrStopped)
		}
		told := w.told()
		if !silent {
			require.Len(t, told, 3)
		}
		for _, err := range told {
			require.ErrorIs(t, err, logic.ErrStopped)
		}
		require.Zero(t, w.e.Stats().Queued)
	}
}

func TestAStopInsideACallbackTakesEffectAfterTheFrame(t *testing.T) {
	for name, start := range map[string]func(*world) error{
		"Step": func(w *world) error { return w.e.Step() },
		"Run":  func(w *world) error { return w.e.Run(background()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var ran []string
			_, err := w.e.AddSystem(logic.PrePhysics, "stops", func(*logic.Frame) {
				assert.NoError(t, w.e.Stop())
				ran = append(ran, "stops")
			})
			require.NoError(t, err)
			_, err = w.e.AddSystem(logic.Late, "late", func(*logic.Frame) { ran = append(ran, "late") })
			require.NoError(t, err)
			require.NoError(t, start(w))
			assert.Equal(t, []string{"stops", "late"}, ran)
			require.ErrorIs(t, w.e.Step(), logic.ErrStopped)
		})
	}
}

func TestRollbackAndInputWithoutARing(t *testing.T) {
	w := newWorld(t)
	w.step()
	w.step()
	assert.NoError(t, w.e.Rollback(2))
	assert.ErrorIs(t, w.e.Rollback(1), logic.ErrTooOld)
	assert.ErrorIs(t, w.e.Rollback(3), registry.ErrNotPublished)
	assert.ErrorIs(t, w.e.Input(0, 1, nil), logic.ErrTooOld)
	assert.NoError(t, w.e.Input(0, 3, nil), "of a frame to come")
	assert.ErrorIs(t, w.e.Input(0, 1<<20, nil), registry.ErrNotPublished)
}

func TestASteadyStepAllocatesNothing(t *testing.T) {
	countsAllocations(t)
	w := newWorld(t)
	w.spawn(1)
	for _, p := range []logic.Phase{logic.PrePhysics, logic.Physics, logic.PostPhysics, logic.Late} {
		_, err := w.e.AddSystem(p, "idle", func(*logic.Frame) {})
		require.NoError(t, err)
	}
	w.step()
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = w.e.Step() }))
}

func TestAHandshakeAllocatesNothing(t *testing.T) {
	countsAllocations(t)
	if raceEnabled || check.Enabled {
		t.Skip("the race detector makes sync.Pool forget, and checks cost memory")
	}
	w := newWorld(t, fast)
	w.run()
	assert.Zero(t, testing.AllocsPerRun(1000, func() { _ = w.e.Spawn(background(), noChange) }))
	lane := w.e.Producer()
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		_ = lane.Defer(noChange)
		_ = w.e.Defer(noChange)
		_ = w.e.Spawn(background(), noChange)
	}))
}
