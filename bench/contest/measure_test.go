package contest_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/bench/contest"
)

// scripted is a side whose passes cost what its list says, round and round, and which writes its name
// into the log.
func scripted(name string, log *[]string, costs ...float64) contest.Side {
	ran := 0
	return contest.Side{Name: name, Sum: func() uint64 { return uint64(ran) },
		Run: func(t *contest.Timer, reps int) {
			*log = append(*log, name)
			t.Add(costs[ran%len(costs)] * float64(reps))
			ran++
		}}
}

// options leave nothing to chance: no pass is repeated.
var options = contest.Options{Passes: 4}

func workload(c *contest.Contest) *contest.Workload {
	return &contest.Workload{Name: "w", Unit: "B", Open: func(int) *contest.Contest { return c }}
}

func TestSidesTakeTurnsForwardsAndBackwards(t *testing.T) {
	var log []string
	raw := scripted("raw", &log, 1)
	c := &contest.Contest{Ours: scripted("a", &log, 2), Peers: []contest.Side{scripted("b", &log, 4)}, Raw: &raw}
	row, err := contest.Measure(workload(c), 7, options)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "raw", "raw", "b", "a"}, log[:6])
	require.Equal(t, log[:6], log[len(log)-6:])
	require.Equal(t, 4, row.Passes)
	require.Equal(t, 7, row.Size)
	require.Equal(t, "B", row.Unit)
	require.InDelta(t, 2, row.Ours, 0)
	require.Equal(t, &contest.Figure{Name: "b", Cost: 4, Ratio: 0.5}, row.Peer)
	require.Equal(t, &contest.Figure{Name: "raw", Cost: 1, Ratio: 2}, row.Raw)
	require.True(t, math.IsNaN(row.Allocs))
}

func TestTheBestPeerCounts(t *testing.T) {
	var log []string
	c := &contest.Contest{Ops: 10, Ours: scripted("a", &log, 30),
		Peers: []contest.Side{scripted("slow", &log, 50), scripted("fast", &log, 20), scripted("slower", &log, 60)}}
	row, err := contest.Measure(workload(c), 1, options)
	require.NoError(t, err)
	require.Equal(t, "fast", row.Peer.Name)
	require.InDelta(t, 2, row.Peer.Cost, 1e-9)
	require.InDelta(t, 1.5, row.Peer.Ratio, 1e-9)
	require.Nil(t, row.Raw)
}

func TestDifferentWorkIsAnError(t *testing.T) {
	var log []string
	lazy := scripted("lazy", &log, 1)
	lazy.Sum = func() uint64 { return 0 }
	for _, c := range []*contest.Contest{
		{Ours: scripted("a", &log, 1), Peers: []contest.Side{lazy}},
		{Ours: scripted("a", &log, 1), Raw: &lazy},
	} {
		_, err := contest.Measure(workload(c), 1, options)
		require.ErrorIs(t, err, contest.ErrDiffers)
		require.ErrorContains(t, err, "lazy")
	}
}

func TestFailuresAreReported(t *testing.T) {
	broken := errors.New("broken")
	var log []string
	closed := 0
	failing := scripted("a", &log, 1)
	failing.Run = func(t *contest.Timer, _ int) { t.Check(broken) }
	_, err := contest.Measure(workload(&contest.Contest{Ours: failing, Close: func() { closed++ }}), 1, options)
	require.ErrorIs(t, err, broken)
	c := &contest.Contest{Close: func() { closed++ }}
	c.Check(broken)
	c.Check(errors.New("later"))
	_, err = contest.Measure(workload(c), 1, options)
	require.ErrorIs(t, err, broken)
	require.Equal(t, 2, closed)
}

func TestSpreadMarksWhatIsNoisy(t *testing.T) {
	for _, test := range []struct {
		name  string
		costs []float64
		noisy bool
	}{
		{"steady", []float64{100}, false},
		{"a little", []float64{98, 100, 102, 101}, false},
		{"wild", []float64{60, 140, 100}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log []string
			c := &contest.Contest{Ours: scripted("a", &log, test.costs...), Peers: []contest.Side{scripted("b", &log, 100)}}
			row, err := contest.Measure(workload(c), 1, contest.Options{Passes: 16})
			require.NoError(t, err)
			require.Equal(t, test.noisy, row.Noisy())
			require.InDelta(t, 1, row.Peer.Ratio, 0.02)
		})
	}
}

func TestTargets(t *testing.T) {
	peer, raw := &contest.Figure{Ratio: 0.9}, &contest.Figure{Ratio: 1.2}
	for _, test := range []struct {
		name       string
		target     contest.Target
		row        contest.Row
		bound, met bool
	}{
		{"none", contest.Target{}, contest.Row{Peer: peer}, false, true},
		{"peer met", contest.Target{Peer: 0.9}, contest.Row{Peer: peer}, true, true},
		{"peer missed", contest.Target{Peer: 0.89}, contest.Row{Peer: peer}, true, false},
		{"one of two missed", contest.Target{Peer: 1, Raw: 1.05}, contest.Row{Peer: peer, Raw: raw}, true, false},
		{"nobody there", contest.Target{Raw: 2}, contest.Row{Peer: peer}, true, false},
		{"value met", contest.Target{Value: 64}, contest.Row{Ours: 64}, true, true},
		{"value missed", contest.Target{Value: 64}, contest.Row{Ours: 64.5}, true, false},
		{"too small for it", contest.Target{Peer: 0.5, From: 2000}, contest.Row{Peer: peer, Size: 1000}, false, true},
		{"too big for it", contest.Target{Peer: 0.5, To: 999}, contest.Row{Peer: peer, Size: 1000}, false, true},
		{"of the size", contest.Target{Peer: 0.5, From: 1000, To: 1000}, contest.Row{Peer: peer, Size: 1000}, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			row := test.row
			row.Target = test.target.At(row.Size)
			require.Equal(t, test.bound, row.Bound())
			require.Equal(t, test.met, row.Met())
		})
	}
}

var kept *[64]byte // what is allocated is used, so that it is

func TestShortWorkIsRepeatedAndAllocationsAreCounted(t *testing.T) {
	var most int
	busy := func(name string, allocate int) contest.Side {
		return contest.Side{Name: name, Sum: func() uint64 { return 0 }, Run: func(t *contest.Timer, reps int) {
			most = max(most, reps)
			t.Start()
			for range reps * allocate {
				kept = new([64]byte)
			}
			t.Stop()
		}}
	}
	w := workload(&contest.Contest{Ops: 2, Ours: busy("a", 2), Peers: []contest.Side{busy("b", 4)}})
	w.Unit = ""
	var row *contest.Row
	for n := 0; n < 5 && most <= 10; n++ { // once more if the pass that shows how short the work is was interrupted
		var err error
		row, err = contest.Measure(w, 1, contest.Options{Passes: 5, Least: 100 * time.Microsecond, Budget: time.Minute})
		require.NoError(t, err)
	}
	require.Greater(t, most, 10)
	require.InDelta(t, 1, row.Allocs, 0.5)
	require.Equal(t, "ns", row.Unit)
	require.False(t, slices.Contains([]float64{row.Ours, row.Peer.Cost}, 0))
}
