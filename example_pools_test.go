package airlock_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

type Damage struct{ Points int }
type Arrow struct {
	Vel    Velocity
	Damage Damage
}

func Example_pools() {
	reg := must(registry.New(registry.Config{}))
	arrows := must(registry.RegisterClass[Arrow](reg))
	prefabs := pool.NewPrefabs(reg)
	err := pool.Define(prefabs, "Arrow", arrows, Arrow{Damage: Damage{3}}) // what each one starts with
	fmt.Println("defined:", err)

	_ = reg.Update(func(w *registry.Window) error {
		_ = prefabs.Declare(w, "Arrow", 2, pool.Fixed(), true) // or Load(w, "pools/arena.pools.ron")
		first, _ := prefabs.Spawn(w, "Arrow")
		_ = registry.Set(w, first, Damage{99})
		_, _ = prefabs.Spawn(w, "Arrow")
		_, err := prefabs.Spawn(w, "Arrow")
		fmt.Println("a third one:", errors.Is(err, pool.ErrExhausted))

		_ = prefabs.GiveBack(w, first) // so does Destroy, in whatever way, by the next frame
		again, _ := prefabs.Spawn(w, "Arrow")
		damage, _ := registry.Peek[Damage](w, again)
		fmt.Println("its slot has somebody else:", first, "is now", again, "as good as new:", damage.Points == 3)
		return nil
	})
	_ = pool.FormatTable(os.Stdout, prefabs.Stats())
	// Output:
	// defined: <nil>
	// a third one: true
	// its slot has somebody else: L1.1 is now L1.2 as good as new: true
	// Prefab  Cap  In-use  Free  Peak  Grow  Warm
	// Arrow     2       2     0     2  fix   ✓     at its cap, 1 refused
}
