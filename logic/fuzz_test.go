package logic_test

import (
	"maps"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// FuzzLifecycle takes every two bytes as something to do with an engine, in all the ways there are: operations that
// succeed and that fail, wishes of systems, deaths from outside, reservations, peers, going back. Plain maps say what
// must be alive; no name is ever given out twice.
func FuzzLifecycle(f *testing.F) {
	for config := range byte(len(lifeConfigs)) {
		f.Add([]byte{config})
		for _, mult := range []byte{3, 11, 29, 101} {
			walk := []byte{config}
			x := mult
			for range 240 {
				x = x*5 + mult
				walk = append(walk, x^x>>3)
			}
			f.Add(walk)
		}
		slot := []byte{config} // one slot, again and again
		for range 20 {
			slot = append(slot, lifeSpawn, 0, lifeNet, 0, lifeStep, 0, lifeOutside, 0, lifeStep, 0, lifeStep, 0, lifeStep, 0)
		}
		f.Add(slot)
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) == 0 {
			return
		}
		l := newLife(t, lifeConfigs[int(steps[0])%len(lifeConfigs)])
		for i := 1; i+1 < len(steps) && i < 600; i += 2 {
			l.do(steps[i]%lifeKinds, int(steps[i+1]))
			if l.t.Failed() {
				return
			}
		}
		l.end()
	})
}

var lifeConfigs = []registry.Config{
	{MaxEntities: 24}, {MaxEntities: 24, Deterministic: true},
	{TemporalFrames: 8}, // with room: what is reserved later takes room from frames that are simulated again
}

const (
	lifeSpawn byte = iota
	lifeFail
	lifeOutside
	lifeKill
	lifeFrameKill
	lifeReserve
	lifeFill
	lifeStep
	lifeNet
	lifePeer
	lifeParent
	lifeLater
	lifeTag
	lifeBatch
	lifeReset
	lifeForged
	lifeActive
	lifeBack

	lifeKinds
)

// lifeState is what an operation that fails takes back.
type lifeState struct {
	alive, reserved map[handles.Local]bool
	parent          map[handles.Local]handles.Local
	net             map[handles.Local]handles.Net
}

func (s *lifeState) clone() lifeState {
	return lifeState{maps.Clone(s.alive), maps.Clone(s.reserved), maps.Clone(s.parent), maps.Clone(s.net)}
}

// life is a world and what must be alive in it.
type life struct {
	*world
	lifeState
	seen    []handles.Local // ever given out
	issued  map[handles.Local]bool
	nets    map[handles.Net]bool // ever given out
	peers   map[uint32]bool
	hands   map[uint64][]func(f *logic.Frame, again bool) // what the system does, by frame
	now     []func(f *logic.Frame, again bool)            // and in the next one
	tickets []lifeTicket
	ring    bool
	last    uint64 // frame
}

// lifeTicket is an operation and how it must end.
type lifeTicket struct {
	*logic.Ticket
	is error // nil: must succeed
}

func newLife(t *testing.T, rc registry.Config) *life {
	l := &life{
		world:     newWorldIn(t, rc, func(c *logic.Config) { c.Workers = 1 }),
		lifeState: lifeState{map[handles.Local]bool{}, map[handles.Local]bool{}, map[handles.Local]handles.Local{}, map[handles.Local]handles.Net{}},
		issued:    map[handles.Local]bool{}, nets: map[handles.Net]bool{}, peers: map[uint32]bool{},
		hands: map[uint64][]func(*logic.Frame, bool){}, ring: rc.TemporalFrames > 0,
	}
	_, err := l.e.AddSystem(logic.Physics, "hands", func(f *logic.Frame) {
		now := f.FrameNumber()
		again := now <= l.last
		if !again {
			l.last = now
			l.hands[now], l.now = l.now, nil
			delete(l.hands, now-16)
		}
		for _, act := range l.hands[now] {
			act(f, again)
		}
	})
	require.NoError(t, err)
	return l
}

// pick is a name among the last that were given out.
func (l *life) pick(pick int) handles.Local {
	if len(l.seen) == 0 {
		return 0
	}
	return l.seen[len(l.seen)-1-pick%min(len(l.seen), 20)]
}

// issue notes a name that was given out.
func (l *life) issue(h handles.Local) {
	require.False(l.t, h.IsZero())
	require.False(l.t, l.issued[h], "%v was given out twice", h)
	l.issued[h] = true
	l.seen = append(l.seen, h)
}

