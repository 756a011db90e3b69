package pool_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

func TestPrefabCases(t *testing.T) {
	t.Run("pool-3", backAsGoodAsNew)
	t.Run("pool-10", diesAnotherWay)
	t.Run("pool-11", halfAPrefab)
	t.Run("pool-12", theFileWhileItIsWritten)
	t.Run("pool-13", oneImpossibleEntry)
}

type (
	site    struct{ X, Y float32 }
	freight struct{ Items []int }
	braked  struct{} // a tag
	soaked  struct{ Depth int64 }
	cart    struct {
		Place  site
		Load   freight
		Braked braked
	}
	wheel  struct{ Place site }
	glint  struct{ Place site } // of the same components as a wheel
	worlds struct {
		*pool.Prefabs
		t      testing.TB
		reg    *registry.Registry
		carts  *registry.Class[cart]
		wheels *registry.Class[wheel]
		glints *registry.Class[glint]
	}
)

// newCart is what a Cart starts with.
func newCart() cart { return cart{Place: site{1, 2}, Load: freight{[]int{7}}} }

// everyRegistry are the kinds of registry that pools behave differently in.
var everyRegistry = map[string]registry.Config{
	"plain":         {MaxEntities: 4096},
	"deterministic": {MaxEntities: 4096, Deterministic: true},
	"ringed":        {MaxEntities: 4096, Deterministic: true, TemporalFrames: 8},
}

// newWorlds makes a registry with a Cart, which has two Wheels, and a Glint, which has no pool.
func newWorlds(t testing.TB, cfg registry.Config) *worlds {
	reg, err := registry.New(cfg)
	require.NoError(t, err)
	s := &worlds{Prefabs: pool.NewPrefabs(reg), t: t, reg: reg}
	for _, tier := range []func() error{
		func() error { return tiered[site](reg) },
		func() error { return tiered[soaked](reg) },
	} {
		require.NoError(t, tier())
	}
	s.carts, err = registry.RegisterClass[cart](reg)
	require.NoError(t, err)
	s.wheels, err = registry.RegisterClass[wheel](reg)
	require.NoError(t, err)
	s.glints, err = registry.RegisterClass[glint](reg)
	require.NoError(t, err)
	require.NoError(t, pool.Define(s.Prefabs, "Cart", s.carts, newCart(), pool.Child("Wheel"), pool.Child("Wheel")))
	require.NoError(t, pool.Define(s.Prefabs, "Wheel", s.wheels, wheel{site{3, 4}}))
	require.NoError(t, pool.Define(s.Prefabs, "Glint", s.glints, glint{}))
	t.Cleanup(func() { require.NoError(t, reg.Verify()) })
	return s
}

func tiered[C any](reg *registry.Registry) error {
	_, err := registry.RegisterComponent[C](reg, registry.InTier(archetype.Temporal))
	return err
}

// do is an Update that has to go well.
func (s *worlds) do(fn func(w *registry.Window) error) {
	s.t.Helper()
	require.NoError(s.t, s.reg.Update(fn))
}

// settle lets the slots of the dead become idle.
func (s *worlds) settle() {
	s.t.Helper()
	s.do(func(w *registry.Window) error { w.ProcessDeferredDestructions(); return nil })
}

func (s *worlds) declare(id string, capacity int, g pool.Grow, prewarm bool) {
	s.t.Helper()
	s.do(func(w *registry.Window) error { return s.Declare(w, id, capacity, g, prewarm) })
}

func (s *worlds) spawn(id string) (h handles.Local) {
	s.t.Helper()
	s.do(func(w *registry.Window) (err error) { h, err = s.Spawn(w, id); return err })
	return h
}

// stats are those of a pool, which there has to be.
func (s *worlds) stats(id string) pool.Stats {
	s.t.Helper()
	st, ok := s.StatsOf(id)
	require.True(s.t, ok, "there is no pool %s", id)
	require.Equal(s.t, st.Cap, st.InUse+st.Free)
	return st
}

// inUse are the pools and what is in use of each.
func (s *worlds) inUse() map[string]int {
	m := map[string]int{}
	for id, st := range s.Stats() {
		m[id] = st.InUse
	}
	return m
}

