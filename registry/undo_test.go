package registry_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// scene is a registry with one entity for each thing that a callback can do, and what all of
// it looks like.
type scene struct {
	*world
	moved, dead, set, child, parent, named, off, title handles.Local
	reserved                                           handles.Local
}

func newScene(t testing.TB, c registry.Config) *scene {
	s := &scene{world: newWorld(t, c)}
	k := s.world
	k.update(func(w *registry.Window) {
		s.moved, s.dead, s.set, s.child = k.spawn(w), k.spawn(w), k.spawn(w), k.spawn(w)
		s.parent, s.named, s.off = k.spawn(w), k.spawn(w), k.spawn(w)
		var err error
		s.title, err = k.scouts.Spawn(w, scout{Title: title{"first"}, Spot: spot{X: 1}})
		require.NoError(t, err)
		require.NoError(t, registry.Set(w, s.title, self{s.title}))
		require.NoError(t, registry.SetParent(w, s.child, s.parent))
	})
	var err error
	s.reserved, err = k.r.Reserve()
	require.NoError(t, err)
	return s
}

func (s *scene) all() []handles.Local {
	return []handles.Local{s.moved, s.dead, s.set, s.child, s.parent, s.named, s.off, s.title}
}

// act does everything that a callback can do, and gives the handles it has issued.
func (s *scene) act(w *registry.Window) (issued []handles.Local, nets []handles.Net) {
	t, k := s.t, s.world
	issued = append(issued, k.spawn(w), k.spawn(w))
	batch, err := k.scouts.SpawnBatch(w, 200, func(i int, e *scout) { e.Title.Text = fmt.Sprint(i) })
	require.NoError(t, err)
	issued = append(issued, batch...)
	require.NoError(t, registry.Add(w, s.moved, title{"moved"}))
	require.NoError(t, registry.Set(w, s.moved, title{"again"}))
	require.NoError(t, registry.Remove[health](w, s.moved))
	require.NoError(t, registry.Add(w, s.moved, frozen{}))
	require.NoError(t, registry.Add(w, batch[3], frozen{}))
	require.NoError(t, registry.Remove[title](w, batch[4]))
	require.NoError(t, w.Destroy(batch[5]))
	require.NoError(t, w.Destroy(s.dead))
	require.NoError(t, registry.Set(w, s.set, health{77}))
	require.NoError(t, registry.Set(w, s.set, health{78}))
	require.NoError(t, registry.Set(w, s.title, title{"second"}))
	require.NoError(t, registry.Set(w, s.title, spot{X: 9, Y: 9}))
	require.NoError(t, registry.SetParent(w, s.child, s.named))
	require.NoError(t, registry.SetParent(w, batch[6], s.parent))
	n, err := w.AssignNet(s.named)
	require.NoError(t, err)
	n2, err := w.AssignNet(batch[7])
	require.NoError(t, err)
	bound := handles.NewNet(w.Registry().Config().Owner+1, 5, 2)
	require.NoError(t, w.BindNet(s.set, bound))
	require.NoError(t, registry.SetActive(w, s.off, false))
	require.NoError(t, k.soldiers.SpawnReserved(w, s.reserved, soldier{}))
	require.NoError(t, registry.Add(w, s.reserved, title{"r"}))
	require.Equal(t, 2, w.DestroyBatch([]handles.Local{s.named, s.off})) // and the child of named
	require.False(t, k.r.Alive(s.child))
	return issued, []handles.Net{n, n2, bound}
}

// look is everything that can be seen of the scene.
func (s *scene) look() (out []string) {
	say := func(v ...any) { out = append(out, fmt.Sprint(v...)) }
	st := s.r.Stats()
	for i := range st.Archetypes {
		st.Archetypes[i].Bytes = 0
	}
	say(st)
	s.update(func(w *registry.Window) {
		for _, h := range s.all() {
			at, ok := registry.CacheIndex(w, h)
			n, err := s.r.NetOf(h)
			g, errG := s.r.Resolve(h)
			say(h, at, ok, n, err, g, errG, registry.Active(w, h))
			me, err := registry.Peek[self](w, h)
			say(me, err)
			p, err := registry.Peek[health](w, h)
			say(p, err)
			tt, err := registry.Peek[title](w, h)
			say(tt, err)
			sp, err := registry.Peek[spot](w, h)
			say(sp, err, registry.Has[frozen](w, h))
		}
		store := registry.Iterate(w)
		defer registry.Finish(w)
		for _, a := range store.Archetypes() {
			for _, ch := range a.Chunks() {
				for slot := range uint32(ch.Slots()) {
					if ch.Bit(slot) {
						say(a.ClassName(), ch.Base()+slot, ch.Entities()[slot])
					}
				}
			}
		}
	})
	return out
}

