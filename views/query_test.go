package views_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

func TestRunsShowTheStorageItself(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		c := class[Mover](w)
		hs := w.spawn(c, 3000) // a small first chunk and more than one after it
		q := query[movers](w)
		inside(func(a registry.Access) {
			for m := range q.Runs(a) {
				require.Len(t, m.Vel, len(m.Pos))
				require.Len(t, m.ID, len(m.Pos))
				require.Equal(t, len(m.Pos), cap(m.Pos), "append must not reach a neighbour")
				for i := range m.Pos {
					m.Pos[i].Y += m.Vel[i].Y
				}
			}
			for i, h := range hs {
				p, err := registry.Peek[Position](a, h)
				require.NoError(t, err)
				require.Equal(t, Position{float64(i), float64(i)}, p)
			}
			require.Equal(t, 3000, q.Count(a))
		})
	})
}

func TestRunsShowColumnsOfEverySize(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		type thing struct {
			Name Name
			Odd  Odd
			Alt  Altitude
			Mark Mark
			Pos  Position
		}
		type view struct {
			Mark []Mark
			Name []Name
			Z    []float32 `ecs:"Altitude.Z"`
			X    []float32 `ecs:"Altitude.X"`
			Odd  []Odd
			Pos  []Position
		}
		c, q := class[thing](w), query[view](w)
		var hs []handles.Local
		w.window(func(win *registry.Window) {
			for i := range 200 {
				h, err := c.Spawn(win, thing{
					Name{string(rune('a' + i%26)), []int32{int32(i)}}, Odd{byte(i)}, Altitude{float32(i), 0, float32(-i)},
					Mark(i), Position{float64(i), 0},
				})
				require.NoError(t, err)
				hs = append(hs, h)
			}
		})
		runtime.GC()
		w.destroy(hs[70])
		inside(func(a registry.Access) {
			seen := 0
			for m := range q.Runs(a) {
				for j := range m.Mark {
					i := int(m.Mark[j])
					seen++
					assert.Equal(t, Name{string(rune('a' + i%26)), []int32{int32(i)}}, m.Name[j])
					assert.Equal(t, Odd{byte(i)}, m.Odd[j])
					assert.Equal(t, float32(i), m.X[j])
					assert.Equal(t, float32(-i), m.Z[j])
					assert.Equal(t, float64(i), m.Pos[j].X)
					m.Name[j].Text += "!"
				}
				runtime.GC()
			}
			require.Equal(t, 199, seen)
			n, err := registry.Peek[Name](a, hs[27])
			require.NoError(t, err)
			require.Equal(t, "b!", n.Text)
		})
	})
}

func TestFiltersAloneMakeAQuery(t *testing.T) {
	w := newWorld(t)
	hs := w.spawn(class[Mover](w), 100)
	type nothing struct{}
	all, frozen, rest := query[nothing](w), query[nothing](w, views.With[Frozen]()), query[ids](w, views.Without[Frozen]())
	w.window(func(win *registry.Window) {
		require.Equal(t, 40, registry.AddBatch(win, hs[10:50], Frozen{}))
		require.Equal(t, 100, all.Count(win))
		require.Equal(t, 40, frozen.Count(win))
		require.Equal(t, 60, rest.Count(win))
		require.ElementsMatch(t, append(append([]handles.Local(nil), hs[:10]...), hs[50:]...), visited(rest, win))
		runs := 0
		for range frozen.Runs(win) {
			runs++
		}
		require.Equal(t, 1, runs, "an empty struct is yielded once a run")
	})
}

func TestInactiveEntitiesAreInNoRun(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		hs := w.spawn(class[Mover](w), 130)
		q := query[ids](w)
		w.window(func(win *registry.Window) { require.NoError(t, registry.SetActive(win, hs[64], false)) })
		inside(func(a registry.Access) {
			require.Equal(t, append(append([]handles.Local(nil), hs[:64]...), hs[65:]...), visited(q, a))
			require.Equal(t, 129, q.Count(a))
		})
		w.window(func(win *registry.Window) { require.NoError(t, registry.SetActive(win, hs[64], true)) })
		inside(func(a registry.Access) { require.Equal(t, hs, visited(q, a)) })
	})
}

func TestTokensAreChecked(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	hs := w.spawn(class[Mover](w), 10)
	q := query[ids](w)
	loop := func(a registry.Access) func() {
		return func() {
			for range q.Runs(a) {
				t.Error("yielded")
			}
		}
	}
	var win *registry.Window
	w.window(func(open *registry.Window) { win = open })
	var fr *registry.Frame
	w.frame(func(f *registry.Frame) { fr = f })
	for _, a := range []registry.Access{win, fr} {
		require.PanicsWithError(t, registry.ErrExpired.Error(), loop(a))
		require.PanicsWithError(t, registry.ErrExpired.Error(), func() { q.Count(a) })
	}
	other.window(func(foreign *registry.Window) {
		panicsWith(t, views.ErrForeign, loop(foreign))
		panicsWith(t, views.ErrForeign, func() { q.Count(foreign) })
	})
	require.Panics(t, loop(nil))
	// None of that left anything held.
	w.window(func(win *registry.Window) { require.Equal(t, hs, visited(q, win)) })
}

