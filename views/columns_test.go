package views_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

func TestTheIndexColumnTellsCacheIndices(t *testing.T) {
	type view struct {
		ID []handles.Local
		At []uint32 `ecs:"index"`
	}
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		c := class[Mover](w, registry.SlotsPerChunk(128))
		q := query[view](w)
		seen := 0
		look := func(a registry.Access, m *view) {
			require.Len(t, m.At, len(m.ID))
			require.Equal(t, len(m.At), cap(m.At))
			for i, h := range m.ID {
				at, ok := registry.CacheIndex(a, h)
				require.True(t, ok)
				require.Equal(t, at, m.At[i])
				seen++
			}
		}
		w.destroy(w.spawn(c, 300)[50:99]...)
		inside(func(a registry.Access) {
			var kept []uint32
			for m := range q.Runs(a) {
				look(a, m)
				kept = m.At
			}
			require.Equal(t, 251, seen)
			first := kept[0]
			for m, mask := range q.Spans(a) {
				for i, at := range m.At {
					require.Equal(t, mask.Base()+uint32(i), at)
				}
			}
			q.Parallel(a, func(f *registry.Frame, m *view) { look(f, m) })
			require.Equal(t, 502, seen)
			if win, ok := a.(*registry.Window); ok { // the table grows while a loop is at it
				n := 0
				for m := range q.Runs(a) {
					_, err := c.SpawnBatch(win, 1000, nil)
					require.NoError(t, err)
					look(a, m)
					n++
				}
				require.NotZero(t, n)
				require.Equal(t, first, kept[0], "a part of the old table")
				seen = 0
				for m := range q.Runs(a) {
					look(a, m)
				}
				require.Equal(t, 251+n*1000, seen)
			}
		})
	})
}

// TestIndexColumnsOnManyGoroutines is for the race detector: the table is made by whoever needs it.
func TestIndexColumnsOnManyGoroutines(t *testing.T) {
	type view struct {
		At []uint32 `ecs:"index"`
	}
	w := newWorld(t)
	c := class[Mover](w)
	q := query[view](w)
	for range 3 {
		w.spawn(c, 5000)
		w.frame(func(f *registry.Frame) {
			var wg sync.WaitGroup
			sums := make([]uint64, 16)
			for g := range sums {
				wg.Go(func() {
					for m := range q.Runs(f) {
						for _, at := range m.At {
							sums[g] += uint64(at)
						}
					}
				})
			}
			wg.Wait()
			for _, s := range sums {
				require.Equal(t, sums[0], s)
			}
		})
	}
}

func TestVerifyFindsAnIndexThatWasWritten(t *testing.T) {
	type view struct {
		At []uint32 `ecs:"index"`
	}
	w := newWorld(t)
	w.spawn(class[Mover](w), 100)
	var at []uint32
	w.window(func(win *registry.Window) {
		for m := range query[view](w).Runs(win) {
			at = m.At
		}
	})
	at[7]++
	require.ErrorContains(t, w.Verify(), "cache indices")
	at[7]--
}

func TestOptionalColumnsAreNilWhereThereAreNone(t *testing.T) {
	type view struct {
		Pos  []Position
		Mark []Mark    `ecs:"optional"`
		Name []Name    `ecs:"optional,read"`
		Y    []float32 `ecs:"Altitude.Y,optional"`
		ID   []handles.Local
	}
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		hs := w.spawn(class[Mover](w), 100)
		q := query[view](w)
		require.Equal(t, []string{"Name", "ID"}, q.Reads())
		w.window(func(win *registry.Window) {
			for i, h := range hs {
				if i%2 == 0 {
					require.NoError(t, registry.Add(win, h, Mark(i)))
				}
				if i%3 == 0 {
					require.NoError(t, registry.Add(win, h, Altitude{Y: float32(i)}))
				}
			}
		})
		inside(func(a registry.Access) {
			seen := map[handles.Local]bool{}
			check := func(pos []Position, mark []Mark, name []Name, y []float32, id []handles.Local) {
				require.Len(t, pos, len(id))
				require.Nil(t, name, "nobody has one")
				for i, h := range id {
					n := int(pos[i].X)
					require.Equal(t, hs[n], h)
					seen[h] = true
					if n%2 == 0 {
						require.Equal(t, Mark(n), mark[i])
					} else {
						require.Nil(t, mark)
					}
					if n%3 == 0 {
						require.InDelta(t, n, y[i], 0)
					} else {
						require.Nil(t, y)
					}
				}
			}
			for m := range q.Runs(a) {
				check(m.Pos, m.Mark, m.Name, m.Y, m.ID)
			}
			require.Len(t, seen, 100)
			clear(seen)
			for m, mask := range q.Spans(a) {
				require.True(t, m.Mark == nil || len(m.Mark) == len(m.Pos))
				for _, i := range mask.Live() {
					var mark []Mark
					var y []float32
					if m.Mark != nil {
						mark = m.Mark[i : i+1]
					}
					if m.Y != nil {
						y = m.Y[i : i+1]
					}
					check(m.Pos[i:i+1], mark, m.Name, y, m.ID[i:i+1])
				}
			}
			require.Len(t, seen, 100)
			clear(seen)
			q.Parallel(a, func(_ *registry.Frame, m *view) { check(m.Pos, m.Mark, m.Name, m.Y, m.ID) })
			require.Len(t, seen, 100)
			require.Equal(t, 100, q.Count(a))
		})
	})
}

