package guide_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

func Example_rollback() {
	type Runner struct {
		Player uint8
		X      int
	}
	type Athlete struct{ Runner Runner }
	type runners struct{ Runner []Runner }

	// A ring of 8 frames of every Temporal component: a power of two, 8 at the least.
	reg := must(registry.New(registry.Config{TemporalFrames: 8}))
	must(registry.RegisterComponent[Runner](reg, registry.InTier(archetype.Temporal)))
	athletes := must(registry.RegisterClass[Athlete](reg))
	all := must(views.NewQuery[runners](reg))
	engine := must(logic.New(reg, logic.Config{}))
	defer engine.Stop()

	// A system of a world that rolls back goes by the state, the inputs and Frame.Rand of its frame, and nothing else.
	must(engine.AddSystem(logic.Physics, "run", func(f *logic.Frame) {
		for run := range all.Runs(f) {
			for i := range run.Runner {
				if input, ok := f.Input(run.Runner[i].Player); ok {
					run.Runner[i].X += int(input[0])
				}
			}
		}
	}))
	var h handles.Local
	check(reg.Update(func(w *registry.Window) (err error) {
		h, err = athletes.Spawn(w, Athlete{Runner{Player: 1}})
		return err
	}))
	where := func() {
		check(reg.Read(func(s *registry.Snapshot) error {
			fmt.Println("frame", s.FrameNumber(), "at", must(registry.Peek[Runner](s, h)).X)
			return nil
		}))
	}

	check(engine.Input(1, 1, []byte{10})) // player 1's input for frame 1, in time
	for range 4 {
		check(engine.Step())
	}
	where()

	// An input for a frame that has been: the next Step goes back to frame 2 and does 3 and 4 again, then 5.
	check(engine.Input(1, 3, []byte{100}))
	check(engine.Step())
	where()
	fmt.Println("rollbacks:", engine.Stats().Rollbacks)

	// Rollback asks for the same without an input. What is older than the ring is gone.
	for range 10 {
		check(engine.Step())
	}
	fmt.Println(errors.Is(engine.Rollback(1), logic.ErrTooOld), engine.Rollback(engine.FrameNumber()-3))
	// Output:
	// frame 4 at 10
	// frame 5 at 110
	// rollbacks: 1
	// true <nil>
}
