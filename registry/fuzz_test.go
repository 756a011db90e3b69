package registry_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// FuzzHandleBits gives any 64 bits to every function that takes a handle: no panic, and
// nobody is touched whom they do not name.
func FuzzHandleBits(f *testing.F) {
	for _, bits := range []uint64{
		0, 1, 1 << 32, math.MaxUint64, math.MaxUint32, math.MaxUint32 << 32,
		1<<32 | 1, 2<<32 | 1, 3<<32 | 1, 1<<32 | 2, 5<<32 | 7, 1<<32 | 1<<24 | 1, 4096<<32 | 1,
		uint64(handles.NewNet(9, 9, 4)), uint64(handles.NewNet(9, 9, 3)), uint64(handles.NewNet(2, 1, 1)),
	} {
		f.Add(bits, false)
		f.Add(bits, true)
	}
	f.Fuzz(func(t *testing.T, bits uint64, deterministic bool) {
		k := newWorld(t, registry.Config{MaxEntities: 8, Owner: 2, Deterministic: deterministic})
		var hs []handles.Local
		var n handles.Net
		k.update(func(w *registry.Window) {
			for range 4 {
				hs = append(hs, k.spawn(w))
			}
			n, _ = w.AssignNet(hs[0])
			require.NoError(t, w.BindNet(hs[1], handles.NewNet(9, 9, 4)))
			require.NoError(t, w.Destroy(hs[2]))
			w.ProcessDeferredDestructions()
		})
		res, err := k.r.Reserve()
		require.NoError(t, err)
		require.NoError(t, k.r.Destroy(hs[3]))
		k.update(func(*registry.Window) {})
		before := k.r.Stats()
		if uint32(bits) != 9<<24|9 { // the bound name, which anyBits does not know
			anyBits(t, k, bits, func(h handles.Local) bool { return h == hs[0] || h == hs[1] || h == res }, n)
		}
		require.Equal(t, before, k.r.Stats())
		k.update(func(w *registry.Window) {
			for _, h := range hs[:2] {
				p, err := registry.Peek[self](w, h)
				require.NoError(t, err)
				require.Equal(t, h, p.H)
				q, err := registry.Peek[health](w, h)
				require.NoError(t, err)
				require.Zero(t, q.Points)
			}
			require.NoError(t, k.soldiers.SpawnReserved(w, res, soldier{}))
		})
	})
}

// namesake runs operations read from bytes and keeps every name that was ever given out.
type namesake struct {
	*world
	e        *engine
	data     []byte
	seen     []handles.Local
	issued   map[handles.Local]bool
	alive    map[handles.Local]bool
	reserved map[handles.Local]bool
	parent   map[handles.Local]handles.Local
	net      map[handles.Local]handles.Net
	globals  map[handles.Global]handles.Local
	nets     map[handles.Net]handles.Local
}

func (s *namesake) next() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

// pick chooses among the last handles issued.
func (s *namesake) pick() handles.Local {
	b := int(s.next())
	if len(s.seen) == 0 {
		return 0
	}
	return s.seen[max(0, len(s.seen)-1-b%24)]
}

func (s *namesake) issue(h handles.Local) {
	require.False(s.t, h.IsZero())
	require.False(s.t, s.issued[h], "%v was issued twice", h)
	s.issued[h] = true
	s.seen = append(s.seen, h)
}

// birth notes that h is alive, with a record that nobody ever had.
func (s *namesake) birth(h handles.Local) {
	s.alive[h] = true
	s.record(h)
}

func (s *namesake) record(h handles.Local) {
	g, err := s.r.Resolve(h)
	require.NoError(s.t, err)
	require.Zero(s.t, s.globals[g], "record %v was %v's", g, s.globals[g])
	s.globals[g] = h
}

func (s *namesake) death(h handles.Local) {
	delete(s.alive, h)
	delete(s.reserved, h)
	delete(s.net, h)
	delete(s.parent, h)
	for c, p := range s.parent {
		if p == h {
			s.death(c)
		}
	}
}

func (s *namesake) living(h handles.Local) bool { return s.alive[h] || s.reserved[h] }

