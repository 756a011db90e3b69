package cookbook_test

import (
	"context"
	"fmt"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

func Example_bulk() {
	type Position struct{ X, Y float32 }
	type Kind struct{ Number int32 }
	type Tree struct {
		Position Position
		Kind     Kind
	}
	type columns struct {
		Position []Position
		Kind     []Kind
	}
	reg := must(registry.New(registry.Config{}))
	trees := must(registry.RegisterClass[Tree](reg))
	engine := must(logic.New(reg, logic.Config{}))
	load := func(n int) Position { return Position{X: float32(n % 100), Y: float32(n / 100)} } // from a file, say

	// Before the engine runs: columns are filled in place, and nothing is copied.
	check(reg.Update(func(w *registry.Window) error {
		n := 0
		hs, err := views.SpawnColumns(w, trees, 40_000, func(c *columns) { // once for each run of neighbouring slots
			for i := range c.Position {
				c.Position[i], c.Kind[i] = load(n), Kind{1}
				n++
			}
		})
		fmt.Println("at the start:", len(hs), err)
		return err
	}))

	// While it runs: in portions, so that no frame stands still for all of it. Each is whole or not at all.
	running := make(chan error)
	go func() { running <- engine.Run(context.Background()) }()
	const all, portion = 10_000, 1000
	for from := 0; from < all; from += portion {
		check(engine.Spawn(context.Background(), func(w *registry.Window) error {
			_, err := trees.SpawnBatch(w, portion, func(i int, t *Tree) { *t = Tree{load(from + i), Kind{2}} })
			return err
		}))
	}
	check(engine.Stop())
	fmt.Println("then:", <-running, reg.Stats().Live)
	// Output:
	// at the start: 40000 <nil>
	// then: <nil> 50000
}
