package views_test

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/views"
)

// borders are the slots where a run that is cut or merged wrongly shows.
var borders = []int{0, 1, 62, 63, 64, 65, 126, 127, 128, 129, 191, 192}

func set(words []uint64, i int)      { words[i>>6] |= 1 << (i & 63) }
func unset(words []uint64, i int)    { words[i>>6] &^= 1 << (i & 63) }
func has(words []uint64, i int) bool { return words[i>>6]>>(i&63)&1 == 1 }

// runsOf is nextRun one slot at a time.
func runsOf(words []uint64, n int) (runs [][2]int) {
	for lo := 0; lo < n; {
		if !has(words, lo) {
			lo++
			continue
		}
		hi := lo
		for hi < n && has(words, hi) {
			hi++
		}
		runs = append(runs, [2]int{lo, hi})
		lo = hi
	}
	return runs
}

func foundRuns(words []uint64, n int) (runs [][2]int) {
	for from := 0; ; {
		lo, hi := views.NextRun(words, from, n)
		if lo == hi {
			return runs
		}
		runs = append(runs, [2]int{lo, hi})
		from = hi
	}
}

func TestNextRunCutsAtHolesOnly(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 129, 192, 256} {
		full := make([]uint64, 4)
		for i := range full {
			full[i] = ^uint64(0)
		}
		require.Equal(t, runsOf(full, n), foundRuns(full, n), "full, n=%d", n)
		require.Equal(t, n, views.CountLive(full, n))
		require.Empty(t, foundRuns(make([]uint64, 4), n))
		for _, hole := range append(borders, max(n-1, 0)) {
			words := append([]uint64(nil), full...)
			unset(words, hole)
			require.Equal(t, runsOf(words, n), foundRuns(words, n), "hole %d, n=%d", hole, n)
			lone := make([]uint64, 4)
			set(lone, hole)
			require.Equal(t, runsOf(lone, n), foundRuns(lone, n), "lone %d, n=%d", hole, n)
		}
	}
}

func TestNextRunAgreesWithSlotBySlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(
			rapid.Just(uint64(0)), rapid.Just(^uint64(0)), rapid.Uint64(),
			rapid.Custom(func(t *rapid.T) uint64 { // one run of ones
				return ^uint64(0) >> rapid.IntRange(0, 63).Draw(t, "right") << rapid.IntRange(0, 63).Draw(t, "left")
			}),
		), 1, 16).Draw(t, "words")
		n := rapid.IntRange(0, len(words)*64).Draw(t, "n")
		want := runsOf(words, n)
		require.Equal(t, want, foundRuns(words, n))
		live := 0
		for _, r := range want {
			live += r[1] - r[0]
		}
		require.Equal(t, live, views.CountLive(words, n))
		if n == len(words)*64 {
			ones := 0
			for _, w := range words {
				ones += bits.OnesCount64(w)
			}
			require.Equal(t, ones, live)
		}
	})
}
