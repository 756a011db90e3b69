package logic_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
	"github.com/airlock-ecs/airlock/views"
)

// A world of its own for rollback: what lives has a place, a pacing and the handle of itself.
type (
	spot   struct{ X, Y float64 }
	pacing struct{ X, Y float64 }
	own    struct {
		Self handles.Local
		Age  uint64
	}
	mark struct{ N uint64 } // added and removed
	memo struct{ Text string }

	walker struct {
		Spot  spot
		Speed pacing
		Own   own
		Memo  memo
	}
	drone struct { // nothing of it is in the ring
		Memo memo
	}
)

// theatre is an engine with systems that do all that systems may do, driven by inputs alone.
type theatre struct {
	t       testing.TB
	r       *registry.Registry
	e       *logic.Engine
	walkers *registry.Class[walker]
	drones  *registry.Class[drone]
	births  bool // only births come from outside
}

// stageOf is a theatre without an engine: the registry with its components and classes.
func stageOf(t testing.TB, c registry.Config) *theatre {
	r, err := registry.New(c)
	require.NoError(t, err)
	temporal[spot](t, r)
	temporal[pacing](t, r)
	temporal[own](t, r)
	temporal[mark](t, r)
	w := &theatre{t: t, r: r}
	w.walkers, err = registry.RegisterClass[walker](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	w.drones, err = registry.RegisterClass[drone](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	return w
}

func newTheatre(t testing.TB, c logic.Config) *theatre {
	w := stageOf(t, registry.Config{TemporalFrames: 16, Deterministic: true, MaxEntities: 5000})
	c.OnError = func(err error) {
		// A wish about somebody whom others have destroyed; an operation that came too late.
		if !errors.Is(err, registry.ErrStale) && !errors.Is(err, logic.ErrStopped) {
			t.Errorf("frame %d: %v", w.e.FrameNumber(), err)
		}
	}
	var err error
	w.e, err = logic.New(w.r, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.e.Stop()) })
	w.direct()
	return w
}

func temporal[C any](t testing.TB, r *registry.Registry) {
	_, err := registry.RegisterComponent[C](r, registry.InTier(archetype.Temporal))
	require.NoError(t, err)
}

// direct registers the systems.
func (w *theatre) direct() {
	type moving struct {
		Spot  []spot
		Speed []pacing `ecs:"read"`
		Own   []own
		ID    []handles.Local
	}
	all, err := views.NewQuery[moving](w.r)
	require.NoError(w.t, err)
	add := func(p logic.Phase, name string, fn func(*logic.Frame)) {
		_, err := w.e.AddSystem(p, name, fn)
		require.NoError(w.t, err)
	}
	add(logic.PrePhysics, "wishes", func(f *logic.Frame) {
		in, _ := f.Input(0)
		more := 1
		if len(in) > 0 {
			more = int(in[0]) % 5
		}
		for range more {
			h, err := w.walkers.SpawnLater(f.Frame, walker{Speed: pacing{f.Rand().Float64(), 1}, Memo: memo{"system"}})
			require.NoError(w.t, err)
			f.Defer(func(win *registry.Window) error { return registry.Set(win, h, own{Self: h}) })
		}
		if f.Rand().IntN(4) == 0 {
			_, err := w.drones.SpawnLater(f.Frame, drone{memo{"drone"}})
			require.NoError(w.t, err)
		}
	})
	add(logic.Physics, "move", func(f *logic.Frame) {
		for m := range all.Runs(f) {
			for i := range m.Spot {
				m.Spot[i].X += m.Speed[i].X * f.Delta
				m.Own[i].Age++
			}
		}
	})
	add(logic.Late, "fate", func(f *logic.Frame) {
		for m := range all.Runs(f) {
			for i, h := range m.ID {
				switch n := f.Rand().IntN(100); {
				case m.Own[i].Age > 40 || n == 0:
					_ = f.Destroy(h) // somebody outside may have been first
				case n < 4 && registry.Has[mark](f, h):
					require.NoError(w.t, registry.RemoveLater[mark](f.Frame, h))
				case n < 4:
					require.NoError(w.t, registry.AddLater(f.Frame, h, mark{m.Own[i].Age}))
				case n == 5:
					if err := registry.SetActive(f, h, false); err != nil { // whoever stood above it may have gone just now
						require.ErrorIs(w.t, err, registry.ErrStale)
						require.ErrorIs(w.t, f.Destroy(h), registry.ErrStale)
					}
				}
			}
		}
	})
}

