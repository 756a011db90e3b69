package work

import (
	"fmt"

	"github.com/mlange-42/ark/ecs"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// holes are loops over entities of which a part has died here and there; the size is how many there
// were, the figures are for each that lives. Ark closes its gaps as it removes, and slices have none.
func holes() (all []*contest.Workload) {
	for _, dead := range []int{10, 50, 90, 99} {
		all = append(all, &contest.Workload{
			Name: fmt.Sprintf("query, %d%% tombstones", dead), Sizes: standard(), Bytes: perEntity(300),
			Open: func(n int) *contest.Contest { return openHoles(n, dead) },
		})
	}
	return all
}

// lanesUpTo is the share of the dead, in percent, up to which computing all lanes of a span is the
// way that views documents.
const lanesUpTo = 33

//go:noinline
func moveLanes(q *views.Query[movers], a registry.Access) {
	for m := range q.Spans(a) {
		pos, vel := m.Pos, m.Vel
		for i := range pos {
			pos[i].X += vel[i].X
			pos[i].Y += vel[i].Y
		}
	}
}

//go:noinline
func moveLive(q *views.Query[movers], a registry.Access) {
	for m, mask := range q.Spans(a) {
		pos, vel := m.Pos, m.Vel
		for _, i := range mask.Live() {
			pos[i].X += vel[i].X
			pos[i].Y += vel[i].Y
		}
	}
}

func openHoles(n, dead int) *contest.Contest {
	c := new(contest.Contest)
	drawn := order(n)[:n*dead/100]
	w, a := newWorld(&c.Fault, n), ecs.NewWorld()
	hs, all := spawnMovers(&c.Fault, w, class[Mover](&c.Fault, w), n), createMovers(a, n)
	doomed, isDoomed := make([]handles.Local, 0, len(drawn)), make([]bool, n)
	for _, i := range drawn {
		doomed, isDoomed[i] = append(doomed, hs[i]), true
		a.RemoveEntity(all[i])
	}
	w.window(&c.Fault, func(win *registry.Window) {
		win.DestroyBatch(doomed)
		win.ProcessDeferredDestructions()
		win.ConfirmLocalRecycles()
	})
	overMovers(c, w, n-len(drawn))
	move := moveLive
	c.Ours.Name = "spans, live"
	if dead <= lanesUpTo {
		move, c.Ours.Name = moveLanes, "spans, all lanes"
	}
	q := query[movers](&c.Fault, w)
	c.Ours.Run = func(t *contest.Timer, reps int) {
		w.frame(&t.Fault, func(f *registry.Frame) {
			t.Start()
			for range reps {
				move(q, f)
			}
			t.Stop()
		})
	}
	c.Peers = []contest.Side{arkTables("ark tables, dense", ecs.NewFilter2[Position, Velocity](a))}
	pos, vel := make([]Position, 0, c.Ops), make([]Velocity, 0, c.Ops)
	for i := range n {
		if !isDoomed[i] {
			p, v := startOf(i)
			pos, vel = append(pos, p), append(vel, v)
		}
	}
	c.Raw = &contest.Side{Name: "slices, dense", Sum: func() uint64 { return sumOf(pos) },
		Run: repeated(func() { moveSlices(pos, vel) })}
	return c
}
