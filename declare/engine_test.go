package declare_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
	"github.com/airlock-ecs/airlock/views"
)

const wait, tick = 10 * time.Second, time.Millisecond

// busy spawns and despawns all the time, in a pool that has few slots for it.
const busy = `world {
  entity source { state = (x = 0, v = 1.5) }
  entity lamp { state = (x = 0, v = 0) }
  pool p[70] { state = (x = 7, v = 7) }
  entity bare { }
  pool q[5] { }
}
systems {
  spawn { on = source; pool = p; count = 3; every = 2 }
  spawn { on = bare; pool = q; every = 3; phase = 1 }
  update { on = p; dt = 0.1 x = x + inte(v) v = v + 0.3 * sign(@source.x - 2) }
  update { on = source x = x + 0.1 v = if(x > 3, -v, v) }
  despawn { on = p; when = x > 3 or x < -2 }
  update { on = q; active = t < 0.5 }
  update { on = lamp; active = @source.x < 2 }
}`

// engine is a registry with an engine, in which a world is.
func engine(t *testing.T, src string, rc registry.Config, lc logic.Config, o declare.Options) (*logic.Engine, *declare.World) {
	t.Helper()
	e := newEngine(t, rc, lc)
	w, err := declare.Attach(e, load(t, src, nil), o)
	require.NoError(t, err)
	return e, w
}

func newEngine(t *testing.T, rc registry.Config, lc logic.Config) *logic.Engine {
	t.Helper()
	r, err := registry.New(rc)
	require.NoError(t, err)
	e, err := logic.New(r, lc)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, e.Stop())
		require.NoError(t, r.Verify())
	})
	return e
}

func stepped(t *testing.T, e *logic.Engine, n int) {
	t.Helper()
	for range n {
		require.NoError(t, e.Step())
	}
}

// hashOf is the hash of the last frame.
func hashOf(t *testing.T, e *logic.Engine) (hash uint64) {
	t.Helper()
	require.NoError(t, e.Registry().Read(func(s *registry.Snapshot) (err error) {
		hash, err = snapshot.Hash(s)
		return err
	}))
	return hash
}

func TestAWorldGoesBackWithItsRegistry(t *testing.T) {
	for _, backend := range backends {
		e, w := engine(t, busy, registry.Config{TemporalFrames: 32, Deterministic: true}, logic.Config{Workers: 2}, declare.Options{Backend: backend})
		var hashes []uint64
		for range 60 {
			stepped(t, e, 1)
			hashes = append(hashes, hashOf(t, e))
		}
		for _, back := range []uint64{1, 7, 20, 30} {
			now := e.FrameNumber()
			require.NoError(t, e.Rollback(now-back))
			stepped(t, e, 1)
			hashes = append(hashes, hashOf(t, e))
			require.Equal(t, now+1, w.Steps())
		}
		other, _ := engine(t, busy, registry.Config{TemporalFrames: 32, Deterministic: true}, logic.Config{Workers: 1}, declare.Options{})
		for i, want := range hashes {
			stepped(t, other, 1)
			require.Equal(t, want, hashOf(t, other), "frame %d", i+1)
		}
	}
}

// TestAWorldGoesBackBeforeItWasThere goes back over the window that made it.
func TestAWorldGoesBackBeforeItWasThere(t *testing.T) {
	e := newEngine(t, registry.Config{TemporalFrames: 16, Deterministic: true}, logic.Config{})
	stepped(t, e, 3)
	w, err := declare.Attach(e, load(t, busy, nil), declare.Options{})
	require.NoError(t, err)
	stepped(t, e, 6)
	hash := hashOf(t, e)
	require.Equal(t, uint64(6), w.Steps())
	require.NoError(t, e.Rollback(2))
	stepped(t, e, 1)
	require.Equal(t, uint64(7), w.Steps())
	require.NoError(t, e.Registry().Read(func(*registry.Snapshot) error { return nil }))
	require.NoError(t, e.Rollback(9))
	stepped(t, e, 1)
	snap, err := e.Registry().AcquireAt(9)
	require.NoError(t, err)
	defer snap.Release()
	again, err := snapshot.Hash(snap)
	require.NoError(t, err)
	require.Equal(t, hash, again)
}

func TestAWorldPassesASyncTest(t *testing.T) {
	for _, backend := range backends {
		e, _ := engine(t, busy, registry.Config{TemporalFrames: 16, Deterministic: true}, logic.Config{Workers: 2, SyncTest: 5}, declare.Options{Backend: backend})
		stepped(t, e, 80)
	}
}

