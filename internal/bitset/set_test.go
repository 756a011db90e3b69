package bitset_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/internal/bitset"
)

// numbers draws what is likely to fall on both sides of a word, of a level, and far apart.
var numbers = rapid.OneOf(
	rapid.Uint32Max(200),
	rapid.Uint32Max(1<<18),
	rapid.SampledFrom([]uint32{0, 63, 64, 4095, 4096, 262143, 262144, 1 << 22, 1<<22 + 1}),
)

func TestSetAgreesWithAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s bitset.Set
		model := map[uint32]bool{}
		sorted := func() []uint32 {
			var all []uint32
			for i := range model {
				all = append(all, i)
			}
			slices.Sort(all)
			return all
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				i := numbers.Draw(t, "i")
				require.Equal(t, !model[i], s.Add(i))
				model[i] = true
			},
			"remove": func(t *rapid.T) {
				i := numbers.Draw(t, "i")
				if all := sorted(); len(all) > 0 && rapid.Bool().Draw(t, "member") {
					i = rapid.SampledFrom(all).Draw(t, "which")
				}
				require.Equal(t, model[i], s.Remove(i))
				delete(model, i)
			},
			"add a block": func(t *rapid.T) {
				i, mask := numbers.Draw(t, "i"), rapid.Uint64().Draw(t, "mask")
				block, fits := i>>6, mask != 0 && s.Reaches(i)
				for k := range uint32(64) {
					fits = fits && (mask>>k&1 == 0 || !model[block<<6|k])
				}
				require.Equal(t, fits, s.AddWord(block, mask))
				for k := range uint32(64) {
					if fits && mask>>k&1 != 0 {
						model[block<<6|k] = true
					}
				}
			},
			"remove a block": func(t *rapid.T) {
				all := sorted()
				if len(all) == 0 {
					t.Skip("empty")
				}
				block, mask := rapid.SampledFrom(all).Draw(t, "member")>>6, uint64(0)
				for k := range uint32(64) {
					if model[block<<6|k] && rapid.Bool().Draw(t, "this one") {
						mask |= 1 << k
					}
				}
				require.False(t, s.RemoveWord(block, 0))
				if k := rapid.Uint32Range(0, 63).Draw(t, "another"); !model[block<<6|k] {
					require.False(t, s.RemoveWord(block, mask|1<<k))
				}
				require.Equal(t, mask != 0, s.RemoveWord(block, mask))
				for k := range uint32(64) {
					if mask>>k&1 != 0 {
						delete(model, block<<6|k)
					}
				}
			},
			"clear": func(t *rapid.T) {
				if rapid.IntRange(0, 20).Draw(t, "often") == 0 {
					s.Clear()
					clear(model)
				}
			},
			"look": func(t *rapid.T) {
				i := numbers.Draw(t, "i")
				require.Equal(t, model[i], s.Has(i))
				all := sorted()
				at, _ := slices.BinarySearch(all, i)
				got, ok := s.Next(i)
				require.Equal(t, at < len(all), ok)
				if ok {
					require.Equal(t, all[at], got)
				}
			},
			"": func(t *rapid.T) {
				all := sorted()
				first, ok := s.First()
				require.Equal(t, len(all) > 0, ok)
				if ok {
					require.Equal(t, all[0], first)
				}
				require.Equal(t, len(model), s.Len())
				if len(all) == 0 || all[len(all)-1] < 1<<19 {
					require.NoError(t, s.Verify()) // walks the words: only while they are few
				}
			},
		})
		require.NoError(t, s.Verify())
	})
}

func TestSetFindsAcrossEmptyLevels(t *testing.T) {
	const far = 1<<26 - 1 // 8 MiB of words; the end of 32 bits would take half a gigabyte
	var s bitset.Set
	_, ok := s.First()
	require.False(t, ok)
	require.False(t, s.Has(1<<32-1))
	require.False(t, s.Remove(1<<32-1))
	_, ok = s.Next(0)
	require.False(t, ok)

	require.True(t, s.Add(7))
	require.True(t, s.Add(far))
	got, ok := s.Next(8)
	require.True(t, ok)
	require.Equal(t, uint32(far), got)
	require.True(t, s.Remove(7))
	got, ok = s.First()
	require.True(t, ok)
	require.Equal(t, uint32(far), got)
	_, ok = s.Next(far + 1)
	require.False(t, ok)
	_, ok = s.Next(1<<32 - 1)
	require.False(t, ok)
	require.True(t, s.Remove(far))
	_, ok = s.First()
	require.False(t, ok)
	require.NoError(t, s.Verify())
}

func TestSetAllocatesNothingOnceGrown(t *testing.T) {
	var s bitset.Set
	s.Add(100_000)
	s.Remove(100_000)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := uint32(0); i < 64; i++ {
			s.Add(i * 1009)
		}
		for {
			i, ok := s.First()
			if !ok {
				break
			}
			s.Remove(i)
		}
	}))
}

func ExampleSet() {
	var free bitset.Set
	for _, i := range []uint32{900, 17, 40_000} {
		free.Add(i)
	}
	for {
		lowest, ok := free.First()
		if !ok {
			break
		}
		fmt.Println(lowest)
		free.Remove(lowest)
	}
	// Output:
	// 17
	// 900
	// 40000
}
