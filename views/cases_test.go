package views_test

import (
	"cmp"
	"fmt"
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

func TestStructureMayChangeWhileIterating(t *testing.T) {
	for _, n := range []int{1, 65} {
		for _, l := range loops {
			t.Run(fmt.Sprintf("views-1/n=%d/%s", n, l.name), func(t *testing.T) { structureChanges(t, n, l) })
		}
	}
}

func structureChanges(t *testing.T, n int, l loop) {
	// visitAll visits every match once, in whatever token, and lets visit change things.
	visitAll := func(t *testing.T, q *views.Query[movers], a registry.Access, hs []handles.Local, visit func(handles.Local)) {
		var seen []handles.Local
		l.each(q, a, func(m movers) bool {
			for _, h := range slices.Clone(m.ID) {
				seen = append(seen, h)
				visit(h)
			}
			return true
		})
		require.ElementsMatch(t, hs, seen)
	}
	t.Run("add in a window", func(t *testing.T) {
		w := newWorld(t)
		hs := w.spawn(class[Mover](w), n)
		q, frozen := query[movers](w), query[ids](w, views.With[Frozen]())
		w.window(func(win *registry.Window) {
			visitAll(t, q, win, hs, func(h handles.Local) { require.NoError(t, registry.Add(win, h, Frozen{})) })
			require.Equal(t, n, q.Count(win))
			require.Equal(t, n, frozen.Count(win))
			require.ElementsMatch(t, hs, visited(frozen, win))
		})
		// And back, into slots that were just left.
		w.window(func(win *registry.Window) {
			visitAll(t, q, win, hs, func(h handles.Local) { require.NoError(t, registry.Remove[Frozen](win, h)) })
			require.Equal(t, n, q.Count(win))
			require.Zero(t, frozen.Count(win))
		})
	})
	t.Run("add makes it leave the query", func(t *testing.T) {
		w := newWorld(t)
		hs := w.spawn(class[Mover](w), n)
		q := query[movers](w, views.Without[Frozen]())
		w.window(func(win *registry.Window) {
			visitAll(t, q, win, hs, func(h handles.Local) { require.NoError(t, registry.Add(win, h, Frozen{})) })
			require.Zero(t, q.Count(win))
		})
	})
	t.Run("spawn in a window", func(t *testing.T) {
		w := newWorld(t)
		c := class[Mover](w)
		hs := w.spawn(c, n)
		q := query[movers](w)
		w.window(func(win *registry.Window) {
			visitAll(t, q, win, hs, func(handles.Local) {
				_, err := c.Spawn(win, Mover{})
				require.NoError(t, err)
			})
			require.Equal(t, 2*n, q.Count(win))
		})
	})
	t.Run("add by Defer", func(t *testing.T) {
		w := newWorld(t)
		hs := w.spawn(class[Mover](w), n)
		q, frozen := query[movers](w), query[ids](w, views.With[Frozen]())
		w.frame(func(f *registry.Frame) {
			visitAll(t, q, f, hs, func(h handles.Local) {
				f.Defer(func(win *registry.Window) error { return registry.Add(win, h, Frozen{}) })
			})
			require.Zero(t, frozen.Count(f))
		})
		w.frame(func(f *registry.Frame) { require.ElementsMatch(t, hs, visited(frozen, f)) })
	})
	t.Run("spawn by Defer", func(t *testing.T) {
		w := newWorld(t)
		c := class[Mover](w)
		hs := w.spawn(c, n)
		q := query[movers](w)
		w.frame(func(f *registry.Frame) {
			visitAll(t, q, f, hs, func(handles.Local) {
				f.Defer(func(win *registry.Window) error {
					_, err := c.Spawn(win, Mover{})
					return err
				})
			})
			require.Equal(t, n, q.Count(f))
		})
		w.frame(func(f *registry.Frame) { require.Equal(t, 2*n, q.Count(f)) })
	})
}

// TestKillingAhead visits 200 entities in chunks of 64. The partner of a visit is named by
// the visited entity's number; whoever is dead when its run is yielded must not be in it.
func TestKillingAhead(t *testing.T) {
	const n = 200
	for name, partner := range map[string]func(i int) int{
		"views-2/later chunk":   func(i int) int { return i + 64 },
		"views-2/earlier chunk": func(i int) int { return i - 64 },
		"views-2/same run":      func(i int) int { return i ^ 1 },
		"views-2/i+3":           func(i int) int { return i + 3 },
		"views-2/itself":        func(i int) int { return i },
	} {
		for _, l := range loops {
			t.Run(name+"/"+l.name, func(t *testing.T) { killAhead(t, n, l, partner) })
		}
	}
}

func killAhead(t *testing.T, n int, l loop, partner func(i int) int) {
	both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
		hs := w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), n)
		q := query[movers](w)
		inside(func(a registry.Access) {
			dead, seen := map[int]bool{}, map[int]int{}
			l.each(q, a, func(m movers) bool {
				for _, p := range m.Pos {
					require.False(t, dead[int(p.X)], "%v was dead when its run was yielded", p.X)
					seen[int(p.X)]++
				}
				for _, p := range slices.Clone(m.Pos) {
					j := partner(int(p.X))
					if dead[int(p.X)] || j < 0 || j >= n || dead[j] {
						continue // the dead do not kill, in this test
					}
					require.NoError(t, destroyBy(a, hs[j]))
					dead[j] = true
				}
				return true
			})
			for i := range n {
				require.LessOrEqual(t, seen[i], 1, "%d twice", i)
				if !dead[i] {
					require.Equal(t, 1, seen[i], "survivor %d", i)
				}
			}
			require.Equal(t, n-len(dead), q.Count(a))
		})
	})
}