// Marked is a component of the program beside the world.
type Marked struct{ Steps int }

// Counter is its class.
type Counter struct{ Marked Marked }

// TestGoSystemsRunBesideAWorld has Go code look at the columns of a world, end its entities and have its own.
func TestGoSystemsRunBesideAWorld(t *testing.T) {
	var hashes []uint64
	for _, backend := range backends {
		e := newEngine(t, registry.Config{Deterministic: true}, logic.Config{Workers: 2})
		r := e.Registry()
		counters, err := registry.RegisterClass[Counter](r)
		require.NoError(t, err)
		w, err := declare.Attach(e, load(t, busy, nil), declare.Options{Backend: backend, Phase: logic.Physics, Name: "busy"})
		require.NoError(t, err)
		require.NoError(t, r.Update(func(win *registry.Window) error {
			_, err := counters.Spawn(win, Counter{})
			return err
		}))
		type row struct{ Marked []Marked }
		q, err := views.NewQuery[row](r)
		require.NoError(t, err)
		first, _ := w.Program().ID("p#0")
		var hidden, ended uint32
		_, err = e.AddSystem(logic.Late, "go", func(f *logic.Frame) {
			for run := range q.Runs(f) {
				for i := range run.Marked {
					run.Marked[i].Steps++
				}
			}
			if f.FrameNumber() == 20 {
				var active []uint32
				for id := first; id < first+70; id++ {
					if _, ok, _ := w.State(f, id); ok {
						active = append(active, id)
					}
				}
				hidden, ended = active[0], active[1]
				assert.NoError(t, registry.SetActive(f, w.Handle(hidden), false))
				assert.NoError(t, f.Destroy(w.Handle(ended)))
			}
		})
		require.NoError(t, err)
		stepped(t, e, 20)
		_, active, _ := stateOf(t, w, hidden)
		require.False(t, active)
		_, active, _ = stateOf(t, w, ended)
		require.False(t, active)
		for n := 0; !active; n++ {
			require.Less(t, n, 10, "the slot is free again")
			stepped(t, e, 1)
			_, active, _ = stateOf(t, w, ended)
		}
		before, active, _ := stateOf(t, w, hidden)
		require.False(t, active, "Go code has a hand on it")
		stepped(t, e, 40)
		after, active, _ := stateOf(t, w, hidden)
		require.False(t, active)
		require.Equal(t, before, after)
		hashes = append(hashes, hashOf(t, e))
	}
	require.Equal(t, hashes[0], hashes[1], "both backends leave the same alone")
}

func stateOf(t *testing.T, w *declare.World, id uint32) (state []float64, active, ok bool) {
	t.Helper()
	require.NoError(t, w.Registry().Read(func(s *registry.Snapshot) error {
		state, active, ok = w.State(s, id)
		return nil
	}))
	return state, active, ok
}

