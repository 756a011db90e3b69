package registry_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

func TestANestedForkDoesEveryPartWhateverFails(t *testing.T) {
	for _, workers := range []int{1, 2, 16} {
		for _, bad := range []int{0, 3, 6} {
			x := newForked(t, registry.Config{}, workers)
			var inner, outer atomic.Int64
			x.frame(func(f *registry.Frame) {
				failed := func() (v any) {
					defer func() { v = recover() }()
					registry.Fork(f, task(func(f *registry.Frame, _, o int) {
						defer outer.Add(1)
						registry.Fork(f, task(func(_ *registry.Frame, worker, i int) {
							inner.Add(1)
							if worker != 0 || i == bad {
								panic(fmt.Sprint(o, " ", i))
							}
						}), 7, true)
					}), 7, true)
					return nil
				}()
				err, ok := failed.(*registry.PanicError)
				require.True(t, ok, "%v", failed)
				require.Equal(t, fmt.Sprint(0, " ", bad), err.Value)
				require.Contains(t, string(err.Stack), "TestANestedForkDoesEveryPart")
			})
			require.EqualValues(t, 49, inner.Load())
			require.EqualValues(t, 7, outer.Load())
		}
	}
}

// TestAnExitAfterAPanic has both on the same goroutine, where the exit goes on behind a recover.
func TestAnExitAfterAPanic(t *testing.T) {
	for _, nested := range []bool{false, true} {
		x := newForked(t, registry.Config{}, 1)
		var done int
		var value any
		ended := make(chan bool)
		go func() {
			returned := false
			defer func() { ended <- returned }()
			x.frame(func(f *registry.Frame) {
				defer func() { value = recover() }()
				registry.Fork(f, task(func(f *registry.Frame, _, outer int) {
					parts := 1
					if nested {
						parts = 5
					}
					registry.Fork(f, task(func(_ *registry.Frame, _, inner int) {
						done++
						switch outer + inner {
						case 1:
							panic("first")
						case 2:
							runtime.Goexit()
						}
					}), parts, true)
				}), 5, true)
			})
			returned = true
		}()
		require.False(t, <-ended, "an exit is not called off")
		err, ok := value.(*registry.PanicError)
		require.True(t, ok, "%v", value)
		require.Equal(t, "first", err.Value)
		if nested {
			require.Equal(t, 25, done)
		} else {
			require.Equal(t, 5, done)
		}
	}
}

func TestAnObserversForkFailsAsItsParts(t *testing.T) {
	x := newForked(t, registry.Config{}, 3)
	_, err := x.Observe(registry.Spawned, func(f *registry.Frame, es []registry.Event) {
		registry.Fork(f, task(func(*registry.Frame, int, int) { panic("of an observer") }), 4, true)
	})
	require.NoError(t, err)
	x.frame(func(f *registry.Frame) {
		_, err := x.class.SpawnLater(f, soldier{})
		require.NoError(t, err)
	})
	x.frame(func(*registry.Frame) {})
	require.Len(t, x.reports, 1)
	var failure *registry.PanicError
	require.ErrorAs(t, x.reports[0], &failure)
	require.Equal(t, "of an observer", failure.Value)
	require.Equal(t, "Spawned observer", failure.Where)
	require.Contains(t, string(failure.Stack), "TestAnObserversForkFailsAsItsParts")
}

// TestWishesOfAWishAreGrantedLater: values of new wishes lie behind those that are being granted.
func TestWishesOfAWishAreGrantedLater(t *testing.T) {
	x := newForked(t, registry.Config{}, 3)
	var born []handles.Local
	later := func(f *registry.Frame, n int) {
		h, err := x.class.SpawnLater(f, soldier{Health: health{int64(n)}})
		require.NoError(t, err)
		born = append(born, h)
		require.NoError(t, registry.AddLater(f, h, title{fmt.Sprint(n)}))
	}
	x.frame(func(f *registry.Frame) {
		later(f, 0)
		f.Defer(func(w *registry.Window) error {
			registry.Fork(w, task(func(f *registry.Frame, _, part int) { later(f, 1+part) }), 3, true)
			return nil
		})
	})
	x.frame(func(*registry.Frame) {})
	require.True(t, x.Alive(born[0]))
	require.Len(t, born, 4)
	x.frame(func(f *registry.Frame) {
		for i, h := range born {
			v, err := registry.Peek[health](f, h)
			require.NoError(t, err)
			require.Equal(t, health{int64(i)}, v)
			name, err := registry.Peek[title](f, h)
			require.NoError(t, err)
			require.Equal(t, title{fmt.Sprint(i)}, name)
		}
	})
	require.Empty(t, x.reports)
}

