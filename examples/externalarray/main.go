package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/views"
)

// Position is where an entity is. Marked is a component that some get later.
type (
	Position struct{ X float64 }
	Marked   struct{ Since uint64 }

	Thing struct{ Position Position }
)

// body is what the outside library keeps of an entity. It knows nothing of handles.
type body struct {
	used bool
	x    float64
}

// library is the outside: an array by cache index.
type library struct{ bodies []body }

// follow moves bodies in place. The order of the moves is such that no body is overwritten.
func (l *library) follow(moves []registry.Move) {
	for _, m := range moves {
		l.grow(m.New)
		l.bodies[m.New], l.bodies[m.Old] = l.bodies[m.Old], body{}
	}
}

func (l *library) grow(index uint32) {
	for int(index) >= len(l.bodies) {
		l.bodies = append(l.bodies, body{})
	}
}

// things shows positions together with their cache indices.
type things struct {
	Position []Position `ecs:"read"`
	Index    []uint32   `ecs:"index"`
}

const count = 20_000

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "externalarray:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	r, err := registry.New(registry.Config{})
	if err != nil {
		return err
	}
	if _, err := registry.RegisterComponent[Marked](r); err != nil {
		return err
	}
	class, err := registry.RegisterClass[Thing](r)
	if err != nil {
		return err
	}
	all, err := views.NewQuery[things](r)
	if err != nil {
		return err
	}
	var outside library
	moved := 0
	if _, err := r.OnMove(func(ms []registry.Move) { outside.follow(ms); moved += len(ms) }); err != nil {
		return err
	}
	e, err := logic.New(r, logic.Config{})
	if err != nil {
		return err
	}
	defer e.Stop()

	// Who is born gets a body.
	var hs []handles.Local
	err = r.Update(func(w *registry.Window) error {
		hs, err = class.SpawnBatch(w, count, func(i int, t *Thing) { t.Position.X = float64(i) })
		for i, h := range hs {
			index, _ := registry.CacheIndex(w, h)
			outside.grow(index)
			outside.bodies[index] = body{used: true, x: float64(i)}
		}
		return err
	})
	if err != nil {
		return err
	}

	// Most things are destroyed in one phase; in the next, the outside pass reads the mask and drops
	// their bodies.
	_, err = e.AddSystem(logic.PrePhysics, "destroy", func(f *logic.Frame) {
		if f.FrameNumber() != 1 {
			return
		}
		rng := rand.New(rand.NewPCG(1, 2))
		rng.Shuffle(len(hs), func(i, k int) { hs[i], hs[k] = hs[k], hs[i] })
		for _, h := range hs[count/10:] {
			if err := f.Destroy(h); err != nil {
				panic(err)
			}
		}
	})
	if err != nil {
		return err
	}
	_, err = e.AddSystem(logic.Physics, "drop bodies", func(f *logic.Frame) {
		for _, mask := range all.Spans(f) {
			base := mask.Base()
			for w, word := range mask.Words() {
				for bit := range uint32(64) {
					if i := base + uint32(w)<<6 + bit; word>>bit&1 == 0 && int(i) < len(outside.bodies) {
						outside.bodies[i] = body{}
					}
				}
			}
		}
	})
	if err != nil {
		return err
	}
	compare := func(when string) error {
		return r.Update(func(w *registry.Window) error {
			same, used := 0, 0
			for m := range all.Runs(w) {
				for i, index := range m.Index {
					if b := outside.bodies[index]; b.used && b.x == m.Position[i].X {
						same++
					}
				}
			}
			for _, b := range outside.bodies {
				if b.used {
					used++
				}
			}
			fmt.Fprintf(out, "%s: %d things, %d of them with their own body, %d bodies, indices below %d\n",
				when, all.Count(w), same, used, r.CacheCap())
			return nil
		})
	}
	if err := compare("at first"); err != nil {
		return err
	}
	for range 2 {
		if err := e.Step(); err != nil {
			return err
		}
	}
	if err := compare("thinned"); err != nil {
		return err
	}

	// A component moves its entity to another archetype, and so to other indices.
	err = r.Update(func(w *registry.Window) error {
		n := registry.AddBatch(w, hs[:count/20], Marked{Since: w.FrameNumber()})
		fmt.Fprintf(out, "%d get a component\n", n)
		return nil
	})
	if err != nil {
		return err
	}
	if err := compare("marked"); err != nil {
		return err
	}

	c, err := defrag.New(r, defrag.Config{Moves: 2000})
	if err != nil {
		return err
	}
	moved = 0
	for runs := 1; ; runs++ {
		var rep defrag.Report
		if err := r.Update(func(w *registry.Window) error { rep, err = c.Run(w); return err }); err != nil {
			return err
		}
		if rep.Left == 0 {
			fmt.Fprintf(out, "%d moves in %d runs\n", moved, runs)
			return compare("compacted")
		}
	}
}
