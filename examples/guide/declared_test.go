package guide_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

const drops = `
world { entity drop { state = (y = 10, vy = 0) } }
systems { update { on = drop; dt = 0.5; vy = vy - 2 * dt; y = y + vy * dt } }
`

func Example_declared() {
	program := must(declare.Load("drop.world", []byte(drops), nil))
	reg := must(registry.New(registry.Config{Deterministic: true}))
	engine := must(logic.New(reg, logic.Config{}))
	defer engine.Stop()
	world := must(declare.Attach(engine, program, declare.Options{Phase: logic.Physics, Name: "drop"}))
	drop, _ := program.ID("drop")
	for range 4 {
		check(engine.Step()) // each frame runs a step of the world, beside systems in Go
	}
	check(reg.Update(func(w *registry.Window) error {
		state, _, _ := world.State(w, drop)
		fmt.Println("y", state[0], "vy", state[1])
		return nil
	}))
	// Output:
	// y 7 vy -4
}
