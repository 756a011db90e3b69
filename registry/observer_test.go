package registry_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// shadow is an external array that follows moves alone.
type shadow map[uint32]handles.Local

func (s shadow) follow(t *testing.T, moves []registry.Move) {
	for _, m := range moves {
		require.Equal(t, m.Entity, s[m.Old])
		require.Zero(t, s[m.New])
		s[m.New] = m.Entity
		delete(s, m.Old)
	}
}

func TestMovesAreToldBeforeTheMoverReturns(t *testing.T) {
	k := newWorld(t, registry.Config{})
	at := shadow{}
	var batches int
	o, err := k.r.OnMove(func(moves []registry.Move) {
		batches++
		at.follow(t, moves)
	})
	require.NoError(t, err)
	var hs []handles.Local
	agree := func(w *registry.Window) {
		t.Helper()
		for _, h := range hs {
			i, ok := registry.CacheIndex(w, h)
			require.True(t, ok)
			require.Equal(t, h, at[i])
		}
	}
	hs = k.spawnMany(100)
	k.update(func(w *registry.Window) {
		for _, h := range hs {
			i, _ := registry.CacheIndex(w, h)
			at[i] = h
		}
		require.NoError(t, registry.Add(w, hs[3], frozen{}))
		require.Equal(t, 1, batches)
		agree(w)
		require.NoError(t, registry.Add(w, hs[3], frozen{})) // has it: no move
		require.NoError(t, registry.Set(w, hs[3], health{}))
		require.Equal(t, 1, batches)
		require.Equal(t, 40, registry.AddBatch(w, hs[20:60], title{"t"}))
		require.Equal(t, 2, batches, "one batch for one call")
		agree(w)
		require.NoError(t, registry.Remove[health](w, hs[3]))
		require.Equal(t, 10, registry.RemoveBatch[self](w, hs[:10]))
		require.Equal(t, 4, batches)
		agree(w)
	})
	// Moves that are undone are told back.
	k.fails(func(w *registry.Window) {
		require.NoError(t, registry.Add(w, hs[5], title{"u"}))
		require.Equal(t, 50, registry.RemoveBatch[health](w, hs[40:90]))
		require.NoError(t, registry.Add(w, hs[50], frozen{}))
		require.NoError(t, w.Destroy(hs[50]))
		require.NoError(t, k.r.Destroy(hs[99]))
	})
	hs = hs[:99]
	k.update(agree)
	require.NoError(t, o.Remove())
	was := batches
	k.update(func(w *registry.Window) { require.NoError(t, registry.Add(w, hs[70], frozen{})) })
	require.Equal(t, was, batches)
}

func TestAMoveSubscriberMayFailOrDestroy(t *testing.T) {
	k := newWorld(t, registry.Config{})
	hs := k.spawnMany(4)
	told := 0
	var window *registry.Window
	for i := range 3 {
		_, err := k.r.OnMove(func(moves []registry.Move) {
			told += len(moves)
			switch i {
			case 0:
				panic(errPlanned)
			case 1:
				for _, m := range moves {
					if m.Entity == hs[1] {
						require.NoError(t, k.r.Destroy(m.Entity))
					}
					if m.Entity == hs[2] {
						require.NoError(t, window.Destroy(m.Entity))
					}
					if m.Entity == hs[3] && !registry.Has[title](window, hs[3]) {
						require.NoError(t, registry.Add(window, hs[3], title{"inner"})) // moves again
					}
				}
			}
		})
		require.NoError(t, err)
	}
	err := k.r.Update(func(w *registry.Window) error {
		window = w
		for _, h := range hs {
			_ = registry.Add(w, h, frozen{})
		}
		return nil
	})
	require.ErrorIs(t, err, errPlanned)
	require.Equal(t, 15, told, "five moves for three subscribers")
	require.True(t, k.r.Alive(hs[0]))
	require.False(t, k.r.Alive(hs[1]))
	require.False(t, k.r.Alive(hs[2]))
	require.NoError(t, k.r.Verify())
	k.update(func(w *registry.Window) {
		require.True(t, registry.Has[title](w, hs[3]) && registry.Has[frozen](w, hs[3]))
	})
}

