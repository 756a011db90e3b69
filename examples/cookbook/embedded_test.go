package cookbook_test

import (
	"fmt"
	"time"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// loop is somebody else's main loop, a window system's say: it calls draw once for each picture, whenever that is.
func loop(draw func(elapsed time.Duration)) {
	for _, ms := range []int{16, 17, 40, 5} {
		draw(time.Duration(ms) * time.Millisecond)
	}
}

func Example_embedded() {
	type Position struct{ X float64 }
	type Ball struct{ Position Position }
	type moving struct{ Position []Position }
	const rate = 100
	const step = time.Second / rate

	reg := must(registry.New(registry.Config{}))
	must(registry.RegisterComponent[Position](reg, registry.InTier(archetype.Volatile)))
	balls := must(registry.RegisterClass[Ball](reg))
	all := must(views.NewQuery[moving](reg))
	engine := must(logic.New(reg, logic.Config{Rate: rate})) // Frame.Delta is 1/Rate, whoever steps
	defer engine.Stop()
	must(engine.AddSystem(logic.Physics, "roll", func(f *logic.Frame) {
		for run := range all.Runs(f) {
			for i := range run.Position {
				run.Position[i].X += 100 * f.Delta
			}
		}
	}))
	var ball handles.Local
	check(reg.Update(func(w *registry.Window) (err error) {
		ball, err = balls.Spawn(w, Ball{})
		return err
	}))

	// As many frames as time has passed for, and the rest is kept for the next picture. Other goroutines Spawn meanwhile:
	// they are served by the next Step.
	var owed time.Duration
	loop(func(elapsed time.Duration) {
		frames := 0
		for owed += elapsed; owed >= step && frames < 5; owed -= step {
			check(engine.Step())
			frames++
		}
		check(reg.Read(func(s *registry.Snapshot) error {
			x := must(registry.Peek[Position](s, ball)).X
			fmt.Printf("%d frames, %v owed, drawn at %.1f\n", frames, owed, x)
			return nil
		}))
	})
	// Output:
	// 1 frames, 6ms owed, drawn at 1.0
	// 2 frames, 3ms owed, drawn at 3.0
	// 4 frames, 3ms owed, drawn at 7.0
	// 0 frames, 8ms owed, drawn at 7.0
}
