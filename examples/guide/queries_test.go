package guide_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
	"github.com/airlock-ecs/airlock/views/wide"
)

func Example_queries() {
	type Position struct{ X, Y float32 }
	type Velocity struct{ X, Y float32 }
	type Frozen struct{}
	type Boat struct {
		Position Position
		Velocity Velocity
	}
	// A query is a struct of slices, one for each column that a loop works on.
	type sailing struct {
		Position []Position
		Velocity []Velocity `ecs:"read"` // this loop does not write it
		ID       []handles.Local
	}
	// Position is stored split, one column for each field: here are two of them.
	type drift struct {
		X []float32 `ecs:"Position.X"`
		Y []float32 `ecs:"Position.Y,read"`
	}
	type moved struct {
		X  []float32 `ecs:"Position.X,read"`
		ID []handles.Local
	}

	reg := must(registry.New(registry.Config{}))
	must(registry.RegisterComponent[Frozen](reg))
	boats := must(registry.RegisterClass[Boat](reg))
	free := must(views.NewQuery[sailing](reg, views.Without[Frozen]()))
	engine := must(logic.New(reg, logic.Config{Workers: 2}))

	var fleet []handles.Local
	check(reg.Update(func(w *registry.Window) (err error) {
		fleet, err = boats.SpawnBatch(w, 5, func(i int, b *Boat) { b.Velocity.X = float32(i) })
		check(registry.Add(w, fleet[4], Frozen{}))
		return err
	}))

	// Runs yields plain slices of neighbouring living entities. Fields are hoisted out of the inner loop.
	must(engine.AddSystem(logic.Physics, "sail", func(f *logic.Frame) {
		for run := range free.Runs(f) {
			pos, vel := run.Position, run.Velocity
			for i := range pos {
				pos[i].X += vel[i].X
			}
		}
	}))

	// Parallel spreads chunks over the engine's workers. What a part asks for goes by its own frame.
	must(engine.AddSystem(logic.PostPhysics, "sink", func(f *logic.Frame) {
		free.Parallel(f, func(part *registry.Frame, run *sailing) {
			for i := range run.Position {
				if run.Position[i].X >= 6 {
					check(part.Destroy(run.ID[i]))
				}
			}
		})
	}))
	check(engine.Step())
	check(engine.Step())
	check(reg.Update(func(w *registry.Window) error {
		fmt.Println("sailing:", free.Count(w), "alive:", reg.Alive(fleet[3]), reg.Alive(fleet[4]))
		return nil
	}))

	// Spans yields whole chunks and a mask of who is alive: for kernels that may compute dead lanes.
	other := must(registry.New(registry.Config{}))
	must(registry.RegisterComponent[Position](other, registry.Split()))
	rafts := must(registry.RegisterClass[Boat](other))
	drifting := must(views.NewQuery[drift](other))
	check(other.Update(func(w *registry.Window) error {
		hs := must(rafts.SpawnBatch(w, 4, func(i int, b *Boat) { b.Position.Y = float32(i) }))
		check(w.Destroy(hs[1]))
		for span, mask := range drifting.Spans(w) {
			wide.Axpy(span.X, 10, span.Y) // x += 10 * y
			for _, i := range mask.Live() {
				fmt.Println("raft", i, "at", span.X[i])
			}
		}
		return nil
	}))

	// A follower leaves out chunks in which nothing has changed since its last loop; the first one shows everything.
	sender := must(logic.New(other, logic.Config{}))
	changes := must(views.NewQuery[moved](other)).Follow()
	must(sender.AddSystem(logic.Late, "send", func(f *logic.Frame) {
		sent := 0
		for run := range changes.Runs(f) {
			sent += len(run.X)
		}
		fmt.Println("frame", f.FrameNumber(), "sends", sent)
	}))
	for range 3 {
		check(sender.Step())
	}
	// Output:
	// sailing: 3 alive: false true
	// raft 0 at 0
	// raft 2 at 20
	// raft 3 at 30
	// frame 1 sends 3
	// frame 2 sends 3
	// frame 3 sends 0
}
