package zstd

import (
	"errors"
	"fmt"
	"io"

	compress "github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// Save is snapshot.Save, compressed. The window is held until all is compressed and written; snapshot.Take and
// SaveFile hold it for no longer than a copy takes.
//
// Errors: as snapshot.Save; snapshot.ErrTooLarge, see MaxBytes; an option that is out of range.
// Concurrency: window holder; others may reserve and destroy. Allocates: yes; for the compressor 10 MiB, at level 4 some 40.
func Save(out io.Writer, w *registry.Window, opts ...Option) error {
	o, err := optionsOf(opts)
	if err != nil {
		return err
	}
	return o.write(out, func(plain io.Writer) error { return snapshot.Save(plain, w) })
}

// SaveFile is snapshot.SaveFile, compressed: path has the whole of the image, synced, or is what it was before.
//
// Errors: what the file system says; snapshot.ErrTooLarge, see MaxBytes; an option that is out of range.
// Concurrency: any goroutine; several that write one path leave the whole file of one of them. Allocates: as Save.
func SaveFile(path string, i *snapshot.Image, opts ...Option) error {
	o, err := optionsOf(opts)
	if err != nil {
		return err
	}
	if i == nil {
		return errors.New("zstd: SaveFile without an image")
	}
	return snapshot.WriteFile(path, func(out io.Writer) error {
		return o.write(out, func(plain io.Writer) error {
			_, err := i.WriteTo(plain)
			return err
		})
	})
}

// write writes a frame with what save writes, and the trailer. If save fails before it has written anything, nothing
// is written.
func (o options) write(out io.Writer, save func(plain io.Writer) error) error {
	hashed := &hashingWriter{out: out, hash: xxh3.New()}
	// One goroutine: blocks are cut where the bytes say, whoever is quick.
	frame, err := compress.NewWriter(hashed, compress.WithEncoderConcurrency(1), compress.WithWindowSize(windowBytes),
		compress.WithEncoderLevel(compress.EncoderLevel(o.level)))
	if err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	if err := save(&limitedWriter{out: frame, o: o, left: o.maxBytes}); err != nil {
		return err // the frame has no goroutines to end
	}
	if err := frame.Close(); err != nil {
		return err
	}
	_, err = hashed.Write(trailer(hashed.hash.Sum64()))
	return err
}

// hashingWriter hashes what it passes on.
type hashingWriter struct {
	out  io.Writer
	hash *xxh3.Hasher
}

func (h *hashingWriter) Write(b []byte) (int, error) {
	h.hash.Write(b)
	n, err := h.out.Write(b)
	if n < len(b) && err == nil {
		err = io.ErrShortWrite
	}
	return n, err
}

// limitedWriter takes no more than a state may have.
type limitedWriter struct {
	out  io.Writer
	o    options
	left int64
}

func (l *limitedWriter) Write(b []byte) (int, error) {
	if int64(len(b)) > l.left {
		return 0, l.o.tooLarge()
	}
	l.left -= int64(len(b))
	return l.out.Write(b)
}
