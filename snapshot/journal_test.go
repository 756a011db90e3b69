package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// journaled is a realm that writes a journal.
type journaled struct {
	*realm
	j *Journal
}

var journalRealm = realmConfig{Config: registry.Config{Deterministic: true, MaxEntities: 1000}, slots: 64}

func newJournaled(t testing.TB, d disk, opts ...JournalOption) *journaled {
	m := &journaled{realm: newRealm(t, journalRealm)}
	require.NoError(t, m.core.KeepRecords())
	var err error
	m.j, err = openJournalOn(d, "", m.r, Terms{Rate: 60}, opts...)
	require.NoError(t, err)
	return m
}

// run runs a frame with a window and writes it.
func (m *journaled) run(window func(w *registry.Window) error) (hash uint64, err error) {
	m.t.Helper()
	_ = m.frame(window, nil)
	hash = m.published()
	n := m.core.FrameNumber()
	rec, err := m.core.RecordOf(n)
	require.NoError(m.t, err)
	return hash, m.j.Append(&JournalFrame{Number: n, Hash: hash, Inputs: []registry.Input{{Player: 3, Data: []byte{byte(n)}}}, Record: rec})
}

// life runs some frames in which everything happens that a record knows, and gives their hashes.
func (m *journaled) life(frames int) (hashes []uint64, err error) {
	var hs []handles.Local
	pick := func(i int) handles.Local {
		if len(hs) == 0 {
			return 0
		}
		return hs[i*7%len(hs)]
	}
	for n := range frames {
		if n%4 == 1 {
			h, err := m.r.Reserve()
			require.NoError(m.t, err)
			hs = append(hs, h)
			_ = m.r.Destroy(pick(n))
		}
		if n%5 == 2 {
			m.update(func(w *registry.Window) {
				h, err := m.stones.Spawn(w, stone{position{X: 1}})
				require.NoError(m.t, err)
				hs = append(hs, h)
			})
		}
		var hash uint64
		hash, err = m.run(func(w *registry.Window) error {
			w.Named("life")
			more, err := m.arrows.SpawnBatch(w, 3, func(i int, a *arrow) { *a = anArrow(n + i) })
			require.NoError(m.t, err)
			_ = m.arrows.SpawnReserved(w, pick(n+1), anArrow(n))
			_ = registry.Add(w, pick(n+2), frozen{})
			_ = registry.Remove[frozen](w, pick(n+3))
			_ = registry.SetActive(w, pick(n+4), n%2 == 0)
			_ = registry.SetParent(w, pick(n+5), more[0])
			_, _ = w.AssignNet(pick(n + 6))
			_ = w.BindNet(more[1], handles.NewNet(9, uint32(n+1), 1))
			_ = registry.Set(w, pick(n+7), position{float32(n), 0, 0})
			if p, err := registry.Get[bag](w, more[2]); err == nil {
				p.Items = append(p.Items, "found")
			}
			_ = w.Destroy(pick(n + 8))
			hs = append(hs, more...)
			switch n % 9 {
			case 3:
				w.ProcessDeferredDestructions()
				w.ConfirmLocalRecycles()
				w.ConfirmNetRecycles()
			case 5:
				_, _ = w.AssignNet(more[0])
				return errors.New("planned")
			case 7:
				require.NoError(m.t, w.Reset())
				hs = nil
			}
			return nil
		})
		if err != nil {
			return hashes, err
		}
		hashes = append(hashes, hash)
	}
	return hashes, nil
}

// fed does a frame of a journal again.
func (m *realm) fed(f *JournalFrame) error {
	require.NoError(m.t, m.core.Enter(false))
	defer m.core.Leave()
	rec := m.core.NewRecord()
	if err := f.Fill(rec); err != nil {
		return err
	}
	if err := m.core.Feed(rec); err != nil {
		return err
	}
	defer m.core.Feed(nil)
	m.core.UpdatesAgain()
	m.core.SetInputs(f.Inputs)
	m.core.Advance()
	m.core.ProcessDestructions()
	m.core.OpenWindow()
	m.core.RunWishes()
	m.core.OpsAgain()
	m.core.CloseWindow()
	m.core.Deliver()
	m.core.Boundary()
	m.core.EndFrame()
	return nil
}

