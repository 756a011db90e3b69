package guide_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

func Example_pools() {
	type Speed struct{ X float64 }
	type Fuel struct{ Litres int }
	type Rocket struct {
		Speed Speed
		Fuel  Fuel
	}
	type Flame struct{ Speed Speed }

	reg := must(registry.New(registry.Config{}))
	rockets := must(registry.RegisterClass[Rocket](reg))
	flames := must(registry.RegisterClass[Flame](reg))
	engine := must(logic.New(reg, logic.Config{}))

	// A prefab is a class, values to begin with, and children. One Prefabs a registry.
	prefabs := pool.NewPrefabs(reg)
	check(pool.Define(prefabs, "Rocket", rockets, Rocket{Fuel: Fuel{60}}, pool.Child("Flame")))
	check(pool.Define(prefabs, "Flame", flames, Flame{}))
	var first handles.Local
	check(reg.Update(func(w *registry.Window) error {
		check(prefabs.Declare(w, "Rocket", 2, pool.Fixed(), true))
		check(prefabs.Declare(w, "Flame", 2, pool.Additive(2), true))
		first = must(prefabs.Spawn(w, "Rocket")) // and its flame
		check(registry.Set(w, first, Fuel{1}))
		must(prefabs.Spawn(w, "Rocket"))
		_, err := prefabs.Spawn(w, "Rocket")
		fmt.Println("a third:", errors.Is(err, pool.ErrExhausted))
		return nil
	}))

	// In a system, SpawnNow takes what is idle, at once; what dies in whatever way goes back.
	must(engine.AddSystem(logic.Physics, "launch", func(f *logic.Frame) {
		h, err := prefabs.SpawnNow(f.Frame, "Rocket")
		fmt.Println("frame", f.FrameNumber(), h, err)
	}))
	check(engine.Step())
	check(reg.Destroy(first))
	check(engine.Step())
	rocket, _ := prefabs.StatsOf("Rocket")
	flame, _ := prefabs.StatsOf("Flame")
	fmt.Println("rockets in use:", rocket.InUse, "flames:", flame.InUse, "refused:", rocket.Refused)

	// Pool is the same for Go objects: taken, and given back once.
	buffers := must(pool.New(pool.Config[[]byte]{Capacity: 1, Grow: pool.Fixed(), Reset: func(b *[]byte) { *b = (*b)[:0] }}))
	buf := must(buffers.Take())
	*buf.Ptr() = append(*buf.Ptr(), "hello"...)
	fmt.Println(buf.Release(), errors.Is(buf.Release(), pool.ErrReleased))
	// Output:
	// a third: true
	// frame 1 L0.0 pool: spawning "Rocket": prefab "Rocket" has no idle slots left, and a frame makes none: registry: exhausted
	// frame 2 L1.2 <nil>
	// rockets in use: 2 flames: 2 refused: 2
	// <nil> true
}
