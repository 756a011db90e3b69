package work

import (
	"github.com/mlange-42/ark/ecs"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
	"github.com/airlock-ecs/airlock/views/wide"
)

// wides are loops over split components of float32 that fit the second cache, by vector kernels. The
// target holds for builds that have them.
func wides() []*contest.Workload {
	return []*contest.Workload{{Name: "spans of float32, wide kernels", Sizes: []int{k16}, Open: openWide,
		Target: contest.Target{Raw: wideTarget}}}
}

// Place is split: each field is a column of float32.
type Place struct{ X, Y float32 }

// Drift is split, too.
type Drift struct{ X, Y float32 }

// Drifter is their class.
type Drifter struct {
	Place Place
	Drift Drift
}

// drifters are its columns.
type drifters struct {
	X  []float32 `ecs:"Place.X"`
	Y  []float32 `ecs:"Place.Y"`
	DX []float32 `ecs:"Drift.X,read"`
	DY []float32 `ecs:"Drift.Y,read"`
}

// driftStep is a power of two: with it all numbers are exact.
const driftStep = 0.5

//go:noinline
func driftSpans(q *views.Query[drifters], a registry.Access, step float32) {
	for d := range q.Spans(a) {
		wide.Axpy(d.X, step, d.DX)
		wide.Axpy(d.Y, step, d.DY)
	}
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

//go:noinline
func driftTables(f *ecs.Filter2[Place, Drift], step float32) {
	q := f.Query()
	for q.NextTable() {
		places, drifts := q.GetColumns()
		for i := range places {
			p, d := &places[i], &drifts[i]
			p.X += step * d.X
			p.Y += step * d.Y
		}
	}
}

// driftOf is what the i-th starts with. Steps go to and fro, so that numbers stay small and exact.
func driftOf(i int) (Place, Drift) {
	return Place{float32(i % 7), 1}, Drift{1, float32(i % 5)}
}

// drifting is a side: it moves there in one repetition and back in the next.
func drifting(name string, run func(t *contest.Timer, steps []float32), sum func() uint64) contest.Side {
	step := float32(driftStep)
	return contest.Side{Name: name, Sum: sum, Run: func(t *contest.Timer, reps int) {
		steps := make([]float32, reps)
		for i := range steps {
			steps[i], step = step, -step
		}
		run(t, steps)
	}}
}

func openWide(n int) *contest.Contest {
	c := &contest.Contest{Ops: n}
	w, a := newWorld(&c.Fault, n), ecs.NewWorld()
	_, err := registry.RegisterComponent[Place](w.Registry, registry.Split())
	c.Check(err)
	_, err = registry.RegisterComponent[Drift](w.Registry, registry.Split())
	c.Check(err)
	class := class[Drifter](&c.Fault, w)
	w.window(&c.Fault, func(win *registry.Window) {
		_, err := class.SpawnBatch(win, n, func(i int, d *Drifter) { d.Place, d.Drift = driftOf(i) })
		c.Check(err)
	})
	q := query[drifters](&c.Fault, w)
	x, y, dx, dy := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range n {
		p, d := driftOf(i)
		x[i], y[i], dx[i], dy[i] = p.X, p.Y, d.X, d.Y
	}
	at := 0
	ecs.NewMap2[Place, Drift](a).NewBatchFn(n, func(_ ecs.Entity, p *Place, d *Drift) {
		*p, *d = driftOf(at)
		at++
	})
	all := ecs.NewFilter2[Place, Drift](a)

	c.Ours = drifting("wide.Axpy", func(t *contest.Timer, steps []float32) {
		w.frame(&t.Fault, func(f *registry.Frame) {
			t.Start()
			for _, step := range steps {
				driftSpans(q, f, step)
			}
			t.Stop()
		})
	}, func() (sum uint64) {
		w.frame(&c.Fault, func(f *registry.Frame) {
			for d := range q.Runs(f) {
				sum += sumBits(d.X) + 3*sumBits(d.Y)
			}
		})
		return sum
	})
	c.Peers = []contest.Side{drifting("ark tables", func(t *contest.Timer, steps []float32) {
		t.Start()
		for _, step := range steps {
			driftTables(all, step)
		}
		t.Stop()
	}, func() (sum uint64) {
		q := all.Query()
		for q.NextTable() {
			places, _ := q.GetColumns()
			for i := range places {
				sum += sumBits([]float32{places[i].X}) + 3*sumBits([]float32{places[i].Y})
			}
		}
		return sum
	})}
	raw := drifting("slices", func(t *contest.Timer, steps []float32) {
		t.Start()
		for _, step := range steps {
			driftSlices(x, y, dx, dy, step)
		}
		t.Stop()
	}, func() uint64 { return sumBits(x) + 3*sumBits(y) })
	c.Raw, c.Close = &raw, w.close
	return c
}
