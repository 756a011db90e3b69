package guide_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_death() {
	type Moth struct{} // a class of bare entities
	reg := must(registry.New(registry.Config{}))
	moths := must(registry.RegisterClass[Moth](reg))
	engine := must(logic.New(reg, logic.Config{LocalWindow: 2})) // frames that an index waits; 2 is the default
	spawn := func() (h handles.Local) {
		check(reg.Update(func(w *registry.Window) (err error) { h, err = moths.Spawn(w, Moth{}); return err }))
		return h
	}
	look := func(when string) {
		s := reg.Stats()
		fmt.Printf("%-16s live %d, tombstones %d, slots %d, pending %d, free %d\n",
			when, s.Live, s.Tombstoned, s.Allocated, s.Local.Pending, s.Local.Free)
	}

	first := spawn()
	check(engine.Step())
	look("alive:")
	check(reg.Update(func(w *registry.Window) error {
		w.Named("the lamp") // obituaries repeat it
		return w.Destroy(first)
	}))
	look("destroyed:")
	check(engine.Step()) // its top reclaims the slot
	look("reclaimed:")
	second := spawn()
	fmt.Println("another index, the same slot:", second)
	check(engine.Step())
	check(engine.Step())
	look("confirmed:")
	third := spawn()
	fmt.Println("the next generation:", third, "- the first is still dead:", !reg.Alive(first))

	died, _ := reg.Obituary(first)
	fmt.Printf("%v died in frame %d of %s; %v\n", first, died.Frame, died.Cause, errors.Is(reg.Destroy(first), registry.ErrStale))
	// Output:
	// alive:           live 1, tombstones 0, slots 1, pending 0, free 0
	// destroyed:       live 0, tombstones 1, slots 1, pending 0, free 0
	// reclaimed:       live 0, tombstones 0, slots 1, pending 1, free 0
	// another index, the same slot: L2.1
	// confirmed:       live 1, tombstones 0, slots 1, pending 0, free 1
	// the next generation: L1.2 - the first is still dead: true
	// L1.1 died in frame 1 of the lamp; true
}