// again reads a journal to its end in a realm of its own, and gives the hashes that came out.
func again(t testing.TB, fsys fs.FS) (hashes []uint64, j *JournalReader) {
	m := newRealm(t, journalRealm)
	j, err := ReadJournal(fsys, m.r)
	require.NoError(t, err)
	defer j.Close()
	for {
		f, err := j.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.NoError(t, m.fed(f))
		require.Equal(t, f.Hash, m.published(), "frame %d", f.Number)
		require.Equal(t, []registry.Input{{Player: 3, Data: []byte{byte(f.Number)}}}, f.Inputs)
		hashes = append(hashes, f.Hash)
	}
	require.NoError(t, m.r.Verify())
	return hashes, j
}

// TestJournalHasAllThatARecordKnows writes all kinds of steps, and does them again.
func TestJournalHasAllThatARecordKnows(t *testing.T) {
	for _, part := range []int{partBytes, 100, 1} {
		d := newMemDisk()
		m := newJournaled(t, d, SegmentBytes(3000))
		m.j.part = part
		want, err := m.life(50)
		require.NoError(t, err)
		require.NoError(t, m.j.Close())
		require.NoError(t, m.j.Close(), "again")
		require.ErrorIs(t, m.j.Append(&JournalFrame{}), fs.ErrClosed)
		got, j := again(t, d.view(""))
		require.Equal(t, want, got)
		_, reason := j.Loss()
		require.NoError(t, reason)
		last, err := j.Last()
		require.NoError(t, err)
		require.EqualValues(t, 50, last)
	}
}

// TestTheLastFrameIsNotThatBeforeAFileThatCannotBeRead has a segment that is there and cannot be opened or read today: nobody
// knows which frame is the last.
func TestTheLastFrameIsNotThatBeforeAFileThatCannotBeRead(t *testing.T) {
	d := newMemDisk()
	m := newJournaled(t, d, SegmentBytes(3000))
	_, err := m.life(50)
	require.NoError(t, err)
	require.NoError(t, m.j.Close())
	for _, open := range []bool{false, true} {
		j, err := ReadJournal(brokenFS{d.view(""), segmentName(2), open}, m.r)
		require.NoError(t, err)
		_, err = j.Last()
		require.ErrorIs(t, err, errDisk)
		j.Close()
	}
}

// TestAJournalOfAnotherSchemaIsRefused names both hashes.
func TestAJournalOfAnotherSchemaIsRefused(t *testing.T) {
	d := newMemDisk()
	m := newJournaled(t, d)
	require.NoError(t, m.j.Close())
	other := newRealm(t, realmConfig{Config: journalRealm.Config, slots: 128})
	_, err := ReadJournal(d.view(""), other.r)
	require.ErrorIs(t, err, ErrSchema)
	was, err2 := newJournalSchema(m.r)
	require.NoError(t, err2)
	is, err2 := newJournalSchema(other.r)
	require.NoError(t, err2)
	require.NotEqual(t, was.hash, is.hash)
	require.ErrorContains(t, err, fmt.Sprintf("%016x", was.hash))
	require.ErrorContains(t, err, fmt.Sprintf("%016x", is.hash))

	backward := journalRealm
	backward.backward = true
	_, err = ReadJournal(d.view(""), newRealm(t, backward).r)
	require.NoError(t, err, "the order of registration does not matter")
	smaller := journalRealm
	smaller.MaxEntities = 999
	_, err = ReadJournal(d.view(""), newRealm(t, smaller).r)
	require.ErrorIs(t, err, ErrConfig)
	_, err = ReadJournal(fstest.MapFS{}, m.r)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = openJournalOn(d, "", m.r, Terms{})
	require.ErrorIs(t, err, fs.ErrExist)
}

