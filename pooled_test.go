package airlock_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
	"github.com/airlock-ecs/airlock/views"
)

type (
	fuel   struct{ Litres int64 }
	dented struct{}
	van    struct{ Fuel fuel }
	seat   struct{ Tag tag }

	age  struct{ Frames int64 }
	taxi struct {
		Age  age
		Fuel fuel
	}
	vanView struct{ Fuel *fuel }
	ages    struct {
		Age []age
		ID  []handles.Local
	}
	vans struct {
		Fuel []fuel
		ID   []handles.Local
	}
)

// TestAPooledEntityThatAQueryDestroysIsAsGoodAsNew has an engine run, in each kind of registry, a query, a part
// of a parallel loop, or a system destroy somebody, and a cursor look on.
func TestAPooledEntityThatAQueryDestroysIsAsGoodAsNew(t *testing.T) {
	for kind, cfg := range map[string]registry.Config{
		"plain":         {},
		"deterministic": {Deterministic: true},
		"ringed":        {TemporalFrames: 8},
	} {
		for _, way := range []string{"query", "parallel loop", "system"} {
			t.Run(kind+"/"+way, func(t *testing.T) {
				reg := must(registry.New(cfg))
				must(registry.RegisterComponent[fuel](reg, registry.InTier(archetype.Temporal)))
				must(registry.RegisterComponent[dented](reg, registry.InTier(archetype.Temporal)))
				cars, seats := must(registry.RegisterClass[van](reg)), must(registry.RegisterClass[seat](reg))
				prefabs := pool.NewPrefabs(reg)
				require.NoError(t, pool.Define(prefabs, "Van", cars, van{fuel{60}}, pool.Child("Seat"), pool.Child("Seat")))
				require.NoError(t, pool.Define(prefabs, "Seat", seats, seat{}, pool.Pooled()))
				all := must(views.NewQuery[vans](reg))
				engine := must(logic.New(reg, logic.Config{Workers: 2}))
				defer engine.Stop()
				var h handles.Local
				var net handles.Net
				destroy := false
				must(engine.AddSystem(logic.Physics, "destroy", func(f *logic.Frame) {
					if !destroy {
						return
					}
					switch destroy = false; way {
					case "parallel loop":
						all.Parallel(f, func(f *registry.Frame, part *vans) {
							for _, id := range part.ID {
								if err := f.Destroy(id); err != nil {
									t.Error(err)
								}
							}
						})
					case "system":
						require.NoError(t, f.Destroy(h))
					}
				}))
				do := func(fn func(w *registry.Window) error) {
					ticket := must(engine.Enqueue(fn))
					require.NoError(t, engine.Step())
					require.NoError(t, ticket.Err())
				}
				inUse := func() [2]int {
					v, _ := prefabs.StatsOf("Van")
					s, _ := prefabs.StatsOf("Seat")
					return [2]int{v.InUse, s.InUse}
				}

				do(func(w *registry.Window) (err error) {
					require.NoError(t, prefabs.Declare(w, "Van", 3, pool.Fixed(), true))
					h, err = prefabs.Spawn(w, "Van")
					require.NoError(t, err)
					require.NoError(t, registry.Set(w, h, fuel{1}))
					require.NoError(t, registry.Add(w, h, dented{}))
					net, err = w.AssignNet(h)
					return err
				})
				cursor := must(views.NewEntity[vanView](reg, h))
				require.Equal(t, [2]int{1, 2}, inUse())
				do(func(w *registry.Window) error {
					require.EqualValues(t, 1, must(cursor.Get(w)).Fuel.Litres)
					if way == "query" {
						require.Equal(t, 1, all.DestroyAll(w))
					} else {
						destroy = true
					}
					return nil
				})
				require.False(t, reg.Alive(h))
				do(func(w *registry.Window) error {
					require.Equal(t, [2]int{0, 0}, inUse(), "home by the next window")
					_, err := cursor.Get(w)
					require.ErrorIs(t, err, registry.ErrStale)
					_, err = reg.ResolveNet(net)
					require.Error(t, err)
					again, err := prefabs.Spawn(w, "Van")
					require.NoError(t, err)
					require.NotEqual(t, h, again)
					require.Equal(t, fuel{60}, must(registry.Peek[fuel](w, again)))
					require.False(t, registry.Has[dented](w, again))
					_, err = cursor.Get(w)
					require.ErrorIs(t, err, registry.ErrStale, "somebody else has its place")
					return nil
				})
				require.Equal(t, [2]int{1, 2}, inUse())
				require.NoError(t, reg.Verify())
			})
		}
	}
}

