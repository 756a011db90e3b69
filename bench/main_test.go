package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/bench/contest"
)

func TestQuickRunPrintsARow(t *testing.T) {
	var out, progress bytes.Buffer
	require.NoError(t, run([]string{"-quick", "-run", "^query, two|^pool, take and release$"}, &out, &progress))
	require.Equal(t, 3, bytes.Count(out.Bytes(), []byte("\n")), out.String())
	require.Contains(t, out.String(), "ark tables")
	require.Contains(t, out.String(), "sync.Pool")
	require.Contains(t, progress.String(), "query, two components at 1024")
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{
		{"-run", "("}, {"-passes", "0"}, {"-size", "0"}, {"-write", "-quick"}, {"-write", "-run", "x"}, {"stray"}, {"-unknown"},
	} {
		require.Error(t, run(args, io.Discard, io.Discard), args)
	}
}

func TestSizesAreCut(t *testing.T) {
	s, err := parse([]string{"-size", "2000"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2000}, s.sizes(&contest.Workload{Sizes: []int{1, 2000, 2001}}))
	require.Empty(t, s.sizes(&contest.Workload{Sizes: []int{3000}}))
}

func TestWhatDoesNotFitIsLeftOut(t *testing.T) {
	s, err := parse([]string{"-quick", "-run", "^query, two"}, io.Discard)
	require.NoError(t, err)
	var progress bytes.Buffer
	rows, err := s.measure(1<<20, &progress)
	require.NoError(t, err)
	require.Empty(t, rows)
	require.Contains(t, progress.String(), "left out")
}

func TestPublishWritesTableAndChart(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "PERFORMANCE.md")
	require.NoError(t, os.WriteFile(page, []byte("# Performance\n"), 0o644))
	s := &settings{docs: docs}
	rows := []*contest.Row{{Workload: "w", Unit: "ns", Size: 1, Ours: 1, Peer: &contest.Figure{Name: "p", Cost: 2, Ratio: 0.5}}}
	for range 2 { // a second time replaces
		require.NoError(t, s.publish(rows))
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(text, []byte("| w | 1 | 1.00 ns |")))
	require.Contains(t, string(text), "GOMAXPROCS")
	chart, err := os.ReadFile(filepath.Join(docs, "bench.svg"))
	require.NoError(t, err)
	require.Contains(t, string(chart), "<svg")
	require.Error(t, (&settings{docs: filepath.Join(docs, "none")}).publish(rows))
}
