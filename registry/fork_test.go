package registry_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// task is a Task from a function.
type task func(f *registry.Frame, worker, part int)

func (t task) Part(f *registry.Frame, worker, part int) { t(f, worker, part) }

// spread runs workers as an engine does.
func spread(n int, run func(int)) {
	var group sync.WaitGroup
	for i := 1; i < n; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			run(i)
		}()
	}
	defer group.Wait()
	run(0)
}

// forked is a registry with soldiers, and an engine that has some workers.
type forked struct {
	*registry.Registry
	t       *testing.T
	core    *registry.Core
	class   *registry.Class[soldier]
	hs      []handles.Local
	reports []error
	events  []string
}

func newForked(t *testing.T, c registry.Config, workers int) *forked {
	r, err := registry.New(c)
	require.NoError(t, err)
	x := &forked{Registry: r, t: t}
	x.core, err = r.Attach(registry.Hooks{
		Workers: workers, Spread: spread,
		OnError: func(err error) { x.reports = append(x.reports, err) },
	})
	require.NoError(t, err)
	_, err = registry.RegisterComponent[title](r)
	require.NoError(t, err)
	x.class, err = registry.RegisterClass[soldier](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	for _, kind := range []registry.EventKind{registry.Spawned, registry.Destroyed, registry.Added} {
		_, err = r.Observe(kind, func(_ *registry.Frame, es []registry.Event) {
			for _, e := range es {
				x.events = append(x.events, fmt.Sprint(kind, e.Entity))
			}
		})
		require.NoError(t, err)
	}
	require.NoError(t, r.Update(func(w *registry.Window) error {
		x.hs, err = x.class.SpawnBatch(w, 640, nil)
		return err
	}))
	require.NoError(t, x.core.Enter(false))
	t.Cleanup(func() {
		x.core.Leave()
		x.core.Detach()
		require.NoError(t, r.Verify())
	})
	return x
}

// frame runs fn as a system, and the window after it.
func (x *forked) frame(fn func(f *registry.Frame)) {
	x.core.Advance()
	x.core.DrainDestroys()
	x.core.ProcessDestructions()
	x.core.OpenWindow()
	x.core.RunWishes()
	x.core.CloseWindow()
	f := x.core.NewFrame()
	x.core.Deliver()
	defer x.core.EndFrame()
	defer x.core.Boundary()
	defer x.core.Deliver()
	x.core.System("test", func() { fn(f) })
}

// play has parts do everything that they may, and says what came of it.
func play(t *testing.T, c registry.Config, workers int) (string, *forked) {
	x := newForked(t, c, workers)
	log := ""
	born := make([][]handles.Local, 10)
	draws := make([]uint64, 10)
	for range 6 {
		x.frame(func(f *registry.Frame) {
			registry.Fork(f, task(func(f *registry.Frame, _, part int) {
				draws[part] = f.Rand().Uint64()
				if part%3 == 0 {
					runtime.Gosched()
				}
				for i := range 4 {
					h, err := x.class.SpawnLater(f, soldier{Health: health{int64(part*10 + i)}})
					if err == nil {
						born[part] = append(born[part], h)
					}
				}
				mine := x.hs[part*64 : part*64+64]
				for i, h := range mine {
					switch i % 16 {
					case 0:
						_ = f.Destroy(h)
					case 1:
						_ = f.Destroy(x.hs[(part*64+64+i)%len(x.hs)]) // of another part, which may do so, too
					case 2:
						_ = f.Destroy(x.hs[i]) // all parts want the same
					case 3:
						_ = registry.SetActive(f, h, false)
					case 4:
						_ = registry.AddLater(f, h, title{fmt.Sprint(part)})
					case 5:
						f.Defer(func(w *registry.Window) error {
							return registry.Set(w, h, health{int64(w.FrameNumber())})
						})
					}
				}
			}), 10, true)
		})
		log += fmt.Sprintln(born, draws, x.events)
		require.NoError(t, func() error {
			var err error
			x.core.OpenWindow()
			err = x.core.Callback(func(w *registry.Window) error { return x.Verify() })
			x.core.CloseWindow()
			return err
		}())
	}
	log += fmt.Sprintf("%+v", x.Stats())
	for _, err := range x.reports {
		require.ErrorIs(t, err, registry.ErrStale) // AddLater and Defer for those that have died
	}
	return log, x
}

func TestForkIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	c := registry.Config{Deterministic: true}
	want, _ := play(t, c, 1)
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for _, workers := range []int{2, 3, 16} {
		for range rounds {
			got, _ := play(t, c, workers)
			require.Equal(t, want, got, "%d workers", workers)
		}
	}
}

func TestForkWithoutDeterminismStillKeepsTheBooks(t *testing.T) {
	for _, workers := range []int{1, 2, 16} {
		play(t, registry.Config{}, workers)
	}
}