// outside is what comes from outside before a frame: the same for every theatre with the same seed.
func (w *theatre) outside(rnd *rand.Rand, known *[]handles.Local) {
	enqueue := func(fn func(*registry.Window) error) {
		_, err := w.e.Enqueue(fn)
		require.NoError(w.t, err)
	}
	pick := func() handles.Local {
		if len(*known) == 0 {
			return 0
		}
		return (*known)[rnd.IntN(len(*known))]
	}
	what := rnd.IntN(9)
	if w.births { // what else callbacks do depends on who lives when they run, and they run once
		what = []int{0, 1, 2, 7, 8}[what%5]
	}
	switch a, b := pick(), pick(); what {
	case 0, 1:
		enqueue(func(win *registry.Window) error {
			h, err := w.walkers.Spawn(win, walker{Speed: pacing{2, 2}, Memo: memo{"outside"}})
			require.NoError(w.t, registry.Set(win, h, own{Self: h}))
			*known = append(*known, h)
			return err
		})
	case 2:
		h, err := w.r.Reserve()
		require.NoError(w.t, err)
		*known = append(*known, h)
		enqueue(func(win *registry.Window) error {
			return w.walkers.SpawnReserved(win, h, walker{Own: own{Self: h}})
		})
	case 3:
		_ = w.r.Destroy(a)
	case 4:
		enqueue(func(win *registry.Window) error {
			win.Named("outside")
			_ = win.Destroy(a)
			return nil
		})
	case 5:
		enqueue(func(win *registry.Window) error {
			_ = registry.SetParent(win, a, b)
			_ = registry.Set(win, b, pacing{3, 3})
			if p, err := registry.Get[spot](win, a); err == nil {
				p.Y++
			}
			return nil
		})
	case 6:
		enqueue(func(win *registry.Window) error {
			_ = registry.Add(win, a, mark{7})
			_ = registry.SetActive(win, b, true)
			return nil
		})
	case 7:
		require.NoError(w.t, w.r.Update(func(win *registry.Window) error {
			hs, err := w.walkers.SpawnBatch(win, 3, func(_ int, e *walker) { e.Spot.Y = 9 })
			*known = append(*known, hs...)
			for _, h := range hs {
				require.NoError(w.t, registry.Set(win, h, own{Self: h}))
			}
			return err
		}))
	case 8:
		enqueue(func(win *registry.Window) error {
			_, _ = w.walkers.Spawn(win, walker{})
			return fmt.Errorf("planned")
		})
	}
}

// living lists who lives, in order of slots, each with what it is.
func (w *theatre) living() (hs []handles.Local, state string) {
	type shown struct {
		ID []handles.Local
	}
	q, err := views.NewQuery[shown](w.r)
	require.NoError(w.t, err)
	require.NoError(w.t, w.r.Read(func(s *registry.Snapshot) error {
		for m := range q.Runs(s) {
			for _, h := range m.ID {
				hs = append(hs, h)
				if o, err := registry.Peek[own](s, h); err == nil {
					p, _ := registry.Peek[spot](s, h)
					v, _ := registry.Peek[pacing](s, h)
					k, _ := registry.Peek[mark](s, h)
					state += fmt.Sprintln(h, o, p, v, k)
					if o.Self != 0 {
						require.Equal(w.t, h, o.Self)
					}
				}
			}
		}
		return nil
	}))
	return hs, state
}

// TestLogic17RollbackOnOneSideOnly is the case logic-17.
func TestLogic17RollbackOnOneSideOnly(t *testing.T) { t.Run("logic-17", rollbackOnOneSideOnly) }

