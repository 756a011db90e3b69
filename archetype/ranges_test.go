package archetype_test

import (
	"bytes"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/archetype"
)

func TestRangesAgreeWithAMapOfNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const span = 400
		var r archetype.Ranges
		var used [span]bool
		r.Give(0, span)
		type taken struct{ lo, n uint64 }
		var out []taken
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.Uint64Range(1, 60).Draw(t, "n")
				want, fits := uint64(0), false
				for run, i := uint64(0), uint64(0); i < span && !fits; i++ {
					if run++; used[i] {
						run = 0
					}
					if run == n {
						want, fits = i+1-n, true
					}
				}
				lo, ok := r.Take(n)
				require.Equal(t, fits, ok)
				if !ok {
					return
				}
				require.Equal(t, want, lo, "the lowest place where it fits")
				for i := lo; i < lo+n; i++ {
					used[i] = true
				}
				out = append(out, taken{lo, n})
			},
			"give": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip("nothing is out")
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "which")
				r.Give(out[i].lo, out[i].n)
				for k := out[i].lo; k < out[i].lo+out[i].n; k++ {
					used[k] = false
				}
				out = append(out[:i], out[i+1:]...)
			},
			"": func(t *rapid.T) {
				require.NoError(t, r.Verify())
				free, high := uint64(0), uint64(0)
				for i, u := range used {
					if u {
						high = uint64(i) + 1
					} else {
						free++
					}
				}
				require.Equal(t, free, r.Count())
				require.Equal(t, high, r.High())
			},
		})
	})
}

func TestFreedNeighboursServeOneRequest(t *testing.T) {
	t.Run("archetype-6", func(t *testing.T) {
		var r archetype.Ranges
		r.Give(0, 1000)
		for want := uint64(0); want < 1000; want += 100 {
			lo, ok := r.Take(100)
			require.True(t, ok)
			require.Equal(t, want, lo)
		}
		r.Give(300, 100)
		_, ok := r.Take(200)
		require.False(t, ok)
		r.Give(400, 100)
		lo, ok := r.Take(200)
		require.True(t, ok)
		require.Equal(t, uint64(300), lo)
		require.Zero(t, r.Count())
	})
}

func TestSlabBlocksAreZeroAlignedAndReused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s archetype.Slab
		type block struct {
			bytes []byte
			lo    uint64
			size  uintptr
			mark  byte
		}
		var out []block
		next := byte(0)
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				size := uintptr(rapid.OneOf(rapid.IntRange(1, 5000), rapid.IntRange(1, 100_000)).Draw(t, "size"))
				p, lo := s.Alloc(size)
				require.Zero(t, uintptr(p)%64)
				next = next%255 + 1
				b := block{unsafe.Slice((*byte)(p), size), lo, size, next}
				require.Equal(t, len(b.bytes), bytes.Count(b.bytes, []byte{0}), "a new block is not zero")
				copy(b.bytes, bytes.Repeat([]byte{b.mark}, len(b.bytes)))
				out = append(out, b)
			},
			"release": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip("nothing is out")
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "which")
				require.Equal(t, len(out[i].bytes), bytes.Count(out[i].bytes, []byte{out[i].mark}), "written by another block")
				clear(out[i].bytes)
				s.Release(out[i].lo, out[i].size)
				out = append(out[:i], out[i+1:]...)
			},
			"": func(t *rapid.T) { require.NoError(t, s.Verify()) },
		})
	})
}

func TestSlabDoesNotGrowWhileFreedBlocksServe(t *testing.T) {
	var s archetype.Slab
	sizes := []uintptr{100, 7000, 64, 30_000, 900}
	regions := 0 // after the first round
	for round := range 100 {
		var los []uint64
		for _, size := range sizes {
			_, lo := s.Alloc(size)
			los = append(los, lo)
		}
		for _, i := range []int{3, 0, 4, 1, 2} {
			s.Release(los[i], sizes[i])
		}
		if round == 0 {
			regions = s.Regions()
		}
	}
	require.Equal(t, regions, s.Regions())
	_, a := s.Alloc(17 << 20) // larger than a region: one of its own
	_, b := s.Alloc(15 << 10)
	require.Equal(t, regions+1, s.Regions())
	require.Less(t, b, a, "the lowest place where it fits")
	s.Release(a, 17<<20)
	s.Release(b, 15<<10)
	require.NoError(t, s.Verify())
}
