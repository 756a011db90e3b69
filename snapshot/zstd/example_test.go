package zstd_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
	"github.com/airlock-ecs/airlock/snapshot/zstd"
)

type Position struct{ X, Y float64 }

type Ship struct{ Position Position }

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

// The window is held for a copy of the state; it is compressed and written while the world goes on.
func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "world.zst")

	world, ships := newWorld()
	var image *snapshot.Image
	err = world.Update(func(w *registry.Window) (err error) {
		if _, err = ships.SpawnBatch(w, 1000, func(i int, s *Ship) { s.Position.X = float64(i) }); err != nil {
			return err
		}
		image, err = snapshot.Take(w)
		return err
	})
	if err != nil {
		panic(err)
	}
	if err := zstd.SaveFile(path, image, zstd.Level(3)); err != nil {
		panic(err)
	}

	other, _ := newWorld() // the same classes, and nothing in it
	err = other.Update(func(w *registry.Window) error { return zstd.LoadFile(path, w) })
	if err != nil {
		panic(err)
	}
	fmt.Println(other.Stats().Live, "ships")
	// Output: 1000 ships
}