func rollbackOnOneSideOnly(t *testing.T) {
	frames := 5000
	if testing.Short() || raceEnabled {
		frames = 150
	}
	plain, back := newTheatre(t, logic.Config{Workers: 1}), newTheatre(t, logic.Config{Workers: 1})
	var knownPlain, knownBack []handles.Local
	one, two := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1))
	depth := rand.New(rand.NewPCG(2, 2))
	for n := range uint64(frames) {
		in := []byte{byte(n * 7)}
		for w, rnd := range map[*theatre]*rand.Rand{plain: one, back: two} {
			known := &knownPlain
			if w == back {
				known = &knownBack
			}
			require.NoError(t, w.e.Input(0, n+1, in))
			w.outside(rnd, known)
		}
		if n > 0 {
			require.NoError(t, back.e.Rollback(n-min(n-1, depth.Uint64N(15))))
		}
		require.NoError(t, plain.e.Step())
		require.NoError(t, back.e.Step())
		require.Equal(t, knownPlain, knownBack)
		hs, state := plain.living()
		hs2, state2 := back.living()
		require.Equal(t, state, state2, "frame %d", n+1)
		require.Equal(t, hs, hs2, "frame %d", n+1)
		require.Equal(t, snapshotHash(t, plain), snapshotHash(t, back), "frame %d", n+1)
		if n%50 == 0 || n < 50 {
			require.NoError(t, plain.r.Verify())
			require.NoError(t, back.r.Verify())
		}
	}
	require.NotZero(t, back.e.Stats().Rollbacks)
}

func snapshotHash(t testing.TB, w *theatre) (hash uint64) {
	require.NoError(t, w.r.Read(func(s *registry.Snapshot) (err error) {
		hash, err = snapshot.Hash(s)
		return err
	}))
	return hash
}

// TestSnapshot4GuessesAreNotCompared is the case snapshot-4: an engine that gets its inputs late and rolls back agrees with
// one that got them in time, once they are all there. Outside handles name who they named.
func TestSnapshot4GuessesAreNotCompared(t *testing.T) { t.Run("snapshot-4", guessesAreNotCompared) }

func guessesAreNotCompared(t *testing.T) {
	frames := 3000
	if testing.Short() || raceEnabled {
		frames = 120
	}
	truth, guess := newTheatre(t, logic.Config{Workers: 1}), newTheatre(t, logic.Config{Workers: 1})
	truth.births, guess.births = true, true
	inputs := rand.New(rand.NewPCG(3, 3))
	delay := rand.New(rand.NewPCG(4, 4))
	one, two := rand.New(rand.NewPCG(5, 5)), rand.New(rand.NewPCG(5, 5))
	var knownTruth, knownGuess []handles.Local
	type late struct {
		frame, due uint64
		data       []byte
	}
	var waiting []late
	state := map[uint64]string{}
	for n := uint64(1); n <= uint64(frames); n++ {
		data := []byte{byte(inputs.Uint32())}
		require.NoError(t, truth.e.Input(0, n, data))
		waiting = append(waiting, late{n, n + delay.Uint64N(12), data})
		truth.outside(one, &knownTruth)
		guess.outside(two, &knownGuess)
		for i := 0; i < len(waiting); i++ {
			if in := waiting[i]; in.due <= n {
				require.NoError(t, guess.e.Input(0, in.frame, in.data))
				waiting = slices.Delete(waiting, i, i+1)
				i--
			}
		}
		require.NoError(t, truth.e.Step())
		require.NoError(t, guess.e.Step())
		require.Equal(t, knownTruth, knownGuess)
		for _, h := range knownGuess { // its own entity or nobody
			_ = guess.r.Read(func(s *registry.Snapshot) error {
				if o, err := registry.Peek[own](s, h); err == nil && o.Self != 0 {
					require.Equal(t, h, o.Self)
				}
				return nil
			})
		}
		_, state[n] = truth.living()
		if len(waiting) == 0 || n%20 == 0 {
			for _, in := range waiting {
				require.NoError(t, guess.e.Input(0, in.frame, in.data))
			}
			waiting = nil
			require.NoError(t, truth.e.Step())
			require.NoError(t, guess.e.Step())
			n++
			_, want := truth.living()
			_, got := guess.living()
			require.Equal(t, want, got, "frame %d", n)
			require.Equal(t, snapshotHash(t, truth), snapshotHash(t, guess), "frame %d", n)
			require.NoError(t, guess.r.Verify())
		}
	}
	require.NotZero(t, guess.e.Stats().Rollbacks)
}

// TestSnapshot4OneFlippedBitIsOneAlarm is the other half of the case snapshot-4: two engines get their inputs late, each
// in its own way, and frames that no input can change any more are compared. Nothing is told until a bit is flipped in
// one of them, and then its frame.
func TestSnapshot4OneFlippedBitIsOneAlarm(t *testing.T) { t.Run("snapshot-4", oneFlippedBitIsOneAlarm) }

