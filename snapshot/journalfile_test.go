package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

const testSchema = 0x0123456789abcdef

// payload is what record i of a test has to say.
func payload(i int) []byte {
	return bytes.Repeat([]byte{byte(i), byte(i >> 8), 'x'}, i*7%23)
}

// readAll reads a log to its end, and checks each record against payload.
func readAll(t require.TestingT, fsys fs.FS) (records int, lost int64, reason error) {
	r, err := readLog(fsys, testSchema)
	require.NoError(t, err)
	for p, ok := r.next(); ok; p, ok = r.next() {
		records++
		if !bytes.Equal(payload(records), p) {
			require.Equal(t, payload(records), p, "record %d", records)
		}
	}
	_, ok := r.next()
	require.False(t, ok, "the end stays")
	lost, reason = r.loss()
	return records, lost, reason
}

// place is where a record ends.
type place struct {
	segment int
	offset  int64
}

// logged makes a log of n records in small segments, and says where each ends; the first place is
// that of no record.
func logged(t require.TestingT, n int) (*memDisk, []place) {
	d := newMemDisk()
	l, err := openLogOn(d, "", testSchema, logOptions{segmentBytes: 260})
	require.NoError(t, err)
	ends := []place{{1, segmentHeaderBytes}}
	for i := range n {
		require.NoError(t, l.append(payload(i+1)))
		ends = append(ends, place{int(l.number), l.size})
	}
	require.NoError(t, l.close())
	return d, ends
}

// segments lists the names of the segments on a disk.
func segments(d *memDisk) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		if _, ok := segmentNumber(name); ok {
			names = append(names, name)
		}
	}
	return names
}

// altered is d with one segment changed; nil removes it.
func altered(d *memDisk, name string, data []byte) *memDisk {
	other := newMemDisk()
	for n, f := range d.files {
		if n != name {
			other.put(n, f.data)
		} else if data != nil {
			other.put(n, data)
		}
	}
	return other
}

// resumes goes on with a log of which n records are valid, and checks that it is whole again.
func resumes(t require.TestingT, d *memDisk, n int, lost int64) {
	l, err := openLogOn(d, "", testSchema, logOptions{segmentBytes: 260, resume: true})
	require.NoError(t, err)
	cut, reason := l.loss()
	require.Equal(t, lost, cut)
	require.Equal(t, lost > 0, reason != nil)
	require.EqualValues(t, n, l.sequence)
	for i := range 9 {
		require.NoError(t, l.append(payload(n+i+1)))
	}
	require.NoError(t, l.close())
	records, lost, reason := readAll(t, d.crash(0, false).view(""))
	require.NoError(t, reason)
	require.Zero(t, lost)
	require.Equal(t, n+9, records)
}

func TestLogGivesBackWhatWasAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newMemDisk()
		o := logOptions{segmentBytes: rapid.Int64Range(1, 2000).Draw(t, "segment bytes"), syncEvery: rapid.IntRange(0, 4).Draw(t, "sync every")}
		l, err := openLogOn(d, "", testSchema, o)
		require.NoError(t, err)
		n, flushed, synced := 0, 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				n++
				require.NoError(t, l.append(payload(n)))
				if o.syncEvery > 0 {
					synced = max(synced, n-o.syncEvery+1)
				}
				flushed = max(flushed, synced)
			},
			"flush": func(t *rapid.T) { require.NoError(t, l.flush()); flushed = n },
			"sync":  func(t *rapid.T) { require.NoError(t, l.sync()); flushed, synced = n, n },
			"open again": func(t *rapid.T) {
				require.NoError(t, l.close())
				_, err := openLogOn(d, "", testSchema, o)
				require.ErrorIs(t, err, fs.ErrExist)
				again := o
				again.resume = true
				l, err = openLogOn(d, "", testSchema, again)
				require.NoError(t, err)
				require.EqualValues(t, n, l.sequence)
				flushed, synced = n, n
			},
			"": func(t *rapid.T) {
				records, lost, reason := readAll(t, d.view(""))
				require.NoError(t, reason)
				require.Zero(t, lost)
				require.True(t, flushed <= records && records <= n, "%d of %d, %d flushed", records, n, flushed)
				records, _, _ = readAll(t, d.crash(0, false).view(""))
				require.True(t, synced <= records && records <= n, "%d of %d, %d synced", records, n, synced)
				for _, name := range segments(d) {
					size := int64(len(d.files[name].data))
					require.True(t, size <= o.segmentBytes || size <= segmentHeaderBytes+recordHeadBytes+chainBytes+66)
				}
			},
		})
	})
}

