package pool_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

// Slots for three sparks are set aside at once. Who dies leaves the slot to the next, with the first values again.
func ExampleEntities() {
	type heat struct{ Degrees int }
	type spark struct{ Heat heat }
	r, _ := registry.New(registry.Config{})
	class, _ := registry.RegisterClass[spark](r)

	_ = r.Update(func(w *registry.Window) error {
		sparks, err := pool.NewEntitiesOf(w, class, 3, spark{heat{900}})
		if err != nil {
			return err
		}
		first, ok := sparks.SpawnInitial(w) // the lowest idle slot
		fmt.Println(first, ok, sparks.Slot(0) == first)

		_ = registry.Set(w, first, heat{20})
		hot, _ := sparks.Spawn(w, spark{heat{1200}})
		cold := sparks.DespawnWhere(w, func(_ handles.Local, s *spark) bool { return s.Heat.Degrees < 100 })
		fmt.Println("cold:", cold, "alive:", r.Alive(first), r.Alive(hot))

		again, _ := sparks.SpawnInitial(w)
		degrees, err := registry.Peek[heat](w, again)
		fmt.Println(again, degrees.Degrees, "in use:", sparks.Stats().InUse)
		return err
	})
	// Output:
	// L1.1 true true
	// cold: 1 alive: false true
	// L1.2 900 in use: 2
}
