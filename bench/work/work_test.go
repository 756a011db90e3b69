package work_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/bench/work"
)

// TestAllSidesDoTheSameWork runs every workload at a tiny size: Measure compares the checksums.
func TestAllSidesDoTheSameWork(t *testing.T) {
	for _, w := range work.All() {
		t.Run(w.Name, func(t *testing.T) {
			row, err := contest.Measure(w, 128, contest.Options{Passes: 2})
			require.NoError(t, err)
			require.Greater(t, row.Ours, 0.0)
			require.False(t, row.Peer == nil && row.Raw == nil, "nobody to compare with")
		})
	}
}

func TestWorkloadsAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range work.All() {
		require.False(t, seen[w.Name], "%q twice", w.Name)
		seen[w.Name] = true
		require.NotEmpty(t, w.Sizes, w.Name)
		require.IsIncreasing(t, append([]int{0}, w.Sizes...), w.Name)
	}
}
