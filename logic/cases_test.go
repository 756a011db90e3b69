package logic_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

func TestCases(t *testing.T) {
	t.Run("logic-1", eightProducers)
	t.Run("logic-2", waitingForYourself)
	t.Run("logic-3", everyCallFromEveryCallback)
	t.Run("logic-4", aThousandStartsAndStops)
	t.Run("logic-5", firstComeFirstServed)
	t.Run("logic-6", overBudget)
	t.Run("logic-7", theWatchdog)
	t.Run("logic-8", errorPanicGoexit)
	t.Run("logic-9", ordersToTheDead)
	t.Run("logic-10", ordersForAnEarlierLife)
	t.Run("logic-11", deferringNeverSticks)
	t.Run("logic-12", twoMillionDeaths)
	t.Run("logic-13", childOfTheUnborn)
	t.Run("logic-15", theSlowestPeer)
	t.Run("logic-16", messagesLateEarlyReversed)
}

func eightProducers(t *testing.T) {
	const producers, each = 8, 10_000
	w := newWorld(t, fast, func(c *logic.Config) { c.QueueSize = 1 << 17 })
	stop := w.run()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards born
		born [producers][]handles.Local
	)
	for p := range producers {
		wg.Go(func() {
			lane := w.e.Producer()
			enqueue := lane.Enqueue
			if p%2 == 0 { // half of them share the engine's lane
				enqueue = w.e.Enqueue
			}
			tickets, hs := make([]*logic.Ticket, each), make([]handles.Local, each)
			for i := range each {
				var err error
				tickets[i], err = enqueue(func(win *registry.Window) (err error) {
					hs[i], err = w.class.Spawn(win, thing{value{p<<20 | i}})
					mu.Lock()
					defer mu.Unlock()
					born[p] = append(born[p], hs[i])
					return err
				})
				if !assert.NoError(t, err) {
					return
				}
			}
			for i, ticket := range tickets {
				<-ticket.Done()
				if !assert.NoError(t, ticket.Err()) || !assert.True(t, w.r.Alive(hs[i])) {
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, hs, born[p], "those of one producer in its order")
		})
	}
	wg.Wait()
	require.NoError(t, stop())
	all := make(map[handles.Local]bool)
	for p := range born {
		for _, h := range born[p] {
			all[h] = true
		}
	}
	assert.Len(t, all, producers*each)
	assert.Equal(t, producers*each, w.r.Stats().Live)
}

// callbackKinds are the ways for user code to run on Logic or in the window. Each arranges
// that fn runs inside such a callback, once, while the engine runs.
var callbackKinds = map[string]func(w *world, fn func()){
	"Spawn": func(w *world, fn func()) {
		_ = w.e.Spawn(background(), func(*registry.Window) error { fn(); return nil })
	},
	"SpawnBatch": func(w *world, fn func()) {
		_ = w.e.SpawnBatch(background(), func(*registry.Window) error { fn(); return nil })
	},
	"Defer": func(w *world, fn func()) {
		_ = w.e.Defer(func(*registry.Window) error { fn(); return nil })
	},
	"Enqueue": func(w *world, fn func()) {
		_, _ = w.e.Enqueue(func(*registry.Window) error { fn(); return nil })
	},
	"system": func(w *world, fn func()) {
		var once sync.Once
		_, _ = w.e.AddSystem(logic.Physics, "calls", func(*logic.Frame) { once.Do(fn) })
	},
	"worker": func(w *world, fn func()) {
		called := make(chan struct{})
		var once sync.Once
		_, _ = w.e.AddSystem(logic.Physics, "forks", func(f *logic.Frame) {
			alone := registry.Workers(f) == 1
			fork(f.Frame, 2, func(_ *registry.Frame, worker, _ int) {
				if worker == 0 && !alone {
					<-called // so that it is another one's goroutine that calls
					return
				}
				once.Do(func() { close(called); fn() })
			})
		})
	},
	"Frame.Defer": func(w *world, fn func()) {
		var once sync.Once
		_, _ = w.e.AddSystem(logic.Physics, "defers", func(f *logic.Frame) {
			once.Do(func() { f.Defer(func(*registry.Window) error { fn(); return nil }) })
		})
	},
	"observer": func(w *world, fn func()) {
		var once sync.Once
		_, _ = w.r.Observe(registry.Spawned, func(*registry.Frame, []registry.Event) { once.Do(fn) })
		_ = w.e.Spawn(background(), noChange)
		_, _ = logic.Spawn(background(), w.e, w.class, thing{})
	},
	"OnError": func(w *world, fn func()) {
		w.mu.Lock()
		w.onError = fn
		w.mu.Unlock()
		_ = w.e.Defer(func(*registry.Window) error { return errTest })
	},
	"pool New": func(w *world, fn func()) {
		var once sync.Once
		build := func() (*value, error) { once.Do(fn); return new(value), nil }
		w.borrows(pool.Config[value]{New: build, Reset: func(*value) {}})
	},
	"pool Reset": func(w *world, fn func()) {
		var once sync.Once
		w.borrows(pool.Config[value]{Reset: func(*value) { once.Do(fn) }})
	},
	"log handler": func(w *world, fn func()) {
		logging := make(chan struct{})
		w.log.set(func() { close(logging); fn() })
		_ = w.e.Spawn(background(), func(*registry.Window) error { // overruns the watchdog
			<-logging
			return nil
		})
	},
}

