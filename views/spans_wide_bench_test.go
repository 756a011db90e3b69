package views_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
	"github.com/airlock-ecs/airlock/views/wide"
)

// Place and Drift are split: each field is a column of float32.
type Place struct{ X, Y float32 }

type Drift struct{ X, Y float32 }

// Drifter is the class of BenchmarkSpansWide.
type Drifter struct {
	Place Place
	Drift Drift
}

type drifting struct {
	X  []float32 `ecs:"Place.X"`
	Y  []float32 `ecs:"Place.Y"`
	DX []float32 `ecs:"Drift.X,read"`
	DY []float32 `ecs:"Drift.Y,read"`
}

//go:noinline
func driftSlices(x, y, dx, dy []float32, step float32) {
	for i := range x {
		x[i] += step * dx[i]
	}
	for i := range y {
		y[i] += step * dy[i]
	}
}

// driftTogether is driftSlices in one loop, which is how one would write it for structs.
//
//go:noinline
func driftTogether(x, y, dx, dy []float32, step float32) {
	y, dx, dy = y[:len(x)], dx[:len(x)], dy[:len(x)]
	for i := range x {
		x[i] += step * dx[i]
		y[i] += step * dy[i]
	}
}

//go:noinline
func driftSpans(q *views.Query[drifting], a registry.Access, step float32) {
	for d := range q.Spans(a) {
		wide.Axpy(d.X, step, d.DX)
		wide.Axpy(d.Y, step, d.DY)
	}
}

// BenchmarkSpansWide moves split components by Spans and a wide kernel, against scalar loops over
// plain slices with the same numbers. Run it with GOEXPERIMENT=simd too.
func BenchmarkSpansWide(b *testing.B) {
	const step = 0.5
	for _, n := range []int{16 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("live=%d", n), func(b *testing.B) {
			w := newWorld(b)
			registered[Place](b, w.Registry, registry.Split())
			registered[Drift](b, w.Registry, registry.Split())
			c := class[Drifter](w)
			x, y, dx, dy := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
			w.window(func(win *registry.Window) {
				_, err := c.SpawnBatch(win, n, func(i int, e *Drifter) {
					e.Place, e.Drift = Place{float32(i % 7), 1}, Drift{1, float32(i % 5)}
					x[i], y[i], dx[i], dy[i] = e.Place.X, e.Place.Y, e.Drift.X, e.Drift.Y
				})
				require.NoError(b, err)
			})
			q := query[drifting](w)
			w.frame(func(f *registry.Frame) {
				driftSpans(q, f, step)
				driftSlices(x, y, dx, dy, step)
				at := 0 // the first step has to give the same numbers, or the comparison is of different work
				for d, mask := range q.Spans(f) {
					require.True(b, mask.Full())
					require.Equal(b, x[at:at+len(d.X)], d.X)
					require.Equal(b, y[at:at+len(d.Y)], d.Y)
					at += len(d.X)
				}
				require.Equal(b, n, at)
				b.Run("to=slices", func(b *testing.B) {
					compare(b, n, func() { driftSlices(x, y, dx, dy, step) }, func() { driftSpans(q, f, step) })
				})
				b.Run("to=together", func(b *testing.B) {
					compare(b, n, func() { driftTogether(x, y, dx, dy, step) }, func() { driftSpans(q, f, step) })
				})
			})
		})
	}
}