func TestAFailedUpdateLeavesNoTrace(t *testing.T) {
	endings := map[string]func(s *scene, fn func(w *registry.Window)){
		"error": func(s *scene, fn func(w *registry.Window)) { s.fails(fn) },
		"panic": func(s *scene, fn func(w *registry.Window)) {
			require.PanicsWithValue(s.t, "planned", func() {
				_ = s.r.Update(func(w *registry.Window) error {
					fn(w)
					panic("planned")
				})
			})
		},
		"Goexit": func(s *scene, fn func(w *registry.Window)) {
			done := make(chan bool)
			go func() {
				defer close(done)
				_ = s.r.Update(func(w *registry.Window) error {
					fn(w)
					runtime.Goexit()
					return nil
				})
			}()
			<-done
		},
	}
	for _, c := range []registry.Config{{}, {Deterministic: true}, {MaxEntities: 300}, {TemporalFrames: 8}} {
		for name, end := range endings {
			t.Run("registry-7/"+name, func(t *testing.T) {
				s := newScene(t, c)
				events := 0
				for kind := registry.Spawned; kind <= registry.Destroyed; kind++ {
					_, err := s.r.Observe(kind, func(_ *registry.Frame, es []registry.Event) { events += len(es) })
					require.NoError(t, err)
				}
				s.update(func(*registry.Window) {})
				before := s.look()
				var issued []handles.Local
				var nets []handles.Net
				for range 3 {
					end(s, func(w *registry.Window) {
						hs, ns := s.act(w)
						issued, nets = append(issued, hs...), append(nets, ns...)
					})
					require.NoError(t, s.r.Verify())
					require.Equal(t, before, s.look())
					_, err := s.r.Resolve(s.reserved)
					require.ErrorIs(t, err, registry.ErrNotSpawned)
				}
				require.Zero(t, events)
				for range 10 { // also after any later spawn
					hs := s.spawnMany(20)
					s.update(func(w *registry.Window) { w.DestroyBatch(hs) })
					s.recycle()
				}
				for _, h := range issued {
					require.False(t, s.r.Alive(h))
					_, err := s.r.Resolve(h)
					require.ErrorIs(t, err, registry.ErrStale)
				}
				for _, n := range nets {
					require.False(t, s.r.AliveNet(n))
				}
				s.update(func(w *registry.Window) { require.NoError(t, w.Destroy(s.parent)) })
				require.False(t, s.r.Alive(s.child), "the old link holds again")
			})
		}
	}
}

