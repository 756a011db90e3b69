package main

import (
	"fmt"
	"io"
	"os"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
	"github.com/airlock-ecs/airlock/views/wide"
)

// The components. Body is split: one column for each of its fields, which wide kernels want.
type (
	Body struct{ X, Speed float32 }
	Fuel struct{ Left int }
	Burn struct{} // a tag

	Rocket struct {
		Body Body
		Fuel Fuel
	}
)

// moving shows two fields of a split component as plain slices.
type moving struct {
	X     []float32 `ecs:"Body.X"`
	Speed []float32 `ecs:"Body.Speed,read"`
}

// burning shows who burns.
type burning struct {
	Fuel []Fuel
	ID   []handles.Local
}

// cockpit is a cursor on one rocket: a struct of pointers. Body is split, so it names a field.
type cockpit struct {
	Fuel *Fuel
	X    *float32 `ecs:"Body.X,read"`
}

const rockets = 1000

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "views:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	r, err := registry.New(registry.Config{})
	if err != nil {
		return err
	}
	if _, err := registry.RegisterComponent[Body](r, registry.Split()); err != nil {
		return err
	}
	if _, err := registry.RegisterComponent[Burn](r); err != nil {
		return err
	}
	class, err := registry.RegisterClass[Rocket](r)
	if err != nil {
		return err
	}
	move, err := views.NewQuery[moving](r)
	if err != nil {
		return err
	}
	burn, err := views.NewQuery[burning](r, views.With[Burn]())
	if err != nil {
		return err
	}

	e, err := logic.New(r, logic.Config{})
	if err != nil {
		return err
	}
	defer e.Stop()

	// Whole columns at once: the rockets, and Burn for every tenth.
	var hs []handles.Local
	err = r.Update(func(w *registry.Window) error {
		n := 0
		hs, err = views.SpawnColumns(w, class, rockets, func(c *struct {
			Speed []float32 `ecs:"Body.Speed"`
			Fuel  []Fuel
		}) {
			for i := range c.Speed {
				c.Speed[i], c.Fuel[i].Left = float32(n), 5+n%10
				n++
			}
		})
		if err != nil {
			return err
		}
		for i := 0; i < len(hs); i += 10 {
			if err := registry.Add(w, hs[i], Burn{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	// A wide kernel over whole chunks: lanes that are not live are computed, too, and nobody sees them.
	_, err = e.AddSystem(logic.Physics, "move", func(f *logic.Frame) {
		for m := range move.Spans(f) {
			wide.Axpy(m.X, 1, m.Speed)
		}
	})
	if err != nil {
		return err
	}
	// A parallel loop. What it puts off is merged in the order of the chunks.
	_, err = e.AddSystem(logic.PostPhysics, "burn", func(f *logic.Frame) {
		burn.Parallel(f, func(f *registry.Frame, m *burning) {
			for i := range m.Fuel {
				if m.Fuel[i].Left--; m.Fuel[i].Left == 0 {
					if err := registry.RemoveLater[Burn](f, m.ID[i]); err != nil {
						panic(err)
					}
				}
			}
		})
	})
	if err != nil {
		return err
	}

	// A cursor: the rocket moves to another archetype on the way, when it has burnt out.
	view, err := views.NewEntity[cockpit](r, hs[0])
	if err != nil {
		return err
	}
	defer view.Close()
	_, err = e.AddSystem(logic.Late, "report", func(f *logic.Frame) {
		c, err := view.Get(f)
		if err != nil {
			fmt.Fprintf(out, "frame %d: %v\n", f.FrameNumber(), err)
			return
		}
		fmt.Fprintf(out, "frame %d: %d burn, the first has %d left\n", f.FrameNumber(), burn.Count(f), c.Fuel.Left)
		if f.FrameNumber() == 9 {
			if err := f.Destroy(hs[0]); err != nil {
				panic(err)
			}
		}
	})
	if err != nil {
		return err
	}
	for range 10 {
		if err := e.Step(); err != nil {
			return err
		}
	}

	sum := 0.0
	err = r.Update(func(w *registry.Window) error {
		for m, mask := range move.Spans(w) {
			for _, i := range mask.Live() {
				sum += float64(m.X[i])
			}
		}
		return nil
	})
	fmt.Fprintf(out, "after ten frames the others are at %.0f together\n", sum)
	return err
}