// refused says whether n births were refused, and checks that there was a reason to: no room, or
// more names pending than may be.
func (s *namesake) refused(n int, err error) bool {
	most := s.r.Config().MaxEntities
	if len(s.alive)+len(s.reserved)+n > most {
		require.ErrorIs(s.t, err, registry.ErrExhausted)
	} else if s.r.Stats().Local.Pending <= most {
		require.NoError(s.t, err)
	} else if err != nil {
		require.ErrorIs(s.t, err, registry.ErrExhausted)
	}
	return err != nil
}

// step does one operation.
func (s *namesake) step() {
	switch s.next() % 17 {
	case 0, 1:
		s.update(func(w *registry.Window) {
			h, err := s.soldiers.Spawn(w, soldier{})
			if s.refused(1, err) {
				return
			}
			require.NoError(s.t, registry.Set(w, h, self{h}))
			s.issue(h)
			s.birth(h)
		})
	case 2:
		h, err := s.r.Reserve()
		if s.refused(1, err) {
			return
		}
		s.issue(h)
		s.reserved[h] = true
	case 3:
		h := s.pick()
		s.update(func(w *registry.Window) {
			err := s.soldiers.SpawnReserved(w, h, soldier{Self: self{h}})
			require.Equal(s.t, s.reserved[h], err == nil)
			if err == nil {
				delete(s.reserved, h)
				s.birth(h)
			}
		})
	case 4:
		h := s.pick()
		require.Equal(s.t, s.living(h), s.r.Destroy(h) == nil)
		if s.living(h) {
			s.update(func(*registry.Window) {}) // its children die, too
			s.death(h)
		}
	case 5:
		h := s.pick()
		s.update(func(w *registry.Window) { require.Equal(s.t, s.living(h), w.Destroy(h) == nil) })
		s.death(h)
	case 6:
		h := s.pick()
		require.NoError(s.t, s.e.frame(nil, system{"s", func(f *registry.Frame) {
			require.Equal(s.t, s.living(h), f.Destroy(h) == nil)
		}}))
		s.death(h)
	case 7:
		s.update(func(w *registry.Window) { w.ProcessDeferredDestructions() })
	case 8:
		s.update(func(w *registry.Window) { w.ConfirmLocalRecycles() })
	case 9:
		s.update(func(w *registry.Window) { w.ConfirmNetRecycles() })
	case 10:
		s.failing()
	case 11:
		h := s.pick()
		s.update(func(w *registry.Window) { require.Equal(s.t, s.alive[h], registry.Add(w, h, frozen{}) == nil) })
	case 12:
		h := s.pick()
		s.update(func(w *registry.Window) {
			require.Equal(s.t, s.alive[h], registry.Add(w, h, title{"t"}) == nil)
			registry.RemoveBatch[health](w, []handles.Local{h})
		})
	case 13:
		h := s.pick()
		s.update(func(w *registry.Window) {
			n, err := w.AssignNet(h)
			require.Equal(s.t, s.alive[h], err == nil)
			if err != nil || s.net[h] == n {
				return
			}
			require.Zero(s.t, s.net[h])
			require.Zero(s.t, s.nets[n], "name %v was %v's", n, s.nets[n])
			s.net[h], s.nets[n] = n, h
		})
	case 14:
		n := int(s.next() % 8)
		s.update(func(w *registry.Window) {
			hs, err := s.scouts.SpawnBatch(w, n, nil)
			if s.refused(n, err) {
				return
			}
			for _, h := range hs {
				require.NoError(s.t, registry.Set(w, h, self{h}))
				s.issue(h)
				s.birth(h)
			}
		})
	case 15:
		c, p := s.pick(), s.pick()
		s.update(func(w *registry.Window) {
			if registry.SetParent(w, c, p) == nil {
				s.parent[c] = p
			}
		})
	case 16:
		if s.next()%8 == 0 {
			s.update(func(w *registry.Window) { require.NoError(s.t, w.Reset()) })
			clear(s.alive)
			clear(s.reserved)
			clear(s.parent)
			clear(s.net)
		}
	}
}

