package handles_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/handles"
)

const here = 3 // the owner of the spaces under test

// netModel is what Nets should be: plain slices and maps.
type netModel struct {
	limit, last, fresh uint32
	returned, burned   []handles.Net // stacks: the last is the next
	free               []handles.Net
	pending            []pendingNet
	deaths             uint64
	retired            int
	own                map[handles.Net]*netName
	order              []handles.Net
	foreign            map[uint32]foreignName // by wire
}

type pendingNet struct {
	next       handles.Net
	seq, frame uint64
}

type netName struct {
	local uint32 // 0: dead
	plain bool   // never used but by claims that were taken back
}

type foreignName struct {
	seen, local, before uint32
}

func (m *netModel) issue(local uint32) (h handles.Net, ok bool) {
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
		h = handles.NewNet(here, m.fresh, 1)
		m.fresh++
		plain = true
	default:
		return 0, false
	}
	m.own[h] = &netName{local: local, plain: plain}
	m.order = append(m.order, h)
	return h, true
}

func (m *netModel) end(h handles.Net, undo bool, frame uint64) {
	n := m.own[h]
	if n == nil || n.local == 0 {
		return
	}
	n.local = 0
	switch next := h + 1<<32; {
	case h.Generation() == m.last:
		m.retired++
	case undo && n.plain:
		m.burned = append(m.burned, next)
	case undo:
		m.returned = append(m.returned, next)
	default:
		m.pending = append(m.pending, pendingNet{next, m.deaths, frame})
		m.deaths++
	}
}

func (m *netModel) confirm(ok func(pendingNet) bool) (n int) {
	for len(m.pending) > 0 && ok(m.pending[0]) {
		m.free = append(m.free, m.pending[0].next)
		m.pending = m.pending[1:]
		n++
	}
	return n
}

func (m *netModel) bind(h handles.Net, local uint32) bool {
	f := m.foreign[h.Wire()]
	if h.Owner() == here || h.Index() == 0 || h.Generation() == 0 || local == 0 || f.local != 0 || h.Generation() < f.seen {
		return false
	}
	m.foreign[h.Wire()] = foreignName{h.Generation(), local, f.seen}
	return true
}

func (m *netModel) lookUp(h handles.Net) (uint32, handles.Status) {
	if h.Owner() != here {
		f := m.foreign[h.Wire()]
		switch {
		case h.Generation() == 0 || h.Generation() > f.seen:
			return 0, handles.Invalid
		case h.Generation() < f.seen || f.local == 0:
			return 0, handles.Stale
		}
		return f.local, handles.Live
	}
	switch n := m.own[h]; {
	case n == nil:
		return 0, handles.Invalid
	case n.local == 0:
		return 0, handles.Stale
	default:
		return n.local, handles.Live
	}
}

func (m *netModel) stats() handles.SpaceStats {
	s := handles.SpaceStats{Free: len(m.free) + len(m.returned), Pending: len(m.pending), Retired: m.retired}
	for _, n := range m.own {
		if n.local != 0 {
			s.Issued++
		}
	}
	if len(m.pending) > 0 {
		s.OldestPending = m.pending[0].frame
	}
	return s
}

func (m *netModel) pick(t *rapid.T) handles.Net {
	if len(m.order) > 0 && rapid.IntRange(0, 3).Draw(t, "known") > 0 {
		recent := min(len(m.order), 12)
		return m.order[len(m.order)-1-rapid.IntRange(0, recent-1).Draw(t, "age")]
	}
	return handles.NewNet(rapid.Uint8Range(here-1, here+1).Draw(t, "owner"), rapid.Uint32Range(0, 5).Draw(t, "index"),
		rapid.Uint32Range(0, m.last+1).Draw(t, "generation"))
}