func destroyBy(a registry.Access, h handles.Local) error {
	switch t := a.(type) {
	case *registry.Window:
		return t.Destroy(h)
	case *registry.Frame:
		return t.Destroy(h)
	}
	return registry.ErrExpired
}

// TestGapsBordersAndExclusion is views-3 at fixed places; the model test draws others.
func TestGapsBordersAndExclusion(t *testing.T) {
	const n, slots = 400, 192
	holes := []int{0, 62, 63, 64, 65, 127, 128, n - 1}
	for name, dig := range map[string]func(w *world, win *registry.Window, h handles.Local){
		"views-3/destroyed": func(w *world, win *registry.Window, h handles.Local) { require.NoError(w.tb, win.Destroy(h)) },
		"views-3/inactive": func(w *world, win *registry.Window, h handles.Local) {
			require.NoError(w.tb, registry.SetActive(win, h, false))
		},
		"views-3/excluded": func(w *world, win *registry.Window, h handles.Local) {
			require.NoError(w.tb, registry.Add(win, h, Frozen{}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
				hs := w.spawn(class[Mover](w, registry.SlotsPerChunk(slots)), n)
				gone := map[int]bool{}
				w.window(func(win *registry.Window) {
					for _, i := range holes {
						gone[i] = true
						dig(w, win, hs[i])
					}
				})
				// What a run is: consecutive survivors, cut by holes and the ends of chunks.
				var want [][]handles.Local
				for i := range n {
					if gone[i] {
						continue
					}
					if i == 0 || gone[i-1] || i%slots == 0 {
						want = append(want, nil)
					}
					want[len(want)-1] = append(want[len(want)-1], hs[i])
				}
				type nothing struct{}
				alone := query[nothing](w, views.Without[Frozen]())
				id := query[ids](w, views.Without[Frozen]())
				all := query[movers](w, views.Without[Frozen]())
				inside(func(a registry.Access) {
					var gotID, gotAll [][]handles.Local
					empty := 0
					for range alone.Runs(a) {
						empty++
					}
					for m := range id.Runs(a) {
						gotID = append(gotID, append([]handles.Local(nil), m.ID...))
					}
					for m := range all.Runs(a) {
						require.Len(t, m.Pos, len(m.ID))
						require.Len(t, m.Vel, len(m.ID))
						gotAll = append(gotAll, append([]handles.Local(nil), m.ID...))
						for j, h := range m.ID {
							require.Equal(t, hs[int(m.Pos[j].X)], h)
						}
					}
					sameEverywhere(t, all, a, want)
					require.Equal(t, want, gotID)
					require.Equal(t, want, gotAll)
					require.Equal(t, len(want), empty)
					for _, count := range []int{alone.Count(a), id.Count(a), all.Count(a)} {
						require.Equal(t, n-len(holes), count)
					}
				})
			})
		})
	}
}

