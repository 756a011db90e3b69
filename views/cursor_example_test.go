package views_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// A view follows its entity: what moves it costs the next Get a look, and user code nothing.
func ExampleEntity() {
	type Ship struct {
		Pos Position
		Vel Velocity
	}
	type pilot struct {
		Pos  *Position
		Vel  *Velocity `ecs:"read"`
		Name *Name     `ecs:"optional"`
	}
	r, err := registry.New(registry.Config{})
	if err != nil {
		panic(err)
	}
	ships, err := registry.RegisterClass[Ship](r)
	if err != nil {
		panic(err)
	}
	if _, err := registry.RegisterComponent[Name](r); err != nil {
		panic(err)
	}
	err = r.Update(func(w *registry.Window) error {
		ship, err := ships.Spawn(w, Ship{Vel: Velocity{X: 3}})
		if err != nil {
			return err
		}
		view, err := views.NewEntity[pilot](r, ship)
		if err != nil {
			return err
		}
		me, err := view.Get(w)
		if err != nil {
			return err
		}
		me.Pos.X += me.Vel.X
		fmt.Println(*me.Pos, me.Name == nil)

		if err := registry.Add(w, ship, Name{Text: "Dora"}); err != nil { // it moves
			return err
		}
		if me, err = view.Get(w); err != nil {
			return err
		}
		me.Pos.X += me.Vel.X
		fmt.Println(*me.Pos, me.Name.Text)

		if err := w.Destroy(ship); err != nil {
			return err
		}
		_, err = view.Get(w)
		fmt.Println(errors.Is(err, registry.ErrStale))
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// {3 0} true
	// {6 0} Dora
	// true
}

// A construct is an object with an entity of its own, which ends with it.
func ExampleConstruct() {
	type Ship struct {
		Pos Position
		Vel Velocity
	}
	type body struct {
		Pos *Position
		Vel *Velocity `ecs:"read"`
	}
	type Rocket struct {
		*views.Construct[body]
		Fuel int
	}
	r, err := registry.New(registry.Config{})
	if err != nil {
		panic(err)
	}
	ships, err := registry.RegisterClass[Ship](r)
	if err != nil {
		panic(err)
	}
	var rocket Rocket
	err = r.Update(func(w *registry.Window) (err error) {
		rocket.Fuel = 2
		rocket.Construct, err = views.NewConstruct[body](w, ships, Ship{Vel: Velocity{Y: 10}})
		return err
	})
	if err != nil {
		panic(err)
	}
	for rocket.Fuel >= 0 {
		err = r.Update(func(w *registry.Window) error {
			body, err := rocket.Get(w)
			if err != nil {
				return err
			}
			body.Pos.Y += body.Vel.Y
			fmt.Println("fuel", rocket.Fuel, "height", body.Pos.Y)
			return nil
		})
		if err != nil {
			panic(err)
		}
		rocket.Fuel--
	}
	rocket.Close()
	fmt.Println(r.Alive(rocket.Entity()))
	// Output:
	// fuel 2 height 10
	// fuel 1 height 20
	// fuel 0 height 30
	// false
}

// A field is one value of one entity at a time. It doesn't matter to it that Altitude is split
// into columns.
func ExampleField() {
	type Lamp struct{ Light Altitude }
	r, err := registry.New(registry.Config{})
	if err != nil {
		panic(err)
	}
	if _, err := registry.RegisterComponent[Altitude](r, registry.Split()); err != nil {
		panic(err)
	}
	lamps, err := registry.RegisterClass[Lamp](r)
	if err != nil {
		panic(err)
	}
	y, err := views.NewField[Altitude, float32](r, 0, "Y")
	if err != nil {
		panic(err)
	}
	err = r.Update(func(w *registry.Window) error {
		for i := range 3 {
			if _, err := lamps.Spawn(w, Lamp{Altitude{Y: float32(i)}}); err != nil {
				return err
			}
		}
		for y.Advance(w) { // bound to none at first, it begins with the first
			if err := y.Add(w, 10); err != nil {
				return err
			}
			now, err := y.Get(w)
			if err != nil {
				return err
			}
			fmt.Println(y.Entity(), now)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// L1.1 10
	// L2.1 11
	// L3.1 12
}
