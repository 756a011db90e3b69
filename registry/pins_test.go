package registry_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/registry"
)

// count runs a frame in which every place has the frame's number.
func (s *stage) count(hs []handles.Local) {
	s.t.Helper()
	s.frame(nil, func(f *registry.Frame) {
		for _, h := range hs {
			require.NoError(s.t, registry.Set(f, h, place{X: float64(f.FrameNumber())}))
		}
	})
}

// TestTheNewestFrameIsNotWritten has readers hold two frames until the temporal ring has gone round, so
// that the newest published frame is the oldest that is kept, and give it back between two frames.
func TestTheNewestFrameIsNotWritten(t *testing.T) {
	s := newStage(t, 8)
	hs := s.spawnActors(3)
	s.count(hs)
	first := s.acquire()
	s.count(hs)
	second := s.acquire()
	for range 8 {
		s.count(hs)
	}
	require.EqualValues(t, 8, s.r.Stats().PublishSkips)
	second.Release()
	s.frame(nil, func(f *registry.Frame) {
		require.NoError(t, registry.Set(f, hs[0], place{X: -1}))
		require.NoError(t, s.r.Read(func(now *registry.Snapshot) error {
			require.Equal(t, second.FrameNumber(), now.FrameNumber())
			for _, h := range hs {
				p, err := registry.Peek[place](now, h)
				require.NoError(t, err)
				require.Equal(t, float64(now.FrameNumber()), p.X)
			}
			return nil
		}))
	})
	first.Release()
	require.NoError(t, s.r.Read(func(now *registry.Snapshot) error {
		require.Equal(t, s.frameNumber(), now.FrameNumber())
		return nil
	}))
}

// TestManyReadersOfOldFrames has more readers than there are frames to spare pin different ones.
func TestManyReadersOfOldFrames(t *testing.T) {
	s := newStage(t, 8)
	hs := s.spawnActors(10)
	for range 10 {
		s.count(hs)
	}
	var held []*registry.Snapshot
	for back := range uint64(8) {
		snap, err := s.r.AcquireAt(s.frameNumber() - back)
		if err != nil {
			require.ErrorIs(t, err, registry.ErrExhausted)
			continue
		}
		held = append(held, snap)
		again, err := s.r.AcquireAt(s.frameNumber() - back)
		require.NoError(t, err, "another reader of the same frame costs nothing")
		again.Release()
	}
	require.Len(t, held, 4)
	for range 20 {
		s.count(hs)
	}
	for _, snap := range held {
		p, err := registry.Peek[place](snap, hs[9])
		require.NoError(t, err)
		require.Equal(t, float64(snap.FrameNumber()), p.X)
		snap.Release()
	}

	stop := make(chan struct{})
	var readers sync.WaitGroup
	for k := range 16 {
		readers.Go(func() {
			for i := k; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				now := s.r.Stats().Frame
				snap, err := s.r.AcquireAt(now - uint64(i)%9)
				if err != nil {
					if !errors.Is(err, registry.ErrTooOld) && !errors.Is(err, registry.ErrNotPublished) && !errors.Is(err, registry.ErrExhausted) {
						t.Error(err)
					}
					continue
				}
				if p, err := registry.Peek[place](snap, hs[i%10]); err != nil || p.X != float64(snap.FrameNumber()) {
					t.Errorf("frame %d: %v, %v", snap.FrameNumber(), p, err)
				}
				snap.Release()
			}
		})
	}
	frames := 2000
	if racing {
		frames = 200
	}
	for range frames {
		s.count(hs)
	}
	close(stop)
	readers.Wait()
	require.Zero(t, s.r.Stats().Pinned)
}

func TestWhoHoldsFramesForLong(t *testing.T) {
	var told []uint64
	stacks := map[uint64]string{}
	hold := func(temporal int) *stage {
		s := newStage(t, temporal)
		s.e.Detach()
		core, err := s.r.Attach(registry.Hooks{Held: func(frame uint64, stack string) {
			told = append(told, frame)
			stacks[frame] = stack
		}})
		require.NoError(t, err)
		t.Cleanup(core.Detach)
		s.e.Core = core
		return s
	}
	for _, temporal := range []int{0, 8} {
		told = nil
		s := hold(temporal)
		s.frame(nil, nil)
		a := s.acquire()
		s.frame(nil, nil)
		b := s.acquire() // and from here on none is published
		for range 700 {
			s.frame(nil, nil)
			require.Equal(t, 2, s.r.Stats().Pinned)
		}
		require.ElementsMatch(t, []uint64{1, 2}, told, "each once, and the newest among them")
		for _, frame := range told {
			require.Equal(t, check.Enabled, stacks[frame] != "")
			if check.Enabled {
				require.Contains(t, stacks[frame], "TestWhoHoldsFramesForLong")
			}
		}
		a.Release()
		require.Equal(t, 1, s.r.Stats().Pinned)
		b.Release()
		require.Zero(t, s.r.Stats().Pinned)
		for range 700 {
			s.frame(nil, nil)
			s.acquire().Release()
		}
		require.Len(t, told, 2)
	}
}

// TestAnOldFrameHasTemporalEntitiesOnly looks for an entity of which an older frame has nothing.
func TestAnOldFrameHasTemporalEntitiesOnly(t *testing.T) {
	s := newStage(t, 8)
	var h, later handles.Local
	s.frame(func(w *registry.Window) {
		var err error
		h, err = s.ghosts.Spawn(w, ghost{})
		require.NoError(t, err)
	}, nil)
	for range 5 {
		s.frame(nil, nil)
	}
	s.frame(func(w *registry.Window) {
		var err error
		later, err = s.actors.Spawn(w, actor{})
		require.NoError(t, err)
	}, nil)
	old, err := s.r.AcquireAt(2)
	require.NoError(t, err)
	defer old.Release()
	_, err = registry.Peek[mood](old, h)
	require.ErrorIs(t, err, registry.ErrNotPublished, "it was there, and nothing of it is left")
	_, err = registry.Peek[place](old, later)
	require.ErrorIs(t, err, registry.ErrNotSpawned)
	require.False(t, registry.Active(old, h))
}

// TestTheIndexOfAFrameHasWhatItsReadersMaySee has a reader that sees less of a frame look first.
func TestTheIndexOfAFrameHasWhatItsReadersMaySee(t *testing.T) {
	s := newStage(t, 8)
	var h handles.Local
	s.frame(func(w *registry.Window) {
		var err error
		h, err = s.ghosts.Spawn(w, ghost{Mood: mood{Now: 5}})
		require.NoError(t, err)
	}, nil)
	snap := s.acquire()
	defer snap.Release()
	s.frame(func(w *registry.Window) { require.NoError(t, registry.Add(w, h, place{})) }, nil)
	_, err := registry.Peek[mood](registry.OldLook(snap), h)
	require.Error(t, err)
	m, err := registry.Peek[mood](snap, h)
	require.NoError(t, err)
	require.Equal(t, 5, m.Now)
}
