package handles_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
)

// FuzzHandlesNeverAlias takes every byte as a step on spaces of a few indices with 3 bits of
// generation: no handle is ever given out twice, what died stays dead, and of an index at most one
// handle is alive.
func FuzzHandlesNeverAlias(f *testing.F) {
	f.Add([]byte{0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07})
	f.Add([]byte{0, 0, 1, 2, 3, 2, 3, 5, 0, 0, 4, 4, 6, 1, 8, 9, 12, 13, 10, 11})
	f.Add([]byte("\x00\x02\x03\x05\x00\x02\x03\x05\x00\x02\x03\x05\x00\x02\x03\x05\x00\x02\x03\x05\x00\x02\x03\x05\x00\x02\x03\x05\x00"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		w := newSmallWorld(t)
		for _, step := range steps {
			w.step(step)
		}
		w.check()
	})
}

// FuzzHandles takes every two bytes as a step on the three spaces, with 3 bits of generation and few indices, beside
// the models of the spaces: every handle is the one that the model foretells, every answer the model's, and so is what
// there is to see of all names ever given out.
func FuzzHandles(f *testing.F) {
	f.Add([]byte{})
	for _, mult := range []byte{1, 7, 29, 101} {
		var walk []byte
		x := mult
		for range 200 {
			x = x*5 + mult
			walk = append(walk, x^x>>3)
		}
		f.Add(walk)
	}
	var lives []byte // one index of each space through all its generations
	for range 9 {
		lives = append(lives, 0, 0, 2, 0, 3, 0, 5, 0, 16, 0, 17, 0, 20, 0, 21, 0, 23, 0)
	}
	f.Add(lives)
	f.Fuzz(func(t *testing.T, steps []byte) {
		w := newModelWorld(t)
		for i := 0; i+1 < len(steps) && i < 1024; i += 2 {
			w.step(steps[i], int(steps[i+1]))
			if i%128 == 0 {
				w.agree()
			}
		}
		w.agree()
	})
}

// modelWorld is the three spaces and what they should be.
type modelWorld struct {
	t      require.TestingT
	locals *handles.Locals
	local  *localModel
	global *globalModel
	record *handles.Globals
	nets   *handles.Nets
	net    *netModel
	frame  uint64
}

func newModelWorld(t require.TestingT) *modelWorld {
	const limit, width, last = 6, 3, 7
	return &modelWorld{
		t: t, frame: 1,
		locals: handles.NewLocals(handles.LocalsConfig{Limit: limit, GenerationBits: width}),
		local:  newLocalModel(limit, last),
		record: handles.NewGlobals(limit, width),
		global: &globalModel{limit: limit, last: last, generation: map[uint32]uint32{}, issued: map[uint32]bool{},
			free: map[uint32]bool{}, taken: map[uint32]bool{}, touched: map[uint32]bool{}, retired: map[uint32]bool{}},
		nets: handles.NewNets(here, handles.NetsConfig{Limit: limit, GenerationBits: width}),
		net:  &netModel{limit: limit, last: last, fresh: 1, own: map[handles.Net]*netName{}, foreign: map[uint32]foreignName{}},
	}
}

// pickLocal is a name that was given out, or a forged one.
func (w *modelWorld) pickLocal(pick int) handles.Local {
	if n := len(w.local.order); n > 0 && pick < 224 {
		return w.local.order[n-1-pick%min(n, 12)]
	}
	return handles.NewLocal(uint32(pick%9), uint32(pick/9%9))
}

func (w *modelWorld) pickNet(pick int) handles.Net {
	if n := len(w.net.order); n > 0 && pick < 160 {
		return w.net.order[n-1-pick%min(n, 12)]
	}
	return handles.NewNet(uint8(here-1+pick%3), uint32(pick/3%6), uint32(pick/18%9))
}

// claimed compares a claim with what the model foretold.
func (w *modelWorld) claimed(want handles.Local, wantOK bool, h handles.Local, ok bool) {
	require.Equal(w.t, wantOK, ok)
	require.Equal(w.t, want, h)
}