func TestLogHasOneLayout(t *testing.T) {
	dir := t.TempDir()
	l, err := openLog(dir, testSchema, logOptions{})
	require.NoError(t, err)
	require.NoError(t, l.append([]byte("abc")))
	require.NoError(t, l.append(nil))
	require.NoError(t, l.close())
	require.NoError(t, l.close(), "closed is closed")
	for _, call := range []func() error{l.flush, l.sync, func() error { return l.append(nil) }} {
		require.ErrorIs(t, call(), fs.ErrClosed)
	}
	want := append([]byte("airlock\x01"), 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0)
	want = append(want, 0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 0, 0, 0, 0, 0, 0, 0, 0)
	want = binary.LittleEndian.AppendUint64(want, xxh3.Hash(want))
	first := append(make([]byte, 8), 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c')
	second := binary.LittleEndian.AppendUint64(nil, xxh3.Hash(first))
	second = append(second, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0)
	want = append(append(want, first[8:]...), second...)
	want = binary.LittleEndian.AppendUint64(want, xxh3.Hash(second))
	got, err := os.ReadFile(filepath.Join(dir, "journal-00000001.seg"))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestLogOnTheFileSystemGoesOnAfterACut(t *testing.T) {
	dir := t.TempDir()
	o := logOptions{segmentBytes: 500, syncEvery: 10}
	l, err := openLog(dir, testSchema, o)
	require.NoError(t, err)
	for i := range 40 {
		require.NoError(t, l.append(payload(i+1)))
	}
	require.NoError(t, l.close())
	_, err = openLog(dir, testSchema, o)
	require.ErrorIs(t, err, fs.ErrExist)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("not ours"), 0o600))
	damaged := filepath.Join(dir, segmentName(3))
	data, err := os.ReadFile(damaged)
	require.NoError(t, err)
	data[200] ^= 4
	require.NoError(t, os.WriteFile(damaged, data, 0o600))
	n, lost, reason := readAll(t, os.DirFS(dir))
	require.ErrorIs(t, reason, ErrDamaged)

	o.resume = true
	l, err = openLog(dir, testSchema, o)
	require.NoError(t, err)
	cut, reason := l.loss()
	require.Equal(t, lost, cut)
	require.ErrorIs(t, reason, ErrDamaged)
	for i := range 40 {
		require.NoError(t, l.append(payload(n+i+1)))
	}
	require.NoError(t, l.close())
	records, lost, reason := readAll(t, os.DirFS(dir))
	require.NoError(t, reason)
	require.Zero(t, lost)
	require.Equal(t, n+40, records)
	_, err = os.Stat(filepath.Join(dir, segmentName(4)+".lost"))
	require.NoError(t, err, "what came behind the damage is kept")
	_, err = openLog(filepath.Join(dir, "none"), testSchema, o)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestLogCutAnywhereKeepsAllBeforeTheCut(t *testing.T) {
	d, ends := logged(t, 14)
	names := segments(d)
	require.Len(t, names, 4)
	for s, name := range names {
		data := d.files[name].data
		for cut := range data {
			want, behind := 0, int64(0)
			kept := place{0, 0}
			for i, e := range ends {
				if e.segment < s+1 || e.segment == s+1 && e.offset <= int64(cut) {
					want, kept = i, e
				}
			}
			if kept.segment < s+1 && cut >= segmentHeaderBytes {
				kept = place{s + 1, segmentHeaderBytes}
			}
			lost := int64(cut)
			if kept.segment == s+1 {
				lost -= kept.offset
			}
			for _, later := range names[s+1:] {
				behind += int64(len(d.files[later].data))
			}
			other := altered(d, name, data[:cut:cut])
			records, gone, reason := readAll(t, other.view(""))
			require.Equal(t, want, records, "%s cut at %d", name, cut)
			require.Equal(t, lost+behind, gone, "%s cut at %d", name, cut)
			atBorder := kept == place{s + 1, int64(cut)}
			if s == len(names)-1 && atBorder {
				require.NoError(t, reason, "a log that is only shorter")
			} else {
				require.ErrorIs(t, reason, ErrDamaged)
				where := fmt.Sprintf("segment %d at byte %d", s+1, kept.offset)
				if atBorder {
					where = fmt.Sprintf("segment %d at byte 0", s+2)
				} else if kept.segment < s+1 {
					where = fmt.Sprintf("segment %d at byte 0", s+1)
				}
				require.Regexp(t, where+"$", reason.Error())
			}
			if gone > 0 || reason == nil {
				resumes(t, other, records, gone)
			}
		}
	}
}

func TestLogWithAFlippedBitKeepsAllBeforeIt(t *testing.T) {
	d, ends := logged(t, 14)
	names := segments(d)
	for s, name := range names {
		data := bytes.Clone(d.files[name].data)
		for bit := range len(data) * 8 {
			want := 0
			for i, e := range ends {
				if e.segment < s+1 || e.segment == s+1 && e.offset <= int64(bit/8) {
					want = i
				}
			}
			data[bit/8] ^= 1 << (bit % 8)
			other := altered(d, name, data)
			records, lost, reason := readAll(t, other.view(""))
			require.Equal(t, want, records, "%s, bit %d", name, bit)
			require.ErrorIs(t, reason, ErrDamaged)
			require.Positive(t, lost)
			if bit%41 == 0 {
				other = altered(d, name, bytes.Clone(data))
				resumes(t, other, records, lost)
			}
			data[bit/8] ^= 1 << (bit % 8)
		}
	}
}

func TestLogNoticesWhatIsMissingOrForeign(t *testing.T) {
	d, ends := logged(t, 14)
	names := segments(d)
	size := func(names []string) (n int64) {
		for _, name := range names {
			n += int64(len(d.files[name].data))
		}
		return n
	}
	upTo := func(segment int) (n int) {
		for i, e := range ends {
			if e.segment <= segment {
				n = i
			}
		}
		return n
	}
	first := d.files[names[0]].data
	second := d.files[names[1]].data
	other := newMemDisk() // a log of the same schema with other records
	l, err := openLogOn(other, "", testSchema, logOptions{segmentBytes: 260})
	require.NoError(t, err)
	for range 20 {
		require.NoError(t, l.append([]byte("something else")))
	}
	require.NoError(t, l.close())
	record := func(i int) []byte { return first[ends[i-1].offset:ends[i].offset] }
	gap := append(bytes.Clone(first[:ends[1].offset]), first[ends[2].offset:]...)
	twice := append(bytes.Clone(first[:ends[2].offset]), first[ends[1].offset:]...)
	swapped := slices.Concat(first[:ends[1].offset], record(3), record(2), first[ends[3].offset:])

	for name, c := range map[string]struct {
		disk    *memDisk
		records int
		lost    int64
		want    string
	}{
		"the first segment":      {altered(d, names[0], nil), 0, size(names[1:]), "snapshot: damaged: it is missing: journal segment 1 at byte 0"},
		"the third segment":      {altered(d, names[2], nil), upTo(2), size(names[3:]), "snapshot: damaged: it is missing: journal segment 3 at byte 0"},
		"another's segment":      {altered(d, names[1], other.files[names[1]].data), upTo(1), size(names[2:]) + int64(len(other.files[names[1]].data)), "it does not follow the segment before"},
		"a segment twice":        {altered(d, names[2], second), upTo(2), size(names[1:2]) + size(names[3:]), "it says that it is segment 2"},
		"a record left out":      {altered(d, names[0], gap), 1, size(names) - ends[2].offset, "record 3 follows record 1"},
		"a record twice":         {altered(d, names[0], twice), 2, size(names) - ends[1].offset, "record 2 follows record 2"},
		"records in wrong order": {altered(d, names[0], swapped), 1, size(names) - ends[1].offset, "record 3 follows record 1"},
	} {
		records, lost, reason := readAll(t, c.disk.view(""))
		require.ErrorIs(t, reason, ErrDamaged, name)
		require.Regexp(t, c.want+"$|"+c.want+": ", reason.Error(), name)
		require.Equal(t, c.records, records, name)
		require.Equal(t, c.lost, lost, name)
		resumes(t, c.disk, records, lost)
	}
}

func TestLogOfAnotherSchemaOrVersionIsLeftAlone(t *testing.T) {
	d, _ := logged(t, 14)
	before := d.files[segmentName(1)].data
	_, err := readLog(d.view(""), 0xff)
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "0123456789abcdef was written, and this is 00000000000000ff")
	_, err = openLogOn(d, "", 0xff, logOptions{resume: true})
	require.ErrorIs(t, err, ErrSchema)

	later := bytes.Clone(before)
	later[8] = 2
	binary.LittleEndian.PutUint64(later[segmentHeaderBytes-8:], xxh3.Hash(later[:segmentHeaderBytes-8]))
	_, err = readLog(altered(d, segmentName(1), later).view(""), testSchema)
	require.ErrorIs(t, err, ErrVersion)

	third := bytes.Clone(d.files[segmentName(3)].data)
	third[20]++
	binary.LittleEndian.PutUint64(third[segmentHeaderBytes-8:], xxh3.Hash(third[:segmentHeaderBytes-8]))
	d = altered(d, segmentName(3), third)
	_, _, reason := readAll(t, d.view(""))
	require.ErrorIs(t, reason, ErrSchema)
	names := slices.Sorted(maps.Keys(d.files))
	_, err = openLogOn(d, "", testSchema, logOptions{resume: true})
	require.ErrorIs(t, err, ErrSchema)
	require.Equal(t, names, slices.Sorted(maps.Keys(d.files)))
	require.Empty(t, d.ops, "nothing was touched")
}