// TestSetActiveOfTheDying has every part destroy some and wake or put to sleep the same ones: the
// books are checked when the test ends, and no dead slot is seen.
func TestSetActiveOfTheDying(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for _, late := range []bool{false, true} {
		for range rounds {
			x := newForked(t, registry.Config{Deterministic: late}, 4)
			x.frame(func(f *registry.Frame) {
				for i, h := range x.hs {
					if i%3 == 0 {
						require.NoError(t, registry.SetActive(f, h, false))
					}
				}
				registry.Fork(f, task(func(f *registry.Frame, _, part int) {
					for i, h := range x.hs {
						switch part {
						case 0:
							_ = f.Destroy(h)
						case 1:
							_ = x.Registry.Destroy(x.hs[len(x.hs)-1-i])
						default:
							_ = registry.SetActive(f, h, (i+part)%2 == 0)
						}
					}
				}), 4, true)
				for _, h := range x.hs {
					require.False(t, x.Alive(h))
					require.False(t, !late && registry.Active(f, h))
				}
			})
			x.frame(func(*registry.Frame) {})
			x.frame(func(*registry.Frame) {})
			require.Zero(t, x.Stats().Live)
			require.Zero(t, x.Stats().Inactive)
		}
	}
}

// TestRandOfAPart draws the same for a part whoever does it, and other numbers in each part, Fork and
// frame.
func TestRandOfAPart(t *testing.T) {
	draw := func(workers int) map[string]uint64 {
		x := newForked(t, registry.Config{}, workers)
		drawn, seen := map[string]uint64{}, map[uint64]bool{}
		for frame := range 3 {
			x.frame(func(f *registry.Frame) {
				for fork := range 3 {
					var numbers [40]uint64
					registry.Fork(f, task(func(f *registry.Frame, _, part int) {
						numbers[part] = f.Rand().Uint64()
						require.Same(t, f.Rand(), f.Rand())
					}), len(numbers), fork != 1)
					for part, n := range numbers {
						require.False(t, seen[n])
						seen[n], drawn[fmt.Sprint(frame, fork, part)] = true, n
					}
				}
			})
		}
		return drawn
	}
	want := draw(1)
	for _, workers := range []int{2, 16} {
		require.Equal(t, want, draw(workers))
	}
}

// TestUpdateHasNoWorkers: between the steps of an engine it is nobody's frame but Update's.
func TestUpdateHasNoWorkers(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	core, err := r.Attach(registry.Hooks{Workers: 4, Spread: func(int, func(int)) { t.Error("spread") }})
	require.NoError(t, err)
	defer core.Detach()
	class, err := registry.RegisterClass[soldier](r)
	require.NoError(t, err)
	parts := 0
	_, err = r.Observe(registry.Spawned, func(f *registry.Frame, _ []registry.Event) {
		require.Equal(t, 1, registry.Workers(f))
		registry.Fork(f, task(func(*registry.Frame, int, int) { parts++ }), 4, true)
	})
	require.NoError(t, err)
	require.NoError(t, r.Update(func(w *registry.Window) error {
		_, err := class.Spawn(w, soldier{})
		return err
	}))
	require.Equal(t, 4, parts)
}

func TestASteadyForkOfManyAllocatesNothing(t *testing.T) {
	x := newForked(t, registry.Config{}, 2)
	var group sync.WaitGroup
	other := make(chan func(int))
	defer close(other)
	go func() {
		for run := range other {
			run(1)
			group.Done()
		}
	}()
	spare := func(n int, run func(int)) {
		group.Add(1)
		other <- run
		run(0)
		group.Wait()
	}
	x.core.Leave()
	x.core.Detach()
	core, err := x.Attach(registry.Hooks{Workers: 2, Spread: spare})
	require.NoError(t, err)
	require.NoError(t, core.Enter(false))
	x.core = core
	x.frame(func(f *registry.Frame) {
		var busy registry.Task = task(func(f *registry.Frame, _, part int) {
			f.Rand().Uint64()
			_ = f.Destroy(x.hs[part]) // stale after the first time
			_ = registry.SetActive(f, x.hs[100+part], part%2 == 0)
		})
		require.Zero(t, testing.AllocsPerRun(1000, func() { registry.Fork(f, busy, 20, true) }))
	})
}

// TestAStepTakenBackInsideAPart: what a part destroys in a window is undone with what it was born in.
func TestAStepTakenBackInsideAPart(t *testing.T) {
	x := newForked(t, registry.Config{}, 4)
	x.core.OpenWindow()
	require.NoError(t, x.core.Callback(func(w *registry.Window) error {
		registry.Fork(w, task(func(f *registry.Frame, _, part int) {
			require.PanicsWithValue(t, "init", func() {
				_, _ = x.class.SpawnBatch(w, 100, func(i int, _ *soldier) {
					require.NoError(t, f.Destroy(x.hs[part*100+i]))
					if i == 50+part {
						panic("init")
					}
				})
			})
			require.NoError(t, f.Destroy(x.hs[600+part]))
			w.ProcessDeferredDestructions()
		}), 6, true)
		return x.Verify()
	}))
	x.core.CloseWindow()
	require.Equal(t, 634, x.Stats().Live)
}
