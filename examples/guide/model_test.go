package guide_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/stress"
)

func Example_model() {
	type Health struct{ Points int }
	type Soldier struct{ Health Health }
	config := registry.Config{}
	reg := must(registry.New(config))
	soldiers := must(registry.RegisterClass[Soldier](reg))
	model := stress.NewModel(config)
	stress.Component[Health](model) // to be compared

	// What a test wants to hold, done to both: the model is plain maps.
	var s handles.Local
	check(reg.Update(func(w *registry.Window) error {
		return model.Callback(func() error {
			s = must(soldiers.Spawn(w, Soldier{Health{10}}))
			return model.Spawned(s, Soldier{Health{10}})
		})
	}))
	check(reg.Update(func(w *registry.Window) error {
		fmt.Println("the same:", model.Compare(w))
		check(registry.Set(w, s, Health{3})) // and something that the model is not told
		fmt.Println(model.Compare(w))
		return nil
	}))
	fmt.Println("every structure is whole:", reg.Verify())
	// Output:
	// the same: <nil>
	// stress: L1.1: guide_test.Health is {3}, and should be {10}
	// every structure is whole: <nil>
}
