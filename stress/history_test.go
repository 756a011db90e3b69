package stress_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/stress"
)

// oneIndex is the model for porcupine.
var oneIndex = porcupine.Model{
	Init: func() any { return stress.IndexState{} },
	Step: func(state, input, _ any) (bool, any) {
		ok, after := state.(stress.IndexState).Step(input.(stress.Call))
		return ok, after
	},
}

func porcupines(t *testing.T, part []stress.Call) bool {
	var operations []porcupine.Operation
	for _, c := range part {
		operations = append(operations, porcupine.Operation{ClientId: c.Client, Input: c, Call: int64(c.Begin), Return: int64(c.Ends)})
	}
	result := porcupine.CheckOperationsTimeout(oneIndex, operations, 20*time.Second)
	require.NotEqual(t, porcupine.Unknown, result)
	return result == porcupine.Ok
}

// Histories of spawn, destroy, resolve, net assign and confirm by 8 goroutines are put to two judges.
func TestHistoriesOfEightGoroutinesAreLinearizable(t *testing.T) {
	for range 3 {
		seed := rand.Uint64()
		t.Log("seed", seed)
		h, report := stress.RecordHistory(t.Context(), stress.Options{Seed: seed, Producers: 8, For: time.Minute}, 300)
		require.Empty(t, report.Violations)
		require.NoError(t, h.Check())
		calls, seen := 0, map[stress.What]bool{}
		for _, part := range h.Parts() {
			require.True(t, porcupines(t, part))
			calls += len(part)
			for _, c := range part {
				seen[c.What] = true
			}
		}
		assert.Greater(t, calls, 1000)
		assert.Len(t, seen, 7, "every kind of call is in it")
	}
}

// Both judges say the same of histories that were tampered with, and find most of those.
func TestTheJudgesOfHistoriesAgree(t *testing.T) {
	h, _ := stress.RecordHistory(t.Context(), stress.Options{Seed: 1, Producers: 8, For: time.Minute}, 150)
	rng := rand.New(rand.NewPCG(1, 2))
	found, tried := 0, 0
	for _, part := range h.Parts() {
		for range 4 {
			bad := slices.Clone(part)
			c := &bad[rng.IntN(len(bad))]
			switch rng.IntN(3) {
			case 0:
				c.Stale = !c.Stale
			case 1:
				c.Local = handles.NewLocal(c.Local.Index(), c.Local.Generation()+1)
			case 2:
				bad = slices.Delete(bad, 0, 1)
			}
			right := porcupines(t, bad)
			require.Equal(t, right, stress.Linearize(bad))
			tried++
			if !right {
				found++
			}
		}
	}
	assert.Greater(t, 10*found, tried, "%d of %d", found, tried)
}
