package logic_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
	"github.com/airlock-ecs/airlock/views"
)

// fickle is a component whose codec does what a test says.
type fickle struct{ Write func() error }

func (f *fickle) AppendBinary(b []byte) ([]byte, error) {
	if f.Write != nil {
		return b, f.Write()
	}
	return b, nil
}

func (*fickle) UnmarshalBinary([]byte) error { return nil }

type token struct {
	Spot   spot
	Fickle fickle
}

// TestAJournalThatFailsDoesNotStopTheEngine ends the journal by the codec of a component, in all ways there are.
func TestAJournalThatFailsDoesNotStopTheEngine(t *testing.T) {
	for name, write := range map[string]func() error{
		"error": func() error { return errors.New("planned") },
		"panic": func() error { panic("planned") },
		"exit":  func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			open := func() (*registry.Registry, *registry.Class[token]) {
				r, err := registry.New(registry.Config{Deterministic: true, MaxEntities: 100})
				require.NoError(t, err)
				temporal[spot](t, r)
				c, err := registry.RegisterClass[token](r)
				require.NoError(t, err)
				return r, c
			}
			r, tokens := open()
			var told []error
			e, err := logic.New(r, logic.Config{OnError: func(err error) { told = append(told, err) }})
			require.NoError(t, err)
			dir := t.TempDir()
			require.NoError(t, e.Journal(dir))
			require.Error(t, e.Journal(t.TempDir()), "one at a time")
			for n := range 6 {
				require.NoError(t, e.Defer(func(w *registry.Window) error {
					v := token{}
					if n == 3 {
						v.Fickle.Write = write
					}
					_, err := tokens.Spawn(w, v)
					return err
				}))
				require.NoError(t, e.Step())
			}
			require.NoError(t, e.Stop())
			require.NotEmpty(t, told)
			require.ErrorContains(t, told[len(told)-1], "the journal ends before frame 4")
			require.LessOrEqual(t, len(told), 2, "once, beside the exit itself")
			require.Equal(t, 6, r.Stats().Live)
			again, _ := open()
			frame, err := logic.Replay(again, os.DirFS(dir))
			require.NoError(t, err)
			require.EqualValues(t, 3, frame)
		})
	}
}

// TestAWishFromOutsideEndsTheJournal puts structure off in a parallel loop of a callback.
func TestAWishFromOutsideEndsTheJournal(t *testing.T) {
	var told []error
	w := stageOf(t, theatreConfigs["without a ring"])
	e, err := logic.New(w.r, logic.Config{OnError: func(err error) { told = append(told, err) }})
	require.NoError(t, err)
	require.NoError(t, e.Journal(t.TempDir()))
	q, err := views.NewQuery[struct{ Spot []spot }](w.r)
	require.NoError(t, err)
	require.NoError(t, e.Defer(func(win *registry.Window) error {
		if _, err := w.walkers.Spawn(win, walker{}); err != nil {
			return err
		}
		q.Parallel(win, func(f *registry.Frame, _ *struct{ Spot []spot }) {
			f.Defer(func(*registry.Window) error { return nil })
		})
		return nil
	}))
	require.NoError(t, e.Step())
	require.Len(t, told, 1)
	require.ErrorContains(t, told[0], "a journal has no words for that")
	require.NoError(t, e.Step())
	require.NoError(t, e.Stop())
}

// TestWhatAJournalRefuses names why.
func TestWhatAJournalRefuses(t *testing.T) {
	plain, err := registry.New(registry.Config{})
	require.NoError(t, err)
	e, err := logic.New(plain, logic.Config{})
	require.NoError(t, err)
	dir := t.TempDir()
	require.ErrorIs(t, e.Journal(dir), registry.ErrDeterministic)
	require.NoError(t, e.Stop())
	require.ErrorIs(t, e.Journal(dir), logic.ErrStopped)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)

	w := stageOf(t, theatreConfigs["with a ring"])
	e, err = logic.New(w.r, logic.Config{OnError: func(error) {}})
	require.NoError(t, err)
	require.NoError(t, e.Journal(dir))
	var loaded, inside error
	require.NoError(t, e.Defer(func(win *registry.Window) error {
		inside = e.Journal(t.TempDir())
		loaded = snapshot.Load(savedEmpty(t), win)
		return nil
	}))
	require.NoError(t, e.Step())
	require.ErrorIs(t, inside, logic.ErrWouldDeadlock)
	require.ErrorIs(t, loaded, registry.ErrJournaled)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	require.NoError(t, e.Spawn(ctx, func(*registry.Window) error { return nil }))
	require.ErrorIs(t, e.Journal(t.TempDir()), registry.ErrRunning)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)

	other := stageOf(t, theatreConfigs["with a ring"])
	e, err = logic.New(other.r, logic.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, e.Journal(dir), fs.ErrExist)
	require.NoError(t, e.Step(), "it goes on")
	require.NoError(t, e.Stop())
}

