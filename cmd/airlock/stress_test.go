package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/stress"
)

func TestStressReportsForPeopleAndMachines(t *testing.T) {
	began := time.Now()
	code, stdout, stderr := command(t.Context(), "stress", "--scenario", "sync", "--for", "80ms", "--seed", "5", "--producers", "3")
	took := time.Since(began)
	require.Zero(t, code, stdout)
	assert.Empty(t, stderr, "a progress line is for terminals")
	told := regexp.MustCompile(`^sync: \d+ operations by 3 producers in (\d+\.\d) s, \d+ ran a second; seed 5,`).FindStringSubmatch(stdout)
	require.NotNil(t, told, stdout)
	seconds, err := strconv.ParseFloat(told[1], 64)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, seconds, 0.1) // rounded; more if the machine had much else to do
	assert.LessOrEqual(t, seconds, took.Seconds()+0.05)
	assert.Contains(t, stdout, "no violation")

	code, stdout, stderr = command(t.Context(), "stress", "--scenario", "batched", "--for", "80ms", "--json", "--faults")
	require.Zero(t, code, stdout)
	assert.Empty(t, stderr)
	var report stress.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
	assert.Equal(t, "batched", report.Scenario)
	assert.True(t, report.Faults)
	assert.NotZero(t, report.Seed, "drawn")
	assert.Positive(t, report.Operations)
	assert.Contains(t, stdout, `"violations": null`)
}

func TestAViolationIsAFailure(t *testing.T) {
	bad := stress.Report{
		Scenario: "sync", Seed: 7, Violated: 3, Violations: []stress.Violation{{Invariant: stress.NoAlias, Detail: "L1.1 lives twice"}},
	}
	for _, asJSON := range []bool{false, true} {
		var stdout, stderr bytes.Buffer
		page := filepath.Join(t.TempDir(), "RUNS.md")
		c := &stressCommand{JSON: asJSON, Write: &page}
		require.NoError(t, c.tell(stress.Report{Scenario: "sync"}, io.Discard, stderrWriter{&stderr}))
		require.ErrorIs(t, c.tell(bad, &stdout, stderrWriter{&stderr}), errTold, "which is exit status 1")
		assert.Contains(t, stdout.String(), "L1.1 lives twice")
		told := stdout.String() + stderr.String()
		assert.Contains(t, told, "to repeat: GOMAXPROCS=")
		assert.Contains(t, told, "--scenario sync")
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		assert.Contains(t, string(text), "| 3, the first: "+stress.NoAlias+": L1.1 lives twice |", "it is written down, too")
	}
}

func TestStressListsItsScenarios(t *testing.T) {
	code, stdout, _ := command(t.Context(), "stress", "--list")
	require.Zero(t, code)
	for _, s := range stress.Scenarios() {
		assert.Contains(t, stdout, s.Name+" ")
		assert.Contains(t, stdout, s.About)
	}
	code, stdout, _ = command(t.Context(), "stress", "--list", "--json")
	require.Zero(t, code)
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &rows))
	assert.Len(t, rows, len(stress.Scenarios()))
	assert.Equal(t, "sync", rows[0]["name"])
}

func TestStressCommandLinesThatMakeNoSense(t *testing.T) {
	for args, want := range map[string]string{
		"stress":                                     "--scenario is missing",
		"stress --scenario nothing":                  "there are sync, batched",
		"stress --scenario sync --for 0s":            "--for must be above zero",
		"stress --scenario sync --producers 9000":    "between 1 and 8000, not 9000",
		"stress --scenario sync --seed=-1":           "--seed",
		"stress --scenario sync --for 50ms --write=": "--write needs the name of a file",
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Empty(t, stdout, args)
		assert.Contains(t, stderr, want, args)
		assert.Regexp(t, `^airlock: [^\n]+\n$`, stderr, args)
	}
}

func TestAnInterruptedStressReportsAndIsNoFailure(t *testing.T) {
	ctx, interrupt := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer interrupt()
	code, stdout, stderr := command(ctx, "stress", "--scenario", "soak", "--for", "1h")
	assert.Zero(t, code, stdout)
	assert.Empty(t, stderr)
	assert.Contains(t, stdout, "interrupted")
}

func TestStressWritesWhatWasRun(t *testing.T) {
	page := filepath.Join(t.TempDir(), "RUNS.md")
	for range 2 {
		code, stdout, stderr := command(t.Context(), "stress", "--scenario", "sync", "--for", "30ms", "--write", page)
		require.Zero(t, code, stdout+stderr)
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.True(t, bytes.HasPrefix(text, []byte(runsHead+runsTable)))
	rows := strings.Split(strings.TrimSpace(string(text[len(runsHead+runsTable):])), "\n")
	require.Len(t, rows, 2)
	for _, row := range rows {
		assert.Equal(t, strings.Count(runsTable, "|")/2, strings.Count(row, "|"), row)
		assert.Contains(t, row, "| sync |")
		assert.Contains(t, row, "| none |")
	}
	require.NoError(t, os.WriteFile(page, []byte("# Something else\n"), 0o666))
	code, stdout, stderr := command(t.Context(), "stress", "--scenario", "sync", "--for", "1h", "--write", page)
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "is no page of runs")
}

func TestAStressSaysHowFarItIs(t *testing.T) {
	share, text := stressProgress(stress.Progress{Scenario: "soak (sync)", Elapsed: 12 * time.Second, For: time.Minute, Operations: 100, Frame: 7, Violations: 2})
	assert.Equal(t, 0.2, share)
	assert.Equal(t, "soak (sync): 12s of 1m0s, 100 operations, frame 7, 2 VIOLATIONS", text)
}

func TestAStressWritesItsOverruns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "flights")
	code, stdout, stderr := command(t.Context(), "stress", "--scenario", "sync", "--for", "50ms", "--flight", dir)
	require.Zero(t, code, stdout+stderr)
	require.DirExists(t, dir)
	code, _, stderr = command(t.Context(), "stress", "--scenario", "sync", "--for", "50ms", "--flight=")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "--flight needs the name of a directory")
}