// TestAComponentWithoutACodecIsRefused before anything is written.
func TestAComponentWithoutACodecIsRefused(t *testing.T) {
	type secret struct{ P *int }
	type halves struct{ A, B *int }
	for _, register := range []func(r *registry.Registry) error{
		func(r *registry.Registry) error { return component[secret](r, registry.Named("Secret")) },
		func(r *registry.Registry) error {
			return component[halves](r, registry.Named("Secret"), registry.Split())
		},
	} {
		m := newRealm(t, journalRealm)
		require.NoError(t, register(m.r))
		d := newMemDisk()
		_, err := openJournalOn(d, "", m.r, Terms{})
		require.ErrorIs(t, err, ErrNoCodec)
		require.ErrorContains(t, err, "Secret")
		require.Empty(t, d.files)
	}
}

// TestALateComponentEndsTheJournal has a class that the journal does not know.
func TestALateComponentEndsTheJournal(t *testing.T) {
	type late struct{ Position position }
	m := newJournaled(t, newMemDisk())
	c, err := registry.RegisterClass[late](m.r, registry.Named("Late"))
	require.NoError(t, err)
	_, err = m.run(func(w *registry.Window) error {
		_, err := c.Spawn(w, late{})
		return err
	})
	require.ErrorIs(t, err, ErrSchema)
	_, err = m.run(nil)
	require.ErrorIs(t, err, ErrSchema, "it stays")
	require.ErrorIs(t, m.j.Close(), ErrSchema)
}

// TestJournalsThatFailHaveWhatWasWritten has every operation of the disk fail once.
func TestJournalsThatFailHaveWhatWasWritten(t *testing.T) {
	for _, how := range []fault{nothing, half, silentHalf} {
		for failAt := 1; ; failAt++ {
			d := newMemDisk()
			d.failAt, d.fault = failAt, how
			m := &journaled{realm: newRealm(t, journalRealm)}
			require.NoError(t, m.core.KeepRecords())
			var err error
			if m.j, err = openJournalOn(d, "", m.r, Terms{}, SegmentBytes(2000), SyncEvery(2)); err != nil {
				require.True(t, d.failed())
				continue
			}
			hashes, err := m.life(8)
			closed := m.j.Close()
			if !d.failed() {
				require.NoError(t, errors.Join(err, closed))
				break
			}
			if err == nil && closed == nil {
				continue // closing and removing may fail unheard
			}
			require.Error(t, closed, "what has failed stays so")
			if n, err := segmentNumbers(d.view("")); err != nil || len(n) == 0 {
				continue
			}
			got, _ := again(t, d.view(""))
			require.GreaterOrEqual(t, len(got), len(hashes)-1)
			require.Equal(t, hashes[:min(len(got), len(hashes))], got[:min(len(got), len(hashes))])
		}
	}
}

// TestAJournalThatCouldNotBeOpenedIsNotInTheWay has every operation of opening fail once, with a state to begin with and
// without: where there is no journal, one can be opened when the disk has room again.
func TestAJournalThatCouldNotBeOpenedIsNotInTheWay(t *testing.T) {
	m := newRealm(t, journalRealm)
	var state *Image
	m.update(func(w *registry.Window) {
		var err error
		state, err = Take(w)
		require.NoError(t, err)
	})
	for _, terms := range []Terms{{}, {State: state}} {
		for _, how := range []fault{nothing, half, silentHalf} {
			for failAt := 1; ; failAt++ {
				d := newMemDisk()
				d.failAt, d.fault = failAt, how
				_, err := openJournalOn(d, "", m.r, terms)
				if !d.failed() {
					require.NoError(t, err)
					break
				}
				if err == nil {
					continue // closing and removing may fail unheard
				}
				failure := d.ops[failAt-1]
				d.failAt = 0
				j, err := openJournalOn(d, "", m.r, terms)
				require.NoError(t, err, "after %s failed, operation %d", failure, failAt)
				require.NoError(t, j.Close())
			}
		}
	}
}