func oneFlippedBitIsOneAlarm(t *testing.T) {
	const horizon = 8 // frames; inputs are at most so late
	frames, flipAt := uint64(600), uint64(500)
	if testing.Short() || raceEnabled {
		frames, flipAt = 120, 90
	}
	sides := [2]*theatre{newTheatre(t, logic.Config{Workers: 1}), newTheatre(t, logic.Config{Workers: 1})}
	inputs := rand.New(rand.NewPCG(3, 3))
	type late struct {
		frame, due uint64
		data       []byte
	}
	var waiting [2][]late
	var delays [2]*rand.Rand
	for i := range sides {
		sides[i].births = true
		delays[i] = rand.New(rand.NewPCG(4, uint64(i)))
		require.NoError(t, sides[i].e.Defer(func(win *registry.Window) error {
			_, err := sides[i].walkers.SpawnBatch(win, 20, func(_ int, e *walker) { e.Speed.X = 1 })
			return err
		}))
	}
	var alarm uint64
	var told snapshot.Difference
	for n := uint64(1); n <= frames && alarm == 0; n++ {
		data := []byte{byte(inputs.Uint32())}
		for i, w := range sides {
			waiting[i] = append(waiting[i], late{n, n + delays[i].Uint64N(horizon), data})
			waiting[i] = slices.DeleteFunc(waiting[i], func(in late) bool {
				if in.due > n {
					return false
				}
				require.NoError(t, w.e.Input(0, in.frame, in.data))
				return true
			})
			if i == 1 && n == flipAt {
				require.NoError(t, w.e.Defer(flipABit(w)))
			}
			require.NoError(t, w.e.Step())
		}
		if n <= horizon {
			continue
		}
		if d, differ := differenceAt(t, sides, n-horizon); differ {
			alarm, told = n-horizon, d
		}
	}
	require.Equal(t, flipAt, alarm)
	require.Contains(t, told.String(), "spot.X")
	for _, w := range sides {
		require.NotZero(t, w.e.Stats().Rollbacks)
		require.NoError(t, w.r.Verify())
	}
}

// differenceAt is what two theatres differ in, in a frame that the ring still has.
func differenceAt(t testing.TB, sides [2]*theatre, frame uint64) (snapshot.Difference, bool) {
	var shots [2]*registry.Snapshot
	for i, w := range sides {
		s, err := w.r.AcquireAt(frame)
		require.NoError(t, err)
		defer s.Release()
		shots[i] = s
	}
	return snapshot.DiffTemporal(shots[0], shots[1])
}

// flipABit is an operation that changes one bit of one cell.
func flipABit(w *theatre) func(*registry.Window) error {
	return func(win *registry.Window) error {
		q, err := views.NewQuery[struct {
			Spot []spot
			ID   []handles.Local
		}](w.r)
		if err != nil {
			return err
		}
		for m := range q.Runs(win) {
			flipped := m.Spot[0]
			flipped.X = math.Float64frombits(math.Float64bits(flipped.X) ^ 1)
			return registry.Set(win, m.ID[0], flipped)
		}
		return errors.New("nobody lives")
	}
}

// TestLogic18TheDepthOfTheRing is the case logic-18.
func TestLogic18TheDepthOfTheRing(t *testing.T) { t.Run("logic-18", theDepthOfTheRing) }

func theDepthOfTheRing(t *testing.T) {
	w := newTheatre(t, logic.Config{Workers: 1})
	states := map[uint64]string{}
	step := func() {
		require.NoError(t, w.e.Step())
		_, states[w.e.FrameNumber()] = w.living()
	}
	for range 40 {
		step()
	}
	unchanged := func() {
		t.Helper()
		hash := snapshotHash(t, w)
		require.ErrorIs(t, w.e.Rollback(24), logic.ErrTooOld)
		require.ErrorIs(t, w.e.Rollback(41), registry.ErrNotPublished)
		require.ErrorIs(t, w.e.Input(0, 24, []byte{1}), logic.ErrTooOld)
		require.NoError(t, w.e.Rollback(40), "the present")
		require.Equal(t, hash, snapshotHash(t, w))
		require.Zero(t, w.e.Stats().Rollbacks)
	}
	unchanged()
	require.NoError(t, w.e.Rollback(30))
	require.NoError(t, w.e.Rollback(25), "the oldest; of two requests the deeper one")
	require.NoError(t, w.e.Rollback(28))
	again := map[uint64]string{}
	q, err := views.NewQuery[struct{ Own []own }](w.r)
	require.NoError(t, err)
	_, err = w.e.AddSystem(logic.Late, "look", func(f *logic.Frame) { again[f.FrameNumber()] = fmt.Sprint(q.Count(f)) })
	require.NoError(t, err)
	step()
	require.EqualValues(t, 1, w.e.Stats().Rollbacks)
	require.NoError(t, w.r.Verify())

	other := newTheatre(t, logic.Config{Workers: 1})
	for range 41 {
		require.NoError(t, other.e.Step())
	}
	_, want := other.living()
	require.Equal(t, want, states[41], "as if nothing had been")
	require.Len(t, again, 1, "a system that was added later does not run in frames before")

	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	e, err := logic.New(r, logic.Config{})
	require.NoError(t, err)
	require.NoError(t, e.Step())
	require.NoError(t, e.Step())
	require.ErrorIs(t, e.Rollback(1), logic.ErrTooOld, "without a ring")
	require.NoError(t, e.Rollback(2))
	require.NoError(t, e.Stop())
	require.ErrorIs(t, w.e.Rollback(0), logic.ErrTooOld)
}

