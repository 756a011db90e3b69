package views_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// A query is a struct of slices. Here one loop moves everything that isn't frozen, and a
// second one reads the result.
func ExampleQuery_Runs() {
	type Ship struct {
		Pos Position
		Vel Velocity
	}
	type movers struct {
		Pos []Position
		Vel []Velocity `ecs:"read"`
	}
	type placed struct {
		ID  []handles.Local
		Pos []Position `ecs:"read"`
	}
	r, err := registry.New(registry.Config{})
	if err != nil {
		panic(err)
	}
	ships, err := registry.RegisterClass[Ship](r)
	if err != nil {
		panic(err)
	}
	if _, err := registry.RegisterComponent[Frozen](r); err != nil {
		panic(err)
	}
	moving, err := views.NewQuery[movers](r, views.Without[Frozen]())
	if err != nil {
		panic(err)
	}
	all, err := views.NewQuery[placed](r)
	if err != nil {
		panic(err)
	}

	err = r.Update(func(w *registry.Window) error {
		for i := range 3 {
			ship, err := ships.Spawn(w, Ship{Position{float64(i), 0}, Velocity{10, 1}})
			if err != nil {
				return err
			}
			if i == 1 {
				if err := registry.Add(w, ship, Frozen{}); err != nil {
					return err
				}
			}
		}
		for m := range moving.Runs(w) {
			pos, vel := m.Pos, m.Vel // hoisted: the loop then costs what it costs over plain slices
			for i := range pos {
				pos[i].X += vel[i].X
				pos[i].Y += vel[i].Y
			}
		}
		fmt.Println(moving.Count(w), "of", all.Count(w), "moved")
		for m := range all.Runs(w) {
			for i, id := range m.ID {
				fmt.Println(id, m.Pos[i])
			}
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// 2 of 3 moved
	// L1.1 {10 1}
	// L3.1 {12 1}
	// L2.1 {1 0}
}

// A column that isn't registered is refused when the query is made, with its field.
func ExampleNewQuery() {
	type Typo struct{ X float64 }
	r, err := registry.New(registry.Config{})
	if err != nil {
		panic(err)
	}
	_, err = views.NewQuery[struct{ Foe []Typo }](r)
	fmt.Println(err)
	// Output:
	// views: query struct { Foe []views_test.Typo }: field Foe []views_test.Typo: views_test.Typo: archetype: component not registered
}
