package stress_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/stress"
)

const short = 130 * time.Millisecond

func run(t *testing.T, ctx context.Context, name string, o stress.Options) stress.Report {
	t.Helper()
	s, ok := stress.Find(name)
	require.True(t, ok, name)
	r, err := s.Run(ctx, o)
	require.NoError(t, err)
	return r
}

func TestEveryScenarioKeepsEveryInvariant(t *testing.T) {
	for _, s := range stress.Scenarios() {
		for _, faults := range []bool{false, true} {
			name := s.Name
			if faults {
				name += " with faults"
			}
			if faults && (s.Name == "soak" || s.Name == "paced" || s.Name == "churn") {
				continue // soak has them anyway, the others make none
			}
			t.Run(name, func(t *testing.T) {
				o := stress.Options{For: short, Seed: uint64(time.Now().UnixNano()), Faults: faults}
				if s.Name == "crowd" {
					o.Producers = 300
				}
				if s.Name == "soak" {
					o.For = 3 * short
				}
				r := run(t, t.Context(), s.Name, o)
				t.Log(r)
				assert.Empty(t, r.Violations)
				assert.Zero(t, r.Violated)
				assert.Positive(t, r.Operations)
				assert.Positive(t, r.Frames)
				assert.Positive(t, r.Spawned)
				sum := uint64(0)
				for _, n := range r.Outcomes {
					sum += n
				}
				assert.Equal(t, r.Operations, sum)
				_, err := json.Marshal(r)
				require.NoError(t, err)
			})
		}
	}
}

// Checkers that find nothing in an engine with a bug would find nothing at all.
func TestEveryLieIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("what the checks find does not depend on the build")
	}
	for lie, want := range map[string][]string{
		"runs every operation twice":     {stress.Order, stress.OneOutcome},
		"loses an operation":             {stress.OneOutcome},
		"refuses what it has done":       {stress.OneOutcome},
		"does later what it has refused": {stress.OneOutcome, stress.Order},
		"answers with something else":    {stress.OneOutcome},
		"keeps what has failed":          {stress.NoTrace},
		"answers the wrong one":          {stress.OneOutcome, stress.NoAlias, stress.NoTrace},
		"turns a batch round":            {stress.Order},
		"overtakes in a lane":            {stress.Order},
		"destroys nobody":                {stress.NoAlias},
		"destroys somebody else":         {stress.NoAlias, stress.NoTrace},
		"lets two destroyers win":        {stress.OneOutcome},
	} {
		t.Run(lie, func(t *testing.T) {
			require.Contains(t, stress.Lies, lie)
			if raceEnabled && strings.Contains(lie, "later") {
				t.Skip("the race detector finds it first: the callback runs beside its producer")
			}
			scenario := "sync"
			if strings.Contains(lie, "batch") || strings.Contains(lie, "lane") || strings.Contains(lie, "wrong") || strings.Contains(lie, "failed") {
				scenario = "batched"
			}
			var r stress.Report
			for time := short / 2; r.Violated == 0 && time < 100*short; time *= 3 { // a busy machine needs longer
				r = run(t, stress.WithLie(t.Context(), lie), scenario, stress.Options{For: time, Seed: 7, Producers: 4})
			}
			require.NotEmpty(t, r.Violations)
			found := map[string]bool{}
			for _, v := range r.Violations {
				found[v.Invariant] = true
			}
			var named bool
			for _, invariant := range want {
				named = named || found[invariant]
			}
			assert.True(t, named, "%v", r.Violations[0])
			assert.Contains(t, r.String(), "to repeat: ")
			assert.Contains(t, r.Command(), "--scenario "+scenario)
			assert.Contains(t, r.Command(), "--seed 7")
		})
	}
	assert.Len(t, stress.Lies, 12)
}

// told is what a roll is told in a frame.
type told struct {
	frame   uint64
	spawned bool
	hs      []handles.Local
}

