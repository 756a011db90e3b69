package snapshot

import (
	"errors"
	"io"

	"github.com/airlock-ecs/airlock/registry"
)

// Image is a state in memory, on its way to where it is kept: what Save writes, but with nobody waiting for that.
// It does not change, and does not refer to the registry.
type Image struct{ c *containerWriter }

// Take copies the state of the registry. The window is held for as long as the copy takes; the image is then written
// by whoever has time.
//
// Errors: as Save, but for those of a writer.
// Concurrency: window holder; others may reserve and destroy. Allocates: the copy.
func Take(w *registry.Window) (*Image, error) {
	c, err := collect(w, true)
	if err != nil {
		return nil, err
	}
	return &Image{c}, nil
}

// WriteTo writes the bytes that Save would have written, and says how many out took.
//
// Errors: what out says.
// Concurrency: any goroutine, several at once. Allocates: buffers.
func (i *Image) WriteTo(out io.Writer) (int64, error) { return i.c.WriteTo(out) }

// SaveFile makes path a file of the image: whole, synced, and under its name in one step, or not at all. A file of that
// name is replaced and passes on its permissions; a new one is its owner's alone.
//
// Errors: what the file system says.
// Concurrency: any goroutine; several that write one path leave the whole file of one of them. Allocates: buffers.
func SaveFile(path string, i *Image) error {
	if i == nil {
		return errors.New("snapshot: SaveFile without an image")
	}
	return writeFile(path, i)
}
