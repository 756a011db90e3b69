package handles_test

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

func TestTwoSpacesOverTheSameWordsAgreeWithTwoModels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(2, 4).Draw(t, "width")
		last := uint32(1)<<width - 1
		first := rapid.Uint32Range(1, 3).Draw(t, "first")
		limit := first + rapid.Uint32Range(0, 6).Draw(t, "room")
		outerFirst := limit + rapid.SampledFrom([]uint32{1, 2, 5000}).Draw(t, "gap")
		outerLimit := outerFirst + rapid.Uint32Range(0, 6).Draw(t, "outer room")
		inner := handles.NewLocals(handles.LocalsConfig{FirstIndex: first, Limit: limit, Words: outerLimit + 1, GenerationBits: uint8(width)})
		outer := inner.Beside(handles.LocalsConfig{FirstIndex: outerFirst, Limit: outerLimit})
		in, out, frame := newLocalModelFrom(first, limit, last), newLocalModelFrom(outerFirst, outerLimit, last), uint64(1)
		steps, turn := map[string]func(*rapid.T){}, 0
		add := func(who string, s, other *handles.Locals, m *localModel) {
			for name, step := range localSteps(s, other, m, &frame) {
				if name != "" {
					steps[who+" "+name] = step
				}
			}
			steps[who+" claim"] = func(t *rapid.T) {
				index := rapid.Uint32Range(m.first-1, m.limit+1).Draw(t, "index")
				h := handles.NewLocal(index, m.newest(index)+uint32(rapid.IntRange(0, 3).Draw(t, "raise")))
				state := rapid.SampledFrom([]handles.State{handles.Reserved, handles.Alive, handles.Dying}).Draw(t, "state")
				p := rapid.Uint32Range(0, handles.NoPlace).Draw(t, "place")
				before := other.Stats()
				require.Equal(t, m.claimName(h, state, p), s.Claim(h, state, p), "%v", h)
				require.Equal(t, before, other.Stats())
			}
		}
		add("inner", inner, outer, in)
		add("outer", outer, inner, out)
		steps[""] = func(t *rapid.T) {
			switch turn++; turn % 4 { // the whole of each is a long story
			case 0:
				in.agree(t, inner)
			case 2:
				out.agree(t, outer)
			}
			require.Equal(t, in.stats(), inner.Stats())
			require.Equal(t, out.stats(), outer.Stats())
			for _, index := range []uint32{0, first - 1, first, limit, limit + 1, outerFirst - 1, outerFirst, outerLimit, outerLimit + 1} {
				require.Equal(t, index >= first && index <= limit, inner.Owns(index))
				require.Equal(t, index >= outerFirst && index <= outerLimit, outer.Owns(index))
				require.Equal(t, inner.Word(index), outer.Word(index))
			}
		}
		t.Repeat(steps)
	})
}

func TestSpacesBesideEachOtherAreApart(t *testing.T) {
	c := handles.LocalsConfig{Limit: 10, Words: 30}
	for name, beside := range map[string]handles.LocalsConfig{
		"no first index":     {Limit: 20},
		"an overlap":         {FirstIndex: 10, Limit: 20},
		"no words":           {FirstIndex: 11, Limit: 31},
		"an end before":      {FirstIndex: 13, Limit: 11},
		"other generations":  {FirstIndex: 11, Limit: 20, GenerationBits: 3},
		"another generation": {FirstIndex: 11, Limit: 20, FirstGeneration: 2},
	} {
		assert.Panics(t, func() { handles.NewLocals(c).Beside(beside) }, name)
	}
	assert.Panics(t, func() { handles.NewLocals(handles.LocalsConfig{Limit: 10, Words: 9}) })
	s := handles.NewLocals(c)
	second := s.Beside(handles.LocalsConfig{FirstIndex: 11, Limit: 20})
	assert.Panics(t, func() { s.Beside(handles.LocalsConfig{FirstIndex: 21, Limit: 30}) })
	third := second.Beside(handles.LocalsConfig{FirstIndex: 25, Limit: 30})
	for _, space := range []*handles.Locals{s, second, third} {
		fill(t, space)
		require.NoError(t, space.Verify())
	}
	for index := range uint32(32) {
		owners := 0
		for _, space := range []*handles.Locals{s, second, third} {
			if space.Owns(index) {
				owners++
			}
		}
		assert.Equal(t, owners == 1, s.Word(index) != 0, "index %d", index)
	}
}

