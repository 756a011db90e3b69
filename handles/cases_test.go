package handles_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
)

// locals makes a space; in one with a past, every index has lived five times (handles-4).
func locals(t *testing.T, limit uint32, past bool) *handles.Locals {
	s := handles.NewLocals(handles.LocalsConfig{Limit: limit})
	t.Cleanup(func() { require.NoError(t, s.Verify()) })
	if past {
		for range 5 {
			for _, h := range fill(t, s) {
				end(t, s, h, 0)
			}
			s.Confirm()
		}
	}
	return s
}

// fill issues until there is no more.
func fill(t *testing.T, s *handles.Locals) (names []handles.Local) {
	for {
		h, ok := s.Issue(uint32(len(names)))
		if !ok {
			return names
		}
		require.True(t, s.Alive(h))
		names = append(names, h)
	}
}

func end(t *testing.T, s *handles.Locals, h handles.Local, frame uint64) {
	_, won := s.Kill(h)
	require.True(t, won)
	s.Free(h, frame)
	require.False(t, s.Alive(h))
}

func TestHostileCases(t *testing.T) {
	t.Run("handles-2", func(t *testing.T) {
		t.Run("local", localTenThousandLives)
		t.Run("global", globalTenThousandLives)
		t.Run("net", netTenThousandLives)
	})
	t.Run("handles-3", firstAndLastName)
	for _, past := range []bool{false, true} {
		name := "fresh"
		if past {
			name = "handles-4"
		}
		t.Run(name, func(t *testing.T) {
			t.Run("handles-5", func(t *testing.T) { nothingComesBackUnconfirmed(t, past) })
			t.Run("handles-6", func(t *testing.T) { confirmEarlyTwiceNever(t, past) })
			t.Run("handles-7", func(t *testing.T) { oldestFirst(t, past) })
		})
	}
	t.Run("handles-8", endOfASpace)
	t.Run("handles-9", anySixtyFourBits)
}

func localTenThousandLives(t *testing.T) {
	s := locals(t, 1, false)
	seen := map[handles.Local]bool{}
	for life := range 10_000 {
		h, ok := s.Issue(0)
		require.True(t, ok)
		require.False(t, seen[h])
		seen[h] = true
		if life%1000 == 0 {
			for old := range seen {
				if s.Alive(old) != (old == h) {
					t.Fatalf("%v alive %t beside %v", old, s.Alive(old), h)
				}
			}
		}
		end(t, s, h, uint64(life))
		s.ConfirmThrough(uint64(life))
	}
	s = handles.NewLocals(handles.LocalsConfig{Limit: 1, FirstGeneration: math.MaxUint32 - 2})
	for want := uint32(math.MaxUint32 - 2); ; want++ {
		h, ok := s.Issue(0)
		require.True(t, ok)
		require.Equal(t, handles.NewLocal(1, want), h)
		end(t, s, h, 1)
		s.Confirm()
		if want == math.MaxUint32 {
			break
		}
	}
	_, ok := s.Issue(0)
	assert.False(t, ok)
	_, ok = s.Reserve()
	assert.False(t, ok)
	assert.Equal(t, handles.SpaceStats{Retired: 1}, s.Stats())
	assert.NoError(t, s.Verify())
}

func globalTenThousandLives(t *testing.T) {
	g := handles.NewGlobals(1, 0)
	seen := map[handles.Global]bool{}
	for range 10_000 {
		require.EqualValues(t, 1, g.Issue(1))
		require.False(t, seen[g.Handle(1)])
		seen[g.Handle(1)] = true
		g.Free(1)
		require.False(t, seen[g.Handle(1)])
	}
	require.NoError(t, g.Verify())
	g = handles.NewGlobalsAt(1, 0, math.MaxUint32-2)
	for want := uint32(math.MaxUint32 - 2); ; want++ {
		require.EqualValues(t, 1, g.Issue(0))
		require.Equal(t, handles.NewGlobal(1, want), g.Handle(1))
		g.Free(1)
		if want == math.MaxUint32 {
			break
		}
	}
	assert.Zero(t, g.Issue(1))
	assert.Zero(t, g.Generation(1), "no handle has generation 0")
	assert.Equal(t, handles.SpaceStats{Retired: 1}, g.Stats())
	assert.NoError(t, g.Verify())
}

