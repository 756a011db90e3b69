package views_test

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// TestParallelEqualsRuns is views-6 with workers of its own; package logic has it with an engine's.
func TestParallelEqualsRuns(t *testing.T) {
	for _, chunks := range []int{0, 1, 3, 1000} {
		for _, workers := range []int{1, 2, 16} {
			t.Run(fmt.Sprintf("views-6/chunks=%d/workers=%d", chunks, workers), func(t *testing.T) {
				w := newWorld(t)
				c := class[Mover](w, registry.SlotsPerChunk(64))
				hs := w.spawn(c, chunks*64)
				if chunks > 0 {
					w.destroy(hs[10:20]...)
					w.destroy(hs[len(hs)-1])
				}
				q := query[movers](w)
				q.SpreadFrom(0)
				w.frameWith(workers, func(f *registry.Frame) {
					var want [][]handles.Local
					for m := range q.Runs(f) {
						want = append(want, slices.Clone(m.ID))
					}
					sameEverywhere(t, q, f, want)
					q.Parallel(f, func(_ *registry.Frame, m *movers) {
						for i := range m.Pos {
							m.Pos[i].Y += 1 + m.Vel[i].Y
						}
					})
					for m := range q.Runs(f) {
						for i, p := range m.Pos {
							require.Equal(t, Position{p.X, 1 + p.X}, m.Pos[i])
						}
					}
				})
			})
		}
	}
}

// outcome is what a parallel loop in which everything happens leaves behind.
type outcome struct {
	alive, wished []handles.Local
	marks         []Mark
	calls         []int
	drawn         []uint64
}

// TestParallelHasOneOutcomeForAnyNumberOfWorkers destroys, draws random numbers and puts structure off.
func TestParallelHasOneOutcomeForAnyNumberOfWorkers(t *testing.T) {
	play := func(workers int) (o outcome) {
		r, err := registry.New(registry.Config{Deterministic: true})
		require.NoError(t, err)
		registered[Mark](t, r)
		w := &world{Registry: r, tb: t}
		c := class[Mover](w, registry.SlotsPerChunk(64))
		hs := w.spawn(c, 2000)
		q := query[movers](w)
		q.SpreadFrom(0)
		o.drawn = make([]uint64, len(hs))
		for range 3 {
			w.frameWith(workers, func(f *registry.Frame) {
				var mu sync.Mutex
				q.Parallel(f, func(f *registry.Frame, m *movers) {
					assert.Equal(t, w.Registry, f.Registry())
					rnd := f.Rand()
					first := int(m.Pos[0].X)
					f.Defer(func(*registry.Window) error {
						o.calls = append(o.calls, first)
						return nil
					})
					for i, h := range m.ID {
						n := int(m.Pos[i].X)
						if n < 0 { // born later
							continue
						}
						m.Pos[i].Y = float64(rnd.Uint64N(100))
						o.drawn[n] += uint64(m.Pos[i].Y) + rnd.Uint64()
						switch {
						case n%7 == 0:
							assert.NoError(t, f.Destroy(h))
						case n%11 == 0:
							late, err := c.SpawnLater(f, Mover{Pos: Position{X: -1}})
							assert.NoError(t, err)
							mu.Lock()
							o.wished = append(o.wished, late)
							mu.Unlock()
						case n%13 == 0:
							assert.NoError(t, registry.AddLater(f, h, Mark(n)))
						}
					}
				})
			})
		}
		slices.Sort(o.wished)
		w.window(func(win *registry.Window) {
			o.alive = visited(query[ids](w), win)
			for m := range query[struct{ Mark []Mark }](w).Runs(win) {
				o.marks = append(o.marks, m.Mark...)
			}
		})
		require.NoError(t, r.Verify())
		return o
	}
	want := play(1)
	require.NotEmpty(t, want.wished)
	require.NotEmpty(t, want.marks)
	for _, workers := range []int{2, 3, 16} {
		require.True(t, reflect.DeepEqual(want, play(workers)), "%d workers", workers) // too much to print
	}
}

