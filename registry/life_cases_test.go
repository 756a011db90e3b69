package registry_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// ledger is the names of a registry in plain maps.
type ledger struct {
	alive, reserved               map[handles.Local]bool
	net                           map[handles.Local]handles.Net
	dying, pending, free          int
	netDying, netPending, netFree int
}

func (l *ledger) use(n int) { l.free = max(0, l.free-n) }

// kill notes that h, which is alive or reserved, has died.
func (l *ledger) kill(h handles.Local) {
	delete(l.alive, h)
	delete(l.reserved, h)
	l.dying++
	if _, ok := l.net[h]; ok {
		delete(l.net, h)
		l.netDying++
	}
}

func anyOf(m map[handles.Local]bool, rnd *rand.Rand) (h handles.Local) {
	skip := rnd.IntN(8)
	for h = range m {
		if skip--; skip < 0 {
			break
		}
	}
	return h
}

func TestNamesAgainstAMap(t *testing.T) {
	t.Run("registry-1/living, names and counters equal the model's after every step", func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 1))
		k := newWorld(t, registry.Config{MaxEntities: 500})
		l := &ledger{alive: map[handles.Local]bool{}, reserved: map[handles.Local]bool{}, net: map[handles.Local]handles.Net{}}
		steps := 10_000
		if racing {
			steps = 2000
		}
		for step := range steps {
			full := len(l.alive)+len(l.reserved) >= 500
			switch op := rnd.IntN(16); {
			case op < 6 && !full:
				h := k.spawnOne()
				l.use(1)
				l.alive[h] = true
			case op < 8 && !full:
				h, err := k.r.Reserve()
				require.NoError(t, err)
				l.use(1)
				l.reserved[h] = true
			case op < 9:
				if h := anyOf(l.reserved, rnd); h != 0 {
					k.update(func(w *registry.Window) { require.NoError(t, k.soldiers.SpawnReserved(w, h, soldier{})) })
					delete(l.reserved, h)
					l.alive[h] = true
				}
			case op < 11:
				if h := anyOf(l.alive, rnd); h != 0 {
					k.update(func(w *registry.Window) {
						n, err := w.AssignNet(h)
						require.NoError(t, err)
						if old := l.net[h]; old != 0 {
							require.Equal(t, old, n)
							return
						}
						l.net[h] = n
						l.netFree = max(0, l.netFree-1)
					})
				}
			case op < 14:
				h := anyOf(l.alive, rnd)
				if rnd.IntN(4) == 0 {
					h = anyOf(l.reserved, rnd)
				}
				if h != 0 {
					require.NoError(t, k.r.Destroy(h))
					require.ErrorIs(t, k.r.Destroy(h), registry.ErrStale)
					l.kill(h)
				}
			case op < 15:
				k.update(func(w *registry.Window) { require.Equal(t, l.dying, w.ProcessDeferredDestructions()) })
				l.pending, l.netPending = l.pending+l.dying, l.netPending+l.netDying
				l.dying, l.netDying = 0, 0
			default:
				k.update(func(w *registry.Window) {
					require.Equal(t, l.pending, w.ConfirmLocalRecycles())
					require.Equal(t, l.netPending, w.ConfirmNetRecycles())
				})
				l.free, l.netFree = l.free+l.pending, l.netFree+l.netPending
				l.pending, l.netPending = 0, 0
			}
			s := k.r.Stats()
			require.Equal(t, []int{len(l.alive), len(l.alive) + len(l.reserved) + l.dying, l.free, l.pending},
				[]int{s.Live, s.Local.Issued, s.Local.Free, s.Local.Pending}, "step %d", step)
			require.Equal(t, []int{len(l.net) + l.netDying, l.netFree, l.netPending},
				[]int{s.Net.Issued, s.Net.Free, s.Net.Pending}, "step %d", step)
			if step%50 != 0 {
				continue
			}
			for h := range l.alive {
				require.True(t, k.r.Alive(h))
				n, err := k.r.NetOf(h)
				require.NoError(t, err)
				require.Equal(t, l.net[h], n)
				if n != 0 {
					back, err := k.r.ResolveNet(n)
					require.NoError(t, err)
					require.Equal(t, h, back)
				}
			}
			require.NoError(t, k.r.Verify())
		}
	})
}