// failing runs a window that fails. What it issued is dead for ever; what was destroyed from
// outside meanwhile stays dead.
func (s *namesake) failing() {
	res, h, outside, hurry := s.pick(), s.pick(), s.pick(), s.next()
	var gone []handles.Local
	s.fails(func(w *registry.Window) {
		for range hurry % 4 {
			n, err := s.soldiers.Spawn(w, soldier{})
			if err != nil {
				break
			}
			s.issue(n)
			s.record(n)
			if name, err := w.AssignNet(n); err == nil {
				require.Zero(s.t, s.nets[name])
				s.nets[name] = n
			}
		}
		if s.soldiers.SpawnReserved(w, res, soldier{}) == nil {
			s.record(res)
		}
		_ = registry.Add(w, h, frozen{})
		_ = registry.Remove[self](w, h)
		_ = registry.SetParent(w, h, res)
		if hurry&4 != 0 {
			_ = w.Destroy(h)
		}
		if s.r.Destroy(outside) == nil {
			gone = append(gone, outside)
		}
		if hurry&8 != 0 {
			registry.Iterate(w)
			registry.Finish(w)
		}
	})
	s.update(func(*registry.Window) {})
	for _, h := range gone {
		s.death(h)
	}
}

// check compares every name ever given out with what it should name.
func (s *namesake) check() {
	require.NoError(s.t, s.r.Verify())
	for _, h := range s.seen {
		if s.r.Alive(h) != s.alive[h] {
			s.t.Fatalf("%v alive: %v, want %v", h, s.r.Alive(h), s.alive[h])
		}
	}
	for h := range s.alive {
		g, err := s.r.Resolve(h)
		require.NoError(s.t, err)
		require.Equal(s.t, h, s.globals[g])
		n, err := s.r.NetOf(h)
		require.NoError(s.t, err)
		require.Equal(s.t, s.net[h], n)
	}
	for n, h := range s.nets {
		back, err := s.r.ResolveNet(n)
		if s.net[h] == n && s.alive[h] {
			require.NoError(s.t, err)
			require.Equal(s.t, h, back)
		} else {
			require.Error(s.t, err)
		}
	}
	require.Equal(s.t, len(s.alive), s.r.Stats().Live)
}

// FuzzNoAliasing reads operations from bytes, with generations of three bits: no two names
// are ever the same, and none names another entity than the one it was given out for.
func FuzzNoAliasing(f *testing.F) {
	f.Add([]byte{0, 4, 0, 7, 8, 0, 4, 0, 7, 8, 0, 4, 0, 7, 8, 0, 4, 0, 7, 8, 0, 4, 0, 7, 8, 0, 4, 0, 7, 8, 0, 4, 0, 7, 8, 0, 4, 0, 7, 8, 0})
	f.Add([]byte{2, 3, 0, 13, 0, 10, 0, 0, 0, 7, 4, 0, 7, 8, 9, 2, 3, 0, 13, 0})
	f.Add([]byte{14, 7, 15, 1, 2, 15, 3, 1, 10, 0, 2, 2, 15, 5, 3, 6, 1, 7, 8, 14, 7, 16, 0, 8, 9, 14, 7})
	f.Add([]byte{0, 11, 0, 12, 0, 10, 0, 0, 0, 14, 10, 0, 1, 0, 31, 4, 0, 7, 10, 0, 0, 0, 3, 8, 10, 0, 0, 0, 3, 0})
	f.Add([]byte{2, 2, 2, 14, 5, 13, 0, 13, 1, 13, 2, 5, 0, 5, 1, 6, 2, 7, 9, 8, 14, 5, 13, 0, 13, 1, 10, 9, 9, 9, 255, 2, 2})
	f.Add([]byte{14, 7, 14, 7, 14, 7, 16, 0, 7, 14, 7, 14, 7, 14, 7, 16, 0, 7, 14, 7, 0, 2, 8, 14, 7, 0, 2}) // more pending than alive
	for _, mult := range []byte{7, 11, 13, 29, 101} {
		var walk []byte
		x := mult
		for range 400 {
			x = x*5 + mult
			walk = append(walk, x>>2)
		}
		f.Add(walk)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &namesake{
			world: worldOf(t, registry.NewNarrow(registry.Config{MaxEntities: 24}, 3)), data: data[:min(len(data), 300)],
			issued: map[handles.Local]bool{}, alive: map[handles.Local]bool{}, reserved: map[handles.Local]bool{},
			parent: map[handles.Local]handles.Local{}, net: map[handles.Local]handles.Net{},
			globals: map[handles.Global]handles.Local{}, nets: map[handles.Net]handles.Local{},
		}
		s.e = s.engine()
		for len(s.data) > 0 {
			s.step()
			s.check()
		}
		require.Empty(t, s.e.errs)
	})
}
