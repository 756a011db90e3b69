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

func Example_frames() {
	type Height struct{ Metres int }
	type Secret struct{ Word string }
	type Balloon struct {
		Height Height
		Secret Secret
	}
	type heights struct {
		Height []Height `ecs:"read"`
		ID     []handles.Local
	}
	reg := must(registry.New(registry.Config{}))
	must(registry.RegisterComponent[Height](reg, registry.InTier(archetype.Volatile)))
	balloons := must(registry.RegisterClass[Balloon](reg))
	all := must(views.NewQuery[heights](reg, views.Published())) // refuses Cold columns here and now
	up := must(views.NewQuery[struct{ Height []Height }](reg))
	engine := must(logic.New(reg, logic.Config{}))
	must(engine.AddSystem(logic.Physics, "rise", func(f *logic.Frame) {
		for run := range up.Runs(f) {
			for i := range run.Height {
				run.Height[i].Metres++
			}
		}
	}))

	_, err := reg.Acquire()
	fmt.Println("before the first frame:", errors.Is(err, registry.ErrNotPublished))
	var h handles.Local
	check(reg.Update(func(w *registry.Window) (err error) {
		h, err = balloons.Spawn(w, Balloon{Secret: Secret{"xyzzy"}})
		return err
	}))
	check(engine.Step())

	// A snapshot stays what it is, whatever becomes of the world. Release it soon.
	snap := must(reg.Acquire())
	check(reg.Destroy(h))
	check(engine.Step())
	for run := range all.Runs(snap) {
		fmt.Println("frame", snap.FrameNumber(), "had", run.ID, run.Height)
	}
	_, err = registry.Peek[Secret](snap, h)
	fmt.Println("Cold components are not shown:", errors.Is(err, registry.ErrNotPublished))
	fmt.Println("nor is anything written:", errors.Is(registry.Set(snap, h, Height{}), registry.ErrReadOnly))
	snap.Release()

	// Read acquires the newest frame and releases it, whatever the function does.
	check(reg.Read(func(s *registry.Snapshot) error {
		fmt.Println("frame", s.FrameNumber(), "has", all.Count(s))
		return nil
	}))
	// Output:
	// before the first frame: true
	// frame 1 had [L1.1] [{1}]
	// Cold components are not shown: true
	// nor is anything written: true
	// frame 2 has 0
}
