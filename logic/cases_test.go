package logic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
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
	"log handler": func(w *world, fn func()) {
		logging := make(chan struct{})
		w.log.set(func() { close(logging); fn() })
		_ = w.e.Spawn(background(), func(*registry.Window) error { // overruns the watchdog
			<-logging
			return nil
		})
	},
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
	for _, kind := range []string{"Spawn", "SpawnBatch", "Defer", "Enqueue", "system", "Frame.Defer", "observer", "OnError"} {
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
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func soonStopped(t *testing.T, e *logic.Engine) func() {
	return func() { require.NoError(t, soon(t, "Stop", e.Stop)) }
}

func firstComeFirstServed(t *testing.T) {
	const callers = 100
	w := newWorld(t, func(c *logic.Config) { c.QueueSize = callers })
	var (
		served   []int // in the window, one after the other
		outcomes [callers]error
		cancels  [callers]context.CancelFunc
		wg       sync.WaitGroup
	)
	for i := range callers {
		ctx, cancel := context.WithCancel(background())
		cancels[i] = cancel
		defer cancel()
		wg.Go(func() {
			outcomes[i] = w.e.Spawn(ctx, func(*registry.Window) error {
				served = append(served, i)
				return nil
			})
		})
		w.queued(i + 1)
	}
	require.ErrorIs(t, w.e.Spawn(background(), noChange), logic.ErrQueueFull)
	var want []int
	left := callers
	for i := range callers {
		if i%3 != 0 {
			want = append(want, i)
			continue
		}
		cancels[i]()
		left--
		if i%2 == 0 { // of half of them the goroutine has not even noticed yet
			w.queued(left)
		}
	}
	w.queued(left)
	wg.Go(func() { // a place is free again
		assert.NoError(t, w.e.Spawn(background(), func(*registry.Window) error {
			served = append(served, callers)
			return nil
		}))
	})
	w.queued(left + 1)
	w.step()
	wg.Wait()
	assert.Equal(t, append(want, callers), served)
	for i, err := range outcomes {
		if i%3 == 0 {
			assert.ErrorIs(t, err, context.Canceled, i)
		} else {
			assert.NoError(t, err, i)
		}
	}
	assert.Zero(t, w.e.Stats().Waiting)
}

func overBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget = time.Millisecond
		w := newWorld(t, func(c *logic.Config) { c.WindowBudget = budget })
		var (
			wg     sync.WaitGroup
			served []int
			frames []uint64
		)
		queue := func(id int, takes time.Duration) {
			wg.Go(func() {
				assert.NoError(t, w.e.Spawn(background(), func(win *registry.Window) error {
					time.Sleep(takes)
					served, frames = append(served, id), append(frames, win.FrameNumber())
					return nil
				}))
			})
			synctest.Wait()
		}
		systems := 0
		_, err := w.e.AddSystem(logic.Physics, "between", func(*logic.Frame) { systems++ })
		require.NoError(t, err)
		for i := range 10 {
			queue(i, budget*6/10)
		}
		queue(10, 10*budget)
		queue(11, 0)
		queue(12, 0)
		for w.e.Stats().Waiting > 0 {
			before := len(served)
			w.step()
			require.Greater(t, len(served), before, "at least one a frame")
		}
		wg.Wait()
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, served)
		assert.Equal(t, []uint64{1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 7}, frames)
		assert.Equal(t, 7, systems)
	})
	synctest.Test(t, func(t *testing.T) { // deferred operations share the budget, in their place
		w := newWorld(t, func(c *logic.Config) { c.WindowBudget = time.Millisecond })
		var served []string
		note := func(name string) func(*registry.Window) error {
			return func(win *registry.Window) error {
				time.Sleep(600 * time.Microsecond)
				served = append(served, fmt.Sprint(win.FrameNumber(), name))
				return nil
			}
		}
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b", "c"} {
			require.NoError(t, w.e.Defer(note("defer "+name)))
		}
		for _, name := range []string{"a", "b", "c"} {
			wg.Go(func() { assert.NoError(t, w.e.Spawn(background(), note("spawn "+name))) })
			synctest.Wait()
		}
		w.step()
		require.NoError(t, w.e.Defer(note("late")))
		w.step()
		w.step()
		w.step()
		wg.Wait()
		assert.Equal(t, []string{"1defer a", "1defer b", "2defer c", "2spawn a", "3spawn b", "3spawn c", "4late"}, served)
	})
	w := newWorld(t, func(c *logic.Config) { c.QueueSize = 2 })
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { assert.NoError(t, w.e.Spawn(background(), noChange)) })
		w.queued(i + 1)
	}
	require.ErrorIs(t, w.e.Spawn(background(), noChange), logic.ErrQueueFull)
	require.ErrorIs(t, w.e.Defer(noChange), logic.ErrQueueFull)
	_, err := w.e.Producer().Enqueue(noChange)
	require.ErrorIs(t, err, logic.ErrQueueFull)
	w.step()
	wg.Wait()
	require.NoError(t, w.e.Defer(noChange))
}

func theWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newWorld(t, func(c *logic.Config) {
			c.Watchdog = 50 * time.Millisecond
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		stop := w.run()
		var h handles.Local
		var wg sync.WaitGroup
		holding := make(chan struct{})
		wg.Go(func() {
			assert.NoError(t, w.e.Spawn(background(), theSlowOne(w, holding, &h)))
		})
		<-holding
		start := time.Now()
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(background(), 100*time.Millisecond)
			defer cancel()
			assert.ErrorIs(t, w.e.Spawn(ctx, noChange), context.DeadlineExceeded)
			assert.Equal(t, 100*time.Millisecond, time.Since(start))
		})
		wg.Go(func() {
			assert.NoError(t, w.e.Spawn(background(), noChange))
			assert.GreaterOrEqual(t, time.Since(start), time.Second)
		})
		wg.Wait()
		require.NoError(t, stop())
		assert.EqualValues(t, 1, w.e.Stats().Overruns)
		assert.Equal(t, 1, bytes.Count(log.Bytes(), []byte("overran the watchdog")), log.String())
		assert.Contains(t, log.String(), "theSlowOne")
		assert.True(t, w.r.Alive(h), "its work stands")
	})
	for kind, want := range map[string]string{"system": "slow system", "Defer": "deferred operation", "observer": "observers"} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			w := newWorld(t, func(c *logic.Config) {
				c.Watchdog = 50 * time.Millisecond
				c.Logger = slog.New(slog.NewTextHandler(&log, nil))
			})
			slow := func() { time.Sleep(51 * time.Millisecond) } // little more than allowed
			var once sync.Once
			switch kind {
			case "system":
				_, err := w.e.AddSystem(logic.Late, "slow system", func(*logic.Frame) { once.Do(slow) })
				require.NoError(t, err)
			case "observer":
				_, err := w.r.Observe(registry.Spawned, func(*registry.Frame, []registry.Event) { once.Do(slow) })
				require.NoError(t, err)
				require.NoError(t, w.e.Defer(func(win *registry.Window) error {
					_, err := w.class.Spawn(win, thing{})
					return err
				}))
			default:
				require.NoError(t, w.e.Defer(func(*registry.Window) error { once.Do(slow); return nil }))
			}
			w.step()
			w.step()
			assert.EqualValues(t, 1, w.e.Stats().Overruns, kind)
			assert.Contains(t, log.String(), want)
			assert.Contains(t, log.String(), "theWatchdog", "the stack")
		})
	}
}

//go:noinline
func theSlowOne(w *world, holding chan struct{}, h *handles.Local) func(*registry.Window) error {
	return func(win *registry.Window) (err error) {
		close(holding)
		time.Sleep(time.Second)
		*h, err = w.class.Spawn(win, thing{})
		return err
	}
}

