package cookbook_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
	"github.com/airlock-ecs/airlock/views"
)

// Motto holds a pointer, so it says itself what its bytes are. Types without pointers need nothing.
type Motto struct{ Text string }

func (m Motto) AppendBinary(b []byte) ([]byte, error) { return append(b, m.Text...), nil }

func (m *Motto) UnmarshalBinary(b []byte) error {
	m.Text = string(b)
	return nil
}

func Example_persistence() {
	type Guild struct{ Motto Motto }
	type guilds struct {
		Motto []Motto `ecs:"read"`
	}
	dir := must(os.MkdirTemp("", "guilds"))
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "world")

	// session is a run of the program: it begins with what the last one has left.
	session := func(motto string) {
		reg := must(registry.New(registry.Config{}))
		class := must(registry.RegisterClass[Guild](reg, registry.Named("Guild"))) // files go by names
		all := must(views.NewQuery[guilds](reg))
		err := reg.Update(func(w *registry.Window) error { return snapshot.LoadFile(path, w) })
		if !errors.Is(err, fs.ErrNotExist) { // the first run has no file; of a damaged one nothing was loaded
			check(err)
		}
		engine := must(logic.New(reg, logic.Config{}))
		running := make(chan error)
		go func() { running <- engine.Run(context.Background()) }()

		must(logic.Spawn(context.Background(), engine, class, Guild{Motto{motto}}))

		// save is for any goroutine, every minute say: Logic stands still for a copy, and the disk takes its time.
		save := func() error {
			var image *snapshot.Image
			err := engine.Spawn(context.Background(), func(w *registry.Window) (err error) {
				image, err = snapshot.Take(w)
				return err
			})
			if err != nil {
				return err
			}
			return snapshot.SaveFile(path, image)
		}
		check(save())
		check(engine.Stop())
		check(<-running)
		check(reg.Update(func(w *registry.Window) error {
			for run := range all.Runs(w) {
				fmt.Println(run.Motto)
			}
			return nil
		}))
	}
	session("omnia vincit amor")
	session("carpe diem")
	// Output:
	// [{omnia vincit amor}]
	// [{omnia vincit amor} {carpe diem}]
}