// savedEmpty is the state of an empty theatre.
func savedEmpty(t *testing.T) *strings.Reader {
	var b strings.Builder
	require.NoError(t, stageOf(t, theatreConfigs["with a ring"]).r.Update(func(w *registry.Window) error { return snapshot.Save(&b, w) }))
	return strings.NewReader(b.String())
}

// TestWhatAReplayRefuses names the first frame that differs, and changes nothing it should not.
func TestWhatAReplayRefuses(t *testing.T) {
	c := theatreConfigs["without a ring"]
	dir := t.TempDir()
	w := recorded(t, c, dir)
	for range 30 {
		require.NoError(t, w.e.Step())
	}
	require.NoError(t, w.e.Stop())
	journal := os.DirFS(dir)

	other := stageOf(t, c)
	frame, err := logic.Replay(other.r, journal, logic.WithSystems(func(e *logic.Engine) error {
		other.e = e
		other.direct()
		_, err := e.AddSystem(logic.Late, "intruder", func(f *logic.Frame) {
			if f.FrameNumber() == 17 {
				_, _ = other.walkers.SpawnLater(f.Frame, walker{})
			}
		})
		return err
	}))
	var diverged *logic.DivergedError
	require.ErrorAs(t, err, &diverged)
	require.ErrorIs(t, err, logic.ErrDiverged)
	require.EqualValues(t, 18, diverged.Frame)
	require.EqualValues(t, 17, frame)
	require.NotEqual(t, diverged.Recorded, diverged.Replayed)
	require.ErrorContains(t, err, fmt.Sprintf("%016x", diverged.Recorded))
	require.EqualValues(t, 18, other.e.FrameNumber())

	_, err = logic.Replay(other.r, journal)
	require.ErrorContains(t, err, "something has happened")
	fresh := stageOf(t, c)
	e, err := logic.New(fresh.r, logic.Config{})
	require.NoError(t, err)
	_, err = logic.Replay(fresh.r, journal)
	require.ErrorIs(t, err, registry.ErrRunning, "it has an engine")
	require.NoError(t, e.Stop())
	_, err = logic.Replay(fresh.r, journal, logic.WithSystems(func(*logic.Engine) error {
		_, err := fresh.r.Reserve()
		return err
	}))
	require.ErrorContains(t, err, "WithSystems has changed the registry")
	_, err = logic.Replay(stageOf(t, c).r, journal, logic.WithSystems(func(*logic.Engine) error { return errors.New("planned") }))
	require.ErrorContains(t, err, "planned")
	_, err = logic.Replay(stageOf(t, theatreConfigs["with a ring"]).r, journal)
	require.ErrorIs(t, err, snapshot.ErrConfig)
	_, err = logic.Replay(nil, journal)
	require.Error(t, err)
	_, err = logic.Replay(stageOf(t, c).r, os.DirFS(t.TempDir()))
	require.ErrorIs(t, err, fs.ErrNotExist)

	cancelled, cancel := context.WithCancel(t.Context())
	seen := uint64(0)
	_, frame, err = replayed(t, c, journal, logic.WithContext(cancelled), logic.WithProgress(func(frame, of uint64) {
		require.EqualValues(t, 30, of)
		if seen = frame; frame == 12 {
			cancel()
		}
	}))
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 12, frame)
	require.EqualValues(t, 12, seen)

	stopped := stageOf(t, c)
	frame, err = logic.Replay(stopped.r, journal, logic.WithSystems(func(e *logic.Engine) error {
		stopped.e = e
		stopped.direct()
		_, err := e.AddSystem(logic.Late, "stop", func(f *logic.Frame) {
			require.ErrorIs(t, e.Step(), logic.ErrWouldDeadlock)
			if f.FrameNumber() == 5 {
				require.NoError(t, e.Stop())
			}
		})
		return err
	}))
	require.ErrorIs(t, err, logic.ErrStopped)
	require.EqualValues(t, 5, frame)
}

// Who is told of a replay may stop it, and waits for nobody: not for himself either.
func TestAReplayIsStoppedByWhoIsToldOfIt(t *testing.T) {
	c := theatreConfigs["without a ring"]
	dir := t.TempDir()
	w := recorded(t, c, dir)
	for range 5 {
		require.NoError(t, w.e.Step())
	}
	require.NoError(t, w.e.Stop())
	for name, told := range map[string]func(stop func()) logic.ReplayOption{
		"progress": func(stop func()) logic.ReplayOption { return logic.WithProgress(func(uint64, uint64) { stop() }) },
		"hashes":   func(stop func()) logic.ReplayOption { return logic.WithHashes(func(uint64, uint64) { stop() }) },
	} {
		t.Run(name, func(t *testing.T) {
			r := stageOf(t, c)
			systems := logic.WithSystems(func(e *logic.Engine) error {
				r.e = e
				r.direct()
				return nil
			})
			frame, err := logic.Replay(r.r, os.DirFS(dir), systems, told(func() {
				require.ErrorIs(t, r.e.Spawn(t.Context(), func(*registry.Window) error { return nil }), logic.ErrWouldDeadlock)
				require.NoError(t, r.e.Stop())
			}))
			require.ErrorIs(t, err, logic.ErrStopped)
			require.EqualValues(t, 1, frame)
		})
	}
}

