package guide_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

func Example_journal() {
	type Age struct{ Frames int }
	type Tree struct{ Age Age }
	type trees struct{ Age []Age }

	// What the recorded run and its replay have in common: how the registry is made, and the systems.
	open := func() (*registry.Registry, *registry.Class[Tree]) {
		reg := must(registry.New(registry.Config{Deterministic: true}))
		must(registry.RegisterComponent[Age](reg, registry.InTier(archetype.Temporal)))
		return reg, must(registry.RegisterClass[Tree](reg))
	}
	systems := func(e *logic.Engine) error {
		all, err := views.NewQuery[trees](e.Registry())
		if err != nil {
			return err
		}
		_, err = e.AddSystem(logic.Physics, "grow", func(f *logic.Frame) {
			for run := range all.Runs(f) {
				for i := range run.Age {
					run.Age[i].Frames++
				}
			}
		})
		return err
	}
	dir := must(os.MkdirTemp("", "journal"))
	defer os.RemoveAll(dir)

	reg, forest := open()
	engine := must(logic.New(reg, logic.Config{}))
	check(systems(engine))
	check(engine.Journal(dir)) // from here on, until Stop
	for frame := range 30 {
		check(engine.Defer(func(w *registry.Window) error {
			_, err := forest.Spawn(w, Tree{Age{-frame}})
			return err
		}))
		check(engine.Step())
	}
	check(engine.Stop())

	again, _ := open()
	frame, err := logic.Replay(again, os.DirFS(dir), logic.WithSystems(systems))
	fmt.Println("identical through frame", frame, err, "with", again.Stats().Live, "trees")

	// Other systems come out otherwise, and the first frame that does is named.
	other, _ := open()
	_, err = logic.Replay(other, os.DirFS(dir))
	var diverged *logic.DivergedError
	fmt.Println("without systems:", errors.As(err, &diverged), "- frame", diverged.Frame)
	// Output:
	// identical through frame 30 <nil> with 30 trees
	// without systems: true - frame 1
}
