package logic_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

func (w *hotel) hash() (hash uint64) {
	require.NoError(w.t, w.r.Read(func(s *registry.Snapshot) (err error) {
		hash, err = snapshot.Hash(s)
		return err
	}))
	return hash
}

var ringOf16 = registry.Config{TemporalFrames: 16, Deterministic: true}

// TestPoolsWhereOneSideRollsBack runs two hotels, one of which goes back before each frame.
func TestPoolsWhereOneSideRollsBack(t *testing.T) {
	seeds, frames := 7, 300
	if testing.Short() || raceEnabled {
		seeds, frames = 2, 80
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { oneSideRollsBack(t, ringOf16, seed, frames) })
	}
}

func oneSideRollsBack(t *testing.T, c registry.Config, seed uint64, frames int) {
	hotels, known := [2]*hotel{}, [2][]handles.Local{}
	rnd := [2]*rand.Rand{rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))}
	inputs, depth := rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 3))
	for i := range hotels {
		hotels[i] = newHotel(t, c, logic.Config{Workers: 1}, 10, 70, 5)
		hotels[i].direct()
	}
	one, back := hotels[0], hotels[1]
	for n := range uint64(frames) {
		in := []byte{byte(inputs.Uint32()), byte(inputs.Uint32())}
		for i, w := range hotels {
			if w.outside(rnd[i], &known[i]) {
				in = append(in[:2], 1)
			}
			require.NoError(t, w.e.Input(0, n+1, in))
		}
		if n > 0 {
			require.NoError(t, back.e.Rollback(n-min(n-1, depth.Uint64N(uint64(c.TemporalFrames-1)))))
		}
		require.NoError(t, one.e.Step())
		require.NoError(t, back.e.Step())
		require.Equal(t, known[0], known[1], "frame %d", n+1)
		if n%8 == 0 || one.hash() != back.hash() || !slices.Equal(one.slots(), back.slots()) {
			sameLines(t, one.register(), back.register(), n+1)
		}
		require.Equal(t, one.slots(), back.slots(), "frame %d", n+1)
		require.Equal(t, one.hash(), back.hash(), "frame %d", n+1)
		if n%16 == 0 || n < 40 {
			require.NoError(t, one.r.Verify(), "frame %d", n+1)
			require.NoError(t, back.r.Verify(), "frame %d", n+1)
		}
	}
	require.NotZero(t, back.e.Stats().Rollbacks)
}

// sameLines compares two texts and shows the lines that differ.
func sameLines(t testing.TB, want, got string, frame uint64) {
	t.Helper()
	if want == got {
		return
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Errorf("frame %d:\nwant %s\ngot  %s", frame, a[i], b[i])
		}
	}
	require.Equal(t, len(a), len(b))
	t.FailNow()
}

// TestSyncTestOfPools finds nothing in a hotel, and what is planted in one.
func TestSyncTestOfPools(t *testing.T) {
	for _, n := range []int{2, 7} {
		w := newHotel(t, ringOf16, logic.Config{Workers: 2, SyncTest: n}, 10, 70, 5)
		w.direct()
		rnd := rand.New(rand.NewPCG(6, 6))
		var known []handles.Local
		for frame := range uint64(100) {
			in := []byte{byte(frame), 0}
			if w.outside(rnd, &known) {
				in = append(in, 1)
			}
			require.NoError(t, w.e.Input(0, frame+1, in))
			require.NoError(t, w.e.Step())
		}
		require.NoError(t, w.r.Verify())
	}
	w := newHotel(t, ringOf16, logic.Config{Workers: 1, SyncTest: 3, OnError: func(error) {}}, 10)
	runs := 0 // no part of the state
	w.add(logic.Physics, "planted", func(f *logic.Frame) {
		if runs++; f.FrameNumber() < 10 || runs%2 == 0 {
			h, _ := w.arrive(f, 0)
			require.NoError(t, w.pool(0).DespawnNow(f.Frame, h))
		}
	})
	for range 9 {
		require.NoError(t, w.e.Step())
	}
	var desync *logic.DesyncError
	for range 3 {
		if err := w.e.Step(); err != nil {
			require.ErrorAs(t, err, &desync)
			break
		}
	}
	require.NotNil(t, desync)
	require.GreaterOrEqual(t, desync.Frame, uint64(10))
	require.ErrorIs(t, w.e.Step(), logic.ErrStopped)
}

