package handles_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
)

// mixedLocals is a space with indices in every list: 1 alive, 2 reserved, 3 dying, 4 and 5 pending, 6 and
// 7 free, 8 taken back, 9 burned, 10 retired, the others fresh.
func mixedLocals(t *testing.T) *handles.Locals {
	s := handles.NewLocals(handles.LocalsConfig{Limit: 20, GenerationBits: 2})
	names := make([]handles.Local, 11)
	claim := func(i int) {
		h, ok := s.Issue(uint32(i))
		require.True(t, ok)
		require.EqualValues(t, i, h.Index())
		names[i] = h
	}
	for i := 1; i <= 10; i++ {
		claim(i)
	}
	require.True(t, s.Unissue(names[9+1]), "10 is burned")
	claim(10)
	for range 2 {
		end(t, s, names[10], 1)
		s.Confirm()
		if h, ok := s.Issue(0); ok {
			names[10] = h
		}
	}
	end(t, s, names[2], 1) // 10 died of its last generation
	s.Confirm()
	h, ok := s.Reserve()
	require.True(t, ok)
	require.EqualValues(t, 2, h.Index())
	s.Kill(names[3])
	end(t, s, names[8], 2)
	s.Confirm()
	claim(8)
	require.True(t, s.Unissue(names[8]))
	require.True(t, s.Unissue(names[9]))
	for i := 6; i <= 7; i++ {
		end(t, s, names[i], 3)
	}
	s.Confirm()
	end(t, s, names[4], 4)
	end(t, s, names[5], 5)
	return s
}

func TestVerifyFindsEveryFaultOfLocals(t *testing.T) {
	require.NoError(t, mixedLocals(t).Verify())
	for _, fault := range slices.Sorted(maps.Keys(mixedLocals(t).Faults())) {
		s := mixedLocals(t)
		s.Faults()[fault]()
		assert.Error(t, s.Verify(), fault)
	}
	for name, c := range map[string]struct {
		index uint32
		word  handles.Word
	}{
		"a fresh one that lives":       {0, handles.MakeWord(1, handles.Alive, 1)},
		"one beyond the limit":         {20, handles.MakeWord(1, handles.Free, 1)},
		"one of a generation too high": {1, handles.MakeWord(4, handles.Alive, 1)},
		"one that never was":           {1, 0},
		"a reservation with a place":   {2, handles.MakeWord(2, handles.Reserved, 1)},
		"a free one that lives":        {9, handles.MakeWord(2, handles.Alive, 1)},
		"a pending one that lives":     {4, handles.MakeWord(1, handles.Alive, 1)},
		"one that lives for nobody":    {15, handles.MakeWord(1, handles.Alive, 1)},
	} {
		s := mixedLocals(t)
		s.SetWord(c.index, c.word)
		assert.Error(t, s.Verify(), name)
	}
}

func TestVerifyMissesAPageThatNothingWaitsIn(t *testing.T) {
	s := handles.NewLocals(handles.LocalsConfig{Limit: 5000})
	for range 5000 {
		_, ok := s.Issue(0)
		require.True(t, ok)
	}
	require.NoError(t, s.Verify())
	s.Faults()["a lost page"]()
	assert.EqualError(t, s.Verify(), "locals: page 0 is missing")
}

func TestVerifyFindsEveryFaultOfGlobals(t *testing.T) {
	mixed := func() *handles.Globals {
		g := handles.NewGlobals(20, 2)
		for i := uint32(1); i <= 10; i++ {
			require.Equal(t, i, g.Issue(0))
		}
		g.Free(4)
		g.Free(5)
		g.Unissue(9)
		for range 3 {
			g.Free(10)
			g.Issue(10)
		}
		return g
	}
	require.NoError(t, mixed().Verify())
	assert.Equal(t, 1, mixed().Stats().Retired)
	for _, fault := range slices.Sorted(maps.Keys(mixed().Faults())) {
		g := mixed()
		g.Faults()[fault]()
		assert.Error(t, g.Verify(), fault)
	}
}

func TestVerifyFindsEveryFaultOfNets(t *testing.T) {
	mixed := func() *handles.Nets {
		n := handles.NewNets(here, handles.NetsConfig{Limit: 20})
		names := make([]handles.Net, 8)
		for i := 1; i <= 7; i++ {
			names[i], _ = n.Issue(uint32(i))
		}
		n.Free(names[2], 1)
		n.Confirm()
		again, _ := n.Issue(2)
		n.Unissue(again)
		n.Unissue(names[7])
		n.Free(names[3], 1)
		n.Confirm()
		n.Free(names[4], 1)
		require.True(t, n.Bind(handles.NewNet(here+1, 5, 5), 5))
		return n
	}
	require.NoError(t, mixed().Verify())
	for _, fault := range slices.Sorted(maps.Keys(mixed().Faults())) {
		n := mixed()
		n.Faults()[fault]()
		assert.Error(t, n.Verify(), fault)
	}
	for name, c := range map[string]struct {
		index uint32
		word  uint64
	}{
		"one bound to nobody":   {1, 1 << 32},
		"a pending one bound":   {4, 1<<32 | 7},
		"a free one of no past": {3, 0},
	} {
		n := mixed()
		n.SetBinding(c.index, c.word)
		assert.Error(t, n.Verify(), name)
	}
}