func TestInClassKeepsEntitiesOfOneClass(t *testing.T) {
	type Rock struct {
		Pos Position
		Vel Velocity
	}
	w := newWorld(t)
	rocks := class[Rock](w)
	hs := w.spawn(class[Mover](w), 10)
	q, qr := query[ids](w, views.InClass[Mover]()), query[ids](w, views.InClass[Rock](), views.InClass[Rock]())
	w.window(func(win *registry.Window) {
		rs, err := rocks.SpawnBatch(win, 5, nil)
		require.NoError(t, err)
		require.NoError(t, registry.Add(win, hs[3], Frozen{}))
		require.NoError(t, registry.Add(win, rs[3], Frozen{}))
		require.ElementsMatch(t, hs, visited(q, win), "whatever was added since")
		require.ElementsMatch(t, rs, visited(qr, win))
		require.Equal(t, 10, q.Count(win))
		require.Equal(t, 5, query[ids](w, views.InClass[Rock]()).DestroyAll(win))
		require.Zero(t, qr.Count(win))
		require.Equal(t, 10, q.Count(win))
	})
	_, err := views.NewQuery[ids](w.Registry, views.InClass[Mover](), views.InClass[Rock]())
	require.ErrorContains(t, err, "one class")
}

func TestDestroyAllIsWhatRunsWouldShow(t *testing.T) {
	w := newWorld(t)
	c := class[Mover](w, registry.SlotsPerChunk(64))
	hs := w.spawn(c, 300)
	w.destroy(hs[60:70]...)
	thawed, all := query[ids](w, views.Without[Frozen]()), query[ids](w)
	failed := errors.New("undo")
	w.window(func(win *registry.Window) {
		require.NoError(t, registry.SetActive(win, hs[5], false))
		require.Equal(t, 100, registry.AddBatch(win, hs[200:], Frozen{}))
		for i := range 10 { // children of the first, of which some match
			require.NoError(t, registry.SetParent(win, hs[195+i], hs[0]))
		}
	})
	require.ErrorIs(t, w.Update(func(win *registry.Window) error {
		require.Equal(t, 189-5, thawed.DestroyAll(win), "less the children that die with their parent")
		require.Zero(t, thawed.Count(win))
		require.Zero(t, thawed.DestroyAll(win))
		return failed
	}), failed)
	w.window(func(win *registry.Window) {
		require.Equal(t, 189, thawed.Count(win), "undone")
		require.Equal(t, 289, all.Count(win))
		require.Equal(t, 184, thawed.DestroyAll(win))
		require.Equal(t, 95, all.Count(win), "the frozen ones but the children")
		require.True(t, w.Alive(hs[5]), "inactive entities are in no run")
		h, err := c.Spawn(win, Mover{})
		require.NoError(t, err)
		for range all.Runs(win) {
			_, err := c.Spawn(win, Mover{})
			require.NoError(t, err)
			require.LessOrEqual(t, all.DestroyAll(win), 96, "not those born in the loop")
		}
		require.False(t, w.Alive(h))
		require.NotZero(t, all.Count(win))
	})
}

