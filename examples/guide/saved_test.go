package guide_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

func Example_saved() {
	type Level struct{ Number int }
	type Hero struct{ Level Level }
	open := func() (*registry.Registry, *registry.Class[Hero]) {
		reg := must(registry.New(registry.Config{}))
		return reg, must(registry.RegisterClass[Hero](reg, registry.Named("Hero"))) // files go by names
	}
	dir := must(os.MkdirTemp("", "saved"))
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "heroes")

	reg, heroes := open()
	var hero, later handles.Local
	var image *snapshot.Image
	check(reg.Update(func(w *registry.Window) (err error) {
		hero = must(heroes.Spawn(w, Hero{Level{9}}))
		image, err = snapshot.Take(w) // a copy: the window is held no longer than that
		return err
	}))
	check(reg.Update(func(w *registry.Window) (err error) {
		later, err = heroes.Spawn(w, Hero{})
		return err
	}))
	check(snapshot.SaveFile(path, image)) // any goroutine: whole, synced and renamed, or not at all

	again, heroesAgain := open()
	check(again.Update(func(w *registry.Window) error {
		check(snapshot.LoadFile(path, w)) // all of it, or nothing
		fmt.Println("level", must(registry.Peek[Level](w, hero)).Number)
		_, err := registry.Peek[Level](w, later)
		fmt.Println("born after the save:", err)
		next := must(heroesAgain.Spawn(w, Hero{}))
		fmt.Println("the same operations give the same handles:", next == later)
		return nil
	}))
	fmt.Println("a second time:", errors.Is(again.Update(func(w *registry.Window) error {
		return snapshot.LoadFile(path, w)
	}), registry.ErrNotEmpty))
	// Output:
	// level 9
	// born after the save: registry: invalid handle
	// the same operations give the same handles: true
	// a second time: true
}
