package logic_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/logic"
)

func TestQuantilesAreAtMostAnEighthTooHigh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.SliceOfN(rapid.Int64Range(0, 1<<42), 1, 200).Draw(t, "ns")
		h := logic.Observe(ns...)
		slices.Sort(ns)
		var sum int64
		for _, n := range ns {
			sum += n
		}
		require.EqualValues(t, len(ns), h.Count)
		require.EqualValues(t, sum, h.Sum)
		require.EqualValues(t, ns[len(ns)-1], h.Max)
		require.EqualValues(t, sum/int64(len(ns)), h.Mean())
		for _, p := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
			rank := min(max(int(p*float64(len(ns))+0.5), 1), len(ns))
			exact, q := ns[rank-1], int64(h.Quantile(p))
			require.GreaterOrEqual(t, q, exact)
			require.LessOrEqual(t, q, exact+exact/8)
		}
	})
}

func TestHistogramAtItsEnds(t *testing.T) {
	var empty logic.Histogram
	assert.Zero(t, empty.Quantile(0.5))
	assert.Zero(t, empty.Mean())
	h := logic.Observe(-5, 0, 1<<62, 7)
	assert.EqualValues(t, 4, h.Count)
	assert.EqualValues(t, 0, h.Quantile(-1))
	assert.LessOrEqual(t, h.Quantile(2), time.Duration(1<<62))
	earlier := logic.Observe(7)
	later := logic.Observe(7, 9, 9)
	d := later.Since(&earlier)
	assert.EqualValues(t, 2, d.Count)
	assert.EqualValues(t, 9, d.Quantile(0))
}

func TestTheScheduleNeverDriftsOrForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]int{1, 7, 60, 144, 1000, 1_000_000, 1_000_000_000}).Draw(t, "rate")
		start := rapid.Int64Range(0, 1<<50).Draw(t, "start")
		s := logic.NewSchedule(rate, start)
		now := start
		var frames, dropped int64
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			wait, drop := s.Due(now)
			frames++
			dropped += int64(drop)
			// Frame k is due at start + k/rate, whatever was dropped before.
			require.InDelta(t, start+int64(float64(frames-1+dropped-int64(drop))/float64(rate)*1e9), now+wait, 2)
			if wait > 0 {
				require.Zero(t, drop)
				now += wait
			}
			owed := float64(now-start)/1e9*float64(rate) - float64(frames-1+dropped)
			require.Less(t, owed, 6.001, "no more than five are owed, beside the one that runs")
			now += rapid.SampledFrom([]int64{0, 100, 1e6, 17e6, 3e9, 1e13}).Draw(t, "took")
		}
	})
}

func TestTheGaugeIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		g := logic.NewGauge(limit)
		count := map[bool]int{} // callers, operations
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				caller := rapid.Bool().Draw(t, "caller")
				room := count[true]+count[false] < limit
				require.Equal(t, !room, g.Full())
				require.Equal(t, room, g.Take(caller))
				if room {
					count[caller]++
				}
			},
			"give": func(t *rapid.T) {
				caller := rapid.Bool().Draw(t, "caller")
				if count[caller] == 0 {
					t.Skip()
				}
				g.Give(caller)
				count[caller]--
			},
			"": func(t *rapid.T) {
				callers, ops := g.Read()
				require.Equal(t, count[true], callers)
				require.Equal(t, count[false], ops)
			},
		})
	})
}

func TestStatsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where nobody stands still inside of a callback
		w := newWorld(t, fast)
		stop := w.run()
		n := 50 + rand.IntN(50)
		for range n {
			require.NoError(t, w.e.Spawn(background(), noChange))
		}
		require.NoError(t, stop())
		s := w.e.Stats()
		assert.Equal(t, s.Frames, s.FrameTime.Count)
		assert.Equal(t, w.e.FrameNumber(), s.Frames)
		assert.Positive(t, s.HandshakeWait.Count)
		assert.EqualValues(t, n+1, s.WindowStall.Count, "one caller a window")
		assert.Zero(t, s.Overruns)
		assert.Zero(t, s.Waiting)
		assert.Zero(t, s.Queued)
	})
}