// TestSpansMayComputeDeadLanes writes to all lanes, dead ones too. Nobody that is spawned there later
// finds anything of it.
func TestSpansMayComputeDeadLanes(t *testing.T) {
	type view struct {
		Pos  []Position
		Name []Name
	}
	type Named struct {
		Pos  Position
		Name Name
	}
	w := newWorld(t)
	c := class[Named](w, registry.SlotsPerChunk(64))
	q := query[view](w)
	scribble := func(a registry.Access) {
		for m := range q.Spans(a) {
			for i := range m.Pos {
				m.Pos[i].X++
				m.Name[i].Tail = []int32{int32(i)}
			}
		}
	}
	fresh := func(win *registry.Window, h handles.Local) {
		p, err := registry.Peek[Position](win, h)
		require.NoError(t, err)
		n, err := registry.Peek[Name](win, h)
		require.NoError(t, err)
		require.Zero(t, p)
		require.Zero(t, n)
	}
	var hs []handles.Local
	w.window(func(win *registry.Window) {
		var err error
		hs, err = c.SpawnBatch(win, 200, nil)
		require.NoError(t, err)
	})
	for round := range 3 {
		w.destroy(hs[10:150]...)
		w.window(func(win *registry.Window) { scribble(win) })
		require.NoError(t, w.Verify())
		w.frame(func(f *registry.Frame) { scribble(f) })
		w.window(func(win *registry.Window) {
			one, err := c.Spawn(win, Named{})
			require.NoError(t, err)
			fresh(win, one)
			some, err := views.SpawnColumns(win, c, 139, func(m *view) {
				for i := range m.Pos {
					require.Zero(t, m.Pos[i], "round %d", round)
					require.Zero(t, m.Name[i])
				}
			})
			require.NoError(t, err)
			for _, h := range some {
				fresh(win, h)
			}
			hs = append(append(hs[:10], append(some, one)...), hs[150:]...)
		})
		require.NoError(t, w.Verify())
	}
}

// TestLeavingAnyLoopLeavesNothingHeld leaves by a break, a panic and an exit of the goroutine.
func TestLeavingAnyLoopLeavesNothingHeld(t *testing.T) {
	for _, l := range loops {
		t.Run(l.name, func(t *testing.T) {
			w := newWorld(t)
			c := class[Mover](w)
			w.spawn(c, 10)
			q := query[movers](w)
			alive := 10
			// check spawns: what a loop left held would keep the newborn from being seen.
			check := func(win *registry.Window) {
				t.Helper()
				_, err := c.Spawn(win, Mover{})
				require.NoError(t, err)
				alive++
				require.Len(t, l.shownBy(q, win), alive)
				require.Len(t, visited(query[ids](w), win), alive)
			}
			failed := errors.New("body")
			w.window(func(win *registry.Window) {
				l.each(q, win, func(movers) bool { return false })
				check(win)
				func() {
					defer func() {
						err, _ := recover().(error)
						require.ErrorIs(t, err, failed)
					}()
					l.each(q, win, func(movers) bool { panic(failed) })
				}()
				check(win)
				l.each(q, win, func(movers) bool { // nested, the inner one left
					l.each(q, win, func(movers) bool { return false })
					return true
				})
				check(win)
			})
			w.frame(func(f *registry.Frame) {
				func() {
					defer func() { require.NotNil(t, recover()) }()
					l.each(q, f, func(movers) bool { panic(failed) })
				}()
				require.Len(t, l.shownBy(q, f), alive)
			})
			var done sync.WaitGroup
			done.Go(func() {
				_ = w.Update(func(win *registry.Window) error {
					l.each(q, win, func(movers) bool { runtime.Goexit(); return true })
					return nil
				})
			})
			done.Wait()
			w.window(func(win *registry.Window) { check(win) })
			require.LessOrEqual(t, q.Kept(), 2)
		})
	}
}

func TestTokensOfOtherLoopsAreChecked(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	w.spawn(class[Mover](w), 10)
	q := query[movers](w)
	var win *registry.Window
	w.window(func(open *registry.Window) { win = open })
	for _, l := range loops {
		loop := func(a registry.Access) func() {
			return func() {
				l.each(q, a, func(movers) bool {
					t.Error("yielded")
					return true
				})
			}
		}
		require.PanicsWithError(t, registry.ErrExpired.Error(), loop(win), l.name)
		other.window(func(foreign *registry.Window) { panicsWith(t, views.ErrForeign, loop(foreign)) })
	}
	require.PanicsWithError(t, registry.ErrExpired.Error(), func() { q.DestroyAll(win) })
	other.window(func(foreign *registry.Window) { panicsWith(t, views.ErrForeign, func() { q.DestroyAll(foreign) }) })
}
