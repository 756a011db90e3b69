package registry_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// observe subscribes, and lets the subscription take effect.
func (k *world) observe(kind registry.EventKind, fn func(*registry.Frame, []registry.Event)) *registry.Observer {
	k.t.Helper()
	o, err := k.r.Observe(kind, fn)
	require.NoError(k.t, err)
	k.update(func(*registry.Window) {})
	return o
}

func TestAnObserverThatBuilds(t *testing.T) {
	t.Run("registry-10/n deaths make n births in the next window, in their order", func(t *testing.T) {
		const n = 100
		k := newWorld(t, registry.Config{})
		hs := k.spawnMany(n)
		var told, wished, born []handles.Local
		deep := 0
		k.observe(registry.Destroyed, func(f *registry.Frame, es []registry.Event) {
			deep++
			require.Equal(t, 1, deep)
			defer func() { deep-- }()
			for _, e := range es {
				require.ErrorIs(t, registry.Set(f, e.Entity, health{1}), registry.ErrStale)
				require.ErrorIs(t, f.Destroy(e.Entity), registry.ErrStale)
				h, err := k.soldiers.SpawnLater(f, soldier{Self: self{e.Entity}})
				require.NoError(t, err)
				require.False(t, k.r.Alive(h))
				_, err = registry.Get[self](f, h)
				require.ErrorIs(t, err, registry.ErrNotSpawned)
				require.ErrorIs(t, k.r.Update(func(*registry.Window) error { return nil }), registry.ErrWouldDeadlock)
				told, wished = append(told, e.Entity), append(wished, h)
			}
		})
		k.observe(registry.Spawned, func(_ *registry.Frame, es []registry.Event) {
			for _, e := range es {
				born = append(born, e.Entity)
			}
		})
		dead := []handles.Local{hs[5], hs[2], hs[9]}
		k.update(func(w *registry.Window) { require.Equal(t, 3, w.DestroyBatch(dead)) })
		require.Equal(t, dead, told)
		require.Empty(t, born)
		require.Equal(t, n-3, k.r.Stats().Live)
		k.update(func(w *registry.Window) {
			for i, h := range wished { // granted before anything else
				p, err := registry.Peek[self](w, h)
				require.NoError(t, err)
				require.Equal(t, dead[i], p.H)
			}
		})
		require.Equal(t, wished, born)
		require.Equal(t, n, k.r.Stats().Live)
	})
}

func TestAnObserverThatKills(t *testing.T) {
	t.Run("registry-11/chains of kills end, each death told once", func(t *testing.T) {
		const n = 1000
		k := newWorld(t, registry.Config{})
		hs := k.spawnMany(n)
		at := map[handles.Local]int{}
		for i, h := range hs {
			at[h] = i
		}
		told := map[handles.Local]int{}
		deep := 0
		k.observe(registry.Destroyed, func(f *registry.Frame, es []registry.Event) {
			deep++
			require.Equal(t, 1, deep, "told inside being told")
			defer func() { deep-- }()
			for _, e := range es {
				told[e.Entity]++
				require.ErrorIs(t, f.Destroy(e.Entity), registry.ErrStale)
				require.ErrorIs(t, k.r.Destroy(e.Entity), registry.ErrStale)
				i := at[e.Entity]
				switch next := hs[(i+1)%n]; {
				case i == n-1 || told[next] > 0:
				case i%2 == 0:
					require.NoError(t, f.Destroy(next))
				default:
					require.NoError(t, k.r.Destroy(next)) // from outside, as another goroutine would
				}
			}
		})
		k.update(func(w *registry.Window) { require.NoError(t, w.Destroy(hs[0])) })
		for range n { // deaths from outside are told at the next boundary
			k.update(func(*registry.Window) {})
		}
		require.Zero(t, k.r.Stats().Live)
		require.Len(t, told, n)
		for h, times := range told {
			require.Equal(t, 1, times, "%v", h)
		}
	})
	t.Run("registry-11/two that kill each other", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		hs := k.spawnMany(2)
		told := 0
		k.observe(registry.Destroyed, func(f *registry.Frame, es []registry.Event) {
			for _, e := range es {
				told++
				for _, h := range hs {
					err := f.Destroy(h)
					require.True(t, err == nil || h == e.Entity || errors.Is(err, registry.ErrStale))
				}
			}
		})
		k.update(func(w *registry.Window) { require.NoError(t, w.Destroy(hs[1])) })
		require.Equal(t, 2, told)
		require.Zero(t, k.r.Stats().Live)
	})
}

