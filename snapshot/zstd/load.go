package zstd

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	compress "github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// Load is snapshot.Load of what Save or SaveFile has written, at any level.
//
// Checksums keep out accidents, not forgers, and who gets states from others should know that a few bytes can be long
// when they are not compressed: MaxBytes is how much of that there may be.
//
// Errors: as snapshot.Load; snapshot.ErrVersion too for a state that is not compressed; snapshot.ErrTooLarge for one that
// is longer than MaxBytes, or refers back by more than 4 MiB; an option that is out of range.
// Concurrency: window holder; others may reserve, destroy and read frames. Allocates: as snapshot.Load, and 6 MiB.
func Load(in io.Reader, w *registry.Window, opts ...Option) error {
	o, err := optionsOf(opts)
	if err != nil {
		return err
	}
	if _, err := registry.Opened(w); err != nil {
		return err
	}
	frame := &frameReader{in: bufio.NewReaderSize(in, inputBytes), hash: xxh3.New()}
	if err := frame.begin(); err != nil {
		return err
	}
	d, err := compress.NewReader(frame, compress.WithDecoderConcurrency(1), compress.WithDecoderLowmem(true),
		compress.WithDecoderMaxWindow(windowBytes), compress.WithDecoderMaxMemory(windowBytes)) // the latter is for frames that are one segment
	if err != nil {
		return fmt.Errorf("zstd: %w", err)
	}
	defer d.Close()
	plain := &plainReader{d: d, frame: frame, o: o, left: o.maxBytes}

	// A state says in its first bytes how long it is. Whatever is wrong with them is for snapshot to say.
	head := make([]byte, stateTotalAt+8)
	n, _ := io.ReadFull(plain, head) // plain keeps its error
	if n == len(head) && string(head[:len(stateMagic)]) == stateMagic &&
		binary.LittleEndian.Uint64(head[stateTotalAt:]) > uint64(o.maxBytes) {
		return o.tooLarge()
	}
	return snapshot.Load(io.MultiReader(bytes.NewReader(head[:n]), plain), w)
}

// LoadFile is Load from a file.
//
// Errors: as Load, and what the file system says.
// Concurrency: as Load. Allocates: as Load.
func LoadFile(path string, w *registry.Window, opts ...Option) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("zstd: load: %w", err)
	}
	defer f.Close() // it was read only
	if err := Load(f, w, opts...); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// frameReader gives everything but the trailer, and no end before the trailer was found right.
type frameReader struct {
	in   *bufio.Reader
	hash *xxh3.Hasher
	err  error // why there is no more; io.EOF after a trailer that is right
}

// begin looks at the first bytes.
func (f *frameReader) begin() error {
	b, err := f.in.Peek(len(stateMagic))
	switch {
	case string(b) == stateMagic:
		return fmt.Errorf("%w: a saved state that is not compressed: snapshot.Load takes it", snapshot.ErrVersion)
	case len(b) >= len(frameMagic) && string(b[:len(frameMagic)]) != frameMagic:
		return fmt.Errorf("%w: it begins with %q and not with %q", snapshot.ErrVersion, b[:len(frameMagic)], frameMagic)
	case err == io.EOF:
		return fmt.Errorf("%w: cut off after %d bytes", snapshot.ErrDamaged, len(b))
	case err != nil:
		return fmt.Errorf("zstd: read: %w", err)
	}
	return nil
}

func (f *frameReader) Read(b []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	if rest, err := f.in.Peek(trailerBytes + 1); err != nil {
		if f.err = err; err == io.EOF {
			if err := checkTrailer(rest, f.hash.Sum64()); err != nil {
				f.err = err
			}
		}
		return 0, f.err
	}
	n, err := f.in.Read(b[:min(len(b), f.in.Buffered()-trailerBytes)])
	f.hash.Write(b[:n])
	return n, err
}

// plainReader gives what a frame has, up to a limit, and says why there is no more.
type plainReader struct {
	d     io.Reader
	frame *frameReader
	o     options
	left  int64
	err   error // the first one
}

func (p *plainReader) Read(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	if int64(len(b)) > p.left {
		b = b[:p.left+1] // one more tells a state that is too long from one that ends there
	}
	n, err := p.d.Read(b)
	if p.left -= int64(n); p.left < 0 {
		p.err = p.o.tooLarge()
		return 0, p.err
	}
	if err != nil {
		p.err = p.reason(err)
	}
	return n, p.err
}

// reason makes an error of the decompressor one of package snapshot. The decompressor takes some early ends for good ones: those
// that the frame has not confirmed are none.
func (p *plainReader) reason(err error) error {
	switch {
	case p.frame.err == io.EOF && err == io.EOF:
		return io.EOF
	case p.frame.err != nil && p.frame.err != io.EOF:
		return p.frame.err
	case errors.Is(err, compress.ErrWindowSizeExceeded), errors.Is(err, compress.ErrDecoderSizeExceeded):
		return fmt.Errorf("%w: the frame refers back by more than %d bytes", snapshot.ErrTooLarge, windowBytes)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: the compressed bytes end early", snapshot.ErrDamaged)
	}
	return fmt.Errorf("%w: decompress: %w", snapshot.ErrDamaged, err)
}
