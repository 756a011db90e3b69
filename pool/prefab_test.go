package pool_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

func TestPrefabPoolsGrowAsDeclared(t *testing.T) {
	for _, g := range []pool.Grow{pool.Fixed(), pool.Additive(1), pool.Additive(16), pool.Double()} {
		for _, capacity := range []int{0, 1, 3} {
			for _, most := range []int{0, 1, 5, 40} {
				if most > 0 && most < capacity {
					continue
				}
				for _, warm := range []bool{false, true} {
					t.Run(fmt.Sprintf("%v of %d up to %d, %v", g, capacity, most, warm), func(t *testing.T) {
						s := newWorlds(t, registry.Config{})
						s.do(func(w *registry.Window) error {
							return s.Apply(w, pool.Declared{Prefab: "Wheel", Capacity: capacity, Max: most, Grow: g, Prewarm: warm})
						})
						want := pool.Stats{Cap: capacity, Free: capacity, Grow: g, Max: most, Warm: warm}
						if warm {
							want.Built = capacity
						}
						require.Equal(t, want, s.stats("Wheel"))
						for range 60 {
							if want.InUse == want.Cap {
								if next := g.Next(want.Cap, most); next > want.Cap {
									want.Grown++
									want.Cap = next
								}
							}
							s.do(func(w *registry.Window) error {
								if _, err := s.Spawn(w, "Wheel"); want.InUse == want.Cap {
									require.ErrorIs(t, err, pool.ErrExhausted)
									want.Refused++
								} else {
									require.NoError(t, err)
									want.InUse++
								}
								return nil
							})
							want.Free, want.Peak = want.Cap-want.InUse, want.InUse
							if want.Built = want.Cap; want.InUse == 0 && !warm {
								want.Built = 0
							}
							require.Equal(t, want, s.stats("Wheel"))
						}
					})
				}
			}
		}
	}
}

func TestAPoolIsDeclaredAheadOfItsPrefab(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	s.declare("Lamp", 3, pool.Fixed(), true)
	s.declare("Arrow", 2, pool.Double(), false)
	require.Equal(t, pool.Stats{Cap: 3, Free: 3, Grow: pool.Fixed(), Warm: true}, s.stats("Lamp"))
	s.do(func(w *registry.Window) error {
		_, err := s.Spawn(w, "Lamp")
		require.ErrorIs(t, err, registry.ErrNotRegistered)
		return nil
	})
	require.NoError(t, pool.Define(s.Prefabs, "Lamp", s.glints, glint{}))
	s.spawn("Lamp")
	require.Equal(t, pool.Stats{Cap: 3, InUse: 1, Free: 2, Peak: 1, Built: 3, Grow: pool.Fixed(), Warm: true}, s.stats("Lamp"))

	var ids []string
	for id := range s.Stats() {
		ids = append(ids, id)
	}
	require.Equal(t, []string{"Arrow", "Lamp"}, ids)
	for range s.Stats() {
		break
	}
	_, there := s.StatsOf("Glint")
	require.False(t, there)
	_, there = s.StatsOf("nothing")
	require.False(t, there)
}

func TestAPoolByDefaultComesWithTheFirstSpawn(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	require.NoError(t, pool.Define(s.Prefabs, "Lamp", s.glints, glint{}, pool.Pooled()))
	require.Empty(t, s.inUse())
	for range 17 {
		s.spawn("Lamp")
	}
	require.Equal(t, pool.Stats{Cap: 32, InUse: 17, Free: 15, Peak: 17, Built: 32, Grown: 1, Grow: pool.Double()}, s.stats("Lamp"))
	s.spawn("Glint")
	require.Equal(t, map[string]int{"Lamp": 17}, s.inUse(), "the other one has none")

	// Another one's declarations for the same registry: the blocks are found by their name.
	other := pool.NewPrefabs(s.reg)
	require.NoError(t, pool.Define(other, "Lamp", s.glints, glint{}))
	s.do(func(w *registry.Window) error { _, err := other.Spawn(w, "Lamp"); return err })
	st, _ := other.StatsOf("Lamp")
	require.Equal(t, 18, st.InUse)
	require.Equal(t, 18, s.stats("Lamp").InUse)

	// But not those of another class.
	require.NoError(t, pool.Define(s.Prefabs, "Sign", s.wheels, wheel{}))
	s.do(func(w *registry.Window) error {
		_, err := registry.NewBlock(w, s.carts, "Sign", 3, nil)
		require.NoError(t, err)
		h := sure(s.Spawn(w, "Sign"))
		require.False(t, registry.Has[freight](w, h))
		require.Len(t, pool.EntitiesOf(w, s.wheels), 0)
		return s.Declare(w, "Sign", 4, pool.Fixed(), true)
	})
	require.Equal(t, 4, s.stats("Sign").Built)
}