func netTenThousandLives(t *testing.T) {
	n := handles.NewNets(0, handles.NetsConfig{Limit: 1})
	seen := map[handles.Net]bool{}
	for life := range uint64(10_000) {
		h, ok := n.Issue(1)
		require.True(t, ok)
		require.False(t, seen[h])
		seen[h] = true
		if life%1000 == 0 {
			for old := range seen {
				if _, status := n.Local(old); (status == handles.Live) != (old == h) {
					t.Fatalf("%v is %v beside %v", old, status, h)
				}
			}
		}
		n.Free(h, life)
		n.ConfirmThrough(life)
	}
	require.NoError(t, n.Verify())
	n = handles.NewNets(0, handles.NetsConfig{Limit: 1, FirstGeneration: math.MaxUint32 - 2})
	for want := uint32(math.MaxUint32 - 2); ; want++ {
		h, ok := n.Issue(1)
		require.True(t, ok)
		require.Equal(t, handles.NewNet(0, 1, want), h)
		n.Free(h, 1)
		n.Confirm()
		if want == math.MaxUint32 {
			break
		}
	}
	_, ok := n.Issue(1)
	assert.False(t, ok)
	assert.Equal(t, handles.SpaceStats{Retired: 1}, n.Stats())
	assert.NoError(t, n.Verify())
}

func firstAndLastName(t *testing.T) {
	for _, at := range []struct{ index, generation uint32 }{{1, 1}, {math.MaxUint32, math.MaxUint32}} {
		s := handles.NewLocals(handles.LocalsConfig{Limit: at.index, FirstIndex: at.index, FirstGeneration: at.generation})
		h, ok := s.Issue(handles.MaxPlace)
		require.True(t, ok)
		assert.Equal(t, handles.NewLocal(at.index, at.generation), h)
		assert.False(t, h.IsZero())
		assert.True(t, s.Alive(h))
		assert.Equal(t, handles.Live, s.Status(h))
		assert.EqualValues(t, handles.MaxPlace, s.Word(h.Index()).Place())
		end(t, s, h, 0)
		pending, retired := 1, 0
		if at.generation == math.MaxUint32 {
			pending, retired = 0, 1
		}
		assert.Equal(t, handles.SpaceStats{Pending: pending, Retired: retired}, s.Stats())
		assert.Equal(t, pending, s.ConfirmThrough(0), "a death in the first frame is confirmed through it")
		_, ok = s.Reserve()
		assert.Equal(t, pending == 1, ok)
		assert.NoError(t, s.Verify())
	}
	for _, at := range []struct {
		owner             uint8
		index, generation uint32
	}{{0, 1, 1}, {255, handles.MaxNetIndex, math.MaxUint32}} {
		n := handles.NewNets(at.owner, handles.NetsConfig{FirstIndex: at.index, FirstGeneration: at.generation})
		h, ok := n.Issue(math.MaxUint32)
		require.True(t, ok)
		assert.Equal(t, handles.NewNet(at.owner, at.index, at.generation), h)
		assert.Equal(t, []uint32{uint32(at.owner), at.index, at.generation}, []uint32{uint32(h.Owner()), h.Index(), h.Generation()})
		assert.False(t, h.IsZero())
		local, status := n.Local(h)
		assert.Equal(t, handles.Live, status)
		assert.EqualValues(t, math.MaxUint32, local)
		again, local, ok := n.ByWire(h.Wire())
		assert.True(t, ok)
		assert.Equal(t, h, again)
		assert.EqualValues(t, math.MaxUint32, local)
		n.Free(h, 0)
		assert.Equal(t, n.Stats().Pending, n.ConfirmThrough(0))
		assert.NoError(t, n.Verify())
	}
	g := handles.NewGlobalsAt(math.MaxUint32, 0, math.MaxUint32)
	assert.EqualValues(t, 1, g.Issue(0))
	assert.EqualValues(t, math.MaxUint32, g.Issue(math.MaxUint32))
	assert.Equal(t, handles.NewGlobal(math.MaxUint32, math.MaxUint32), g.Handle(math.MaxUint32))
	assert.EqualValues(t, 2, g.Issue(math.MaxUint32))
	g.Free(math.MaxUint32)
	assert.Zero(t, g.Generation(math.MaxUint32))
	assert.NoError(t, g.Verify())
}

