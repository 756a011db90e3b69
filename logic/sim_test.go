//go:build faults

package logic_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/fault"
	"github.com/airlock-ecs/airlock/internal/sim"
	"github.com/airlock-ecs/airlock/logic"
	accounts "github.com/airlock-ecs/airlock/stress" // its name is taken here
)

// lives are engines one after the other, each with producers, stops and a Logic of its own.
func (w *simulated) lives(frames uint64) {
	for w.frame() < frames {
		length := w.frame() + 1 + w.rng.Uint64N(64)
		w.begin(func(c *logic.Config) { c.QueueSize = []int{1, 2, 4, 64}[w.rng.IntN(4)] })
		logic.Spinners(w.life.e, w.rng.IntN(3))
		logic.TakeAhead(w.life.e)
		w.systems()
		for i := range 1 + w.rng.IntN(3) {
			w.actor("producer", w.producer(i).work)
		}
		for range w.rng.IntN(3) {
			w.actor("stopper", w.stopper(w.life.e, w.rng.IntN(400)))
		}
		if w.rng.IntN(4) == 0 {
			w.run(length)
		} else {
			w.steps(length)
		}
		w.close()
	}
}

// systems registers one that fails now and then.
func (w *simulated) systems() {
	_, err := w.life.e.AddSystem(logic.Physics, "system", func(*logic.Frame) {
		w.At(sim.Name("system"))
		switch w.rng.IntN(32) {
		case 0:
			runtime.Goexit()
		case 1:
			panic("a system that was to panic")
		}
	})
	if err != nil {
		w.Fail(err)
	}
}

// steps is a Logic that is stepped. Time does not pass but in slow callbacks: who waits is woken, or not at all.
func (w *simulated) steps(length uint64) {
	for w.frame() < length {
		if err := w.life.e.Step(); errors.Is(err, logic.ErrStopped) {
			return
		}
		w.check()
		w.At(sim.Name("between frames"))
	}
}

// run is a Logic that runs, with a clock that goes on whenever its turn comes.
func (w *simulated) run(length uint64) {
	l := w.life
	w.actor("clock", func() {
		for !l.ranOut {
			w.pass(time.Millisecond / 2)
			if w.frame() >= length && !l.over {
				l.over = true
				w.actor("stopper", w.stopper(l.e, 0))
			}
			w.At(sim.Name("clock"))
		}
	})
	ctx, cancel := context.WithCancel(background())
	defer cancel()
	if w.rng.IntN(8) == 0 {
		w.actor("canceller of Run", func() {
			for range w.rng.IntN(400) {
				w.At(sim.Name("not yet"))
			}
			cancel()
		})
	}
	if err := l.e.Run(ctx); err != nil && !errors.Is(err, logic.ErrStopped) && !errors.Is(err, context.Canceled) {
		w.Fail(fmt.Errorf("Run: %w", err))
	}
	l.ranOut = true
}

// stopper stops an engine when it has come round so often.
func (w *simulated) stopper(e *logic.Engine, after int) func() {
	shutdown, impatient := w.rng.IntN(2) == 0, w.rng.IntN(2) == 0
	return func() {
		for range after {
			w.At(sim.Name("not yet"))
		}
		if !shutdown {
			if err := e.Stop(); err != nil {
				w.Fail(err)
			}
			return
		}
		ctx, cancel := context.WithCancel(background())
		defer cancel()
		if impatient {
			w.actor("canceller", cancel)
		}
		if err := e.Shutdown(ctx); err != nil && !impatient {
			w.Fail(fmt.Errorf("Shutdown: %w", err))
		}
	}
}

// pass lets time pass: a bubble's, at once, for everybody else is parked.
func (w *simulated) pass(d time.Duration) { time.Sleep(d) }

// simulate is one seed: so many frames of it.
func simulate(t *testing.T, seed, frames uint64, edit func(*simulated)) (s *sim.Sim, err error) {
	synctest.Test(t, func(*testing.T) {
		s = sim.New(sim.BySeed(seed), int(frames)*2000+10_000)
		var w *simulated
		if w, err = newSimulated(s, seed); err != nil {
			return
		}
		over := fault.Simulate(observed{w})
		defer over()
		if edit != nil {
			edit(w)
		}
		s.Go("logic", func() { w.lives(frames) })
		err = s.Run()
	})
	return s, err
}