func TestForkDoesEveryPartOnceWhateverFails(t *testing.T) {
	for _, workers := range []int{1, 2, 16} {
		for _, bad := range [][]int{{0}, {5}, {9}, {9, 3, 0}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}} {
			x := newForked(t, registry.Config{}, workers)
			var mu sync.Mutex
			seen := map[int]int{}
			x.frame(func(f *registry.Frame) {
				failed := func() (v any) {
					defer func() { v = recover() }()
					registry.Fork(f, task(func(_ *registry.Frame, _, part int) {
						mu.Lock()
						seen[part]++
						mu.Unlock()
						for _, b := range bad {
							if b == part {
								panic(fmt.Sprint("part ", part))
							}
						}
					}), 10, true)
					return nil
				}()
				lowest := bad[len(bad)-1]
				if len(bad) == 10 {
					lowest = 0
				}
				err, ok := failed.(*registry.PanicError)
				require.True(t, ok, "%v", failed)
				require.Equal(t, fmt.Sprint("part ", lowest), err.Value)
				require.Contains(t, string(err.Stack), "fork_test.go")
			})
			require.Len(t, seen, 10)
			for part, n := range seen {
				require.Equal(t, 1, n, "part %d", part)
			}
		}
	}
}

func TestForkSurvivesExits(t *testing.T) {
	for _, workers := range []int{1, 2, 16} {
		x := newForked(t, registry.Config{Deterministic: true}, workers)
		var mu sync.Mutex
		done, returned := 0, false
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer func() { _ = recover() }() // of the exit, if the other workers were so fast that they did all parts
			x.frame(func(f *registry.Frame) {
				registry.Fork(f, task(func(f *registry.Frame, _, part int) {
					_, err := x.class.SpawnLater(f, soldier{})
					mu.Lock()
					done++
					mu.Unlock()
					if err == nil {
						runtime.Goexit()
					}
				}), 10, true)
				returned = true
			})
		}()
		<-ended
		require.Equal(t, 10, done)
		require.False(t, returned)
	}
}

func TestForkInsideAPartKeepsItsPlace(t *testing.T) {
	x := newForked(t, registry.Config{Deterministic: true}, 4)
	var order []int
	x.frame(func(f *registry.Frame) {
		registry.Fork(f, task(func(f *registry.Frame, _, outer int) {
			require.Equal(t, 1, registry.Workers(f))
			registry.Fork(f, task(func(f *registry.Frame, _, inner int) {
				f.Defer(func(*registry.Window) error {
					order = append(order, outer*10+inner)
					return nil
				})
			}), 3, true)
		}), 4, true)
	})
	x.frame(func(*registry.Frame) {})
	require.Equal(t, []int{0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32}, order)
}

func TestFramesOfPartsEndWithTheFork(t *testing.T) {
	x := newForked(t, registry.Config{}, 2)
	x.frame(func(f *registry.Frame) {
		var kept *registry.Frame
		registry.Fork(f, task(func(f *registry.Frame, _, part int) {
			if part == 0 {
				kept = f
			}
		}), 2, true)
		require.ErrorIs(t, kept.Destroy(x.hs[0]), registry.ErrExpired)
		require.NoError(t, f.Destroy(x.hs[0]))
	})
}

func TestChildrenDieAtTheJoin(t *testing.T) {
	x := newForked(t, registry.Config{}, 4)
	x.core.OpenWindow()
	require.NoError(t, x.core.Callback(func(w *registry.Window) error {
		for i := 1; i < 64; i++ {
			if err := registry.SetParent(w, x.hs[i*10], x.hs[i-1]); err != nil {
				return err
			}
		}
		return nil
	}))
	x.core.CloseWindow()
	x.frame(func(f *registry.Frame) {
		registry.Fork(f, task(func(f *registry.Frame, _, part int) {
			require.NoError(t, f.Destroy(x.hs[part]))
		}), 4, true)
		for i := 1; i <= 4; i++ {
			require.False(t, x.Alive(x.hs[i*10]))
		}
	})
}

func TestForkInAWindowIsPartOfTheCallback(t *testing.T) {
	x := newForked(t, registry.Config{}, 4)
	failure := errors.New("after all")
	fork := func(fail error) {
		x.core.OpenWindow()
		require.Equal(t, fail, x.core.Callback(func(w *registry.Window) error {
			registry.Fork(w, task(func(f *registry.Frame, worker, part int) {
				require.Zero(t, worker)
				require.NoError(t, f.Destroy(x.hs[part]))
				_, err := x.class.SpawnLater(f, soldier{})
				require.NoError(t, err)
			}), 10, true)
			return fail
		}))
		x.core.CloseWindow()
	}
	fork(failure)
	require.Equal(t, 640, x.Stats().Live)
	require.True(t, x.Alive(x.hs[3]), "undone with the callback")
	x.frame(func(*registry.Frame) {})
	require.Equal(t, 640, x.Stats().Live, "and so is what it put off")
	fork(nil)
	require.Equal(t, 630, x.Stats().Live)
	x.frame(func(*registry.Frame) {})
	require.Equal(t, 640, x.Stats().Live)
}

func TestASteadyForkAllocatesNothing(t *testing.T) {
	x := newForked(t, registry.Config{}, 1)
	x.frame(func(f *registry.Frame) {
		var nothing registry.Task = task(func(*registry.Frame, int, int) {})
		require.Zero(t, testing.AllocsPerRun(1000, func() { registry.Fork(f, nothing, 20, true) }))
	})
}