// TestWorldsComeWhileAnEngineRuns attaches from outside, and inside a callback.
func TestWorldsComeWhileAnEngineRuns(t *testing.T) {
	e := newEngine(t, registry.Config{}, logic.Config{Rate: 1000})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	p := load(t, pooled, nil)
	first, err := declare.Attach(e, p, declare.Options{Name: "first"})
	require.NoError(t, err)
	var second *declare.World
	require.NoError(t, e.Spawn(t.Context(), func(win *registry.Window) (err error) {
		_, err = declare.Attach(e, p, declare.Options{Name: "never"})
		assert.ErrorIs(t, err, registry.ErrWouldDeadlock)
		second, err = declare.AttachIn(win, e, p, declare.Options{Name: "second"})
		return err
	}))
	_, err = declare.Attach(e, p, declare.Options{Name: "second"})
	require.ErrorIs(t, err, registry.ErrAlreadyRegistered)
	require.Eventually(t, func() bool { return first.Steps() > 20 && second.Steps() > 20 }, wait, tick)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// TestAFailedCallbackLeavesNoWorld has the callback that attached fail.
func TestAFailedCallbackLeavesNoWorld(t *testing.T) {
	e := newEngine(t, registry.Config{}, logic.Config{})
	failed := errors.New("failed")
	var w *declare.World
	err := e.Registry().Update(func(win *registry.Window) (err error) {
		w, err = declare.AttachIn(win, e, load(t, pooled, nil), declare.Options{})
		require.NoError(t, err)
		return failed
	})
	require.ErrorIs(t, err, failed)
	stepped(t, e, 3)
	require.Zero(t, w.Steps())
	require.Zero(t, e.Registry().Stats().Live)
	_, _, ok := stateOf(t, w, 1)
	require.False(t, ok)
}

func TestAWorldNeedsRoom(t *testing.T) {
	e := newEngine(t, registry.Config{MaxEntities: 25}, logic.Config{})
	_, err := declare.Attach(e, load(t, pooled, nil), declare.Options{})
	require.ErrorIs(t, err, registry.ErrExhausted)
	require.Zero(t, e.Registry().Stats().Live)
	_, err = declare.Attach(e, load(t, pooled, nil), declare.Options{Name: "two", Backend: 7})
	require.ErrorContains(t, err, "no backend 7")
	_, err = declare.Attach(nil, nil, declare.Options{})
	require.Error(t, err)
	_, err = declare.Prepare(e.Registry(), load(t, pooled, nil), declare.Options{Name: "three", Phase: 9})
	require.ErrorContains(t, err, "no phase 9")
	_, err = declare.Prepare(nil, nil, declare.Options{})
	require.Error(t, err)
	_, err = declare.NewRunner(nil, declare.RunnerOptions{})
	require.Error(t, err)
}

// TestASavedWorldGoesOn saves a world in the middle, loads it elsewhere, and has both go on.
func TestASavedWorldGoesOn(t *testing.T) {
	for _, ring := range []int{0, 16} {
		rc := registry.Config{TemporalFrames: ring, Deterministic: true}
		e, w := engine(t, busy, rc, logic.Config{}, declare.Options{})
		stepped(t, e, 33)
		var file bytes.Buffer
		require.NoError(t, e.Registry().Update(func(win *registry.Window) error { return snapshot.Save(&file, win) }))
		other := newEngine(t, rc, logic.Config{})
		w2, err := declare.Prepare(other.Registry(), load(t, busy, nil), declare.Options{Backend: declare.Interpreter})
		require.NoError(t, err)
		require.NoError(t, w2.AddTo(other))
		require.Error(t, w2.AddTo(e), "of another registry")
		require.NoError(t, other.Registry().Update(func(win *registry.Window) error { return snapshot.Load(&file, win) }))
		for range 40 {
			stepped(t, e, 1)
			stepped(t, other, 1)
			require.Equal(t, hashOf(t, e), hashOf(t, other))
			require.Equal(t, w.Steps(), w2.Steps())
			require.Equal(t, w.Active(), w2.Active())
		}
	}
}

// TestAJournalOfAWorldIsReplayed records a world that is attached after the journal has begun, and replays it with the other
// backend.
func TestAJournalOfAWorldIsReplayed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	rc := registry.Config{TemporalFrames: 16, Deterministic: true}
	e := newEngine(t, rc, logic.Config{})
	p := load(t, busy, nil)
	w, err := declare.Prepare(e.Registry(), p, declare.Options{})
	require.NoError(t, err)
	require.NoError(t, e.Journal(dir))
	require.NoError(t, e.Registry().Update(w.Build))
	require.NoError(t, w.AddTo(e))
	stepped(t, e, 20)
	require.NoError(t, e.Rollback(11))
	stepped(t, e, 20)
	require.NoError(t, e.Stop())

	r, err := registry.New(rc)
	require.NoError(t, err)
	again, err := declare.Prepare(r, p, declare.Options{Backend: declare.Interpreter})
	require.NoError(t, err)
	frame, err := logic.Replay(r, os.DirFS(dir), logic.WithSystems(again.AddTo))
	require.NoError(t, err)
	require.Equal(t, uint64(40), frame)
	require.Equal(t, w.Steps(), again.Steps())
}

// TestALargeSystemRuns has a sum as long as a file may have, and lets that each use the one before twice.
func TestALargeSystemRuns(t *testing.T) {
	var b strings.Builder
	b.WriteString("world { entity e { state = (a = 1, b = 0, c = 0) } }\nsystems { update { on = e let u0 = t + 1 let v0 = a\n")
	for i := range 500 {
		fmt.Fprintf(&b, "let u%d = u%d * 0.5 + u%d * 0.5 let v%d = v%d * 0.5 + v%d * 0.5\n", i+1, i, i, i+1, i, i)
	}
	b.WriteString("a = v500 b = u500 c = a")
	for range 20_000 {
		b.WriteString("+a")
	}
	b.WriteString(" } }")
	r := runner(t, b.String(), declare.RunnerOptions{CrossCheck: true})
	steps(t, r, 2)
	require.Equal(t, []float64{1, 1 + 1./60, 20_001}, all(t, r)[1].state)
}

