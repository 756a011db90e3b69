package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// replacement is a file that is written whole or not at all: it gets its name when it is complete. What is not
// a regular file, such as a terminal or a pipe, is written as it is.
type replacement struct {
	*os.File
	target string      // its name in the end; "" for what is written as it is
	mode   os.FileMode // of the file that it replaces; 0 if there is none
}

// replace begins to write a file. An unwritable place is found out here, before there is anything to be written.
func replace(name string) (*replacement, error) {
	r := &replacement{target: name}
	switch info, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", name)
	case !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		return &replacement{File: f}, err
	default:
		if r.target, err = filepath.EvalSymlinks(name); err != nil { // what a link points to is replaced, not the link
			return nil, err
		}
		r.mode = info.Mode().Perm()
		f, err := os.OpenFile(r.target, os.O_WRONLY, 0) // a file that must not be written is not replaced either
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	f, err := temporary(r.target)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be written: %w", name, err)
	}
	r.File = f
	return r, nil
}

// temporary makes a file beside another one, with the mode that a new file gets.
func temporary(name string) (f *os.File, err error) {
	dir, base := filepath.Split(name)
	for range 100 {
		f, err = os.OpenFile(fmt.Sprintf("%s.%.64s.%08x", dir, base, rand.Uint32()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, err
}

// commit gives the file its name, if all was written.
func (r *replacement) commit(written error) error {
	if r.target == "" {
		return errors.Join(written, r.Close())
	}
	err := written
	if r.mode != 0 {
		err = errors.Join(err, r.Chmod(r.mode))
	}
	if err = errors.Join(err, r.Close()); err == nil {
		err = os.Rename(r.Name(), r.target)
	}
	if err != nil {
		os.Remove(r.Name())
	}
	return err
}

// discard leaves everything as it was.
func (r *replacement) discard() {
	r.Close()
	if r.target != "" {
		os.Remove(r.Name())
	}
}