// A batch whose init panics is as if it had not been, also when the callback goes on.
func TestABatchWhoseInitPanicsLeavesNoTrace(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		for _, c := range []registry.Config{{}, {MaxEntities: 1010}} {
			t.Run(fmt.Sprintf("registry-7/batch of 1000 panics at 700, after another spawn: %v", earlier), func(t *testing.T) {
				k := newWorld(t, c)
				spawned := 0
				_, err := k.r.Observe(registry.Spawned, func(_ *registry.Frame, es []registry.Event) { spawned += len(es) })
				require.NoError(t, err)
				old := k.spawnMany(5)
				k.update(func(w *registry.Window) {
					require.NoError(t, w.Destroy(old[2]))
					w.ProcessDeferredDestructions()
				})
				spawned = 0
				var first handles.Local
				k.update(func(w *registry.Window) {
					if earlier {
						first = k.spawn(w) // takes the hole
						require.NoError(t, w.Destroy(old[0]))
					}
					require.PanicsWithValue(t, "at 700", func() {
						_, _ = k.soldiers.SpawnBatch(w, 1000, func(i int, e *soldier) {
							if i == 100 {
								require.NoError(t, w.Destroy(old[1]))
								require.NoError(t, registry.Set(w, old[3], health{5}))
							}
							if i == 700 {
								panic("at 700")
							}
						})
					})
					if earlier {
						require.True(t, k.r.Alive(first))
						require.False(t, k.r.Alive(old[0]))
					}
					require.True(t, k.r.Alive(old[1]))
					p, err := registry.Peek[health](w, old[3])
					require.NoError(t, err)
					require.Zero(t, p.Points)
					count, _ := liveIn(w, 0)
					require.Equal(t, 4, count)
				})
				s := k.r.Stats()
				require.Equal(t, 4, s.Live)
				require.Equal(t, 5, s.Allocated)
				if earlier {
					require.Equal(t, 1, spawned)
				} else {
					require.Zero(t, spawned)
				}
				require.NoError(t, k.r.Verify())
				require.Len(t, k.spawnMany(1000), 1000) // the room is there again
			})
		}
	}
	t.Run("registry-7/a batch that meets the end of the indices", func(t *testing.T) {
		c := registry.Config{MaxEntities: 100}
		k := worldOf(t, registry.NewPreset(c, registry.Preset{LocalIndex: registry.LastLocalIndex(c) - 4}))
		var first handles.Local
		k.update(func(w *registry.Window) {
			first = k.spawn(w)
			hs, err := k.soldiers.SpawnBatch(w, 10, func(_ int, e *soldier) { e.Health.Points = 1 })
			require.ErrorIs(t, err, registry.ErrExhausted)
			require.Nil(t, hs)
			hs, err = k.soldiers.SpawnBatch(w, 10, nil)
			require.ErrorIs(t, err, registry.ErrExhausted)
			require.Nil(t, hs)
		})
		require.True(t, k.r.Alive(first))
		require.Equal(t, 1, k.r.Stats().Live)
	})
	t.Run("registry-7/a batch whose init fails the callback", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		require.Panics(t, func() {
			_ = k.r.Update(func(w *registry.Window) error {
				k.spawn(w)
				_, err := k.soldiers.SpawnBatch(w, 1000, func(i int, _ *soldier) {
					if i == 700 {
						panic("through")
					}
				})
				return err
			})
		})
		require.Zero(t, k.r.Stats().Live)
		require.Zero(t, k.r.Stats().Allocated)
		require.Empty(t, k.r.Stats().Archetypes)
	})
}

// Others destroy many of those whom a callback has spawned and moved, and the owner sees it before the callback fails: each
// stays dead, once, and is not among those who live again.
func TestUndoYieldsToThousandsOfDestroysFromOutside(t *testing.T) {
	k := newWorld(t, registry.Config{})
	const n = 3000
	var old, born []handles.Local
	k.update(func(w *registry.Window) { old, _ = k.soldiers.SpawnBatch(w, n, nil) })
	k.fails(func(w *registry.Window) {
		require.Equal(t, n/2, registry.AddBatch(w, old[:n/2], frozen{}))
		born, _ = k.soldiers.SpawnBatch(w, n, nil)
		require.Equal(t, n/10, w.DestroyBatch(old[n-n/10:])) // they live again
		for i := 0; i < n; i += 2 {
			require.NoError(t, k.r.Destroy(born[i]))
			if i < n/2 {
				require.NoError(t, k.r.Destroy(old[i]))
			}
		}
		registry.Iterate(w)
		registry.Finish(w)
		require.Equal(t, n/10, w.DestroyBatch(old[n-2*n/10:n-n/10]))
	})
	k.update(func(w *registry.Window) {
		for i, h := range old {
			want := i%2 != 0 || i >= n/2
			require.Equal(t, want, k.r.Alive(h), i)
			require.False(t, registry.Has[frozen](w, h))
		}
		for _, h := range born {
			require.False(t, k.r.Alive(h))
		}
	})
	require.NoError(t, k.r.Verify())
	k.recycle()
	require.Equal(t, n-n/4, k.r.Stats().Live)
	require.Equal(t, n-n/4, k.r.Stats().Local.Issued)
	require.NoError(t, k.r.Verify())
}

