package handles_test

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

// globalModel is what Globals should be: plain maps.
type globalModel struct {
	limit, last uint32
	generation  map[uint32]uint32 // current or next
	issued      map[uint32]bool
	free        map[uint32]bool // used before
	taken       map[uint32]bool // issued, and never used else but by claims taken back
	touched     map[uint32]bool // not as new: in free or issued
	retired     map[uint32]bool
}

func (m *globalModel) gen(i uint32) uint32 {
	if m.retired[i] {
		return 0
	}
	return max(m.generation[i], 1)
}

func (m *globalModel) issue(prefer uint32) uint32 {
	pick := uint32(0)
	fresh := func(i uint32) bool { return !m.touched[i] && !m.retired[i] }
	switch {
	case m.free[prefer]:
		pick = prefer
	case len(m.free) > 0:
		pick = slices.Min(slices.Collect(maps.Keys(m.free)))
	case prefer >= 1 && prefer <= m.limit && fresh(prefer):
		pick = prefer
	default:
		for i := uint32(1); i <= m.limit && pick == 0; i++ {
			if fresh(i) {
				pick = i
			}
		}
	}
	if pick != 0 {
		m.taken[pick] = !m.free[pick]
		delete(m.free, pick)
		m.issued[pick], m.touched[pick] = true, true
	}
	return pick
}

func (m *globalModel) end(i uint32, undo bool) {
	delete(m.issued, i)
	if m.gen(i) == m.last {
		m.retired[i] = true
		return
	}
	m.generation[i] = m.gen(i) + 1
	if undo && m.taken[i] {
		delete(m.touched, i)
	} else {
		m.free[i] = true
	}
}

func TestGlobalsAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, width := rapid.Uint32Range(0, 70).Draw(t, "limit"), rapid.IntRange(2, 4).Draw(t, "width")
		g := handles.NewGlobals(limit, uint8(width))
		m := &globalModel{limit: limit, last: 1<<width - 1, generation: map[uint32]uint32{}, issued: map[uint32]bool{},
			free: map[uint32]bool{}, taken: map[uint32]bool{}, touched: map[uint32]bool{}, retired: map[uint32]bool{}}
		seen := map[handles.Global]bool{}
		end := func(act func(uint32), undo bool) func(*rapid.T) {
			return func(t *rapid.T) {
				if len(m.issued) == 0 {
					t.Skip("none is issued")
				}
				i := rapid.SampledFrom(slices.Sorted(maps.Keys(m.issued))).Draw(t, "index")
				act(i)
				m.end(i, undo)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"issue": func(t *rapid.T) {
				prefer := rapid.Uint32Range(0, min(limit, 20)+2).Draw(t, "prefer")
				before := g.Stats()
				i := g.Issue(prefer)
				require.Equal(t, m.issue(prefer), i)
				if i != 0 {
					require.False(t, seen[g.Handle(i)], "%v was issued twice", g.Handle(i))
					seen[g.Handle(i)] = true
					require.Equal(t, before.Issued+1, g.Stats().Issued)
				}
			},
			"free":    end(g.Free, false),
			"unissue": end(g.Unissue, true),
			"": func(t *rapid.T) {
				require.NoError(t, g.Verify())
				require.Equal(t, handles.SpaceStats{Issued: len(m.issued), Free: len(m.free), Retired: len(m.retired)}, g.Stats())
				for i := range limit + 2 {
					if m.gen(i) != g.Generation(i) {
						t.Fatalf("generation of %d is %d, not %d", i, g.Generation(i), m.gen(i))
					}
				}
			},
		})
	})
}

func TestGlobalGenerationsOnlyRiseForReaders(t *testing.T) {
	var (
		g       = handles.NewGlobals(8, 0)
		stop    atomic.Bool
		readers sync.WaitGroup
	)
	for range 4 {
		readers.Go(func() {
			var last [9]uint32
			for !stop.Load() {
				for i := range uint32(9) {
					now := g.Generation(i)
					assert.LessOrEqual(t, last[i], now)
					last[i] = now
				}
			}
		})
	}
	for range 20_000 {
		g.Free(g.Issue(3))
		g.Unissue(g.Issue(0))
	}
	stop.Store(true)
	readers.Wait()
	require.NoError(t, g.Verify())
}