// TestSnapshot2TheSameHashEverywhere is the case snapshot-2: the workers of 1,000 frames defer spawns, in processes with various
// processors, environments and workers.
func TestSnapshot2TheSameHashEverywhere(t *testing.T) { t.Run("snapshot-2", theSameHashEverywhere) }

func theSameHashEverywhere(t *testing.T) {
	const role = "AIRLOCK_TEST_WORKERS"
	if workers := os.Getenv(role); workers != "" {
		n, err := strconv.Atoi(workers)
		require.NoError(t, err)
		fmt.Print(deferredSpawns(t, n))
		return
	}
	processes := 20
	if testing.Short() || raceEnabled {
		processes = 3
	}
	want := deferredSpawns(t, 1)
	require.Equal(t, hashedFrames()+1, strings.Count(want, "\n"))
	for i := range processes {
		child := exec.Command(os.Args[0], "-test.run=^TestSnapshot2TheSameHashEverywhere$", fmt.Sprintf("-test.short=%t", testing.Short()))
		child.Env = append(os.Environ(),
			role+"="+strconv.Itoa([]int{1, 2, 16}[i%3]),
			"GOMAXPROCS="+strconv.Itoa(1+i%7),
			"GOGC="+strconv.Itoa(5+60*(i%4)),
			"TZ=Pacific/Kiritimati", "LANG=C", "PADDING="+strings.Repeat("x", 100*i))
		var stderr strings.Builder // a busy machine has the watchdog say something
		child.Stderr = &stderr
		out, err := child.Output()
		require.NoError(t, err, "%s%s", out, stderr.String())
		got, _, _ := strings.Cut(string(out), "PASS")
		require.Equal(t, want, got, "process %d", i)
	}
}

// parts is a task of a parallel loop.
type parts func(f *registry.Frame, part int)

func (p parts) Part(f *registry.Frame, _, part int) { p(f, part) }

// hashedFrames is 1,000, and fewer under the race detector.
func hashedFrames() int {
	switch {
	case raceEnabled && testing.Short():
		return 100
	case raceEnabled:
		return 250
	}
	return 1000
}

// deferredSpawns is the hashes of hashedFrames frames, then the handles of who lives.
func deferredSpawns(t *testing.T, workers int) string {
	type seed struct {
		Spot  spot
		Speed pacing
	}
	type columns struct {
		Spot  []spot
		Speed []pacing `ecs:"read"`
		ID    []handles.Local
	}
	r, err := registry.New(registry.Config{Deterministic: true, MaxEntities: 4000})
	require.NoError(t, err)
	temporal[spot](t, r)
	temporal[pacing](t, r)
	_, err = registry.RegisterComponent[mark](r, registry.InTier(archetype.Volatile))
	require.NoError(t, err)
	seeds, err := registry.RegisterClass[seed](r, registry.SlotsPerChunk(64))
	require.NoError(t, err)
	q, err := views.NewQuery[columns](r)
	require.NoError(t, err)
	e, err := logic.New(r, logic.Config{Workers: workers, OnError: func(error) {}}) // additions to the dead
	require.NoError(t, err)
	defer e.Stop()
	_, err = e.AddSystem(logic.Physics, "grow", func(f *logic.Frame) {
		var ids []handles.Local
		for run := range q.Runs(f) {
			for i := range run.Spot {
				run.Spot[i].X += float64(run.Speed[i].X * f.Rand().Float64())
			}
			ids = append(ids, run.ID...)
		}
		const size = 32
		registry.Fork(f, parts(func(f *registry.Frame, part int) {
			for _, h := range ids[part*size : min(len(ids), (part+1)*size)] {
				switch n := f.Rand().IntN(40); {
				case n < 2 && len(ids) < 500:
					_, _ = seeds.SpawnLater(f, seed{Speed: pacing{X: f.Rand().Float64()}})
				case n == 2:
					_ = f.Destroy(h)
				case n == 3:
					_ = registry.AddLater(f, h, mark{7})
				case n == 4 && len(ids) < 400:
					f.Defer(func(w *registry.Window) error {
						_, err := seeds.Spawn(w, seed{Speed: pacing{Y: 1}})
						return err
					})
				}
			}
		}), (len(ids)+size-1)/size, true)
	})
	require.NoError(t, err)
	require.NoError(t, e.Defer(func(w *registry.Window) error {
		_, err := seeds.SpawnBatch(w, 300, func(i int, s *seed) { s.Speed.X = float64(i) })
		return err
	}))
	var out strings.Builder
	for range hashedFrames() {
		require.NoError(t, e.Step())
		require.NoError(t, r.Read(func(s *registry.Snapshot) error {
			hash, err := snapshot.Hash(s)
			fmt.Fprintf(&out, "%016x\n", hash)
			return err
		}))
	}
	require.NoError(t, r.Read(func(s *registry.Snapshot) error {
		for run := range q.Runs(s) {
			fmt.Fprint(&out, run.ID)
		}
		return nil
	}))
	return out.String() + "\n"
}
