package stress_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/stress"
)

// stages are what a script is played on. All give one history.
var stages = []stress.Stage{
	{Slots: 1024}, {Workers: 2}, {Workers: 4, Slots: 1024}, {Defrag: true}, {Defrag: true, Slots: 1024, Workers: 2},
	{Prewarmed: true}, {Prewarmed: true, Defrag: true, Workers: 4}, {Ring: 8}, {Ring: 16, Workers: 2, Slots: 1024, Prewarmed: true},
}

// equals are stages that give the same hashes, too.
var equals = [][]stress.Stage{
	{
		{Deterministic: true}, {Deterministic: true, Workers: 2}, {Deterministic: true, Workers: 4},
		{Deterministic: true, Slots: 1024}, {Deterministic: true, Slots: 1024, Workers: 4},
	},
	{
		{Deterministic: true, Prewarmed: true}, {Deterministic: true, Prewarmed: true, Workers: 4},
		{Deterministic: true, Prewarmed: true, Slots: 1024, Workers: 2},
	},
	{
		{Deterministic: true, Ring: 8}, {Deterministic: true, Ring: 8, Workers: 4},
		{Deterministic: true, Ring: 8, Slots: 1024}, {Deterministic: true, Ring: 8, Slots: 1024, Workers: 4},
	},
}

// differs plays a script everywhere and says where the performances part.
func differs(s stress.Script) error {
	first, err := s.Play(stress.Stage{})
	if err != nil {
		return err
	}
	for _, stage := range stages {
		p, err := s.Play(stage)
		if err != nil {
			return fmt.Errorf("%+v: %w", stage, err)
		}
		if how, differs := first.Differs(p); differs {
			return fmt.Errorf("%+v has another history: %s", stage, how)
		}
	}
	for _, group := range equals {
		if err := hashesDiffer(s, first, group); err != nil {
			return err
		}
	}
	return nil
}

// hashesDiffer plays a script on a group of stages, and says which of them has another history than the first
// performance, or other hashes than the first of the group.
func hashesDiffer(s stress.Script, first *stress.Performance, group []stress.Stage) error {
	var hashes *stress.Performance
	for _, stage := range group {
		p, err := s.Play(stage)
		if err != nil {
			return fmt.Errorf("%+v: %w", stage, err)
		}
		if how, differs := first.Differs(p); differs {
			return fmt.Errorf("%+v has another history: %s", stage, how)
		}
		if hashes == nil {
			hashes = p
		}
		if how, differs := hashes.HashDiffers(p); differs {
			return fmt.Errorf("%+v has another hash than %+v: %s", stage, group[0], how)
		}
	}
	return nil
}

func TestAScriptIsTheSameOnEveryStage(t *testing.T) {
	for seed := range uint64(many(2, 500)) {
		s := stress.RandomScript(seed, 30)
		if err := differs(s); err != nil {
			short := s.Shorten(func(s stress.Script) bool { return differs(s) != nil })
			require.NoError(t, differs(short), "seed %d:\n%s", seed, short.Format())
			require.NoError(t, err, "seed %d", seed)
		}
	}
}

// The scripts and digests below testdata hold for every build: with checks or without, with the race detector or not.
func TestSavedScriptsEndAsTheyDid(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute under the race detector, and the scripts of the next test have all its operations")
	}
	files, err := filepath.Glob(filepath.Join("testdata", "scripts", "*.script"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		s, err := stress.ParseScript(text)
		require.NoError(t, err, name)
		require.NoError(t, differs(s), name)
		p, err := s.Play(stress.Stage{Deterministic: true, Workers: 2})
		require.NoError(t, err, name)
		digest := fmt.Sprintf("%016x\n", p.Digest())
		golden := name[:len(name)-len(".script")] + ".golden"
		if os.Getenv("AIRLOCK_WRITE_GOLDEN") != "" {
			require.NoError(t, os.WriteFile(golden, []byte(digest), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		assert.Equal(t, string(want), digest, name)
	}
}

func TestAScriptIsReadAsItIsWritten(t *testing.T) {
	s := stress.RandomScript(3, 100)
	again, err := stress.ParseScript(s.Format())
	require.NoError(t, err)
	require.Equal(t, s, again)
	require.Equal(t, s, stress.RandomScript(3, 100))
	for text, want := range map[string]string{
		"\njump 1": "line 2", "spawn 1": "2 numbers", "step 1": "0 numbers", "kill -1": "no number", "batch 1 1025": "above",
		"kill 1048576": "no number", "set x 1": "no number",
	} {
		_, err := stress.ParseScript([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}

func TestShortenFindsWhatMatters(t *testing.T) {
	s := stress.RandomScript(5, 30)
	kills := func(s stress.Script) (n int) {
		for _, a := range s {
			if a.Verb == stress.VerbKill {
				n++
			}
		}
		return n
	}
	require.Greater(t, kills(s), 2)
	short := s.Shorten(func(s stress.Script) bool { return kills(s) >= 2 })
	assert.Len(t, short, 2)
}

// FuzzScript reads any text, and plays what is short enough.
func FuzzScript(f *testing.F) {
	f.Add([]byte("spawn 1 50 # entity 1\nparent 2 1\n\nstep\n"))
	f.Add([]byte("batch 0 40\nprefab 41\nfail 3 1\nkill 7\npart-kill 9\npart-spawn 43 2\nnet 4\nactive 5 0\nstep\nstep\n"))
	f.Add(stress.RandomScript(1, 3).Format())
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := stress.ParseScript(text)
		if err != nil {
			return
		}
		again, err := stress.ParseScript(s.Format())
		require.NoError(t, err)
		require.Equal(t, s, again)
		if len(s) > 100 {
			return
		}
		first, err := s.Play(stress.Stage{})
		require.NoError(t, err)
		second, err := s.Play(stress.Stage{Deterministic: true, Slots: 1024, Workers: 2, Prewarmed: true})
		require.NoError(t, err)
		if how, differs := first.Differs(second); differs {
			t.Fatal(how)
		}
	})
}
