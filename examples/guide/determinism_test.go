package guide_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
	"github.com/airlock-ecs/airlock/views"
)

func Example_determinism() {
	type Wealth struct{ Coins int64 }
	type Trader struct{ Wealth Wealth }
	type traders struct{ Wealth []Wealth }

	// run makes a world, and steps it for ten frames. luck is where its system has its numbers from.
	var who handles.Local
	run := func(synctest int, luck func(f *logic.Frame) int64) (*registry.Registry, error) {
		reg := must(registry.New(registry.Config{Deterministic: true, TemporalFrames: 8}))
		must(registry.RegisterComponent[Wealth](reg, registry.InTier(archetype.Temporal))) // hashes are of Temporal components
		class := must(registry.RegisterClass[Trader](reg))
		all := must(views.NewQuery[traders](reg))
		engine := must(logic.New(reg, logic.Config{SyncTest: synctest}))
		defer engine.Stop()
		must(engine.AddSystem(logic.Physics, "trade", func(f *logic.Frame) {
			for run := range all.Runs(f) {
				for i := range run.Wealth {
					run.Wealth[i].Coins += luck(f)
				}
			}
		}))
		check(engine.Defer(func(w *registry.Window) error { who = must(class.Spawn(w, Trader{})); return nil }))
		for range 10 {
			if err := engine.Step(); err != nil {
				return reg, err
			}
		}
		return reg, nil
	}

	// Frame.Rand is seeded by the frame's number: the same on every machine, and after every rollback.
	dice := func(f *logic.Frame) int64 { return f.Rand().Int64N(6) }
	one, err := run(2, dice) // after every frame, two are simulated again and compared
	fmt.Println("checked:", err)
	two, err := run(0, dice)
	fmt.Println("not checked:", err)

	// Hash says whether two states differ, Diff in what.
	check(one.Update(func(a *registry.Window) error {
		return two.Update(func(b *registry.Window) error {
			fmt.Println("the same:", must(snapshot.Hash(a)) == must(snapshot.Hash(b)))
			check(registry.Set(b, who, Wealth{-1}))
			d, found := snapshot.Diff(a, b)
			fmt.Println(found, d.Entity == who, d.Component, d.Field, "is not", d.B)
			return nil
		})
	}))

	// A counter outside of the registry is what a rollback does not take back.
	var counter int64
	_, err = run(2, func(*logic.Frame) int64 { counter++; return counter })
	var desync *logic.DesyncError
	fmt.Println("found:", errors.As(err, &desync))
	fmt.Println("frame", desync.Frame, desync.Difference.Component, desync.Difference.Field)
	// Output:
	// checked: <nil>
	// not checked: <nil>
	// the same: true
	// true true guide_test.Wealth Coins is not -1
	// found: true
	// frame 2 guide_test.Wealth Coins
}
