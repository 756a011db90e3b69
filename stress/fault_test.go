package stress_test

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/stress"
)

// many is how often a random fault is tried: few in a test run, the number of the long run if
// AIRLOCK_FAULTS is set.
func many(few, long int) int {
	if os.Getenv("AIRLOCK_FAULTS") != "" {
		return long
	}
	return few
}

func newFaultWorld(t *testing.T, rc registry.Config, workers int) *stress.FaultWorld {
	t.Helper()
	w, err := stress.NewFaultWorld(rc, logic.Config{Workers: workers})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, w.Close()) })
	return w
}

var faultConfigs = map[string]registry.Config{
	"plain":         {MaxEntities: 1 << 12},
	"deterministic": {MaxEntities: 1 << 12, Deterministic: true},
	"ring":          {MaxEntities: 1 << 12, TemporalFrames: 8},
}

func TestEveryCallbackEndsInEveryWay(t *testing.T) {
	for name, rc := range faultConfigs {
		t.Run(name, func(t *testing.T) {
			w := newFaultWorld(t, rc, 2)
			for _, site := range stress.Sites() {
				for _, ending := range site.Endings() {
					fault := stress.Fault{Site: site, Ending: ending}
					assert.NoError(t, w.Round(fault), fault)
					assert.NoError(t, w.Verify(), fault)
				}
			}
		})
	}
}

func TestManyRandomEndings(t *testing.T) {
	for name, rc := range faultConfigs {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			w := newFaultWorld(t, rc, 2)
			panics := 0
			for want := many(100, 10_000); panics < want; {
				faults := stress.RandomFaults(rng)
				require.NoError(t, w.Round(faults...), "seed %d, round %d", seed, w.Rounds)
				if w.Rounds%64 == 0 {
					require.NoError(t, w.Verify(), "seed %d, round %d", seed, w.Rounds)
				}
				panics = 0
				for _, o := range w.Outcomes {
					panics += o[stress.Panics]
				}
			}
			t.Logf("%d rounds", w.Rounds)
		})
	}
}