func panicsWith(t *testing.T, target error, fn func()) {
	t.Helper()
	defer func() {
		err, ok := recover().(error)
		require.True(t, ok, "no panic with an error")
		require.ErrorIs(t, err, target)
	}()
	fn()
}

// gameFrame is a frame as an engine wraps it: with more than the token in it.
type gameFrame struct {
	*registry.Frame
	Delta float64
}

func TestAWrappedFrameIsAFrame(t *testing.T) {
	w := newWorld(t)
	w.spawn(class[Mover](w), 100)
	q := query[movers](w)
	w.frame(func(fr *registry.Frame) {
		f := &gameFrame{fr, 0.5}
		for m := range q.Runs(f) {
			for i := range m.Pos {
				m.Pos[i].X += m.Vel[i].X * f.Delta
			}
		}
		require.Equal(t, 100, q.Count(f))
	})
}

func TestLeavingALoopEarlyLeavesNothingHeld(t *testing.T) {
	w := newWorld(t)
	c := class[Mover](w)
	w.spawn(c, 10)
	q := query[ids](w)
	alive := 10
	// check spawns: what a loop left held would keep the newborn from being seen.
	check := func(win *registry.Window) {
		t.Helper()
		_, err := c.Spawn(win, Mover{})
		require.NoError(t, err)
		alive++
		require.Equal(t, alive, q.Count(win))
		require.Len(t, visited(q, win), alive)
		require.Equal(t, 1, q.Kept(), "the view struct came back")
	}
	w.window(func(win *registry.Window) {
		for range q.Runs(win) {
			break
		}
		check(win)
		func() {
			for range q.Runs(win) {
				return
			}
		}()
		check(win)
		require.PanicsWithValue(t, "body", func() {
			for range q.Runs(win) {
				panic("body")
			}
		})
		check(win)
	outer:
		for range q.Runs(win) {
			for range q.Runs(win) {
				break outer
			}
		}
		require.Equal(t, 2, q.Kept(), "a nested loop's struct is kept too")
	})
	// Goexit ends the callback's goroutine, so the callback counts as failed; what matters is
	// that the next window finds nothing held.
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		_ = w.Update(func(win *registry.Window) error {
			for range q.Runs(win) {
				runtime.Goexit()
			}
			return nil
		})
	}()
	done.Wait()
	w.window(func(win *registry.Window) { require.Equal(t, alive, q.Count(win)) })
}

func TestAStructKeptPastItsLoopShowsNothing(t *testing.T) {
	w := newWorld(t)
	w.spawn(class[Mover](w), 10)
	q := query[movers](w)
	w.window(func(win *registry.Window) {
		var kept *movers
		for m := range q.Runs(win) {
			kept = m
		}
		require.Equal(t, movers{}, *kept)
	})
}

func TestNestedLoopsDoNotShareAStruct(t *testing.T) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), 150)
		q := query[ids](w)
		inside(func(a registry.Access) {
			pairs := 0
			for m := range q.Runs(a) {
				for _, h := range m.ID {
					inner := visited(q, a)
					pairs += len(inner)
					require.True(t, w.Alive(h))
				}
				require.NotEmpty(t, m.ID)
			}
			require.Equal(t, 150*150, pairs)
			require.Equal(t, 2, q.Kept())
		})
	})
}

func TestManyLoopsAtOnceKeepABoundedNumberOfStructs(t *testing.T) {
	w := newWorld(t)
	w.spawn(class[Mover](w), 1)
	q := query[ids](w)
	w.window(func(win *registry.Window) {
		var nest func(depth int)
		nest = func(depth int) {
			if depth == 0 {
				return
			}
			for range q.Runs(win) {
				nest(depth - 1)
			}
		}
		nest(2 * views.SpareCount)
		require.Equal(t, views.SpareCount, q.Kept())
	})
}

func TestGoroutinesShareAQueryInsideAFrame(t *testing.T) {
	w := newWorld(t)
	hs := w.spawn(class[Mover](w), 5000)
	w.destroy(hs[100:200]...)
	q := query[movers](w)
	w.frame(func(f *registry.Frame) {
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range 5 {
					sum, n := 0.0, 0
					for m := range q.Runs(f) {
						for i := range m.Pos {
							sum += m.Pos[i].X
						}
						n += len(m.ID)
					}
					assert.Equal(t, 4900, n)
					assert.Equal(t, 5000.0*4999/2-(100+199)*50, sum)
					assert.Equal(t, 4900, q.Count(f))
				}
			})
		}
		wg.Wait()
	})
	require.LessOrEqual(t, q.Kept(), views.SpareCount)
}

func TestWorkersThatDestroyWhileOthersLoop(t *testing.T) {
	w := newWorld(t)
	hs := w.spawn(class[Mover](w), 4000)
	q := query[ids](w)
	w.frame(func(f *registry.Frame) {
		var wg sync.WaitGroup
		for part := range 4 {
			wg.Go(func() {
				for i := part; i < len(hs); i += 8 { // half of all
					assert.NoError(t, f.Destroy(hs[i]))
				}
			})
		}
		for range 4 {
			wg.Go(func() {
				for range 50 {
					n := 0
					for m := range q.Runs(f) {
						n += len(m.ID)
					}
					assert.GreaterOrEqual(t, n, 2000)
					assert.LessOrEqual(t, n, 4000)
				}
			})
		}
		wg.Wait()
		require.Equal(t, 2000, q.Count(f))
	})
}