// brokenFS fails to read or to open one file.
type brokenFS struct {
	fs.FS
	name string
	open bool
}

func (b brokenFS) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	if name == b.name && b.open {
		return nil, errDisk
	}
	if name == b.name {
		return brokenFile{f}, err
	}
	return f, err
}

type brokenFile struct{ fs.File }

func (brokenFile) Read([]byte) (int, error) { return 0, errDisk }

// brokenView is a disk that cannot be read.
type brokenView struct {
	*memDisk
	fsys fs.FS
}

func (d brokenView) view(string) fs.FS { return d.fsys }

func TestAFileThatCannotBeReadIsNoDamage(t *testing.T) {
	d, _ := logged(t, 14)
	for _, open := range []bool{false, true} {
		_, err := readLog(brokenFS{d.view(""), segmentName(1), open}, testSchema)
		require.ErrorIs(t, err, errDisk)
		broken := brokenFS{d.view(""), segmentName(2), open}
		records, lost, reason := readAll(t, broken)
		require.Positive(t, records)
		require.Positive(t, lost)
		require.ErrorIs(t, reason, errDisk)
		require.NotErrorIs(t, reason, ErrDamaged)
		_, err = openLogOn(brokenView{d, broken}, "", testSchema, logOptions{resume: true})
		require.ErrorIs(t, err, errDisk, "it would cut off what is only unreadable today")
	}
	_, err := readLog(brokenFS{d.view(""), ".", true}, testSchema)
	require.ErrorIs(t, err, errDisk)
}

