package main

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

//go:embed fountain.world
var fountain []byte

// The component and the class of the cat, an entity like any other.
type (
	Fur struct {
		X, Speed float64
		Drops    int // that are on it
	}
	Cat struct{ Fur Fur }
)

const frames = 250 // five seconds, as the fountain has it

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "worlds:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	program, err := declare.Load("fountain.world", fountain, map[string]float64{"jet": 8})
	if err != nil {
		return err
	}
	r, err := registry.New(registry.Config{Deterministic: true})
	if err != nil {
		return err
	}
	if _, err := registry.RegisterComponent[Fur](r, registry.InTier(archetype.Volatile)); err != nil {
		return err
	}
	cats, err := registry.RegisterClass[Cat](r)
	if err != nil {
		return err
	}
	e, err := logic.New(r, logic.Config{})
	if err != nil {
		return err
	}
	defer e.Stop()

	// From here on each frame runs a step of the fountain.
	world, err := declare.Attach(e, program, declare.Options{Phase: logic.Physics, Name: "fountain"})
	if err != nil {
		return err
	}
	var cat handles.Local
	err = r.Update(func(w *registry.Window) error {
		cat, err = cats.Spawn(w, Cat{Fur{X: -1.5, Speed: 0.6}})
		return err
	})
	if err != nil {
		return err
	}

	// This runs behind the fountain in each frame, and sees what the step has come to.
	first, ok := program.ID("drops#0")
	if !ok {
		return fmt.Errorf("%s has no drops", program.File)
	}
	group, _, _ := program.GroupOf(first)
	drops := program.Groups[group]
	const x, y = 0, 1 // state slots, in the order of the file
	_, err = e.AddSystem(logic.PostPhysics, "cat", func(f *logic.Frame) {
		fur, err := registry.Get[Fur](f, cat)
		if err != nil {
			panic(err)
		}
		fur.X += fur.Speed * program.Dt
		fur.Drops = 0
		for id := first; id < first+uint32(drops.Count); id++ {
			drop, active, _ := world.State(f, id)
			if active && math.Abs(drop[x]-fur.X) < 0.2 && drop[y] < 0.3 {
				fur.Drops++
				fur.Speed = 1.2 // it has had enough
			}
		}
	})
	if err != nil {
		return err
	}

	for frame := range frames {
		if err := e.Step(); err != nil {
			return err
		}
		if (frame+1)%50 != 0 {
			continue
		}
		// Any goroutine may read a frame that is published, while the next ones are computed.
		done := make(chan error)
		go func() {
			done <- r.Read(func(s *registry.Snapshot) error { return report(out, s, world, cat) })
		}()
		if err := <-done; err != nil { // only so that the lines come in order
			return err
		}
	}
	return nil
}

// report says what there is in a published frame.
func report(out io.Writer, s *registry.Snapshot, world *declare.World, cat handles.Local) error {
	fur, err := registry.Peek[Fur](s, cat)
	if err != nil {
		return err
	}
	seen := world.Present(s)
	highest := 0.0
	for _, d := range seen.Entities {
		highest = max(highest, d.Position[1])
	}
	_, err = fmt.Fprintf(out, "t = %.1f: %d things to draw, the highest at %.2f; the cat is at %.2f, drops on it: %d\n",
		seen.Time, len(seen.Entities), highest, fur.X, fur.Drops)
	return err
}
