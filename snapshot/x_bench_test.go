package snapshot

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
)

// The components of these benchmarks: 32 bytes in two columns.
type (
	filePlace struct{ X, Y float64 }
	fileSpeed struct{ X, Y float64 }
	fileThing struct {
		Place filePlace
		Speed fileSpeed
	}
)

const fileBytes = 32

func fileRealm(b *testing.B, n int) (*registry.Registry, *registry.Class[fileThing]) {
	r, err := registry.New(registry.Config{MaxEntities: 2 * n})
	require.NoError(b, err)
	things, err := registry.RegisterClass[fileThing](r)
	require.NoError(b, err)
	return r, things
}

// BenchmarkFile compares, taking turns so that all have the same noise: saving a state to a file with writing
// as many bytes as its cells have, and loading it with reading as many. Reported are the fastest of all rounds, of
// the time that Take holds the window, too: what others do on the machine makes everything slower, but not alike.
func BenchmarkFile(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprintf("entities=%d", n), func(b *testing.B) {
			r, things := fileRealm(b, n)
			require.NoError(b, r.Update(func(w *registry.Window) error {
				_, err := things.SpawnBatch(w, n, func(i int, t *fileThing) { t.Place.X, t.Speed.Y = float64(i), float64(i) })
				return err
			}))
			flat := make([]byte, n*fileBytes)
			for i := range flat {
				flat[i] = byte(i * 131 >> 3)
			}
			dir := b.TempDir()
			plain, saved := filepath.Join(dir, "plain"), filepath.Join(dir, "saved")
			var write, read, save, load, take []time.Duration
			timed := func(list *[]time.Duration, fn func()) {
				start := time.Now()
				fn()
				*list = append(*list, time.Since(start))
			}
			for b.Loop() {
				timed(&write, func() {
					require.NoError(b, toFile(plain, func(f io.Writer) error { _, err := f.Write(flat); return err }))
				})
				require.NoError(b, r.Update(func(w *registry.Window) error {
					timed(&save, func() { require.NoError(b, toFile(saved, func(f io.Writer) error { return Save(f, w) })) })
					timed(&take, func() { _, err := Take(w); require.NoError(b, err) })
					return nil
				}))
				debug.FreeOSMemory() // as in a process that begins
				timed(&read, func() {
					got, err := os.ReadFile(plain)
					require.NoError(b, err)
					require.True(b, bytes.Equal(flat[:8], got[:8]))
				})
				fresh, _ := fileRealm(b, n)
				debug.FreeOSMemory()
				require.NoError(b, fresh.Update(func(w *registry.Window) error {
					timed(&load, func() { require.NoError(b, LoadFile(saved, w)) })
					return nil
				}))
			}
			fastest := func(list []time.Duration) float64 { return float64(slices.Min(list)) }
			b.ReportMetric(fastest(save)/fastest(write), "save/write")
			b.ReportMetric(fastest(load)/fastest(read), "load/read")
			b.ReportMetric(fastest(take)/1e6, "ms-take")
			b.ReportMetric(fastest(save)/1e6, "ms-save")
			b.ReportMetric(fastest(load)/1e6, "ms-load")
		})
	}
}

func toFile(path string, fn func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := fn(f); err != nil {
		return err
	}
	return f.Close()
}