// waysBack are the ways in which an entity of a pool can end.
var waysBack = map[string]func(s *worlds, h, above handles.Local) error{
	"given back": func(s *worlds, h, _ handles.Local) error {
		return s.reg.Update(func(w *registry.Window) error { return s.GiveBack(w, h) })
	},
	"by its block": func(s *worlds, h, _ handles.Local) error {
		return s.reg.Update(func(w *registry.Window) error { return pool.EntitiesOf(w, s.carts)[0].Despawn(w, h) })
	},
	"by a question": func(s *worlds, h, _ handles.Local) error {
		return s.reg.Update(func(w *registry.Window) error {
			n := pool.EntitiesOf(w, s.carts)[0].DespawnWhere(w, func(other handles.Local, _ *cart) bool { return other == h })
			if n != 1 {
				return fmt.Errorf("%d despawned", n)
			}
			return nil
		})
	},
	"in a window": func(s *worlds, h, _ handles.Local) error {
		return s.reg.Update(func(w *registry.Window) error { return w.Destroy(h) })
	},
	"with others": func(s *worlds, h, _ handles.Local) error {
		return s.reg.Update(func(w *registry.Window) error {
			if n := w.DestroyBatch([]handles.Local{h, h, 0}); n != 1 {
				return fmt.Errorf("%d destroyed", n)
			}
			return nil
		})
	},
	"from outside": func(s *worlds, h, _ handles.Local) error { return s.reg.Destroy(h) },
	"by another goroutine": func(s *worlds, h, _ handles.Local) (err error) {
		var all sync.WaitGroup
		all.Go(func() { err = s.reg.Destroy(h) })
		all.Wait()
		return err
	},
	"in a frame": func(s *worlds, h, _ handles.Local) error {
		var inside error
		o, err := s.reg.Observe(registry.Spawned, func(f *registry.Frame, _ []registry.Event) { inside = f.Destroy(h) })
		if err != nil {
			return err
		}
		err = s.reg.Update(func(w *registry.Window) error { _, err := s.glints.Spawn(w, glint{}); return err })
		return errors.Join(err, inside, o.Remove())
	},
	"with who is above": func(s *worlds, _, above handles.Local) error {
		return s.reg.Update(func(w *registry.Window) error { return w.Destroy(above) })
	},
	"with everybody": func(s *worlds, _, _ handles.Local) error {
		return s.reg.Update(func(w *registry.Window) error { return w.Reset() })
	},
}

