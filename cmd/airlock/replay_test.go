package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// built builds the command for a level of the architecture, "" for the default.
func built(t *testing.T, level string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "airlock")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".")
	cmd.Env = os.Environ()
	if level != "" {
		cmd.Env = append(cmd.Env, "GOAMD64="+level)
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// levels are those that this machine can run.
func levels() []string {
	info, err := os.ReadFile("/proc/cpuinfo")
	switch {
	case runtime.GOARCH != "amd64":
		return []string{""}
	case err == nil && regexp.MustCompile(`flags\s.*\bavx2\b`).Match(info) && regexp.MustCompile(`flags\s.*\bbmi2\b`).Match(info) && regexp.MustCompile(`flags\s.*\bfma\b`).Match(info):
		return []string{"v1", "v3"}
	}
	return []string{"v1"}
}

// TestAKilledArenaIsReplayed kills a recording server in the middle. Whatever processors, levels and environment the
// replay has, it finds the same hashes.
func TestAKilledArenaIsReplayed(t *testing.T) {
	if testing.Short() {
		t.Skip("builds commands of its own, which are the same in every build")
	}
	var binaries []string
	for _, level := range levels() {
		binaries = append(binaries, built(t, level))
	}
	dir := filepath.Join(t.TempDir(), "new", "journal")
	server := exec.Command(binaries[0], "arena", "--port", "0", "--bots", "24", "--rate", "200", "--journal", dir)
	stdout, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	lines := bufio.NewScanner(stdout)
	last := 0
	for status := 0; status < 2 && lines.Scan(); {
		if n, err := fmt.Sscanf(lines.Text(), "frame %d |", &last); n == 1 && err == nil {
			status++
		}
	}
	require.NoError(t, server.Process.Kill())
	_ = server.Wait() // it was killed
	require.Positive(t, last)

	want := ""
	for _, binary := range binaries {
		for _, procs := range []int{1, 4} {
			replay := exec.Command(binary, "replay", "--hashes", dir)
			replay.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(procs), "GOGC="+strconv.Itoa(40*procs))
			out, err := replay.Output()
			require.NoError(t, err, string(out))
			frame := hashed(t, string(out))
			require.GreaterOrEqual(t, frame, last, "every frame was written before the next one began")
			if want == "" {
				want = string(out)
			}
			require.Equal(t, want, string(out))
		}
	}
}

// hashed checks what replay --hashes has printed, and gives the last frame.
func hashed(t *testing.T, out string) int {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	frames := 0
	for ; strings.HasPrefix(lines[frames], "frame "); frames++ {
		require.Regexp(t, fmt.Sprintf("^frame %d hash [0-9a-f]{16}$", frames+1), lines[frames])
	}
	lines = lines[frames:]
	if len(lines) == 2 { // it may have been killed within a record
		require.Regexp(t, `^the end of the journal is lost, \d+ bytes: `, lines[0])
		lines = lines[1:]
	}
	require.Equal(t, []string{fmt.Sprintf("identical through frame %d", frames)}, lines)
	return frames
}

// journaled records an arena for a moment.
func journaled(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "journal")
	code, stdout, stderr := command(t.Context(), "arena", "--port", "0", "--bots", "4", "--rate", "500", "--for", "700ms", "--journal", dir)
	require.Zero(t, code, stderr)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "airlock replay "+dir)
	return dir
}

func TestReplaySaysHowFarAllIsIdentical(t *testing.T) {
	dir := journaled(t)
	code, stdout, stderr := command(t.Context(), "replay", dir)
	assert.Zero(t, code)
	assert.Regexp(t, `^identical through frame [1-9]\d*\n$`, stdout)
	assert.Empty(t, stderr, "nothing to show before it is over")

	var result replayResult
	code, asJSON, stderr := command(t.Context(), "replay", "--json", dir)
	assert.Zero(t, code)
	assert.Empty(t, stderr)
	require.NoError(t, json.Unmarshal([]byte(asJSON), &result))
	assert.True(t, result.Identical)
	assert.Equal(t, stdout, fmt.Sprintf("identical through frame %d\n", result.Through))
	code, asJSON, _ = command(t.Context(), "replay", "--json", "--hashes", dir)
	assert.Zero(t, code)
	assert.EqualValues(t, result.Through+1, strings.Count(asJSON, "\n"))
	assert.Regexp(t, `^{"frame":1,"hash":"[0-9a-f]{16}"}\n`, asJSON)

	identical := stdout
	code, stdout, stderr = command(t.Context(), "replay", "--hashes", dir)
	assert.Zero(t, code)
	assert.Positive(t, hashed(t, stdout))
	assert.Equal(t, identical, stdout[strings.Index(stdout, "identical"):])
	assert.Empty(t, stderr)

	code, stdout, stderr = command(t.Context(), "arena", "--port", "0", "--journal", dir)
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stdout)
	assert.Regexp(t, `^airlock: there is a journal in [^\n]+ already; choose another directory for --journal[^\n]+\n$`, stderr)

	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr = command(cancelled, "replay", dir)
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stdout)
	assert.Equal(t, "airlock: stopped; identical through frame 0, and there is more\n", stderr)

	segment := filepath.Join(dir, "journal-00000001.seg")
	whole, err := os.ReadFile(segment)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(segment, whole[:len(whole)-5], 0o600))
	code, stdout, _ = command(t.Context(), "replay", dir)
	assert.Zero(t, code, "a torn tail is no failure")
	assert.Regexp(t, `^the end of the journal is lost, \d+ bytes: [^\n]+\nidentical through frame \d+\n$`, stdout)
	code, asJSON, _ = command(t.Context(), "replay", "--json", dir)
	assert.Zero(t, code)
	require.NoError(t, json.Unmarshal([]byte(asJSON), &result))
	assert.Positive(t, result.LostBytes)
	assert.NotEmpty(t, result.LostReason)

	require.NoError(t, os.WriteFile(segment, bytes.Repeat([]byte("x"), 500), 0o600))
	code, _, stderr = command(t.Context(), "replay", dir)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "damaged")
}

func TestReplayOfWhatIsNoJournal(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		dir, want string
	}{
		{filepath.Join(dir, "nowhere"), "there is no directory"},
		{file, "is not a directory"},
		{dir, "there is no journal in"},
	} {
		code, stdout, stderr := command(t.Context(), "replay", c.dir)
		assert.Equal(t, exitFailed, code)
		assert.Empty(t, stdout)
		assert.Contains(t, stderr, c.want)
		assert.Regexp(t, `^airlock: [^\n]+\n$`, stderr)
	}
	for args, want := range map[string]string{
		"replay":           "dir",
		"replay a b":       "b",
		"replay --fast":    "--fast",
		"arena --journal=": "--journal needs the name of a directory",
		"arena --journal":  "--journal",
	} {
		code, _, stderr := command(t.Context(), strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Contains(t, stderr, want, args)
	}
	code, _, stderr := command(t.Context(), "arena", "--port", "0", "--journal", filepath.Join(file, "below"))
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "not a directory")
}
