package work

import (
	"io"
	"log/slog"
	"time"

	"github.com/mlange-42/ark/ecs"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// world is a registry, with an engine if something is to run inside a frame.
type world struct {
	*registry.Registry
	engine *logic.Engine
	body   func(f *registry.Frame) // what the next frame is for
}

// newWorld makes one for at most some entities.
func newWorld(fault *contest.Fault, entities int) *world {
	r, err := registry.New(registry.Config{MaxEntities: max(1<<24, entities)})
	fault.Check(err)
	return &world{Registry: r}
}

// engineConfig is that of all engines here: long passes are none of a watchdog's business.
func engineConfig() logic.Config {
	return logic.Config{Watchdog: time.Hour, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// class registers E.
func class[E any](fault *contest.Fault, w *world) *registry.Class[E] {
	c, err := registry.RegisterClass[E](w.Registry)
	fault.Check(err)
	return c
}

// query makes one.
func query[T any](fault *contest.Fault, w *world, filters ...views.Filter) *views.Query[T] {
	q, err := views.NewQuery[T](w.Registry, filters...)
	fault.Check(err)
	return q
}

// window runs fn with the window.
func (w *world) window(fault *contest.Fault, fn func(*registry.Window)) {
	fault.Check(w.Update(func(win *registry.Window) error {
		fn(win)
		return nil
	}))
}

// frame runs fn as a system would run.
func (w *world) frame(fault *contest.Fault, fn func(*registry.Frame)) {
	if w.engine == nil {
		e, err := logic.New(w.Registry, engineConfig())
		if err != nil {
			fault.Check(err)
			return
		}
		w.engine = e
		_, err = e.AddSystem(logic.Physics, "body", func(f *logic.Frame) { w.body(f.Frame) })
		fault.Check(err)
	}
	w.body = fn
	fault.Check(w.engine.Step())
}

// close ends the engine.
func (w *world) close() {
	if w.engine != nil {
		_ = w.engine.Stop() // always nil
	}
}

// spawnStep is how many entities are spawned at once in a set-up, so that there is no list of all handles.
const spawnStep = 1 << 18

// spawnStill spawns entities with a position only.
func spawnStill(fault *contest.Fault, w *world, c *registry.Class[Still], n int) {
	w.window(fault, func(win *registry.Window) {
		for ; n > 0; n -= spawnStep {
			_, err := views.SpawnColumns(win, c, min(n, spawnStep), func(p *places) {
				for i := range p.Pos {
					p.Pos[i] = Position{1, 1}
				}
			})
			fault.Check(err)
		}
	})
}

// spawnMovers spawns entities with the values of startOf, in order.
func spawnMovers(fault *contest.Fault, w *world, c *registry.Class[Mover], n int) (hs []handles.Local) {
	w.window(fault, func(win *registry.Window) {
		var err error
		hs, err = c.SpawnBatch(win, n, func(i int, m *Mover) { m.Pos, m.Vel = startOf(i) })
		fault.Check(err)
	})
	return hs
}

// createMovers is spawnMovers for Ark.
func createMovers(w *ecs.World, n int) []ecs.Entity {
	all, i := make([]ecs.Entity, n), 0
	ecs.NewMap2[Position, Velocity](w).NewBatchFn(n, func(e ecs.Entity, p *Position, v *Velocity) {
		*p, *v = startOf(i)
		all[i] = e
		i++
	})
	return all
}

// createStill is spawnStill for Ark.
func createStill(w *ecs.World, n int) {
	ecs.NewMap1[Position](w).NewBatch(n, &Position{1, 1})
}

// sumMovers is a checksum of all positions that have a velocity too.
func (w *world) sumMovers(fault *contest.Fault, q *views.Query[movers]) (sum uint64) {
	w.frame(fault, func(f *registry.Frame) {
		for m := range q.Runs(f) {
			sum += sumOf(m.Pos)
		}
	})
	return sum
}

// arkSum is sumMovers for Ark.
func arkSum(f *ecs.Filter2[Position, Velocity]) (sum uint64) {
	q := f.Query()
	for q.NextTable() {
		pos, _ := q.GetColumns()
		sum += sumOf(pos)
	}
	return sum
}
