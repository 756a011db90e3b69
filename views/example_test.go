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

// Spans yields chunks whole. A kernel that can do no harm computes every lane, and a loop over what is
// sparse goes by the mask.
func ExampleQuery_Spans() {
	type Lamp struct{ Light Altitude } // registered with Split: each field is a column
	type lamps struct {
		Y  []float32 `ecs:"Altitude.Y"`
		ID []handles.Local
		At []uint32 `ecs:"index"`
	}
	r, err := registry.New(registry.Config{})
	if err != nil {
		panic(err)
	}
	if _, err := registry.RegisterComponent[Altitude](r, registry.Split()); err != nil {
		panic(err)
	}
	class, err := registry.RegisterClass[Lamp](r)
	if err != nil {
		panic(err)
	}
	all, err := views.NewQuery[lamps](r)
	if err != nil {
		panic(err)
	}
	err = r.Update(func(w *registry.Window) error {
		hs, err := class.SpawnBatch(w, 5, func(i int, e *Lamp) { e.Light.Y = float32(i) })
		if err != nil {
			return err
		}
		if err := w.Destroy(hs[2]); err != nil {
			return err
		}
		for m, mask := range all.Spans(w) {
			for i := range m.Y {
				m.Y[i] *= 10 // the dead one as well
			}
			fmt.Println(mask.Count(), "of", len(m.Y), "lanes live, all of them:", mask.Full())
			for _, i := range mask.Live() {
				fmt.Println(m.ID[i], m.At[i]-mask.Base(), m.Y[i])
			}
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// 4 of 5 lanes live, all of them: false
	// L1.1 0 0
	// L2.1 1 10
	// L4.1 3 30
	// L5.1 4 40
}

// SpawnColumns spawns many entities and writes their columns, not one entity after another.
func ExampleSpawnColumns() {
	type Spark struct {
		Pos Position
		Vel Velocity
	}
	type sparks struct {
		Pos []Position
		Vel []Velocity
		ID  []handles.Local
	}
	r, err := registry.New(registry.Config{})
	if err != nil {
		panic(err)
	}
	class, err := registry.RegisterClass[Spark](r)
	if err != nil {
		panic(err)
	}
	err = r.Update(func(w *registry.Window) error {
		x := 0.0
		hs, err := views.SpawnColumns(w, class, 3, func(s *sparks) {
			for i := range s.Pos {
				s.Pos[i] = Position{x, 1}
				x++
			}
			for i := range s.Vel {
				s.Vel[i] = Velocity{0, -10}
			}
		})
		if err != nil {
			return err
		}
		for _, h := range hs {
			pos, err := registry.Peek[Position](w, h)
			if err != nil {
				return err
			}
			fmt.Println(h, pos)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// L1.1 {0 1}
	// L2.1 {1 1}
	// L3.1 {2 1}
}