func TestASmallerPoolHasFewerInUse(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	s.declare("Wheel", 8, pool.Fixed(), true)
	var hs []handles.Local
	for range 3 {
		hs = append(hs, s.spawn("Wheel"))
	}
	s.do(func(w *registry.Window) error {
		err := s.Declare(w, "Wheel", 2, pool.Fixed(), true)
		require.ErrorIs(t, err, pool.ErrInUse)
		require.ErrorContains(t, err, `prefab "Wheel": 2 are too few, for there are 3`)
		return nil
	})
	require.Equal(t, 8, s.stats("Wheel").Cap)
	s.declare("Wheel", 4, pool.Fixed(), true)
	require.Equal(t, pool.Stats{Cap: 4, InUse: 3, Free: 1, Peak: 3, Built: 8, Grow: pool.Fixed(), Warm: true}, s.stats("Wheel"))
	s.spawn("Wheel")
	s.do(func(w *registry.Window) error {
		_, err := s.Spawn(w, "Wheel")
		require.ErrorIs(t, err, pool.ErrExhausted)
		return nil
	})
	s.declare("Wheel", 4, pool.Additive(3), true)
	s.spawn("Wheel")
	require.Equal(t, pool.Stats{Cap: 7, InUse: 5, Free: 2, Peak: 5, Built: 8, Refused: 1, Grown: 1, Grow: pool.Additive(3), Warm: true}, s.stats("Wheel"), "into what was there")
	for range 3 {
		s.spawn("Wheel")
	}
	require.Equal(t, 8, s.stats("Wheel").Cap, "of all that was there")
	s.declare("Wheel", 5, pool.Double(), false)
	require.Equal(t, 8, s.stats("Wheel").Cap, "one above the last declaration never makes it smaller")
	s.do(func(w *registry.Window) error { return s.GiveBack(w, hs[0]) })
	s.do(func(w *registry.Window) error {
		return s.Apply(w, pool.Declared{Prefab: "Wheel", Capacity: 5, Max: 7, Grow: pool.Double()})
	})
	require.Equal(t, 7, s.stats("Wheel").Cap)
	s.do(func(w *registry.Window) error {
		_, err := s.Spawn(w, "Wheel")
		require.ErrorIs(t, err, pool.ErrExhausted)
		return nil
	})
	s.declare("Wheel", 12, pool.Fixed(), true)
	require.Equal(t, 12, s.stats("Wheel").Built)
}

func TestWhatCameFromElsewhereIsNoneOfADeclarationsBusiness(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	s.do(func(w *registry.Window) error { // as if a world had been loaded
		b, err := registry.NewBlock(w, s.wheels, "Wheel", 9, &wheel{})
		require.NoError(t, err)
		for range 8 {
			sure(registry.SpawnIn(w, s.wheels, b, nil))
		}
		declared := pool.Declared{Prefab: "Wheel", Capacity: 3, Max: 5, Grow: pool.Additive(1)}
		require.NoError(t, s.Apply(w, declared))
		require.Equal(t, pool.Stats{Cap: 8, InUse: 8, Peak: 8, Built: 9, Max: 8, Grow: pool.Additive(1)}, s.stats("Wheel"))
		require.NoError(t, s.Apply(w, declared))
		_, err = s.Spawn(w, "Wheel")
		require.ErrorIs(t, err, pool.ErrExhausted)
		declared.Capacity = 2
		require.ErrorIs(t, s.Apply(w, declared), pool.ErrInUse)
		return nil
	})
}

