package registry_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// Without an engine, Update is the way to change structure. A callback that fails leaves
// nothing behind, and a handle never names anybody but its own entity.
func Example() {
	type Name struct{ Text string }
	type Health struct{ Points int }
	type Knight struct {
		Name   Name
		Health Health
	}
	r, err := registry.New(registry.Config{MaxEntities: 100})
	if err != nil {
		panic(err)
	}
	knights, err := registry.RegisterClass[Knight](r)
	if err != nil {
		panic(err)
	}
	_, err = r.Observe(registry.Destroyed, func(_ *registry.Frame, events []registry.Event) {
		for _, e := range events {
			ob, _ := r.Obituary(e.Entity)
			fmt.Printf("%v died of %s\n", e.Entity, ob.Cause)
		}
	})
	if err != nil {
		panic(err)
	}

	var bors handles.Local
	err = r.Update(func(w *registry.Window) error {
		bors, err = knights.Spawn(w, Knight{Name{"Bors"}, Health{10}})
		return err
	})
	fmt.Println(bors, err, r.Alive(bors))

	err = r.Update(func(w *registry.Window) error {
		if err := registry.Set(w, bors, Health{1}); err != nil {
			return err
		}
		if err := w.Destroy(bors); err != nil {
			return err
		}
		return errors.New("the spell failed")
	})
	fmt.Println(err, r.Alive(bors))

	err = r.Update(func(w *registry.Window) error {
		health, err := registry.Get[Health](w, bors)
		if err != nil {
			return err
		}
		fmt.Println("health", health.Points)
		w.Named("old age")
		return w.Destroy(bors)
	})
	fmt.Println(err, r.Alive(bors), r.Destroy(bors))

	// The next frame reclaims the slot, and later the index may serve again.
	err = r.Update(func(w *registry.Window) error {
		w.ProcessDeferredDestructions()
		w.ConfirmLocalRecycles()
		galahad, err := knights.Spawn(w, Knight{Name{"Galahad"}, Health{12}})
		fmt.Println(galahad, galahad == bors)
		return err
	})
	fmt.Println(err, r.Stats().Live)
	// Output:
	// L1.1 <nil> true
	// the spell failed true
	// health 10
	// L1.1 died of old age
	// <nil> false registry: stale handle
	// L1.2 false
	// <nil> 1
}
