package pool_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

type (
	benchAt   struct{ X, Y float64 }
	benchBy   struct{ X, Y float64 }
	benchShot struct {
		At benchAt
		By benchBy
	}
)

// herds has the same class twice, once in a pool, in registries of their own.
type herds struct {
	pooled, plain *registry.Registry
	shots         *registry.Class[benchShot]
	pool          *pool.Entities[benchShot]
	hs            []handles.Local
}

func newHerds(b *testing.B, n int) *herds {
	b.Helper()
	k := &herds{hs: make([]handles.Local, n)}
	k.pooled, k.pool = pooledShots(b, n)
	var err error
	k.plain, err = registry.New(registry.Config{})
	require.NoError(b, err)
	k.shots, err = registry.RegisterClass[benchShot](k.plain)
	require.NoError(b, err)
	return k
}

// pooledShots makes a registry with a pool of n slots.
func pooledShots(b *testing.B, n int) (*registry.Registry, *pool.Entities[benchShot]) {
	b.Helper()
	r, err := registry.New(registry.Config{})
	require.NoError(b, err)
	shots, err := registry.RegisterClass[benchShot](r)
	require.NoError(b, err)
	var p *pool.Entities[benchShot]
	require.NoError(b, r.Update(func(w *registry.Window) error {
		p, err = pool.NewEntities(w, shots, n)
		return err
	}))
	return r, p
}

var aShot = benchShot{At: benchAt{1, 2}, By: benchBy{3, 4}}

//go:noinline
func (k *herds) viaPool(w *registry.Window) {
	for i := range k.hs {
		k.hs[i], _ = k.pool.Spawn(w, aShot)
	}
	for _, h := range k.hs {
		_ = k.pool.Despawn(w, h)
	}
}

//go:noinline
func (k *herds) viaClass(w *registry.Window) {
	for i := range k.hs {
		k.hs[i], _ = k.shots.Spawn(w, aShot)
	}
	for _, h := range k.hs {
		_ = w.Destroy(h)
	}
	w.ProcessDeferredDestructions()
	w.ConfirmLocalRecycles()
}

// within says how long fn takes in a window, in nanoseconds, and with what follows the window.
func within(b *testing.B, r *registry.Registry, fn func(w *registry.Window)) float64 {
	began := time.Now()
	err := r.Update(func(w *registry.Window) error {
		fn(w)
		return nil
	})
	took := time.Since(began)
	require.NoError(b, err)
	return float64(took)
}

// BenchmarkEntities compares spawning and despawning in a pool with spawning, destroying and reclaiming entities of the
// same class, by turns: the figures are medians of many short rounds, and the quotient that of neighbours.
func BenchmarkEntities(b *testing.B) {
	for _, n := range []int{64, 1 << 10, 1 << 14, 1 << 17} {
		b.Run(fmt.Sprintf("burst=%d", n), func(b *testing.B) {
			k := newHerds(b, n)
			compare(b, n, max(1, 1<<12/n), k, k.viaPool, k.viaClass)
		})
	}
	b.Run("one by one", func(b *testing.B) {
		const n = 1 << 12
		k := newHerds(b, n)
		compare(b, n, 1, k, k.oneByOne, k.oneByOneOfClass)
	})
}

//go:noinline
func (k *herds) oneByOne(w *registry.Window) {
	for range k.hs {
		h, _ := k.pool.Spawn(w, aShot)
		_ = k.pool.Despawn(w, h)
	}
}

//go:noinline
func (k *herds) oneByOneOfClass(w *registry.Window) {
	for range k.hs {
		h, _ := k.shots.Spawn(w, aShot)
		_ = w.Destroy(h)
	}
	w.ProcessDeferredDestructions()
	w.ConfirmLocalRecycles()
}

// compare times both ways in turn, reps times n lives in a round.
func compare(b *testing.B, n, reps int, k *herds, viaPool, viaClass func(w *registry.Window)) {
	var ours, plain, ratio []float64
	round := func() (o, p float64) {
		for range reps {
			o += within(b, k.pooled, viaPool)
			p += within(b, k.plain, viaClass)
		}
		return o, p
	}
	round()
	b.ReportAllocs() // those of what measures
	for b.Loop() {
		o, p := round()
		ours, plain, ratio = append(ours, o), append(plain, p), append(ratio, o/p)
	}
	lives := float64(n * reps)
	b.ReportMetric(median(ours)/lives, "ns/pooled")
	b.ReportMetric(median(plain)/lives, "ns/plain")
	b.ReportMetric(median(ratio), "of-plain")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLastSlot compares spawning in the last slot of a million that is idle with spawning in the first, by turns.
func BenchmarkLastSlot(b *testing.B) {
	const n, each = 1 << 20, 64
	first, firsts := pooledShots(b, n)
	last, lasts := pooledShots(b, n)
	_ = within(b, last, func(w *registry.Window) {
		for range n - 1 {
			lasts.Spawn(w, aShot)
		}
	})
	again := func(p *pool.Entities[benchShot]) func(w *registry.Window) {
		return func(w *registry.Window) {
			for range each {
				h, _ := p.Spawn(w, aShot)
				_ = p.Despawn(w, h)
			}
		}
	}
	var ofFirst, ofLast, ratio []float64
	for b.Loop() {
		f, l := within(b, first, again(firsts)), within(b, last, again(lasts))
		ofFirst, ofLast, ratio = append(ofFirst, f), append(ofLast, l), append(ratio, l/f)
	}
	b.ReportMetric(median(ofFirst)/each, "ns/first")
	b.ReportMetric(median(ofLast)/each, "ns/last")
	b.ReportMetric(median(ratio), "of-first")
	b.ReportMetric(0, "ns/op")
}
