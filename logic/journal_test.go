package logic_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// The codec of memo, which is Cold and holds a pointer.

func (m *memo) AppendBinary(b []byte) ([]byte, error) { return append(b, m.Text...), nil }

func (m *memo) UnmarshalBinary(b []byte) error {
	m.Text = string(b)
	return nil
}

var theatreConfigs = map[string]registry.Config{
	"with a ring":    {TemporalFrames: 16, Deterministic: true, MaxEntities: 5000},
	"without a ring": {Deterministic: true, MaxEntities: 5000},
}

// recorded is a theatre whose frames are journaled in a directory.
func recorded(t testing.TB, c registry.Config, dir string) *theatre {
	w := stageOf(t, c)
	var err error
	w.e, err = logic.New(w.r, logic.Config{Workers: 2, OnError: func(err error) {
		if err.Error() != "planned" {
			t.Errorf("frame %d: %v", w.e.FrameNumber(), err)
		}
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.e.Stop()) })
	require.NoError(t, w.e.Journal(dir))
	w.direct()
	return w
}

// replayed does a journal of a theatre again, and gives the registry.
func replayed(t testing.TB, c registry.Config, fsys fs.FS, opts ...logic.ReplayOption) (*theatre, uint64, error) {
	w := stageOf(t, c)
	opts = append([]logic.ReplayOption{logic.WithSystems(func(e *logic.Engine) error {
		w.e = e
		w.direct()
		return nil
	}), logic.WithWorkers(3)}, opts...)
	frame, err := logic.Replay(w.r, fsys, opts...)
	return w, frame, err
}

// TestReplayDoesItAgain compares a world that was recorded with the same one done again.
func TestReplayDoesItAgain(t *testing.T) {
	for name, c := range theatreConfigs {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := recorded(t, c, dir)
			rnd := rand.New(rand.NewPCG(7, 7))
			var known []handles.Local
			for n := range uint64(400) {
				require.NoError(t, w.e.Input(0, n+1, []byte{byte(n * 7)}))
				w.outside(rnd, &known)
				require.NoError(t, w.e.Step())
			}
			require.NoError(t, w.e.Stop())
			var hashes []uint64
			again, frame, err := replayed(t, c, os.DirFS(dir), logic.WithHashes(func(frame, hash uint64) {
				hashes = append(hashes, hash)
				require.EqualValues(t, len(hashes), frame)
			}))
			require.NoError(t, err)
			require.EqualValues(t, 400, frame)
			require.Len(t, hashes, 400)
			require.NoError(t, w.r.Read(func(s *registry.Snapshot) error {
				hash, err := snapshot.Hash(s)
				require.Equal(t, hash, hashes[399])
				return err
			}))
			require.NoError(t, again.r.Verify())
			_, want := w.living()
			_, got := again.living()
			require.Equal(t, want, got)
			require.NotEmpty(t, want)
		})
	}
}