// TestPoolsThatGuess is TestSnapshot4GuessesAreNotCompared for pools: once all inputs are there, who got them late agrees with who
// got them in time.
func TestPoolsThatGuess(t *testing.T) {
	frames := 300
	if testing.Short() || raceEnabled {
		frames = 80
	}
	hotels, known := [2]*hotel{}, [2][]handles.Local{}
	rnd := [2]*rand.Rand{rand.New(rand.NewPCG(5, 5)), rand.New(rand.NewPCG(5, 5))}
	for i := range hotels { // so large that nobody from outside is refused
		hotels[i] = newHotel(t, ringOf16, logic.Config{Workers: 1}, 150, 300, 150)
		hotels[i].births, hotels[i].most = true, 3
		hotels[i].direct()
	}
	truth, guess := hotels[0], hotels[1]
	inputs, delay := rand.New(rand.NewPCG(3, 3)), rand.New(rand.NewPCG(4, 4))
	type late struct {
		frame, due uint64
		data       []byte
	}
	var waiting []late
	step := func() {
		for i, w := range hotels {
			w.outside(rnd[i], &known[i])
			require.NoError(t, w.e.Step())
		}
		require.Equal(t, known[0], known[1])
	}
	for n := uint64(1); n <= uint64(frames); n++ {
		in := late{n, n + delay.Uint64N(12), []byte{byte(inputs.Uint32()), byte(inputs.Uint32())}}
		require.NoError(t, truth.e.Input(0, n, in.data))
		waiting = append(waiting, in)
		whole := n%20 == 0
		waiting = slices.DeleteFunc(waiting, func(in late) bool {
			if in.due > n && !whole {
				return false
			}
			require.NoError(t, guess.e.Input(0, in.frame, in.data))
			return true
		})
		step()
		guess.honest()
		if len(waiting) == 0 {
			sameLines(t, unmeasured(truth.register()), unmeasured(guess.register()), n)
			require.Equal(t, truth.hash(), guess.hash(), "frame %d", n)
			require.NoError(t, guess.r.Verify())
		}
	}
	require.NotZero(t, guess.e.Stats().Rollbacks)
}

// unmeasured is a register without the counters of pools: a guess may have had more in use, and refused more.
func unmeasured(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "pool") }), "\n")
}

// TestHandlesFromOutsideNameTheirOwnOrNobody whatever late inputs have the systems do, and whatever comes from outside.
func TestHandlesFromOutsideNameTheirOwnOrNobody(t *testing.T) {
	seeds, frames := 6, 150
	if testing.Short() || raceEnabled {
		seeds, frames = 2, 60
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { lateInputs(t, seed, frames) })
	}
}

func lateInputs(t *testing.T, seed uint64, frames int) {
	w := newHotel(t, registry.Config{TemporalFrames: 16}, logic.Config{Workers: 1}, 10, 70, 5)
	w.direct()
	rnd := rand.New(rand.NewPCG(seed, 7))
	var known []handles.Local
	for n := range uint64(frames) {
		in := []byte{byte(rnd.Uint32()), byte(rnd.Uint32())}
		if w.outside(rnd, &known) {
			in = append(in, 1)
		}
		require.NoError(t, w.e.Input(0, n+1, in))
		if n > 14 { // late ones, which change the past
			require.NoError(t, w.e.Input(0, n-rnd.Uint64N(12), []byte{byte(rnd.Uint32()), byte(rnd.Uint32())}))
		}
		require.NoError(t, w.e.Step())
		w.honest()
		if n%4 == 0 {
			require.NoError(t, w.r.Verify(), "frame %d", n+1)
		}
	}
}

