package logic

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
)

// Gate is a door without an engine, for the benchmarks.
type Gate struct {
	d    door
	w    watch
	q    gauge
	line []*waiter
}

// NewGate makes one whose callers have no deadlock to look for.
func NewGate() *Gate {
	g := new(Gate)
	g.w.limit = int64(time.Hour)
	g.q.limit = 1 << 16
	g.d.init(clock{time.Now()}, &g.w, &g.q, func() bool { return false })
	g.d.watched.Store(true)
	return g
}

// Pass queues, runs fn with the window, and hands it on.
func (g *Gate) Pass(fn func()) error {
	g.q.take()
	w, err := g.d.enter(context.Background())
	if err != nil {
		return err
	}
	defer g.d.leave(w)
	fn()
	return nil
}

// Serve lets everybody through who waits, and says how many, how long that took, and whether
// it yielded.
func (g *Gate) Serve() (n int, stall time.Duration, yielded bool) {
	g.line = g.d.collect(g.line[:0])
	if len(g.line) == 0 {
		return 0, 0, false
	}
	start := g.d.clock.now()
	g.d.until, g.d.served, g.d.line = start+int64(time.Hour), 0, g.line
	yielded = g.d.admit(start)
	return g.d.served, time.Duration(g.d.clock.now() - start), yielded
}

// Shut answers everybody.
func (g *Gate) Shut() { g.d.shut() }

// Callback runs fn as a window callback where the caller holds the registry anyway.
func Callback(e *Engine, fn func(*registry.Window) error) error { return e.core.Callback(fn) }

// CheckGauge counts on from a preset length and back.
func CheckGauge(t *testing.T, start uint64) {
	var g gauge
	g.limit = start + 4
	g.word.Store(start)
	for i := range 4 {
		require.True(t, g.take())
		if i%2 == 1 {
			g.lineUp()
		}
	}
	require.False(t, g.take())
	callers, ops := g.read()
	require.Equal(t, 2, callers)
	require.EqualValues(t, start+2, ops)
	g.leaveLine()
	g.give()
	g.leaveLine()
	g.give()
	callers, ops = g.read()
	require.Zero(t, callers)
	require.EqualValues(t, start, ops)
}