// fromEnv is a number that a variable of the environment gives.
func fromEnv(t testing.TB, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

const (
	simFrames = 2000 // of a seed, as a rule
	simVerify = 32   // frames from one Verify to the next, in a run of many seeds
)

// savedSeeds is where seeds that failed are kept; spoilt engines have another place.
func savedSeeds() string { return cmp.Or(os.Getenv("AIRLOCK_SIM_SAVED"), "testdata/sim_seeds.txt") }

// repetition is the command that repeats a seed.
func repetition(seed, frames uint64) string {
	more := ""
	if frames > simFrames { // fewer are the first of those
		more = fmt.Sprintf(" AIRLOCK_SIM_FRAMES=%d", frames)
	}
	return fmt.Sprintf("AIRLOCK_SIM_SEED=%d%s go test -count=1 -tags faults -run '^TestSimulation$' ./logic", seed, more)
}

// trySeed runs a seed, and answers how many decisions there were. If it fails, it is saved, and the error has
// the command that repeats it.
func trySeed(t *testing.T, seed, frames uint64, path string, edit func(*simulated)) (steps int, err error) {
	s, err := simulate(t, seed, frames, edit)
	if err == nil {
		return s.Steps(), nil
	}
	if path != "" {
		if saving := sim.SaveSeed(path, seed, err); saving != nil {
			t.Error(saving)
		}
	}
	return s.Steps(), fmt.Errorf("seed %d: %w\nThis repeats it:\n\n\t%s\n", seed, err, repetition(seed, frames))
}

// TestSimulation runs the saved seeds and then fresh ones; or the one that AIRLOCK_SIM_SEED is.
// AIRLOCK_SIM_SEEDS says how many, and AIRLOCK_SIM_FRAMES how long each is. Many are shared out to processes,
// one for each processor: points are of a whole process.
func TestSimulation(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one runs at a time anyway, and passes the token faster
	frames := fromEnv(t, "AIRLOCK_SIM_FRAMES", simFrames)
	if seed := fromEnv(t, "AIRLOCK_SIM_SEED", 0); seed != 0 {
		if _, err := trySeed(t, seed, frames, "", nil); err != nil {
			t.Fatal(err)
		}
		return
	}
	count := fromEnv(t, "AIRLOCK_SIM_SEEDS", 10)
	first := fromEnv(t, "AIRLOCK_SIM_FIRST", 0)
	if first == 0 { // not one of several processes
		saved, err := sim.ReadSeeds(savedSeeds())
		require.NoError(t, err)
		for _, seed := range saved {
			if _, err := trySeed(t, seed, frames, "", nil); err != nil {
				t.Fatal(err)
			}
		}
		first = 1 + rand.Uint64N(1<<63)
		t.Logf("%d seeds from %d, %d frames each, and %d saved ones", count, first, frames, len(saved))
		if processes := uint64(runtime.NumCPU()); processes > 1 && count >= 64 {
			shareOut(t, first, count, processes)
			return
		}
	}
	steps, begun := 0, time.Now()
	for seed := first; seed < first+count; seed++ {
		n, err := trySeed(t, seed, frames, savedSeeds(), func(w *simulated) { w.verifyEvery = simVerify })
		if err != nil {
			t.Fatal(err)
		}
		steps += n
	}
	t.Logf("%d decisions in %v", steps, time.Since(begun).Round(time.Millisecond))
}

// shareOut has so many processes run the seeds.
func shareOut(t *testing.T, first, count, processes uint64) {
	name, err := os.Executable()
	require.NoError(t, err)
	var group sync.WaitGroup
	for i := range processes {
		from, to := first+count*i/processes, first+count*(i+1)/processes
		group.Go(func() {
			cmd := exec.Command(name, "-test.run=^TestSimulation$", "-test.v", "-test.timeout=1h")
			cmd.Env = append(os.Environ(), fmt.Sprint("AIRLOCK_SIM_FIRST=", from), fmt.Sprint("AIRLOCK_SIM_SEEDS=", to-from), "GOGC=400")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
				return
			}
			for line := range strings.Lines(string(out)) {
				if _, decisions, ok := strings.Cut(line, "sim_test.go:"); ok {
					t.Log(strings.TrimSpace(decisions))
				}
			}
		})
	}
	group.Wait()
}

func TestTheSameSeedIsTheSameSimulation(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4)) // whatever the machine does meanwhile
	prints := map[uint64]bool{}
	for seed := range uint64(12) {
		var worlds [2]*simulated
		var sims [2]*sim.Sim
		for i := range sims {
			var err error
			sims[i], err = simulate(t, seed, 100, func(w *simulated) { worlds[i] = w })
			require.NoError(t, err)
		}
		require.Equal(t, sims[0].Fingerprint(), sims[1].Fingerprint(), "seed %d", seed)
		require.Equal(t, sims[0].Steps(), sims[1].Steps())
		require.Equal(t, worlds[0].alive, worlds[1].alive)
		require.Equal(t, worlds[0].by, worlds[1].by)
		prints[sims[0].Fingerprint()] = true
	}
	require.Len(t, prints, 12, "and another seed another one")
}

// What a simulation is worth is what its actors meet.
func TestASimulationMeetsEveryOutcome(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var by [accounts.Lost + 1]uint64
	for seed := uint64(1); seed <= 20; seed++ {
		var w *simulated
		_, err := simulate(t, seed, 200, func(made *simulated) {
			w = made
			w.verifyEvery = 0
		})
		require.NoError(t, err)
		for o, n := range w.by {
			by[o] += n
		}
	}
	t.Log(by)
	for _, o := range []accounts.Outcome{
		accounts.Applied, accounts.Cancelled, accounts.Panicked, accounts.Stale, accounts.QueueFull, accounts.Stopped,
	} {
		require.Greater(t, by[o], uint64(100), o.String())
	}
}

func TestAFailingSeedIsSavedAndRepeatedByOneCommand(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	wrong := errors.New("found in frame 20")
	spoil := func(w *simulated) {
		w.spoil = func() error {
			if w.frame() == 20 {
				return wrong
			}
			return nil
		}
	}
	path := filepath.Join(t.TempDir(), "seeds.txt")
	_, err := trySeed(t, 99, simFrames, path, spoil)
	require.ErrorIs(t, err, wrong)
	command := "AIRLOCK_SIM_SEED=99 go test -count=1 -tags faults -run '^TestSimulation$' ./logic"
	require.Equal(t, 1, strings.Count(err.Error(), "go test"))
	require.Contains(t, err.Error(), "\n\t"+command+"\n")
	seeds, reading := sim.ReadSeeds(path)
	require.NoError(t, reading)
	require.Equal(t, []uint64{99}, seeds)
	_, again := trySeed(t, 99, simFrames, "", spoil)
	require.EqualError(t, again, err.Error(), "to the last decision")
}