func TestAnObserverThatFailsOrLeaves(t *testing.T) {
	t.Run("registry-12/a panic stops no other and is reported once", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		hs := k.spawnMany(6)
		var heard [5][]handles.Local
		for i := 1; i <= 4; i++ {
			_, err := k.r.Observe(registry.Destroyed, func(_ *registry.Frame, es []registry.Event) {
				for _, e := range es {
					heard[i] = append(heard[i], e.Entity)
				}
				if i == 2 {
					panic(errPlanned)
				}
			})
			require.NoError(t, err)
		}
		err := k.r.Update(func(w *registry.Window) error {
			w.DestroyBatch(hs[:3])
			return nil
		})
		var p *registry.PanicError
		require.ErrorAs(t, err, &p)
		require.ErrorIs(t, err, errPlanned)
		require.Contains(t, p.Where, "Destroyed")
		require.NotEmpty(t, p.Stack)
		require.False(t, k.r.Alive(hs[0]), "the window's work stands")
		for _, i := range []int{1, 2, 3, 4} {
			require.Equal(t, hs[:3], heard[i])
		}
		k.update(func(*registry.Window) {}) // not again
		e := k.engine()
		require.NoError(t, e.frame(func(w *registry.Window) error {
			w.DestroyBatch(hs[3:])
			return nil
		}))
		require.Len(t, e.errs, 1)
		require.ErrorIs(t, e.errs[0], errPlanned)
		require.Equal(t, hs, heard[4])
	})
	t.Run("registry-12/leaving and joining while being told takes effect at the next window", func(t *testing.T) {
		for range 20 { // the same on every run
			k := newWorld(t, registry.Config{})
			hs := k.spawnMany(4)
			var calls []int
			var os [6]*registry.Observer
			call := func(i int) func(*registry.Frame, []registry.Event) {
				return func(*registry.Frame, []registry.Event) { calls = append(calls, i) }
			}
			for i := 1; i <= 4; i++ {
				fn := call(i)
				if i == 2 {
					fn = func(*registry.Frame, []registry.Event) {
						calls = append(calls, 2)
						require.NoError(t, os[2].Remove())
						require.ErrorIs(t, os[2].Remove(), registry.ErrStale)
						require.NoError(t, os[3].Remove())
						var err error
						os[5], err = k.r.Observe(registry.Destroyed, call(5))
						require.NoError(t, err)
					}
				}
				var err error
				os[i], err = k.r.Observe(registry.Destroyed, fn)
				require.NoError(t, err)
			}
			k.update(func(w *registry.Window) { require.NoError(t, w.Destroy(hs[0])) })
			require.Equal(t, 1, calls[0])
			require.Equal(t, 4, calls[len(calls)-1])
			require.NotContains(t, calls, 5)
			for _, h := range hs[1:3] {
				calls = nil
				k.update(func(w *registry.Window) { require.NoError(t, w.Destroy(h)) })
				require.Equal(t, []int{1, 4, 5}, calls)
			}
		}
	})
}

// book keeps every event by entity.
type book struct {
	told  map[handles.Local][]registry.Event
	count map[registry.EventKind]int
}

func (k *world) book() *book {
	b := &book{told: map[handles.Local][]registry.Event{}, count: map[registry.EventKind]int{}}
	for kind := registry.Spawned; kind <= registry.Destroyed; kind++ {
		k.observe(kind, func(_ *registry.Frame, es []registry.Event) {
			for _, e := range es {
				require.Equal(k.t, kind, e.Kind)
				b.told[e.Entity] = append(b.told[e.Entity], e)
				b.count[e.Kind]++
			}
		})
	}
	return b
}

// want compares the numbers of events told since the last call.
func (b *book) want(t testing.TB, spawned, added, removed, moved, destroyed int) {
	t.Helper()
	require.Equal(t, []int{spawned, added, removed, moved, destroyed}, []int{
		b.count[registry.Spawned], b.count[registry.Added], b.count[registry.Removed],
		b.count[registry.Moved], b.count[registry.Destroyed],
	})
	clear(b.count)
}