// script takes a log through all it does and says how many records were acknowledged by a sync, and how many were
// appended. After the first error it goes on, and whatever it calls has to give that error.
func script(t require.TestingT, d *memDisk, o logOptions) (synced, appended int) {
	var first error
	check := func(err error) bool {
		if first != nil {
			require.Equal(t, first, err, "the first error stays")
		}
		first = err
		return err == nil
	}
	l, err := openLogOn(d, "", testSchema, o)
	if err != nil {
		return 0, 0
	}
	require.Zero(t, l.sequence)
	for i := range 30 {
		if check(l.append(payload(i + 1))) {
			appended = i + 1
		} else if first != nil && appended == i {
			appended++ // it may be there
		}
		if i%7 == 3 {
			check(l.flush())
		}
		if i%10 == 9 && check(l.sync()) {
			synced = appended
		}
	}
	if check(l.close()) {
		synced = appended
	}
	if first != nil {
		failed := d.failAt
		for _, op := range d.ops[failed:] {
			require.Contains(t, []string{"close", "remove"}, op, "after the failure of %s", d.ops[failed-1])
		}
		require.Equal(t, first, l.close())
	}
	return synced, appended
}

func TestLogKeepsWhatWasSyncedWhereverItFails(t *testing.T) {
	for _, o := range []logOptions{{segmentBytes: 260}, {segmentBytes: 10_000, syncEvery: 3}, {segmentBytes: 1}} {
		for _, how := range []fault{nothing, half, silentHalf} {
			for failAt := 1; ; failAt++ {
				d := newMemDisk()
				d.failAt, d.fault = failAt, how
				synced, appended := script(t, d, o)
				if !d.failed() {
					require.Equal(t, 30, synced)
					break
				}
				for _, extra := range []int{0, 30, 1000} {
					for _, names := range []bool{false, true} {
						after := d.crash(extra, names)
						records, _, _ := readAll(t, after.view(""))
						require.GreaterOrEqual(t, records, synced, "%v at %d: %s", how, failAt, d.ops[failAt-1])
						require.LessOrEqual(t, records, appended)
						resumesAfter(t, after, records)
					}
				}
			}
		}
	}
}