// TestGoingBackOverTheMakingOfAPool from outside: whoever has it has it again.
func TestGoingBackOverTheMakingOfAPool(t *testing.T) {
	run := func(back bool) string {
		w := newHotel(t, ringOf16, logic.Config{Workers: 1}, 3)
		w.direct()
		w.most = 0
		step := func(n int) {
			for range n {
				require.NoError(t, w.e.Step())
				require.NoError(t, w.r.Verify())
			}
		}
		step(2)
		var p *pool.Entities[guest]
		var h handles.Local
		require.NoError(t, w.e.Defer(func(win *registry.Window) error {
			p = w.build(win, 90)
			return nil
		}))
		step(2)
		first, last := p.Slot(1), p.Slot(89)
		require.NoError(t, w.e.Defer(func(win *registry.Window) error {
			h, _ = w.check(win, 1, 1)
			require.NoError(t, registry.Set(win, last, spot{Y: 5})) // an idle slot is good for that
			return nil
		}))
		step(3)
		for _, to := range []uint64{6, 5, 3, 2, 1, 4, 2} {
			if back {
				require.NoError(t, w.e.Rollback(to))
			}
			step(1)
			require.True(t, p.Block().Made())
			require.Equal(t, 90, p.Len())
			require.Equal(t, last, p.Slot(89))
			require.Equal(t, handles.NewLocal(first.Index(), p.Slot(1).Generation()), p.Slot(1))
			require.NoError(t, w.r.Read(func(s *registry.Snapshot) error {
				if b, err := registry.Peek[badge](s, h); err == nil {
					require.Equal(t, badge{h, 1}, b)
				}
				at, err := registry.Peek[spot](s, last)
				require.Equal(t, spot{Y: 5}, at)
				return err
			}))
		}
		return w.register()
	}
	sameLines(t, run(false), run(true), 14)
}

// TestAPoolThatIsNotMadeThisTime by a system that wishes for it: who has it has nothing, and what comes from outside
// finds its own pool all the same.
func TestAPoolThatIsNotMadeThisTime(t *testing.T) {
	w := newHotel(t, ringOf16, logic.Config{Workers: 1}, 3)
	var wished []*pool.Entities[guest]
	w.add(logic.Physics, "wish", func(f *logic.Frame) {
		if in, _ := f.Input(1); len(in) > 0 {
			f.Defer(func(win *registry.Window) error {
				p := w.build(win, 20)
				wished = append(wished, p)
				h, ok := p.Spawn(win, guest{})
				require.True(t, ok)
				return registry.Set(win, h, badge{Self: h})
			})
		}
	})
	step := func() {
		require.NoError(t, w.e.Step())
		require.NoError(t, w.r.Verify())
	}
	step()
	require.NoError(t, w.e.Input(1, 2, []byte{1}))
	step()
	step()
	require.Len(t, wished, 1)
	var mine *pool.Entities[guest]
	var h handles.Local
	require.NoError(t, w.e.Defer(func(win *registry.Window) error {
		mine = w.build(win, 30)
		return nil
	}))
	step()
	require.NoError(t, w.e.Defer(func(win *registry.Window) error {
		h, _ = w.check(win, 2, 4)
		return nil
	}))
	step()
	slot, _ := mine.SlotOf(h)
	ghost := wished[0].Slot(5)
	found := func() {
		t.Helper()
		require.True(t, mine.Block().Made())
		i, ok := mine.SlotOf(h)
		require.True(t, ok)
		require.Equal(t, slot, i)
		require.True(t, w.r.Alive(h))
		w.honest()
	}
	for range 2 {
		require.NoError(t, w.e.Input(1, 2, nil))
		step()
		found()
		for _, p := range wished {
			require.False(t, p.Block().Made())
			require.Zero(t, p.Stats().Cap)
		}
		require.False(t, w.r.Alive(ghost))
		require.NoError(t, w.e.Defer(func(win *registry.Window) error {
			_, ok := wished[0].Spawn(win, guest{})
			require.False(t, ok)
			require.ErrorIs(t, wished[0].Despawn(win, ghost), registry.ErrStale)
			return nil
		}))
		step()
		require.NoError(t, w.e.Input(1, 2, []byte{1}))
		step()
		found()
		require.True(t, wished[len(wished)-1].Block().Made())
		require.Equal(t, 1, wished[len(wished)-1].Stats().InUse)
	}
	require.NoError(t, w.e.Rollback(1))
	n := len(wished)
	step()
	require.Len(t, wished, n+1)
	require.Same(t, wished[n-1].Block(), wished[n].Block(), "made once more as it was")
	found()
}