func nothingComesBackUnconfirmed(t *testing.T, past bool) {
	const limit = 3000
	s := locals(t, limit, past)
	names := fill(t, s)
	require.Len(t, names, limit)
	for i, h := range names {
		end(t, s, h, uint64(i/100))
		_, issued := s.Issue(0)
		_, reserved := s.Reserve()
		require.False(t, issued || reserved, "%d are pending, and one came back", i+1)
	}
	require.Equal(t, limit, s.Pending())
	require.Equal(t, limit, s.Confirm())
	require.Len(t, fill(t, s), limit)
}

func confirmEarlyTwiceNever(t *testing.T, past bool) {
	s := locals(t, 8, past)
	for frame := uint64(10); frame <= 12; frame++ {
		h, ok := s.Issue(0)
		require.True(t, ok)
		before := s.Stats()
		end(t, s, h, frame)
		after := s.Stats()
		assert.Equal(t, before.Pending+1, after.Pending, "no confirm: one more a death")
		assert.Equal(t, before.Free, after.Free)
		assert.EqualValues(t, 10, after.OldestPending)
	}
	n := handles.NewNets(3, handles.NetsConfig{Limit: 8})
	for frame := uint64(10); frame <= 12; frame++ {
		h, ok := n.Issue(5)
		require.True(t, ok)
		before := n.Stats()
		n.Free(h, frame)
		assert.Equal(t, before.Pending+1, n.Stats().Pending)
		assert.Equal(t, before.Free, n.Stats().Free)
		assert.EqualValues(t, 10, n.Stats().OldestPending)
	}
	for _, step := range []struct {
		through uint64
		want    int
	}{{9, 0}, {11, 2}, {11, 0}, {1<<64 - 1, 1}} {
		assert.Equal(t, step.want, s.ConfirmThrough(step.through), "local, through %d", step.through)
		assert.Equal(t, step.want, n.ConfirmThrough(step.through), "net, through %d", step.through)
	}
	assert.NoError(t, n.Verify())
}

func oldestFirst(t *testing.T, past bool) {
	for name, claim := range map[string]func(*handles.Locals) (handles.Local, bool){
		"issue":   func(s *handles.Locals) (handles.Local, bool) { return s.Issue(0) },
		"reserve": func(s *handles.Locals) (handles.Local, bool) { return s.Reserve() },
	} {
		s := locals(t, 10, past)
		byIndex := map[uint32]handles.Local{}
		for _, h := range fill(t, s) {
			byIndex[h.Index()] = h
		}
		for i, index := range []uint32{5, 2, 9} {
			end(t, s, byIndex[index], uint64(i))
		}
		s.Confirm()
		for _, index := range []uint32{5, 2, 9} {
			h, ok := claim(s)
			require.True(t, ok)
			assert.Equal(t, byIndex[index]+1, h, "%s: the same index, one life later", name)
		}
	}
}