// TestASecondDeeperRollback goes back, and then further than the first time, and over what was spawned since.
func TestASecondDeeperRollback(t *testing.T) {
	w, other := newTheatre(t, logic.Config{Workers: 1}), newTheatre(t, logic.Config{Workers: 1})
	for range 30 {
		require.NoError(t, w.e.Step())
		require.NoError(t, other.e.Step())
	}
	for i, depth := range []uint64{5, 12, 3, 15, 15} {
		require.NoError(t, w.e.Rollback(w.e.FrameNumber()-depth), "%d", i)
		require.NoError(t, w.e.Step())
		require.NoError(t, other.e.Step())
		require.NoError(t, w.r.Verify())
		_, want := other.living()
		_, got := w.living()
		require.Equal(t, want, got, "%d", i)
	}
}

// TestResetEndsTheHistory cannot go back over a Reset.
func TestResetEndsTheHistory(t *testing.T) {
	w := newTheatre(t, logic.Config{Workers: 1})
	for range 20 {
		require.NoError(t, w.e.Step())
	}
	require.NoError(t, w.e.Defer(func(win *registry.Window) error { return win.Reset() }))
	require.NoError(t, w.e.Step())
	require.NoError(t, w.r.Verify())
	require.ErrorIs(t, w.e.Rollback(20), logic.ErrTooOld)
	for range 6 {
		require.NoError(t, w.e.Step())
	}
	require.ErrorIs(t, w.e.Rollback(20), logic.ErrTooOld)
	require.NoError(t, w.e.Rollback(21), "the frame of the Reset")
	require.NoError(t, w.e.Step())
	require.NoError(t, w.r.Verify())
}

// TestSnapshot3TheForgottenField is the case snapshot-3: a system counts in a Cold field and lets the count into a Temporal
// one. SyncTest stops in the first frame that used it, and names the component.
func TestSnapshot3TheForgottenField(t *testing.T) { t.Run("snapshot-3", theForgottenField) }

func theForgottenField(t *testing.T) {
	r, err := registry.New(registry.Config{TemporalFrames: 8, Deterministic: true})
	require.NoError(t, err)
	temporal[spot](t, r)
	type counter struct{ N int } // Cold: forgotten
	type pawn struct {
		Spot  spot
		Count counter
	}
	pawns, err := registry.RegisterClass[pawn](r)
	require.NoError(t, err)
	e, err := logic.New(r, logic.Config{SyncTest: 3, Workers: 1})
	require.NoError(t, err)
	var h handles.Local
	require.NoError(t, e.Defer(func(w *registry.Window) (err error) {
		h, err = pawns.Spawn(w, pawn{})
		return err
	}))
	_, err = e.AddSystem(logic.Physics, "count", func(f *logic.Frame) {
		c, err := registry.Get[counter](f, h)
		require.NoError(t, err)
		c.N++
		if f.FrameNumber() >= 10 {
			require.NoError(t, registry.Set(f, h, spot{X: float64(c.N)}))
		}
	})
	require.NoError(t, err)
	for range 9 {
		require.NoError(t, e.Step())
	}
	err = e.Step()
	var desync *logic.DesyncError
	require.ErrorAs(t, err, &desync)
	require.ErrorIs(t, err, logic.ErrDesync)
	require.EqualValues(t, 10, desync.Frame)
	require.Contains(t, err.Error(), "spot")
	require.Equal(t, h, desync.Difference.Entity)
	require.ErrorIs(t, e.Step(), logic.ErrStopped)
	require.NoError(t, e.Stop())
}

