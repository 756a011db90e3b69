package logic_test

import (
	"context"
	"fmt"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

type health struct{ Points int }

type monster struct{ Health health }

// A goroutine spawns through the airlock while the engine runs, and changes what it spawned.
func Example() {
	reg, _ := registry.New(registry.Config{})
	monsters, _ := registry.RegisterClass[monster](reg)
	engine, _ := logic.New(reg, logic.Config{Rate: 120})

	running := make(chan error)
	go func() { running <- engine.Run(context.Background()) }()

	// The calling goroutine writes the entity itself, while Logic waits.
	h, err := logic.Spawn(context.Background(), engine, monsters, monster{health{30}})
	fmt.Println("alive:", reg.Alive(h), err)

	// Logic does this at its next window; the ticket tells how it went.
	ticket, _ := engine.Enqueue(func(w *registry.Window) error {
		return registry.Set(w, h, health{20})
	})
	<-ticket.Done()
	fmt.Println("wounded:", ticket.Err())

	// What fails is undone.
	err = engine.Spawn(context.Background(), func(w *registry.Window) error {
		if err := w.Destroy(h); err != nil {
			return err
		}
		return fmt.Errorf("spared")
	})
	fmt.Println("alive:", reg.Alive(h), err)

	_ = engine.Stop()
	fmt.Println("run:", <-running)
	// Output:
	// alive: true <nil>
	// wounded: <nil>
	// alive: true spared
	// run: <nil>
}

// Without Run, frames are stepped one at a time: in tests, or in someone's own loop.
func ExampleEngine_Step() {
	reg, _ := registry.New(registry.Config{})
	monsters, _ := registry.RegisterClass[monster](reg)
	engine, _ := logic.New(reg, logic.Config{})

	_, _ = engine.AddSystem(logic.Physics, "spawner", func(f *logic.Frame) {
		_, _ = monsters.SpawnLater(f.Frame, monster{health{int(f.FrameNumber())}})
	})
	for range 3 {
		_ = engine.Step()
	}
	fmt.Println(engine.FrameNumber(), "frames,", reg.Stats().Live, "monsters")
	_ = engine.Stop()
	// Output: 3 frames, 2 monsters
}