// resumesAfter goes on with a log after a crash.
func resumesAfter(t require.TestingT, d *memDisk, n int) {
	l, err := openLogOn(d, "", testSchema, logOptions{segmentBytes: 260, resume: true})
	require.NoError(t, err)
	for i := range 3 {
		require.NoError(t, l.append(payload(n+i+1)))
	}
	require.NoError(t, l.close())
	records, lost, reason := readAll(t, d.crash(0, false).view(""))
	require.NoError(t, reason)
	require.Zero(t, lost)
	require.Equal(t, n+3, records)
}

func TestResumingMayFailAnywhere(t *testing.T) {
	d, _ := logged(t, 14)
	torn := bytes.Clone(d.files[segmentName(2)].data)
	torn[100]++
	for _, damaged := range []*memDisk{altered(d, segmentName(2), torn), altered(d, segmentName(1), nil), altered(d, segmentName(4), []byte("air"))} {
		want, _, _ := readAll(t, damaged.view(""))
		for failAt := 1; ; failAt++ {
			d := damaged.crash(0, false)
			d.failAt = failAt
			_, err := openLogOn(d, "", testSchema, logOptions{resume: true})
			if !d.failed() {
				require.NoError(t, err)
				break
			}
			require.ErrorIs(t, err, errDisk)
			for _, names := range []bool{false, true} {
				after := d.crash(0, names)
				records, _, _ := readAll(t, after.view(""))
				require.Equal(t, want, records, "nothing valid is lost by %s", d.ops[failAt-1])
				resumesAfter(t, after, records)
			}
		}
	}
}

func TestALogThatCouldNotBeginCanBeBegunAgain(t *testing.T) {
	for failAt := 1; failAt <= 4; failAt++ {
		d := newMemDisk()
		d.failAt = failAt
		_, err := openLogOn(d, "", testSchema, logOptions{})
		require.ErrorIs(t, err, errDisk)
		require.Empty(t, d.files)
		_, err = openLogOn(d, "", testSchema, logOptions{})
		require.NoError(t, err)
	}
	_, err := openLogOn(newMemDisk(), "", testSchema, logOptions{segmentBytes: -1})
	require.Error(t, err)
	_, err = openLogOn(newMemDisk(), "", testSchema, logOptions{syncEvery: -1})
	require.Error(t, err)
}

func TestLogRefusesARecordThatIsTooLargeAndGoesOn(t *testing.T) {
	d := newMemDisk()
	l, err := openLogOn(d, "", testSchema, logOptions{segmentBytes: 1000})
	require.NoError(t, err)
	require.ErrorIs(t, l.append(make([]byte, maxRecordBytes+1)), ErrTooLarge)
	large := noise(5 << 20)
	for range 2 {
		require.NoError(t, l.append(large))
		require.NoError(t, l.append([]byte("small")))
	}
	require.NoError(t, l.close())
	require.Less(t, cap(l.pending), 1<<20, "a large buffer is let go")
	r, err := readLog(d.view(""), testSchema)
	require.NoError(t, err)
	for range 2 {
		p, ok := r.next()
		require.True(t, ok && bytes.Equal(large, p))
		p, ok = r.next()
		require.True(t, ok && string(p) == "small")
	}
	r.close()
	_, ok := r.next()
	require.False(t, ok, "closed is closed")
}

