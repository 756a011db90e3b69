package snapshot

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

var errDisk = errors.New("no space left on device")

// fault is how an operation of a memDisk fails.
type fault int

const (
	nothing    fault = iota // it does nothing and says so
	half                    // a write writes half and says so
	silentHalf              // a write writes half and says nothing
)

// memDisk is a disk in memory with one directory. One operation can be made to fail, and it knows what would
// be left after a loss of power: names as of the last syncDir, and of each file what was synced.
type memDisk struct {
	files   map[string]*memFile
	durable map[string]*memFile
	fault   fault
	failAt  int      // which operation fails, from 1; 0 for none
	ops     []string // that were tried
}

type memFile struct {
	data, synced []byte
	mode         fs.FileMode
}

func newMemDisk() *memDisk {
	return &memDisk{files: map[string]*memFile{}, durable: map[string]*memFile{}}
}

// put makes a file that is there to stay.
func (d *memDisk) put(name string, data []byte) {
	d.files[name] = &memFile{data: data, synced: bytes.Clone(data), mode: 0o640}
	d.durable = maps.Clone(d.files)
}

func (d *memDisk) failed() bool { return d.failAt > 0 && len(d.ops) >= d.failAt }

func (d *memDisk) op(name string) error {
	d.ops = append(d.ops, name)
	if len(d.ops) == d.failAt {
		return errDisk
	}
	return nil
}

func (d *memDisk) createTemp(dir, pattern string) (diskFile, error) {
	return d.create(filepath.Join(dir, strings.Replace(pattern, "*", "1", 1)))
}

func (d *memDisk) create(name string) (diskFile, error) {
	if err := d.op("create"); err != nil {
		return nil, err
	}
	if d.files[name] != nil {
		return nil, fs.ErrExist
	}
	d.files[name] = &memFile{mode: 0o600}
	return &memHandle{d, name, d.files[name]}, nil
}

func (d *memDisk) openEnd(name string) (diskFile, error) {
	if err := d.op("open"); err != nil {
		return nil, err
	}
	if d.files[name] == nil {
		return nil, fs.ErrNotExist
	}
	return &memHandle{d, name, d.files[name]}, nil
}

func (d *memDisk) mode(name string) (fs.FileMode, error) {
	if d.files[name] == nil {
		return 0, fs.ErrNotExist
	}
	return d.files[name].mode, nil
}

func (d *memDisk) rename(from, to string) error {
	if err := d.op("rename"); err != nil {
		return err
	}
	d.files[to] = d.files[from]
	delete(d.files, from)
	return nil
}

func (d *memDisk) remove(name string) error {
	if err := d.op("remove"); err != nil {
		return err
	}
	delete(d.files, name)
	return nil
}

func (d *memDisk) mkdir(string) error { return errors.ErrUnsupported } // it has one, which has no name

func (d *memDisk) syncDir(string) error {
	if err := d.op("syncDir"); err != nil {
		return err
	}
	d.durable = maps.Clone(d.files)
	return nil
}

func (d *memDisk) view(string) fs.FS {
	m := fstest.MapFS{}
	for name, f := range d.files {
		m[filepath.Base(name)] = &fstest.MapFile{Data: f.data}
	}
	return m
}

// crash is the disk after a loss of power. Of what was never synced, it has the first extra bytes of
// each file, and the names if names is set.
func (d *memDisk) crash(extra int, names bool) *memDisk {
	after, left := newMemDisk(), d.durable
	if names {
		left = d.files
	}
	for name, f := range left {
		data := bytes.Clone(f.synced)
		if bytes.HasPrefix(f.data, f.synced) {
			data = bytes.Clone(f.data[:min(len(f.synced)+extra, len(f.data))])
		}
		after.put(name, data)
	}
	return after
}

type memHandle struct {
	d    *memDisk
	name string
	f    *memFile
}

func (h *memHandle) Name() string { return h.name }

func (h *memHandle) Write(b []byte) (int, error) {
	err := h.d.op("write")
	n := len(b)
	switch {
	case err == nil:
	case h.d.fault == nothing:
		n = 0
	case h.d.fault == silentHalf:
		err = nil
		fallthrough
	default:
		n /= 2
	}
	h.f.data = append(h.f.data[:len(h.f.data):len(h.f.data)], b[:n]...)
	return n, err
}

func (h *memHandle) Chmod(mode fs.FileMode) error {
	err := h.d.op("chmod")
	if err == nil {
		h.f.mode = mode
	}
	return err
}

func (h *memHandle) Truncate(size int64) error {
	err := h.d.op("truncate")
	if err == nil {
		h.f.data = h.f.data[:size:size]
	}
	return err
}

