package declare_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/internal/check"
)

// fusing has products that go into sums, in all forms that are loops of their own: if one were fused, the last
// bit would differ. (1+2^-30)² is 1 + 2^-29 + 2^-60, and without the last term when rounded.
const fusing = `world {
  params { k = 1.000000000931322574615478515625; m = 1.00000000186264514923095703125 }
  entity e { state = (a = k, c = m, vv = 9, vs = 9, sub = 9, swap = 9, lets = 9, shifted = 9, inner = 9, mod = 9, tenth = 0.1, modvs = 9) }
  pool p[200] { state = (a = k, c = m, vv = 9, vs = 9, sub = 9, swap = 9, lets = 9, shifted = 9, inner = 9, mod = 9, tenth = 0.1, modvs = 9) }
}
systems {
  spawn { on = e; pool = p; count = 190 }
  update { on = e
    let b = a * a
    vv = a * a - c   vs = -c + k * a   sub = c - a * k   swap = a * k + -c   lets = b - c
    shifted = -c + k * (0 + a)   inner = k * (0 + a) - c   mod = a % tenth   modvs = a % 0.1
  }
  update { on = p
    let b = a * a
    vv = a * a - c   vs = -c + k * a   sub = c - a * k   swap = a * k + -c   lets = b - c
    shifted = -c + k * (0 + a)   inner = k * (0 + a) - c   mod = a % tenth   modvs = a % 0.1
  }
}`

func TestDeclare2NoProductIsFused(t *testing.T) { t.Run("declare-2", noProductIsFused) }

func noProductIsFused(t *testing.T) {
	k := 1 + math.Ldexp(1, -30)
	c := 1 + math.Ldexp(1, -29)
	require.NotZero(t, math.FMA(k, k, -c), "fusing shows")
	tenth := 0.1
	mod := k - float64(math.Floor(k/tenth)*tenth)
	require.NotEqual(t, mod, math.FMA(-math.Floor(k/tenth), tenth, k), "fusing shows")
	for _, backend := range backends {
		r := runner(t, fusing, declare.RunnerOptions{Backend: backend})
		steps(t, r, 1)
		for id, e := range all(t, r)[1:] {
			if id < 191 {
				require.Equal(t, []float64{k, c, 0, 0, 0, 0, 0, 0, 0, mod, tenth, mod}, e.state, "%v %d", backend, id+1)
			}
		}
	}
}

// TestTheSameBitsInEveryBuild runs the same worlds in builds for two levels of amd64, and for arm64 where that
// can be run.
func TestTheSameBitsInEveryBuild(t *testing.T) {
	if raced || check.Enabled || testing.Short() {
		t.Skip("builds programs")
	}
	var files []string
	add := func(name, src string) {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(src), 0o600))
		files = append(files, path)
	}
	add("pooled", pooled)
	add("busy", busy)
	add("fusing", fusing)
	for seed := range uint64(30) {
		w := writer{Rand: rand.New(rand.NewPCG(seed+1, 7))}
		add(fmt.Sprint(seed), w.program())
	}
	type build struct {
		env []string
		run []string // what runs the program
	}
	builds := []build{{env: []string{"GOARCH=" + runtime.GOARCH}}}
	if runtime.GOARCH == "amd64" {
		builds[0].env = append(builds[0].env, "GOAMD64=v1")
		if info, err := os.ReadFile("/proc/cpuinfo"); err == nil && regexp.MustCompile(`flags\s.*\bavx2\b`).Match(info) &&
			regexp.MustCompile(`flags\s.*\bbmi2\b`).Match(info) && regexp.MustCompile(`flags\s.*\bfma\b`).Match(info) {
			builds = append(builds, build{env: []string{"GOAMD64=v3"}})
		}
	}
	if qemu, err := exec.LookPath("qemu-aarch64-static"); err == nil && runtime.GOARCH != "arm64" {
		builds = append(builds, build{env: []string{"GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0"}, run: []string{qemu}})
	} else if runtime.GOARCH != "arm64" {
		t.Log("arm64 is left out: there is no qemu-aarch64-static here")
	}
	want := ""
	for i, b := range builds {
		path := filepath.Join(t.TempDir(), "bits")
		cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "./testdata/bits")
		cmd.Env = append(os.Environ(), b.env...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		args := append(append(b.run, path), files...)
		out, err = exec.CommandContext(t.Context(), args[0], args[1:]...).Output()
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			require.NoError(t, err, string(failed.Stderr))
		}
		require.NoError(t, err)
		if i == 0 {
			want = string(out)
			require.NotEmpty(t, want)
		}
		require.Equal(t, want, string(out), b.env)
	}
	t.Logf("%d builds, %d worlds", len(builds), len(files))
}

// TestDeclare1TwoBackendsOneWorld runs a world of divisions by zero and of overflows for a thousand frames.
func TestDeclare1TwoBackendsOneWorld(t *testing.T) { t.Run("declare-1", twoBackendsOneWorld) }

func twoBackendsOneWorld(t *testing.T) {
	const src = `world {
  entity e { state = (a = 1e300, b = 0, c = -1) }
  pool p[300] { state = (a = 0, b = 0, c = 0) }
}
systems {
  spawn { on = e; pool = p; count = 5; every = 3 }
  update { on = e; dt = 1  a = a * 1e10  b = 1 / b  c = c % 0 + t / (t - t) - sqrt(-t) }
  update { on = p  a = a * a  b = (a + t) / (t % 7)  c = max(c, a / 0) - floor(t / 3) * 1e307 }
  update { on = e  a = if(a > 1e307, 2, a * 1e3)  c = -1 - c }
  despawn { on = p; when = t % 11 == 0 or c / 0 or active(p#3) and b > 90 }
}`
	n := 1000
	if raced {
		n = 100
	}
	var hashes [3]uint64
	for i, o := range []declare.RunnerOptions{{CrossCheck: true, Workers: 1}, {Workers: 8}, {Backend: declare.Interpreter}} {
		r := runner(t, src, o)
		r.SpreadFrom(1)
		steps(t, r, n)
		hash, err := r.Hash()
		require.NoError(t, err)
		hashes[i] = hash
		require.Positive(t, r.World().Refused())
	}
	require.Equal(t, hashes[0], hashes[1])
	require.Equal(t, hashes[0], hashes[2])
}
