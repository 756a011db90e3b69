package airlock_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

type (
	place struct{ X, Y float64 }
	drift struct{ X, Y float64 }
	leaf  struct {
		Place place
		Drift drift
	}
	leaves struct {
		Place []place
		Drift []drift `ecs:"read"`
	}
)

// grow makes a registry of n entities of which a random part, living, is left.
func grow(b *testing.B, n, living int) *registry.Registry {
	r, err := registry.New(registry.Config{})
	require.NoError(b, err)
	class, err := registry.RegisterClass[leaf](r)
	require.NoError(b, err)
	require.NoError(b, r.Update(func(w *registry.Window) error {
		hs, err := class.SpawnBatch(w, n, nil)
		rng := rand.New(rand.NewPCG(3, 1))
		rng.Shuffle(len(hs), func(i, k int) { hs[i], hs[k] = hs[k], hs[i] })
		w.DestroyBatch(hs[living:])
		w.ProcessDeferredDestructions()
		return err
	}))
	return r
}

//go:noinline
func integrate(q *views.Query[leaves], w *registry.Window) {
	for m := range q.Runs(w) {
		at, by := m.Place, m.Drift
		for i := range at {
			at[i].X += by[i].X
			at[i].Y += by[i].Y
		}
	}
}

// BenchmarkIterateCompacted compares a loop over what compaction has left of a million entities with one
// over as many fresh ones, by turns.
func BenchmarkIterateCompacted(b *testing.B) {
	const living = 100_000
	compacted, fresh := grow(b, 10*living, living), grow(b, living, living)
	d, err := defrag.New(compacted, defrag.Config{})
	require.NoError(b, err)
	require.NoError(b, compacted.Update(func(w *registry.Window) error { _, err := d.Run(w); return err }))
	measure := func(r *registry.Registry, q *views.Query[leaves]) (spent time.Duration) {
		require.NoError(b, r.Update(func(w *registry.Window) error {
			began := time.Now()
			for range 10 {
				integrate(q, w)
			}
			spent = time.Since(began)
			return nil
		}))
		return spent
	}
	qc, err := views.NewQuery[leaves](compacted)
	require.NoError(b, err)
	qf, err := views.NewQuery[leaves](fresh)
	require.NoError(b, err)
	var ratios []float64
	for b.Loop() {
		ratios = append(ratios, float64(measure(compacted, qc))/float64(measure(fresh, qf)))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "of-fresh")
	b.ReportMetric(0, "ns/op")
}