func TestVerifyFindsWordsBetweenSpaces(t *testing.T) {
	for index, owner := range map[uint32]int{0: 0, 4: 0, 11: 0, 14: 0, 21: 1, 30: 1} {
		s := handles.NewLocals(handles.LocalsConfig{FirstIndex: 5, Limit: 10, Words: 30})
		spaces := []*handles.Locals{s, s.Beside(handles.LocalsConfig{FirstIndex: 15, Limit: 20})}
		for _, space := range spaces {
			fill(t, space)
		}
		s.SetWord(index, handles.MakeWord(1, handles.Alive, 1))
		for i, space := range spaces {
			assert.Equal(t, i == owner, space.Verify() != nil, "word %d, space %d", index, i)
		}
	}
}

// Whoever replays a record for long may never take what is next.
func TestClaimsByNameForEverTakeNoMemory(t *testing.T) {
	s := locals(t, 3000, true)
	names := fill(t, s)
	frame := uint64(0)
	life := func() {
		frame++
		for i, h := range names {
			s.Kill(h)
			s.Free(h, frame)
			names[i]++
		}
		s.Confirm()
		for i, h := range names {
			if !s.Claim(h, handles.Alive, 1) || !s.Unissue(h) || !s.Claim(h+1, handles.Alive, 1) {
				t.Fatalf("%v is not claimed", h)
			}
			names[i]++
		}
	}
	life()
	life()
	assert.Zero(t, testing.AllocsPerRun(100, life))
	assert.Equal(t, handles.SpaceStats{Issued: 3000}, s.Stats())
	_, ok := s.Issue(0)
	assert.False(t, ok)
}

func TestClaimBurnsTheGenerationsBetween(t *testing.T) {
	s := locals(t, 10, false)
	h := handles.NewLocal(7, 5)
	require.True(t, s.Claim(h, handles.Reserved, 3))
	assert.Equal(t, handles.MakeWord(5, handles.Reserved, handles.NoPlace), s.Word(7))
	assert.EqualValues(t, 7, s.Highest())
	assert.EqualValues(t, 5+4, s.Lives(), "five claims, four of them taken back")
	assert.False(t, s.Claim(h+1, handles.Alive, 0), "in use")
	_, won := s.Kill(h)
	require.True(t, won)
	assert.False(t, s.Claim(h+1, handles.Alive, 0), "dying")
	assert.False(t, s.Claim(handles.NewLocal(8, 1), handles.Free, 0), "not a state of a name")
	assert.False(t, s.Claim(handles.NewLocal(8, 1), handles.Dying+1, 0), "no state")
	require.True(t, s.ReviveReserved(h))
	require.True(t, s.Unissue(h))
	assert.Equal(t, handles.SpaceStats{}, s.Stats(), "as if it had never been used")
	require.True(t, s.Claim(h+3, handles.Alive, 0))
	end(t, s, h+3, 1)
	require.True(t, s.Claim(h+9, handles.Alive, 0), "pending as well")
	assert.Equal(t, handles.SpaceStats{Issued: 1}, s.Stats())
	assert.Zero(t, s.Confirm())
	require.Len(t, fill(t, s), 9)
}

// The owner claims by name what others reserve: each name goes to exactly one.
func TestClaimsByNameBesideReservers(t *testing.T) {
	const limit, rounds = 64, 200
	first := handles.NewLocals(handles.LocalsConfig{Limit: 10, Words: 10 + limit})
	s := first.Beside(handles.LocalsConfig{FirstIndex: 11, Limit: 10 + limit})
	for round := range rounds {
		var (
			reservers sync.WaitGroup
			mu        sync.Mutex
			given     []handles.Local
			begun     atomic.Int64
		)
		for range 3 {
			reservers.Go(func() {
				begun.Add(1)
				for h, ok := s.Reserve(); ok; h, ok = s.Reserve() {
					mu.Lock()
					given = append(given, h)
					mu.Unlock()
				}
			})
		}
		for begun.Load() == 0 {
			runtime.Gosched()
		}
		var own []handles.Local
		for i := range uint32(limit) {
			index := 10 + limit - i*uint32(round%2) - (limit-1-i)*uint32(1-round%2) // upwards and downwards
			if h := handles.NewLocal(index, s.Word(index).Generation()+1); s.Claim(h, handles.Alive, i) {
				own = append(own, h)
			}
		}
		reservers.Wait()
		seen := map[uint32]bool{}
		for _, h := range append(own, given...) {
			require.False(t, seen[h.Index()])
			seen[h.Index()] = true
		}
		require.Len(t, seen, limit)
		require.NoError(t, s.Verify())
		require.Equal(t, limit, s.Stats().Issued)
		for i, h := range append(own, given...) {
			if i%3 == round%3 {
				require.True(t, s.Unissue(h))
			} else {
				end(t, s, h, uint64(round))
			}
		}
		s.Confirm()
		s.Publish()
	}
	assert.Equal(t, handles.SpaceStats{}, first.Stats())
	assert.Zero(t, first.Highest())
	assert.LessOrEqual(t, s.Highest(), uint32(math.MaxUint8))
}
