package archetype_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// emptyPool gives a pool's slots up, the last one first, and drops it.
func emptyPool(s *archetype.Store, a *archetype.Archetype) {
	chunks := a.Chunks()
	for k := len(chunks) - 1; k >= 0; k-- {
		c := chunks[k]
		for slot := c.Allocated() - 1; slot >= 0; slot-- {
			a.Untake(c, uint32(slot), true)
		}
	}
	s.Drop(a)
}

func TestAPoolIsOneRunOfTakenSlots(t *testing.T) {
	for _, slots := range []int{0, 64, 192} {
		for _, n := range []int{1, 63, 64, 65, 128, 191, 192, 193, 1000, 5000} {
			store, p, l := pair(t, 8)
			sig := archetype.Signature{}.With(p.ID).With(l.ID)
			plain := store.Archetype(1, sig, "one", slots)
			plain.Take()
			a := store.Pool(1, sig, "one", slots, n, 1)
			require.NotNil(t, a)
			require.Equal(t, 1, a.Pooled())
			require.Equal(t, n, a.PooledSlots())
			require.Equal(t, n, a.Allocated())
			require.Same(t, plain, store.Find(1, sig), "it is not found by its key")
			require.Zero(t, plain.Pooled()+plain.PooledSlots())
			base, sum := a.Chunks()[0].Base(), 0
			for i, c := range a.Chunks() {
				require.Equal(t, base, c.Base())
				require.Zero(t, c.Slots()%64)
				if i > 0 {
					require.Equal(t, a.Chunks()[0].Slots(), c.Slots())
				}
				base += uint32(c.Slots())
				sum += c.Allocated()
			}
			require.Equal(t, n, sum)
			require.Less(t, int(base)-int(a.Chunks()[0].Base())-n, max(a.Chunks()[0].Slots(), 64))
			require.NoError(t, store.Verify())

			states := store.States()
			require.Equal(t, n, states[1].Pooled)
			require.NoError(t, states[1].Check(slots))
			emptyPool(store, a)
			require.Equal(t, []*archetype.Archetype{plain}, store.Archetypes())
			require.NoError(t, store.Verify())
		}
	}
}

func TestAPoolOfNothingIsMisuse(t *testing.T) {
	store, p, _ := pair(t, 0)
	sig := archetype.Signature{}.With(p.ID)
	require.Panics(t, func() { store.Pool(0, sig, "none", 0, 0, 1) })
	require.Panics(t, func() { store.Pool(0, sig, "none", 0, 5, 0) })
	require.Empty(t, store.Archetypes())
}

// TestAStateWithAnotherPoolIsRefused changes what a state says of a pool, in every way that would not be one.
func TestAStateWithAnotherPoolIsRefused(t *testing.T) {
	store, p, _ := pair(t, 8)
	store.Pool(0, archetype.Signature{}.With(p.ID), "arrows", 64, 130, 1)
	for name, change := range map[string]func(s *archetype.State){
		"negative":      func(s *archetype.State) { s.Pooled = -1 },
		"absurd":        func(s *archetype.State) { s.Pooled = 1 << 40 },
		"smaller":       func(s *archetype.State) { s.Pooled = 64 },
		"larger":        func(s *archetype.State) { s.Pooled = 193 },
		"one more slot": func(s *archetype.State) { s.Pooled = 131 },
		"a large first": func(s *archetype.State) { s.LargeFirst = true },
		"a hole":        func(s *archetype.State) { s.Chunks[1].Holes[0] = 4 },
		"a chunk less":  func(s *archetype.State) { s.Chunks = s.Chunks[:2] },
		"no chunks":     func(s *archetype.State) { s.Chunks = nil },
		"a gap":         func(s *archetype.State) { s.Chunks[1].Base += 64 },
		"other slots":   func(s *archetype.State) { s.Chunks[0].Slots = 128 },
		"fewer taken":   func(s *archetype.State) { s.Chunks[2].Allocated = 1 },
		"emptied":       func(s *archetype.State) { s.Chunks[2].Emptied = archetype.NotEmptied + 1 },
	} {
		s := store.States()[0]
		require.NoError(t, s.Check(64), name)
		change(&s)
		require.Error(t, s.Check(64), name)
	}
}

// TestPoolsAgreeWithPlainSlots blanks and rewrites slots of pools, makes some and takes them back, beside an ordinary archetype.
func TestPoolsAgreeWithPlainSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := archetype.NewStore(archetype.NewSchema(), 8)
		plain := store.Archetype(0, archetype.Signature{}, "plain", 64)
		var pools []*archetype.Archetype
		var who [][]handles.Local
		place := func(t *rapid.T) (*archetype.Archetype, *archetype.Chunk, uint32, *handles.Local) {
			if len(pools) == 0 {
				t.Skip("no pool")
			}
			k := rapid.IntRange(0, len(pools)-1).Draw(t, "pool")
			i := rapid.IntRange(0, len(who[k])-1).Draw(t, "slot")
			c := store.ChunkAt(pools[k].Chunks()[0].Base() + uint32(i))
			return pools[k], c, pools[k].Chunks()[0].Base() + uint32(i) - c.Base(), &who[k][i]
		}
		t.Repeat(map[string]func(*rapid.T){
			"pool": func(t *rapid.T) {
				if len(pools) == 4 {
					t.Skip("enough")
				}
				n := rapid.SampledFrom([]int{1, 64, 65, 130}).Draw(t, "n")
				a := store.Pool(0, archetype.Signature{}, "pool", rapid.SampledFrom([]int{0, 64, 128}).Draw(t, "chunk"), n, len(pools)+1)
				pools, who = append(pools, a), append(who, make([]handles.Local, n))
			},
			"drop": func(t *rapid.T) {
				if len(pools) == 0 || store.Archetypes()[len(store.Archetypes())-1].Pooled() == 0 {
					t.Skip("no pool at the end")
				}
				emptyPool(store, pools[len(pools)-1])
				pools, who = pools[:len(pools)-1], who[:len(who)-1]
			},
			"settle": func(t *rapid.T) {
				_, c, slot, h := place(t)
				*h = handles.NewLocal(rapid.Uint32Range(1, 100).Draw(t, "index"), 1)
				c.Occupy(slot, *h)
				c.Rewrite()
				c.ClearBorn(slot)
				c.SetBit(slot)
			},
			"born": func(t *rapid.T) {
				_, c, slot, _ := place(t)
				if !c.Bit(slot) {
					c.MarkBorn(slot)
				}
			},
			"blank": func(t *rapid.T) {
				a, c, slot, h := place(t)
				a.Blank(c, slot)
				*h = 0
				require.False(t, c.Bit(slot) || c.Born(slot))
			},
			"take": func(t *rapid.T) {
				c, _, _ := plain.Take()
				require.Zero(t, c.Archetype().Pooled(), "ordinary slots only")
			},
			"": func(t *rapid.T) {
				require.NoError(t, store.Verify())
				for k, a := range pools {
					require.Equal(t, k+1, a.Pooled())
					require.Equal(t, len(who[k]), a.Allocated())
					for i, h := range who[k] {
						at := a.Chunks()[0].Base() + uint32(i)
						c := store.ChunkAt(at)
						if got := c.Entities()[at-c.Base()]; c.Archetype() != a || got != h {
							t.Fatalf("slot %d of pool %d has %v in %s, not %v", i, k+1, got, c.Archetype(), h)
						}
					}
				}
			},
		})
	})
}