// step does what one byte says to what another picks.
func (w *modelWorld) step(what byte, pick int) {
	switch what % 32 {
	case 0, 1:
		want, wantOK := w.local.claim(handles.Alive, uint32(pick))
		h, ok := w.locals.Issue(uint32(pick))
		w.claimed(want, wantOK, h, ok)
	case 2:
		h := w.pickLocal(pick)
		want, wantOK := w.local.kill(h)
		old, ok := w.locals.Kill(h)
		require.Equal(w.t, wantOK, ok, "%v", h)
		require.Equal(w.t, want, old)
	case 3:
		h := w.pickLocal(pick)
		if n := w.local.names[h]; n != nil && !n.freed && n.state == handles.Dying {
			w.local.release(h, w.frame)
			w.locals.Free(h, w.frame)
		}
	case 4:
		want, wantOK := w.local.claim(handles.Reserved, handles.NoPlace)
		h, ok := w.locals.Reserve()
		w.claimed(want, wantOK, h, ok)
	case 5:
		require.Equal(w.t, w.local.confirm(w.frame), w.locals.ConfirmThrough(w.frame))
	case 6:
		w.frame++
		w.locals.Publish()
	case 7:
		require.Equal(w.t, w.local.confirm(w.frame-1), w.locals.ConfirmThrough(w.frame-1))
	case 8:
		h := w.pickLocal(pick)
		require.Equal(w.t, w.local.unissue(h), w.locals.Unissue(h))
	case 9:
		h := w.pickLocal(pick)
		require.Equal(w.t, w.local.change(h, handles.Reserved, handles.Alive, 3), w.locals.Spawned(h, 3))
	case 10:
		h := w.pickLocal(pick)
		require.Equal(w.t, w.local.change(h, handles.Alive, handles.Reserved, handles.NoPlace), w.locals.Unspawned(h))
	case 11:
		h := w.pickLocal(pick)
		if n := w.local.names[h]; n == nil || !n.freed {
			require.Equal(w.t, w.local.change(h, handles.Dying, handles.Alive, 4), w.locals.Revive(h, 4))
		}
	case 12:
		h := w.pickLocal(pick)
		require.Equal(w.t, w.local.change(h, handles.Alive, handles.Alive, 5), w.locals.Move(h, 5))
	case 13:
		h := handles.NewLocal(uint32(pick%8), uint32(pick/8%10))
		state := handles.Alive
		if pick >= 128 {
			state = handles.Reserved
		}
		require.Equal(w.t, w.local.claimName(h, state, 6), w.locals.Claim(h, state, 6), "%v", h)
	case 14, 15, 16:
		prefer := uint32(pick % 9)
		require.Equal(w.t, w.global.issue(prefer), w.record.Issue(prefer))
	case 17, 18:
		if i, ok := w.pickRecord(pick); ok {
			w.record.Free(i)
			w.global.end(i, false)
		}
	case 19:
		if i, ok := w.pickRecord(pick); ok {
			w.record.Unissue(i)
			w.global.end(i, true)
		}
	case 20, 22:
		want, wantOK := w.net.issue(uint32(pick + 1))
		h, ok := w.nets.Issue(uint32(pick + 1))
		require.Equal(w.t, wantOK, ok)
		require.Equal(w.t, want, h)
	case 21, 24:
		h := w.pickNet(pick)
		if _, status := w.net.lookUp(h); status == handles.Live { // a debug build refuses to end what is not live
			if f := w.net.foreign[h.Wire()]; h.Owner() != here {
				w.net.foreign[h.Wire()] = foreignName{seen: f.seen}
			}
			w.net.end(h, false, w.frame)
			w.nets.Free(h, w.frame)
		}
	case 23:
		through := func(p pendingNet) bool { return p.frame <= w.frame }
		require.Equal(w.t, w.net.confirm(through), w.nets.ConfirmThrough(w.frame))
	case 25:
		h := w.pickNet(pick)
		if _, status := w.net.lookUp(h); status == handles.Live && h.Owner() == here {
			w.net.end(h, true, w.frame)
			w.nets.Unissue(h)
		}
	case 26, 27:
		h := w.pickNet(pick)
		require.Equal(w.t, w.net.bind(h, uint32(pick%4)), w.nets.Bind(h, uint32(pick%4)), "%v", h)
	case 28:
		h := w.pickNet(pick)
		f, bound := w.net.foreign[h.Wire()]
		bound = bound && h.Owner() != here && f.local != 0 && f.seen == h.Generation()
		require.Equal(w.t, bound, w.nets.Unbind(h), "%v", h)
		if bound {
			w.net.foreign[h.Wire()] = foreignName{seen: f.before}
		}
	case 29:
		acked := func(seq, frame uint64) bool { return seq%5 != uint64(pick%5) }
		want := w.net.confirm(func(p pendingNet) bool { return acked(p.seq, p.frame) })
		require.Equal(w.t, want, w.nets.ConfirmWhile(acked))
	default:
		w.frame++
	}
}

