package cookbook_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

func Example_pausing() {
	type Age struct{ Frames int }
	type Plant struct{ Age Age }
	type Clock struct{ Paused bool } // a component of a single entity: saved, hashed and rolled back as any other
	type World struct{ Clock Clock }
	type plants struct{ Age []Age }

	reg := must(registry.New(registry.Config{}))
	must(registry.RegisterComponent[Clock](reg, registry.InTier(archetype.Temporal)))
	class := must(registry.RegisterClass[Plant](reg))
	worlds := must(registry.RegisterClass[World](reg))
	all := must(views.NewQuery[plants](reg))
	engine := must(logic.New(reg, logic.Config{}))
	defer engine.Stop()
	var world handles.Local
	var garden []handles.Local
	check(reg.Update(func(w *registry.Window) (err error) {
		world = must(worlds.Spawn(w, World{}))
		garden, err = class.SpawnBatch(w, 2, nil)
		return err
	}))
	must(engine.AddSystem(logic.Physics, "grow", func(f *logic.Frame) {
		if must(registry.Peek[Clock](f, world)).Paused {
			return // frames go on, and with them the airlock: players can join and leave
		}
		for run := range all.Runs(f) {
			for i := range run.Age {
				run.Age[i].Frames++
			}
		}
	}))
	frames := func(n int, fn func(w *registry.Window) error) {
		ticket := must(engine.Enqueue(fn))
		for range n {
			check(engine.Step())
		}
		check(ticket.Err())
		check(reg.Update(func(w *registry.Window) error {
			fmt.Println(must(registry.Peek[Age](w, garden[0])), must(registry.Peek[Age](w, garden[1])), "in sight:", all.Count(w))
			return nil
		}))
	}

	frames(3, func(*registry.Window) error { return nil })
	// The world stands still.
	frames(3, func(w *registry.Window) error { return registry.Set(w, world, Clock{Paused: true}) })
	// It goes on, but for one plant: inactive it lives, keeps its handle and its values, and no loop shows it.
	frames(3, func(w *registry.Window) error {
		check(registry.Set(w, world, Clock{}))
		return registry.SetActive(w, garden[1], false)
	})
	frames(1, func(w *registry.Window) error { return registry.SetActive(w, garden[1], true) })
	// Output:
	// {3} {3} in sight: 2
	// {3} {3} in sight: 2
	// {6} {3} in sight: 1
	// {7} {4} in sight: 2
}
