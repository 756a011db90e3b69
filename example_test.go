package airlock_test

import (
	"context"
	"fmt"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

type Position struct{ X, Y float64 }
type Velocity struct{ X, Y float64 }
type Ship struct { // a class: the components its entities start with
	Pos Position
	Vel Velocity
}
type movers struct { // a query: the columns that a loop works on
	Pos []Position
	Vel []Velocity `ecs:"read"`
}

func Example() {
	reg := must(registry.New(registry.Config{}))
	ships := must(registry.RegisterClass[Ship](reg))
	moving := must(views.NewQuery[movers](reg))
	engine := must(logic.New(reg, logic.Config{Rate: 60}))

	must(engine.AddSystem(logic.Physics, "move", func(f *logic.Frame) { // every frame, on Logic
		for m := range moving.Runs(f) {
			pos, vel := m.Pos, m.Vel // plain slices of the storage itself
			for i := range pos {
				if pos[i].X += vel[i].X * f.Delta; pos[i].X >= 3 {
					fmt.Println("arrived at", pos[i])
					_ = engine.Stop() // after this frame
				}
			}
		}
	}))
	go engine.Spawn(context.Background(), func(w *registry.Window) error { // from any goroutine
		ship, err := ships.Spawn(w, Ship{Vel: Velocity{X: 60}}) // while Logic waits
		fmt.Println("spawned", ship)
		return err // an error would undo all that was done here
	})
	err := engine.Run(context.Background())
	fmt.Println("stopped:", err, "live:", reg.Stats().Live)
	// Output:
	// spawned L1.1
	// arrived at {3 0}
	// stopped: <nil> live: 1
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
