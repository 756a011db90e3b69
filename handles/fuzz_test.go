package handles_test

import (
	"math"
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
