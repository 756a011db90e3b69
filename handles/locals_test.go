package handles_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
)

func TestClaimsTakenBackInReverseAreClaimedAgainInOrder(t *testing.T) {
	for _, past := range []bool{false, true} {
		s := locals(t, 100, past)
		before := s.Stats()
		var first, second []handles.Local
		for i := range 10 {
			h, _ := s.Issue(0)
			first = append(first, h)
			if i%3 == 0 { // a stranger reserves in between
				_, ok := s.Reserve()
				require.True(t, ok)
			}
		}
		for i := len(first) - 1; i >= 0; i-- {
			require.True(t, s.Unissue(first[i]))
		}
		before.Issued += 4
		if past {
			before.Free -= 4
		}
		assert.Equal(t, before, s.Stats())
		for range 10 {
			h, _ := s.Issue(0)
			second = append(second, h)
		}
		for i := range first {
			assert.Equal(t, first[i]+1, second[i], "the same index, its generation burned")
		}
	}
}

func TestABurnedIndexThatLivedIsAnOrdinaryOne(t *testing.T) {
	s := locals(t, 1, false)
	h, _ := s.Issue(0)
	require.True(t, s.Unissue(h))
	assert.Equal(t, handles.SpaceStats{}, s.Stats(), "as if it had never been used")
	h, _ = s.Issue(0)
	end(t, s, h, 1)
	s.Confirm()
	h, _ = s.Issue(0)
	require.True(t, s.Unissue(h))
	assert.Equal(t, handles.SpaceStats{Free: 1}, s.Stats())
}

func TestAFullSpaceCanReserveWhatWasTakenBack(t *testing.T) {
	s := locals(t, 1, false)
	h, _ := s.Issue(0)
	_, ok := s.Reserve()
	require.False(t, ok)
	require.True(t, s.Unissue(h))
	r, ok := s.Reserve()
	require.True(t, ok)
	assert.Equal(t, handles.NewLocal(1, 2), r)
	assert.Equal(t, handles.SpaceStats{Issued: 1}, s.Stats())
	_, ok = s.Issue(0)
	assert.False(t, ok)
}

func TestTakingReservationsBackForEverTakesNoMemory(t *testing.T) {
	s := locals(t, 64, true)
	step := func() {
		for range 64 {
			h, ok := s.Reserve()
			require.True(t, ok)
			require.True(t, s.Unissue(h))
		}
	}
	step()
	assert.Zero(t, testing.AllocsPerRun(1000, step))
	assert.Equal(t, handles.SpaceStats{Free: 64}, s.Stats())
}

func TestAnOwnerFindsWhatReserversLeft(t *testing.T) {
	s := locals(t, 10_000, true)
	for i := range 10_000 {
		if i%2 == 0 {
			_, ok := s.Reserve()
			require.True(t, ok)
		} else {
			_, ok := s.Issue(0)
			require.True(t, ok)
		}
		if i == 7000 {
			s.Publish()
		}
	}
	_, ok := s.Issue(0)
	assert.False(t, ok)
	assert.EqualValues(t, 10_000, s.Highest())
}

func TestHighestKnowsReservations(t *testing.T) {
	s := locals(t, 50, false)
	assert.Zero(t, s.Highest())
	_, _ = s.Reserve()
	assert.EqualValues(t, 1, s.Highest())
	fill(t, s)
	_, _ = s.Reserve()
	assert.EqualValues(t, 50, s.Highest())
	assert.Zero(t, locals(t, 0, false).Highest())
}

func TestAFrameThatGoesBackWaitsForThoseBeforeIt(t *testing.T) {
	s := locals(t, 10, false)
	for i, frame := range []uint64{10, 11, 9, 9, 12} { // 9 after a rollback
		h, ok := s.Issue(uint32(i))
		require.True(t, ok)
		end(t, s, h, frame)
	}
	assert.Zero(t, s.ConfirmThrough(9), "reuse is in the order of the deaths")
	assert.Equal(t, 4, s.ConfirmThrough(11))
	assert.EqualValues(t, 12, s.Stats().OldestPending)
	assert.Equal(t, 1, s.ConfirmThrough(math.MaxUint64))
}

