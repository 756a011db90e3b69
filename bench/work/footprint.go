package work

import (
	"runtime"

	"github.com/mlange-42/ark/ecs"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/registry"
)

// footprints are the memory that a world of entities with two components of 16 bytes takes, all told:
// what the heap holds more with it than without. Chunks are full. Raw is the two columns alone.
func footprints() []*contest.Workload {
	return []*contest.Workload{{Name: "memory", Unit: "B", Sizes: []int{m1}, Bytes: perEntity(500), Open: openFootprint,
		Target: contest.Target{Value: 64}}}
}

// heap is what the heap holds.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools kept
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// weighing is a side that builds a world and takes its weight. build gives the world, and a checksum of it.
func weighing[W any](name string, build func() (W, uint64)) contest.Side {
	var sum uint64
	return contest.Side{Name: name, Sum: func() uint64 { return sum },
		Run: func(t *contest.Timer, reps int) {
			for range reps {
				before := heap()
				w, s := build()
				t.Add(heap() - before)
				sum = s
				runtime.KeepAlive(w)
			}
		}}
}

func openFootprint(n int) *contest.Contest {
	c := &contest.Contest{Ops: n}
	c.Ours = weighing("airlock", func() (*world, uint64) {
		w := newWorld(&c.Fault, 0)
		spawnMovers(&c.Fault, w, class[Mover](&c.Fault, w), n)
		q, sum := query[movers](&c.Fault, w), uint64(0)
		w.window(&c.Fault, func(win *registry.Window) {
			for m := range q.Runs(win) {
				sum += sumOf(m.Pos)
			}
		})
		return w, sum
	})
	c.Peers = []contest.Side{weighing("ark", func() (*ecs.World, uint64) {
		a := ecs.NewWorld()
		createMovers(a, n)
		return a, arkSum(ecs.NewFilter2[Position, Velocity](a))
	})}
	raw := weighing("slices", func() (*columns, uint64) {
		w := &columns{make([]Position, n), make([]Velocity, n)}
		for i := range w.Pos {
			w.Pos[i], w.Vel[i] = startOf(i)
		}
		return w, sumOf(w.Pos)
	})
	c.Raw = &raw
	return c
}

// columns are two columns in plain slices.
type columns struct {
	Pos []Position
	Vel []Velocity
}
