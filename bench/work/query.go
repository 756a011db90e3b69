package work

import (
	"fmt"

	"github.com/mlange-42/ark/ecs"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// queries are loops over two components: with ten times as many others around, over 32 archetypes
// that match, and beside 256 that don't.
func queries() []*contest.Workload {
	fromK16 := contest.Target{Peer: 1, From: k16}
	return []*contest.Workload{
		{Name: "query, two components", Sizes: standard(), Bytes: perEntity(1300), Open: openDense,
			Target: contest.Target{Raw: 1.05, Peer: 1}},
		{Name: "query, 32 archetypes", Sizes: standard(), Bytes: perEntity(400), Open: openMatching, Target: fromK16},
		{Name: "query, 256 other archetypes", Sizes: standard(), Bytes: perEntity(400), Open: openOthers, Target: fromK16},
	}
}

//go:noinline
func moveRuns(q *views.Query[movers], a registry.Access) {
	for m := range q.Runs(a) {
		pos, vel := m.Pos, m.Vel
		for i := range pos {
			pos[i].X += vel[i].X
			pos[i].Y += vel[i].Y
		}
	}
}

//go:noinline
func moveTables(f *ecs.Filter2[Position, Velocity]) {
	q := f.Query()
	for q.NextTable() {
		pos, vel := q.GetColumns()
		for i := range pos {
			p, v := &pos[i], &vel[i]
			p.X += v.X
			p.Y += v.Y
		}
	}
}

//go:noinline
func moveSlices(pos []Position, vel []Velocity) {
	for i := range pos {
		pos[i].X += vel[i].X
		pos[i].Y += vel[i].Y
	}
}

// repeated is a Run that does the same thing again and again.
func repeated(body func()) func(*contest.Timer, int) {
	return func(t *contest.Timer, reps int) {
		t.Start()
		for range reps {
			body()
		}
		t.Stop()
	}
}

// arkTables is Ark's loop by tables over a world of its own.
func arkTables(name string, f *ecs.Filter2[Position, Velocity]) contest.Side {
	return contest.Side{Name: name, Sum: func() uint64 { return arkSum(f) }, Run: repeated(func() { moveTables(f) })}
}

// overMovers fills in the loops over all movers of a registry, and over slices of n.
func overMovers(c *contest.Contest, w *world, n int) {
	q := query[movers](&c.Fault, w)
	c.Ops, c.Close = n, w.close
	c.Ours = contest.Side{Name: "runs", Sum: func() uint64 { return w.sumMovers(&c.Fault, q) },
		Run: func(t *contest.Timer, reps int) {
			w.frame(&t.Fault, func(f *registry.Frame) {
				t.Start()
				for range reps {
					moveRuns(q, f)
				}
				t.Stop()
			})
		}}
	pos, vel := make([]Position, n), make([]Velocity, n)
	for i := range pos {
		pos[i], vel[i] = startOf(i)
	}
	c.Raw = &contest.Side{Name: "slices", Sum: func() uint64 { return sumOf(pos) },
		Run: repeated(func() { moveSlices(pos, vel) })}
}

func openDense(n int) *contest.Contest {
	c := new(contest.Contest)
	w, a := newWorld(&c.Fault, 11*n), ecs.NewWorld()
	spawnMovers(&c.Fault, w, class[Mover](&c.Fault, w), n)
	spawnStill(&c.Fault, w, class[Still](&c.Fault, w), 10*n)
	createMovers(a, n)
	createStill(a, 10*n)
	overMovers(c, w, n)
	c.Peers = []contest.Side{arkTables("ark tables", ecs.NewFilter2[Position, Velocity](a))}
	return c
}

// extras are the components that tell archetypes apart.
const extras = 8

// registerExtras registers them, with the two that are looked for.
func registerExtras(fault *contest.Fault, w *world) (pos, vel archetype.ComponentID, others [extras]archetype.ComponentID) {
	for i, register := range []func(*registry.Registry, ...registry.ComponentOption) (archetype.ComponentID, error){
		registry.RegisterComponent[C1], registry.RegisterComponent[C2], registry.RegisterComponent[C3], registry.RegisterComponent[C4],
		registry.RegisterComponent[C5], registry.RegisterComponent[C6], registry.RegisterComponent[C7], registry.RegisterComponent[C8],
	} {
		id, err := register(w.Registry)
		fault.Check(err)
		others[i] = id
	}
	pos, err := registry.RegisterComponent[Position](w.Registry)
	fault.Check(err)
	vel, err = registry.RegisterComponent[Velocity](w.Registry)
	fault.Check(err)
	return pos, vel, others
}

// arkExtras are the same in Ark.
func arkExtras(a *ecs.World) (pos, vel ecs.ID, others [extras]ecs.ID) {
	return ecs.ComponentID[Position](a), ecs.ComponentID[Velocity](a), [extras]ecs.ID{
		ecs.ComponentID[C1](a), ecs.ComponentID[C2](a), ecs.ComponentID[C3](a), ecs.ComponentID[C4](a),
		ecs.ComponentID[C5](a), ecs.ComponentID[C6](a), ecs.ComponentID[C7](a), ecs.ComponentID[C8](a),
	}
}

// chosen are the elements of all whose bit is set.
func chosen[T any](first []T, all [extras]T, bits int) []T {
	for i, x := range all {
		if bits>>i&1 == 1 {
			first = append(first, x)
		}
	}
	return first
}

// share is the size of the i-th of some parts of n.
func share(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }

// openMatching spreads the entities over 32 archetypes.
func openMatching(n int) *contest.Contest {
	const parts = 32
	c := new(contest.Contest)
	w := newWorld(&c.Fault, n)
	pos, vel, others := registerExtras(&c.Fault, w)
	for i := range parts {
		spawnDescribed(&c.Fault, w, chosen([]archetype.ComponentID{pos, vel}, others, i), i, share(n, i, parts))
	}
	q, at := query[pairs](&c.Fault, w), 0
	w.window(&c.Fault, func(win *registry.Window) {
		for m := range q.Runs(win) {
			for i := range m.Pos {
				m.Pos[i], m.Vel[i] = startOf(at)
				at++
			}
		}
	})
	fill := func(a *ecs.World) {
		pos, vel, others := arkExtras(a)
		both, at := ecs.NewMap2[Position, Velocity](a), 0
		for i := range parts {
			ids := chosen([]ecs.ID{pos, vel}, others, i)
			for range share(n, i, parts) {
				p, v := startOf(at)
				both.Set(a.Unsafe().NewEntity(ids...), &p, &v)
				at++
			}
		}
	}
	overMovers(c, w, n)
	c.Peers = arkBoth(fill)
	return c
}

// openOthers has the entities in one archetype, and as many others in 256 that do not match.
func openOthers(n int) *contest.Contest {
	const parts = 1 << extras
	c := new(contest.Contest)
	w := newWorld(&c.Fault, 2*n)
	pos, _, others := registerExtras(&c.Fault, w)
	for i := range parts {
		spawnDescribed(&c.Fault, w, chosen([]archetype.ComponentID{pos}, others, i), i, max(1, share(n, i, parts)))
	}
	spawnMovers(&c.Fault, w, class[Mover](&c.Fault, w), n)
	fill := func(a *ecs.World) {
		pos, _, others := arkExtras(a)
		for i := range parts {
			ids := chosen([]ecs.ID{pos}, others, i)
			for range max(1, share(n, i, parts)) {
				a.Unsafe().NewEntity(ids...)
			}
		}
		createMovers(a, n)
	}
	overMovers(c, w, n)
	c.Peers = arkBoth(fill)
	return c
}

// spawnDescribed spawns entities of a signature, with zero values.
func spawnDescribed(fault *contest.Fault, w *world, ids []archetype.ComponentID, name, n int) {
	c, err := registry.RegisterDescribed(w.Registry, fmt.Sprintf("part %d", name), ids)
	if err != nil {
		fault.Check(err)
		return
	}
	w.window(fault, func(win *registry.Window) {
		_, err := c.SpawnBatch(win, n, nil)
		fault.Check(err)
	})
}

// arkBoth loops by tables over a world with a plain filter, and over its equal with a registered one.
func arkBoth(fill func(*ecs.World)) []contest.Side {
	plain, cached := ecs.NewWorld(), ecs.NewWorld()
	fill(plain)
	fill(cached)
	return []contest.Side{
		arkTables("ark tables", ecs.NewFilter2[Position, Velocity](plain)),
		arkTables("ark tables, registered", ecs.NewFilter2[Position, Velocity](cached).Register()),
	}
}
