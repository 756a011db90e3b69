package logic_test

import (
	"fmt"
	"os"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// A world is recorded, and done again from what was recorded.
func ExampleReplay() {
	type height struct{ Y float64 }
	type ball struct{ Height height }

	// What both runs have: the registry, and systems that take nothing from elsewhere.
	open := func() (*registry.Registry, *registry.Class[ball]) {
		r, _ := registry.New(registry.Config{Deterministic: true})
		registry.RegisterComponent[height](r, registry.InTier(archetype.Temporal)) // so that hashes cover it
		balls, _ := registry.RegisterClass[ball](r)
		return r, balls
	}
	systems := func(e *logic.Engine) error {
		all, err := views.NewQuery[struct{ Height []height }](e.Registry())
		if err != nil {
			return err
		}
		_, err = e.AddSystem(logic.Physics, "fall", func(f *logic.Frame) {
			for run := range all.Runs(f) {
				for i := range run.Height {
					run.Height[i].Y -= f.Delta
				}
			}
		})
		return err
	}

	dir, _ := os.MkdirTemp("", "journal")
	defer os.RemoveAll(dir)
	r, balls := open()
	e, _ := logic.New(r, logic.Config{})
	systems(e)
	if err := e.Journal(dir); err != nil {
		fmt.Println(err)
	}
	for n := range 3 {
		e.Defer(func(w *registry.Window) error {
			_, err := balls.Spawn(w, ball{height{float64(n)}})
			return err
		})
		e.Step()
	}
	e.Stop()

	again, _ := open()
	frame, err := logic.Replay(again, os.DirFS(dir), logic.WithSystems(systems))
	fmt.Println(frame, again.Stats().Live, err)
	// Output: 3 3 <nil>
}
