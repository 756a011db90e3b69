package guide_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/registry"
)

func Example_family() {
	type Part struct{}
	reg := must(registry.New(registry.Config{}))
	parts := must(registry.RegisterClass[Part](reg))
	check(reg.Update(func(w *registry.Window) error {
		hs := must(parts.SpawnBatch(w, 4, nil))
		ship, turret, gun, raft := hs[0], hs[1], hs[2], hs[3]
		check(registry.SetParent(w, turret, ship))
		check(registry.SetParent(w, gun, turret))
		check(registry.SetParent(w, raft, ship))
		fmt.Println("a circle:", errors.Is(registry.SetParent(w, ship, gun), registry.ErrCycle))

		check(registry.ClearParent(w, raft)) // set free
		check(w.Destroy(ship))
		for _, h := range hs {
			fmt.Print(reg.Alive(h), " ")
		}
		fmt.Println()
		return nil
	}))
	// Output:
	// a circle: true
	// false false false true
}