// TestAPoolOfACallbackThatFails is nobody's, whether an operation makes it or a wish, and however often.
func TestAPoolOfACallbackThatFails(t *testing.T) {
	run := func(back bool) string {
		w := newHotel(t, ringOf16, logic.Config{Workers: 1}, 3)
		var ghosts []handles.Local
		fail := func(win *registry.Window) error {
			p := w.build(win, 40)
			for range 3 {
				h, ok := p.Spawn(win, guest{})
				require.True(t, ok)
				ghosts = append(ghosts, h, p.Slot(7))
				require.NoError(t, p.Despawn(win, h))
			}
			h, _ := p.Spawn(win, guest{})
			ghosts = append(ghosts, h)
			return errTest
		}
		w.add(logic.Physics, "wish", func(f *logic.Frame) {
			if f.FrameNumber()%3 == 0 {
				f.Defer(fail)
			}
			w.arrive(f, 0)
			w.pool(0).DespawnWhereNow(f.Frame, func(handles.Local, *guest) bool { return f.Rand().IntN(2) == 0 })
		})
		for n := range uint64(20) {
			if n%4 == 2 {
				_, err := w.e.Enqueue(fail)
				require.NoError(t, err)
			}
			if back && n > 2 {
				require.NoError(t, w.e.Rollback(n-min(n-1, n*7%13)))
			}
			require.NoError(t, w.e.Step())
			require.NoError(t, w.r.Verify())
			require.Len(t, w.all(), 1)
			for _, h := range ghosts {
				require.False(t, w.r.Alive(h))
			}
			if n == 12 { // a pool that takes the place
				require.NoError(t, w.r.Update(func(win *registry.Window) error {
					_, err := w.guests.SpawnBatch(win, 40, nil)
					return err
				}))
			}
		}
		return w.register()
	}
	sameLines(t, run(false), run(true), 20)
}

// TestSlotsDestroyedBeforeTheirPoolIsThereAgain by a system that has a handle that it should not have.
func TestSlotsDestroyedBeforeTheirPoolIsThereAgain(t *testing.T) {
	w := newHotel(t, registry.Config{TemporalFrames: 16}, logic.Config{Workers: 1}, 3)
	var doomed []handles.Local
	again := false
	w.add(logic.Physics, "early", func(f *logic.Frame) {
		if again && f.FrameNumber() == 2 {
			for _, h := range doomed {
				require.NoError(t, w.r.Destroy(h))
			}
		}
	})
	step := func(n int) {
		for range n {
			require.NoError(t, w.e.Step())
			require.NoError(t, w.r.Verify())
		}
	}
	step(3)
	var p *pool.Entities[guest]
	require.NoError(t, w.e.Defer(func(win *registry.Window) error {
		p = w.build(win, 8)
		h, _ := w.check(win, 1, 1)
		doomed = append(doomed, h, p.Slot(2), p.Slot(7))
		return nil
	}))
	step(2)
	again = true
	require.NoError(t, w.e.Rollback(1))
	step(1)
	again = false
	step(2)
	for _, h := range doomed {
		require.False(t, w.r.Alive(h))
	}
	require.Equal(t, 8, p.Stats().Free)
	require.NoError(t, w.e.Rollback(2))
	step(20)
}