func TestAPoolTakesTheRoomThereIs(t *testing.T) {
	s := newWorlds(t, registry.Config{MaxEntities: 21})
	s.declare("Wheel", 16, pool.Double(), true)
	for range 16 {
		s.spawn("Wheel")
	}
	for range 5 { // 16 more do not fit
		s.spawn("Wheel")
	}
	require.Equal(t, 21, s.stats("Wheel").Built)
	s.do(func(w *registry.Window) error {
		_, err := s.Spawn(w, "Wheel")
		require.ErrorIs(t, err, pool.ErrExhausted)
		require.ErrorIs(t, s.Declare(w, "Lamp", 4, pool.Fixed(), true), nil, "nothing is made of it yet")
		require.ErrorIs(t, s.Declare(w, "Cart", 1, pool.Fixed(), true), pool.ErrExhausted)
		return nil
	})
	require.Equal(t, 1, s.stats("Wheel").Refused)
	_, there := s.StatsOf("Cart")
	require.False(t, there)
}

func TestWhatCannotBeDeclaredChangesNothing(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	s.declare("Wheel", 8, pool.Fixed(), false)
	for want, bad := range map[string][]pool.Declared{
		"without the id":                    {{Capacity: 1}},
		"and are -1 and 0":                  {{Prefab: "Wheel", Capacity: -1}},
		"and are 16777217 and 0":            {{Prefab: "Wheel", Capacity: 1<<24 + 1}},
		"and are 0 and -1":                  {{Prefab: "Wheel", Max: -1}},
		"the max of 3 is below":             {{Prefab: "Wheel", Capacity: 4, Max: 3}},
		`"Wheel": pool: grow Additive(0)`:   {{Prefab: "Wheel", Grow: pool.Additive(0)}},
		`"Cart": pool: grow Additive(-1)`:   {{Prefab: "Wheel", Capacity: 1}, {Prefab: "Cart", Grow: pool.Additive(-1)}},
		`prefab "Wheel" is declared twice`:  {{Prefab: "Wheel", Capacity: 9}, {Prefab: "Wheel", Capacity: 9}},
		"a declaration without the id of a": {{Prefab: "Wheel", Capacity: 4, Max: 3}, {Capacity: 1}},
	} {
		s.do(func(w *registry.Window) error {
			require.ErrorContains(t, s.Apply(w, bad...), want)
			return nil
		})
		require.ErrorContains(t, s.Configure(bad...), want)
		require.Equal(t, pool.Stats{Cap: 8, Free: 8, Grow: pool.Fixed()}, s.stats("Wheel"))
	}
	require.NoError(t, s.Configure(pool.Declared{Prefab: "Wheel", Capacity: 9, Prewarm: true}))
	require.Zero(t, s.stats("Wheel").Built)
	s.spawn("Wheel")
	require.Equal(t, 9, s.stats("Wheel").Built)
}

func TestAPrefabNeedsAnIdAndAClass(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	require.ErrorContains(t, pool.Define(s.Prefabs, "", s.glints, glint{}), "needs an id")
	require.ErrorContains(t, pool.Define(s.Prefabs, "Lamp", s.glints, glint{}, pool.Child("")), "a child without an id")
	require.ErrorIs(t, pool.Define(s.Prefabs, "Lamp", (*registry.Class[glint])(nil), glint{}), registry.ErrNotRegistered)
	for i := range 17 { // 2^17 of them
		below := fmt.Sprint("doubled ", i-1)
		if i == 0 {
			below = "Glint"
		}
		require.NoError(t, pool.Define(s.Prefabs, fmt.Sprint("doubled ", i), s.glints, glint{}, pool.Child(below), pool.Child(below)))
	}
	s.do(func(w *registry.Window) error {
		_, err := s.Spawn(w, "doubled 16")
		require.ErrorContains(t, err, "has more than 65536 entities")
		return nil
	})
	require.Zero(t, s.reg.Stats().Live)
}

