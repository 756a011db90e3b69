package snapshot

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// The components of the benchmarks: 36 bytes in three columns.
type (
	benchPlace struct{ X, Y, Z float32 }
	benchSpeed struct{ X, Y, Z float32 }
	benchSpin  struct{ X, Y, Z float32 }
	benchThing struct {
		Place benchPlace
		Speed benchSpeed
		Spin  benchSpin
	}
)

const benchBytes = 36

func benchRealm(b *testing.B, n int) (*realm, []handles.Local) {
	m := newRealm(b, realmConfig{Config: registry.Config{MaxEntities: 2 * n}})
	for _, err := range []error{
		component[benchPlace](m.r, registry.InTier(archetype.Temporal)),
		component[benchSpeed](m.r, registry.InTier(archetype.Temporal)),
		component[benchSpin](m.r, registry.InTier(archetype.Temporal)),
	} {
		require.NoError(b, err)
	}
	things, err := registry.RegisterClass[benchThing](m.r)
	require.NoError(b, err)
	var hs []handles.Local
	m.window(func(w *registry.Window) {
		hs, err = things.SpawnBatch(w, n, func(i int, t *benchThing) { t.Place.X, t.Speed.Y = float32(i), float32(i) })
		require.NoError(b, err)
	})
	return m, hs
}

// BenchmarkHash compares, taking turns so that all have the same noise: a full hash, one of a state of
// which 1% of the chunks have changed in one of three columns, and XXH3 over as many bytes as the values have.
// Reported are lower quartiles.
func BenchmarkHash(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("entities=%d", n), func(b *testing.B) {
			m, hs := benchRealm(b, n)
			flat := make([]byte, n*benchBytes)
			for i := range flat {
				flat[i] = byte(i * 131 >> 3)
			}
			const dirty, full, yard = 0, 1, 2
			var times [3][]time.Duration
			note := func(what int, fn func()) {
				start := time.Now()
				fn()
				times[what] = append(times[what], time.Since(start))
			}
			hash := func() { benchSum += m.newest() }
			fresh := hasherOf(m.r).fresh()
			hash()
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				m.window(func(w *registry.Window) {
					chunks := n / archetype.DefaultSlots
					for i := range max(chunks/100, 1) {
						require.NoError(b, registry.Set(w, hs[i*100*archetype.DefaultSlots], benchPlace{float32(len(times[0])), 1, 2}))
					}
				})
				b.StartTimer()
				note(dirty, hash)
				note(full, func() {
					_ = m.r.Read(func(s *registry.Snapshot) error { _, err := fresh.hashOf(s); return err })
				})
				note(yard, func() { benchSum += xxh3.Hash(flat) })
			}
			for i := range times {
				slices.Sort(times[i])
			}
			of := func(i int) float64 { return float64(times[i][len(times[i])/4]) }
			b.ReportMetric(of(full), "full-ns")
			b.ReportMetric(of(dirty)/of(full), "dirty/full")
			b.ReportMetric(of(yard)/of(full), "xxh3/full")
		})
	}
}

var benchSum uint64

// newest hashes the newest published frame.
func (m *realm) newest() (hash uint64) {
	_ = m.r.Read(func(s *registry.Snapshot) (err error) {
		hash, err = Hash(s)
		return err
	})
	return hash
}