func (h *memHandle) Sync() error {
	err := h.d.op("sync")
	if err == nil {
		h.f.synced = bytes.Clone(h.f.data)
	}
	return err
}

func (h *memHandle) Close() error { return h.d.op("close") }

// writerTo makes a function an io.WriterTo.
type writerTo func(w io.Writer) (int64, error)

func (f writerTo) WriteTo(w io.Writer) (int64, error) { return f(w) }

func TestWriteFileIsAllOrNothingWhereverItFails(t *testing.T) {
	c := newContainer()
	c.section(1).bytes(noise(200_000))
	now := written(t, c)
	const path = "dir/state"
	for _, old := range [][]byte{nil, []byte("old")} {
		for _, how := range []fault{nothing, half, silentHalf} {
			failures := map[string]bool{}
			for failAt := 1; ; failAt++ {
				d := newMemDisk()
				if old != nil {
					d.put(path, old)
				}
				d.failAt, d.fault = failAt, how
				err := writeFileOn(d, path, c)
				if !d.failed() {
					require.NoError(t, err)
					require.Equal(t, now, d.crash(0, false).files[path].data, "it is there to stay")
					break
				}
				failure := d.ops[failAt-1]
				failures[failure] = true
				want, files := errDisk, 0
				if failure == "write" && how == silentHalf {
					want = io.ErrShortWrite
				}
				require.ErrorIs(t, err, want)
				require.ErrorContains(t, err, path)
				if old != nil || failure == "syncDir" {
					files = 1
				}
				require.Len(t, d.files, files, "no temporary is left after %s", failure)
				if f := d.files[path]; failure == "syncDir" {
					require.Equal(t, now, f.data)
				} else if old != nil {
					require.Equal(t, old, f.data)
				}
				for _, names := range []bool{false, true} {
					if f := d.crash(1000, names).files[path]; f != nil && !bytes.Equal(f.data, now) {
						require.Equal(t, old, f.data)
					}
				}
			}
			for _, op := range []string{"create", "write", "sync", "close", "rename", "syncDir"} {
				require.True(t, failures[op], "%s never failed", op)
			}
		}
	}
}

func TestWriteFileReplacesAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a * state")
	for _, text := range []string{"first", "second, longer", "3"} {
		c := newContainer()
		c.section(1).string(text)
		require.NoError(t, writeFile(path, c))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, written(t, c), got)
		if runtime.GOOS != "windows" {
			info, err := os.Stat(path)
			require.NoError(t, err)
			if text == "first" {
				require.Equal(t, fs.FileMode(0o600), info.Mode())
				require.NoError(t, os.Chmod(path, 0o664))
			} else {
				require.Equal(t, fs.FileMode(0o664), info.Mode())
			}
		}
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestWriteFileWritesWhatAFunctionWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for _, text := range []string{"first", "second"} {
		require.NoError(t, WriteFile(path, func(out io.Writer) error {
			_, err := io.WriteString(out, text)
			return err
		}))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
	}
	err := WriteFile(path, func(out io.Writer) error {
		_, _ = io.WriteString(out, "third")
		return errDisk
	})
	require.ErrorIs(t, err, errDisk)
	require.ErrorContains(t, err, path)
	require.Error(t, WriteFile(path, nil))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "second", string(got))
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestWriteFileLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	broken := errors.New("broken")

	require.ErrorIs(t, writeFile(path, writerTo(func(w io.Writer) (int64, error) {
		n, _ := w.Write([]byte("new"))
		return int64(n), broken
	})), broken)
	require.PanicsWithValue(t, "no", func() {
		_ = writeFile(path, writerTo(func(io.Writer) (int64, error) { panic("no") }))
	})
	d := newMemDisk()
	d.failAt, d.fault = 2, half
	require.ErrorIs(t, writeFileOn(d, "state", writerTo(func(w io.Writer) (int64, error) {
		w.Write([]byte("one")) // whoever does not look
		w.Write([]byte("two"))
		return 6, nil
	})), errDisk)
	require.Empty(t, d.files)

	require.NoError(t, os.Mkdir(filepath.Join(dir, "full"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "full", "x"), nil, 0o600))
	require.Error(t, writeFile(filepath.Join(dir, "full"), newContainer()), "it is a directory")
	require.ErrorIs(t, writeFile(filepath.Join(dir, "none", "state"), newContainer()), fs.ErrNotExist)
	require.Error(t, osDisk{}.syncDir(filepath.Join(dir, "none")))

	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(got))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
}