// TestBackendsSeeTheSameFamilies has entities of a world be children of each other.
func TestBackendsSeeTheSameFamilies(t *testing.T) {
	var hashes [2][]uint64
	for i, backend := range backends {
		e, w := engine(t, busy, registry.Config{TemporalFrames: 8, Deterministic: true}, logic.Config{}, declare.Options{Backend: backend})
		for frame := range 60 {
			stepped(t, e, 1)
			hashes[i] = append(hashes[i], hashOf(t, e))
			if frame%10 == 5 {
				require.NoError(t, e.Registry().Update(func(win *registry.Window) error {
					p, _ := w.Program().ID("p#0")
					for k := uint32(1); k < 6; k++ {
						if err := registry.SetParent(win, w.Handle(p+k), w.Handle(p)); err != nil && !errors.Is(err, registry.ErrIdle) {
							return err
						}
					}
					return nil
				}))
			}
		}
	}
	require.Equal(t, hashes[0], hashes[1])
}

func TestASteadyStepAllocatesNothing(t *testing.T) {
	for _, backend := range backends {
		r := runner(t, busy, declare.RunnerOptions{Backend: backend, Workers: 1})
		steps(t, r, 500)
		assert.LessOrEqual(t, testing.AllocsPerRun(200, func() { _ = r.Step() }), 2., backend)
	}
}

// TestACrossCheckSaysWhatDiffers has Go code tamper with one of the two.
func TestACrossCheckSaysWhatDiffers(t *testing.T) {
	for _, backend := range backends {
		r := runner(t, busy, declare.RunnerOptions{CrossCheck: true, Backend: backend})
		steps(t, r, 9)
		_, err := r.Engine().AddSystem(logic.Late, "tamper", func(f *logic.Frame) {
			if f.FrameNumber() == 12 {
				ch := f.Registry().BlocksNamed("declare:world.p")[0].Chunks()[0]
				ch.Mark(1)
				archetype.CellsOf[float64](ch, 1)[2] = 0.25
			}
		})
		require.NoError(t, err)
		steps(t, r, 2)
		var found *declare.CrossCheckError
		require.ErrorAs(t, r.Step(), &found)
		require.Equal(t, []any{uint64(11), uint32(6), "p#2", "v"}, []any{found.Step, found.ID, found.Entity, found.Slot})
		require.Contains(t, found.Error(), "step 11: the backends differ in v of p#2 (id 6): ")
		tampered := map[declare.Backend]float64{declare.Batch: found.Batch, declare.Interpreter: found.Interpreter}
		require.Equal(t, 0.25, tampered[backend])
		require.ErrorAs(t, r.Step(), &found, "it goes on no further")
		require.Contains(t, (&declare.CrossCheckError{Step: 3, Detail: "more"}).Error(), "step 3: the backends differ: more")
	}
}

func TestRefusedValuesAreCounted(t *testing.T) {
	for _, backend := range backends {
		r := runner(t, `world { entity e { state = (a = 1, b = 2, c = 3) } pool p[100] { state = (x = 1e308) } }
systems {
  update { on = e a = 1e308 * b * 10 b = -a / 1e-320 c = sqrt(-b) }
  spawn { on = e; pool = p; count = 70 }
  update { on = p; x = if(x == 1e308, x * x, 1) }
}`, declare.RunnerOptions{Backend: backend})
		steps(t, r, 2)
		require.Equal(t, uint64(2*3+70+100), r.World().Refused())
		require.Equal(t, []float64{1, 2, 3}, all(t, r)[1].state)
	}
}

// TestAnIDHasAStateAndAHandle asks for what exists and what does not.
func TestAnIDHasAStateAndAHandle(t *testing.T) {
	r := runner(t, pooled, declare.RunnerOptions{})
	w := r.World()
	require.NoError(t, w.Registry().Update(func(win *registry.Window) error {
		state, active, ok := w.State(win, 1)
		require.Equal(t, []any{[]float64{-6, 1.5}, true, true}, []any{state, active, ok})
		state, active, ok = w.State(win, 25)
		require.Equal(t, []any{[]float64{0, 0}, false, true}, []any{state, active, ok})
		for _, id := range []uint32{0, 26, 1 << 31} {
			_, _, ok = w.State(win, id)
			require.False(t, ok)
			require.Zero(t, w.Handle(id))
		}
		require.NotZero(t, w.Handle(25))
		return nil
	}))
	require.Zero(t, w.ActiveIn(-1)+w.ActiveIn(2))
	require.Equal(t, "Backend(9)", declare.Backend(9).String())
	first, err := r.Hash()
	require.NoError(t, err)
	again, err := r.Hash()
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	require.Error(t, r.Step())
}