// refused checks that births were refused for a reason.
func (l *life) refused(n int, err error) bool {
	if err == nil {
		require.LessOrEqual(l.t, len(l.alive)+len(l.reserved)+n, l.r.Config().MaxEntities)
		return false
	}
	require.ErrorIs(l.t, err, registry.ErrExhausted)
	return true
}

func (l *life) living(h handles.Local) bool { return l.alive[h] || l.reserved[h] }

// death ends a name and those below it.
func (l *life) death(h handles.Local) {
	delete(l.alive, h)
	delete(l.reserved, h)
	delete(l.parent, h)
	delete(l.net, h)
	for child, parent := range l.parent {
		if parent == h {
			l.death(child)
		}
	}
}

// enqueue asks for an operation that must end with an error, or with none.
func (l *life) enqueue(is error, fn func(*registry.Window) error) {
	t, err := l.e.Enqueue(fn)
	require.NoError(l.t, err)
	l.tickets = append(l.tickets, lifeTicket{t, is})
}

func (l *life) spawnNow(win *registry.Window) {
	h, err := l.class.Spawn(win, thing{})
	if !l.refused(1, err) {
		l.issue(h)
		l.alive[h] = true
	}
}

func (l *life) do(what byte, pick int) {
	h := l.pick(pick)
	switch what {
	case lifeSpawn:
		l.enqueue(nil, func(win *registry.Window) error { l.spawnNow(win); return nil })
	case lifeFail:
		l.fail(h, pick)
	case lifeOutside:
		require.Equal(l.t, l.living(h), l.r.Destroy(h) == nil)
		require.False(l.t, l.r.Alive(h))
		if l.living(h) {
			l.update(func(*registry.Window) error { return nil }) // those below it die, too
			l.death(h)
		}
	case lifeKill:
		l.enqueue(nil, func(win *registry.Window) error {
			require.Equal(l.t, l.living(h), win.Destroy(h) == nil)
			l.death(h)
			return nil
		})
	case lifeFrameKill:
		l.now = append(l.now, func(f *logic.Frame, again bool) {
			err := f.Destroy(h)
			if !again {
				require.Equal(l.t, l.living(h), err == nil)
				l.death(h)
			}
		})
	case lifeReserve:
		h, err := l.r.Reserve()
		if !l.refused(1, err) {
			l.issue(h)
			l.reserved[h] = true
		}
	case lifeFill:
		l.enqueue(nil, func(win *registry.Window) error {
			err := l.class.SpawnReserved(win, h, thing{})
			require.Equal(l.t, l.reserved[h], err == nil)
			if err == nil {
				delete(l.reserved, h)
				l.alive[h] = true
			}
			return nil
		})
	case lifeStep:
		l.frame()
	case lifeNet:
		l.enqueue(nil, func(win *registry.Window) error {
			n, err := win.AssignNet(h)
			require.Equal(l.t, l.alive[h], err == nil)
			if err == nil && l.net[h] != n {
				require.Zero(l.t, l.net[h])
				require.False(l.t, l.nets[n], "%v was given out twice", n)
				l.net[h], l.nets[n] = n, true
			}
			return nil
		})
	case lifePeer:
		id := uint32(pick % 3)
		switch pick / 3 % 4 {
		case 0:
			require.Equal(l.t, !l.peers[id], l.e.AddPeer(id) == nil)
			l.peers[id] = true
		case 1:
			require.Equal(l.t, l.peers[id], l.e.DropPeer(id) == nil)
			delete(l.peers, id)
		default:
			frame := l.e.FrameNumber() + uint64(pick/12%4)
			require.Equal(l.t, l.peers[id] && frame <= l.e.FrameNumber(), l.e.Ack(id, frame) == nil)
		}
	case lifeParent:
		p := l.pick(pick / 7)
		l.enqueue(nil, func(win *registry.Window) error {
			if registry.SetParent(win, h, p) == nil {
				require.True(l.t, l.alive[h] && (p.IsZero() || l.alive[p]))
				l.parent[h] = p
			}
			return nil
		})
	case lifeLater:
		l.now = append(l.now, func(f *logic.Frame, again bool) {
			h, err := l.class.SpawnLater(f.Frame, thing{})
			if !again && !l.refused(1, err) {
				l.issue(h)
				l.reserved[h] = true
			}
			if err != nil {
				return
			}
			f.Defer(func(*registry.Window) error { // the next window has just given it its entity
				if l.reserved[h] {
					delete(l.reserved, h)
					l.alive[h] = true
				}
				return nil
			})
		})
	case lifeTag:
		l.enqueue(nil, func(win *registry.Window) error {
			require.Equal(l.t, l.alive[h], registry.Add(win, h, tag{pick}) == nil)
			if pick%2 == 0 {
				require.Equal(l.t, l.alive[h], registry.Remove[tag](win, h) == nil)
			}
			return nil
		})
	case lifeBatch:
		l.update(func(win *registry.Window) error {
			n := pick % 6
			hs, err := l.class.SpawnBatch(win, n, nil)
			if l.refused(n, err) {
				return nil
			}
			for _, h := range hs {
				l.issue(h)
				l.alive[h] = true
			}
			return nil
		})
	case lifeReset:
		if pick%8 != 0 {
			return
		}
		l.frame() // nothing is put off over a reset
		l.frame()
		l.update(func(win *registry.Window) error { return win.Reset() })
		clear(l.alive)
		clear(l.reserved)
		clear(l.parent)
		clear(l.net)
	case lifeForged:
		forged := handles.NewLocal(uint32(pick%40), uint32(pick/40+3))
		if l.issued[forged] {
			return
		}
		before := l.r.Stats()
		_, err := l.r.Resolve(forged)
		require.Error(l.t, err)
		if !l.r.Alive(forged) { // one that a failed callback had: nobody was told of it
			require.Error(l.t, l.r.Destroy(forged))
		}
		require.Equal(l.t, before.Live, l.r.Stats().Live)
	case lifeActive:
		l.now = append(l.now, func(f *logic.Frame, again bool) {
			err := registry.SetActive(f, h, pick%2 == 0)
			if !again {
				require.Equal(l.t, l.alive[h], err == nil, "%v: %v", h, err)
			}
		})
	case lifeBack:
		if now := l.e.FrameNumber(); l.ring && now > 0 {
			_ = l.e.Rollback(now - min(now, uint64(pick%7)))
		}
	}
}

