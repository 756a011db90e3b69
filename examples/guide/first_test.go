package guide_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_first() {
	// Components are plain Go types, and a class is a struct of those that its entities start with.
	type Position struct{ X, Y float64 }
	type Health struct{ Points int }
	type Poisoned struct{} // of size zero: a tag
	type Monster struct {
		Position Position
		Health   Health
	}

	// The zero Config works: no bound but 16 million entities, no rollback.
	reg := must(registry.New(registry.Config{MaxEntities: 10_000}))

	// What a class brings in is Cold. Whoever wants another tier registers the component first.
	must(registry.RegisterComponent[Position](reg, registry.InTier(archetype.Volatile)))
	must(registry.RegisterComponent[Poisoned](reg))
	monsters := must(registry.RegisterClass[Monster](reg))

	// Without an engine, Update opens the window.
	var orc handles.Local
	err := reg.Update(func(w *registry.Window) (err error) {
		orc, err = monsters.Spawn(w, Monster{Position{X: 1, Y: 2}, Health{Points: 30}})
		return err
	})
	fmt.Println(orc, err, reg.Alive(orc))

	err = reg.Update(func(w *registry.Window) error {
		health := must(registry.Get[Health](w, orc)) // a pointer to the cell, good until the callback ends
		health.Points -= 5
		check(registry.Set(w, orc, Position{X: 3})) // as Get, and undone if the callback fails
		return registry.Add(w, orc, Poisoned{})     // moves the entity: health is void from here on
	})
	fmt.Println("wounded:", err)

	check(reg.Update(func(w *registry.Window) error {
		health := must(registry.Peek[Health](w, orc)) // a copy
		at := must(registry.Peek[Position](w, orc))
		fmt.Println(health, at, "poisoned:", registry.Has[Poisoned](w, orc))
		return nil
	}))

	points := must(registry.NewCells[Health](reg)) // resolved once
	check(reg.Update(func(w *registry.Window) error {
		targets := []handles.Local{orc, 0} // 0 names nobody
		open := points.Open(w)             // good as long as w is
		for i, health := range open.Each(targets) {
			fmt.Println("target", i, "has", health.Points)
		}
		return nil
	}))

	// A callback that fails has done nothing.
	err = reg.Update(func(w *registry.Window) error {
		check(w.Destroy(orc))
		return fmt.Errorf("the arrow missed")
	})
	fmt.Println(err, "- alive:", reg.Alive(orc))
	// Output:
	// L1.1 <nil> true
	// wounded: <nil>
	// {25} {3 0} poisoned: true
	// target 0 has 25
	// the arrow missed - alive: true
}