// TestRegistry13ALedgerOfPools is TestRegistry13ALedgerSurvivesRollbacks for pools: who hears of everything knows who lives, and where.
func TestRegistry13ALedgerOfPools(t *testing.T) {
	frames := 200
	if testing.Short() || raceEnabled {
		frames = 60
	}
	w := newHotel(t, ringOf16, logic.Config{Workers: 1}, 10, 70, 5)
	w.direct()
	l := keepLogbook(t, w.r)
	_, err := w.r.Observe(registry.Destroyed, func(_ *registry.Frame, es []registry.Event) {
		for _, e := range es {
			delete(l.at, e.Entity) // with other inputs somebody else may get the name of one who is not born
		}
	})
	require.NoError(t, err)
	rnd := rand.New(rand.NewPCG(8, 8))
	var known []handles.Local
	for range frames {
		now := w.e.FrameNumber()
		in := []byte{byte(rnd.Uint32()), byte(rnd.Uint32())}
		if w.outside(rnd, &known) {
			in = append(in, 1)
		}
		require.NoError(t, w.e.Input(0, now+1, in))
		switch {
		case now > 14 && rnd.IntN(5) == 0:
			require.NoError(t, w.e.Input(0, now-rnd.Uint64N(12), []byte{byte(rnd.Uint32()), 3}))
		case now > 2 && rnd.IntN(3) == 0:
			require.NoError(t, w.e.Rollback(now-min(now-1, rnd.Uint64N(14))))
		}
		require.NoError(t, w.e.Step())
		require.NoError(t, w.r.Read(func(s *registry.Snapshot) error {
			living := 0
			for h, alive := range l.alive {
				at, ok := registry.CacheIndex(s, h)
				if b, err := registry.Peek[badge](s, h); err != nil || b.Self != h {
					ok = false // an idle slot has the name that it had before somebody was there who is not this time
				}
				require.Equal(t, alive, ok, "%v in frame %d", h, s.FrameNumber())
				if moved, known := l.at[h]; ok && known {
					require.Equal(t, moved, at, "%v", h)
				}
				if ok {
					living++
				}
			}
			require.Equal(t, w.r.Stats().Live, living)
			return nil
		}))
	}
	require.NotZero(t, w.e.Stats().Rollbacks)
}

// TestOutsidersInPoolsAmidRollbacks has goroutines spawn, despawn, destroy and roll back while an engine runs.
func TestOutsidersInPoolsAmidRollbacks(t *testing.T) {
	w := newHotel(t, registry.Config{TemporalFrames: 16}, logic.Config{Workers: 2, Rate: 2000, OnError: func(error) {}}, 10, 70, 200)
	w.most, w.crowd = 3, true
	w.direct()
	pools := w.all()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.e.Run(ctx) }()
	rounds := 200
	if raceEnabled {
		rounds = 50
	}
	var callers sync.WaitGroup
	for k := range uint64(6) {
		callers.Go(func() {
			rnd := rand.New(rand.NewPCG(k, k))
			var mine []handles.Local
			for i := range rounds {
				p := pools[rnd.IntN(len(pools))]
				switch rnd.IntN(6) {
				case 0, 1:
					var h handles.Local
					err := w.e.Spawn(t.Context(), func(win *registry.Window) (err error) {
						if h, _ = p.Spawn(win, guest{}); h != 0 {
							err = registry.Set(win, h, badge{Self: h})
						}
						if i%3 == 0 {
							err = errTest
						}
						return err
					})
					if err == nil && h != 0 {
						mine = append(mine, h)
					}
				case 2:
					_ = w.e.Defer(func(win *registry.Window) error { return p.Despawn(win, p.Slot(i%p.Len())) })
				case 3:
					if len(mine) > 0 {
						_ = w.r.Destroy(mine[rnd.IntN(len(mine))])
					}
					_ = w.r.Destroy(p.Slot(i % p.Len()))
				case 4:
					_ = w.e.Rollback(max(w.e.FrameNumber(), 10) - rnd.Uint64N(9))
				case 5:
					_ = w.e.Input(0, max(w.e.FrameNumber(), 10)-rnd.Uint64N(6), []byte{byte(rnd.Uint32())})
				}
				if c := p.Stats(); c.InUse+c.Free != c.Cap {
					t.Errorf("%+v", c)
				}
				_ = w.r.Read(func(s *registry.Snapshot) error {
					for _, h := range mine[max(0, len(mine)-10):] {
						if b, err := registry.Peek[badge](s, h); err == nil && b.Self != h {
							t.Errorf("%v is %v", h, b.Self)
						}
					}
					return nil
				})
			}
		})
	}
	callers.Wait()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.NoError(t, w.r.Verify())
	require.NotZero(t, w.e.Stats().Rollbacks)
}

