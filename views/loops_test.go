package views_test

import (
	"slices"
	"sync"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// loop is a way to go over a query. each calls visit for every part of the storage that the loop
// yields, with its live entities; a body that wants no more answers false.
type loop struct {
	name string
	each func(q *views.Query[movers], a registry.Access, visit func(movers) bool)
}

// stoppable are the loops that a body can leave. Parallel's goes on until all are done, unless it
// panics.
var stoppable = []loop{
	{"Runs", func(q *views.Query[movers], a registry.Access, visit func(movers) bool) {
		for m := range q.Runs(a) {
			if !visit(*m) {
				break
			}
		}
	}},
	{"RunsSince", func(q *views.Query[movers], a registry.Access, visit func(movers) bool) {
		for m := range q.RunsSince(a, 0) {
			if !visit(*m) {
				break
			}
		}
	}},
	{"Spans", func(q *views.Query[movers], a registry.Access, visit func(movers) bool) {
		for m, mask := range q.Spans(a) {
			if !visit(gather(m, mask)) {
				break
			}
		}
	}},
}

var loops = append(slices.Clone(stoppable), loop{
	"Parallel", func(q *views.Query[movers], a registry.Access, visit func(movers) bool) {
		var mu sync.Mutex // visit is one goroutine's
		q.Parallel(a, func(_ *registry.Frame, m *movers) {
			mu.Lock()
			defer mu.Unlock()
			visit(*m)
		})
	},
})

// gather copies the live slots of a span.
func gather(m *movers, mask views.Mask) (live movers) {
	for _, i := range mask.Live() {
		live.Pos = append(live.Pos, m.Pos[i])
		live.Vel = append(live.Vel, m.Vel[i])
		live.ID = append(live.ID, m.ID[i])
	}
	return live
}

// shownBy collects the handles a loop shows, in order.
func (l loop) shownBy(q *views.Query[movers], a registry.Access) (seen []handles.Local) {
	l.each(q, a, func(m movers) bool {
		seen = append(seen, m.ID...)
		return true
	})
	return seen
}
