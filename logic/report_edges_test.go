package logic_test

import (
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

// A log handler that ends its goroutine, as t.FailNow does, while it hears that something took too long, takes neither the answer of
// an operation with it nor the failure of a system.
func TestALogHandlerThatExitsTakesNoOutcomeWithIt(t *testing.T) {
	slow := func() { time.Sleep(60 * time.Millisecond) }
	hasty := func(c *logic.Config) { c.Watchdog = 50 * time.Millisecond }
	// The watchdog hangs in the log while what is slow comes to its end: Logic tells of that.
	arrange := func(w *world) {
		require.NoError(w.t, w.e.Defer(func(*registry.Window) error { slow(); return nil }))
		w.log.set(func() {
			w.log.set(runtime.Goexit)
			time.Sleep(time.Second)
		})
	}
	for name, end := range map[string]func() error{
		"success": func() error { return nil },
		"error":   func() error { return errTest },
		"panic":   func() error { panic(errTest) },
		"exit":    func() error { runtime.Goexit(); return nil },
	} {
		t.Run("operation "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, hasty)
				arrange(w)
				ticket, err := w.e.Enqueue(func(*registry.Window) error { slow(); return end() })
				require.NoError(t, err)
				w.step()
				select {
				case <-ticket.Done():
				default:
					require.FailNow(t, "an operation that ran has no answer")
				}
				switch name {
				case "success":
					assert.NoError(t, ticket.Err())
				case "error", "panic":
					assert.ErrorIs(t, ticket.Err(), errTest)
				case "exit":
					assert.ErrorIs(t, ticket.Err(), registry.ErrGoexit)
				}
			})
		})
	}
	for name, end := range map[string]func(){"panic": func() { panic(errTest) }, "exit": runtime.Goexit} {
		t.Run("system "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, hasty)
				arrange(w)
				later := 0
				_, err := w.e.AddSystem(logic.Physics, "slow", func(*logic.Frame) { slow(); end() })
				require.NoError(t, err)
				_, err = w.e.AddSystem(logic.Physics, "later", func(*logic.Frame) { later++ })
				require.NoError(t, err)
				err = w.e.Step()
				var failure *registry.PanicError
				require.ErrorAs(t, err, &failure)
				assert.Equal(t, "slow", failure.Where)
				assert.Len(t, w.told(), 1)
				assert.Equal(t, 1, later)
			})
		})
	}
	t.Run("compaction", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, _ := scattered(t, 20_000, registry.Config{})
			w := &world{t: t, r: r}
			var told []error
			e, err := logic.New(r, logic.Config{
				Defrag: logic.Defrag{Moves: 150}, WindowBudget: time.Hour, Watchdog: 50 * time.Millisecond, Logger: slog.New(&w.log),
				OnError: func(err error) { told = append(told, err) },
			})
			require.NoError(t, err)
			defer e.Stop()
			w.e = e
			bug := errors.New("bug")
			logic.CompactionFails(e, bug, slow)
			arrange(w)
			w.step()
			require.Len(t, told, 1)
			require.ErrorIs(t, told[0], bug)
		})
	})
}

// A log handler counts as a callback wherever Logic calls it: it need not be that something else ran just then.
func TestALogHandlerThatWaitsForItselfIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := scattered(t, 20_000, registry.Config{})
		w := &world{t: t, r: r}
		e, err := logic.New(r, logic.Config{Defrag: logic.Defrag{Moves: 150}, Logger: slog.New(&w.log)})
		require.NoError(t, err)
		defer e.Stop()
		logic.CompactionFails(e, errTest)
		answer, stepped := make(chan error, 1), make(chan error, 1)
		w.log.set(func() { answer <- e.Spawn(background(), noChange) })
		go func() { stepped <- e.Step() }()
		select {
		case err := <-answer:
			require.ErrorIs(t, err, logic.ErrWouldDeadlock)
		case <-time.After(time.Second):
			require.FailNow(t, "the log handler waits for itself")
		}
		require.NoError(t, <-stepped)
	})
}

// A log handler that ends its goroutine while the watchdog tells of an overrun ends neither the frame nor the engine.
func TestALogHandlerThatExitsDoesNotEndTheSupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *logic.Config) { c.Watchdog = 50 * time.Millisecond })
		w.log.set(runtime.Goexit)
		require.NoError(t, w.e.Defer(func(*registry.Window) error { time.Sleep(time.Second); return nil }))
		answer, stepped := errors.New("none"), make(chan struct{})
		go func() {
			defer close(stepped)
			answer = w.e.Step()
		}()
		<-stepped
		require.NoError(t, answer)
		w.step()
		require.NoError(t, w.e.Stop())
	})
}

// Who logs an overrun is not the one who has the window: statistics of pools are for him what others are shown.
func TestALogHandlerOfTheWatchdogIsNotTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *logic.Config) { c.Watchdog = 50 * time.Millisecond })
		var p *pool.Entities[thing]
		w.update(func(win *registry.Window) (err error) {
			p, err = pool.NewEntities(win, w.class, 4)
			return err
		})
		var beside pool.Stats
		var verified, updated error
		w.log.set(func() {
			beside = p.Stats()
			verified = w.r.Verify()
			updated = w.r.Update(noChange)
		})
		require.NoError(t, w.e.Defer(func(win *registry.Window) error {
			for range 3 {
				_, ok := p.Spawn(win, thing{})
				assert.True(t, ok)
			}
			assert.Equal(t, 3, p.Stats().InUse, "who is inside counts")
			time.Sleep(time.Second)
			return nil
		}))
		w.step()
		assert.Less(t, beside.InUse, 3, "he has not looked at what is the owner's")
		assert.Equal(t, 4, beside.InUse+beside.Free)
		assert.ErrorIs(t, verified, logic.ErrWouldDeadlock)
		assert.ErrorIs(t, updated, logic.ErrWouldDeadlock)
		assert.Equal(t, 3, p.Stats().InUse)
	})
}