// borrows has a system take from a pool and give back, in every frame.
func (w *world) borrows(c pool.Config[value]) {
	p, err := pool.New(c)
	assert.NoError(w.t, err)
	_, _ = w.e.AddSystem(logic.Physics, "borrows", func(*logic.Frame) {
		if h, err := p.Take(); assert.NoError(w.t, err) {
			_ = h.Release()
		}
	})
}

func waitingForYourself(t *testing.T) {
	calls := map[string]func(w *world) error{
		"Spawn":      func(w *world) error { return w.e.Spawn(background(), noChange) },
		"SpawnBatch": func(w *world) error { return w.e.SpawnBatch(background(), noChange)[0] },
		"Update":     func(w *world) error { return w.r.Update(noChange) },
		"Step":       func(w *world) error { return w.e.Step() },
		"Run":        func(w *world) error { return w.e.Run(background()) },
		"Shutdown":   func(w *world) error { return w.e.Shutdown(background()) },
	}
	for _, kind := range []string{"Spawn", "SpawnBatch", "Defer", "Enqueue", "system", "worker", "Frame.Defer", "observer", "OnError", "pool New", "pool Reset"} {
		for name, call := range calls {
			t.Run(kind+"/"+name, func(t *testing.T) {
				w := newWorld(t, fast)
				w.run()
				answer := soon(t, name, func() error {
					answered := make(chan error, 1)
					callbackKinds[kind](w, func() { answered <- call(w) })
					return <-answered
				})
				require.ErrorIs(t, answer, logic.ErrWouldDeadlock)
				require.NoError(t, soon(t, "the next frame", func() error { return w.e.Spawn(background(), noChange) }))
			})
		}
		t.Run(kind+"/Stop", func(t *testing.T) {
			w := newWorld(t, fast)
			w.run()
			require.NoError(t, soon(t, "Stop", func() error {
				answered := make(chan error, 1)
				callbackKinds[kind](w, func() { answered <- w.e.Stop() })
				return <-answered
			}))
			require.NoError(t, soon(t, "Stop", w.e.Stop))
		})
	}
	t.Run("Step", func(t *testing.T) { // the same without Run
		w := newWorld(t)
		var answers []error
		_, err := w.e.AddSystem(logic.Physics, "calls", func(*logic.Frame) {
			answers = append(answers, w.e.Spawn(background(), noChange), w.e.Step(), w.r.Update(noChange), w.e.Run(background()))
		})
		require.NoError(t, err)
		require.NoError(t, soon(t, "Step", w.e.Step))
		for _, err := range answers {
			require.ErrorIs(t, err, logic.ErrWouldDeadlock)
		}
		require.Len(t, answers, 4)
	})
	t.Run("Update", func(t *testing.T) { // and without an engine at work at all
		w := newWorld(t)
		w.update(func(*registry.Window) error {
			assert.ErrorIs(t, w.e.Spawn(background(), noChange), logic.ErrWouldDeadlock)
			assert.ErrorIs(t, w.e.Step(), logic.ErrWouldDeadlock)
			return nil
		})
		w.step()
	})
}

