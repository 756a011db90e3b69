package work

import (
	"github.com/mlange-42/ark/ecs"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// moves add a second component to entities with one, and take it away again: an operation is both.
func moves() []*contest.Workload {
	return []*contest.Workload{
		{Name: "add and remove a component, one by one", Sizes: standard(), Bytes: perEntity(500), Target: contest.Target{Peer: 0.6},
			Open: func(n int) *contest.Contest { return openMoves(n, false) }},
		{Name: "add and remove a component, batched", Sizes: standard(), Bytes: perEntity(500), Target: contest.Target{Peer: 1},
			Open: func(n int) *contest.Contest { return openMoves(n, true) }},
	}
}

//go:noinline
func addEach(w *registry.Window, hs []handles.Local) {
	for _, h := range hs {
		_ = registry.Add(w, h, Velocity{3, 4}) // a count tells
	}
}

//go:noinline
func dropEach(w *registry.Window, hs []handles.Local) {
	for _, h := range hs {
		_ = registry.Remove[Velocity](w, h) // a count tells
	}
}

//go:noinline
func arkAddEach(m *ecs.Map1[Velocity], hs []ecs.Entity) {
	for _, e := range hs {
		m.Add(e, &Velocity{3, 4})
	}
}

//go:noinline
func arkDropEach(m *ecs.Map1[Velocity], hs []ecs.Entity) {
	for _, e := range hs {
		m.Remove(e)
	}
}

// toAndFro is a side that adds and removes, and counts in between who has what was added.
func toAndFro(name string, add, drop func(fault *contest.Fault), count func(fault *contest.Fault) int) contest.Side {
	moved := 0
	return contest.Side{Name: name, Sum: func() uint64 { return uint64(moved) },
		Run: func(t *contest.Timer, reps int) {
			for range reps {
				t.Start()
				add(&t.Fault)
				t.Stop()
				moved += count(&t.Fault)
				t.Start()
				drop(&t.Fault)
				t.Stop()
				moved += 1000 * count(&t.Fault)
			}
		}}
}

func openMoves(n int, batch bool) *contest.Contest {
	c := &contest.Contest{Ops: n}
	w := newWorld(&c.Fault, n)
	still := class[Still](&c.Fault, w)
	_, err := registry.RegisterComponent[Velocity](w.Registry)
	c.Check(err)
	var hs []handles.Local
	w.window(&c.Fault, func(win *registry.Window) {
		hs, err = still.SpawnBatch(win, n, func(i int, s *Still) { s.Pos, _ = startOf(i) })
		c.Check(err)
	})
	q := query[movers](&c.Fault, w)
	add, drop := addEach, dropEach
	if batch {
		add = func(w *registry.Window, hs []handles.Local) { registry.AddBatch(w, hs, Velocity{3, 4}) }
		drop = func(w *registry.Window, hs []handles.Local) { registry.RemoveBatch[Velocity](w, hs) }
	}
	c.Ours = toAndFro("airlock",
		func(fault *contest.Fault) { w.window(fault, func(win *registry.Window) { add(win, hs) }) },
		func(fault *contest.Fault) { w.window(fault, func(win *registry.Window) { drop(win, hs) }) },
		func(fault *contest.Fault) (moving int) { return w.countMovers(fault, q) })

	a := ecs.NewWorld()
	all := make([]ecs.Entity, 0, n)
	ecs.NewMap1[Position](a).NewBatchFn(n, func(e ecs.Entity, p *Position) {
		*p, _ = startOf(len(all))
		all = append(all, e)
	})
	vel, both := ecs.NewMap1[Velocity](a), ecs.NewFilter2[Position, Velocity](a)
	without := ecs.NewFilter1[Position](a).Without(ecs.C[Velocity]())
	arkAdd, arkDrop := func(*contest.Fault) { arkAddEach(vel, all) }, func(*contest.Fault) { arkDropEach(vel, all) }
	if batch {
		arkAdd = func(*contest.Fault) { vel.AddBatch(without.Batch(), &Velocity{3, 4}) }
		arkDrop = func(*contest.Fault) { vel.RemoveBatch(both.Batch(), nil) }
	}
	c.Peers = []contest.Side{toAndFro("ark", arkAdd, arkDrop, func(*contest.Fault) int {
		q := both.Query()
		defer q.Close()
		return q.Count()
	})}
	return c
}

// countMovers is how many have both components.
func (w *world) countMovers(fault *contest.Fault, q *views.Query[movers]) (n int) {
	w.window(fault, func(win *registry.Window) { n = q.Count(win) })
	return n
}