// What another goroutine destroys while the callback runs stays dead; the rest is undone as
// ever. seen says whether the owner takes note of the death before the callback fails.
func TestUndoYieldsToADestroyFromOutside(t *testing.T) {
	for _, c := range []registry.Config{{}, {Deterministic: true}} {
		for _, seen := range []bool{false, true} {
			for _, fail := range []bool{false, true} {
				t.Run(fmt.Sprintf("seen before the end: %v, fails: %v, deterministic: %v", seen, fail, c.Deterministic), func(t *testing.T) {
					s := newScene(t, c)
					told := map[handles.Local][]registry.EventKind{}
					for kind := registry.Spawned; kind <= registry.Destroyed; kind++ {
						_, err := s.r.Observe(kind, func(_ *registry.Frame, es []registry.Event) {
							for _, e := range es {
								told[e.Entity] = append(told[e.Entity], e.Kind)
							}
						})
						require.NoError(t, err)
					}
					before := s.r.Stats()
					var issued, killed []handles.Local
					var inner handles.Local
					run := func(w *registry.Window) {
						hs, err := s.soldiers.SpawnBatch(w, 4, nil)
						require.NoError(t, err)
						issued = hs
						require.NoError(t, registry.Add(w, s.moved, title{"gone"}))
						require.NoError(t, registry.Remove[health](w, s.moved))
						require.NoError(t, registry.Add(w, hs[1], frozen{}))
						require.NoError(t, registry.Set(w, s.set, health{5}))
						require.NoError(t, registry.SetActive(w, s.off, false))
						require.NoError(t, s.soldiers.SpawnReserved(w, s.reserved, soldier{}))
						_, err = w.AssignNet(s.named)
						require.NoError(t, err)
						_, err = w.AssignNet(hs[2])
						require.NoError(t, err)
						require.NoError(t, registry.SetParent(w, hs[3], s.named))
						inner = hs[3]
						killed = []handles.Local{s.moved, s.set, s.off, s.named, s.reserved, s.parent, hs[0], hs[1], hs[2]}
						for _, h := range killed {
							require.NoError(t, s.r.Destroy(h))
							require.False(t, s.r.Alive(h))
						}
						if seen {
							registry.Iterate(w)
							registry.Finish(w)
						}
						require.Equal(t, 1, w.DestroyBatch([]handles.Local{s.dead, s.moved}))
					}
					if fail {
						s.fails(run)
					} else {
						s.update(run)
					}
					s.update(func(*registry.Window) {}) // late deaths are seen
					for _, h := range killed {
						s.world.dead(h, 0)
					}
					require.False(t, s.r.Alive(s.child), "a child dies with its parent, however the callback ends")
					require.False(t, s.r.Alive(inner))
					require.Equal(t, fail, s.r.Alive(s.dead))
					require.NoError(t, s.r.Verify())
					st := s.r.Stats()
					// Of 8: moved, set, off, named, parent, and its child, die from outside.
					want := before.Live - 6
					if !fail {
						want--
					}
					require.Equal(t, want, st.Live)
					for _, h := range []handles.Local{s.moved, s.set, s.off, s.named, s.parent, s.child} {
						n := 0
						for _, kind := range told[h] {
							if kind == registry.Destroyed {
								n++
							}
						}
						require.Equal(t, 1, n, "deaths told of %v", h)
						require.Equal(t, registry.Destroyed, told[h][len(told[h])-1])
						if fail {
							require.Len(t, told[h], 1)
						}
					}
					for _, h := range append(issued, s.reserved) {
						if fail {
							require.Empty(t, told[h])
						} else {
							require.Equal(t, registry.Spawned, told[h][0])
							require.Equal(t, registry.Destroyed, told[h][len(told[h])-1])
						}
					}
					s.recycle()
					require.NoError(t, s.r.Verify())
					require.Zero(t, s.r.Stats().Tombstoned)
					s.spawnMany(50)
					for _, h := range append(killed, issued...) {
						s.world.dead(h, 0)
					}
				})
			}
		}
	}
}

