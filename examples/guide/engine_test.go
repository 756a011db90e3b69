package guide_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

func Example_engine() {
	type Fuse struct{ Left float64 } // seconds
	type Bomb struct{ Fuse Fuse }
	type fuses struct{ Fuse []Fuse }
	type Tap struct{ Player int }

	reg := must(registry.New(registry.Config{}))
	bombs := must(registry.RegisterClass[Bomb](reg))
	lit := must(views.NewQuery[fuses](reg))
	engine := must(logic.New(reg, logic.Config{
		Rate:    120,                                       // frames a second; 0 means 60
		OnError: func(err error) { fmt.Println("!", err) }, // what has no caller to be returned to
	}))
	taps := must(logic.NewInbox[Tap](engine, 64)) // values from other goroutines, for systems

	must(engine.AddSystem(logic.PrePhysics, "taps", func(f *logic.Frame) {
		for _, tap := range taps.Drain(f.Frame) {
			// A system may not change structure while loops run: this comes with the next window.
			bomb := must(bombs.SpawnLater(f.Frame, Bomb{Fuse{Left: 0.02}}))
			fmt.Println("player", tap.Player, "lays", bomb)
		}
	}))
	must(engine.AddSystem(logic.Physics, "burn", func(f *logic.Frame) {
		for run := range lit.Runs(f) {
			for i := range run.Fuse {
				if run.Fuse[i].Left -= f.Delta; run.Fuse[i].Left <= 0 {
					fmt.Println("bang")
					_ = engine.Stop() // inside a callback it takes effect after the frame
				}
			}
		}
	}))
	broken := must(engine.AddSystem(logic.Late, "broken", func(*logic.Frame) { panic("oh no") }))

	fmt.Println("step:", engine.Step()) // one frame, and what its systems panicked with
	check(broken.Remove())
	check(taps.Send(Tap{Player: 7}))
	err := engine.Run(context.Background()) // frames at the rate, until Stop
	fmt.Println("ran:", err)
	fmt.Println("again:", errors.Is(engine.Step(), logic.ErrStopped))
	// Output:
	// ! registry: broken panicked in frame 1: oh no
	// step: registry: broken panicked in frame 1: oh no
	// player 7 lays L1.1
	// bang
	// ran: <nil>
	// again: true
}