func (m *netModel) agree(t require.TestingT, n *handles.Nets) {
	require.NoError(t, n.Verify())
	require.Equal(t, m.stats(), n.Stats())
	require.Equal(t, len(m.pending), n.Pending())
	require.Equal(t, m.deaths, n.Deaths())
	bound := 0
	for wire, f := range m.foreign {
		for g := range m.last + 2 {
			h := handles.Net(wire) | handles.Net(g)<<32
			wantLocal, want := m.lookUp(h)
			local, status := n.Local(h)
			require.Equal(t, want, status, "%v", h)
			require.Equal(t, wantLocal, local, "%v", h)
		}
		h, local, ok := n.ByWire(wire)
		require.Equal(t, f.local != 0, ok)
		require.Equal(t, f.local, local)
		if ok {
			bound++
			require.Equal(t, f.seen, h.Generation())
		}
	}
	require.Equal(t, bound, n.Bound())
	for _, h := range m.order {
		wantLocal, want := m.lookUp(h)
		local, status := n.Local(h)
		require.Equal(t, want, status, "%v", h)
		require.Equal(t, wantLocal, local, "%v", h)
		if status == handles.Live {
			again, local, ok := n.ByWire(h.Wire())
			require.True(t, ok && again == h && local == wantLocal)
		}
	}
}

func TestNetsAgreeWithAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, width := rapid.Uint32Range(1, 9).Draw(t, "limit"), rapid.IntRange(2, 4).Draw(t, "width")
		n := handles.NewNets(here, handles.NetsConfig{Limit: limit, GenerationBits: uint8(width)})
		m := &netModel{limit: limit, last: 1<<width - 1, fresh: 1, own: map[handles.Net]*netName{}, foreign: map[uint32]foreignName{}}
		frame := uint64(1)
		local := rapid.Uint32Range(0, 4)
		live := func(t *rapid.T) handles.Net {
			h := m.pick(t)
			if _, status := m.lookUp(h); status != handles.Live {
				t.Skip("a debug build refuses to end what is not live")
			}
			return h
		}
		t.Repeat(map[string]func(*rapid.T){
			"issue": func(t *rapid.T) {
				to := local.Draw(t, "local") + 1
				want, wantOK := m.issue(to)
				h, ok := n.Issue(to)
				require.Equal(t, wantOK, ok)
				require.Equal(t, want, h)
			},
			"issue to nobody": func(t *rapid.T) {
				_, ok := n.Issue(0)
				require.False(t, ok)
			},
			"free": func(t *rapid.T) {
				h := live(t)
				if f := m.foreign[h.Wire()]; h.Owner() != here {
					m.foreign[h.Wire()] = foreignName{seen: f.seen}
				}
				m.end(h, false, frame)
				n.Free(h, frame)
			},
			"unissue": func(t *rapid.T) {
				h := live(t)
				if h.Owner() != here {
					t.Skip("not issued here")
				}
				m.end(h, true, frame)
				n.Unissue(h)
			},
			"undo": func(t *rapid.T) {
				before, last := n.Stats(), false
				var claims []handles.Net
				for range rapid.IntRange(1, 4).Draw(t, "claims") {
					want, wantOK := m.issue(1)
					h, ok := n.Issue(1)
					require.Equal(t, wantOK, ok)
					require.Equal(t, want, h)
					if ok {
						claims = append(claims, h)
						last = last || h.Generation() == m.last
					}
				}
				for _, h := range slices.Backward(claims) {
					m.end(h, true, frame)
					n.Unissue(h)
				}
				if !last {
					require.Equal(t, before, n.Stats())
				}
			},
			"bind": func(t *rapid.T) {
				h, to := m.pick(t), local.Draw(t, "local")
				require.Equal(t, m.bind(h, to), n.Bind(h, to))
			},
			"unbind": func(t *rapid.T) {
				h := m.pick(t)
				_, status := m.lookUp(h)
				want := status == handles.Live && h.Owner() != here
				if want {
					m.foreign[h.Wire()] = foreignName{seen: m.foreign[h.Wire()].before}
				}
				require.Equal(t, want, n.Unbind(h))
			},
			"frame":   func(*rapid.T) { frame++ },
			"confirm": func(t *rapid.T) { require.Equal(t, m.confirm(func(pendingNet) bool { return true }), n.Confirm()) },
			"confirm through": func(t *rapid.T) {
				require.Equal(t, m.confirm(func(p pendingNet) bool { return p.frame < frame }), n.ConfirmThrough(frame-1))
			},
			"confirm while": func(t *rapid.T) {
				upTo := m.deaths - min(m.deaths, uint64(rapid.IntRange(0, 4).Draw(t, "back")))
				frames := map[uint64]uint64{}
				for _, p := range m.pending {
					frames[p.seq] = p.frame
				}
				want := m.confirm(func(p pendingNet) bool { return p.seq < upTo })
				require.Equal(t, want, n.ConfirmWhile(func(seq, frame uint64) bool {
					require.Equal(t, frames[seq], frame)
					return seq < upTo
				}))
			},
			"": func(t *rapid.T) { m.agree(t, n) },
		})
	})
}

