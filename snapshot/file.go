package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// disk is what this package needs of a file system to write. Tests put one in its place that fails.
type disk interface {
	createTemp(dir, pattern string) (diskFile, error)
	create(name string) (diskFile, error)  // fails if there is a file of that name
	openEnd(name string) (diskFile, error) // an existing file, to write behind its end
	mode(name string) (fs.FileMode, error)
	rename(from, to string) error
	remove(name string) error
	mkdir(dir string) error   // one that is there is fs.ErrExist
	syncDir(dir string) error // makes what happened to the names in it last
	view(dir string) fs.FS    // to read
}

// diskFile is an open file to write to. *os.File is one.
type diskFile interface {
	io.Writer
	Name() string
	Chmod(mode fs.FileMode) error
	Truncate(size int64) error
	Sync() error
	Close() error
}

// osDisk is the file system of the operating system.
type osDisk struct{}

func (osDisk) createTemp(dir, pattern string) (diskFile, error) {
	return opened(os.CreateTemp(dir, pattern))
}

func (osDisk) create(name string) (diskFile, error) {
	return opened(os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666))
}

func (osDisk) openEnd(name string) (diskFile, error) {
	return opened(os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0))
}

// opened keeps a nil *os.File from becoming a diskFile that is not nil.
func opened(f *os.File, err error) (diskFile, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osDisk) mode(name string) (fs.FileMode, error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Mode(), nil
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) remove(name string) error { return os.Remove(name) }

func (osDisk) mkdir(dir string) error { return os.Mkdir(dir, 0o777) }

func (osDisk) view(dir string) fs.FS { return os.DirFS(dir) }

// syncDir does nothing where directories cannot be synced: on Windows, and on file systems that say so.
func (osDisk) syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// makeDir makes a directory, and those that it is in, if they are not there. That they are there lasts.
func makeDir(d disk, dir string) error {
	if mode, err := d.mode(dir); err == nil && mode.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(d, parent); err != nil {
			return err
		}
	}
	if err := d.mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) { // another goroutine may have made it
		return err
	}
	return d.syncDir(parent)
}

// WriteFile makes path a file of what write writes, as SaveFile does it: whole, synced, and under its name in one step, or,
// if write or the file system fails, not at all. It is for whoever puts something round a saved state.
//
// Errors: what write returns, what the file system says.
// Concurrency: any goroutine; several that write one path leave the whole file of one of them. Allocates: yes.
func WriteFile(path string, write func(out io.Writer) error) error {
	if write == nil {
		return errors.New("snapshot: WriteFile without a function")
	}
	return writeFile(path, writerFunc(write))
}

// writerFunc makes a function an io.WriterTo that does not count: writeFile does not ask.
type writerFunc func(out io.Writer) error

func (f writerFunc) WriteTo(out io.Writer) (int64, error) { return 0, f(out) }

// writeFile makes path a file with what w writes: the whole of it, synced, or nothing. If it fails,
// path is what it was before and no temporary is left, with one exception: when all is
// done and only the directory cannot be synced, path has its new content, and a loss of power may
// take it back. A file that is replaced passes on its permissions; a new one is its owner's alone.
func writeFile(path string, w io.WriterTo) error { return writeFileOn(osDisk{}, path, w) }

func writeFileOn(d disk, path string, w io.WriterTo) (err error) {
	dir := filepath.Dir(path)
	f, err := d.createTemp(dir, filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("snapshot: write %s: %w", path, err)
	}
	renamed, closed := false, false
	defer func() { // after a panic of w too
		if !closed {
			f.Close() // an earlier error is the one to report
		}
		if !renamed {
			d.remove(f.Name())
		}
		if err != nil {
			err = within(err, "write %s", path)
		}
	}()
	if mode, err := d.mode(path); err == nil {
		if err := f.Chmod(mode.Perm()); err != nil {
			return err
		}
	}
	checked := &countingWriter{w: f}
	if _, err := w.WriteTo(checked); err != nil {
		return err
	}
	if checked.err != nil {
		return checked.err // w has not noticed
	}
	if err := f.Sync(); err != nil {
		return err
	}
	closed = true
	if err := f.Close(); err != nil {
		return err
	}
	if err := d.rename(f.Name(), path); err != nil {
		return err
	}
	renamed = true
	if err := d.syncDir(dir); err != nil {
		return fmt.Errorf("written, but sync of the directory failed: %w", err)
	}
	return nil
}

// within says what err has come to. An error of this package begins with its name already, and stays in front.
func within(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if strings.HasPrefix(err.Error(), "snapshot: ") {
		return fmt.Errorf("%w: %s", err, what)
	}
	return fmt.Errorf("snapshot: %s: %w", what, err)
}
