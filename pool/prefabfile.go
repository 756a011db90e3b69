package pool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/airlock-ecs/airlock/registry"
)

// knownFile is what is remembered of a pool file.
type knownFile struct {
	src      []byte          // as it was read last
	settled  bool            // there is nothing left to do about src
	declares map[string]bool // the pools that the version declares which was applied last
}

// Load applies the pool file at a path, whole or not at all. Pools that are not in it stay as they are. Prefabs may be
// defined afterwards.
//
// The file is read while Logic waits. ReadFile elsewhere, and Apply, spare it that.
//
// Errors: a *FileError for what is no pool file; fs.ErrNotExist; what is no regular file, or changes while it is read; those of
// Apply.
// Concurrency: window holder. Allocates: yes.
func (p *Prefabs) Load(w *registry.Window, path string) error {
	_, err := p.load(w, path, true, false)
	return err
}

// ReloadOption is an option of Reload.
type ReloadOption func(*reloadOptions)

type reloadOptions struct{ partly bool }

// Partly has Reload refuse what is impossible entry by entry, and apply the others.
//
// Concurrency: any goroutine. Allocates: no.
func Partly() ReloadOption { return func(o *reloadOptions) { o.partly = true } }

// Reload applies the pool file at a path if it has changed since it was looked at, and says whether that has changed
// anything: call it now and then. It is whole or not at all, as Load is, and an error leaves everything as it was: the next
// call looks again. What is wrong with a file is told once, and again when it has changed.
//
// A pool that the file declared before and does not any more has no declaration then, unless it is in use. Impossible are
// also, as for Apply, a capacity below what is in use; and an entry for a prefab that is not defined while one in use is gone, for then
// it seems to have another name. All of these are tried again by the next call, if the file is the same or not. With Partly they are
// refused, each by name in the error, and the others apply.
//
// Errors: as Load; ErrInUse for what is impossible, all joined.
// Concurrency: window holder. Allocates: yes.
func (p *Prefabs) Reload(w *registry.Window, path string, opts ...ReloadOption) (changed bool, err error) {
	var o reloadOptions
	for _, opt := range opts {
		opt(&o)
	}
	return p.load(w, path, false, o.partly)
}

func (p *Prefabs) load(w *registry.Window, path string, first, partly bool) (changed bool, err error) {
	if err := p.opens(w); err != nil {
		return false, err
	}
	src, err := readWhole(path)
	if err != nil {
		return false, err
	}
	known := p.files[path]
	if known == nil {
		known = &knownFile{}
		p.files[path] = known
	}
	if !first && known.settled && bytes.Equal(src, known.src) {
		return false, nil
	}
	known.src = src
	declared, err := ParseFile(path, src)
	if err != nil {
		known.settled = true
		return false, err
	}
	var gone []string
	var refused []error
	if !first {
		gone, declared, refused = p.missing(w, known, declared)
	}
	changed, err = p.apply(w, declared, gone, refused, partly)
	known.settled = err == nil
	if err == nil || partly {
		p.follow(w, known, declared, gone)
	}
	return changed, err
}

// missing says which pools a file does not declare any more, and which entries look like another name for one of them
// that is in use: they are taken out and refused.
func (p *Prefabs) missing(w *registry.Window, known *knownFile, declared []Declared) (gone []string, rest []Declared, refused []error) {
	for id := range known.declares {
		if !slices.ContainsFunc(declared, func(d Declared) bool { return d.Prefab == id }) {
			gone = append(gone, id)
		}
	}
	slices.Sort(gone)
	inUse := "" // the first of them that is
	for _, id := range gone {
		if _, _, n := p.see(w, id); n > 0 && inUse == "" {
			inUse = id
		}
	}
	for _, d := range declared {
		if q := p.table.Load().byID[d.Prefab]; inUse != "" && !known.declares[d.Prefab] && (q == nil || q.def.Load() == nil) {
			refused = append(refused, fmt.Errorf("%w: prefab %q is not defined; if it is to be the new name of %q, that one is in use", ErrInUse, d.Prefab, inUse))
			continue
		}
		rest = append(rest, d)
	}
	return gone, rest, refused
}

// follow notes what a file declares now. What could not go is still there.
func (p *Prefabs) follow(w *registry.Window, known *knownFile, declared []Declared, gone []string) {
	known.declares = map[string]bool{}
	for _, d := range declared {
		known.declares[d.Prefab] = true
	}
	for _, id := range gone {
		if _, _, inUse := p.see(w, id); inUse > 0 {
			known.declares[id] = true
		}
	}
}

// reading is how often a file is read that is another one each time, before that is an error.
const reading = 4

// readWhole reads a pool file. Whoever writes in place may be at it: what two readings agree about counts.
func readWhole(path string) ([]byte, error) {
	before, err := readOnce(path)
	if err != nil {
		return nil, err
	}
	for range reading {
		src, err := readOnce(path)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(before, src) {
			return src, nil
		}
		before = src
	}
	return nil, fmt.Errorf("pool: %s changes while it is read", path)
}

func readOnce(path string) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: to open a pipe is to wait for its other end
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("pool: there is no file %s: %w", path, fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("pool: %w", err)
	case info.IsDir():
		return nil, fmt.Errorf("pool: %s is a directory", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("pool: %s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("pool: %w", err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("pool: reading %s: %w", path, err)
	}
	return src, nil
}
