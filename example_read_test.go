package airlock_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

type Score struct{ Points int }
type Player struct{ Score Score }
type scores struct {
	Score []Score `ecs:"read"`
}

func Example_read() {
	reg := must(registry.New(registry.Config{}))
	must(registry.RegisterComponent[Score](reg, registry.InTier(archetype.Volatile))) // so that readers see it
	players := must(registry.RegisterClass[Player](reg))
	board := must(views.NewQuery[scores](reg, views.Published())) // refuses what readers do not see
	engine := must(logic.New(reg, logic.Config{}))

	player := must(engine.Enqueue(func(w *registry.Window) error {
		_, err := players.Spawn(w, Player{Score{Points: 7}})
		return err
	}))
	_ = engine.Step() // or Run, on a goroutine of its own
	fmt.Println("spawned:", player.Err())

	report := make(chan string)
	go func() { // any goroutine, at any time: nobody waits, and Logic writes the next frame meanwhile
		_ = reg.Read(func(s *registry.Snapshot) error {
			points := 0
			for m := range board.Runs(s) {
				for i := range m.Score {
					points += m.Score[i].Points
				}
			}
			report <- fmt.Sprintf("frame %d: %d points", s.FrameNumber(), points)
			return nil
		})
	}()
	fmt.Println(<-report)
	// Output:
	// spawned: <nil>
	// frame 1: 7 points
}