func (w *modelWorld) pickRecord(pick int) (uint32, bool) {
	issued := slices.Sorted(maps.Keys(w.global.issued))
	if len(issued) == 0 {
		return 0, false
	}
	return issued[pick%len(issued)], true
}

func (w *modelWorld) agree() {
	w.local.agree(w.t, w.locals)
	w.net.agree(w.t, w.nets)
	require.NoError(w.t, w.record.Verify())
	g := w.global
	require.Equal(w.t, handles.SpaceStats{Issued: len(g.issued), Free: len(g.free), Retired: len(g.retired)}, w.record.Stats())
	for i := range g.limit + 2 {
		require.Equal(w.t, g.gen(i), w.record.Generation(i))
	}
}

type smallWorld struct {
	t       require.TestingT
	locals  *handles.Locals
	globals *handles.Globals
	nets    *handles.Nets
	frame   uint64

	local  []handles.Local // ever given out
	freed  map[handles.Local]bool
	dead   map[handles.Local]bool
	record []uint32 // issued
	names  map[handles.Global]bool
	net    []handles.Net // live
	ended  map[handles.Net]bool
	known  map[handles.Net]bool
}

func newSmallWorld(t require.TestingT) *smallWorld {
	return &smallWorld{t: t,
		locals:  handles.NewLocals(handles.LocalsConfig{Limit: 5, GenerationBits: 3}),
		globals: handles.NewGlobals(5, 3),
		nets:    handles.NewNets(here, handles.NetsConfig{Limit: 5, GenerationBits: 3}),
		freed:   map[handles.Local]bool{}, dead: map[handles.Local]bool{},
		names: map[handles.Global]bool{}, ended: map[handles.Net]bool{}, known: map[handles.Net]bool{},
	}
}