func TestOnlyWhatIsOfAPrefabIsGivenBack(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	type other struct{ Place site }
	others, err := registry.RegisterClass[other](s.reg)
	require.NoError(t, err)
	s.declare("Wheel", 2, pool.Fixed(), true)
	s.do(func(w *registry.Window) error {
		plain := sure(s.Spawn(w, "Glint"))
		pooled, moved := sure(s.Spawn(w, "Wheel")), sure(s.Spawn(w, "Wheel"))
		require.NoError(t, registry.Add(w, moved, soaked{}))
		mine := sure(pool.NewEntities(w, s.wheels, 2))
		theirs, _ := mine.Spawn(w, wheel{})
		away, _ := mine.Spawn(w, wheel{})
		require.NoError(t, registry.Add(w, away, soaked{}))
		for _, h := range []handles.Local{0, sure(others.Spawn(w, other{})), theirs, away, handles.NewLocal(900, 1)} {
			require.ErrorIs(t, s.GiveBack(w, h), registry.ErrInvalidHandle, "%v", h)
		}
		require.ErrorIs(t, s.GiveBack(w, sure(s.reg.Reserve())), registry.ErrNotSpawned)
		for _, h := range []handles.Local{plain, pooled, moved} {
			require.NoError(t, s.GiveBack(w, h))
			require.ErrorIs(t, s.GiveBack(w, h), registry.ErrStale)
		}
		require.ErrorIs(t, s.GiveBack(w, pool.EntitiesOf(w, s.wheels)[0].Slot(1)), pool.ErrIdle)
		require.Zero(t, s.stats("Wheel").InUse)
		return nil
	})
}

func TestPrefabsWantAnOpenWindowOfTheirOwn(t *testing.T) {
	s, other := newWorlds(t, registry.Config{}), newWorlds(t, registry.Config{})
	var kept *registry.Window
	s.do(func(w *registry.Window) error { kept = w; return nil })
	calls := func(w *registry.Window) (errs []error) {
		_, err1 := s.Spawn(w, "Cart")
		_, err2 := s.Reload(w, "nowhere")
		return []error{err1, err2, s.Declare(w, "Cart", 1, pool.Double(), true), s.Apply(w), s.Load(w, "nowhere"), s.GiveBack(w, 1)}
	}
	for _, w := range []*registry.Window{kept, nil} {
		for _, err := range calls(w) {
			require.ErrorIs(t, err, registry.ErrExpired)
		}
	}
	_, err := s.SpawnNow(nil, "Cart")
	require.ErrorIs(t, err, registry.ErrExpired)
	other.do(func(w *registry.Window) error {
		for _, err := range calls(w) {
			require.ErrorContains(t, err, "another registry")
		}
		return nil
	})
}

// inFrame runs fn in a frame, which every Update with something to tell has, once.
func (s *worlds) inFrame(fn func(f *registry.Frame)) {
	s.t.Helper()
	var once sync.Once
	o, err := s.reg.Observe(registry.Destroyed, func(f *registry.Frame, _ []registry.Event) { once.Do(func() { fn(f) }) })
	require.NoError(s.t, err)
	s.do(func(w *registry.Window) error {
		return w.Destroy(sure(s.glints.Spawn(w, glint{})))
	})
	require.NoError(s.t, o.Remove())
}

func TestASystemSpawnsFromIdleSlots(t *testing.T) {
	for kind, cfg := range everyRegistry {
		t.Run(kind, func(t *testing.T) {
			s := newWorlds(t, cfg)
			s.declare("Cart", 2, pool.Double(), true)
			s.declare("Wheel", 5, pool.Double(), true)
			var hs []handles.Local
			now := func(f *registry.Frame) {
				h, err := s.SpawnNow(f, "Cart")
				require.NoError(t, err)
				require.True(t, registry.Active(f, h))
				require.Equal(t, site{1, 2}, sure(registry.Peek[site](f, h)))
				hs = append(hs, h)
			}
			s.inFrame(func(f *registry.Frame) {
				now(f)
				now(f)
				require.NoError(t, f.Destroy(hs[0]))
				_, err := s.SpawnNow(f, "Cart")
				require.ErrorIs(t, err, pool.ErrExhausted, "it grows in windows only")
				_, err = s.SpawnNow(f, "Glint")
				require.ErrorIs(t, err, pool.ErrExhausted, "it has no pool")
				_, err = s.SpawnNow(f, "Lamp")
				require.ErrorIs(t, err, registry.ErrNotRegistered)
			})
			require.Equal(t, map[string]int{"Cart": 2, "Wheel": 4}, s.inUse(), "until the next frame they are")
			require.Equal(t, 1, s.stats("Cart").Refused)
			s.settle() // the window in which those below are put there
			s.settle()
			require.Equal(t, map[string]int{"Cart": 1, "Wheel": 2}, s.inUse(), "the wheels of the first died with it")
			require.NoError(t, s.reg.Destroy(hs[1]))
			s.settle()
			require.Equal(t, map[string]int{"Cart": 0, "Wheel": 0}, s.inUse())

			s.declare("Wheel", 1, pool.Fixed(), true) // what was declared does not count here
			s.inFrame(now)
			require.Equal(t, 2, s.stats("Wheel").Cap)
			s.inFrame(func(f *registry.Frame) {
				registry.Fork(f, forked(func(f *registry.Frame) {
					_, err := s.SpawnNow(f, "Cart")
					require.ErrorIs(t, err, registry.ErrParallel)
				}), 2, true)
			})
			require.Equal(t, 1, s.stats("Cart").InUse)
		})
	}
}