func TestConfirmWhileDropsNothingWhenItsCallbackPanics(t *testing.T) {
	n := handles.NewNets(here, handles.NetsConfig{})
	for range 3 {
		h, _ := n.Issue(1)
		n.Free(h, 1)
	}
	assert.PanicsWithValue(t, "enough", func() {
		n.ConfirmWhile(func(seq, _ uint64) bool {
			if seq == 2 {
				panic("enough")
			}
			return true
		})
	})
	require.NoError(t, n.Verify())
	assert.Equal(t, 3, n.Confirm())
}

// A reader never sees a name with another name's binding.
func TestNetLookUpsNeverMixTwoBindings(t *testing.T) {
	var ( // local indices say which generation they were bound with
		n       = handles.NewNets(here, handles.NetsConfig{Limit: 4})
		stop    atomic.Bool
		readers sync.WaitGroup
	)
	for range 4 {
		readers.Go(func() {
			for !stop.Load() {
				for index := range uint32(5) {
					for _, owner := range []uint8{here, here + 1} {
						h, local, ok := n.ByWire(handles.NewNet(owner, index, 0).Wire())
						if ok {
							assert.Equal(t, h.Generation(), local)
							_, status := n.Local(h)
							assert.NotEqual(t, handles.Invalid, status)
						}
					}
				}
			}
		})
	}
	var ids [4]handles.Net
	for i := range uint64(20_000) {
		for at, old := range ids {
			if old != 0 {
				n.Free(old, i)
				n.Free(handles.NewNet(here+1, old.Index(), old.Generation()), i)
			}
			n.Confirm()
			// The next name is known: the index that is free for longest, one life later.
			want := handles.NewNet(here, uint32(at)+1, old.Generation()+1)
			h, ok := n.Issue(want.Generation())
			if !ok || h != want || !n.Bind(handles.NewNet(here+1, h.Index(), h.Generation()), h.Generation()) {
				t.Errorf("issued %v, want %v", h, want)
			}
			ids[at] = h
		}
	}
	stop.Store(true)
	readers.Wait()
	require.NoError(t, n.Verify())
}

// A space may begin with any generation: what is below it was never anybody's.
func TestAGenerationBelowTheFirstIsInvalid(t *testing.T) {
	n := handles.NewNets(here, handles.NetsConfig{Limit: 4, FirstGeneration: 5})
	h, ok := n.Issue(9)
	require.True(t, ok)
	for generation, want := range map[uint32]handles.Status{0: handles.Invalid, 1: handles.Invalid, 4: handles.Invalid, 5: handles.Live, 6: handles.Invalid} {
		_, status := n.Local(handles.NewNet(here, h.Index(), generation))
		require.Equal(t, want, status, "generation %d", generation)
	}
	n.Free(h, 1)
	n.Confirm()
	heir, ok := n.Issue(9)
	require.True(t, ok)
	require.Equal(t, handles.NewNet(here, h.Index(), 6), heir)
	for generation, want := range map[uint32]handles.Status{4: handles.Invalid, 5: handles.Stale, 6: handles.Live} {
		_, status := n.Local(handles.NewNet(here, h.Index(), generation))
		require.Equal(t, want, status, "generation %d", generation)
	}
}
