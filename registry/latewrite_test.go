package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/registry"
)

// TestLateWritesAreTold keeps pointers to components of all tiers past their frame, and writes through
// them: in the next frame, in the one after it, and after their entity has moved.
func TestLateWritesAreTold(t *testing.T) {
	for _, temporal := range []int{0, 8} {
		for _, moved := range []bool{false, true} {
			s := newStage(t, temporal)
			hs := s.spawnActors(100)
			at := func(h handles.Local) (at uint32) {
				s.update(func(w *registry.Window) { at, _ = registry.CacheIndex(w, h) })
				return at
			}
			was := at(hs[70])
			told := func() (all []registry.LateWriteError) {
				for _, err := range s.e.errs {
					require.ErrorIs(t, err, registry.ErrLateWrite)
					var late *registry.LateWriteError
					require.ErrorAs(t, err, &late)
					all = append(all, *late)
				}
				s.e.errs = nil
				return all
			}
			var p *place
			var m *mood
			var n *notes
			s.frame(nil, func(f *registry.Frame) {
				var err error
				p, err = registry.Get[place](f, hs[70])
				require.NoError(t, err)
				m, err = registry.Get[mood](f, hs[70])
				require.NoError(t, err)
				n, err = registry.Get[notes](f, hs[70])
				require.NoError(t, err)
				p.X, m.Now, n.N = 1, 2, 3
			})
			taken := s.frameNumber()
			if moved {
				s.update(func(w *registry.Window) { require.NoError(t, registry.Add(w, hs[70], frozen{})) })
				require.NotEqual(t, was, at(hs[70]))
				s.frame(nil, nil)
			}
			require.Empty(t, told())
			late := func(component string, frame uint64) registry.LateWriteError {
				return registry.LateWriteError{Class: "registry_test.actor", Component: "registry_test." + component, Place: was, Frame: frame}
			}
			expect := func(want ...registry.LateWriteError) {
				t.Helper()
				if !check.Enabled {
					want = nil
				}
				require.ElementsMatch(t, want, told())
			}
			s.frame(nil, func(*registry.Frame) { m.Now = -2 })
			expect(late("mood", taken))
			cold := taken
			if moved { // its slot was given back a frame later
				cold++
			}
			s.frame(nil, func(*registry.Frame) { n.N = -3 })
			expect(late("notes", cold))
			if temporal > 0 {
				s.frame(nil, func(*registry.Frame) { p.X = -1 })
				expect(late("place", taken))
			}
			for range 5 {
				s.frame(nil, nil)
			}
			require.Empty(t, told(), "each once")
			s.frame(nil, func(f *registry.Frame) {
				if _, err := registry.Get[notes](f, hs[70]); !moved {
					require.NoError(t, err)
					n.N = 4 // now it is as it should be
				}
			})
			require.Empty(t, told())
			s.forget()
			require.Empty(t, told())
		}
	}
}

// TestALateWriteAfterFramesWereSteppedOver is told with the frame's number, not with its buffer's.
func TestALateWriteAfterFramesWereSteppedOver(t *testing.T) {
	s := newStage(t, 8)
	hs := s.spawnActors(1)
	for range 20 {
		snap := s.acquire()
		s.frame(nil, nil)
		s.frame(nil, nil)
		s.frame(nil, nil)
		snap.Release()
	}
	var p *place
	s.frame(nil, func(f *registry.Frame) {
		var err error
		p, err = registry.Get[place](f, hs[0])
		require.NoError(t, err)
	})
	s.frame(nil, func(*registry.Frame) { p.X = 5 })
	s.forget()
	if !check.Enabled {
		require.Empty(t, s.e.errs)
		return
	}
	require.Len(t, s.e.errs, 1)
	require.ErrorContains(t, s.e.errs[0], "component registry_test.place of class registry_test.actor at cache index 0, taken in frame 62")
}

// forget gives all memory back that was written late, so that it passes Verify.
func (s *stage) forget() {
	s.update(func(w *registry.Window) { require.NoError(s.t, w.Reset()) })
	for range 10 {
		s.frame(nil, nil)
	}
	require.NoError(s.t, s.r.Verify())
}