// sameEverywhere checks that every loop and every way to ask a mask tell of the same runs, which
// are those of Runs.
func sameEverywhere(t require.TestingT, q *views.Query[movers], a registry.Access, want [][]handles.Local) {
	whole := slices.Concat(want...)
	for _, l := range stoppable {
		if got := l.shownBy(q, a); !slices.Equal(whole, got) {
			require.Equal(t, whole, got, l.name)
		}
	}
	var mu sync.Mutex
	var parallel [][]handles.Local
	q.Parallel(a, func(_ *registry.Frame, m *movers) {
		mu.Lock()
		defer mu.Unlock()
		parallel = append(parallel, slices.Clone(m.ID))
	})
	// Workers are in no order.
	first := make(map[handles.Local]int, len(want))
	for i := range want {
		first[want[i][0]] = i
	}
	slices.SortFunc(parallel, func(a, b []handles.Local) int { return cmp.Compare(first[a[0]], first[b[0]]) })
	require.Equal(t, want, parallel)

	var cut [][]handles.Local // the runs of the masks' bits
	for m, mask := range q.Spans(a) {
		n := len(m.ID)
		require.Len(t, m.Pos, n)
		require.Len(t, m.Vel, n)
		require.Equal(t, n, cap(m.Pos))
		require.Len(t, mask.Words(), (n+63)/64)
		var live []uint16
		for i := range len(mask.Words()) * 64 {
			if !has(mask.Words(), i) {
				continue
			} else if i >= n {
				require.Fail(t, "a bit past the span", "%d of %d", i, n)
			}
			if len(live) == 0 || int(live[len(live)-1])+1 != i {
				cut = append(cut, nil)
			}
			live = append(live, uint16(i))
			cut[len(cut)-1] = append(cut[len(cut)-1], m.ID[i])
			if at, ok := registry.CacheIndex(a, m.ID[i]); !ok || at != mask.Base()+uint32(i) {
				require.Fail(t, "wrong place", "slot %d from %d has %v, which is at %d", i, mask.Base(), m.ID[i], at)
			}
		}
		require.NotEmpty(t, live, "a chunk with nothing live")
		require.Equal(t, live, mask.Live())
		require.Equal(t, len(live), mask.Count())
		require.Equal(t, len(live) == n, mask.Full())
	}
	require.Equal(t, want, cut)
}