// forked is a task all of whose parts do the same.
type forked func(f *registry.Frame)

func (p forked) Part(f *registry.Frame, _, _ int) { p(f) }

func TestAPoolIsMadeReadyForFrames(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	s.declare("Cart", 2, pool.Additive(3), false)
	s.declare("Wheel", 4, pool.Fixed(), false)
	s.do(func(w *registry.Window) error {
		require.ErrorIs(t, s.Ready(w, "Lamp", 1), registry.ErrNotRegistered)
		require.ErrorIs(t, s.Ready(w, "Glint", 1), pool.ErrExhausted)
		require.ErrorIs(t, s.Ready(w, "Wheel", 5), pool.ErrExhausted)
		require.NoError(t, s.Ready(w, "Wheel", 4))
		require.NoError(t, s.Ready(w, "Cart", 0))
		require.Zero(t, s.stats("Cart").Built)
		require.NoError(t, s.Ready(w, "Cart", 3))
		sure(s.Spawn(w, "Cart"))
		require.NoError(t, s.Ready(w, "Cart", 4))
		return nil
	})
	require.Equal(t, pool.Stats{Cap: 5, InUse: 1, Free: 4, Peak: 1, Built: 5, Grown: 1, Grow: pool.Additive(3)}, s.stats("Cart"))
	require.Zero(t, s.stats("Wheel").Refused)
}

func TestPrefabsSpawnAndGiveBackWithoutAllocating(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	require.NoError(t, pool.Define(s.Prefabs, "Axle", s.glints, glint{}, pool.Child("Wheel"), pool.Child("Wheel")))
	s.declare("Axle", 8, pool.Fixed(), true)
	s.declare("Wheel", 16, pool.Fixed(), true)
	s.do(func(w *registry.Window) error {
		again := func() {
			h, err := s.Spawn(w, "Axle")
			if err != nil || s.GiveBack(w, h) != nil {
				t.Error(err)
			}
			w.ProcessDeferredDestructions()
		}
		for range 20 {
			again()
		}
		require.Zero(t, testing.AllocsPerRun(100, again))
		return nil
	})
}

func TestPoolFilesThatCannotBeRead(t *testing.T) {
	s := newWorlds(t, registry.Config{MaxEntities: 1000})
	dir := t.TempDir()
	file := func(name, src string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(src), 0o600))
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for path, want := range map[string]string{
		filepath.Join(dir, "nowhere"): "there is no file " + filepath.Join(dir, "nowhere"),
		dir:                           "is a directory",
		pipe:                          "no regular file",
		file("empty", ""):             "empty:1:1: ",
		file("long", strings.Repeat(" ", 2*pool.MaxFileBytes)): "long:",
		file("below", "") + "/x":                               "not a directory",
		file("cut", "Pools([\n Pool( prefab: \"Cart\" ),"):     "cut:2:",
		file("large", "Pools([ Pool( prefab: \"Cart\", capacity: 200000, prewarm: true ), Pool( prefab: \"Wheel\" ) ])"): "pre-warming",
	} {
		s.do(func(w *registry.Window) error {
			require.ErrorContains(t, s.Load(w, path), want)
			require.Empty(t, s.inUse())
			_, err := s.Reload(w, path)
			if filepath.Base(path) != "large" && filepath.Dir(path) == dir && strings.Contains(want, ":") {
				require.NoError(t, err, "it was told")
			} else {
				require.ErrorContains(t, err, want)
			}
			require.Empty(t, s.inUse())
			return nil
		})
	}
	// What others declare stays, in Load; what this file did not declare before, in Reload.
	path := file("good", "Pools([ Pool( prefab: \"Cart\" ), Pool( prefab: \"Lamp\" ) ])")
	s.declare("Wheel", 2, pool.Fixed(), false)
	s.do(func(w *registry.Window) error { return s.Load(w, path) })
	require.Len(t, s.inUse(), 3)
	file("good", "Pools([ Pool( prefab: \"Cart\" ) ])")
	s.do(func(w *registry.Window) error { return s.Load(w, path) })
	require.Len(t, s.inUse(), 3)
	file("good", "Pools([])")
	s.do(func(w *registry.Window) error {
		changed, err := s.Reload(w, path)
		require.True(t, changed)
		return err
	})
	require.Equal(t, map[string]int{"Lamp": 0, "Wheel": 0}, s.inUse(), "the second version did not have the Lamp")
	s.spawn("Cart")
	require.NotContains(t, s.inUse(), "Cart", "it is spawned plainly again")
}