func TestOneEventPerFact(t *testing.T) {
	t.Run("registry-13/events equal the ledger on every path", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		b := k.book()
		one := k.spawnOne()
		b.want(t, 1, 0, 0, 0, 0)
		hs := k.spawnMany(70)
		b.want(t, 70, 0, 0, 0, 0)
		res, err := k.r.Reserve()
		require.NoError(t, err)
		k.update(func(w *registry.Window) { require.NoError(t, k.soldiers.SpawnReserved(w, res, soldier{})) })
		b.want(t, 1, 0, 0, 0, 0)
		lost, err := k.r.Reserve()
		require.NoError(t, err)
		require.NoError(t, k.r.Destroy(lost)) // nobody was born, nobody dies
		k.recycle()
		b.want(t, 0, 0, 0, 0, 0)

		k.update(func(w *registry.Window) {
			require.NoError(t, registry.Add(w, one, frozen{}))
			require.NoError(t, registry.Add(w, one, frozen{})) // has it
			require.NoError(t, registry.Set(w, one, health{1}))
			require.NoError(t, registry.Remove[health](w, one))
			require.ErrorIs(t, registry.Remove[health](w, one), registry.ErrNoComponent)
			require.Equal(t, 5, registry.AddBatch(w, hs[:5], title{"t"}))
			require.Equal(t, 3, registry.RemoveBatch[title](w, hs[:3]))
		})
		b.want(t, 0, 6, 4, 10, 0)
		comp := b.told[one][1]
		require.Equal(t, registry.Added, comp.Kind)
		c, ok := k.r.Schema().ByID(comp.Component)
		require.True(t, ok)
		require.Contains(t, c.Name, "frozen")

		// Every way of dying.
		e := k.engine()
		require.NoError(t, k.r.Destroy(hs[0]))
		require.NoError(t, e.frame(func(w *registry.Window) error {
			require.NoError(t, w.Destroy(hs[1]))
			require.Equal(t, 2, w.DestroyBatch([]handles.Local{hs[2], hs[3], hs[1]}))
			return nil
		}, system{"s", func(f *registry.Frame) {
			require.NoError(t, f.Destroy(hs[4]))
			require.NoError(t, k.r.Destroy(hs[5]))
			h, err := k.soldiers.SpawnLater(f, soldier{})
			require.NoError(t, err)
			require.NoError(t, registry.AddLater(f, h, title{"later"}))
			require.NoError(t, registry.RemoveLater[health](f, h))
			require.NoError(t, registry.RemoveLater[health](f, h)) // fails, alone
			h, err = k.soldiers.SpawnLater(f, soldier{})
			require.NoError(t, err)
			require.NoError(t, f.Destroy(h)) // before it was born
		}}))
		require.NoError(t, e.frame(nil))
		b.want(t, 1, 1, 1, 2, 6)
		require.Len(t, e.errs, 1)
		require.ErrorIs(t, e.errs[0], registry.ErrNoComponent)

		k.fails(func(w *registry.Window) {
			h := k.spawn(w)
			require.NoError(t, registry.Add(w, h, frozen{}))
			require.NoError(t, w.Destroy(hs[10]))
			require.NoError(t, registry.Add(w, hs[11], frozen{}))
			require.NoError(t, registry.Remove[self](w, hs[11]))
		})
		b.want(t, 0, 0, 0, 0, 0)
		live := k.r.Stats().Live
		k.update(func(w *registry.Window) {
			k.spawn(w)
			require.NoError(t, w.Reset())
		})
		b.want(t, 1, 0, 0, 0, live+1)
		require.Zero(t, k.r.Stats().Live)
		for h, es := range b.told {
			require.Equal(t, registry.Spawned, es[0].Kind, "%v", h)
			require.Equal(t, registry.Destroyed, es[len(es)-1].Kind, "%v", h)
			for _, e := range es[1 : len(es)-1] {
				require.NotEqual(t, registry.Spawned, e.Kind)
				require.NotEqual(t, registry.Destroyed, e.Kind)
			}
		}
	})
	chain := 100_000
	if racing {
		chain /= 10
	}
	for name, kill := range map[string]func(k *world, first handles.Local){
		"Window.Destroy": func(k *world, first handles.Local) {
			k.update(func(w *registry.Window) { require.NoError(k.t, w.Destroy(first)) })
		},
		"Registry.Destroy": func(k *world, first handles.Local) {
			require.NoError(k.t, k.r.Destroy(first))
			k.update(func(*registry.Window) {})
		},
		"Frame.Destroy": func(k *world, first handles.Local) {
			require.NoError(k.t, k.engine().frame(nil, system{"s", func(f *registry.Frame) {
				require.NoError(k.t, f.Destroy(first))
			}}))
		},
		"a failed window, then a good one": func(k *world, first handles.Local) {
			k.fails(func(w *registry.Window) { require.NoError(k.t, w.Destroy(first)) })
			require.Equal(k.t, chain, k.r.Stats().Live)
			k.update(func(w *registry.Window) { require.NoError(k.t, w.Destroy(first)) })
		},
	} {
		t.Run("registry-13/a chain 100,000 deep dies by "+name, func(t *testing.T) {
			n := chain
			k := newWorld(t, registry.Config{})
			hs := k.spawnMany(n)
			b := k.book()
			k.update(func(w *registry.Window) {
				for i := 1; i < n; i++ {
					if err := registry.SetParent(w, hs[i], hs[i-1]); err != nil {
						t.Fatal(err)
					}
				}
				require.ErrorIs(t, registry.SetParent(w, hs[0], hs[n-1]), registry.ErrCycle)
			})
			kill(k, hs[0])
			b.want(t, 0, 0, 0, 0, n)
			for h, es := range b.told {
				if len(es) != 1 {
					t.Fatalf("%v: %v", h, es)
				}
			}
			require.Zero(t, k.r.Stats().Live)
			k.update(func(w *registry.Window) { require.Equal(t, n, w.ProcessDeferredDestructions()) })
		})
	}
}