// TestReplayOfPools does a journal again that begins with a saved state with pools, with rollbacks and without a ring.
func TestReplayOfPools(t *testing.T) {
	frames := 200
	if testing.Short() || raceEnabled {
		frames = 60
	}
	for name, c := range theatreConfigs {
		t.Run(name, func(t *testing.T) {
			w := newHotel(t, c, logic.Config{Workers: 1}, 10, 70, 5)
			w.direct()
			var known []handles.Local
			rnd := rand.New(rand.NewPCG(9, 9))
			dir := t.TempDir()
			for n := range uint64(frames) {
				if n == 10 {
					require.NoError(t, w.e.Journal(dir))
				}
				in := []byte{byte(rnd.Uint32()), byte(rnd.Uint32())}
				if w.outside(rnd, &known) {
					in = append(in, 1)
				}
				require.NoError(t, w.e.Input(0, n+1, in))
				if c.TemporalFrames > 0 && n > 30 && n%5 == 0 {
					require.NoError(t, w.e.Rollback(n-rnd.Uint64N(12)))
				}
				require.NoError(t, w.e.Step())
			}
			require.NoError(t, w.e.Stop())
			again := lotOf(t, c)
			frame, err := logic.Replay(again.r, os.DirFS(dir), logic.WithWorkers(1), logic.WithSystems(func(e *logic.Engine) error {
				again.e = e
				again.direct()
				return nil
			}))
			require.NoError(t, err)
			require.EqualValues(t, frames, frame)
			require.NoError(t, again.r.Verify())
			require.Equal(t, w.hash(), again.hash())
			for _, b := range registry.BlocksOf(again.r, again.guests) {
				require.Contains(t, again.pools, b)
			}
			sameLines(t, unmeasured(w.register()), unmeasured(again.register()), frame)
		})
	}
}

// TestASteadyFrameOfPoolsAllocatesNothing with a ring and without.
func TestASteadyFrameOfPoolsAllocatesNothing(t *testing.T) {
	countsAllocations(t)
	if raceEnabled || check.Enabled {
		t.Skip("both allocate")
	}
	for name, c := range map[string]registry.Config{"plain": {}, "with a ring": {TemporalFrames: 8}} {
		t.Run(name, func(t *testing.T) {
			w := newHotel(t, c, logic.Config{Workers: 1}, 300)
			p := w.pool(0)
			var hs []handles.Local
			w.add(logic.Physics, "churn", func(f *logic.Frame) {
				for i, h := range hs {
					switch i % 3 {
					case 0:
						_ = f.Destroy(h)
					case 1:
						_ = p.DespawnNow(f.Frame, h)
					}
				}
				p.DespawnWhereNow(f.Frame, func(h handles.Local, _ *guest) bool { return true })
				hs = hs[:0]
				for range 100 {
					h, ok := p.SpawnNow(f.Frame, guest{Spot: spot{X: 1}})
					if !ok {
						panic("full")
					}
					hs = append(hs, h)
				}
			})
			outside := func(win *registry.Window) error {
				if h, ok := p.Spawn(win, guest{}); ok {
					return p.Despawn(win, h)
				}
				return nil
			}
			step := func() {
				_ = w.e.Defer(outside)
				_ = w.e.Step()
			}
			for range 100 {
				step()
			}
			require.EqualValues(t, 1, testing.AllocsPerRun(200, step), "DespawnWhere makes the copy that it shows")
		})
	}
}
