package logic_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
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