func errorPanicGoexit(t *testing.T) {
	endings := map[string]func() error{
		"error":  func() error { return errTest },
		"panic":  func() error { panic(errTest) },
		"Goexit": func() error { runtime.Goexit(); return nil },
	}
	for ending, end := range endings {
		for _, way := range []string{"Spawn", "SpawnBatch", "Defer", "Enqueue", "Producer"} {
			t.Run(ending+"/"+way, func(t *testing.T) {
				w := newWorld(t)
				kept, set := w.spawn(1), w.spawn(2)
				w.step()
				before := w.r.Stats()
				var born handles.Local
				fn := func(win *registry.Window) error {
					var err error
					born, err = w.class.Spawn(win, thing{value{3}})
					assert.NoError(t, err)
					assert.NoError(t, win.Destroy(kept))
					assert.NoError(t, registry.Set(win, set, value{4}))
					return end()
				}

				outcome := make(chan any, 1) // an error, what was recovered, or nil after an exit
				next := make(chan error, 1)
				switch way {
				case "Spawn", "SpawnBatch":
					go func() {
						returned := false
						defer func() {
							if v := recover(); !returned {
								outcome <- v
							}
						}()
						var err error
						if way == "Spawn" {
							err = w.e.Spawn(background(), fn)
						} else {
							errs := w.e.SpawnBatch(background(), noChange, fn, noChange)
							assert.NoError(t, errs[0])
							assert.NoError(t, errs[2])
							err = errs[1]
						}
						returned = true
						outcome <- err
					}()
					w.queued(1)
				case "Defer":
					require.NoError(t, w.e.Defer(fn))
				default:
					enqueue := w.e.Enqueue
					if way == "Producer" {
						enqueue = w.e.Producer().Enqueue
					}
					ticket, err := enqueue(fn)
					require.NoError(t, err)
					go func() { <-ticket.Done(); outcome <- ticket.Err() }()
				}
				inLine := w.e.Stats().Waiting
				go func() { next <- w.e.Spawn(background(), noChange) }()
				w.queued(inLine + 1)
				w.step()
				require.NoError(t, soon(t, "the next in line", func() error { return <-next }))

				told := w.told()
				var got any
				if way == "Defer" {
					require.Len(t, told, 1)
					got = told[0]
				} else {
					require.Empty(t, told)
					got = <-outcome
				}
				err, _ := got.(error)
				switch {
				case ending == "Goexit" && (way == "Spawn" || way == "SpawnBatch"):
					assert.Nil(t, got, "the goroutine went on exiting")
				case ending == "Goexit":
					assert.ErrorIs(t, err, registry.ErrGoexit)
				case ending == "panic" && way != "Spawn":
					var pe *registry.PanicError
					if assert.ErrorAs(t, err, &pe) {
						assert.Equal(t, errTest, pe.Value)
						assert.EqualValues(t, 2, pe.Frame)
						assert.Contains(t, string(pe.Stack), "errorPanicGoexit")
					}
				default:
					assert.Equal(t, errTest, err)
				}
				w.step()
				after := w.r.Stats()
				after.Frame, after.Local.OldestPending = before.Frame, before.Local.OldestPending
				after.Local.Pending, after.Local.Free = before.Local.Pending, before.Local.Free
				assert.Equal(t, before, after, "state unchanged")
				assert.Equal(t, 1, w.n(kept))
				assert.Equal(t, 2, w.n(set))
				assert.False(t, w.r.Alive(born))
			})
		}
	}
}