// Over several segments of the line, with last generations in between, and with a burned index
// somewhere, which takes freeing off its fast path.
func TestFreeAllIsFreeForEach(t *testing.T) {
	for _, burned := range []bool{false, true} {
		all, each := agedLocals(t, burned), agedLocals(t, burned)
		for round := range uint64(4) {
			names := fill(t, all)
			require.Equal(t, names, fill(t, each))
			for i, h := range names {
				if i%7 == 0 && round == 0 {
					names[i] = 0 // lives on, and is younger than the others in the end
					continue
				}
				all.Kill(h)
				each.Kill(h)
			}
			names = slices.DeleteFunc(names, handles.Local.IsZero)
			all.FreeAll(names, round)
			all.FreeAll(nil, round+1)
			for _, h := range names {
				each.Free(h, round)
			}
			require.NoError(t, all.Verify())
			require.Equal(t, each.Stats(), all.Stats())
			require.Equal(t, each.Confirm(), all.Confirm())
		}
	}
}

// agedLocals is a space of a few thousand indices that have three lives each, of which some lived one.
func agedLocals(t *testing.T, burned bool) *handles.Locals {
	s := handles.NewLocals(handles.LocalsConfig{Limit: 5000, GenerationBits: 2})
	var names []handles.Local
	for range 3000 {
		h, ok := s.Issue(0)
		require.True(t, ok)
		names = append(names, h)
	}
	for _, h := range names {
		end(t, s, h, 0)
	}
	if s.Confirm(); burned {
		for h, ok := s.Issue(0); ok; h, ok = s.Issue(0) {
			names = append(names, h)
		}
		require.True(t, s.Unissue(names[len(names)-1]))
		for _, h := range names[3000 : len(names)-1] {
			end(t, s, h, 0)
		}
		s.Confirm()
	}
	return s
}

// The registry frees each death once. If it ever did not: the claim of the word looks at the
// generation, so that no two entities get one name.
func TestAMistakenFreeAliasesNobody(t *testing.T) {
	if check.Enabled {
		t.Skip("a debug build stops at the mistake")
	}
	s := handles.NewLocals(handles.LocalsConfig{Limit: 3})
	h, _ := s.Issue(0)
	s.Kill(h)
	s.Free(h, 1)
	s.Free(h, 1)
	alive, _ := s.Issue(0)
	s.Free(alive, 1) // not even dead
	s.Confirm()
	seen := map[handles.Local]bool{alive: true}
	for {
		h, ok := s.Issue(0)
		if !ok {
			break
		}
		require.False(t, seen[h])
		seen[h] = true
	}
	indices := map[uint32]bool{}
	for h := range seen {
		require.True(t, s.Alive(h))
		require.False(t, indices[h.Index()])
		indices[h.Index()] = true
	}
	assert.Error(t, s.Verify(), "it does not go unseen")
}

func TestMistakesStopADebugBuild(t *testing.T) {
	if !check.Enabled {
		t.Skip("only a debug build looks")
	}
	s := handles.NewLocals(handles.LocalsConfig{Limit: 3})
	h, _ := s.Issue(0)
	assert.Panics(t, func() { s.Free(h, 1) })
	g := handles.NewGlobals(3, 0)
	assert.Panics(t, func() { g.Free(1) })
	assert.Panics(t, func() { g.FreeOwn(1, 1) })
	require.EqualValues(t, 1, g.Issue(0))
	g.FreeOwn(1, 1)
	assert.Panics(t, func() { g.FreeOwn(1, 1) }, "twice")
	inner := handles.NewLocals(handles.LocalsConfig{Limit: 3, Words: 9})
	beside := inner.Beside(handles.LocalsConfig{FirstIndex: 4, Limit: 9})
	theirs, _ := inner.Reserve()
	assert.Panics(t, func() { beside.Unissue(theirs) }, "another space's")
	n := handles.NewNets(0, handles.NetsConfig{})
	name, _ := n.Issue(1)
	n.Free(name, 1)
	assert.Panics(t, func() { n.Free(name, 1) })
	used := handles.NewLocals(handles.LocalsConfig{Limit: 1})
	back, _ := used.Issue(0)
	require.True(t, used.Unissue(back))
	require.True(t, used.Revive(back, 0), "nothing forbids it but the contract")
	assert.Panics(t, func() { used.Issue(0) })
}

