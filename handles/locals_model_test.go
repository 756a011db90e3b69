package handles_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

// localModel is what Locals should be while one goroutine uses it: plain slices and maps. It
// foretells every handle.
type localModel struct {
	first, limit, last uint32
	fresh              uint32
	forge              [2]uint32       // the indices of forged names: none that another space may use
	returned           []handles.Local // stacks: the last is the next
	burned             []handles.Local
	free               []handles.Local
	pending            []pendingLocal
	retired            int
	names              map[handles.Local]*localName
	order              []handles.Local // of names, for drawing one
}

type pendingLocal struct {
	next  handles.Local
	frame uint64
}

type localName struct {
	state handles.State
	place uint32
	freed bool // or taken back
	plain bool // never used but by claims that were taken back
}

func newLocalModel(limit, last uint32) *localModel {
	return &localModel{first: 1, limit: limit, last: last, fresh: 1, forge: [2]uint32{0, limit + 2}, names: map[handles.Local]*localName{}}
}

// newLocalModelFrom is a model of indices that begin anywhere.
func newLocalModelFrom(first, limit, last uint32) *localModel {
	m := newLocalModel(limit, last)
	m.first, m.fresh, m.forge = first, first, [2]uint32{first, limit}
	return m
}

// claim is the handle that the next claim gets.
func (m *localModel) claim(state handles.State, place uint32) (h handles.Local, ok bool) {
	plain := false
	switch {
	case len(m.returned) > 0:
		h, m.returned = m.returned[len(m.returned)-1], m.returned[:len(m.returned)-1]
	case len(m.free) > 0:
		h, m.free = m.free[0], m.free[1:]
	case len(m.burned) > 0:
		h, m.burned = m.burned[len(m.burned)-1], m.burned[:len(m.burned)-1]
		plain = true
	default:
		for m.fresh <= m.limit && m.newest(m.fresh) > 0 { // claimed by name
			m.fresh++
		}
		if m.fresh > m.limit {
			return 0, false
		}
		h = handles.NewLocal(m.fresh, 1)
		m.fresh++
		plain = true
	}
	m.names[h] = &localName{state: state, place: place, plain: plain}
	m.order = append(m.order, h)
	return h, true
}

// claimName claims a name that the caller chose.
func (m *localModel) claimName(h handles.Local, state handles.State, place uint32) bool {
	newest := m.newest(h.Index())
	if h.Index() < m.first || h.Index() > m.limit || h.Generation() <= newest || h.Generation() > m.last {
		return false
	}
	plain := newest == 0
	if newest > 0 {
		name := handles.NewLocal(h.Index(), newest)
		if !m.names[name].freed {
			return false
		}
		for i, waiting := range []*[]handles.Local{&m.returned, &m.burned, &m.free} {
			if at := slices.Index(*waiting, name+1); at >= 0 {
				*waiting = slices.Delete(slices.Clone(*waiting), at, at+1)
				plain = i == 1
			}
		}
		m.pending = slices.DeleteFunc(slices.Clone(m.pending), func(p pendingLocal) bool { return p.next == name+1 })
	}
	for g := newest + 1; g < h.Generation(); g++ {
		burned := handles.NewLocal(h.Index(), g)
		m.names[burned] = &localName{state: handles.Dying, freed: true}
		m.order = append(m.order, burned)
	}
	if state == handles.Reserved {
		place = handles.NoPlace
	}
	m.names[h] = &localName{state: state, place: place, plain: plain}
	m.order = append(m.order, h)
	return true
}

// newest is the generation of an index's last claim, 0 if there was none.
func (m *localModel) newest(index uint32) (g uint32) {
	for m.names[handles.NewLocal(index, g+1)] != nil {
		g++
	}
	return g
}

// highest is the highest index that was ever claimed.
func (m *localModel) highest() (highest uint32) {
	for _, h := range m.order {
		highest = max(highest, h.Index())
	}
	return highest
}

func (m *localModel) kill(h handles.Local) (handles.Word, bool) {
	n := m.names[h]
	if n == nil || n.state == handles.Dying {
		return 0, false
	}
	old := handles.MakeWord(h.Generation(), n.state, n.place)
	n.state = handles.Dying
	return old, true
}