func TestLateArrivalsAreFound(t *testing.T) {
	t.Run("views-7/one goroutine", func(t *testing.T) {
		both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
			registered[Position](t, w.Registry)
			q := query[ids](w, views.With[Position]())
			inside(func(a registry.Access) { require.Empty(t, visited(q, a)) })
			hs := w.spawn(class[Mover](w), 10)
			inside(func(a registry.Access) { require.Equal(t, hs, visited(q, a)) })
			type Late struct{ Pos Position }
			c := class[Late](w)
			w.window(func(win *registry.Window) {
				h, err := c.Spawn(win, Late{})
				require.NoError(t, err)
				hs = append(hs, h)
				require.Equal(t, hs, visited(q, win), "also in the window that made it")
				require.NoError(t, registry.Add(win, hs[3], Mark(7)))
			})
			inside(func(a registry.Access) {
				require.ElementsMatch(t, hs, visited(q, a))
				require.Equal(t, len(hs), q.Count(a))
			})
		})
	})
	for _, l := range loops {
		t.Run("views-7/"+l.name, func(t *testing.T) {
			both(t, func(t *testing.T, w *world, inside func(func(registry.Access))) {
				registered[Position](t, w.Registry)
				registered[Velocity](t, w.Registry)
				q := query[movers](w)
				inside(func(a registry.Access) { require.Empty(t, l.shownBy(q, a)) })
				hs := w.spawn(class[Mover](w), 10)
				inside(func(a registry.Access) { require.Equal(t, hs, l.shownBy(q, a)) })
				type Late struct {
					Pos  Position
					Mark Mark
					Vel  Velocity
				}
				c := class[Late](w)
				w.window(func(win *registry.Window) {
					h, err := c.Spawn(win, Late{})
					require.NoError(t, err)
					hs = append(hs, h)
					require.Equal(t, hs, l.shownBy(q, win), "also in the window that made it")
					require.NoError(t, registry.Add(win, hs[3], Frozen{}))
				})
				inside(func(a registry.Access) { require.ElementsMatch(t, hs, l.shownBy(q, a)) })
			})
		})
	}
	t.Run("views-7/many goroutines", func(t *testing.T) {
		w := newWorld(t)
		hs := w.spawn(class[Mover](w), 100)
		q := query[ids](w, views.With[Position]())
		for round := range 4 {
			w.window(func(win *registry.Window) { // a signature that wasn't there
				switch h := hs[round]; round {
				case 0:
					require.NoError(t, registry.Add(win, h, Frozen{}))
				case 1:
					require.NoError(t, registry.Add(win, h, Mark(1)))
				case 2:
					require.NoError(t, registry.Add(win, h, Name{Text: "x"}))
				case 3:
					require.NoError(t, registry.Add(win, h, Odd{1}))
				}
			})
			w.frame(func(f *registry.Frame) {
				var wg sync.WaitGroup
				for range 64 {
					wg.Go(func() {
						assert.Equal(t, len(hs), q.Count(f))
						assert.ElementsMatch(t, hs, visited(q, f))
					})
				}
				wg.Wait()
			})
		}
	})
	t.Run("views-7/a signature that was undone", func(t *testing.T) {
		w := newWorld(t)
		hs := w.spawn(class[Mover](w), 10)
		q := query[ids](w)
		failed := fmt.Errorf("undo")
		for range 3 {
			require.ErrorIs(t, w.Update(func(win *registry.Window) error {
				require.NoError(t, registry.Add(win, hs[3], Mark(7)))
				require.ElementsMatch(t, hs, visited(q, win))
				return failed
			}), failed)
			w.window(func(win *registry.Window) { require.ElementsMatch(t, hs, visited(q, win)) })
		}
	})
}

func TestResetInsideALoopEndsIt(t *testing.T) {
	for _, l := range loops {
		t.Run(l.name, func(t *testing.T) {
			w := newWorld(t)
			w.spawn(class[Mover](w, registry.SlotsPerChunk(64)), 200)
			q := query[movers](w)
			w.window(func(win *registry.Window) {
				runs := 0
				l.each(q, win, func(movers) bool {
					if runs++; runs == 1 {
						require.NoError(t, win.Reset())
					}
					return true
				})
				require.Equal(t, 1, runs)
				require.Zero(t, q.Count(win))
			})
		})
	}
}

// TestArchetype9QueriesLeaveNoTrace is the part of the case archetype-9 that is about queries: made, used and forgotten,
// while signatures come and go.
func TestArchetype9QueriesLeaveNoTrace(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 3000
	}
	for _, temporal := range []int{0, 8} {
		t.Run(fmt.Sprintf("temporal=%d", temporal), func(t *testing.T) {
			r, err := registry.New(registry.Config{TemporalFrames: temporal})
			require.NoError(t, err)
			w := &world{r, t}
			registered[Frozen](t, r)
			hs := w.spawn(class[Mover](w), 100)
			churn := func(rounds int) {
				const each = 100
				for range rounds / each {
					w.window(func(win *registry.Window) {
						registry.AddBatch(win, hs[:50], Frozen{})
						for i := range each {
							filter := views.With[Frozen]()
							if i%2 == 0 {
								filter = views.Without[Frozen]()
							}
							if got := query[movers](w, filter).Count(win); got != 50 {
								require.Equal(t, 50, got)
							}
						}
						registry.RemoveBatch[Frozen](win, hs[:50])
						win.ProcessDeferredDestructions()
					})
				}
			}
			measure := func() (uint64, registry.Stats) {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc, r.Stats()
			}
			churn(rounds / 10)
			heap, before := measure()
			for range 3 {
				churn(rounds * 3 / 10)
				now, s := measure()
				require.Less(t, now, heap+heap/8+256<<10)
				require.Equal(t, before.Chunks, s.Chunks)
				require.Equal(t, before.Archetypes, s.Archetypes)
			}
			require.NoError(t, r.Verify())
		})
	}
}