func TestEndingANetHandleTwiceChangesNothing(t *testing.T) {
	if check.Enabled {
		t.Skip("a debug build stops at the mistake")
	}
	n := handles.NewNets(0, handles.NetsConfig{})
	name, _ := n.Issue(1)
	n.Free(name, 1)
	before := n.Stats()
	n.Free(name, 1)
	n.Unissue(name)
	n.Free(math.MaxUint64, 1)
	n.Unissue(math.MaxUint64)
	assert.Equal(t, before, n.Stats())
	assert.NoError(t, n.Verify())
}

func TestUnbindForgetsWhatBindLearned(t *testing.T) {
	n := handles.NewNets(0, handles.NetsConfig{})
	old, newer := handles.NewNet(9, 1, 4), handles.NewNet(9, 1, 6)
	require.True(t, n.Bind(old, 1))
	n.Free(old, 1)
	require.True(t, n.Bind(newer, 2))
	require.True(t, n.Unbind(newer))
	require.False(t, n.Unbind(newer))
	require.False(t, n.Bind(handles.NewNet(9, 1, 3), 1), "older than the last one seen")
	require.True(t, n.Bind(handles.NewNet(9, 1, 5), 3), "as if 6 had never been seen")
	assert.Equal(t, 1, n.Bound())
	assert.NoError(t, n.Verify())
}

func TestKnobsOutOfRangeArePanics(t *testing.T) {
	assert.Panics(t, func() { handles.NewLocals(handles.LocalsConfig{GenerationBits: 33}) })
	assert.Panics(t, func() { handles.NewLocals(handles.LocalsConfig{GenerationBits: 3, FirstGeneration: 8}) })
	assert.Panics(t, func() { handles.NewGlobals(1, 33) })
	assert.Panics(t, func() { handles.NewNets(0, handles.NetsConfig{Limit: 1 << 24}) })
	assert.NotPanics(t, func() { handles.NewLocals(handles.LocalsConfig{GenerationBits: 32, FirstGeneration: math.MaxUint32}) })
}

func TestStepsOfALifeAllocateNothing(t *testing.T) {
	const n = 3000
	s, names := lived(n)
	g := handles.NewGlobals(n, 0)
	nets := handles.NewNets(here, handles.NetsConfig{})
	foreign := handles.NewNet(here+1, 1, 1)
	frame := uint64(0)
	life := func() {
		frame++
		for i := range names {
			h := names[i]
			s.Move(h, uint32(i))
			s.SetPlace(h, uint32(i))
			_, _ = s.Status(h), s.Word(h.Index())
			s.Kill(h)
			s.Revive(h, 1)
			s.Kill(h)
			s.Free(h, frame)
		}
		s.ConfirmThrough(frame)
		s.Publish()
		for i := range names {
			h, _ := s.Reserve()
			s.Spawned(h, 1)
			s.Unspawned(h)
			s.Unissue(h)
			names[i], _ = s.Issue(uint32(i))
			record := g.Issue(names[i].Index())
			_ = g.Handle(record)
			g.Free(record)
			net, _ := nets.Issue(1)
			_, _, _ = nets.ByWire(net.Wire())
			nets.Unissue(net)
			net, _ = nets.Issue(1)
			nets.Free(net, frame)
			nets.Bind(foreign, 1)
			nets.Unbind(foreign)
		}
		nets.ConfirmWhile(func(uint64, uint64) bool { return true })
		_, _, _ = s.Stats(), g.Stats(), nets.Stats()
	}
	for range 3 {
		life()
	}
	assert.Zero(t, testing.AllocsPerRun(20, life))
}
