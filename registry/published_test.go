package registry_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/registry"
)

// The components of the tests about frames: one in each tier, and one of the tier with pointers.
type (
	place struct{ X, Y float64 }  // Temporal
	mood  struct{ Now, Next int } // Volatile
	badge struct{ Text string }   // Volatile
	notes struct{ N int }         // Cold
	actor struct {
		Place place
		Mood  mood
		Badge badge
		Notes notes
	}
	ghost struct { // without a Temporal component
		Mood mood
		Self self
	}
)

// stage is a registry whose frames are kept.
type stage struct {
	*world
	e      *engine
	actors *registry.Class[actor]
	ghosts *registry.Class[ghost]
}

func newStage(t testing.TB, temporal int) *stage {
	r, err := registry.New(registry.Config{TemporalFrames: temporal, MaxEntities: 100_000})
	require.NoError(t, err)
	register[place](t, r, archetype.Temporal)
	register[mood](t, r, archetype.Volatile)
	register[badge](t, r, archetype.Volatile)
	s := &stage{world: worldOf(t, r)}
	s.actors, err = registry.RegisterClass[actor](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	s.ghosts, err = registry.RegisterClass[ghost](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	s.e = s.engine()
	return s
}

func register[C any](t testing.TB, r *registry.Registry, tier archetype.Tier) {
	_, err := registry.RegisterComponent[C](r, registry.InTier(tier))
	require.NoError(t, err)
}

// frame runs a frame with a window and a system.
func (s *stage) frame(window func(*registry.Window), fn func(*registry.Frame)) {
	s.t.Helper()
	var op func(*registry.Window) error
	if window != nil {
		op = func(w *registry.Window) error { window(w); return nil }
	}
	if fn == nil {
		fn = func(*registry.Frame) {}
	}
	require.NoError(s.t, s.e.frame(op, system{"s", fn}))
}

func (s *stage) acquire() *registry.Snapshot {
	s.t.Helper()
	snap, err := s.r.Acquire()
	require.NoError(s.t, err)
	return snap
}

func (s *stage) spawnActors(n int) (hs []handles.Local) {
	s.frame(func(w *registry.Window) {
		var err error
		hs, err = s.actors.SpawnBatch(w, n, func(i int, a *actor) { a.Place.X, a.Mood.Now, a.Badge.Text = float64(i), i, "new" })
		require.NoError(s.t, err)
	}, nil)
	return hs
}

func TestASnapshotShowsItsFrame(t *testing.T) {
	for _, temporal := range []int{0, 8} {
		s := newStage(t, temporal)
		_, err := s.r.Acquire()
		require.ErrorIs(t, err, registry.ErrNotPublished, "before the first frame")
		require.ErrorIs(t, s.r.Read(func(*registry.Snapshot) error { panic("no frame") }), registry.ErrNotPublished)

		hs := s.spawnActors(200)
		first := s.acquire()
		require.EqualValues(t, 1, first.FrameNumber())
		var late handles.Local
		s.frame(func(w *registry.Window) {
			require.NoError(t, w.Destroy(hs[0]))
			require.NoError(t, registry.Add(w, hs[1], frozen{}))
			late, err = s.actors.Spawn(w, actor{})
			require.NoError(t, err)
		}, func(f *registry.Frame) {
			for _, h := range hs[1:] {
				p, err := registry.Get[place](f, h)
				require.NoError(t, err)
				p.Y = 2
				require.NoError(t, registry.Set(f, h, badge{"old"}))
			}
			require.NoError(t, registry.SetActive(f, hs[2], false))
			require.NoError(t, f.Destroy(hs[3]))
		})
		second := s.acquire()
		for range 5 {
			s.frame(func(w *registry.Window) {
				for _, h := range hs {
					_ = registry.Set(w, h, place{-1, -1})
					_ = registry.Set(w, h, badge{"later"})
				}
			}, nil)
			require.NoError(t, s.r.Verify())
		}

		for i, h := range hs {
			p, err := registry.Peek[place](first, h)
			require.NoError(t, err)
			require.Equal(t, place{float64(i), 0}, p)
			b, err := registry.Get[badge](first, h)
			require.NoError(t, err)
			require.Equal(t, "new", b.Text)
			require.True(t, registry.Active(first, h))
			require.False(t, registry.Has[frozen](first, h))
			at, ok := registry.CacheIndex(first, h)
			require.True(t, ok)
			require.EqualValues(t, i, at)
		}
		_, err = registry.Peek[place](first, late)
		require.ErrorIs(t, err, registry.ErrNotSpawned, "not yet")
		_, err = registry.Peek[place](first, 0)
		require.ErrorIs(t, err, registry.ErrInvalidHandle)
		_, err = registry.Peek[notes](first, hs[5])
		require.ErrorIs(t, err, registry.ErrNotPublished)
		require.ErrorContains(t, err, "InTier(Volatile)")
		_, err = registry.Peek[health](first, hs[5])
		require.ErrorIs(t, err, registry.ErrNoComponent)
		require.ErrorIs(t, registry.Set(first, hs[5], place{}), registry.ErrReadOnly)
		require.ErrorIs(t, registry.SetActive(first, hs[5], false), registry.ErrReadOnly)

		for _, h := range []handles.Local{hs[0], hs[3]} {
			_, err = registry.Peek[place](second, h)
			require.ErrorIs(t, err, registry.ErrStale)
		}
		require.True(t, registry.Has[frozen](second, hs[1]))
		require.False(t, registry.Active(second, hs[2]))
		p, err := registry.Peek[place](second, hs[1])
		require.NoError(t, err)
		require.Equal(t, place{1, 2}, p)
		require.NoError(t, s.r.Read(func(now *registry.Snapshot) error {
			require.EqualValues(t, 2, now.FrameNumber(), "both buffers that a newer one could be beside are held")
			return nil
		}))
		first.Release()
		second.Release()
		_, err = registry.Peek[place](first, hs[5])
		require.ErrorIs(t, err, registry.ErrExpired)
		require.EqualValues(t, 1, first.FrameNumber(), "stays")
		s.frame(nil, nil)
		require.NoError(t, s.r.Read(func(now *registry.Snapshot) error {
			require.EqualValues(t, 8, now.FrameNumber())
			p, err := registry.Peek[place](now, hs[5])
			require.Equal(t, place{-1, -1}, p)
			return err
		}))
	}
}

// TestRegistry9ASnapshotReleasedTwice is the case registry-9.
func TestRegistry9ASnapshotReleasedTwice(t *testing.T) {
	s := newStage(t, 0)
	_, err := s.r.Acquire()
	require.ErrorIs(t, err, registry.ErrNotPublished)
	hs := s.spawnActors(10)
	a, b := s.acquire(), s.acquire()
	a.Release()
	a.Release()
	_, err = registry.Get[place](a, hs[3])
	require.ErrorIs(t, err, registry.ErrExpired)
	for range 100 {
		s.frame(func(w *registry.Window) {
			for _, h := range hs {
				require.NoError(t, registry.Set(w, h, place{-1, 0}))
			}
		}, nil)
	}
	for i, h := range hs {
		p, err := registry.Get[place](b, h)
		require.NoError(t, err)
		require.Equal(t, place{float64(i), 0}, *p)
	}
	require.ErrorIs(t, registry.Set(b, hs[0], place{}), registry.ErrReadOnly)
	b.Release()
}

// TestAPinHeldForEver is the registry's part of the case logic-14.
func TestAPinHeldForEver(t *testing.T) {
	s := newStage(t, 0)
	hs := s.spawnActors(1)
	var held []*registry.Snapshot
	seen := map[uint64]float64{}
	frames := 10_000
	if racing {
		frames = 1000
	}
	for i := range frames {
		snap := s.acquire()
		p, err := registry.Peek[place](snap, hs[0])
		require.NoError(t, err)
		if want, ok := seen[snap.FrameNumber()]; ok {
			require.Equal(t, want, p.X)
		}
		seen[snap.FrameNumber()] = p.X
		held = append(held, snap)
		s.frame(nil, func(f *registry.Frame) { require.NoError(t, registry.Set(f, hs[0], place{float64(i), 1})) })
	}
	require.Len(t, seen, 2, "with two buffers held nothing newer is published")
	require.EqualValues(t, frames-1, s.r.Stats().PublishSkips)
	for _, snap := range held {
		p, err := registry.Peek[place](snap, hs[0])
		require.NoError(t, err)
		require.Equal(t, seen[snap.FrameNumber()], p.X)
		snap.Release()
	}
	skips := s.r.Stats().PublishSkips
	for range 3 {
		s.frame(nil, nil)
		require.NoError(t, s.r.Verify())
	}
	require.Equal(t, skips, s.r.Stats().PublishSkips, "after it all is as before")
	require.NoError(t, s.r.Read(func(now *registry.Snapshot) error {
		require.EqualValues(t, frames+4, now.FrameNumber())
		p, err := registry.Peek[place](now, hs[0])
		require.Equal(t, place{float64(frames - 1), 1}, p)
		return err
	}))
}

func TestAPinCostsTheRingOneFrame(t *testing.T) {
	s := newStage(t, 8)
	hs := s.spawnActors(3)
	oldest := func() (n uint64) {
		for n = s.frameNumber(); n > 0; n-- {
			snap, err := s.r.AcquireAt(n - 1)
			if err != nil {
				require.ErrorIs(t, err, registry.ErrTooOld)
				return n
			}
			require.Equal(t, n-1, snap.FrameNumber())
			p, err := registry.Peek[place](snap, hs[2])
			require.NoError(t, err)
			require.Equal(t, float64(n-1)+2-1, p.X)
			snap.Release()
		}
		return 0
	}
	step := func() {
		s.frame(nil, func(f *registry.Frame) {
			for _, h := range hs {
				p, err := registry.Get[place](f, h)
				require.NoError(t, err)
				p.X++
			}
		})
		require.NoError(t, s.r.Verify())
	}
	for range 20 {
		step()
	}
	now := s.frameNumber()
	require.Equal(t, now-7, oldest())
	held, err := s.r.AcquireAt(now - 5)
	require.NoError(t, err)
	_, err = registry.Peek[mood](held, hs[0])
	require.ErrorIs(t, err, registry.ErrNotPublished, "only Temporal ones are left")
	for range 20 {
		step()
	}
	now = s.frameNumber()
	require.Equal(t, now-6, oldest(), "one less")
	p, err := registry.Peek[place](held, hs[0])
	require.NoError(t, err)
	require.Equal(t, float64(held.FrameNumber())-1, p.X)
	require.Zero(t, s.r.Stats().PublishSkips)
	held.Release()
	for range 20 {
		step()
	}
	require.Equal(t, s.frameNumber()-7, oldest())
	_, err = s.r.AcquireAt(s.frameNumber() + 1)
	require.ErrorIs(t, err, registry.ErrNotPublished)
}

func (s *stage) frameNumber() uint64 { return s.r.Stats().Frame }

func TestReadersBesideTheOwner(t *testing.T) {
	frames := 300
	if testing.Short() {
		frames = 60
	}
	for _, temporal := range []int{0, 8} {
		s := newStage(t, temporal)
		hs := s.spawnActors(500)
		var mortals []handles.Local // who die in the next frame
		s.frame(func(w *registry.Window) {
			var err error
			mortals, err = s.actors.SpawnBatch(w, 250, nil)
			require.NoError(t, err)
			for n, h := range hs {
				require.NoError(t, registry.Set(w, h, place{X: 2 + float64(n)}))
			}
		}, nil)
		first, died := mortals[0], s.frameNumber()+1
		stop := make(chan struct{})
		var readers sync.WaitGroup
		for k := range 4 {
			readers.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
					}
					for range 20 * (k / 3) { // one of them reads of the dead as well
						if o, ok := s.r.Obituary(first); ok && o.Frame != died {
							t.Errorf("%v died in frame %d, and not in %d", first, died, o.Frame)
							return
						}
					}
					snap, err := s.r.Acquire()
					if k == 0 && i%2 == 0 {
						if old, oldErr := s.r.AcquireAt(max(snap.FrameNumber()-1, 2)); oldErr == nil {
							snap.Release()
							snap = old
						}
					}
					if err != nil {
						t.Error(err)
						return
					}
					want := float64(snap.FrameNumber())
					for n, h := range hs {
						p, err := registry.Get[place](snap, h)
						if err != nil || p.X != want+float64(n) {
							t.Errorf("frame %d: %v has %v, %v", snap.FrameNumber(), h, p, err)
							return
						}
					}
					snap.Release()
					runtime.Gosched()
				}
			})
		}
		for range frames {
			now := float64(s.frameNumber() + 1)
			s.frame(func(w *registry.Window) { // they move to and fro
				_ = registry.AddBatch(w, hs[:50], frozen{})
				_ = registry.RemoveBatch[frozen](w, hs[50:100])
				_ = registry.AddBatch(w, hs[50:100], frozen{})
				_ = registry.RemoveBatch[frozen](w, hs[:50])
				w.DestroyBatch(mortals)
				var err error
				mortals, err = s.actors.SpawnBatch(w, len(mortals), nil)
				require.NoError(t, err)
			}, func(f *registry.Frame) {
				for n, h := range hs {
					p, err := registry.Get[place](f, h)
					require.NoError(t, err)
					p.X = now + float64(n)
				}
			})
		}
		close(stop)
		readers.Wait()
	}
}

func TestAcquireAllocatesNothing(t *testing.T) {
	if check.Enabled {
		t.Skip("a debug build remembers who acquired")
	}
	s := newStage(t, 0)
	s.spawnActors(10)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		snap, _ := s.r.Acquire()
		snap.Release()
	}))
}