func ordersToTheDead(t *testing.T) {
	for _, setFirst := range []bool{true, false} {
		for _, together := range []bool{true, false} {
			w := newWorld(t)
			h := w.spawn(1)
			setter, killer := w.e.Producer(), w.e.Producer()
			var set, kill *logic.Ticket
			orders := []func(){
				func() {
					set, _ = setter.Enqueue(func(win *registry.Window) error { return registry.Set(win, h, value{2}) })
				},
				func() {
					kill, _ = killer.Enqueue(func(win *registry.Window) error { return win.Destroy(h) })
				},
			}
			if !setFirst {
				slices.Reverse(orders)
			}
			for _, order := range orders {
				order()
				if !together {
					w.step()
				}
			}
			w.step()
			w.step()
			assert.NoError(t, kill.Err())
			assert.False(t, w.r.Alive(h))
			if setFirst {
				assert.NoError(t, set.Err())
			} else {
				assert.ErrorIs(t, set.Err(), registry.ErrStale)
			}
			assert.Zero(t, w.r.Stats().Live)
			assert.Zero(t, w.r.Stats().PendingDestructions)
		}
	}
	w := newWorld(t)
	dead := w.spawn(1)
	require.NoError(t, w.r.Destroy(dead))
	var fns []func(*registry.Window) error
	for i := range 5 {
		fns = append(fns, func(win *registry.Window) error {
			if i == 2 {
				return registry.Set(win, dead, value{i})
			}
			_, err := w.class.Spawn(win, thing{value{i}})
			return err
		})
	}
	errs := make(chan []error, 1)
	go func() { errs <- w.e.SpawnBatch(background(), fns...) }()
	w.queued(1)
	w.step()
	for i, err := range <-errs {
		if i == 2 {
			assert.ErrorIs(t, err, registry.ErrStale)
		} else {
			assert.NoError(t, err)
		}
	}
	assert.Equal(t, 4, w.r.Stats().Live)
}

func ordersForAnEarlierLife(t *testing.T) {
	w := newWorld(t)
	h := w.spawn(1)
	order := func(win *registry.Window) error { return registry.Set(win, h, value{2}) }
	require.NoError(t, w.r.Destroy(h))
	w.update(func(win *registry.Window) error {
		win.ProcessDeferredDestructions()
		win.ConfirmLocalRecycles()
		return nil
	})
	h2 := w.spawn(3)
	require.Equal(t, h.Index(), h2.Index())
	first, err := w.e.Enqueue(order)
	require.NoError(t, err)
	second, err := w.e.Enqueue(func(win *registry.Window) error { return registry.Set(win, h2, value{4}) })
	require.NoError(t, err)
	w.step()
	assert.ErrorIs(t, first.Err(), registry.ErrStale)
	assert.NoError(t, second.Err())
	assert.Equal(t, 4, w.n(h2))
}

func deferringNeverSticks(t *testing.T) {
	w := newWorld(t)
	const depth = 5
	var ran []string // name and frame
	var nest func(name string, level int) func(*registry.Window) error
	nest = func(name string, level int) func(*registry.Window) error {
		return func(win *registry.Window) error {
			ran = append(ran, fmt.Sprint(name, level, "@", win.FrameNumber()))
			if level < depth {
				assert.NoError(t, w.e.Defer(nest(name, level+1)))
			}
			switch level % 3 {
			case 1:
				return errTest
			case 2:
				panic(errTest)
			}
			return nil
		}
	}
	require.NoError(t, w.e.Defer(nest("engine", 1)))
	wished := make(map[int]uint64)
	_, err := w.e.AddSystem(logic.Physics, "defers", func(f *logic.Frame) {
		level := int(f.FrameNumber())
		if level > depth {
			return
		}
		f.Defer(func(win *registry.Window) error {
			wished[level] = win.FrameNumber()
			if level%2 == 0 {
				panic(errTest)
			}
			return errTest
		})
	})
	require.NoError(t, err)
	for range depth + 2 {
		w.step()
	}
	assert.Equal(t, []string{"engine1@1", "engine2@2", "engine3@3", "engine4@4", "engine5@5"}, ran)
	assert.Equal(t, map[int]uint64{1: 2, 2: 3, 3: 4, 4: 5, 5: 6}, wished)
	assert.Len(t, w.told(), 4+5)
	s := w.e.Stats()
	assert.Zero(t, s.Queued)
	h := w.spawn(1)
	assert.True(t, w.r.Alive(h), "direct operations act at once")
}

