package logic_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// What falls knows the frame in which it last did, and its own handle.
type (
	fall struct{ Frame, N uint64 } // Temporal
	wind struct{ N int }           // Volatile
	drop struct {
		Fall fall
		Wind wind
	}
	drops struct {
		Fall []fall
		Wind []wind
		ID   []handles.Local
	}
)

// rain is a world whose frames are published, and in which everything falls in every frame.
type rain struct {
	*world
	drops *registry.Class[drop]
	q     *views.Query[drops]
}

func newRain(t testing.TB, temporal int, edits ...func(*logic.Config)) *rain {
	x := &rain{world: newWorldIn(t, registry.Config{MaxEntities: 1 << 16, TemporalFrames: temporal}, edits...)}
	_, err := registry.RegisterComponent[fall](x.r, registry.InTier(archetype.Temporal))
	require.NoError(t, err)
	_, err = registry.RegisterComponent[wind](x.r, registry.InTier(archetype.Volatile))
	require.NoError(t, err)
	x.drops, err = registry.RegisterClass[drop](x.r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	x.q, err = views.NewQuery[drops](x.r, views.Published())
	require.NoError(t, err)
	_, err = x.e.AddSystem(logic.Late, "fall", func(f *logic.Frame) {
		x.q.Parallel(f, func(_ *registry.Frame, m *drops) {
			for i := range m.Fall {
				m.Fall[i].Frame = f.FrameNumber()
				m.Fall[i].N++
				m.Wind[i].N = int(m.ID[i].Index())
			}
		})
	})
	require.NoError(t, err)
	return x
}

func (x *rain) spawn(n int) (hs []handles.Local) {
	x.update(func(win *registry.Window) (err error) {
		hs, err = x.drops.SpawnBatch(win, n, nil)
		return err
	})
	return hs
}

// shown is what a snapshot shows, as one number; and that all of it is of its frame.
func shown(s *registry.Snapshot, q *views.Query[drops]) (sum uint64, err error) {
	for m := range q.Runs(s) {
		for i, h := range m.ID {
			if m.Fall[i].Frame != s.FrameNumber() || m.Wind[i].N != int(h.Index()) {
				return 0, fmt.Errorf("frame %d shows %v: %v, %v", s.FrameNumber(), h, m.Fall[i], m.Wind[i])
			}
			sum = sum*31 + uint64(h) ^ m.Fall[i].N<<40
		}
	}
	return sum, nil
}

// TestAPinHeldForEver is the case logic-14.
func TestAPinHeldForEver(t *testing.T) {
	t.Run("logic-14/without a ring", func(t *testing.T) {
		x := newRain(t, 0)
		x.spawn(10)
		x.step()
		var held []*registry.Snapshot
		sums := map[uint64]uint64{}
		look := func(snap *registry.Snapshot) {
			sum, err := shown(snap, x.q)
			require.NoError(t, err)
			if want, ok := sums[snap.FrameNumber()]; ok {
				require.Equal(t, want, sum)
			}
			sums[snap.FrameNumber()] = sum
		}
		frames := 10_000
		if raceEnabled {
			frames = 1000
		}
		for range frames {
			snap, err := x.r.Acquire()
			require.NoError(t, err)
			look(snap)
			held = append(held, snap)
			x.step()
		}
		require.Len(t, sums, 2, "with two frames held there is no buffer for a third")
		require.EqualValues(t, frames+1, x.e.Stats().Frames)
		require.EqualValues(t, frames-1, x.e.Stats().PublishSkips)
		require.Equal(t, x.e.Stats().PublishSkips, x.r.Stats().PublishSkips)
		require.Equal(t, 2, x.r.Stats().Pinned)
		for _, snap := range held {
			look(snap)
			snap.Release()
		}
		for range 5 {
			x.step()
			require.NoError(t, x.r.Read(func(snap *registry.Snapshot) error {
				require.Equal(t, x.e.FrameNumber(), snap.FrameNumber())
				look(snap)
				return nil
			}))
		}
		require.EqualValues(t, frames-1, x.e.Stats().PublishSkips)
		require.Zero(t, x.r.Stats().Pinned)
	})
	t.Run("logic-14/with a ring", func(t *testing.T) {
		x := newRain(t, 8)
		hs := x.spawn(10)
		for range 20 {
			x.step()
		}
		horizon := func() (n int) {
			for ; ; n++ {
				snap, err := x.r.AcquireAt(x.e.FrameNumber() - uint64(n))
				if err != nil {
					require.ErrorIs(t, err, registry.ErrTooOld)
					return n
				}
				f, err := registry.Peek[fall](snap, hs[3])
				require.NoError(t, err)
				require.Equal(t, snap.FrameNumber(), f.Frame)
				snap.Release()
			}
		}
		whole := horizon()
		held, err := x.r.Acquire()
		require.NoError(t, err)
		want, err := shown(held, x.q)
		require.NoError(t, err)
		for range 20 {
			x.step()
			got, err := shown(held, x.q)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		require.Equal(t, whole-1, horizon(), "one frame less")
		require.Equal(t, 1, x.r.Stats().Pinned)
		require.Zero(t, x.e.Stats().PublishSkips)
		held.Release()
		for range 20 {
			x.step()
		}
		require.Equal(t, whole, horizon())
		require.Zero(t, x.r.Stats().Pinned)
	})
}

// TestSixtyFourReaders is the case views-4: readers of one frame see the same, whoever else is about.
func TestSixtyFourReaders(t *testing.T) {
	for _, temporal := range []int{0, 8} {
		t.Run(fmt.Sprintf("views-4/temporal=%d", temporal), func(t *testing.T) {
			x := newRain(t, temporal, fast, func(c *logic.Config) { c.Workers = 2 })
			hs := x.spawn(500)
			_, err := x.e.AddSystem(logic.Physics, "churn", func(f *logic.Frame) {
				n := f.FrameNumber()
				for i := range uint64(20) {
					h := hs[(n*37+i*11)%uint64(len(hs))]
					switch i % 4 {
					case 0:
						_ = f.Destroy(h)
						_, _ = x.drops.SpawnLater(f.Frame, drop{})
					case 1:
						_ = registry.SetActive(f, h, n%2 == 0)
					case 2:
						_ = registry.AddLater(f.Frame, h, tag{})
					default:
						_ = registry.RemoveLater[tag](f.Frame, h)
					}
				}
			})
			require.NoError(t, err)
			x.step()
			stop := x.run()
			looks := 100
			if raceEnabled {
				looks = 15
			}
			var mu sync.Mutex // guards sums
			sums := map[uint64]uint64{}
			var readers sync.WaitGroup
			for k := range 64 {
				readers.Go(func() {
					own, err := views.NewQuery[drops](x.r)
					if !assert.NoError(t, err) {
						return
					}
					for i := range looks {
						snap, err := x.r.Acquire()
						if temporal > 0 && k%8 == 0 && err == nil {
							if old, oldErr := x.r.AcquireAt(snap.FrameNumber() - 1); oldErr == nil {
								if _, oldErr = registry.Peek[fall](old, hs[i%len(hs)]); oldErr != nil {
									assert.ErrorIs(t, oldErr, registry.ErrStale)
								}
								old.Release()
							}
						}
						if !assert.NoError(t, err) {
							return
						}
						a, errA := shown(snap, x.q)
						runtime.Gosched()
						b, errB := shown(snap, own)
						if k%4 == 0 {
							_ = x.r.Destroy(hs[(k*7+i)%len(hs)]) // from outside
						}
						mu.Lock()
						want, ok := sums[snap.FrameNumber()]
						sums[snap.FrameNumber()] = a
						mu.Unlock()
						if errA != nil || errB != nil || a != b || ok && want != a {
							t.Errorf("frame %d: %v, %v; %d and %d, others saw %d", snap.FrameNumber(), errA, errB, a, b, want)
						}
						snap.Release()
					}
				})
			}
			readers.Wait()
			require.NoError(t, stop())
			require.NotEmpty(t, sums)
			for _, err := range x.told() { // of what was put off for those who died, or had lost it
				require.False(t, errors.Is(err, registry.ErrLateWrite), "%v", err)
			}
		})
	}
}

// TestAHeldFrameIsLogged holds a frame for ten seconds' worth of frames.
func TestAHeldFrameIsLogged(t *testing.T) {
	var text bytes.Buffer
	x := newRain(t, 0, func(c *logic.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&text, nil))
		c.Watchdog = time.Hour // it has nothing to say of a machine that stands still
	})
	x.step()
	snap, err := x.r.Acquire()
	require.NoError(t, err)
	defer snap.Release()
	for range 1300 {
		x.step()
	}
	require.Equal(t, 1, strings.Count(text.String(), "\n"), "once")
	require.Contains(t, text.String(), "level=WARN")
	require.Contains(t, text.String(), "a published frame is held")
	require.Contains(t, text.String(), "frame=1 age=6")
	require.Equal(t, check.Enabled, strings.Contains(text.String(), "TestAHeldFrameIsLogged"), "the stack of the reader")
}

// TestALateWriteIsToldToOnError keeps the slices of a loop past its frame.
func TestALateWriteIsToldToOnError(t *testing.T) {
	x := newRain(t, 8)
	x.spawn(1)
	var kept []wind
	taken := uint64(0)
	_, err := x.e.AddSystem(logic.Physics, "keeps", func(f *logic.Frame) {
		if kept == nil {
			for m := range x.q.Runs(f) {
				kept, taken = m.Wind, f.FrameNumber()
			}
			return
		}
		kept[0].N = -1
	})
	require.NoError(t, err)
	x.step()
	require.Empty(t, x.told())
	x.step()
	told := x.told()
	if !check.Enabled {
		require.Empty(t, told)
	} else {
		require.Len(t, told, 1)
		require.ErrorIs(t, told[0], registry.ErrLateWrite)
		require.ErrorContains(t, told[0], fmt.Sprintf("component logic_test.wind of class logic_test.drop at cache index 0, taken in frame %d", taken))
	}
	kept = make([]wind, 1)
	for range 20 {
		x.step()
	}
	require.Empty(t, x.told())
}