// treeDisk is a memDisk with directories, and knows which names of them would be left after a loss of power.
type treeDisk struct {
	*memDisk
	dirs, durable map[string]bool
}

func (d *treeDisk) mode(name string) (fs.FileMode, error) {
	if d.dirs[name] {
		return fs.ModeDir, nil
	}
	return d.memDisk.mode(name)
}

func (d *treeDisk) mkdir(dir string) error {
	if !d.dirs[filepath.Dir(dir)] {
		return fs.ErrNotExist
	}
	d.dirs[dir] = true
	return nil
}

func (d *treeDisk) syncDir(dir string) error {
	for name := range d.dirs {
		if filepath.Dir(name) == dir {
			d.durable[name] = true
		}
	}
	return d.memDisk.syncDir(dir)
}

// TestTheDirectoryOfAJournalLasts as its files do: without its name they are gone.
func TestTheDirectoryOfAJournalLasts(t *testing.T) {
	home, runs := "home", filepath.Join("home", "runs")
	dir := filepath.Join(runs, "today")
	d := &treeDisk{newMemDisk(), map[string]bool{home: true}, map[string]bool{}}
	j, err := openJournalOn(d, dir, newRealm(t, journalRealm).r, Terms{})
	require.NoError(t, err)
	require.True(t, d.durable[runs])
	require.True(t, d.durable[dir])
	require.NoError(t, j.Close())
}

// TestAmendmentsAreMerged wherever they come.
func TestAmendmentsAreMerged(t *testing.T) {
	c := registry.Config{Deterministic: true, MaxEntities: 100, TemporalFrames: 8}
	open := func() *registry.Registry {
		r, err := registry.New(c)
		require.NoError(t, err)
		return r
	}
	d := newMemDisk()
	j, err := openJournalOn(d, "", open(), Terms{})
	require.NoError(t, err)
	lost := []registry.Lost{{Entity: handles.NewLocal(5, 1), Born: true}}
	for n := uint64(1); n <= 20; n++ {
		require.NoError(t, j.Append(&JournalFrame{Number: n, Hash: n}))
		if n == 9 || n == 10 {
			var list []JournalFrame
			for k := n - 6; k <= n; k++ {
				list = append(list, JournalFrame{Number: k, Hash: 100*n + k, Inputs: []registry.Input{{Player: 1, Data: []byte("late")}}, Lost: lost})
			}
			require.NoError(t, j.Amend(list))
		}
	}
	require.NoError(t, j.Close())
	r, err := ReadJournal(d.view(""), open())
	require.NoError(t, err)
	for n := uint64(1); n <= 20; n++ {
		f, err := r.Next()
		require.NoError(t, err)
		want := n
		switch {
		case n == 3:
			want = 903
		case n > 3 && n <= 10:
			want = 1000 + n
		}
		require.Equal(t, want, f.Hash)
		require.Equal(t, want != n, len(f.Inputs) == 1)
		require.Equal(t, want != n, len(f.Lost) == 1)
	}
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)

	for name, bad := range map[string]func(j *Journal) error{
		"a frame of the future": func(j *Journal) error { return j.Amend([]JournalFrame{{Number: 3}}) },
		"a frame that is gone":  func(j *Journal) error { return j.Amend([]JournalFrame{{Number: 0}}) },
		"a frame that is left out": func(j *Journal) error {
			return j.Append(&JournalFrame{Number: 9})
		},
	} {
		d := newMemDisk()
		j, err := openJournalOn(d, "", open(), Terms{})
		require.NoError(t, err)
		require.NoError(t, j.Append(&JournalFrame{Number: 1}))
		require.NoError(t, bad(j))
		require.NoError(t, j.Close())
		r, err := ReadJournal(d.view(""), open())
		require.NoError(t, err)
		_, err = r.Next()
		require.NoError(t, err, name)
		_, err = r.Next()
		require.ErrorIs(t, err, ErrDamaged, name)
	}
}

