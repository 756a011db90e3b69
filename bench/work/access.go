package work

import (
	"math/rand/v2"

	"github.com/mlange-42/ark/ecs"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// accesses are reads of a component by handle, in random order; every handle is checked on both sides.
func accesses() []*contest.Workload {
	return []*contest.Workload{{Name: "random access by handle", Sizes: standard(), Bytes: perEntity(400), Open: openAccess,
		Target: contest.Target{Peer: 0.6}}}
}

//go:noinline
func peekAll(cells *registry.Cells[Position], a registry.Access, hs []handles.Local) (sum float64) {
	open := cells.Open(a)
	for _, p := range open.Each(hs) {
		sum += p.X
	}
	return sum
}

//go:noinline
func getAll(m *ecs.Map[Position], all []ecs.Entity) (sum float64) {
	for _, e := range all {
		sum += m.Get(e).X
	}
	return sum
}

//go:noinline
func getAll1(m *ecs.Map1[Position], all []ecs.Entity) (sum float64) {
	for _, e := range all {
		sum += m.Get(e).X
	}
	return sum
}

//go:noinline
func indexAll(pos []Position, at []uint32) (sum float64) {
	for _, i := range at {
		sum += pos[i].X
	}
	return sum
}

// order is a random order of n, always the same.
func order(n int) []int { return rand.New(rand.NewPCG(1, 2)).Perm(n) }

// inOrder puts all in an order.
func inOrder[T any](all []T, order []int) []T {
	mixed := make([]T, len(all))
	for i, at := range order {
		mixed[i] = all[at]
	}
	return mixed
}

// reading is a side that reads everything and says what it added up.
func reading(name string, read func() float64) contest.Side {
	var sum float64
	return contest.Side{Name: name, Run: repeated(func() { sum = read() }), Sum: func() uint64 { return uint64(sum) }}
}

func openAccess(n int) *contest.Contest {
	c := &contest.Contest{Ops: n}
	w, a := newWorld(&c.Fault, n), ecs.NewWorld()
	mixed := order(n)
	hs := inOrder(spawnMovers(&c.Fault, w, class[Mover](&c.Fault, w), n), mixed)
	all := inOrder(createMovers(a, n), mixed)
	pos, at := make([]Position, n), make([]uint32, n)
	for i, place := range mixed {
		pos[i], _ = startOf(i)
		at[i] = uint32(place)
	}
	cells, err := registry.NewCells[Position](w.Registry)
	c.Check(err)
	var sum float64
	c.Ours = contest.Side{Name: "OpenCells.Each", Sum: func() uint64 { return uint64(sum) },
		Run: func(t *contest.Timer, reps int) {
			w.frame(&t.Fault, func(f *registry.Frame) {
				t.Start()
				for range reps {
					sum = peekAll(cells, f, hs)
				}
				t.Stop()
			})
		}}
	one, one1 := ecs.NewMap[Position](a), ecs.NewMap1[Position](a)
	c.Peers = []contest.Side{
		reading("ark Map", func() float64 { return getAll(one, all) }),
		reading("ark Map1", func() float64 { return getAll1(one1, all) }),
	}
	raw := reading("slice by index", func() float64 { return indexAll(pos, at) })
	c.Raw, c.Close = &raw, w.close
	return c
}
