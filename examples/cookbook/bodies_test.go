package cookbook_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// body is what a physics library keeps, in an array of its own. It knows nothing of entities.
type body struct{ x, speed float64 }

type bodies struct{ at []body }

// fit makes the array as long as cache indices go: any window may raise that.
func (b *bodies) fit(reg *registry.Registry) {
	if n := int(reg.CacheCap()); n > len(b.at) {
		b.at = append(b.at, make([]body, n-len(b.at))...)
	}
}

func (b *bodies) step() {
	for i := range b.at { // all of the array, straight on: no look-ups
		b.at[i].x += b.at[i].speed
	}
}

func Example_bodies() {
	type Position struct{ X float64 }
	type OnFire struct{}
	type Car struct{ Position Position }
	type cars struct {
		Position []Position
		At       []uint32 `ecs:"index"` // the cache indices of the run
	}
	reg := must(registry.New(registry.Config{}))
	must(registry.RegisterComponent[OnFire](reg))
	class := must(registry.RegisterClass[Car](reg))
	all := must(views.NewQuery[cars](reg))
	engine := must(logic.New(reg, logic.Config{}))
	defer engine.Stop()
	physics := &bodies{}

	// Entities move when a component is added or removed, and in compaction. The array follows, in place: in the order
	// of a batch no body is overwritten that is still to move. This runs before the call that moves them returns.
	must(reg.OnMove(func(moves []registry.Move) {
		physics.fit(reg)
		for _, m := range moves {
			physics.at[m.New], physics.at[m.Old] = physics.at[m.Old], body{}
		}
	}))
	must(engine.AddSystem(logic.Physics, "physics", func(f *logic.Frame) {
		physics.step()
		for run := range all.Runs(f) {
			for i, at := range run.At {
				run.Position[i].X = physics.at[at].x
			}
		}
	}))

	var garage []handles.Local
	check(reg.Update(func(w *registry.Window) (err error) {
		garage, err = class.SpawnBatch(w, 3, nil)
		physics.fit(reg)
		for i, h := range garage {
			at, _ := registry.CacheIndex(w, h)
			physics.at[at] = body{speed: float64(i + 1)}
		}
		return err
	}))
	check(engine.Step())
	check(reg.Update(func(w *registry.Window) error { return registry.Add(w, garage[0], OnFire{}) }))
	fmt.Println(reg.Update(func(w *registry.Window) error {
		check(registry.Add(w, garage[1], OnFire{}))
		return errors.New("the match was wet") // and the array is told the way back
	}))
	check(engine.Step())
	check(reg.Update(func(w *registry.Window) error {
		for _, h := range garage {
			at, _ := registry.CacheIndex(w, h)
			fmt.Println(h, must(registry.Peek[Position](w, h)).X, physics.at[at])
		}
		return nil
	}))
	// Output:
	// the match was wet
	// L1.1 2 {2 1}
	// L2.1 4 {4 2}
	// L3.1 6 {6 3}
}
