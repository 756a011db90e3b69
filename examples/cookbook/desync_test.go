package cookbook_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/stress"
	"github.com/airlock-ecs/airlock/views"
)

func Example_desync() {
	type Prize struct{ Place int32 }
	type Horse struct{ Prize Prize }
	type horses struct {
		Prize []Prize
		ID    []handles.Local
	}
	// build makes the world with one of two systems. Prizes go to whoever comes first.
	build := func(steady bool) (*registry.Registry, *registry.Class[Horse], *logic.Engine) {
		reg := must(registry.New(registry.Config{Deterministic: true, TemporalFrames: 8}))
		must(registry.RegisterComponent[Prize](reg, registry.InTier(archetype.Temporal)))
		class := must(registry.RegisterClass[Horse](reg))
		all := must(views.NewQuery[horses](reg))
		// Tests and nightly runs have SyncTest on: each frame is done again and compared.
		engine := must(logic.New(reg, logic.Config{SyncTest: 1}))
		must(engine.AddSystem(logic.Physics, "prizes", func(f *logic.Frame) {
			field := map[handles.Local]*Prize{}
			for run := range all.Runs(f) {
				for i, id := range run.ID {
					field[id] = &run.Prize[i]
				}
			}
			place := int32(0)
			if steady {
				for _, id := range slices.Sorted(maps.Keys(field)) {
					place++
					field[id].Place = place
				}
				return
			}
			for _, prize := range field { // the order of a map is another one each time
				place++
				prize.Place = place
			}
		}))
		return reg, class, engine
	}
	for _, steady := range []bool{false, true} {
		_, class, engine := build(steady)
		check(engine.Defer(func(w *registry.Window) error { _, err := class.SpawnBatch(w, 50, nil); return err }))
		var desync *logic.DesyncError
		for range 20 {
			if err := engine.Step(); errors.As(err, &desync) {
				// Which frame, whose, of which component: the system that writes it is the one to look at.
				fmt.Println("found:", desync.Difference.Component, desync.Difference.Field)
				break
			} else if err != nil {
				panic(err)
			}
		}
		fmt.Println("steady:", steady, "desync:", desync != nil)
		check(engine.Stop())
	}

	// What a hash does not cover cannot be found: HashCovers says which fields these are.
	fmt.Println(stress.HashCovers(func() (*registry.Registry, *registry.Class[Horse], error) {
		reg, class, engine := build(true)
		return reg, class, engine.Stop()
	}, Horse{}))
	// Output:
	// found: cookbook_test.Prize Place
	// steady: false desync: true
	// steady: true desync: false
	// <nil>
}