func TestReservedPerhapsNeverSpawned(t *testing.T) {
	t.Run("registry-2/a reservation is not alive until it is spawned, once", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		h, err := k.r.Reserve()
		require.NoError(t, err)
		notYet := func() {
			t.Helper()
			require.False(t, k.r.Alive(h))
			_, err := k.r.Resolve(h)
			require.ErrorIs(t, err, registry.ErrNotSpawned)
			_, err = k.r.NetOf(h)
			require.ErrorIs(t, err, registry.ErrNotSpawned)
			k.update(func(w *registry.Window) {
				_, err := registry.Get[self](w, h)
				require.ErrorIs(t, err, registry.ErrNotSpawned)
				require.ErrorIs(t, registry.Set(w, h, self{}), registry.ErrNotSpawned)
				require.ErrorIs(t, registry.Add(w, h, frozen{}), registry.ErrNotSpawned)
				require.ErrorIs(t, registry.Remove[self](w, h), registry.ErrNotSpawned)
				require.ErrorIs(t, registry.SetParent(w, h, 0), registry.ErrNotSpawned)
				require.ErrorIs(t, registry.SetActive(w, h, false), registry.ErrNotSpawned)
				_, err = w.AssignNet(h)
				require.ErrorIs(t, err, registry.ErrNotSpawned)
				require.ErrorIs(t, w.BindNet(h, handles.NewNet(1, 1, 1)), registry.ErrNotSpawned)
				other := k.spawn(w)
				require.ErrorIs(t, registry.SetParent(w, other, h), registry.ErrNotSpawned)
				require.NoError(t, registry.Set(w, other, self{h})) // it may be stored
				require.NoError(t, w.Destroy(other))
			})
			require.Zero(t, k.r.Stats().Live)
		}
		notYet()
		k.fails(func(w *registry.Window) {
			require.NoError(t, k.soldiers.SpawnReserved(w, h, soldier{Health: health{1}}))
			require.True(t, k.r.Alive(h))
		})
		notYet()
		k.update(func(w *registry.Window) {
			require.NoError(t, k.soldiers.SpawnReserved(w, h, soldier{Health: health{2}}))
			p, err := registry.Peek[health](w, h)
			require.NoError(t, err)
			require.EqualValues(t, 2, p.Points)
		})
		require.Equal(t, 1, k.r.Stats().Live)
		k.update(func(w *registry.Window) {
			require.Error(t, k.soldiers.SpawnReserved(w, h, soldier{}))
			require.ErrorIs(t, k.scouts.SpawnReserved(w, h, scout{}), registry.ErrInvalidHandle)
		})
		require.Equal(t, 1, k.r.Stats().Live)

		k.recycle()
		lost, err := k.r.Reserve()
		require.NoError(t, err)
		require.NoError(t, k.r.Destroy(lost))
		k.dead(lost, 0)
		k.update(func(w *registry.Window) {
			require.ErrorIs(t, k.soldiers.SpawnReserved(w, lost, soldier{}), registry.ErrStale)
			require.Equal(t, 1, w.ProcessDeferredDestructions())
		})
		s := k.r.Stats()
		require.Equal(t, 1, s.Live)
		require.Equal(t, 1, s.Local.Pending)
		k.update(func(w *registry.Window) { require.Equal(t, 1, w.ConfirmLocalRecycles()) })
		require.True(t, k.r.Alive(k.successor(lost)))
	})
}

