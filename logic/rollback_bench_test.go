package logic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// BenchmarkRollback goes back five frames and simulates them again, with 100k entities that all move in every frame.
// The ratio is to five ordinary frames and one copy of all that the frames keep, in the same run.
func BenchmarkRollback(b *testing.B) {
	const n, depth = 100_000, 5
	r, err := registry.New(registry.Config{TemporalFrames: 16, Deterministic: true})
	require.NoError(b, err)
	temporal[spot](b, r)
	temporal[pacing](b, r)
	type mover struct {
		Spot  spot
		Speed pacing
	}
	movers, err := registry.RegisterClass[mover](r)
	require.NoError(b, err)
	e, err := logic.New(r, logic.Config{Workers: 1})
	require.NoError(b, err)
	defer func() { require.NoError(b, e.Stop()) }()
	require.NoError(b, e.Defer(func(w *registry.Window) error {
		_, err := movers.SpawnBatch(w, n, func(i int, m *mover) { m.Speed = pacing{float64(i), 1} })
		return err
	}))
	type moving struct {
		Spot  []spot
		Speed []pacing `ecs:"read"`
	}
	q, err := views.NewQuery[moving](r)
	require.NoError(b, err)
	_, err = e.AddSystem(logic.Physics, "move", func(f *logic.Frame) {
		for m := range q.Runs(f) {
			at, by := m.Spot, m.Speed
			for i := range at {
				at[i].X += by[i].X * f.Delta
				at[i].Y += by[i].Y * f.Delta
			}
		}
	})
	require.NoError(b, err)
	for range 20 {
		require.NoError(b, e.Step())
	}
	from, to := make([]byte, n*(16+8)), make([]byte, n*(16+8)) // what moves, and the entity column
	var frames, copies, back time.Duration
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		for range depth + 1 {
			_ = e.Step()
		}
		frames += time.Since(start) * depth / (depth + 1)
		one := time.Since(start) / (depth + 1)
		start = time.Now()
		copy(to, from)
		copies += time.Since(start)
		_ = e.Rollback(e.FrameNumber() - depth)
		start = time.Now()
		_ = e.Step()
		back += time.Since(start) - one
	}
	b.ReportMetric(float64(back)/float64(frames+copies), "ratio")
	b.ReportMetric(float64(back.Microseconds())/float64(b.N), "µs/rollback")
	b.ReportMetric(float64(frames.Microseconds())/float64(b.N)/depth, "µs/frame")
}