// step does what the low half of a byte says, to what the high half picks.
func (w *smallWorld) step(b byte) {
	pick := int(b >> 4)
	switch b & 15 {
	case 0:
		w.gave(w.locals.Issue(uint32(pick)))
	case 1:
		w.gave(w.locals.Reserve())
	case 2:
		if h := w.pickLocal(pick); h != 0 {
			_, won := w.locals.Kill(h)
			require.False(w.t, won && w.dead[h], "%v was killed twice", h)
			w.dead[h] = w.dead[h] || won
		}
	case 3:
		if h := w.pickLocal(pick); w.dead[h] && !w.freed[h] {
			w.freed[h] = true
			w.locals.Free(h, w.frame)
		}
	case 4:
		if h := w.pickLocal(pick); h != 0 && w.locals.Unissue(h) {
			require.False(w.t, w.dead[h])
			w.dead[h], w.freed[h] = true, true
		}
	case 5:
		w.locals.ConfirmThrough(w.frame)
		w.nets.Confirm()
	case 6:
		w.frame++
		w.locals.Publish()
	case 7:
		h := w.pickLocal(pick)
		_ = w.locals.Spawned(h, 1) || w.locals.Unspawned(h) || w.locals.Move(h, 2)
	case 8:
		if i := w.globals.Issue(uint32(pick)); i != 0 {
			require.False(w.t, w.names[w.globals.Handle(i)], "%v was given out twice", w.globals.Handle(i))
			w.names[w.globals.Handle(i)] = true
			w.record = append(w.record, i)
		}
	case 9, 10:
		if len(w.record) > 0 {
			at := pick % len(w.record)
			i := w.record[at]
			w.record = append(w.record[:at], w.record[at+1:]...)
			h := w.globals.Handle(i)
			if b&15 == 9 {
				w.globals.Free(i)
			} else {
				w.globals.Unissue(i)
			}
			require.NotEqual(w.t, h, w.globals.Handle(i))
		}
	case 11:
		if h, ok := w.nets.Issue(uint32(pick) + 1); ok {
			require.False(w.t, w.known[h], "%v was given out twice", h)
			w.known[h] = true
			w.net = append(w.net, h)
		}
	case 12, 13:
		if len(w.net) > 0 {
			at := pick % len(w.net)
			h := w.net[at]
			w.net = append(w.net[:at], w.net[at+1:]...)
			w.ended[h] = true
			if b&15 == 12 {
				w.nets.Free(h, w.frame)
			} else {
				w.nets.Unissue(h)
			}
		}
	case 14:
		h := w.pickLocal(pick)
		if w.dead[h] && !w.freed[h] && w.locals.Revive(h, 3) {
			delete(w.dead, h) // an undone kill is none
		}
	case 15:
		w.forged(pick)
	}
}

func (w *smallWorld) pickLocal(back int) handles.Local {
	if len(w.local) == 0 {
		return 0
	}
	return w.local[len(w.local)-1-back%len(w.local)]
}

func (w *smallWorld) gave(h handles.Local, ok bool) {
	if !ok {
		return
	}
	for _, old := range w.local {
		require.NotEqual(w.t, old, h, "%v was given out twice", h)
		require.False(w.t, old.Index() == h.Index() && !w.freed[old], "%v was given out while %v was in use", h, old)
	}
	require.False(w.t, h.IsZero())
	w.local = append(w.local, h)
}

// forged tries handles that were never given out.
func (w *smallWorld) forged(pick int) {
	for _, h := range []handles.Local{handles.NewLocal(uint32(pick), 7), handles.NewLocal(uint32(pick), 0), math.MaxUint64} {
		if w.locals.Status(h) == handles.Invalid {
			_, won := w.locals.Kill(h)
			require.False(w.t, won || w.locals.Alive(h) || w.locals.Move(h, 1) || w.locals.Spawned(h, 1))
		}
	}
}

func (w *smallWorld) check() {
	alive := map[uint32]handles.Local{}
	for _, h := range w.local {
		status := w.locals.Status(h)
		require.Equal(w.t, w.dead[h], status == handles.Stale, "%v is %v", h, status)
		if status != handles.Stale {
			require.Zero(w.t, alive[h.Index()], "%v and %v live at once", alive[h.Index()], h)
			alive[h.Index()] = h
		}
	}
	for h := range w.known {
		_, status := w.nets.Local(h)
		require.Equal(w.t, w.ended[h], status == handles.Stale)
	}
	require.NoError(w.t, w.locals.Verify())
	require.NoError(w.t, w.globals.Verify())
	require.NoError(w.t, w.nets.Verify())
	require.Equal(w.t, len(alive), w.locals.Stats().Issued-w.dying())
	require.Equal(w.t, len(w.record), w.globals.Stats().Issued)
	require.Equal(w.t, len(w.net), w.nets.Stats().Issued)
}

func (w *smallWorld) dying() (n int) {
	for h := range w.dead {
		if !w.freed[h] {
			n++
		}
	}
	return n
}
