package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/declare"
)

var update = flag.Bool("update", false, "write hashes.golden anew")

const (
	goldenFile  = "hashes.golden"
	goldenSteps = 200
)

// worlds are the files of this directory, by name.
func worlds(t *testing.T) map[string]*declare.Program {
	t.Helper()
	names, err := filepath.Glob("*.world")
	require.NoError(t, err)
	require.Len(t, names, 4)
	out := map[string]*declare.Program{}
	for _, name := range names {
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		out[name], err = declare.Load(name, src, nil)
		require.NoError(t, err)
		formatted, err := declare.Format(name, src)
		require.NoError(t, err)
		assert.Equal(t, string(formatted), string(src), "airlock fmt -w examples/worlds/%s", name)
	}
	return out
}

// ran runs a world, and returns it with its hash.
func ran(t *testing.T, p *declare.Program, o declare.RunnerOptions) (*declare.World, string) {
	t.Helper()
	r, err := declare.NewRunner(p, o)
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close()) }()
	for range goldenSteps {
		require.NoError(t, r.Step())
	}
	hash, err := r.Hash()
	require.NoError(t, err)
	return r.World(), fmt.Sprintf("%016x", hash)
}

// TestTheWorldsHaveTheirRecordedHashes runs each world with both backends and with one and two workers. -update
// records what the interpreter comes to.
func TestTheWorldsHaveTheirRecordedHashes(t *testing.T) {
	programs := worlds(t)
	if *update {
		var b strings.Builder
		names, _ := filepath.Glob("*.world")
		for _, name := range names {
			_, hash := ran(t, programs[name], declare.RunnerOptions{Backend: declare.Interpreter, Workers: 1})
			fmt.Fprintf(&b, "%s %d %s\n", name, goldenSteps, hash)
		}
		require.NoError(t, os.WriteFile(goldenFile, []byte(b.String()), 0o644))
	}
	recorded, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	for _, line := range strings.Split(strings.TrimSuffix(string(recorded), "\n"), "\n") {
		var name, want string
		var steps int
		_, err := fmt.Sscanf(line, "%s %d %s", &name, &steps, &want)
		require.NoError(t, err)
		require.Equal(t, goldenSteps, steps)
		p := programs[name]
		require.NotNil(t, p, name)
		delete(programs, name)
		for _, o := range []declare.RunnerOptions{
			{Backend: declare.Batch, Workers: 1},
			{Backend: declare.Batch, Workers: 2},
			{Backend: declare.Interpreter, Workers: 2}, // which it leaves alone
		} {
			w, hash := ran(t, p, o)
			assert.Equal(t, want, hash, "%s, %v, %d workers: go test ./examples/worlds -update if that is meant", name, o.Backend, o.Workers)
			assert.Zero(t, w.Refused(), name)
			for i := range p.Groups {
				assert.Positive(t, w.ActiveIn(i), "%s: %s", name, p.Groups[i].Name)
			}
		}
	}
	assert.Empty(t, programs, "worlds without a recorded hash")
}

// TestRabbitsAndFoxesAreAsManyAsTheirNumbers checks that the animals follow the populations.
func TestRabbitsAndFoxesAreAsManyAsTheirNumbers(t *testing.T) {
	p := worlds(t)["predators.world"]
	r, err := declare.NewRunner(p, declare.RunnerOptions{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, r.Close()) }()
	group := func(name string) int {
		for i := range p.Groups {
			if p.Groups[i].Name == name {
				return i
			}
		}
		t.Fatal(name)
		return 0
	}
	rabbits, foxes := group("rabbits"), group("foxes")
	least, most := p.Groups[rabbits].Count, 0
	for step := range 1200 {
		require.NoError(t, r.Step())
		if step >= 200 {
			n := r.World().ActiveIn(rabbits)
			least, most = min(least, n), max(most, n)
			require.Positive(t, r.World().ActiveIn(foxes))
			require.Less(t, r.World().ActiveIn(foxes), p.Groups[foxes].Count, "the pool is large enough")
		}
	}
	assert.Less(t, least, 15)
	assert.Greater(t, most, 90)
	assert.Less(t, most, p.Groups[rabbits].Count, "the pool is large enough")
}
