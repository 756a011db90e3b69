package stress_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/stress"
)

type Health struct{ Points int }

type Soldier struct{ Health Health }

// A model beside a registry: the same things are done to both, and both have to come out the same.
func ExampleModel() {
	config := registry.Config{MaxEntities: 100}
	reg, _ := registry.New(config)
	soldiers, _ := registry.RegisterClass[Soldier](reg)
	model := stress.NewModel(config)
	stress.Component[Health](model) // to be compared

	err := reg.Update(func(w *registry.Window) error {
		return model.Callback(func() error {
			s, err := soldiers.Spawn(w, Soldier{Health{10}})
			if err != nil {
				return err
			}
			return model.Spawned(s, Soldier{Health{10}})
		})
	})
	fmt.Println("done:", err)
	_ = reg.Update(func(w *registry.Window) error {
		fmt.Println("the same:", model.Compare(w))
		for _, s := range model.Living() { // and now something that the model is not told
			_ = registry.Set(w, s, Health{3})
		}
		fmt.Println(model.Compare(w))
		return nil
	})
	fmt.Println("counters:", model.CompareStats(reg.Stats()))
	// Output:
	// done: <nil>
	// the same: <nil>
	// stress: L1.1: stress_test.Health is {3}, and should be {10}
	// counters: <nil>
}