func TestTheRollSeesWhoComesTooEarlyOrTwice(t *testing.T) {
	const born, dead = true, false
	hs := func(generations ...uint32) (list []handles.Local) {
		for _, g := range generations {
			list = append(list, handles.NewLocal(1, g))
		}
		return list
	}
	for _, c := range []struct {
		name, want string
		window     int
		tell       []told
	}{
		{"as it should be", "", 2, []told{{5, born, hs(1)}, {5, dead, hs(1)}, {7, born, hs(2)}}},
		{"too early", stress.SafeReuse, 2, []told{{5, born, hs(1)}, {5, dead, hs(1)}, {6, born, hs(2)}}},
		{"while it lives", stress.NoAlias, 2, []told{{5, born, hs(1, 2)}}},
		{"again", stress.NoAlias, 2, []told{{5, born, hs(1)}, {5, dead, hs(1)}, {9, born, hs(1)}}},
		{"dead twice", stress.NoAlias, 2, []told{{5, born, hs(1)}, {5, dead, hs(1, 1)}}},
		{"never born", stress.NoAlias, -1, []told{{5, dead, hs(1)}}},
		{"confirmed by hand", "", -1, []told{{5, born, hs(1, 2, 3)}, {5, dead, hs(1, 2, 3)}}},
	} {
		r, err := registry.New(registry.Config{})
		require.NoError(t, err)
		l := &stress.Ledger{}
		roll, err := stress.NewRoll(l, r, c.window)
		require.NoError(t, err)
		for _, e := range c.tell {
			roll.Tell(e.frame, e.spawned, e.hs...)
		}
		violations, n := l.Violations()
		if c.want == "" {
			assert.Empty(t, violations, c.name)
			continue
		}
		require.NotZero(t, n, c.name)
		assert.Equal(t, c.want, violations[0].Invariant, c.name)
		roll.Audit(r.Stats(), 10)
	}
}

func TestWhatIsLeftAfterStopIsFound(t *testing.T) {
	before := runtime.NumGoroutine()
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	e, err := logic.New(r, logic.Config{Rate: 1000})
	require.NoError(t, err)
	require.NoError(t, e.Step())
	s, err := r.Acquire()
	require.NoError(t, err)
	leak := make(chan struct{})
	gone := make(chan struct{})
	for range 50 { // far more than may be ending just now
		go func() { <-leak; gone <- struct{}{} }()
	}
	require.NoError(t, e.Stop())
	err = stress.LeftWithin(e, before, 10*time.Millisecond)
	assert.ErrorContains(t, err, "1 frames are held")
	assert.ErrorContains(t, err, "goroutines are left")
	close(leak)
	for range 50 {
		<-gone
	}
	s.Release()
	assert.NoError(t, stress.NothingLeft(e, before))
}

func TestAnInterruptedRunReportsWhatItDid(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	r := run(t, ctx, "batched", stress.Options{For: time.Hour, Producers: 2, Progress: func(p stress.Progress) {
		assert.Equal(t, "batched", p.Scenario)
		if p.Operations > 0 {
			interrupt()
		}
	}})
	assert.True(t, r.Interrupted)
	assert.Empty(t, r.Violations)
	assert.Positive(t, r.Operations)
}

// Who interrupts a run before it has begun has not found that nothing ran.
func TestARunThatIsInterruptedAtOnceFindsNothing(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for range 20 {
		r := run(t, ctx, "sync", stress.Options{For: time.Hour, Producers: 2})
		assert.True(t, r.Interrupted)
		assert.Empty(t, r.Violations)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	s, _ := stress.Find("sync")
	for _, o := range []stress.Options{{For: -1}, {Producers: -1}} {
		_, err := s.Run(t.Context(), o)
		assert.Error(t, err)
	}
	_, err := stress.Scenario{}.Run(t.Context(), stress.Options{})
	assert.Error(t, err)
	_, ok := stress.Find("nothing")
	assert.False(t, ok)
}

// A book with a million operations is settled in pieces, and remembers nothing of what is settled.
func TestASettledBookIsStillStrict(t *testing.T) {
	l := &stress.Ledger{}
	b := l.Book()
	for range 100_000 {
		n := b.Submit()
		b.Ran(n)
		b.Answer(n, nil)
		b.Rest()
	}
	require.EqualValues(t, 100_000, l.Total().By[stress.Applied])
	_, n := l.Violations()
	require.Zero(t, n)
	b.Ran(17)
	b.Answer(18, nil)
	b.Submit()
	b.Settle()
	violations, n := l.Violations()
	require.Equal(t, 4, n, "%v", violations) // out of order, late, answered again, not answered
}

func TestSomethingRunsBesideAScenario(t *testing.T) {
	for _, name := range []string{"paced", "sync"} {
		var e *logic.Engine
		var began, ended uint64
		r := run(t, t.Context(), name, stress.Options{For: short, Seed: 1, Beside: func(engine *logic.Engine) func() {
			e, began = engine, engine.FrameNumber()
			return func() { ended = engine.FrameNumber() }
		}})
		require.NotNil(t, e, name)
		assert.Zero(t, began, name)
		assert.Positive(t, ended, name)
		assert.Equal(t, logic.Stopped, e.Doing().Mode, name)
		assert.Zero(t, r.Violated, r)
	}
}
