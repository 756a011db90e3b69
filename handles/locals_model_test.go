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
	limit, last uint32
	fresh       uint32
	returned    []handles.Local // stacks: the last is the next
	burned      []handles.Local
	free        []handles.Local
	pending     []pendingLocal
	retired     int
	names       map[handles.Local]*localName
	order       []handles.Local // of names, for drawing one
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
	return &localModel{limit: limit, last: last, fresh: 1, names: map[handles.Local]*localName{}}
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
	case m.fresh <= m.limit:
		h = handles.NewLocal(m.fresh, 1)
		m.fresh++
		plain = true
	default:
		return 0, false
	}
	m.names[h] = &localName{state: state, place: place, plain: plain}
	m.order = append(m.order, h)
	return h, true
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
	newest := uint32(0)
	for g := uint32(1); m.names[handles.NewLocal(h.Index(), g)] != nil; g++ {
		newest = g
	}
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
		return handles.NewLocal(rapid.Uint32Range(0, m.limit+2).Draw(t, "index"), rapid.Uint32Range(0, m.last+1).Draw(t, "generation"))
	}
	recent := min(len(m.order), 12) // the older ones are all dead
	return m.order[len(m.order)-1-rapid.IntRange(0, recent-1).Draw(t, "age")]
}

func TestLocalsAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, width := rapid.Uint32Range(0, 9).Draw(t, "limit"), rapid.IntRange(2, 4).Draw(t, "width")
		s := handles.NewLocals(handles.LocalsConfig{Limit: limit, GenerationBits: uint8(width)})
		m, frame := newLocalModel(limit, 1<<width-1), uint64(1)
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
		t.Repeat(map[string]func(*rapid.T){
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
				old, ok := s.Kill(h)
				require.Equal(t, wantOK, ok, "%v", h)
				require.Equal(t, want, old)
			},
			"free": func(t *rapid.T) {
				h := m.pick(t)
				if n := m.names[h]; n == nil || n.freed || n.state != handles.Dying {
					t.Skip("only the dying are freed")
				}
				m.release(h, frame)
				s.Free(h, frame)
			},
			"free all": func(*rapid.T) {
				var dying []handles.Local
				for _, h := range m.order {
					if n := m.names[h]; !n.freed && n.state == handles.Dying {
						m.release(h, frame)
						dying = append(dying, h)
					}
				}
				s.FreeAll(dying, frame)
			},
			"unissue": func(t *rapid.T) {
				h := m.pick(t)
				require.Equal(t, m.unissue(h), s.Unissue(h))
			},
			"spawned":   change(handles.Reserved, handles.Alive, s.Spawned),
			"unspawned": change(handles.Alive, handles.Reserved, func(h handles.Local, _ uint32) bool { return s.Unspawned(h) }),
			"revive":    change(handles.Dying, handles.Alive, s.Revive),
			"revive reserved": change(handles.Dying, handles.Reserved, func(h handles.Local, _ uint32) bool {
				return s.ReviveReserved(h)
			}),
			"move": change(handles.Alive, handles.Alive, s.Move),
			"set place": func(t *rapid.T) {
				h, p := m.pick(t), place.Draw(t, "place")
				if n := m.names[h]; n != nil && n.state == handles.Reserved {
					t.Skip("a reserved name has no place")
				} else if n != nil && !n.freed {
					n.place = p
				}
				s.SetPlace(h, p)
			},
			"frame":           func(*rapid.T) { frame++ },
			"confirm":         func(t *rapid.T) { require.Equal(t, m.confirm(1<<64-1), s.Confirm()) },
			"confirm through": func(t *rapid.T) { require.Equal(t, m.confirm(frame-1), s.ConfirmThrough(frame-1)) },
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
		})
	})
}