func (m *localModel) release(h handles.Local, frame uint64) {
	m.names[h].freed = true
	if h.Generation() == m.last {
		m.retired++
		return
	}
	m.pending = append(m.pending, pendingLocal{h + 1, frame})
}

func (m *localModel) unissue(h handles.Local) bool {
	n := m.names[h]
	if n == nil || n.state == handles.Dying {
		return false
	}
	n.state, n.place, n.freed = handles.Dying, handles.NoPlace, true
	switch {
	case h.Generation() == m.last:
		m.retired++
	case n.plain:
		m.burned = append(m.burned, h+1)
	default:
		m.returned = append(m.returned, h+1)
	}
	return true
}

// change is every step from one state to another.
func (m *localModel) change(h handles.Local, from, to handles.State, place uint32) bool {
	n := m.names[h]
	if n == nil || n.freed || n.state != from {
		return false
	}
	n.state, n.place = to, place
	return true
}

func (m *localModel) confirm(through uint64) (n int) {
	for len(m.pending) > 0 && m.pending[0].frame <= through {
		m.free = append(m.free, m.pending[0].next)
		m.pending = m.pending[1:]
		n++
	}
	return n
}

func (m *localModel) stats() handles.SpaceStats {
	s := handles.SpaceStats{Free: len(m.free) + len(m.returned), Pending: len(m.pending), Retired: m.retired}
	for _, n := range m.names {
		if !n.freed {
			s.Issued++
		}
	}
	if len(m.pending) > 0 {
		s.OldestPending = m.pending[0].frame
	}
	return s
}

// status is what a handle means, for a name and for anything else.
func (m *localModel) status(h handles.Local) handles.Status {
	newest := m.newest(h.Index())
	switch n := m.names[h]; {
	case n == nil, h.Generation() > newest:
		return handles.Invalid
	case n.state == handles.Alive:
		return handles.Live
	case n.state == handles.Reserved:
		return handles.NotSpawned
	}
	return handles.Stale
}

func (m *localModel) agree(t require.TestingT, s *handles.Locals) {
	require.NoError(t, s.Verify())
	require.Equal(t, m.stats(), s.Stats())
	require.Equal(t, len(m.pending), s.Pending())
	require.Equal(t, m.highest(), s.Highest())
	for _, h := range m.order {
		want := m.status(h)
		require.Equal(t, want, s.Status(h), "%v", h)
		require.Equal(t, want == handles.Live, s.Alive(h), "%v", h)
		if n := m.names[h]; !n.freed {
			require.Equal(t, handles.MakeWord(h.Generation(), n.state, n.place), s.Word(h.Index()), "%v", h)
		}
	}
}

// pick draws a name that was ever claimed, or any 64 bits.
func (m *localModel) pick(t *rapid.T) handles.Local {
	if len(m.order) == 0 || rapid.IntRange(0, 9).Draw(t, "forged") == 0 {
		return handles.NewLocal(rapid.Uint32Range(m.forge[0], m.forge[1]).Draw(t, "index"), rapid.Uint32Range(0, m.last+1).Draw(t, "generation"))
	}
	recent := min(len(m.order), 12) // the older ones are all dead
	return m.order[len(m.order)-1-rapid.IntRange(0, recent-1).Draw(t, "age")]
}

func TestLocalsAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, width := rapid.Uint32Range(0, 9).Draw(t, "limit"), rapid.IntRange(2, 4).Draw(t, "width")
		s := handles.NewLocals(handles.LocalsConfig{Limit: limit, GenerationBits: uint8(width)})
		frame := uint64(1)
		t.Repeat(localSteps(s, s, newLocalModel(limit, 1<<width-1), &frame))
	})
}