// backAsGoodAsNew has an entity of a pool used in every way, and end in every way, and looks at each row of what is
// reset and what is kept.
func backAsGoodAsNew(t *testing.T) {
	for kind, cfg := range everyRegistry {
		for way, end := range waysBack {
			t.Run(kind+"/"+way, func(t *testing.T) {
				s := newWorlds(t, cfg)
				s.declare("Cart", 3, pool.Fixed(), true)
				s.declare("Wheel", 6, pool.Fixed(), false)
				var first, h, above, below handles.Local
				var net handles.Net
				var at uint32
				var leased registry.Lease
				s.do(func(w *registry.Window) (err error) {
					first, err = s.Spawn(w, "Cart") // in front of it, so that the slot is not the first
					require.NoError(t, err)
					h, err = s.Spawn(w, "Cart")
					require.NoError(t, err)
					at, _ = registry.CacheIndex(w, h)
					require.Equal(t, site{1, 2}, sure(registry.Peek[site](w, h)))
					require.Equal(t, []int{7}, sure(registry.Peek[freight](w, h)).Items)
					require.True(t, registry.Has[braked](w, h))

					require.NoError(t, registry.Set(w, h, site{8, 9}))
					require.NoError(t, registry.Set(w, h, freight{[]int{1, 2, 3}}))
					require.NoError(t, registry.Add(w, h, soaked{5}))
					require.NoError(t, registry.Remove[braked](w, h))
					above, err = s.glints.Spawn(w, glint{})
					require.NoError(t, err)
					require.NoError(t, registry.SetParent(w, h, above))
					below, err = s.glints.Spawn(w, glint{})
					require.NoError(t, err)
					require.NoError(t, registry.SetParent(w, below, h))
					net, err = w.AssignNet(h)
					return err
				})
				s.do(func(w *registry.Window) error { // a cursor, as it is when its entity dies
					_, _, err := leased.Take(w, h)
					require.True(t, leased.Holds(w))
					return err
				})
				require.Equal(t, map[string]int{"Cart": 2, "Wheel": 4}, s.inUse())

				require.NoError(t, end(s, h, above))
				require.False(t, s.reg.Alive(h))
				s.settle()
				alone := 1
				if way == "with everybody" {
					alone = 0
				}
				require.Equal(t, map[string]int{"Cart": alone, "Wheel": 2 * alone}, s.inUse(), "all of it is home")
				require.Equal(t, alone == 1, s.reg.Alive(first))
				require.False(t, s.reg.Alive(below))
				_, err := s.reg.ResolveNet(net)
				require.Error(t, err)
				require.Equal(t, 1, s.reg.Stats().Net.Pending)

				var again handles.Local
				s.do(func(w *registry.Window) (err error) {
					require.False(t, leased.Holds(w))
					block := pool.EntitiesOf(w, s.carts)[0]
					idle := block.Slot(1)
					require.NotEqual(t, h, idle)
					require.False(t, registry.Active(w, idle))
					for range 2 { // the idle one, then who has its place
						index, ok := registry.CacheIndex(w, idle)
						require.True(t, ok)
						require.Equal(t, at, index)
						require.Equal(t, site{1, 2}, sure(registry.Peek[site](w, idle)))
						require.Equal(t, []int{7}, sure(registry.Peek[freight](w, idle)).Items)
						require.True(t, registry.Has[braked](w, idle))
						require.False(t, registry.Has[soaked](w, idle))
						if again == 0 && alone == 0 {
							_, err = s.Spawn(w, "Cart")
							require.NoError(t, err)
						}
						if again == 0 {
							again, err = s.Spawn(w, "Cart")
							require.NoError(t, err)
						}
						idle = again
					}
					require.ErrorIs(t, s.GiveBack(w, h), registry.ErrStale)
					return nil
				})
				net, err = s.reg.NetOf(again)
				require.NoError(t, err)
				require.Zero(t, net, "nobody has asked for one")
				if way != "with who is above" && way != "with everybody" {
					require.NoError(t, s.reg.Destroy(above))
					s.settle()
				}
				require.True(t, s.reg.Alive(again), "nobody is above it")
				require.Equal(t, map[string]int{"Cart": 2, "Wheel": 4}, s.inUse())
			})
		}
	}
}