func TestWishesOfObserversComeWithTheNextWindow(t *testing.T) {
	k := newWorld(t, registry.Config{})
	var born handles.Local
	var order []string
	k.observe(registry.Spawned, func(f *registry.Frame, es []registry.Event) {
		if born != 0 {
			return
		}
		var err error
		born, err = k.scouts.SpawnLater(f, scout{Title: title{"wished"}})
		require.NoError(t, err)
		require.NoError(t, registry.AddLater(f, born, health{7}))
		require.NoError(t, registry.AddLater(f, born, frozen{}))
		require.NoError(t, registry.RemoveLater[title](f, born))
		f.Defer(func(w *registry.Window) error {
			order = append(order, "deferred")
			require.True(t, k.r.Alive(born))
			require.False(t, registry.Has[title](w, born))
			p, err := registry.Peek[health](w, born)
			require.NoError(t, err)
			require.EqualValues(t, 7, p.Points)
			return nil
		})
		f.Defer(func(w *registry.Window) error {
			order = append(order, "failed")
			k.spawn(w)
			require.NoError(t, w.Destroy(es[0].Entity))
			return errPlanned
		})
		f.Defer(func(*registry.Window) error {
			order = append(order, "panicked")
			panic(errPlanned)
		})
		require.NoError(t, registry.AddLater(f, es[0].Entity, frozen{}))
		require.NoError(t, registry.AddLater(f, 0, frozen{})) // fails, alone
	})
	h := k.spawnOne()
	require.False(t, k.r.Alive(born))
	require.Empty(t, order)
	err := k.r.Update(func(w *registry.Window) error {
		order = append(order, "window")
		require.True(t, registry.Has[frozen](w, h))
		return nil
	})
	require.ErrorIs(t, err, errPlanned)
	require.ErrorIs(t, err, registry.ErrInvalidHandle)
	var p *registry.PanicError
	require.ErrorAs(t, err, &p)
	require.Equal(t, []string{"deferred", "failed", "panicked", "window"}, order)
	require.Equal(t, 2, k.r.Stats().Live)
	k.update(func(*registry.Window) {}) // reported once
}

func TestWishesNestAndEnd(t *testing.T) {
	k := newWorld(t, registry.Config{})
	e := k.engine()
	ran := 0
	var nest func(f *registry.Frame)
	levels := 5
	nest = func(f *registry.Frame) {
		if ran < levels {
			f.Defer(func(*registry.Window) error {
				ran++
				if ran%2 == 0 {
					return errPlanned
				}
				return nil
			})
		}
	}
	for range 2 * levels {
		before := ran
		require.NoError(t, e.frame(nil, system{"s", nest}))
		require.LessOrEqual(t, ran-before, 1)
	}
	require.Equal(t, levels, ran)
	require.Len(t, e.errs, 2)
}

// Reset empties everything, commits, and keeps classes, components and observers.
func TestResetLeavesOnlyTheDead(t *testing.T) {
	for _, c := range []registry.Config{{}, {Deterministic: true}, {MaxEntities: 400}} {
		k := newWorld(t, c)
		b := k.book()
		var all []handles.Local
		var nets []handles.Net
		for range 4 {
			hs := k.spawnMany(150)
			res, err := k.r.Reserve()
			require.NoError(t, err)
			lost, err := k.r.Reserve()
			require.NoError(t, err)
			k.update(func(w *registry.Window) {
				for i, h := range hs {
					if i > 0 {
						require.NoError(t, registry.SetParent(w, h, hs[i/2]))
					}
					n, err := w.AssignNet(h)
					require.NoError(t, err)
					nets = append(nets, n)
				}
				require.NoError(t, registry.Add(w, hs[5], frozen{}))
				require.NoError(t, registry.SetActive(w, hs[6], false))
				require.NoError(t, w.Destroy(hs[149]))
			})
			clear(b.count)
			k.fails(func(w *registry.Window) { // Reset is not undone
				require.NoError(t, k.r.Destroy(hs[140])) // not seen by the owner yet
				require.NoError(t, k.r.Destroy(lost))
				inner := k.spawn(w)
				w.Named("the end")
				require.NoError(t, w.Reset())
				all = append(all, inner)
				require.Zero(t, k.r.CacheCap())
				all = append(all, k.spawn(w)) // undone
			})
			all = append(append(all, hs...), res, lost)
			b.want(t, 1, 0, 0, 0, 150)
			s := k.r.Stats()
			require.Zero(t, s.Live+s.Tombstoned+s.Inactive+s.Allocated+s.Chunks+s.PendingDestructions)
			require.Zero(t, s.Local.Issued+s.Net.Issued+s.Global.Issued)
			require.Empty(t, s.Archetypes)
			require.NoError(t, k.r.Verify())
			for _, h := range all {
				k.dead(h, 0)
			}
			for _, n := range nets {
				require.False(t, k.r.AliveNet(n))
			}
			ob, ok := k.r.Obituary(hs[0])
			require.True(t, ok)
			require.Equal(t, "the end", ob.Cause)
			k.update(func(w *registry.Window) {
				w.ConfirmLocalRecycles()
				w.ConfirmNetRecycles()
				require.ErrorIs(t, k.soldiers.SpawnReserved(w, res, soldier{}), registry.ErrStale)
			})
		}
	}
}