func TestEventsComeByKindThenByRegistration(t *testing.T) {
	k := newWorld(t, registry.Config{})
	var calls []string
	note := func(name string) func(*registry.Frame, []registry.Event) {
		return func(_ *registry.Frame, es []registry.Event) { calls = append(calls, fmt.Sprint(name, len(es))) }
	}
	for _, kind := range []registry.EventKind{registry.Destroyed, registry.Moved, registry.Removed, registry.Added, registry.Spawned} {
		k.observe(kind, note(kind.String()+" a "))
		k.observe(kind, note(kind.String()+" b "))
	}
	k.update(func(w *registry.Window) {
		h, g := k.spawn(w), k.spawn(w)
		require.NoError(t, w.Destroy(g))
		require.NoError(t, registry.Remove[health](w, h))
		require.NoError(t, registry.Add(w, h, frozen{}))
	})
	require.Equal(t, []string{
		"Spawned a 2", "Spawned b 2", "Added a 1", "Added b 1", "Removed a 1", "Removed b 1",
		"Moved a 2", "Moved b 2", "Destroyed a 1", "Destroyed b 1",
	}, calls)
	_, err := k.r.Observe(registry.Destroyed+1, note(""))
	require.Error(t, err)
	_, err = k.r.Observe(registry.Spawned, nil)
	require.Error(t, err)
	_, err = k.r.OnMove(nil)
	require.Error(t, err)
}

func TestReplacedInOneWindow(t *testing.T) {
	t.Run("registry-14/successor and predecessor have different names", func(t *testing.T) {
		k := newWorld(t, registry.Config{Owner: 2})
		var old, heir handles.Local
		var was, is handles.Net
		k.update(func(w *registry.Window) {
			var err error
			old = k.spawn(w)
			was, err = w.AssignNet(old)
			require.NoError(t, err)
		})
		k.recycle()
		k.update(func(w *registry.Window) {
			require.NoError(t, w.Destroy(old))
			w.ProcessDeferredDestructions()
			heir = k.spawn(w)
			var err error
			is, err = w.AssignNet(heir)
			require.NoError(t, err)
			again, err := w.AssignNet(heir)
			require.NoError(t, err)
			require.Equal(t, is, again)
		})
		require.NotEqual(t, was.Wire(), is.Wire())
		require.EqualValues(t, 2, is.Owner())
		k.dead(old, was)
		_, err := k.r.ResolveWire(was.Wire())
		require.Error(t, err)
		n, err := k.r.NetOf(heir)
		require.NoError(t, err)
		require.Equal(t, is, n)
		back, err := k.r.ResolveNet(is)
		require.NoError(t, err)
		require.Equal(t, heir, back)
		back, err = k.r.ResolveWire(is.Wire())
		require.NoError(t, err)
		require.Equal(t, heir, back)
	})
	t.Run("registry-14/a dying name is not bound to its index's next entity", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		h := k.spawnOne()
		var n handles.Net
		k.update(func(w *registry.Window) { n, _ = w.AssignNet(h) })
		require.NoError(t, k.r.Destroy(h))
		require.False(t, k.r.AliveNet(n)) // at once, before anybody buries it
		_, err := k.r.ResolveWire(n.Wire())
		require.ErrorIs(t, err, registry.ErrStale)
		heir := k.successor(h)
		k.dead(h, n)
		got, err := k.r.NetOf(heir)
		require.NoError(t, err)
		require.Zero(t, got)
	})
}