func TestLogMemoryFollowsTheBytesThatArrive(t *testing.T) {
	head := segmentHeader{1, testSchema, 0}.append(nil)
	for name, length := range map[string]uint32{"the most": maxRecordBytes, "more": maxRecordBytes + 1, "all": 1<<32 - 1} {
		b := binary.LittleEndian.AppendUint32(bytes.Clone(head), length)
		b = binary.LittleEndian.AppendUint64(b, 1)
		b = append(b, noise(1000)...)
		fsys := fstest.MapFS{segmentName(1): &fstest.MapFile{Data: b}}
		used := allocated(func() {
			records, lost, reason := readAll(t, fsys)
			require.Zero(t, records)
			require.EqualValues(t, 1012, lost)
			require.ErrorIs(t, reason, ErrDamaged)
		})
		require.Less(t, used, uint64(3<<20), name)
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	l, err := openLog(t.TempDir(), testSchema, logOptions{})
	require.NoError(t, err)
	p := noise(100)
	for range 2000 {
		require.NoError(t, l.append(p))
	}
	require.Zero(t, testing.AllocsPerRun(5000, func() {
		if l.append(p) != nil {
			t.Fail()
		}
	}))
	require.NoError(t, l.close())
}

func TestSegmentNamesAreExact(t *testing.T) {
	for name, want := range map[string]uint64{
		"journal-00000001.seg": 1, "journal-12345678.seg": 12345678, "journal-123456789.seg": 123456789,
		"journal-00000000.seg": 0, "journal-1.seg": 0, "journal-000000001.seg": 0, "journal-00000001.seg.lost": 0,
		"journal-+0000001.seg": 0, "journal-00000001": 0, "00000001.seg": 0, "": 0, "journal-99999999999999999999.seg": 0,
	} {
		n, ok := segmentNumber(name)
		require.Equal(t, want != 0, ok, name)
		if ok {
			require.Equal(t, want, n)
		}
	}
	n, lost, reason := readAll(t, fstest.MapFS{})
	require.Zero(t, n)
	require.Zero(t, lost)
	require.NoError(t, reason)
}

func FuzzJournal(f *testing.F) {
	d, _ := logged(f, 14)
	first, second := d.files[segmentName(1)].data, d.files[segmentName(2)].data
	f.Add([]byte{}, []byte{})
	f.Add(first, second)
	f.Add(first, second[:100])
	f.Add(first[:60], second)
	f.Add(segmentHeader{1, testSchema, 0}.append(nil), segmentHeader{2, testSchema, 0}.append(nil))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		d := newMemDisk()
		d.put(segmentName(1), one)
		d.put(segmentName(2), two)
		r, err := readLog(d.view(""), testSchema)
		if err != nil {
			return // another version or schema, with a checksum that is right
		}
		var got [][]byte
		delivered := 0
		for p, ok := r.next(); ok; p, ok = r.next() {
			got = append(got, bytes.Clone(p))
			delivered += recordHeadBytes + len(p) + chainBytes
		}
		lost, reason := r.loss()
		require.LessOrEqual(t, lost+int64(delivered), int64(len(one)+len(two)))
		require.True(t, lost == 0 || reason != nil)
		require.LessOrEqual(t, cap(r.buf), 2*(len(one)+len(two)+aheadBytes), "memory follows the bytes")

		l, err := openLogOn(d, "", testSchema, logOptions{resume: true})
		if err != nil {
			return
		}
		require.NoError(t, l.append([]byte("more")))
		require.NoError(t, l.close())
		r, err = readLog(d.view(""), testSchema)
		require.NoError(t, err)
		for _, want := range append(got, []byte("more")) {
			p, ok := r.next()
			require.True(t, ok && bytes.Equal(want, p))
		}
		_, ok := r.next()
		require.False(t, ok)
		lost, reason = r.loss()
		require.NoError(t, reason)
		require.Zero(t, lost)
	})
}