func TestADeterministicRegistryShowsOutsideDeathsAtTheNextWindow(t *testing.T) {
	for _, c := range []registry.Config{{Deterministic: true}, {TemporalFrames: 8}} {
		k := newWorld(t, c)
		var h, child handles.Local
		k.update(func(w *registry.Window) {
			h, child = k.spawn(w), k.spawn(w)
			require.NoError(t, registry.SetParent(w, child, h))
		})
		told := 0
		k.observe(registry.Destroyed, func(_ *registry.Frame, es []registry.Event) { told += len(es) })
		still := func(a registry.Access) {
			t.Helper()
			require.False(t, k.r.Alive(h))
			require.ErrorIs(t, k.r.Destroy(h), registry.ErrStale)
			p, err := registry.Get[self](a, h)
			require.NoError(t, err)
			require.Equal(t, h, p.H)
			require.NoError(t, registry.Set(a, h, health{3}))
			require.True(t, registry.Active(a, h))
			_, has := liveIn(a, h)
			require.True(t, has)
			require.True(t, k.r.Alive(child))
		}
		e := k.engine()
		require.NoError(t, e.frame(func(w *registry.Window) error {
			require.NoError(t, k.r.Destroy(h))
			still(w)
			// What the window does to it does not depend on when it died.
			require.NoError(t, registry.Add(w, h, title{"late"}))
			require.NoError(t, registry.SetActive(w, h, false))
			require.NoError(t, registry.SetActive(w, h, true))
			require.NoError(t, registry.Remove[title](w, h))
			w.ProcessDeferredDestructions()
			still(w)
			return nil
		}, system{"s", func(f *registry.Frame) { still(f) }}, system{"t", func(f *registry.Frame) { still(f) }}))
		require.Zero(t, told)
		require.Equal(t, 2, k.r.Stats().Live)
		require.NoError(t, k.r.Verify())
		require.NoError(t, e.frame(func(w *registry.Window) error {
			_, err := registry.Get[self](w, h)
			require.ErrorIs(t, err, registry.ErrStale)
			require.False(t, k.r.Alive(child))
			return nil
		}))
		require.Equal(t, 2, told)
		require.Zero(t, k.r.Stats().Live)
	}
}

// The same operations give the same handles and slots in every registry.
func TestEqualOperationsGiveEqualHandlesAndSlots(t *testing.T) {
	run := func() (told []any) {
		k := newWorld(t, registry.Config{Deterministic: true, MaxEntities: 3000})
		_, err := k.r.OnMove(func(ms []registry.Move) { told = append(told, append([]registry.Move(nil), ms...)) })
		require.NoError(t, err)
		var alive []handles.Local
		x := uint64(1)
		next := func(n int) int {
			x = x*6364136223846793005 + 1442695040888963407
			return int(x>>33) % n
		}
		for range 60 {
			_ = k.r.Update(func(w *registry.Window) error {
				for range 40 {
					switch op := next(6); {
					case op < 2 || len(alive) == 0:
						alive = append(alive, k.spawn(w))
					case op == 2:
						_ = w.Destroy(alive[next(len(alive))])
					case op == 3:
						_ = registry.Add(w, alive[next(len(alive))], frozen{})
					case op == 4:
						_ = registry.SetParent(w, alive[next(len(alive))], alive[next(len(alive))])
					default:
						_, _ = k.scouts.SpawnBatch(w, 3, nil)
					}
				}
				if next(4) == 0 {
					return errPlanned
				}
				return nil
			})
			_ = k.r.Destroy(alive[next(len(alive))])
			k.recycle()
		}
		k.update(func(w *registry.Window) {
			for _, h := range alive {
				if k.r.Alive(h) {
					at, _ := registry.CacheIndex(w, h)
					told = append(told, h, at)
				}
			}
		})
		return append(told, k.r.Stats())
	}
	require.Equal(t, run(), run())
}

