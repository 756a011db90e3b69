//go:build faults

package logic_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// spoiltEngines are mistakes in the engine that only some schedules show.
var spoiltEngines = []struct {
	name, file, old, new string
	found                string // a pattern in what the simulation says
}{
	{
		"a wake-up is lost: the window comes home between Logic's look and its sleep", "door.go",
		`		if fault.Enabled {
			fault.At(fault.HandingBack)
		}
		if d.baton.Swap(batonHome) == batonAwaited {`,
		`		was := d.baton.Load()
		if fault.Enabled {
			fault.At(fault.HandingBack)
		}
		d.baton.Store(batonHome)
		if was == batonAwaited {`,
		`nobody can run`,
	},
	{
		"a wake-up is lost: a grant that meets a caller on its way to sleep wakes nobody", "door.go",
		`	if settled || !w.state.CompareAndSwap(waiterSpinning, waiterParked) {
		return w.answer()
	}
	if fault.Enabled {
		fault.At(fault.Parking)
	}`,
		`	if settled || w.state.Load() != waiterSpinning {
		return w.answer()
	}
	if fault.Enabled {
		fault.At(fault.Parking)
	}
	w.state.CompareAndSwap(waiterSpinning, waiterParked)`,
		`nobody can run`,
	},
	{
		"an outcome is lost: an operation is accepted after the last look at the lanes", "life.go",
		`e.lanes.shut(nil)`, `e.lanes.collect(nil)`,
		`nobody can run|OnError was told`,
	},
	{
		"the window is lost: a caller whose context ended leaves without looking whether it was granted meanwhile", "door.go",
		`			if w.state.CompareAndSwap(waiterParked, waiterCancelled) {
				return ctx.Err()
			}
		}
		if w.state.Load() != waiterParked {`,
		`			w.state.Store(waiterCancelled)
			return ctx.Err()
		}
		if w.state.Load() != waiterParked {`,
		`nobody can run|too many steps|panicked`,
	},
	{
		"a failure is told twice: the operation is taken for one that ended its goroutine after its answer", "window.go",
		`	s.open = false
	overran := s.late`,
		`	s.open = err != nil
	overran := s.late`,
		`OnError was told|answered|closed channel`,
	},
	{
		"a cancelled caller has run", "spawn.go",
		`	return e.core.Callback(fn)
}

// SpawnBatch`,
		`	if err := e.core.Callback(fn); err != nil {
		return err
	}
	return ctx.Err()
}

// SpawnBatch`,
		`ran 1 times, and its outcome is: cancelled`,
	},
}

// TestTheSimulationFindsMistakesInTheEngine builds each spoilt engine and simulates it: few seeds find it, and the
// command that is printed repeats it. Long run only: each is built anew.
func TestTheSimulationFindsMistakesInTheEngine(t *testing.T) {
	if os.Getenv("AIRLOCK_FAULTS") == "" {
		t.Skip("builds the tests for each mistake: set AIRLOCK_FAULTS")
	}
	for _, spoilt := range spoiltEngines {
		t.Run(spoilt.name, func(t *testing.T) {
			dir := t.TempDir()
			here, err := filepath.Abs(spoilt.file)
			require.NoError(t, err)
			source, err := os.ReadFile(here)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(source), spoilt.old), "the place of the mistake")
			there := filepath.Join(dir, spoilt.file)
			require.NoError(t, os.WriteFile(there, []byte(strings.Replace(string(source), spoilt.old, spoilt.new, 1)), 0o644))
			overlay, err := json.Marshal(map[string]map[string]string{"Replace": {here: there}})
			require.NoError(t, err)
			overlaid := filepath.Join(dir, "overlay.json")
			require.NoError(t, os.WriteFile(overlaid, overlay, 0o644))
			binary := filepath.Join(dir, "spoilt.test")
			out, err := exec.Command("go", "test", "-c", "-o", binary, "-tags", "faults", "-overlay", overlaid, ".").CombinedOutput()
			require.NoError(t, err, string(out))

			simulated := func(env ...string) string {
				cmd := exec.Command(binary, "-test.run=^TestSimulation$", "-test.timeout=2m")
				cmd.Env = append(append(os.Environ(), "AIRLOCK_SIM_SAVED="+filepath.Join(dir, "seeds.txt"), "AIRLOCK_SIM_SEEDS=50"), env...)
				out, err := cmd.CombinedOutput()
				require.Error(t, err, "50 seeds do not find it")
				return string(out)
			}
			first := simulated()
			require.Regexp(t, spoilt.found, first)
			command := regexp.MustCompile(`(AIRLOCK_SIM_SEED=\d+) go test`).FindStringSubmatch(first)
			require.NotNil(t, command, first)
			again := simulated(command[1])
			require.Regexp(t, spoilt.found, again)
			t.Log(strings.SplitN(first[strings.Index(first, "seed "):], "\n", 2)[0])
		})
	}
}
