package snapshot_test

import (
	"bytes"
	"compress/gzip"
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

type Position struct{ X, Y float64 }

// Name holds a pointer, so it says itself what its bytes are.
type Name struct{ Text string }

func (n *Name) AppendBinary(b []byte) ([]byte, error) { return append(b, n.Text...), nil }

func (n *Name) UnmarshalBinary(b []byte) error {
	n.Text = string(b)
	return nil
}

type Ship struct {
	Position Position
	Name     Name
}

func newWorld() (*registry.Registry, *registry.Class[Ship]) {
	r, err := registry.New(registry.Config{})
	if err != nil {
		panic(err)
	}
	ships, err := registry.RegisterClass[Ship](r)
	if err != nil {
		panic(err)
	}
	return r, ships
}

// A state goes to any writer and comes from any reader: here it is compressed on its way.
func ExampleSave() {
	world, ships := newWorld()
	var ship handles.Local
	var file bytes.Buffer
	err := world.Update(func(w *registry.Window) (err error) {
		if ship, err = ships.Spawn(w, Ship{Position{1, 2}, Name{"Argo"}}); err != nil {
			return err
		}
		zip := gzip.NewWriter(&file)
		if err := snapshot.Save(zip, w); err != nil {
			return err
		}
		return zip.Close()
	})
	if err != nil {
		panic(err)
	}

	other, _ := newWorld() // the same classes, and nothing in it
	err = other.Update(func(w *registry.Window) error {
		zip, err := gzip.NewReader(&file)
		if err != nil {
			return err
		}
		if err := snapshot.Load(zip, w); err != nil {
			return err
		}
		name, err := registry.Peek[Name](w, ship)
		fmt.Println(name.Text, other.Alive(ship))
		return err
	})
	if err != nil {
		panic(err)
	}
	// Output: Argo true
}