// crowd is eight goroutines that race for the window by every door there is, until stop; what they do is theirs
// alone to know.
func (w *theatre) crowd(seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var mu sync.Mutex // guards known
	var known []handles.Local
	note := func(hs ...handles.Local) {
		mu.Lock()
		defer mu.Unlock()
		known = append(known, hs...)
	}
	pick := func(rnd *rand.Rand) handles.Local {
		mu.Lock()
		defer mu.Unlock()
		if len(known) == 0 {
			return 0
		}
		return known[max(0, len(known)-1-rnd.IntN(40))]
	}
	spawn := func(win *registry.Window) error {
		h, err := w.walkers.Spawn(win, walker{Speed: pacing{2, 2}, Memo: memo{"crowd"}})
		if err == nil {
			err = registry.Set(win, h, own{Self: h})
			note(h)
		}
		return err
	}
	for i := range 8 {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			lane := w.e.Producer()
			for ctx.Err() == nil {
				a, b, x, k := pick(rnd), pick(rnd), rnd.Float64(), rnd.IntN(3)
				edit := func(win *registry.Window) error {
					win.Named("edit")
					_ = registry.Set(win, a, pacing{x, 3})
					_ = registry.Add(win, b, mark{7})
					_ = registry.SetParent(win, a, b)
					if p, err := registry.Get[spot](win, b); err == nil {
						p.Y++
					}
					if k == 0 {
						_, _ = w.walkers.Spawn(win, walker{})
						return errors.New("planned")
					}
					return nil
				}
				switch rnd.IntN(8) {
				case 0:
					_ = w.e.Spawn(ctx, spawn)
				case 1:
					ticket, err := lane.Enqueue(edit)
					if err == nil {
						select {
						case <-ticket.Done():
						case <-ctx.Done():
						}
					}
				case 2:
					_ = w.e.Defer(func(win *registry.Window) error {
						_ = registry.SetActive(win, a, k == 0)
						_, _ = win.AssignNet(b)
						_ = win.Destroy(b)
						return nil
					})
				case 3:
					_ = w.r.Destroy(a)
				case 4:
					h, err := w.r.Reserve()
					if err != nil {
						break
					}
					note(h)
					if rnd.IntN(3) > 0 {
						_ = w.e.Spawn(ctx, func(win *registry.Window) error {
							return w.walkers.SpawnReserved(win, h, walker{Own: own{Self: h}})
						})
					}
				case 5:
					_ = w.r.Update(func(win *registry.Window) error {
						hs, err := w.walkers.SpawnBatch(win, 3, func(_ int, e *walker) { e.Spot.Y = 9 })
						note(hs...)
						return err
					})
				case 6:
					w.e.SpawnBatch(ctx, edit, spawn, func(win *registry.Window) error {
						win.ProcessDeferredDestructions()
						_ = win.Destroy(b)
						return nil
					})
				case 7:
					_ = w.e.Input(uint8(rnd.IntN(3)), max(1, w.e.FrameNumber()-min(w.e.FrameNumber(), rnd.Uint64N(8))+2), []byte{byte(rnd.Uint32())})
				}
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// TestSnapshot5ReplayOfARace is the case snapshot-5: eight goroutines race for the window, inputs come late, and frames are rolled
// back; the journal gives the same handles, slots and hashes.
func TestSnapshot5ReplayOfARace(t *testing.T) { t.Run("snapshot-5", replayOfARace) }

func replayOfARace(t *testing.T) {
	frames := 1000
	if testing.Short() || raceEnabled {
		frames = 80
	}
	for name, c := range theatreConfigs {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := stageOf(t, c)
			var err error
			w.e, err = logic.New(w.r, logic.Config{Workers: 2, OnError: func(error) {}}) // wishes about the dead, and what was planned
			require.NoError(t, err)
			require.NoError(t, w.e.Journal(dir, snapshot.SegmentBytes(1<<20), snapshot.SyncEvery(100)))
			w.direct()
			stop := w.crowd(11)
			rnd := rand.New(rand.NewPCG(8, 8))
			for n := range uint64(frames) {
				if n > 0 && c.TemporalFrames > 0 && rnd.IntN(3) == 0 {
					require.NoError(t, w.e.Rollback(n-min(n-1, rnd.Uint64N(12))))
				}
				require.NoError(t, w.e.Step())
			}
			done := make(chan struct{})
			go func() { // who waits for the window needs frames to end
				stop()
				close(done)
			}()
			for waiting := true; waiting; {
				select {
				case <-done:
					waiting = false
				default:
					require.NoError(t, w.e.Step())
				}
			}
			require.NoError(t, w.e.Step()) // what came between the last frame and the end
			require.NoError(t, w.e.Stop())
			if c.TemporalFrames > 0 {
				require.NotZero(t, w.e.Stats().Rollbacks)
			}

			again, frame, err := replayed(t, c, os.DirFS(dir), logic.WithLoss(func(n int64, reason error) { t.Errorf("lost %d: %v", n, reason) }))
			require.NoError(t, err)
			require.Equal(t, w.e.FrameNumber(), frame)
			require.NoError(t, again.r.Verify())
			hs, want := w.living()
			hs2, got := again.living()
			require.Equal(t, want, got)
			require.Equal(t, hs, hs2)
			require.NotEmpty(t, hs)
		})
	}
}

// cutPoint is where a record of a journal ends, and which frame is the last one then.
type cutPoint struct {
	at    int
	frame uint64
}

// cutPoints finds the ends of the records of a journal of one segment.
func cutPoints(t testing.TB, b []byte) (points []cutPoint) {
	at, frame := 44, uint64(0)
	for at < len(b) {
		payload := b[at+12:]
		at += 12 + int(binary.LittleEndian.Uint32(b[at:])) + 8
		if payload[0] == 1 {
			frame, _ = binary.Uvarint(payload[1:])
		}
		points = append(points, cutPoint{at, frame})
	}
	require.Equal(t, len(b), at)
	return points
}

// TestSnapshot5ACutJournalIsReplayedToItsLastWholeRecord is the other half of the case snapshot-5: a small journal is cut off behind
// each of its bytes, and every cut is replayed.
func TestSnapshot5ACutJournalIsReplayedToItsLastWholeRecord(t *testing.T) {
	t.Run("snapshot-5", aCutJournalIsReplayedToItsLastWholeRecord)
}

func aCutJournalIsReplayedToItsLastWholeRecord(t *testing.T) {
	c := registry.Config{TemporalFrames: 8, Deterministic: true, MaxEntities: 100}
	dir := t.TempDir()
	w := recorded(t, c, dir)
	rnd := rand.New(rand.NewPCG(9, 9))
	var known []handles.Local
	frames := uint64(12)
	if raceEnabled {
		frames = 8
	}
	for n := range frames {
		if n > 4 && n%3 == 0 {
			require.NoError(t, w.e.Input(1, n-2, []byte{3}), "late")
		}
		w.outside(rnd, &known)
		require.NoError(t, w.e.Step())
	}
	require.NotZero(t, w.e.Stats().Rollbacks)
	require.NoError(t, w.e.Stop())
	const name = "journal-00000001.seg"
	whole, err := os.ReadFile(filepath.Join(dir, name))
	require.NoError(t, err)
	points := cutPoints(t, whole)
	last := 0
	for n := range len(whole) + 1 {
		for last+1 < len(points) && points[last+1].at <= n {
			last++
		}
		var lost int64
		var reason error
		_, frame, err := replayed(t, c, fstest.MapFS{name: {Data: whole[:n]}}, logic.WithLoss(func(n int64, r error) { lost, reason = n, r }))
		if n < points[0].at {
			require.ErrorIs(t, err, snapshot.ErrDamaged, "%d bytes", n)
			require.Zero(t, frame)
			continue
		}
		require.NoError(t, err, "%d bytes", n)
		require.Equal(t, points[last].frame, frame, "%d bytes", n)
		require.EqualValues(t, n-points[last].at, lost)
		require.Equal(t, lost > 0, reason != nil)
		if lost > 0 {
			require.ErrorIs(t, reason, snapshot.ErrDamaged)
		}
	}
}

// TestAJournalBeginsWithAState begins one in the middle of a run, and one after Updates before the first frame.
func TestAJournalBeginsWithAState(t *testing.T) {
	for name, c := range theatreConfigs {
		for _, before := range []int{0, 3, 50} {
			t.Run(fmt.Sprint(name, ", after ", before, " frames"), func(t *testing.T) {
				dir := t.TempDir()
				w := stageOf(t, c)
				var err error
				w.e, err = logic.New(w.r, logic.Config{Workers: 2, OnError: func(error) {}})
				require.NoError(t, err)
				w.direct()
				rnd := rand.New(rand.NewPCG(7, uint64(before)))
				var known []handles.Local
				require.NoError(t, w.r.Update(func(win *registry.Window) error {
					h, err := w.walkers.Spawn(win, walker{})
					known = append(known, h)
					return err
				}))
				step := func(frames int) {
					for range frames {
						n := w.e.FrameNumber()
						require.NoError(t, w.e.Input(0, n+1, []byte{byte(n * 7)}))
						w.outside(rnd, &known)
						if c.TemporalFrames > 0 && n > uint64(before+2) && rnd.IntN(4) == 0 {
							require.NoError(t, w.e.Rollback(max(n-min(n, rnd.Uint64N(10)), uint64(before)+1)))
						}
						require.NoError(t, w.e.Step())
					}
				}
				step(before)
				require.NoError(t, w.e.Journal(dir))
				if before > 0 && c.TemporalFrames > 0 {
					require.ErrorIs(t, w.e.Rollback(uint64(before)-1), logic.ErrTooOld, "it is before the journal")
				}
				step(100)
				require.NoError(t, w.e.Stop())
				again, frame, err := replayed(t, c, os.DirFS(dir))
				require.NoError(t, err)
				require.EqualValues(t, before+100, frame)
				require.NoError(t, again.r.Verify())
				_, want := w.living()
				_, got := again.living()
				require.Equal(t, want, got)
			})
		}
	}
}