// fail asks for an operation that does a bit of everything and is taken back.
func (l *life) fail(h handles.Local, pick int) {
	is := errTest
	if pick%3 == 2 {
		is = registry.ErrGoexit
	}
	other := l.pick(pick / 3)
	l.enqueue(is, func(win *registry.Window) error {
		before := l.clone()
		l.spawnNow(win)
		_ = registry.Add(win, h, tag{1})
		_ = registry.SetParent(win, h, l.pick(0))
		if n, err := win.AssignNet(h); err == nil && before.net[h] != n {
			require.False(l.t, l.nets[n], "%v was given out twice", n)
			l.nets[n] = true
		}
		_ = l.class.SpawnReserved(win, h, thing{})
		_ = win.Destroy(other)
		_ = registry.Set(win, h, value{pick})
		l.lifeState = before
		switch pick % 3 {
		case 0:
			return errTest
		case 1:
			panic(errTest)
		}
		runtime.Goexit()
		return nil
	})
}

// frame runs a frame and asks what became of the operations.
func (l *life) frame() {
	due := l.tickets
	l.tickets = nil
	_ = l.e.Step()
	for _, t := range due {
		select {
		case <-t.Done():
		default:
			require.FailNow(l.t, "an operation without an answer")
		}
		if t.is == nil {
			require.NoError(l.t, t.Err())
		} else {
			require.ErrorIs(l.t, t.Err(), t.is)
		}
	}
}

// end compares all names ever given out with what they should name.
func (l *life) end() {
	l.frame()
	l.frame()
	require.Empty(l.t, l.told())
	for _, h := range l.seen {
		if l.r.Alive(h) != l.alive[h] {
			l.t.Fatalf("%v alive: %v, want %v", h, l.r.Alive(h), l.alive[h])
		}
	}
	for h := range l.alive {
		n, err := l.r.NetOf(h)
		require.NoError(l.t, err)
		require.Equal(l.t, l.net[h], n)
	}
	for n := range l.nets {
		h, err := l.r.ResolveNet(n)
		require.Equal(l.t, err == nil, l.net[h] == n && l.alive[h], "%v", n)
	}
	require.Equal(l.t, len(l.alive), l.r.Stats().Live)
}