func TestAPanicInAPartComesOnce(t *testing.T) {
	failed := errors.New("last chunk")
	for _, workers := range []int{1, 2, 16} {
		for name, end := range map[string]func(){"panic": func() { panic(failed) }, "exit": runtime.Goexit} {
			t.Run(fmt.Sprintf("views-6/%s/workers=%d", name, workers), func(t *testing.T) {
				w := newWorld(t)
				hs := w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), 640)
				q := query[movers](w)
				q.SpreadFrom(0)
				var mu sync.Mutex
				seen, caught := 0, 0
				frame := func(f *registry.Frame) {
					defer func() {
						switch v := recover().(type) {
						case *registry.PanicError:
							caught++
							if name == "panic" {
								require.ErrorIs(t, v, failed)
							} else {
								require.ErrorIs(t, v, registry.ErrGoexit)
							}
							require.Contains(t, string(v.Stack)+name, name)
						case nil:
						default:
							t.Errorf("panicked with %v", v)
						}
					}()
					q.Parallel(f, func(_ *registry.Frame, m *movers) {
						if m.ID[0] == hs[len(hs)-64] {
							end()
						}
						mu.Lock()
						defer mu.Unlock()
						seen += len(m.ID)
					})
				}
				done := make(chan struct{}) // an exit ends the goroutine of a sole worker
				go func() {
					defer close(done)
					w.frameWith(workers, frame)
				}()
				<-done
				require.Equal(t, 640-64, seen, "the other chunks are done")
				if name == "panic" {
					require.Equal(t, 1, caught)
				}
				w.frameWith(workers, func(f *registry.Frame) {
					n := 0
					q.Parallel(f, func(_ *registry.Frame, m *movers) {
						mu.Lock()
						defer mu.Unlock()
						n += len(m.ID)
					})
					require.Equal(t, 640, n, "nothing is held")
				})
			})
		}
	}
}

func TestANestedParallelEnds(t *testing.T) {
	for _, workers := range []int{1, 2, 16} {
		t.Run(fmt.Sprintf("views-6/nested/workers=%d", workers), func(t *testing.T) {
			w := newWorld(t)
			w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), 640)
			q := query[movers](w)
			read := query[watchers](w)
			q.SpreadFrom(0)
			read.SpreadFrom(0)
			w.frameWith(workers, func(outer *registry.Frame) {
				var mu sync.Mutex
				total, fromOuter := 0, 0
				q.Parallel(outer, func(f *registry.Frame, m *movers) {
					n := 0
					q.Parallel(f, func(f *registry.Frame, m *movers) { n += len(m.ID) })
					read.Parallel(f, func(_ *registry.Frame, m *watchers) { n += len(m.At) })
					k := 0
					read.Parallel(outer, func(_ *registry.Frame, m *watchers) { k += len(m.At) })
					mu.Lock()
					defer mu.Unlock()
					total, fromOuter = total+n, fromOuter+k
				})
				require.Equal(t, 10*2*640, total)
				require.Equal(t, 10*640, fromOuter)
			})
		})
	}
}

func TestFewEntitiesStayOnTheCaller(t *testing.T) {
	w := newWorld(t)
	c := class[Mover](w)
	w.spawn(c, 64<<10-1)
	q := query[movers](w)
	count := func() (calls, most int) {
		core, err := w.Attach(registry.Hooks{Workers: 2, Spread: func(n int, run func(int)) {
			most = max(most, n)
			spread(n, run)
		}})
		require.NoError(t, err)
		defer core.Detach()
		require.NoError(t, core.Enter(false))
		defer core.Leave()
		core.Advance()
		core.OpenWindow()
		core.CloseWindow()
		f := core.NewFrame()
		defer core.EndFrame()
		core.System("test", func() {
			var mu sync.Mutex
			q.Parallel(f, func(_ *registry.Frame, m *movers) {
				mu.Lock()
				defer mu.Unlock()
				calls += len(m.ID)
			})
		})
		return calls, most
	}
	calls, most := count()
	require.Equal(t, 64<<10-1, calls)
	require.Zero(t, most)
	w.spawn(c, 1)
	calls, most = count()
	require.Equal(t, 64<<10, calls)
	require.Equal(t, 2, most)
}

func TestParallelInAWindowSeesWhatRunsWould(t *testing.T) {
	w := newWorld(t)
	c := class[Mover](w, registry.SlotsPerChunk(64))
	hs := w.spawn(c, 200)
	q := query[movers](w, views.Without[Frozen]())
	q.SpreadFrom(0)
	w.window(func(win *registry.Window) {
		n := 0
		q.Parallel(win, func(f *registry.Frame, m *movers) {
			n += len(m.ID)
			for _, h := range slices.Clone(m.ID) {
				_, err := c.Spawn(win, Mover{})
				require.NoError(t, err)
				require.NoError(t, registry.Add(win, h, Frozen{}))
			}
			if n == 64 {
				require.NoError(t, f.Destroy(hs[199]))
			}
		})
		require.Equal(t, 199, n)
	})
}
