package cookbook_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_kept() {
	type Health struct{ Points int }
	type Wolf struct{ Health Health }
	reg := must(registry.New(registry.Config{}))
	wolves := must(registry.RegisterClass[Wolf](reg))
	engine := must(logic.New(reg, logic.Config{}))
	defer engine.Stop()
	spawn := func() (h handles.Local) {
		check(reg.Update(func(w *registry.Window) (err error) {
			h, err = wolves.Spawn(w, Wolf{Health{10}})
			return err
		}))
		return h
	}

	// A hunter's goroutine keeps its prey's handle, as it likes: a handle is a number, owns nothing, and keeps nobody alive.
	prey := spawn()
	check(reg.Update(func(w *registry.Window) error {
		w.Named("another hunter")
		return w.Destroy(prey)
	}))
	for range 4 * 60 * 60 { // an hour of wolves, one after another, at four a second
		check(reg.Destroy(spawn()))
		check(engine.Step())
	}
	now := spawn()
	fmt.Println("kept:", prey, "the newest:", now, "- an index serves again, with the next generation")

	// Whatever is done with the old handle, nobody else is hit.
	fmt.Println("alive:", reg.Alive(prey))
	fmt.Println("destroy:", reg.Destroy(prey))
	err := reg.Update(func(w *registry.Window) error { return registry.Set(w, prey, Health{0}) })
	switch {
	case errors.Is(err, registry.ErrStale): // the usual end of a hunt, and no failure
		_, remembered := reg.Obituary(prey) // the last 4096 deaths are
		fmt.Println("set: dead, remembered:", remembered)
	case err != nil:
		panic(err)
	}
	check(reg.Update(func(w *registry.Window) error {
		fmt.Println("the newest has", must(registry.Peek[Health](w, now)).Points)
		return nil
	}))
	// Output:
	// kept: L1.1 the newest: L2.3601 - an index serves again, with the next generation
	// alive: false
	// destroy: registry: stale handle
	// set: dead, remembered: false
	// the newest has 10
}
