package defrag_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

type (
	self  struct{ H handles.Local }
	spot  struct{ X, Y float32 }
	label struct{ Text string }
	mark  struct{}

	// Three kinds with different chunk sizes and columns.
	stone struct {
		Self self
		Spot spot
	}
	tree struct {
		Self  self
		Label label
	}
	cloud struct{ Self self }
)

// being is what the model knows of an entity.
type being struct {
	kind     int
	number   int
	inactive bool
	marked   bool
}

// world is a registry beside plain maps, and an external array that follows it by notices alone.
type world struct {
	r       *registry.Registry
	stones  *registry.Class[stone]
	trees   *registry.Class[tree]
	clouds  *registry.Class[cloud]
	model   map[handles.Local]being
	order   []handles.Local
	dead    []handles.Local // not reclaimed
	next    int
	bodies  []handles.Local          // by cache index, moved in place
	places  map[handles.Local]uint32 // fed by notices, beside spawns and deaths
	notices int
}

func newWorld(t require.TestingT, temporal int) *world {
	r, err := registry.New(registry.Config{TemporalFrames: temporal})
	require.NoError(t, err)
	x := &world{r: r, model: map[handles.Local]being{}, places: map[handles.Local]uint32{}}
	_, err = registry.RegisterComponent[spot](r, registry.Split(), registry.InTier(archetype.Temporal))
	require.NoError(t, err)
	_, err = registry.RegisterComponent[mark](r)
	require.NoError(t, err)
	x.stones, err = registry.RegisterClass[stone](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	x.trees, err = registry.RegisterClass[tree](r, registry.SlotsPerChunk(128))
	require.NoError(t, err)
	x.clouds, err = registry.RegisterClass[cloud](r)
	require.NoError(t, err)
	_, err = r.OnMove(x.follow)
	require.NoError(t, err)
	x.window(t, func(*registry.Window) {})
	return x
}

func (x *world) window(t require.TestingT, fn func(*registry.Window)) {
	require.NoError(t, x.r.Update(func(w *registry.Window) error { fn(w); return nil }))
}

// follow moves the array in place, and must find each place that it moves to empty.
func (x *world) follow(ms []registry.Move) {
	for _, m := range ms {
		x.notices++
		x.grow(max(m.Old, m.New))
		if x.bodies[m.Old] != m.Entity || x.bodies[m.New] != 0 || x.places[m.Entity] != m.Old {
			panic(fmt.Sprintf("%v from %d to %d, but there are %v and %v", m.Entity, m.Old, m.New, x.bodies[m.Old], x.bodies[m.New]))
		}
		x.bodies[m.New], x.bodies[m.Old] = m.Entity, 0
		x.places[m.Entity] = m.New
	}
}

func (x *world) grow(place uint32) {
	for int(place) >= len(x.bodies) {
		x.bodies = append(x.bodies, 0)
	}
}

// spawn makes n entities of a kind.
func (x *world) spawn(t require.TestingT, kind, n int) {
	x.window(t, func(w *registry.Window) {
		for range n {
			var h handles.Local
			var err error
			switch kind {
			case 0:
				h, err = x.stones.Spawn(w, stone{Spot: spot{float32(x.next), -float32(x.next)}})
			case 1:
				h, err = x.trees.Spawn(w, tree{Label: label{fmt.Sprint(x.next)}})
			default:
				h, err = x.clouds.Spawn(w, cloud{})
			}
			require.NoError(t, err)
			require.NoError(t, registry.Set(w, h, self{h}))
			x.model[h] = being{kind: kind, number: x.next}
			x.order = append(x.order, h)
			x.next++
			at, ok := registry.CacheIndex(w, h)
			require.True(t, ok)
			x.grow(at)
			require.Zero(t, x.bodies[at], "the array is told of everybody who leaves")
			x.bodies[at], x.places[h] = h, at
		}
	})
}

func (x *world) destroy(t require.TestingT, hs []handles.Local, outside bool) {
	if outside {
		for _, h := range hs {
			require.NoError(t, x.r.Destroy(h))
		}
	} else {
		x.window(t, func(w *registry.Window) { require.Equal(t, len(hs), w.DestroyBatch(hs)) })
	}
	for _, h := range hs {
		delete(x.model, h)
	}
	x.order = slices.DeleteFunc(x.order, func(h handles.Local) bool { return slices.Contains(hs, h) })
	x.dead = append(x.dead, hs...)
}

// reclaim drops the bodies of the dead with them.
func (x *world) reclaim(t require.TestingT) {
	x.window(t, func(w *registry.Window) {
		w.ProcessDeferredDestructions()
		w.ConfirmLocalRecycles()
	})
	for _, h := range x.dead {
		x.bodies[x.places[h]] = 0
		delete(x.places, h)
	}
	x.dead = x.dead[:0]
}

func (x *world) run(t require.TestingT, d *defrag.Compactor) defrag.Report {
	var rep defrag.Report
	x.notices = 0
	dead := map[handles.Local]uint32{}
	for _, h := range x.dead {
		dead[h] = x.places[h]
	}
	x.window(t, func(w *registry.Window) {
		var err error
		rep, err = d.Run(w)
		require.NoError(t, err)
		require.Equal(t, rep.Moved, x.notices, "told before Run returns, once a move")
	})
	for h, place := range dead {
		require.Equal(t, place, x.places[h], "the dead stay put")
	}
	return rep
}

// agree compares everything.
func (x *world) agree(t require.TestingT) {
	require.NoError(t, x.r.Verify())
	x.window(t, func(w *registry.Window) {
		for h, b := range x.model {
			s, err := registry.Peek[self](w, h)
			require.NoError(t, err)
			require.Equal(t, h, s.H)
			switch b.kind {
			case 0:
				v, err := registry.Peek[spot](w, h)
				require.NoError(t, err)
				require.Equal(t, spot{float32(b.number), -float32(b.number)}, v)
			case 1:
				v, err := registry.Peek[label](w, h)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint(b.number), v.Text)
			}
			require.Equal(t, !b.inactive, registry.Active(w, h))
			require.Equal(t, b.marked, registry.Has[mark](w, h))
			at, ok := registry.CacheIndex(w, h)
			require.True(t, ok)
			require.Equal(t, at, x.places[h])
			require.Equal(t, h, x.bodies[at])
			require.Less(t, at, x.r.CacheCap())
		}
		require.Equal(t, len(x.model)+len(x.dead), len(x.places))
	})
	require.Equal(t, len(x.model), x.r.Stats().Live)
}