// liveIn counts the active entities by the planes, as systems and queries do.
func liveIn(a registry.Access, h handles.Local) (count int, has bool) {
	store := registry.Iterate(a)
	defer registry.Finish(a)
	for _, arch := range store.Archetypes() {
		for _, ch := range arch.Chunks() {
			for slot := range uint32(ch.Allocated()) {
				if ch.Bit(slot) {
					count++
					has = has || ch.Entities()[slot] == h
				}
			}
		}
	}
	return count, has
}

func TestDeathIsOneInstant(t *testing.T) {
	gone := func(k *world, a registry.Access, h handles.Local, n handles.Net) {
		k.t.Helper()
		k.dead(h, n)
		require.False(k.t, registry.Has[self](a, h))
		_, err := registry.Get[self](a, h)
		require.ErrorIs(k.t, err, registry.ErrStale)
		_, err = registry.Peek[self](a, h)
		require.ErrorIs(k.t, err, registry.ErrStale)
		require.ErrorIs(k.t, registry.Set(a, h, self{}), registry.ErrStale)
		require.False(k.t, registry.Active(a, h))
		_, ok := registry.CacheIndex(a, h)
		require.False(k.t, ok)
	}
	victims := func(k *world) (h handles.Local, n handles.Net) {
		k.update(func(w *registry.Window) {
			k.spawn(w)
			h = k.spawn(w)
			k.spawn(w)
			var err error
			n, err = w.AssignNet(h)
			require.NoError(k.t, err)
		})
		return h, n
	}
	for name, kill := range map[string]func(k *world, w *registry.Window, h handles.Local) error{
		"in a window":                func(_ *world, w *registry.Window, h handles.Local) error { return w.Destroy(h) },
		"from outside in the window": func(k *world, _ *registry.Window, h handles.Local) error { return k.r.Destroy(h) },
	} {
		t.Run("registry-3/"+name, func(t *testing.T) {
			k := newWorld(t, registry.Config{})
			h, n := victims(k)
			k.update(func(w *registry.Window) {
				require.NoError(t, kill(k, w, h))
				gone(k, w, h, n)
				count, has := liveIn(w, h)
				require.Equal(t, 2, count)
				require.False(t, has)
			})
			require.Equal(t, 2, k.r.Stats().Live)
		})
	}
	t.Run("registry-3/from outside during a phase", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		h, n := victims(k)
		require.NoError(t, k.engine().frame(nil,
			system{"first", func(f *registry.Frame) {
				done := make(chan error)
				go func() { done <- k.r.Destroy(h) }()
				require.NoError(t, <-done)
				gone(k, f, h, n)
			}},
			system{"next", func(f *registry.Frame) {
				gone(k, f, h, n)
				count, has := liveIn(f, h)
				require.Equal(t, 2, count)
				require.False(t, has)
			}}))
	})
	t.Run("registry-3/in a frame", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		h, n := victims(k)
		require.NoError(t, k.engine().frame(nil, system{"killer", func(f *registry.Frame) {
			require.NoError(t, f.Destroy(h))
			gone(k, f, h, n)
			count, has := liveIn(f, h)
			require.Equal(t, 2, count)
			require.False(t, has)
		}}))
	})
}

