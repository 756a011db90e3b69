package snapshot_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// Two worlds that went through the same have the same hash. When they do not, Diff says where they part.
func ExampleDiff() {
	type gold struct{ Coins int }
	type purse struct{ Gold gold }
	build := func() (r *registry.Registry, h handles.Local) {
		r, _ = registry.New(registry.Config{Deterministic: true})
		_, _ = registry.RegisterComponent[gold](r, registry.InTier(archetype.Temporal)) // what hashes are about
		purses, _ := registry.RegisterClass[purse](r)
		_ = r.Update(func(w *registry.Window) (err error) {
			h, err = purses.Spawn(w, purse{gold{7}})
			return err
		})
		return r, h
	}
	ours, h := build()
	theirs, _ := build()
	compare := func() {
		_ = ours.Update(func(a *registry.Window) error {
			return theirs.Update(func(b *registry.Window) error {
				left, _ := snapshot.Hash(a)
				right, _ := snapshot.Hash(b)
				fmt.Println("same hash:", left == right)
				if d, found := snapshot.Diff(a, b); found {
					fmt.Println(d.Entity == h, d.Component, d.Field, d.A, d.B)
				}
				return nil
			})
		})
	}
	compare()
	_ = theirs.Update(func(w *registry.Window) error { return registry.Set(w, h, gold{8}) })
	compare()
	// Output:
	// same hash: true
	// same hash: false
	// true snapshot_test.gold Coins 7 8
}