// A goroutine may be put off between killing an entity and telling the owner.
func TestADestroyMayBePutOffInItsMiddle(t *testing.T) {
	for _, c := range []registry.Config{{}, {Deterministic: true}} {
		for name, meanwhile := range map[string]func(k *world, h, res handles.Local){
			"Reset": func(k *world, h, _ handles.Local) {
				k.update(func(w *registry.Window) {
					require.NoError(k.t, w.Reset())
					hs, err := k.soldiers.SpawnBatch(w, 70, nil) // takes the places
					require.NoError(k.t, err)
					require.NoError(k.t, w.Destroy(hs[0]))
				})
			},
			"a cycle of everybody else": func(k *world, h, _ handles.Local) {
				k.recycle()
				k.spawnMany(70)
				k.recycle()
			},
			"a failed callback": func(k *world, h, res handles.Local) {
				k.fails(func(w *registry.Window) {
					_ = k.soldiers.SpawnReserved(w, res, soldier{})
					_ = registry.Add(w, h, frozen{})
					_ = w.Destroy(h)
				})
			},
		} {
			t.Run(name, func(t *testing.T) {
				k := newWorld(t, c)
				var h handles.Local
				var n handles.Net
				k.update(func(w *registry.Window) {
					h = k.spawn(w)
					k.spawn(w)
					n, _ = w.AssignNet(h)
				})
				res, err := k.r.Reserve()
				require.NoError(t, err)
				end, endRes := k.r.DestroyInTwo(h), k.r.DestroyInTwo(res)
				k.dead(h, n)
				meanwhile(k, h, res)
				k.dead(h, n)
				end()
				endRes()
				k.dead(h, n)
				require.NoError(t, k.r.Verify())
				k.update(func(*registry.Window) {})
				require.NoError(t, k.r.Verify())
				k.recycle()
				require.NoError(t, k.r.Verify())
				require.Zero(t, k.r.Stats().Tombstoned)
				s := k.r.Stats()
				require.Equal(t, s.Live, s.Local.Issued)
				require.Equal(t, s.Live, s.Global.Issued)
				require.Zero(t, s.Net.Issued)
			})
		}
	}
	t.Run("a spawn that is undone", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		var ends []func()
		var hs []handles.Local
		k.fails(func(w *registry.Window) {
			var err error
			hs, err = k.soldiers.SpawnBatch(w, 200, nil)
			require.NoError(t, err)
			require.NoError(t, registry.Add(w, hs[7], frozen{}))
			for _, i := range []int{0, 7, 150, 199} {
				ends = append(ends, k.r.DestroyInTwo(hs[i]))
			}
		})
		require.Zero(t, k.r.Stats().Live)
		k.spawnMany(300)
		for _, end := range ends {
			end()
		}
		require.NoError(t, k.r.Verify())
		k.recycle()
		require.Equal(t, 300, k.r.Stats().Live)
		require.Equal(t, 300, k.r.Stats().Local.Issued)
		for _, h := range hs {
			k.dead(h, 0)
		}
	})
}

// An observer that exits is not told again, and one that leaves shifts those behind it: each
// of them hears of the batch all the same.
func TestAnObserverThatLeavesAndExitsKeepsTheBatchFromNobody(t *testing.T) {
	k := newWorld(t, registry.Config{})
	var told []string
	var first *registry.Observer
	first = k.observe(registry.Spawned, func(*registry.Frame, []registry.Event) {
		told = append(told, "first")
		require.NoError(t, first.Remove())
		runtime.Goexit()
	})
	for _, name := range []string{"second", "third"} {
		k.observe(registry.Spawned, func(*registry.Frame, []registry.Event) { told = append(told, name) })
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		_ = k.r.Update(func(w *registry.Window) error {
			_, err := k.soldiers.Spawn(w, soldier{})
			return err
		})
	}()
	<-done
	k.update(func(*registry.Window) {})
	require.Equal(t, []string{"first", "second", "third"}, told)
	k.spawnOne()
	require.Equal(t, []string{"first", "second", "third", "second", "third"}, told)
}