func TestWhoseObituary(t *testing.T) {
	t.Run("registry-15/each handle has its own frame and cause, or none", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		e := k.engine()
		h := k.spawnOne()
		_, ok := k.r.Obituary(h)
		require.False(t, ok)
		require.NoError(t, e.frame(nil))
		require.NoError(t, e.frame(nil, system{"the arrow", func(f *registry.Frame) { require.NoError(t, f.Destroy(h)) }}))
		want := registry.Obituary{Frame: 2, Cause: "the arrow"}
		ob, ok := k.r.Obituary(h)
		require.True(t, ok)
		require.Equal(t, want, ob)
		heir := k.successor(h)
		ob, _ = k.r.Obituary(h)
		require.Equal(t, want, ob)
		_, ok = k.r.Obituary(heir)
		require.False(t, ok)
		require.NoError(t, e.frame(nil))
		require.NoError(t, k.r.Destroy(heir))
		require.NoError(t, e.frame(nil))
		ob, ok = k.r.Obituary(heir)
		require.True(t, ok)
		require.Equal(t, registry.Obituary{Frame: 4}, ob)
		ob, _ = k.r.Obituary(h)
		require.Equal(t, want, ob)

		causes := map[handles.Local]registry.Obituary{}
		for i := range 100 {
			hs := k.spawnMany(100)
			require.NoError(t, e.frame(func(w *registry.Window) error {
				for j, h := range hs {
					w.Named(fmt.Sprint("cause ", i, " ", j/10))
					require.NoError(t, w.Destroy(h))
					causes[h] = registry.Obituary{Frame: w.FrameNumber(), Cause: fmt.Sprint("cause ", i, " ", j/10)}
				}
				return nil
			}))
		}
		known := 0
		for h, want := range causes {
			if racing && h.Index()%8 != 0 {
				continue // a forgotten one is looked for among thousands
			}
			if ob, ok := k.r.Obituary(h); ok {
				known++
				require.Equal(t, want, ob)
			}
		}
		require.LessOrEqual(t, known, registry.ObituariesKept)
		if !racing {
			require.Greater(t, known, registry.ObituariesKept*9/10)
		}
		_, ok = k.r.Obituary(h)
		require.False(t, ok, "forgotten")
		_, ok = k.r.Obituary(heir)
		require.False(t, ok, "forgotten")
	})
	t.Run("registry-15/more deaths at once than are remembered", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		hs := k.spawnMany(3 * registry.ObituariesKept)
		k.update(func(w *registry.Window) {
			w.Named("flood")
			w.DestroyBatch(hs)
		})
		known := 0
		for i, h := range hs {
			if racing && i%8 != 0 {
				continue
			}
			if ob, ok := k.r.Obituary(h); ok {
				known++
				require.Equal(t, "flood", ob.Cause)
				require.GreaterOrEqual(t, i, 2*registry.ObituariesKept)
			}
		}
		if !racing {
			require.InDelta(t, registry.ObituariesKept, known, 1)
		}
	})
	t.Run("registry-15/a death that was undone has no obituary", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		h := k.spawnOne()
		k.fails(func(w *registry.Window) {
			w.Named("undone")
			require.NoError(t, w.Destroy(h))
		})
		_, ok := k.r.Obituary(h)
		require.False(t, ok)
		k.update(func(w *registry.Window) { require.NoError(t, w.Destroy(h)) })
		ob, ok := k.r.Obituary(h)
		require.True(t, ok)
		require.Empty(t, ob.Cause)
	})
	t.Run("registry-15/children die of their parent's cause", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		hs := k.spawnMany(3)
		k.update(func(w *registry.Window) {
			require.NoError(t, registry.SetParent(w, hs[1], hs[0]))
			require.NoError(t, registry.SetParent(w, hs[2], hs[1]))
			w.Named("fall")
			require.NoError(t, w.Destroy(hs[0]))
		})
		for _, h := range hs {
			ob, ok := k.r.Obituary(h)
			require.True(t, ok)
			require.Equal(t, "fall", ob.Cause)
		}
	})
}