// A sync test compares what the same inputs give: one that comes for a frame which has begun is seen by the rollback
// that it asks for, and not before.
func TestASyncTestHasTheInputsOfTheFirstTime(t *testing.T) {
	for late := range uint64(4) { // how many frames ago the one was that it is for
		r, err := registry.New(registry.Config{TemporalFrames: 16, Deterministic: true})
		require.NoError(t, err)
		temporal[spot](t, r)
		walkers, err := registry.RegisterClass[walker](r)
		require.NoError(t, err)
		e, err := logic.New(r, logic.Config{SyncTest: 3, Workers: 1})
		require.NoError(t, err)
		var h handles.Local
		require.NoError(t, e.Defer(func(w *registry.Window) (err error) {
			h, err = walkers.Spawn(w, walker{})
			return err
		}))
		_, err = e.AddSystem(logic.Physics, "steer", func(f *logic.Frame) {
			if f.FrameNumber() == 10 { // of all that may come from a network just now
				require.NoError(t, e.Input(0, 10-late, []byte{7}))
			}
			if in, ok := f.Input(0); ok {
				s, err := registry.Get[spot](f, h)
				require.NoError(t, err)
				s.X += float64(in[0])
			}
		})
		require.NoError(t, err)
		for range 20 {
			require.NoError(t, e.Step(), "an input for %d frames ago", late)
		}
		require.EqualValues(t, 1, e.Stats().Rollbacks)
		require.NoError(t, r.Read(func(s *registry.Snapshot) error {
			at, err := registry.Peek[spot](s, h)
			require.EqualValues(t, 7, at.X)
			return err
		}))
		require.NoError(t, e.Stop())
	}
}

// TestSyncTestOfOneImpureFrame finds it at once, whichever frame it is and however far the sync test goes back.
func TestSyncTestOfOneImpureFrame(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for impure := uint64(n + 1); impure < uint64(n+10); impure++ {
			r, err := registry.New(registry.Config{TemporalFrames: 16, Deterministic: true})
			require.NoError(t, err)
			temporal[spot](t, r)
			walkers, err := registry.RegisterClass[walker](r)
			require.NoError(t, err)
			e, err := logic.New(r, logic.Config{SyncTest: n, Workers: 1})
			require.NoError(t, err)
			var h handles.Local
			require.NoError(t, e.Defer(func(w *registry.Window) (err error) {
				h, err = walkers.Spawn(w, walker{})
				return err
			}))
			runs := 0 // no part of the state
			_, err = e.AddSystem(logic.Physics, "impure", func(f *logic.Frame) {
				s, err := registry.Get[spot](f, h)
				require.NoError(t, err)
				s.X++
				if f.FrameNumber() == impure {
					runs++
					s.X = float64(100 * runs)
				}
			})
			require.NoError(t, err)
			for range impure - 1 {
				require.NoError(t, e.Step())
			}
			var desync *logic.DesyncError
			require.ErrorAs(t, e.Step(), &desync, "%d frames, and frame %d is impure", n, impure)
			require.Equal(t, impure, desync.Frame)
			require.NoError(t, e.Stop())
		}
	}
}

// TestSyncTestOfAWholeWorld finds nothing in the theatre.
func TestSyncTestOfAWholeWorld(t *testing.T) {
	for _, n := range []int{2, 7} {
		w := newTheatre(t, logic.Config{Workers: 2, SyncTest: n})
		rnd := rand.New(rand.NewPCG(6, 6))
		var known []handles.Local
		for range 150 {
			w.outside(rnd, &known)
			require.NoError(t, w.e.Step())
			require.NoError(t, w.r.Read(func(s *registry.Snapshot) error {
				require.Equal(t, w.e.FrameNumber(), s.FrameNumber())
				return nil
			}))
		}
		require.Zero(t, w.e.Stats().PublishSkips, "a frame that is simulated again is none")
		require.NoError(t, w.r.Verify())
	}
	r, err := registry.New(registry.Config{TemporalFrames: 8})
	require.NoError(t, err)
	_, err = logic.New(r, logic.Config{SyncTest: 4})
	require.ErrorContains(t, err, "SyncTest")
	r, err = registry.New(registry.Config{})
	require.NoError(t, err)
	_, err = logic.New(r, logic.Config{SyncTest: 1})
	require.ErrorContains(t, err, "temporal ring")
}