func twoMillionDeaths(t *testing.T) {
	n := 2_000_000
	if raceEnabled {
		n = 100_000
	}
	w := newWorldIn(t, registry.Config{MaxEntities: n}, func(c *logic.Config) { c.LocalWindow = 1 })
	var hs []handles.Local
	w.update(func(win *registry.Window) (err error) {
		hs, err = w.class.SpawnBatch(win, n, nil)
		return err
	})
	for i, h := range hs {
		if i%2 == 0 {
			require.NoError(t, w.r.Destroy(h))
		}
	}
	_, err := w.e.AddSystem(logic.Physics, "kills", func(f *logic.Frame) {
		if f.FrameNumber() == 1 {
			for i, h := range hs {
				if i%2 == 1 && f.Destroy(h) != nil {
					t.Errorf("death %d failed", i)
				}
			}
		}
	})
	require.NoError(t, err)
	w.step()
	w.step()
	s := w.r.Stats()
	assert.Zero(t, s.PendingDestructions)
	assert.Zero(t, s.Live)
	assert.Equal(t, n/2, s.Local.Pending)
	w.step()
	assert.Equal(t, n, w.r.Stats().Local.Free)
	require.NoError(t, w.e.Stop())
	for _, start := range []uint64{1<<31 - 2, 1<<32 - 2} {
		logic.CheckGauge(t, start)
	}
}

func childOfTheUnborn(t *testing.T) {
	w := newWorld(t)
	for _, refused := range []bool{false, true} {
		p, err := w.r.Reserve()
		require.NoError(t, err)
		c, err := w.r.Reserve()
		require.NoError(t, err)
		outcome := make(chan []error, 1)
		go func() {
			outcome <- w.e.SpawnBatch(background(),
				func(win *registry.Window) error {
					err := w.class.SpawnReserved(win, p, thing{value{1}})
					if refused {
						err = errTest
					}
					return err
				},
				func(win *registry.Window) error { return w.class.SpawnReserved(win, c, thing{value{2}}) },
				func(win *registry.Window) error { return registry.SetParent(win, c, p) })
		}()
		w.queued(1)
		w.step()
		errs := <-outcome
		require.NoError(t, errs[1])
		if refused {
			assert.ErrorIs(t, errs[0], errTest)
			assert.ErrorIs(t, errs[2], registry.ErrNotSpawned)
			require.NoError(t, w.r.Destroy(p))
			w.step()
			assert.True(t, w.r.Alive(c), "nothing is half linked")
		} else {
			require.NoError(t, errs[0])
			require.NoError(t, errs[2])
			require.NoError(t, w.r.Destroy(p))
			w.step()
			assert.False(t, w.r.Alive(c), "the child dies with its parent")
		}
		require.NoError(t, w.r.Verify())
	}
}

// spawnNet makes an entity with a net handle, between frames.
func (w *world) spawnNet(n int) (h handles.Local, net handles.Net) {
	w.t.Helper()
	w.update(func(win *registry.Window) (err error) {
		if h, err = w.class.Spawn(win, thing{value{n}}); err != nil {
			return err
		}
		net, err = win.AssignNet(h)
		return err
	})
	return h, net
}

func theSlowestPeer(t *testing.T) {
	w := newWorld(t)
	for id := range uint32(3) {
		require.NoError(t, w.e.AddPeer(id+1))
	}
	require.Error(t, w.e.AddPeer(1))
	require.Error(t, w.e.Ack(9, 0))
	require.Error(t, w.e.DropPeer(9))
	h1, _ := w.spawnNet(1)
	h2, _ := w.spawnNet(2)
	w.step()
	require.NoError(t, w.r.Destroy(h1))
	w.step()
	f := w.e.FrameNumber() // the first index is freed in it
	require.NoError(t, w.r.Destroy(h2))
	w.step()
	pending := func() int { return w.r.Stats().Net.Pending }
	require.Equal(t, 2, pending())
	require.ErrorIs(t, w.e.Ack(1, f+2), registry.ErrNotPublished, "an ack from the future")

	require.NoError(t, w.e.Ack(1, f+1))
	require.NoError(t, w.e.Ack(2, f+1))
	w.step()
	require.Equal(t, 2, pending(), "peer 3 knows nothing yet")
	require.NoError(t, w.e.Ack(3, f))
	w.step()
	require.Equal(t, 1, pending())
	require.NoError(t, w.e.Ack(3, f-1), "a lower ack changes nothing")
	require.NoError(t, w.e.AddPeer(4), "nor does a newcomer")
	w.step()
	require.Equal(t, 1, pending())
	s := w.e.Stats()
	assert.Equal(t, 4, s.Peers)
	assert.EqualValues(t, 3, s.SlowestPeer)
	assert.Equal(t, f, s.SlowestAck)
	require.NoError(t, w.e.DropPeer(3))
	w.step()
	require.Zero(t, pending())

	h3, _ := w.spawnNet(3) // the newcomer holds back what dies after it came
	require.NoError(t, w.r.Destroy(h3))
	w.step()
	now := w.e.FrameNumber()
	require.NoError(t, w.e.Ack(1, now))
	require.NoError(t, w.e.Ack(2, now))
	w.step()
	require.Equal(t, 1, pending())
	for _, id := range []uint32{1, 2, 4} { // and the last one that leaves frees it
		require.NoError(t, w.e.DropPeer(id))
	}
	w.step()
	require.Zero(t, pending())
	assert.Zero(t, w.e.Stats().Peers)
}

