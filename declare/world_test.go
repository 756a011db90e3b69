package declare_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/registry"
)

// runner runs a source.
func runner(t testing.TB, src string, o declare.RunnerOptions) *declare.Runner {
	t.Helper()
	p, err := declare.Load("file.world", []byte(src), nil)
	require.NoError(t, err)
	r, err := declare.NewRunner(p, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return r
}

// steps runs some steps.
func steps(t testing.TB, r *declare.Runner, n int) {
	t.Helper()
	for range n {
		require.NoError(t, r.Step())
	}
}

// seen is the state of an entity.
type seen struct {
	state  []float64
	active bool
}

// all is the state of all entities, by id, from 1 on.
func all(t testing.TB, r *declare.Runner) []seen {
	t.Helper()
	w := r.World()
	out := make([]seen, w.Program().Len()+1)
	require.NoError(t, w.Registry().Read(func(snap *registry.Snapshot) error {
		for id := 1; id < len(out); id++ {
			state, active, ok := w.State(snap, uint32(id))
			require.True(t, ok)
			out[id] = seen{state, active}
		}
		return nil
	}))
	return out
}

var backends = []declare.Backend{declare.Batch, declare.Interpreter}

// TestParticlesFlyAsInALoopByHand runs the file of the documentation beside a simulation of a few lines.
func TestParticlesFlyAsInALoopByHand(t *testing.T) {
	for _, backend := range backends {
		t.Run(backend.String(), func(t *testing.T) {
			r := runner(t, pooled, declare.RunnerOptions{Backend: backend, TemporalFrames: 8})
			var x, vx [24]float64
			var active [24]bool
			for step := range 300 {
				for i := range active {
					if !active[i] {
						x[i], vx[i], active[i] = -6, 1.5, true
						break
					}
				}
				live := 1
				for i := range active {
					if active[i] {
						x[i] += float64(0.1 * (0.0 + vx[i]))
					}
				}
				for i := range active {
					if active[i] && x[i] > 6 {
						x[i], vx[i], active[i] = 0, 0, false
					}
					if active[i] {
						live++
					}
				}
				steps(t, r, 1)
				got := all(t, r)
				require.Equal(t, seen{[]float64{-6, 1.5}, true}, got[1])
				for i := range active {
					require.Equal(t, seen{[]float64{x[i], vx[i]}, active[i]}, got[i+2], "step %d slot %d", step, i)
				}
				require.Equal(t, live, r.World().Active())
				require.Equal(t, live-1, r.World().ActiveIn(1))
				require.Equal(t, uint64(step+1), r.World().Steps())
			}
			require.InDelta(t, 30, r.World().Time(), 1e-9)
			require.Zero(t, r.World().Refused())
		})
	}
}

func TestTheShortFormsRun(t *testing.T) {
	const src = `world { entity source { state = (x = 9.9, vx = 1) } pool particles[4] { state = (x = 0, vx = 0) } }
systems {
  spawn { on = source; pool = particles }
  update { on = particles; dt = 0.1 vx = -0.5 }
  update { on = particles x = x + 0.06 }
  despawn { on = particles; when = state.x > 10 }
}`
	for _, backend := range backends {
		r := runner(t, src, declare.RunnerOptions{Backend: backend})
		steps(t, r, 1)
		require.Equal(t, seen{[]float64{9.9 + 0.06, -0.5}, true}, all(t, r)[2])
		steps(t, r, 1)
		got := all(t, r)
		require.Equal(t, seen{[]float64{0, 0}, false}, got[2], "who is despawned has the initial state")
		require.Equal(t, seen{[]float64{9.9 + 0.06, -0.5}, true}, got[3])
	}
}

// TestEachRule runs one update on one entity, once.
func TestEachRule(t *testing.T) {
	for rule, want := range map[string][]float64{
		"a = b; b = a":                          {5, 2},
		"a = a / 0; b = -3 % 0":                 {0, 0},
		"a = 1e308 * 10; b = 7":                 {2, 7},
		"a = sqrt(-1)":                          {2, 5},
		"a = if(1e308*b - 1e308*b, 1, 2)":       {1, 5},
		"a = min(a, 0 * (1e308 * 10) ) b = 1":   {2, 1},
		"a = sign(-b) + sign(a) * 10":           {9, 5},
		"a = -7 % b":                            {3, 5},
		"a = floor(-a / 4) + abs(-b)":           {4, 5},
		"a = clamp(b, 7, 6)":                    {6, 5},
		"a = -0 * b":                            {math.Copysign(0, -1), 5},
		"a = max(0, -0 * b)":                    {0, 5},
		"let k = a * a let m = k + k a = m + k": {12, 5},
		"a = @other.s1 + active(other)":         {41, 5},
		"a = (a < b) + (a <= 2) + (a > b) + (b >= 6) + (a == 2) + (b != 5)": {3, 5},
		"a = (a and 0) + (a or 0) + (not 3) + (not (a > b))":                {2, 5},
		"a = inte(b)":                       {2.5, 5},
		"a = t":                             {0, 5},
		"a = s1 state.b = s0":               {5, 2},
		"a = b - 2 * a b = b*2":             {1, 10},
		"a = 2 * (3 + b)":                   {16, 5},
		"a = if(a > b, 1, if(b > 4, 3, 4))": {3, 5},
	} {
		src := `world { entity e { state = (a = 2, b = 5) } entity other { state = (x = 1, y = 40) } }
systems { update { on = e; dt = 0.5 ` + rule + ` } }`
		for _, backend := range backends {
			r := runner(t, src, declare.RunnerOptions{Backend: backend})
			steps(t, r, 1)
			got := all(t, r)[1].state
			for i := range want {
				assert.Equal(t, math.Float64bits(want[i]), math.Float64bits(got[i]), "%v: %s gives %v, not %v", backend, rule, got, want)
			}
		}
	}
}