// localSteps are the steps that a space and its model take together. What the words arbitrate goes through
// another space over the same words.
func localSteps(s, words *handles.Locals, m *localModel, frame *uint64) map[string]func(*rapid.T) {
	place := rapid.Uint32Range(0, handles.NoPlace)
	change := func(from, to handles.State, act func(handles.Local, uint32) bool) func(t *rapid.T) {
		return func(t *rapid.T) {
			h, p := m.pick(t), place.Draw(t, "place")
			if n := m.names[h]; from == handles.Dying && n != nil && n.freed {
				t.Skip("a freed name may not be revived")
			}
			if to == handles.Reserved {
				p = handles.NoPlace
			}
			require.Equal(t, m.change(h, from, to, p), act(h, p))
		}
	}
	return map[string]func(*rapid.T){
		"issue": func(t *rapid.T) {
			p := place.Draw(t, "place")
			want, wantOK := m.claim(handles.Alive, p)
			h, ok := s.Issue(p)
			require.Equal(t, wantOK, ok)
			require.Equal(t, want, h)
		},
		"reserve": func(t *rapid.T) {
			want, wantOK := m.claim(handles.Reserved, handles.NoPlace)
			h, ok := s.Reserve()
			require.Equal(t, wantOK, ok)
			require.Equal(t, want, h)
		},
		"kill": func(t *rapid.T) {
			h := m.pick(t)
			want, wantOK := m.kill(h)
			old, ok := words.Kill(h)
			require.Equal(t, wantOK, ok, "%v", h)
			require.Equal(t, want, old)
		},
		"free": func(t *rapid.T) {
			h := m.pick(t)
			if n := m.names[h]; n == nil || n.freed || n.state != handles.Dying {
				t.Skip("only the dying are freed")
			}
			m.release(h, *frame)
			s.Free(h, *frame)
		},
		"free all": func(*rapid.T) {
			var dying []handles.Local
			for _, h := range m.order {
				if n := m.names[h]; !n.freed && n.state == handles.Dying {
					m.release(h, *frame)
					dying = append(dying, h)
				}
			}
			s.FreeAll(dying, *frame)
		},
		"unissue": func(t *rapid.T) {
			h := m.pick(t)
			require.Equal(t, m.unissue(h), s.Unissue(h))
		},
		"spawned":   change(handles.Reserved, handles.Alive, words.Spawned),
		"unspawned": change(handles.Alive, handles.Reserved, func(h handles.Local, _ uint32) bool { return words.Unspawned(h) }),
		"revive":    change(handles.Dying, handles.Alive, words.Revive),
		"revive reserved": change(handles.Dying, handles.Reserved, func(h handles.Local, _ uint32) bool {
			return words.ReviveReserved(h)
		}),
		"move": change(handles.Alive, handles.Alive, words.Move),
		"set place": func(t *rapid.T) {
			h, p := m.pick(t), place.Draw(t, "place")
			if n := m.names[h]; n != nil && n.state == handles.Reserved {
				t.Skip("a reserved name has no place")
			} else if n != nil && !n.freed {
				n.place = p
			}
			words.SetPlace(h, p)
		},
		"frame":           func(*rapid.T) { *frame++ },
		"confirm":         func(t *rapid.T) { require.Equal(t, m.confirm(1<<64-1), s.Confirm()) },
		"confirm through": func(t *rapid.T) { require.Equal(t, m.confirm(*frame-1), s.ConfirmThrough(*frame-1)) },
		"publish":         func(*rapid.T) { s.Publish() },
		"undo": func(t *rapid.T) { // claims taken back in reverse order leave Stats and order as they were
			before, last := s.Stats(), false
			var claims []handles.Local
			for range rapid.IntRange(1, 4).Draw(t, "claims") {
				claim, want := s.Reserve, handles.Local(0)
				if rapid.Bool().Draw(t, "issue") {
					claim = func() (handles.Local, bool) { return s.Issue(1) }
					want, _ = m.claim(handles.Alive, 1)
				} else {
					want, _ = m.claim(handles.Reserved, handles.NoPlace)
				}
				h, ok := claim()
				require.Equal(t, want, h)
				if ok {
					claims = append(claims, h)
					last = last || h.Generation() == m.last
				}
			}
			for _, h := range slices.Backward(claims) {
				require.True(t, m.unissue(h) && s.Unissue(h))
			}
			if !last {
				require.Equal(t, before, s.Stats())
			}
		},
		"": func(t *rapid.T) { m.agree(t, s) },
	}
}