// TestASteadyFrameCostsOneAllocation, that of the write.
func TestASteadyFrameCostsOneAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	m := newJournaled(t, newMemDisk())
	hs := []handles.Local{}
	_, err := m.run(func(w *registry.Window) error {
		for i := range 50 {
			h, err := m.stones.Spawn(w, stone{position{X: float32(i)}})
			if err != nil {
				return err
			}
			hs = append(hs, h)
		}
		return nil
	})
	require.NoError(t, err)
	move := func(w *registry.Window) error {
		for _, h := range hs {
			if err := registry.Set(w, h, position{1, 2, 3}); err != nil {
				return err
			}
		}
		return nil
	}
	_, err = m.run(move)
	require.NoError(t, err)
	rec, err := m.core.RecordOf(m.core.FrameNumber())
	require.NoError(t, err)
	f := &JournalFrame{Number: 3, Record: rec}
	grow := bytes.Repeat([]byte{0}, 8<<20)
	file := m.j.log.file.(*memHandle).f
	file.data = append(file.data, grow...)[:len(file.data)]
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		if err := m.j.Append(f); err != nil {
			panic(err)
		}
	}), 1.0)
}

// chained is a journal whose records are what somebody else says, each as if it had been written.
func chained(schema uint64, payloads ...[]byte) fs.FS {
	b := segmentHeader{number: 1, schema: schema}.append(nil)
	chain := make([]byte, chainBytes)
	for i, p := range payloads {
		rec := bytes.Clone(chain)
		rec = binary.LittleEndian.AppendUint32(rec, uint32(len(p)))
		rec = binary.LittleEndian.AppendUint64(rec, uint64(i+1))
		rec = append(rec, p...)
		binary.LittleEndian.PutUint64(chain, xxh3.Hash(rec))
		b = append(append(b, rec[chainBytes:]...), chain...)
	}
	return fstest.MapFS{segmentName(1): {Data: b}}
}

// FuzzFrames reads and does journals whose chain is right and whose records are anything.
func FuzzFrames(f *testing.F) {
	d := newMemDisk()
	m := newJournaled(f, d)
	_, err := m.life(12)
	require.NoError(f, err)
	require.NoError(f, m.j.Close())
	log, err := readLog(d.view(""), m.j.schema.hash)
	require.NoError(f, err)
	first, ok := log.next()
	require.True(f, ok)
	start, schema := bytes.Clone(first), m.j.schema.hash
	for p, ok := log.next(); ok; p, ok = log.next() {
		f.Add(bytes.Clone(p), 0, byte(0))
	}
	f.Add([]byte{recordAmend, 1, 1}, 1, byte(1))
	f.Fuzz(func(t *testing.T, frame []byte, at int, flip byte) {
		if len(frame) > 0 {
			frame = bytes.Clone(frame)
			frame[uint(at)%uint(len(frame))] ^= flip
			if len(frame) > 1 && frame[0] == recordFrame {
				frame[1] = 1 // so that it comes next
			}
		}
		m := newRealm(t, journalRealm)
		j, err := ReadJournal(chained(schema, start, frame), m.r)
		require.NoError(t, err)
		defer j.Close()
		for {
			fr, err := j.Next()
			if err != nil {
				require.True(t, err == io.EOF || errors.Is(err, ErrDamaged), "%v", err)
				break
			}
			if err := m.fed(fr); err != nil {
				require.ErrorIs(t, err, ErrDamaged)
				break
			}
		}
		_, err = ReadJournal(chained(schema, frame), m.r)
		_ = err
		require.NoError(t, m.r.Verify())
	})
}