func TestAPoolThatIsNotDeclaredAnyMoreKeepsItsSlots(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	path := filepath.Join(t.TempDir(), "some.pools.ron")
	require.NoError(t, os.WriteFile(path, []byte(`Pools([ Pool( prefab: "Wheel", capacity: 40, grow: Fixed, prewarm: true ) ])`), 0o600))
	s.do(func(w *registry.Window) error { return s.Load(w, path) })
	require.NoError(t, os.WriteFile(path, []byte(`Pools([])`), 0o600))
	s.do(func(w *registry.Window) error { _, err := s.Reload(w, path); return err })
	require.Equal(t, pool.Stats{Cap: 40, Free: 40, Built: 40, Grow: pool.Double()}, s.stats("Wheel"), "with the settings by default")
	s.spawn("Wheel")
	require.Equal(t, 1, s.stats("Wheel").InUse)
}

// TestPrefabCountersUnderFire has others destroy and look while a window after the other spawns.
func TestPrefabCountersUnderFire(t *testing.T) {
	s := newWorlds(t, registry.Config{})
	s.declare("Wheel", 2, pool.Additive(3), false)
	s.declare("Cart", 4, pool.Fixed(), true)
	spawned := make(chan handles.Local, 1000)
	var stop atomic.Bool
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for h := range spawned {
				err := s.reg.Destroy(h)
				assert.True(t, err == nil || errors.Is(err, registry.ErrStale))
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for !stop.Load() {
				for id, st := range s.Stats() {
					if st.InUse+st.Free != st.Cap || st.InUse < 0 || st.Free < 0 || st.InUse > st.Peak || id == "Cart" && st.Cap != 4 {
						t.Errorf("%s: %+v", id, st)
						return
					}
				}
			}
		})
	}
	for i := range 400 {
		var born []handles.Local
		s.settle()
		err := s.reg.Update(func(w *registry.Window) error {
			for _, id := range []string{"Cart", "Wheel", "Cart"} {
				h, err := s.Spawn(w, id)
				if err == nil {
					born = append(born, h)
				} else if !errors.Is(err, pool.ErrExhausted) {
					return err
				}
			}
			if i%7 == 0 && len(born) > 0 {
				if err := s.GiveBack(w, born[0]); err != nil {
					return err
				}
				return errFailed
			}
			return nil
		})
		if !errors.Is(err, errFailed) {
			require.NoError(t, err)
			for _, h := range born {
				spawned <- h
			}
		}
	}
	close(spawned)
	stop.Store(true)
	all.Wait()
	s.settle()
	s.settle()
	require.Equal(t, map[string]int{"Cart": 0, "Wheel": 0}, s.inUse())
}

var errFailed = errors.New("failed")

// TestReadyRefusesMoreThanThereCanBe at once, also what is no number any more when those in use are added.
func TestReadyRefusesMoreThanThereCanBe(t *testing.T) {
	s := newWorlds(t, registry.Config{MaxEntities: 4096})
	s.declare("Wheel", 4, pool.Additive(1), false)
	s.spawn("Wheel")
	s.do(func(w *registry.Window) error {
		for _, n := range []int{4096, 4097, math.MaxInt - 1, math.MaxInt} {
			require.ErrorIs(t, s.Ready(w, "Wheel", n), pool.ErrExhausted, "%d", n)
		}
		require.NoError(t, s.Ready(w, "Wheel", 1000))
		return nil
	})
	stats, _ := s.StatsOf("Wheel")
	require.Equal(t, 1001, stats.Cap)
	require.Zero(t, stats.Refused)
}