// everyCall is each exported method that takes no token.
var everyCall = map[string]func(w *world){
	"Run":         func(w *world) { _ = w.e.Run(background()) },
	"Step":        func(w *world) { _ = w.e.Step() },
	"Stop":        func(w *world) { _ = w.e.Stop() },
	"Shutdown":    func(w *world) { _ = w.e.Shutdown(background()) },
	"FrameNumber": func(w *world) { w.e.FrameNumber() },
	"Registry":    func(w *world) { w.e.Registry() },
	"Spawn":       func(w *world) { _ = w.e.Spawn(background(), noChange) },
	"Spawn[E]":    func(w *world) { _, _ = logic.Spawn(background(), w.e, w.class, thing{}) },
	"SpawnBatch":  func(w *world) { _ = w.e.SpawnBatch(background(), noChange, noChange) },
	"Defer":       func(w *world) { _ = w.e.Defer(noChange) },
	"Enqueue":     func(w *world) { t, _ := w.e.Enqueue(noChange); t.Done(); _ = t.Err() },
	"Producer":    func(w *world) { p := w.e.Producer(); _ = p.Defer(noChange); _, _ = p.Enqueue(noChange) },
	"AddSystem":   func(w *world) { s, _ := w.e.AddSystem(logic.Late, "x", func(*logic.Frame) {}); _ = s.Remove() },
	"Inbox":       func(w *world) { b, _ := logic.NewInbox[int](w.e, 1); _ = b.Send(1); b.Len() },
	"peers":       func(w *world) { _ = w.e.AddPeer(1); _ = w.e.Ack(1, 0); _ = w.e.DropPeer(1) },
	"Input":       func(w *world) { _ = w.e.Input(0, 0, nil) },
	"Journal":     func(w *world) { _ = w.e.Journal(w.t.TempDir()) },
	"Rollback":    func(w *world) { _ = w.e.Rollback(0) },
	"Stats":       func(w *world) { w.e.Stats() },
	"New":         func(w *world) { _, _ = logic.New(w.r, logic.Config{}) },

	"registry.Update":  func(w *world) { _ = w.r.Update(noChange) },
	"registry.Stats":   func(w *world) { w.r.Stats() },
	"registry.Reserve": func(w *world) { h, _ := w.r.Reserve(); _ = w.r.Destroy(h) },
	"registry.Observe": func(w *world) { _, _ = w.r.Observe(registry.Moved, func(*registry.Frame, []registry.Event) {}) },
}

func everyCallFromEveryCallback(t *testing.T) {
	for kind, arrange := range callbackKinds {
		for name, call := range everyCall {
			t.Run(kind+"/"+name, func(t *testing.T) {
				w := newWorld(t, fast, func(c *logic.Config) { c.Watchdog = 30 * time.Millisecond })
				w.run()
				soon(t, name, func() error {
					returned := make(chan error)
					arrange(w, func() { call(w); close(returned) })
					return <-returned
				})
				err := soon(t, "the next frame", func() error { return w.e.Spawn(background(), noChange) })
				if name == "Stop" || name == "Shutdown" {
					require.True(t, err == nil || errors.Is(err, logic.ErrStopped), err)
				} else {
					require.NoError(t, err)
				}
			})
		}
	}
}

func aThousandStartsAndStops(t *testing.T) {
	r, err := registry.New(registry.Config{MaxEntities: 64})
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	rounds := 1000
	if raceEnabled {
		rounds = 200
	}
	for i := range rounds {
		e, err := logic.New(r, logic.Config{Rate: 1, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(background())
		var wg sync.WaitGroup
		stopped := soonStopped(t, e)
		if i%5 == 1 {
			stopped() // before Run
		}
		if i%5 == 2 {
			cancel() // before Run
		}
		ran := make(chan error, 1)
		go func() { ran <- e.Run(ctx) }()
		for range i % 9 {
			wg.Go(func() {
				if err := e.Spawn(background(), noChange); err != nil {
					assert.ErrorIs(t, err, logic.ErrStopped)
				}
			})
		}
		for range i % 3 {
			runtime.Gosched()
		}
		switch i % 5 {
		case 1, 2:
		case 3:
			cancel()
		case 4:
			stopped()
			stopped()
		default:
			stopped()
		}
		err = soon(t, "Run", func() error { return <-ran })
		if err != nil {
			require.True(t, errors.Is(err, context.Canceled) || errors.Is(err, logic.ErrStopped), err)
		}
		soon(t, "the callers", func() error { wg.Wait(); return nil })
		stopped()
		cancel()
	}
	deadline := time.Now().Add(hangs)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func soonStopped(t *testing.T, e *logic.Engine) func() {
	return func() { require.NoError(t, soon(t, "Stop", e.Stop)) }
}