func TestDestroyedTwice(t *testing.T) {
	ways := []struct {
		name string
		kill func(k *world, e *engine, h handles.Local) error
	}{
		{"Registry.Destroy", func(k *world, _ *engine, h handles.Local) error { return k.r.Destroy(h) }},
		{"Window.Destroy", func(k *world, e *engine, h handles.Local) (err error) {
			require.NoError(k.t, e.frame(func(w *registry.Window) error {
				err = w.Destroy(h)
				return nil
			}))
			return err
		}},
		{"Frame.Destroy", func(k *world, e *engine, h handles.Local) (err error) {
			require.NoError(k.t, e.frame(nil, system{"killer", func(f *registry.Frame) { err = f.Destroy(h) }}))
			return err
		}},
		{"Frame.Defer", func(k *world, e *engine, h handles.Local) (err error) {
			require.NoError(k.t, e.frame(nil, system{"killer", func(f *registry.Frame) {
				f.Defer(func(w *registry.Window) error {
					err = w.Destroy(h)
					return nil
				})
			}}))
			require.NoError(k.t, e.frame(nil))
			return err
		}},
	}
	for _, first := range ways {
		for _, second := range ways {
			for _, cycle := range []bool{false, true} {
				t.Run("registry-4/"+first.name+" then "+second.name, func(t *testing.T) {
					k := newWorld(t, registry.Config{})
					told := 0
					_, err := k.r.Observe(registry.Destroyed, func(_ *registry.Frame, es []registry.Event) { told += len(es) })
					require.NoError(t, err)
					h := k.spawnOne()
					e := k.engine()
					require.NoError(t, first.kill(k, e, h))
					require.NoError(t, e.frame(nil))
					var heir handles.Local
					if cycle {
						heir = k.successor(h)
					}
					require.ErrorIs(t, second.kill(k, e, h), registry.ErrStale)
					require.NoError(t, e.frame(nil))
					require.Equal(t, 1, told)
					if cycle {
						require.True(t, k.r.Alive(heir))
					}
					require.Zero(t, k.r.Stats().Tombstoned)
				})
			}
		}
	}
	t.Run("registry-4/eight goroutines at once", func(t *testing.T) {
		k := newWorld(t, registry.Config{})
		told := 0
		_, err := k.r.Observe(registry.Destroyed, func(_ *registry.Frame, es []registry.Event) { told += len(es) })
		require.NoError(t, err)
		hs := k.spawnMany(1000)
		var won, stale atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for _, h := range hs {
					switch k.r.Destroy(h) {
					case nil:
						won.Add(1)
					case registry.ErrStale:
						stale.Add(1)
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1000, won.Load())
		require.EqualValues(t, 7000, stale.Load())
		k.recycle()
		require.Equal(t, 1000, told)
		require.Zero(t, k.r.Stats().Live)
	})
}

func TestOwnDataAfterEveryMove(t *testing.T) {
	t.Run("registry-5/each entity keeps its own cells, in one slot", func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(5, 5))
		k := newWorld(t, registry.Config{})
		alive := map[handles.Local]bool{}
		rounds := 1000
		if racing {
			rounds = 100
		}
		for round := range rounds {
			k.update(func(w *registry.Window) {
				w.ProcessDeferredDestructions()
				w.ConfirmLocalRecycles()
				for range 100 {
					h := anyOf(alive, rnd)
					switch op := rnd.IntN(9); {
					case op < 2 && len(alive) < 1000 || h == 0:
						alive[k.spawn(w)] = true
					case op == 2 && len(alive) < 1000:
						n, err := k.scouts.Spawn(w, scout{Title: title{"x"}})
						require.NoError(t, err)
						require.NoError(t, registry.Set(w, n, self{n}))
						alive[n] = true
					case op < 5:
						require.NoError(t, w.Destroy(h))
						delete(alive, h)
					case op == 5:
						require.NoError(t, registry.Add(w, h, frozen{}))
					case op == 6:
						require.NoError(t, registry.Add(w, h, title{"moved"}))
					case op == 7:
						registry.RemoveBatch[frozen](w, []handles.Local{h})
					case op == 8:
						registry.RemoveBatch[health](w, []handles.Local{h})
					}
				}
				if round%10 != 0 {
					return
				}
				seen := map[handles.Local]bool{}
				store := registry.Iterate(w)
				defer registry.Finish(w)
				sum := 0
				for _, a := range store.Archetypes() {
					sum += a.Live()
					for _, ch := range a.Chunks() {
						for slot := range uint32(ch.Allocated()) {
							if ch.Bit(slot) {
								h := ch.Entities()[slot]
								require.False(t, seen[h])
								seen[h] = true
							}
						}
					}
				}
				require.Equal(t, len(alive), sum)
				require.Equal(t, alive, seen)
				for h := range alive {
					p, err := registry.Get[self](w, h)
					require.NoError(t, err)
					require.Equal(t, h, p.H)
				}
			})
		}
	})
}

