package archetype_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
)

// mapBlocks asks for the cells of every component of the model, so that Verify compares them from then on.
func mapBlocks(m *storeModel) (*[]*[64]float64, *[]*[64]label, *[]*[64]odd) {
	return archetype.Blocks[float64](m.store, m.comps[0].ID), // the first field of a split one
		archetype.Blocks[label](m.store, m.comps[1].ID),
		archetype.Blocks[odd](m.store, m.comps[2].ID)
}

// TestBlocksFollowTheChunks has chunks come, go, and get other cache indices, in frame after frame.
func TestBlocksFollowTheChunks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newStoreModel(t)
		pick := func(t *rapid.T) *shelf { return rapid.SampledFrom(m.shelves).Draw(t, "archetype") }
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				s := pick(t)
				for range rapid.IntRange(1, 300).Draw(t, "n") {
					m.take(t, s)
				}
			},
			"empty": func(t *rapid.T) {
				s := pick(t)
				for _, i := range s.living() {
					s.remove(i, s.a.Reclaim)
				}
				s.a.Settle()
				s.slots = s.slots[:0]
				require.Zero(t, s.a.Allocated())
			},
			"rebase": func(t *rapid.T) {
				c := m.store.HighestChunk()
				if c == nil {
					t.Skip("there is no chunk")
				}
				if _, ok := m.store.LowerBase(c); ok {
					m.store.Rebase(c)
				}
			},
			"turn": func(*rapid.T) { m.store.Turn() },
			"ask": func(t *rapid.T) {
				xs, labels, odds := mapBlocks(m)
				for _, s := range m.shelves {
					for i := range s.slots {
						c, slot := s.at(i)
						x, _, l, o := m.cells(s, c, slot)
						block, at := (c.Base()+slot)>>6, (c.Base()+slot)&63
						require.Equal(t, []bool{x != nil, l != nil, o != nil},
							[]bool{(*xs)[block] != nil, (*labels)[block] != nil, (*odds)[block] != nil})
						if x != nil && &(*xs)[block][at] != x || l != nil && &(*labels)[block][at] != l || o != nil && &(*odds)[block][at] != o {
							require.Failf(t, "another cell", "of slot %d of %s", i, s.a)
						}
					}
				}
			},
			"": func(t *rapid.T) { require.NoError(t, m.store.Verify()) },
		})
	})
}

func TestBlocksOfAnotherTypeAreRefused(t *testing.T) {
	m := newStoreModel(t)
	require.Panics(t, func() { archetype.Blocks[int](m.store, m.comps[1].ID) })
	require.Panics(t, func() { archetype.Blocks[marker](m.store, m.comps[3].ID) }, "it has no cells")
	require.Panics(t, func() { archetype.Blocks[int](m.store, 200) })
	require.Empty(t, *archetype.Blocks[odd](m.store, m.comps[2].ID))
}

func TestBlocksAreAskedForAtNoCost(t *testing.T) {
	m := newStoreModel(t)
	for range 3000 {
		m.shelves[0].a.Take()
	}
	before := archetype.Blocks[label](m.store, m.comps[1].ID)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		m.store.Turn()
		if archetype.Blocks[label](m.store, m.comps[1].ID) != before {
			t.Fatal("the slice is where it was")
		}
	}))
	require.EqualValues(t, 8, unsafe.Sizeof((*before)[0]))
}
