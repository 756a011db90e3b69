package archetype_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// rebuilt is a store with the archetypes of another one, in their order.
func rebuilt(t require.TestingT, s *archetype.Store, frames int) *archetype.Store {
	again := archetype.NewStore(s.Schema(), frames)
	for i, st := range s.States() {
		a := s.Archetypes()[i]
		slots := a.Layout().Slots()
		if slots == archetype.DefaultSlots {
			slots = 0
		}
		require.NoError(t, st.Check(slots))
		b := again.Archetype(a.Class(), a.Signature(), a.ClassName(), slots)
		b.Rebuild(st)
		for c, ch := range a.Chunks() {
			copy(b.Chunks()[c].Entities(), ch.Entities())
		}
	}
	require.NoError(t, again.Verify())
	return again
}

func TestARebuiltStoreHandsOutTheSameSlots(t *testing.T) {
	type position struct{ X, Y float64 }
	type label struct{ Text string }
	rapid.Check(t, func(t *rapid.T) {
		schema := archetype.NewSchema()
		pos, err := schema.Register(reflect.TypeFor[position](), archetype.Options{Tier: archetype.Volatile})
		require.NoError(t, err)
		lab, err := schema.Register(reflect.TypeFor[label](), archetype.Options{})
		require.NoError(t, err)
		frames := rapid.SampledFrom([]int{0, 8}).Draw(t, "frames")
		s := archetype.NewStore(schema, frames)
		for class, slots := range []int{64, 128, 0} {
			s.Archetype(class, archetype.Signature{}.With(pos.ID).With(lab.ID), "class", slots)
			s.Archetype(class, archetype.Signature{}.With(pos.ID), "class", slots)
		}
		type taken struct {
			arch  int
			place uint32
		}
		var all []taken
		next := uint64(1)
		step := func(s *archetype.Store, arch, kind, n int, all []taken) (after []taken, told []taken) {
			a := s.Archetypes()[arch]
			switch kind {
			case 0, 1:
				for n > 0 {
					c, slot, k, _ := a.TakeRun(n)
					for i := range k {
						c.Entities()[slot+i] = handles.Local(next)
						if i%3 == 0 {
							c.SetBit(slot + i)
						}
						told = append(told, taken{arch, c.Base() + slot + i})
					}
					n -= int(k)
				}
				return append(slices.Clone(all), told...), told
			case 2:
				after = slices.Clone(all)
				for ; n > 0 && len(after) > 0; n-- {
					i := n * 7919 % len(after)
					c := s.ChunkAt(after[i].place)
					c.Archetype().Reclaim(c, after[i].place-c.Base())
					after = slices.Delete(after, i, i+1)
				}
				return after, nil
			default:
				return all, []taken{{s.ReleaseEmptied(), 0}}
			}
		}
		draw := func() (arch, kind, n int) {
			return rapid.IntRange(0, 5).Draw(t, "arch"), rapid.IntRange(0, 3).Draw(t, "kind"), rapid.IntRange(1, 600).Draw(t, "n")
		}
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			arch, kind, n := draw()
			all, _ = step(s, arch, kind, n, all)
		}
		again := rebuilt(t, s, frames)
		others := all
		for range rapid.IntRange(0, 20).Draw(t, "after") {
			arch, kind, n := draw()
			var told, others2 []taken
			all, told = step(s, arch, kind, n, all)
			others, others2 = step(again, arch, kind, n, others)
			require.Equal(t, told, others2)
			require.NoError(t, again.Verify())
			require.Equal(t, s.CacheCap(), again.CacheCap())
		}
		require.Equal(t, s.States(), again.States())
	})
}

func TestImpossibleStatesOfChunks(t *testing.T) {
	good := func() archetype.State {
		full := archetype.ChunkState{Slots: 128, Allocated: 128, Holes: make([]uint64, 2), Active: make([]uint64, 2)}
		last := archetype.ChunkState{Base: 128, Slots: 128, Allocated: 100, Holes: []uint64{1, 1 << 35}, Active: []uint64{2, 1}}
		return archetype.State{Chunks: []archetype.ChunkState{full, last}}
	}
	st := good()
	require.NoError(t, st.Check(128))
	require.Error(t, st.Check(64), "another size")
	require.Error(t, st.Check(0), "another size")
	for name, harm := range map[string]func(s *archetype.State){
		"a large first one": func(s *archetype.State) { *s = archetype.State{LargeFirst: true} },
		"a hole too high":   func(s *archetype.State) { s.Chunks[1].Holes[1] = 1 << 36 },
		"an active hole":    func(s *archetype.State) { s.Chunks[1].Active[0] = 1 },
		"active beyond":     func(s *archetype.State) { s.Chunks[1].Active[1] = 1 << 63 },
		"not full":          func(s *archetype.State) { s.Chunks[0].Allocated = 127 },
		"never used":        func(s *archetype.State) { s.Chunks[1].Allocated = 0 },
		"overfull":          func(s *archetype.State) { s.Chunks[1].Allocated = 129 },
		"odd base":          func(s *archetype.State) { s.Chunks[1].Base = 129 },
		"no such base":      func(s *archetype.State) { s.Chunks[1].Base = math.MaxUint32 &^ 63 },
		"other holes":       func(s *archetype.State) { s.Chunks[1].Holes = make([]uint64, 1) },
		"other planes":      func(s *archetype.State) { s.Chunks[1].Active = nil },
		"the first goes":    func(s *archetype.State) { s.Chunks[0].Emptied = archetype.EmptiedNow },
		"goes how?":         func(s *archetype.State) { s.Chunks[1].Emptied = archetype.EmptiedLater + 1 },
	} {
		s := good()
		harm(&s)
		require.Error(t, s.Check(128), name)
	}
	other := good()
	require.Error(t, archetype.CheckApart([]*archetype.State{&st, &other}))
	other.Chunks[0].Base, other.Chunks[1].Base = 256, 384
	require.NoError(t, archetype.CheckApart([]*archetype.State{&st, &other}))
	other.Chunks[0].Base = 192
	require.Error(t, archetype.CheckApart([]*archetype.State{&st, &other}))
}

func TestComponentsAreLoadedAndStoredWhole(t *testing.T) {
	type inner struct{ N uint8 }
	type mixed struct {
		A    float32
		In   inner
		Text string
	}
	for _, split := range []bool{false, true} {
		schema := archetype.NewSchema()
		comp, err := schema.Register(reflect.TypeFor[mixed](), archetype.Options{Split: split})
		require.NoError(t, err)
		a := archetype.NewStore(schema, 0).Archetype(0, archetype.Signature{}.With(comp.ID), "class", 64)
		c, slot, _ := a.Take()
		from, to := mixed{1.5, inner{7}, "text"}, mixed{}
		c.StoreComponent(comp, slot, reflect.ValueOf(&from))
		c.LoadComponent(comp, slot, reflect.ValueOf(&to))
		require.Equal(t, from, to)
		require.Panics(t, func() { c.LoadComponent(comp, slot, reflect.ValueOf(&struct{}{})) })
		require.Panics(t, func() { c.StoreComponent(comp, slot, reflect.ValueOf(from)) })
	}
}