// sure is for what has been seen to be there.
func sure[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// diesAnotherWay has entities end that were spawned in a callback that fails, or twice, or while others spawn.
func diesAnotherWay(t *testing.T) {
	for kind, cfg := range everyRegistry {
		t.Run(kind, func(t *testing.T) {
			const n = 4
			s := newWorlds(t, cfg)
			s.declare("Wheel", n, pool.Fixed(), true)
			fill := func() (hs []handles.Local) {
				t.Helper()
				s.do(func(w *registry.Window) error {
					for range n {
						hs = append(hs, sure(s.Spawn(w, "Wheel")))
					}
					refused := s.stats("Wheel").Refused
					_, err := s.Spawn(w, "Wheel")
					require.ErrorIs(t, err, pool.ErrExhausted)
					require.Equal(t, refused+1, s.stats("Wheel").Refused)
					return nil
				})
				return hs
			}
			var undone handles.Local
			require.ErrorIs(t, s.reg.Update(func(w *registry.Window) error {
				undone = sure(s.Spawn(w, "Wheel"))
				return errFailed
			}), errFailed)
			require.False(t, s.reg.Alive(undone))
			require.Zero(t, s.stats("Wheel").InUse)

			hs := fill()
			require.NotContains(t, hs, undone)
			require.NoError(t, s.reg.Destroy(hs[2]))
			s.do(func(w *registry.Window) error {
				require.NoError(t, s.GiveBack(w, hs[0]))
				require.ErrorIs(t, s.GiveBack(w, hs[0]), registry.ErrStale)
				require.ErrorIs(t, s.GiveBack(w, hs[2]), registry.ErrStale)
				require.NoError(t, w.Destroy(hs[1]))
				return nil
			})
			require.ErrorIs(t, s.reg.Update(func(w *registry.Window) error {
				require.NoError(t, s.GiveBack(w, hs[3])) // taken back
				return errFailed
			}), errFailed)
			require.True(t, s.reg.Alive(hs[3]))
			s.settle()
			require.Equal(t, 1, s.stats("Wheel").InUse)

			// What is free is the pool's own: others do not get it.
			before := s.stats("Wheel")
			plain := make([]uint32, 0, 2*n)
			s.do(func(w *registry.Window) error {
				for range 2 * n {
					at, ok := registry.CacheIndex(w, sure(s.wheels.Spawn(w, wheel{})))
					require.True(t, ok)
					plain = append(plain, at)
				}
				for i := range pool.EntitiesOf(w, s.wheels)[0].Len() {
					require.NotContains(t, plain, pool.EntitiesOf(w, s.wheels)[0].Block().Base()+uint32(i))
				}
				return nil
			})
			require.Equal(t, before, s.stats("Wheel"))
			s.do(func(w *registry.Window) error { return s.GiveBack(w, hs[3]) })
			for _, h := range fill() {
				require.NotContains(t, hs, h)
			}
		})
	}
}

// halfAPrefab spawns prefabs of which something cannot come into being.
func halfAPrefab(t *testing.T) {
	for kind, cfg := range everyRegistry {
		t.Run(kind, func(t *testing.T) {
			s := newWorlds(t, cfg)
			// Five: a Wagon, a Cart with two Wheels, and a Glint behind them.
			require.NoError(t, pool.Define(s.Prefabs, "Wagon", s.carts, newCart(), pool.Child("Cart"), pool.Child("Glint"), pool.Child("Lamp")))
			s.do(func(w *registry.Window) error {
				_, err := s.Spawn(w, "Wagon")
				require.ErrorIs(t, err, registry.ErrNotRegistered)
				require.ErrorContains(t, err, `prefab "Wagon" has a child "Lamp"`)
				_, err = s.Spawn(w, "Coach")
				require.ErrorIs(t, err, registry.ErrNotRegistered)
				return nil
			})
			require.ErrorIs(t, pool.Define(s.Prefabs, "Lamp", s.glints, glint{}, pool.Child("Wagon")), registry.ErrCycle)
			require.ErrorIs(t, pool.Define(s.Prefabs, "Lamp", s.glints, glint{}, pool.Child("Lamp")), registry.ErrCycle)
			require.NoError(t, pool.Define(s.Prefabs, "Lamp", s.glints, glint{}))
			require.ErrorIs(t, pool.Define(s.Prefabs, "Lamp", s.wheels, wheel{}), registry.ErrAlreadyRegistered)

			s.declare("Wagon", 8, pool.Double(), true)
			s.declare("Wheel", 3, pool.Fixed(), true)
			s.declare("Lamp", 1, pool.Additive(1), false)
			whole := s.spawn("Wagon")
			before, live := s.inUse(), s.reg.Stats().Live
			require.Equal(t, map[string]int{"Wagon": 1, "Wheel": 2, "Lamp": 1}, before)
			require.Equal(t, 6, live)
			for range 3 {
				s.do(func(w *registry.Window) error {
					_, err := s.Spawn(w, "Wagon")
					require.ErrorIs(t, err, pool.ErrExhausted)
					require.ErrorContains(t, err, `prefab "Wheel" has 2 of 3 in use`)
					return nil
				})
				require.Equal(t, before, s.inUse())
				require.Equal(t, live, s.reg.Stats().Live)
			}
			require.Equal(t, 3, s.stats("Wheel").Refused)
			require.Zero(t, s.stats("Wagon").Refused+s.stats("Lamp").Refused+s.stats("Lamp").Grown, "they were not asked")

			// What seems to be free is not: somebody else has destroyed who is there.
			s.declare("Wheel", 4, pool.Fixed(), true)
			if !cfg.Deterministic { // there it is dead from the next window on
				s.do(func(w *registry.Window) error {
					require.NoError(t, s.reg.Destroy(pool.EntitiesOf(w, s.wheels)[1].Slot(0)))
					require.Equal(t, before, s.inUse())
					_, err := s.Spawn(w, "Wagon")
					require.ErrorIs(t, err, pool.ErrExhausted)
					return nil
				})
				s.settle()
				require.Equal(t, 4, s.stats("Wheel").Refused)
			}
			require.Equal(t, before, s.inUse())
			require.Equal(t, live, s.reg.Stats().Live)

			// Nor is there room for what has no pool.
			s.declare("Wheel", 64, pool.Fixed(), true)
			s.declare("Lamp", 64, pool.Fixed(), true)
			s.do(func(w *registry.Window) error {
				for {
					if _, err := s.glints.Spawn(w, glint{}); err != nil {
						require.ErrorIs(t, err, registry.ErrExhausted)
						break
					}
				}
				_, err := s.Spawn(w, "Wagon")
				require.ErrorIs(t, err, pool.ErrExhausted)
				return nil
			})
			s.settle()
			require.Equal(t, before, s.inUse())

			s.do(func(w *registry.Window) error { return s.GiveBack(w, whole) })
			s.settle()
			require.Equal(t, map[string]int{"Wagon": 0, "Wheel": 0, "Lamp": 0}, s.inUse())
		})
	}
}

// theFileWhileItIsWritten reloads while somebody saves good and bad files.
func theFileWhileItIsWritten(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	for _, how := range []string{"in place", "by rename"} {
		t.Run(how, func(t *testing.T) {
			s := newWorlds(t, registry.Config{})
			path := filepath.Join(t.TempDir(), "some.pools.ron")
			save := func(src string) error {
				if how == "in place" {
					return os.WriteFile(path, []byte(src), 0o600)
				}
				if err := os.WriteFile(path+".new", []byte(src), 0o600); err != nil {
					return err
				}
				return os.Rename(path+".new", path)
			}
			good := func(n int) string {
				return fmt.Sprintf("Pools([\n Pool( prefab: \"Cart\", capacity: %d ),\n Pool( prefab: \"Wheel\", capacity: %d ),\n])\n", n, 2*n)
			}
			reload := func() (changed bool, err error) {
				s.do(func(w *registry.Window) error { changed, err = s.Reload(w, path); return nil })
				return changed, err
			}
			// One after the other: a whole valid file takes effect, once; a bad one is told, once.
			for n, c := range []struct {
				src  string
				want string // of the error; "" for none
			}{
				{good(1), ""},
				{good(2)[:20], ":2:"},
				{good(3), ""},
				{"Pools([\n Pool( prefab: \"Cart\", capacity: -1 ),\n])\n", ":2:34: "},
				{"Pools([\n Pool( prefab: \"Cart\", capcity: 1 ),\n])\n", ":2:24: "},
				{good(6), ""},
			} {
				require.NoError(t, save(c.src))
				was := s.reloaded()
				changed, err := reload()
				if c.want == "" {
					require.NoError(t, err)
					require.True(t, changed)
					require.Equal(t, [2]int{n + 1, 2 * (n + 1)}, s.reloaded())
				} else {
					var file *pool.FileError
					require.ErrorAs(t, err, &file)
					require.ErrorContains(t, err, path+c.want)
					require.False(t, changed)
					require.Equal(t, was, s.reloaded())
				}
				changed, err = reload()
				require.NoError(t, err, "it was told")
				require.False(t, changed)
			}
			require.NoError(t, os.Remove(path))
			_, err := reload()
			require.ErrorIs(t, err, os.ErrNotExist)
			require.NoError(t, os.Mkdir(path, 0o700))
			_, err = reload()
			require.ErrorContains(t, err, "is a directory")
			require.NoError(t, os.Remove(path))

			// At the same time: never anything else than a whole one.
			written := make(chan error)
			go func() {
				var err error
				for n := range rounds {
					err = errors.Join(err, save(good(n+10)), save(good(n + 10)[:n%60]), save("Pools([ Pool( prefab: \"Cart\", capacity: 9999999999 ) ])"))
				}
				written <- errors.Join(err, save(good(rounds+10)))
			}()
			done := false
			seen := []int{}
			for !done {
				select {
				case err := <-written:
					require.NoError(t, err)
					done = true
				default:
				}
				if changed, err := reload(); changed {
					require.NoError(t, err)
					got := s.reloaded()
					require.Equal(t, 2*got[0], got[1])
					seen = append(seen, got[0])
				}
			}
			require.Equal(t, rounds+10, seen[len(seen)-1], "the last one counts")
			require.True(t, slices.IsSorted(seen))
			require.Equal(t, len(seen), len(slices.Compact(seen)), "once each")
		})
	}
}

// reloaded are the capacities of the two pools of these files.
func (s *worlds) reloaded() [2]int {
	carts, _ := s.StatsOf("Cart")
	wheels, _ := s.StatsOf("Wheel")
	return [2]int{carts.Cap, wheels.Cap}
}

// oneImpossibleEntry reloads files in which one entry cannot be.
func oneImpossibleEntry(t *testing.T) {
	const before = `Pools([
    Pool( prefab: "Cart", capacity: 8 ),
    Pool( prefab: "Wheel", capacity: 32 ),
    Pool( prefab: "Glint", capacity: 4, grow: Fixed, prewarm: true ),
    Pool( prefab: "Later", capacity: 5 ),
    Pool( prefab: "Spare", capacity: 5 ),
])`
	for _, c := range []struct{ name, after, want, gone string }{
		{"shrinks below use", `Pools([
    Pool( prefab: "Cart", capacity: 2 ),
    Pool( prefab: "Wheel", capacity: 64 ),
    Pool( prefab: "Glint", capacity: 5, grow: Fixed, prewarm: true ),
    Pool( prefab: "Later", capacity: 6, grow: Additive(2) ),
    Pool( prefab: "Spare", capacity: 7 ),
])`, `prefab "Cart": 2 are too few, for there are 3`, "Spare"},
		{"has a max below use", `Pools([
    Pool( prefab: "Cart", capacity: 1, max: 2 ),
    Pool( prefab: "Wheel", capacity: 64 ),
    Pool( prefab: "Glint", capacity: 5, grow: Fixed, prewarm: true ),
    Pool( prefab: "Later", capacity: 6, grow: Additive(2) ),
    Pool( prefab: "Spare", capacity: 7 ),
])`, `prefab "Cart": 1 are too few, for there are 3`, "Spare"},
		{"is gone", `Pools([
    Pool( prefab: "Wheel", capacity: 64 ),
    Pool( prefab: "Glint", capacity: 5, grow: Fixed, prewarm: true ),
    Pool( prefab: "Later", capacity: 6, grow: Additive(2) ),
])`, `prefab "Cart" is not declared any more, and has 3`, ""},
		{"has another name", `Pools([
    Pool( prefab: "Kart", capacity: 8 ),
    Pool( prefab: "Wheel", capacity: 64 ),
    Pool( prefab: "Glint", capacity: 5, grow: Fixed, prewarm: true ),
    Pool( prefab: "Later", capacity: 6, grow: Additive(2) ),
])`, `prefab "Kart" is not defined; if it is to be the new name of "Cart"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newWorlds(t, registry.Config{})
			path := filepath.Join(t.TempDir(), "some.pools.ron")
			require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
			s.do(func(w *registry.Window) error { return s.Load(w, path) })
			var carts [3]handles.Local
			for i := range carts {
				carts[i] = s.spawn("Cart")
			}
			was := map[string]pool.Stats{}
			for id, st := range s.Stats() {
				was[id] = st
			}
			require.Len(t, was, 5)

			require.NoError(t, os.WriteFile(path, []byte(c.after), 0o600))
			for range 2 { // it stays impossible
				s.do(func(w *registry.Window) error {
					changed, err := s.Reload(w, path)
					require.ErrorIs(t, err, pool.ErrInUse)
					require.ErrorContains(t, err, c.want)
					require.False(t, changed)
					return nil
				})
				for id, st := range s.Stats() {
					require.Equal(t, was[id], st, "whole or not at all")
				}
			}
			for first := range 2 {
				s.do(func(w *registry.Window) error {
					changed, err := s.Reload(w, path, pool.Partly())
					require.ErrorIs(t, err, pool.ErrInUse)
					require.ErrorContains(t, err, c.want)
					require.Equal(t, first == 0, changed)
					return nil
				})
				require.Equal(t, was["Cart"], s.stats("Cart"))
				require.Equal(t, 64, s.stats("Wheel").Cap)
				require.Equal(t, 5, s.stats("Glint").Cap)
				require.Equal(t, 5, s.stats("Glint").Built)
				require.Equal(t, pool.Additive(2), s.stats("Later").Grow)
				_, there := s.StatsOf("Spare")
				require.Equal(t, c.gone == "Spare", there)
				_, there = s.StatsOf("Kart")
				require.False(t, there)
			}
			// Once there are less, it is possible, with the same file.
			for _, h := range carts {
				s.do(func(w *registry.Window) error { return s.GiveBack(w, h) })
			}
			s.settle()
			s.do(func(w *registry.Window) error {
				changed, err := s.Reload(w, path)
				require.NoError(t, err)
				require.True(t, changed)
				changed, err = s.Reload(w, path)
				require.NoError(t, err)
				require.False(t, changed)
				return nil
			})
		})
	}
}