func TestManyChangesToOneEntity(t *testing.T) {
	// one is what the model knows of the entity: which components, and their values.
	type one struct {
		dead   bool
		health *int64
		self   bool
		title  bool
	}
	step := func(t *testing.T, w *registry.Window, h handles.Local, m *one, rnd *rand.Rand) {
		v := rnd.Int64()
		check := func(err error, has bool) {
			t.Helper()
			switch {
			case m.dead:
				require.ErrorIs(t, err, registry.ErrStale)
			case !has:
				require.ErrorIs(t, err, registry.ErrNoComponent)
			default:
				require.NoError(t, err)
			}
		}
		switch rnd.IntN(8) {
		case 0:
			check(registry.Add(w, h, health{v}), true)
			m.health = &v
		case 1:
			check(registry.Set(w, h, health{v}), m.health != nil)
			if m.health != nil {
				m.health = &v
			}
		case 2:
			check(registry.Remove[health](w, h), m.health != nil)
			m.health = nil
		case 3:
			check(registry.Add(w, h, title{"t"}), true)
			m.title = true
		case 4:
			check(registry.Remove[title](w, h), m.title)
			m.title = false
		case 5: // bare at once after an Add
			check(registry.Add(w, h, health{v}), true)
			registry.RemoveBatch[health](w, []handles.Local{h})
			registry.RemoveBatch[self](w, []handles.Local{h})
			registry.RemoveBatch[title](w, []handles.Local{h})
			m.health, m.self, m.title = nil, false, false
		case 6:
			check(registry.Add(w, h, self{h}), true)
			m.self = true
		case 7:
			if rnd.IntN(20) == 0 {
				check(w.Destroy(h), true)
				m.dead = true
			}
		}
		if m.dead {
			*m = one{dead: true}
		}
		require.Equal(t, !m.dead, w.Registry().Alive(h))
		require.Equal(t, m.health != nil, registry.Has[health](w, h))
		require.Equal(t, m.title, registry.Has[title](w, h))
		require.Equal(t, m.self, registry.Has[self](w, h))
		if m.health != nil {
			got, err := registry.Peek[health](w, h)
			require.NoError(t, err)
			require.Equal(t, *m.health, got.Points)
		}
		if m.self {
			got, err := registry.Peek[self](w, h)
			require.NoError(t, err)
			require.Equal(t, h, got.H)
		}
	}
	for name, run := range map[string]func(k *world, e *engine, n int, step func(*registry.Window)){
		"in one window": func(k *world, e *engine, n int, step func(*registry.Window)) {
			k.update(func(w *registry.Window) {
				for range n {
					step(w)
				}
			})
		},
		"a window each": func(k *world, e *engine, n int, step func(*registry.Window)) {
			for range n {
				k.update(step)
			}
		},
		"by Defer": func(k *world, e *engine, n int, step func(*registry.Window)) {
			require.NoError(k.t, e.frame(nil, system{"s", func(f *registry.Frame) {
				for range n {
					f.Defer(func(w *registry.Window) error {
						step(w)
						return nil
					})
				}
			}}))
			require.NoError(k.t, e.frame(nil))
			require.Empty(k.t, e.errs)
		},
	} {
		t.Run("registry-6/"+name, func(t *testing.T) {
			for seed := range uint64(40) {
				rnd := rand.New(rand.NewPCG(6, seed))
				k := newWorld(t, registry.Config{})
				e := k.engine()
				h := k.spawnOne()
				zero := int64(0)
				m := &one{health: &zero, self: true}
				run(k, e, 60, func(w *registry.Window) { step(t, w, h, m, rnd) })
				require.NoError(t, k.r.Verify())
			}
		})
	}
}