func messagesLateEarlyReversed(t *testing.T) {
	type message struct {
		name string
		net  handles.Net
	}
	for order := range permutations(4) {
		w := newWorld(t)
		require.NoError(t, w.e.AddPeer(1))
		h1, n1 := w.spawnNet(1)
		w.step()

		// The replica is another registry that the messages reach in any order.
		replica, err := registry.New(registry.Config{Owner: 1})
		require.NoError(t, err)
		class, err := registry.RegisterClass[thing](replica)
		require.NoError(t, err)
		bind := func(n handles.Net) error {
			return replica.Update(func(win *registry.Window) error {
				h, err := class.Spawn(win, thing{})
				if err != nil {
					return err
				}
				return win.BindNet(h, n)
			})
		}
		require.NoError(t, bind(n1))

		require.NoError(t, w.r.Destroy(h1))
		w.step()
		freed := w.e.FrameNumber()
		_, early := w.spawnNet(0)
		require.NotEqual(t, n1.Wire(), early.Wire(), "not issued before all peers acked")
		require.NoError(t, w.e.Ack(1, freed))
		w.step()
		_, n2 := w.spawnNet(2)
		require.Equal(t, n1.Wire(), n2.Wire())
		require.NotEqual(t, n1, n2)

		messages := []message{{"destroy", n1}, {"spawn", n2}, {"update", n1}, {"update", n2}}
		deliver := func(m message) error {
			switch m.name {
			case "destroy":
				h, err := replica.ResolveNet(m.net)
				if err != nil {
					return err
				}
				return replica.Destroy(h)
			case "spawn":
				return bind(m.net)
			}
			h, err := replica.ResolveNet(m.net)
			if err != nil {
				return err
			}
			return replica.Update(func(win *registry.Window) error { return registry.Set(win, h, value{int(m.net.Generation())}) })
		}
		late := order
		for range len(order) { // what fails is sent again, as a network would
			var again []int
			for _, i := range late {
				if err := deliver(messages[i]); err != nil {
					again = append(again, i)
					require.NoError(t, replica.Verify())
				}
				require.NoError(t, replica.Update(func(win *registry.Window) error {
					win.ProcessDeferredDestructions()
					return nil
				}))
			}
			late = again
		}
		h2, err := replica.ResolveNet(n2)
		require.NoError(t, err)
		_, err = replica.ResolveNet(n1)
		require.Error(t, err)
		assert.Equal(t, 1, replica.Stats().Live, "only n2 lives")
		require.NoError(t, replica.Update(func(win *registry.Window) error {
			v, err := registry.Peek[value](win, h2)
			assert.Equal(t, int(n2.Generation()), v.N)
			return err
		}))
	}
}

// permutations yields every order of n things.
func permutations(n int) func(func([]int) bool) {
	return func(yield func([]int) bool) {
		var grow func(prefix []int) bool
		grow = func(prefix []int) bool {
			if len(prefix) == n {
				return yield(slices.Clone(prefix))
			}
			for i := range n {
				if !slices.Contains(prefix, i) && !grow(append(slices.Clone(prefix), i)) {
					return false
				}
			}
			return true
		}
		grow(nil)
	}
}