// pick draws some of the living, near each other as a rule.
func (x *world) pick(t *rapid.T) []handles.Local {
	if len(x.order) == 0 {
		t.Skip("nobody lives")
	}
	lo := rapid.IntRange(0, len(x.order)-1).Draw(t, "lo")
	step := rapid.SampledFrom([]int{1, 1, 2, 3, 10}).Draw(t, "step")
	n := rapid.SampledFrom([]int{1, 3, 64}).Draw(t, "n")
	var hs []handles.Local
	for i := lo; i < len(x.order) && len(hs) < n; i += step {
		hs = append(hs, x.order[i])
	}
	return hs
}

func TestCompactionAgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newWorld(t, rapid.SampledFrom([]int{0, 8}).Draw(t, "temporal"))
		t.Repeat(map[string]func(*rapid.T){
			"spawn": func(t *rapid.T) {
				x.spawn(t, rapid.IntRange(0, 2).Draw(t, "kind"), rapid.SampledFrom([]int{1, 20, 65, 130}).Draw(t, "n"))
			},
			"destroy": func(t *rapid.T) { x.destroy(t, x.pick(t), rapid.Bool().Draw(t, "outside")) },
			"reclaim": func(t *rapid.T) { x.reclaim(t) },
			"flip active": func(t *rapid.T) {
				hs := x.pick(t)
				x.window(t, func(w *registry.Window) {
					for _, h := range hs {
						b := x.model[h]
						b.inactive = !b.inactive
						x.model[h] = b
						require.NoError(t, registry.SetActive(w, h, !b.inactive))
					}
				})
			},
			"flip mark": func(t *rapid.T) {
				hs := x.pick(t)
				x.window(t, func(w *registry.Window) {
					for _, h := range hs {
						b := x.model[h]
						b.marked = !b.marked
						x.model[h] = b
						if b.marked {
							require.NoError(t, registry.Add(w, h, mark{}))
						} else {
							require.NoError(t, registry.Remove[mark](w, h))
						}
					}
				})
			},
			"run": func(t *rapid.T) {
				limit := rapid.SampledFrom([]int{0, 1, 7, 100, 1000}).Draw(t, "limit")
				d, err := defrag.New(x.r, defrag.Config{Moves: limit})
				require.NoError(t, err)
				rep := x.run(t, d)
				if limit != 0 {
					require.LessOrEqual(t, rep.Moved, limit)
				}
				require.GreaterOrEqual(t, rep.Bytes, int64(0))
			},
			"run beside the dead": func(t *rapid.T) { // who are in the way of those that fill the holes
				x.destroy(t, x.pick(t), false)
				x.reclaim(t)
				x.destroy(t, x.pick(t), rapid.Bool().Draw(t, "outside"))
				d, err := defrag.New(x.r, defrag.Config{})
				require.NoError(t, err)
				x.run(t, d)
			},
			"run to the end": func(t *rapid.T) {
				d, err := defrag.New(x.r, defrag.Config{})
				require.NoError(t, err)
				for range 100 {
					if x.run(t, d).Left == 0 {
						x.dense(t)
						return
					}
				}
				t.Fatal("there is no end to it")
			},
			"": func(t *rapid.T) { x.agree(t) },
		})
	})
}

// dense checks that nothing is left to do: if all the dead are reclaimed, every archetype that has had
// holes is one block of entities from its first slot on.
func (x *world) dense(t require.TestingT) {
	if len(x.dead) > 0 {
		return
	}
	for _, a := range x.r.Stats().Archetypes {
		require.Equal(t, a.Live, a.Allocated, a.Class)
	}
	d, err := defrag.New(x.r, defrag.Config{})
	require.NoError(t, err)
	rep := x.run(t, d)
	require.Zero(t, rep.Moved)
	require.Zero(t, rep.ChunksFreed)
}