// rank is a world in which taxis come from pools that grow, in all the ways in which they can be spawned, and end.
type rank struct {
	reg     *registry.Registry
	prefabs *pool.Prefabs
	all     *views.Query[ages]
}

func newRank(t *testing.T) *rank {
	s := &rank{reg: must(registry.New(registry.Config{TemporalFrames: 16, Deterministic: true}))}
	must(registry.RegisterComponent[fuel](s.reg, registry.InTier(archetype.Temporal)))
	must(registry.RegisterComponent[age](s.reg, registry.InTier(archetype.Temporal)))
	must(registry.RegisterComponent[tag](s.reg, registry.InTier(archetype.Temporal)))
	taxis, seats := must(registry.RegisterClass[taxi](s.reg)), must(registry.RegisterClass[seat](s.reg))
	s.prefabs = pool.NewPrefabs(s.reg)
	require.NoError(t, pool.Define(s.prefabs, "Taxi", taxis, taxi{Fuel: fuel{60}}, pool.Child("Seat"), pool.Child("Seat")))
	require.NoError(t, pool.Define(s.prefabs, "Seat", seats, seat{}, pool.Pooled()))
	require.NoError(t, s.prefabs.Configure(pool.Declared{Prefab: "Taxi", Capacity: 1, Grow: pool.Additive(3)}))
	s.all = must(views.NewQuery[ages](s.reg))
	return s
}

func (s *rank) play(engine *logic.Engine) error {
	_, err := engine.AddSystem(logic.Physics, "drive", func(f *logic.Frame) {
		for r := range s.all.Runs(f) {
			for i := range r.Age {
				if r.Age[i].Frames++; r.Age[i].Frames > 4+int64(f.Rand().IntN(8)) {
					_ = f.Destroy(r.ID[i])
				}
			}
		}
		switch f.Rand().IntN(3) {
		case 0:
			_, _ = s.prefabs.SpawnNow(f.Frame, "Taxi") // now and then there is no idle slot
		case 1:
			f.Defer(func(w *registry.Window) error { _, err := s.prefabs.Spawn(w, "Taxi"); return err })
		}
	})
	return err
}

// run steps, and gives the hash of each frame. Callers from outside spawn and give back; back says whether frames are done again.
func (s *rank) run(t *testing.T, engine *logic.Engine, seed uint64, back bool) (hashes []uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	for frame := range 120 {
		again, frames := rng.IntN(4) == 0, uint64(rng.IntN(14))
		if rng.IntN(3) == 0 {
			must(engine.Enqueue(func(w *registry.Window) error {
				h, err := s.prefabs.Spawn(w, "Taxi")
				if err == nil && frame%3 == 0 {
					err = s.prefabs.GiveBack(w, h)
				}
				return err
			}))
		}
		if back && again && frame > 20 {
			require.NoError(t, engine.Rollback(engine.FrameNumber()-frames))
		}
		require.NoError(t, engine.Step())
		require.NoError(t, s.reg.Read(func(s *registry.Snapshot) error {
			hashes = append(hashes, must(snapshot.Hash(s)))
			return nil
		}))
		require.NoError(t, s.reg.Verify())
	}
	taxis, _ := s.prefabs.StatsOf("Taxi")
	require.Greater(t, taxis.Built, 4)
	return hashes
}

// TestPrefabsGrowTheSameWhenFramesAreDoneAgain compares a run without rollbacks to one with them, and to its replay.
func TestPrefabsGrowTheSameWhenFramesAreDoneAgain(t *testing.T) {
	for seed := range uint64(2) {
		dir := filepath.Join(t.TempDir(), "journal")
		plain, again := newRank(t), newRank(t)
		var failed error
		config := logic.Config{OnError: func(err error) { failed = err }}
		engine := must(logic.New(plain.reg, config))
		require.NoError(t, engine.Journal(dir))
		require.NoError(t, plain.play(engine))
		want := plain.run(t, engine, seed, false)
		require.NoError(t, engine.Stop())

		engine = must(logic.New(again.reg, config))
		require.NoError(t, again.play(engine))
		require.Equal(t, want, again.run(t, engine, seed, true), "seed %d", seed)
		require.NoError(t, engine.Stop())

		replayed := newRank(t)
		frame, err := logic.Replay(replayed.reg, os.DirFS(dir), logic.WithSystems(replayed.play))
		require.NoError(t, err)
		require.EqualValues(t, len(want), frame)
		require.NoError(t, failed)
	}
}
