package guide_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_events() {
	type Armour struct{ Plates int }
	type Knight struct{ Armour Armour }
	type Blessed struct{}
	reg := must(registry.New(registry.Config{}))
	must(registry.RegisterComponent[Blessed](reg))
	knights := must(registry.RegisterClass[Knight](reg))
	engine := must(logic.New(reg, logic.Config{}))

	for _, kind := range []registry.EventKind{registry.Spawned, registry.Added, registry.Destroyed} {
		must(reg.Observe(kind, func(f *registry.Frame, events []registry.Event) {
			for _, e := range events { // all of one kind since the last time
				fmt.Println("frame", f.FrameNumber(), kind, e.Entity)
				if kind == registry.Destroyed { // structure that an observer asks for comes with the next window
					heir := must(knights.SpawnLater(f, Knight{}))
					fmt.Println("heir:", heir)
				}
			}
		}))
	}
	do := func(fn func(w *registry.Window) error) {
		ticket := must(engine.Enqueue(fn))
		check(engine.Step())
		fmt.Println("done:", ticket.Err())
	}

	var bors handles.Local
	do(func(w *registry.Window) (err error) {
		bors, err = knights.Spawn(w, Knight{Armour{3}})
		return err
	})
	do(func(w *registry.Window) error { // what fails is never told
		check(registry.Add(w, bors, Blessed{}))
		return fmt.Errorf("the priest was drunk")
	})
	do(func(w *registry.Window) error { return registry.Add(w, bors, Blessed{}) })
	check(reg.Destroy(bors)) // from outside: told after the next window
	do(func(*registry.Window) error { return nil })
	do(func(*registry.Window) error { return nil })
	// Output:
	// frame 1 Spawned L1.1
	// done: <nil>
	// done: the priest was drunk
	// frame 3 Added L1.1
	// done: <nil>
	// frame 4 Destroyed L1.1
	// heir: L2.1
	// done: <nil>
	// frame 5 Spawned L2.1
	// done: <nil>
}
