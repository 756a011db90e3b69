package logic_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// crowd is a class whose chunks are small, so that a parallel loop that is worth it has many.
type crowd struct {
	Value value
	Self  self
}

type self struct{ ID handles.Local }

type crowds struct {
	Value []value
	Self  []self `ecs:"read"`
	ID    []handles.Local
}

// bornCrowds is what a crowd is born with.
type bornCrowds struct {
	Value []value
	Self  []self
	ID    []handles.Local
}

const crowdSlots = 128

// manyChunks is how many chunks of a crowd are beyond what Parallel leaves to the caller: under the race detector just so.
func manyChunks() int {
	if raceEnabled {
		return 520
	}
	return 1000
}

// newCrowd has n entities, each of which holds its own handle, in a world with some workers.
func newCrowd(t testing.TB, workers, n int, edits ...func(*registry.Config)) (*world, *registry.Class[crowd], *views.Query[crowds], []handles.Local) {
	rc := registry.Config{MaxEntities: 1 << 20}
	for _, edit := range edits {
		edit(&rc)
	}
	w := newWorldIn(t, rc, func(c *logic.Config) { c.Workers = workers })
	class, err := registry.RegisterClass[crowd](w.r, registry.SlotsPerChunk(crowdSlots))
	require.NoError(t, err)
	q, err := views.NewQuery[crowds](w.r)
	require.NoError(t, err)
	var hs []handles.Local
	w.update(func(win *registry.Window) error {
		hs, err = views.SpawnColumns(win, class, n, func(m *bornCrowds) {
			for i, h := range m.ID {
				m.Value[i].N, m.Self[i] = int(h.Index()), self{h}
			}
		})
		return err
	})
	return w, class, q, hs
}

// once runs fn as a system of one frame.
func (w *world) once(fn func(*logic.Frame)) error {
	w.t.Helper()
	s, err := w.e.AddSystem(logic.Physics, "once", fn)
	require.NoError(w.t, err)
	err = w.e.Step()
	require.NoError(w.t, s.Remove())
	return err
}

func TestParallelEqualsRuns(t *testing.T) {
	for _, chunks := range []int{0, 1, 3, manyChunks()} {
		for _, workers := range []int{1, 2, 16} {
			t.Run(fmt.Sprintf("views-6/chunks=%d/workers=%d", chunks, workers), func(t *testing.T) {
				w, _, q, hs := newCrowd(t, workers, chunks*crowdSlots)
				for i, h := range hs {
					if i%1000 == 7 {
						require.NoError(t, w.r.Destroy(h))
					}
				}
				require.NoError(t, w.once(func(f *logic.Frame) {
					var want, got [][]handles.Local
					for m := range q.Runs(f) {
						want = append(want, slices.Clone(m.ID))
					}
					var mu sync.Mutex
					q.Parallel(f, func(_ *registry.Frame, m *crowds) {
						for i := range m.Value {
							m.Value[i].N += 1 << 32
						}
						mu.Lock()
						defer mu.Unlock()
						got = append(got, slices.Clone(m.ID))
					})
					slices.SortFunc(got, func(a, b []handles.Local) int { return int(a[0].Index()) - int(b[0].Index()) })
					slices.SortFunc(want, func(a, b []handles.Local) int { return int(a[0].Index()) - int(b[0].Index()) })
					require.True(t, reflect.DeepEqual(want, got)) // too much to print
					for m := range q.Runs(f) {
						for i, h := range m.ID {
							if want := 1<<32 + int(h.Index()); m.Value[i].N != want {
								require.Equal(t, want, m.Value[i].N, "each once")
							}
						}
					}
				}))
				require.Empty(t, w.told())
			})
		}
	}
}

// TestParallelUsesTheWorkers has the first parts wait for one another, which ends only if as many
// goroutines are at work.
func TestParallelUsesTheWorkers(t *testing.T) {
	const workers = 4
	w, _, q, _ := newCrowd(t, workers, manyChunks()*crowdSlots)
	require.NoError(t, w.once(func(f *logic.Frame) {
		var met sync.WaitGroup
		met.Add(workers)
		var part atomic.Int32
		q.Parallel(f, func(f *registry.Frame, _ *crowds) {
			if part.Add(1) <= workers {
				met.Done()
				met.Wait()
			}
			_, err := registry.Peek[value](f, 0)
			assert.Error(t, err)
		})
	}))
}

func TestAPanicInAParallelLoopIsReportedOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 16} {
		for name, end := range map[string]func(){"panic": func() { panic(errTest) }, "exit": runtime.Goexit} {
			t.Run(fmt.Sprintf("views-6/%s/workers=%d", name, workers), func(t *testing.T) {
				w, _, q, hs := newCrowd(t, workers, manyChunks()*crowdSlots)
				last := hs[len(hs)-1]
				var seen atomic.Int32
				after := false
				_, err := w.e.AddSystem(logic.Late, "after", func(*logic.Frame) { after = true })
				require.NoError(t, err)
				err = w.once(func(f *logic.Frame) {
					q.Parallel(f, func(_ *registry.Frame, m *crowds) {
						if m.ID[len(m.ID)-1] == last {
							end()
						}
						seen.Add(int32(len(m.ID)))
					})
				})
				want := errTest
				if name == "exit" {
					want = registry.ErrGoexit
				}
				require.ErrorIs(t, err, want)
				var failure *registry.PanicError
				require.ErrorAs(t, err, &failure)
				require.Equal(t, "once", failure.Where)
				require.Len(t, w.told(), 1)
				require.True(t, after, "the frame goes on")
				require.EqualValues(t, len(hs)-crowdSlots, seen.Load(), "the other chunks are done")
				seen.Store(0)
				require.NoError(t, w.once(func(f *logic.Frame) {
					q.Parallel(f, func(_ *registry.Frame, m *crowds) { seen.Add(int32(len(m.ID))) })
				}))
				require.EqualValues(t, len(hs), seen.Load(), "nothing is held")
			})
		}
	}
}

func TestANestedParallelEnds(t *testing.T) {
	for _, workers := range []int{1, 2, 16} {
		t.Run(fmt.Sprintf("views-6/nested/workers=%d", workers), func(t *testing.T) {
			w, _, q, hs := newCrowd(t, workers, 520*crowdSlots)
			var outer, inner atomic.Int64
			require.NoError(t, soon(t, "nested", func() error {
				return w.once(func(f *logic.Frame) {
					q.Parallel(f, func(f *registry.Frame, m *crowds) {
						if outer.Add(1)%100 == 1 {
							q.Parallel(f, func(_ *registry.Frame, m *crowds) { inner.Add(int64(len(m.ID))) })
						}
					})
				})
			}))
			require.EqualValues(t, 520, outer.Load())
			require.EqualValues(t, 6*len(hs), inner.Load())
		})
	}
}

// TestFramesAreAlikeForAnyNumberOfWorkers plays a small world in which every part spawns, destroys,
// draws and puts off.
func TestFramesAreAlikeForAnyNumberOfWorkers(t *testing.T) {
	type state struct {
		ids    []handles.Local
		values []value
		calls  []int
	}
	frames := 5
	if raceEnabled {
		frames = 3
	}
	play := func(workers int) (s state) {
		w, class, q, _ := newCrowd(t, workers, 600*crowdSlots, func(c *registry.Config) { c.Deterministic = true })
		_, err := w.e.AddSystem(logic.Physics, "churn", func(f *logic.Frame) {
			q.Parallel(f, func(f *registry.Frame, m *crowds) {
				rnd := f.Rand()
				f.Defer(func(*registry.Window) error {
					s.calls = append(s.calls, len(m.ID))
					return nil
				})
				for i, h := range m.ID {
					m.Value[i].N = m.Value[i].N*31 + rnd.IntN(1000)
					switch m.Value[i].N % 50 {
					case 0:
						assert.NoError(t, f.Destroy(h))
					case 1:
						if _, err := class.SpawnLater(f, crowd{Value: m.Value[i]}); err != nil {
							t.Error(err)
						}
					}
				}
			})
		})
		require.NoError(t, err)
		for range frames {
			w.step()
		}
		w.update(func(win *registry.Window) error {
			for m := range q.Runs(win) {
				s.ids = append(s.ids, m.ID...)
				s.values = append(s.values, m.Value...)
			}
			return nil
		})
		require.Empty(t, w.told())
		return s
	}
	want := play(1)
	require.NotEmpty(t, want.calls)
	for _, workers := range []int{2, 16} {
		require.True(t, reflect.DeepEqual(want, play(workers)), "%d workers", workers) // too much to print
	}
}