// A failed callback that made archetypes, chunks and classes' homes leaves none of them.
func TestUndoTakesArchetypesAndChunksBack(t *testing.T) {
	k := newWorld(t, registry.Config{})
	var caps []uint32
	for range 3 {
		k.fails(func(w *registry.Window) {
			hs, err := k.scouts.SpawnBatch(w, 5000, nil)
			require.NoError(t, err)
			require.Equal(t, 100, registry.AddBatch(w, hs[:100], frozen{}))
			require.Equal(t, 50, registry.RemoveBatch[title](w, hs[:50]))
			caps = append(caps, k.r.CacheCap())
		})
		require.Zero(t, k.r.CacheCap())
		s := k.r.Stats()
		require.Zero(t, s.Chunks)
		require.Empty(t, s.Archetypes)
		require.NoError(t, k.r.Verify())
	}
	require.Equal(t, caps[0], caps[1])
	require.Equal(t, caps[0], caps[2])
	k.update(func(w *registry.Window) {
		hs, err := k.scouts.SpawnBatch(w, 10, nil)
		require.NoError(t, err)
		require.NoError(t, registry.Add(w, hs[0], frozen{}))
	})
	require.Len(t, k.r.Stats().Archetypes, 2)
}

// Process and the confirms commit: what was done before them stands, what came after is undone.
func TestProcessAndConfirmCommit(t *testing.T) {
	for name, commit := range map[string]func(w *registry.Window){
		"ProcessDeferredDestructions": func(w *registry.Window) { w.ProcessDeferredDestructions() },
		"ConfirmLocalRecycles":        func(w *registry.Window) { w.ConfirmLocalRecycles() },
		"ConfirmNetRecycles":          func(w *registry.Window) { w.ConfirmNetRecycles() },
		"ConfirmLocalRecyclesThrough": func(w *registry.Window) { w.ConfirmLocalRecyclesThrough(0) },
		"ConfirmNetRecyclesThrough":   func(w *registry.Window) { w.ConfirmNetRecyclesThrough(0) },
	} {
		t.Run(name, func(t *testing.T) {
			k := newWorld(t, registry.Config{})
			old := k.spawnMany(4)
			var before, after handles.Local
			k.fails(func(w *registry.Window) {
				before = k.spawn(w)
				require.NoError(t, w.Destroy(old[0]))
				require.NoError(t, registry.Add(w, old[1], title{"stays"}))
				commit(w)
				after = k.spawn(w)
				require.NoError(t, w.Destroy(old[2]))
				require.NoError(t, registry.Add(w, old[1], title{"undone"}))
			})
			require.True(t, k.r.Alive(before))
			require.False(t, k.r.Alive(old[0]))
			require.False(t, k.r.Alive(after))
			require.True(t, k.r.Alive(old[2]))
			k.update(func(w *registry.Window) {
				got, err := registry.Peek[title](w, old[1])
				require.NoError(t, err)
				require.Equal(t, "stays", got.Text)
			})
		})
	}
}

// Every component is written in full by Add, Set and their undo, also a split or pointered one.
func TestUndoRestoresValuesOfEveryShape(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	_, err = registry.RegisterComponent[deepSplit](r, registry.Split(), registry.InTier(archetype.Volatile))
	require.NoError(t, err)
	c, err := registry.RegisterClass[oddity](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	var h handles.Local
	require.NoError(t, r.Update(func(w *registry.Window) error {
		h, err = c.Spawn(w, oddPattern(1))
		return err
	}))
	for range 3 {
		require.ErrorIs(t, r.Update(func(w *registry.Window) error {
			o := oddPattern(2)
			for _, err := range []error{
				registry.Set(w, h, o.One), registry.Add(w, h, o.Three), registry.Set(w, h, o.Seven),
				registry.Set(w, h, o.Huge), registry.Add(w, h, o.Words), registry.Set(w, h, o.Split),
			} {
				require.NoError(t, err)
			}
			require.Equal(t, o, readOddity(t, w, h))
			require.NoError(t, registry.Remove[words](w, h))
			require.NoError(t, registry.Remove[deepSplit](w, h))
			return errPlanned
		}), errPlanned)
		runtime.GC()
		require.NoError(t, r.Update(func(w *registry.Window) error {
			require.Equal(t, oddPattern(1), readOddity(t, w, h))
			return nil
		}))
	}
	require.NoError(t, r.Verify())
}