func endOfASpace(t *testing.T) {
	s := handles.NewLocals(handles.LocalsConfig{Limit: 1 << 20, FirstIndex: 1<<20 - 2})
	n := handles.NewNets(7, handles.NetsConfig{FirstIndex: handles.MaxNetIndex - 2})
	var lastLocal handles.Local
	var lastNet handles.Net
	for i := range 5 {
		l, ok := s.Issue(0)
		assert.Equal(t, i < 3, ok)
		if ok {
			lastLocal = l
		}
		h, ok := n.Issue(1)
		assert.Equal(t, i < 3, ok)
		if ok {
			lastNet = h
		}
	}
	_, ok := s.Reserve()
	assert.False(t, ok)
	assert.EqualValues(t, handles.MaxNetIndex, lastNet.Index())
	end(t, s, lastLocal, 1)
	n.Free(lastNet, 1)
	s.Confirm()
	n.Confirm()
	for i := range 2 {
		_, ok := s.Reserve()
		assert.Equal(t, i == 0, ok)
		_, ok = n.Issue(1)
		assert.Equal(t, i == 0, ok)
	}
	assert.NoError(t, s.Verify())
	assert.NoError(t, n.Verify())

	g := handles.NewGlobals(3, 0)
	for i := range 5 {
		assert.Equal(t, i < 3, g.Issue(0) != 0)
	}
	g.Free(2)
	assert.EqualValues(t, 2, g.Issue(0))
	assert.Zero(t, g.Issue(0))
	assert.NoError(t, g.Verify())
}

func anySixtyFourBits(t *testing.T) {
	s := locals(t, 5000, false)
	n := handles.NewNets(1, handles.NetsConfig{Limit: 5000})
	live, _ := s.Issue(77)
	named, _ := n.Issue(live.Index())
	dead, _ := s.Issue(78)
	end(t, s, dead, 1)
	reserved, _ := s.Reserve()
	unknown := []uint64{0, math.MaxUint64, 1, 1 << 32, math.MaxUint32,
		uint64(handles.NewLocal(4999, 1)), uint64(handles.NewLocal(5001, 1)), uint64(handles.NewLocal(1<<31, 1)),
		uint64(live + 1), uint64(live - 1), uint64(dead + 1), uint64(handles.NewLocal(0, 1)), uint64(handles.NewLocal(live.Index(), 0))}
	for _, bits := range unknown {
		h := handles.Local(bits)
		t.Run(fmt.Sprintf("%#x", bits), func(t *testing.T) {
			assert.False(t, s.Alive(h))
			assert.Equal(t, handles.Invalid, s.Status(h))
			_, won := s.Kill(h)
			assert.False(t, won || s.Move(h, 1) || s.Spawned(h, 1) || s.Unspawned(h) || s.Revive(h, 1) || s.Unissue(h))
			s.SetPlace(h, 1)
		})
	}
	assert.Equal(t, handles.Stale, s.Status(dead))
	assert.Equal(t, handles.NotSpawned, s.Status(reserved))
	assert.False(t, s.Alive(reserved))
	assert.Equal(t, handles.MakeWord(1, handles.Alive, 77), s.Word(live.Index()), "nobody else was touched")
	for _, h := range []handles.Net{0, math.MaxUint64, named + 1<<32, named - 1<<32, handles.NewNet(1, 4999, 1),
		handles.NewNet(1, 5001, 1), handles.NewNet(2, named.Index(), 1), handles.NewNet(255, handles.MaxNetIndex, 1), handles.NewNet(1, 0, 1)} {
		local, status := n.Local(h)
		assert.Zero(t, local)
		assert.Equal(t, handles.Invalid, status, "%v", h)
		if h.Wire() != named.Wire() {
			_, _, ok := n.ByWire(h.Wire())
			assert.False(t, ok)
		}
		assert.False(t, n.Unbind(h))
	}
	local, status := n.Local(named)
	assert.Equal(t, handles.Live, status)
	assert.Equal(t, live.Index(), local)
	g := handles.NewGlobals(5000, 0)
	for _, index := range []uint32{0, 1, 5000, 5001, math.MaxUint32} {
		assert.EqualValues(t, 1, g.Generation(index))
	}
}
