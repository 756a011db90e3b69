package snapshot

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
)

// ErrSchema reports a journal of other component types than the reader has.
var ErrSchema = errors.New("snapshot: another schema")

// A log is a directory of segments, journal-00000001.seg and on. A segment is, in little endian:
//
//	magic     8 bytes
//	version   4
//	number    8, of the segment, from 1
//	schema    8, a hash that the caller gives
//	chain     8, at the end of the segment before; 0 in the first
//	checksum  8, of all that comes before
//
// and then records:
//
//	length    4, of the payload
//	sequence  8, from 1 through all segments
//	payload
//	chain     8, XXH3 of the chain before, length, sequence and payload
//
// So a record vouches for everything before it, across segments. What a chain cannot show is the loss
// of its end at the border of a record. Magic, version and checksum stay where they are in every version.
const (
	segmentMagic   = "airlock\x01"
	segmentVersion = 1

	segmentHeaderBytes = 44
	recordHeadBytes    = 12
	chainBytes         = 8

	maxRecordBytes      = 64 << 20 // of a payload
	defaultSegmentBytes = 64 << 20
	keptBytes           = 1 << 20 // a buffer that has grown beyond this is let go
)

func segmentName(number uint64) string { return fmt.Sprintf("journal-%08d.seg", number) }

// segmentNumber is the number in the name of a segment; false if it is no such name.
func segmentNumber(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, "journal-")
	digits, end := strings.CutSuffix(digits, ".seg")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && end && err == nil && n > 0 && name == segmentName(n)
}

// segmentNumbers lists the segments in the root of fsys, ascending.
func segmentNumbers(fsys fs.FS) ([]uint64, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("snapshot: list journal: %w", err)
	}
	var numbers []uint64
	for _, e := range entries {
		if n, ok := segmentNumber(e.Name()); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

type segmentHeader struct{ number, schema, chain uint64 }

func (h segmentHeader) append(b []byte) []byte {
	at := len(b)
	b = append(b, segmentMagic...)
	b = binary.LittleEndian.AppendUint32(b, segmentVersion)
	b = binary.LittleEndian.AppendUint64(b, h.number)
	b = binary.LittleEndian.AppendUint64(b, h.schema)
	b = binary.LittleEndian.AppendUint64(b, h.chain)
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b[at:]))
}

// check reports what keeps b from being the header of the segment that should come here. Only what the
// checksum vouches for is another version or another schema; the rest is damage.
func (h segmentHeader) check(b []byte) error {
	if string(b[:8]) != segmentMagic {
		return fmt.Errorf("%w: it begins with %q and not with %q", ErrDamaged, b[:8], segmentMagic)
	}
	if end := segmentHeaderBytes - sumBytes; binary.LittleEndian.Uint64(b[end:]) != xxh3.Hash(b[:end]) {
		return fmt.Errorf("%w: the checksum of its header differs", ErrDamaged)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != segmentVersion {
		return fmt.Errorf("%w: version %d, and this is %d", ErrVersion, v, segmentVersion)
	}
	if schema := binary.LittleEndian.Uint64(b[20:]); schema != h.schema {
		return fmt.Errorf("%w: %016x was written, and this is %016x", ErrSchema, schema, h.schema)
	}
	if n := binary.LittleEndian.Uint64(b[12:]); n != h.number {
		return fmt.Errorf("%w: it says that it is segment %d", ErrDamaged, n)
	}
	if binary.LittleEndian.Uint64(b[28:]) != h.chain {
		return fmt.Errorf("%w: it does not follow the segment before", ErrDamaged)
	}
	return nil
}

// logReader reads the longest valid prefix of a log, once. It is for one goroutine.
type logReader struct {
	fsys    fs.FS
	schema  uint64
	numbers []uint64 // of the segments that are there, ascending
	index   int      // the segment to read, in numbers

	file     fs.File // that segment; nil before it is opened
	in       *bufio.Reader
	size     int64  // of the file
	offset   int64  // in the file, behind the last thing that was valid
	sequence uint64 // of the last valid record

	buf    []byte // the chain at the end of that record, then the next record
	done   bool
	lost   int64
	reason error // nil if all was valid
}

// readLog begins to read the log in the root of fsys. A log without segments is empty. Errors: ErrSchema or
// ErrVersion if that is what its first segment is, or what fsys says; damage is left to loss.
func readLog(fsys fs.FS, schemaHash uint64) (*logReader, error) {
	numbers, err := segmentNumbers(fsys)
	if err != nil {
		return nil, err
	}
	r := &logReader{fsys: fsys, schema: schemaHash, numbers: numbers}
	r.in = bufio.NewReaderSize(nil, smallBytes/4)
	r.buf = make([]byte, chainBytes)
	if r.enter(); r.reason != nil && !errors.Is(r.reason, ErrDamaged) {
		return nil, r.reason
	}
	return r, nil
}

// next gives the payload of the next record, valid until the call after; false at the end of what
// is valid.
func (r *logReader) next() (payload []byte, ok bool) {
	for !r.done {
		payload, err := r.record()
		if err == nil {
			return payload, true
		}
		if err != io.EOF {
			r.stop(err)
			break
		}
		r.leave()
		r.index++
		r.enter()
	}
	return nil, false
}

// loss says, after the end, how many bytes were not delivered, and why: nil if there was nothing else. A reason
// that is not ErrDamaged is no damage, and another attempt may read more.
func (r *logReader) loss() (lost int64, reason error) { return r.lost, r.reason }

// close ends reading early.
func (r *logReader) close() {
	r.leave()
	r.done = true
}

// enter opens the segment at index and checks its header; at the end of all segments it is done.
func (r *logReader) enter() {
	r.offset, r.size = 0, 0
	if r.index == len(r.numbers) {
		r.done = true
		return
	}
	number := uint64(r.index) + 1
	if r.numbers[r.index] != number {
		r.stop(fmt.Errorf("%w: it is missing", ErrDamaged))
		return
	}
	f, err := r.fsys.Open(segmentName(number))
	if err != nil {
		r.stop(err)
		return
	}
	r.file = f
	r.in.Reset(f)
	info, err := f.Stat()
	if err != nil {
		r.stop(err)
		return
	}
	r.size = info.Size()
	header := make([]byte, segmentHeaderBytes)
	if _, err := io.ReadFull(r.in, header); err != nil {
		r.stop(tornError("its header", err))
		return
	}
	if err := (segmentHeader{number, r.schema, r.chain()}).check(header); err != nil {
		r.stop(err)
		return
	}
	r.offset = segmentHeaderBytes
}

// leave closes the segment that is open.
func (r *logReader) leave() {
	if r.file != nil {
		r.file.Close() // nothing was written
		r.file = nil
	}
}

func (r *logReader) chain() uint64 { return binary.LittleEndian.Uint64(r.buf) }

// record reads one record; io.EOF where a segment may end.
func (r *logReader) record() ([]byte, error) {
	if cap(r.buf) > keptBytes {
		r.buf = bytes.Clone(r.buf[:chainBytes])
	}
	r.buf = r.buf[:chainBytes]
	if err := r.read(recordHeadBytes); err != nil {
		if err == io.EOF {
			return nil, err
		}
		return nil, tornError("the head of a record", err)
	}
	head := r.buf[chainBytes:]
	length, sequence := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint64(head[4:])
	if sequence != r.sequence+1 {
		return nil, fmt.Errorf("%w: record %d follows record %d", ErrDamaged, sequence, r.sequence)
	}
	if length > maxRecordBytes {
		return nil, fmt.Errorf("%w: record %d has %d bytes, and %d are the most", ErrDamaged, sequence, length, maxRecordBytes)
	}
	if err := r.read(int(length) + chainBytes); err != nil {
		return nil, tornError(fmt.Sprintf("record %d", sequence), err)
	}
	end := len(r.buf) - chainBytes
	if binary.LittleEndian.Uint64(r.buf[end:]) != xxh3.Hash(r.buf[:end]) {
		return nil, fmt.Errorf("%w: the chain does not fit at record %d", ErrDamaged, sequence)
	}
	r.offset += int64(len(r.buf) - chainBytes)
	r.sequence = sequence
	copy(r.buf, r.buf[end:])
	return r.buf[chainBytes+recordHeadBytes : end : end], nil
}

// read appends n bytes to buf, which grows as they arrive.
func (r *logReader) read(n int) error {
	for n > 0 {
		step, at := min(n, aheadBytes), len(r.buf)
		r.buf = slices.Grow(r.buf, step)[:at+step]
		if _, err := io.ReadFull(r.in, r.buf[at:]); err != nil {
			return err
		}
		n -= step
	}
	return nil
}

// tornError tells an early end, which is damage, from a file system that failed.
func tornError(what string, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: cut off in %s", ErrDamaged, what)
	}
	return fmt.Errorf("read %s: %w", what, err)
}

// stop ends reading at offset: whatever comes behind it is lost.
func (r *logReader) stop(err error) {
	r.reason = within(err, "journal segment %d at byte %d", r.index+1, r.offset)
	behind := r.index
	if r.file != nil {
		r.lost = max(r.size-r.offset, 0)
		behind++
	}
	for _, n := range r.numbers[behind:] {
		if info, err := fs.Stat(r.fsys, segmentName(n)); err == nil {
			r.lost += info.Size()
		}
	}
	r.close()
}

// logOptions says how a log is written.
type logOptions struct {
	segmentBytes int64 // size at which the next segment begins; 0 means 64 MiB
	syncEvery    int   // records after which append syncs; 0 means that only sync and close do
	resume       bool  // goes on with a log that is there already, if there is one
}

// errLogClosed is what a log answers after close.
var errLogClosed = fmt.Errorf("snapshot: journal: %w", fs.ErrClosed)

// logWriter appends records to a log. It is for one goroutine at a time, and nothing keeps a second one from being
// opened on the same directory: its owner has to see to that.
//
// Records wait in memory until flush hands them to the system, which append does when many wait; from
// then on they outlive the process. After sync they outlive a loss of power.
//
// Invariant: all segments but the last are whole and synced.
type logWriter struct {
	disk   disk
	dir    string
	schema uint64
	logOptions

	file     diskFile // the last segment; nil after close, and when there is none
	number   uint64   // of that segment
	size     int64    // of that segment, with what is pending
	sequence uint64   // of the last record
	pending  []byte   // the chain before, then the records that wait
	unsynced int      // records since the last sync

	lost   int64 // what resuming has cut off
	reason error
	err    error // final: the first failure, or errLogClosed
}

// openLog begins a log in a directory that exists. If there are segments in it, that is an error that
// is fs.ErrExist, or with resume the log goes on behind its last valid record: everything is read,
// what is damaged is cut off, and loss says what that was. Whole segments behind the damage are
// kept beside the log, under a name that ends in .lost.
//
// A log of another version or schema, and one that cannot be read for a reason that is no damage, is
// left alone: ErrVersion, ErrSchema, or what the file system says. Resuming after a sync that failed believes what the system
// then shows of the file, which may be more than the disk has.
func openLog(dir string, schemaHash uint64, o logOptions) (*logWriter, error) {
	return openLogOn(osDisk{}, dir, schemaHash, o)
}

func openLogOn(d disk, dir string, schemaHash uint64, o logOptions) (*logWriter, error) {
	if o.segmentBytes < 0 || o.syncEvery < 0 {
		return nil, fmt.Errorf("snapshot: journal of segments of %d bytes, synced every %d records", o.segmentBytes, o.syncEvery)
	}
	if o.segmentBytes == 0 {
		o.segmentBytes = defaultSegmentBytes
	}
	r, err := readLog(d.view(dir), schemaHash)
	if err != nil {
		return nil, err
	}
	if len(r.numbers) > 0 && !o.resume {
		r.close()
		return nil, fmt.Errorf("snapshot: journal in %s: %w", dir, fs.ErrExist)
	}
	for _, ok := r.next(); ok; _, ok = r.next() {
	}
	l := &logWriter{disk: d, dir: dir, schema: schemaHash, logOptions: o, sequence: r.sequence}
	l.pending = bytes.Clone(r.buf[:chainBytes])
	if l.lost, l.reason = r.loss(); l.reason != nil && !errors.Is(l.reason, ErrDamaged) {
		return nil, l.reason
	}
	if err := l.cut(r); err != nil {
		if l.file != nil {
			l.file.Close() // the error before it is the one to report
		}
		return nil, fmt.Errorf("snapshot: journal in %s: %w", dir, err)
	}
	return l, nil
}

// cut makes the log end where r has ended, and opens its last segment. The last files go first, so
// that a log whose cutting was interrupted has the same valid prefix.
func (l *logWriter) cut(r *logReader) error {
	whole := r.index // segments that stay
	if r.reason != nil && r.offset > 0 {
		whole++ // the last one in part
	}
	for _, n := range slices.Backward(r.numbers[whole:]) {
		name := l.path(n)
		if err := l.disk.rename(name, name+".lost"); err != nil {
			return err
		}
	}
	if whole == 0 {
		return l.begin(1)
	}
	if err := l.disk.syncDir(l.dir); err != nil {
		return err
	}
	l.number = uint64(whole)
	var err error
	if l.file, err = l.disk.openEnd(l.path(l.number)); err != nil {
		return err
	}
	if l.size, err = l.end(r); err != nil {
		return err
	}
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	return l.file.Sync()
}

// end is the size of the valid part of the segment in which the log goes on.
func (l *logWriter) end(r *logReader) (int64, error) {
	if r.offset > 0 {
		return r.offset, nil
	}
	info, err := fs.Stat(r.fsys, segmentName(l.number)) // a whole one: r has gone past it
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (l *logWriter) path(number uint64) string { return filepath.Join(l.dir, segmentName(number)) }

// loss says what resuming has cut off, as that of a reader does.
func (l *logWriter) loss() (lost int64, reason error) { return l.lost, l.reason }

// append adds a record to the log and keeps nothing of payload. A record above 64 MiB is ErrTooLarge and
// leaves the log as it is; every other error is final.
func (l *logWriter) append(payload []byte) error {
	if l.err != nil {
		return l.err
	}
	if len(payload) > maxRecordBytes {
		return fmt.Errorf("%w: a record of %d bytes, and %d are the most", ErrTooLarge, len(payload), maxRecordBytes)
	}
	recordBytes := int64(recordHeadBytes + len(payload) + chainBytes)
	if l.size > segmentHeaderBytes && l.size+recordBytes > l.segmentBytes {
		if err := l.roll(); err != nil {
			return err
		}
	}
	from := len(l.pending) - chainBytes // the record before ends with the chain
	l.pending = binary.LittleEndian.AppendUint32(l.pending, uint32(len(payload)))
	l.pending = binary.LittleEndian.AppendUint64(l.pending, l.sequence+1)
	l.pending = append(l.pending, payload...)
	l.pending = binary.LittleEndian.AppendUint64(l.pending, xxh3.Hash(l.pending[from:]))
	l.sequence++
	l.size += recordBytes
	l.unsynced++
	switch {
	case l.syncEvery > 0 && l.unsynced >= l.syncEvery:
		return l.sync()
	case len(l.pending) >= smallBytes:
		return l.flush()
	}
	return nil
}

// flush hands what waits to the system.
func (l *logWriter) flush() error {
	if l.err != nil {
		return l.err
	}
	if len(l.pending) == chainBytes {
		return nil
	}
	if err := writeAll(l.file, l.pending[chainBytes:]); err != nil {
		return l.fail(err)
	}
	chain := l.pending[len(l.pending)-chainBytes:]
	if cap(l.pending) > keptBytes {
		l.pending = nil
	}
	l.pending = append(l.pending[:0], chain...)
	return nil
}

// sync flushes, and has the system bring everything to the disk. It is not tried again after a failure: the
// system may have dropped what it could not write, and would then call it written.
func (l *logWriter) sync() error {
	if err := l.flush(); err != nil || l.unsynced == 0 {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return l.fail(err)
	}
	l.unsynced = 0
	return nil
}

// close syncs and closes the log. Its later calls are errors, but for close.
func (l *logWriter) close() error {
	if l.err == errLogClosed {
		return nil
	}
	l.sync() // its error is l.err
	if l.file != nil {
		if err := l.file.Close(); err != nil && l.err == nil {
			l.fail(err)
		}
		l.file = nil
	}
	if l.err != nil {
		return l.err
	}
	l.err = errLogClosed
	return nil
}

// fail makes the first failure final.
func (l *logWriter) fail(err error) error {
	l.err = within(err, "journal segment %d", l.number)
	return l.err
}

// roll ends the last segment and begins the next one.
func (l *logWriter) roll() error {
	if err := l.sync(); err != nil {
		return err
	}
	f := l.file
	l.file = nil
	if err := f.Close(); err != nil {
		return l.fail(err)
	}
	if err := l.begin(l.number + 1); err != nil {
		return l.fail(err)
	}
	return nil
}

// begin creates a segment. It and its name are synced before there is a record in it; if that
// fails there is no such segment.
func (l *logWriter) begin(number uint64) error {
	f, err := l.disk.create(l.path(number))
	if err != nil {
		return err
	}
	header := segmentHeader{number, l.schema, binary.LittleEndian.Uint64(l.pending)}
	if err = writeAll(f, header.append(nil)); err == nil {
		if err = f.Sync(); err == nil {
			err = l.disk.syncDir(l.dir)
		}
	}
	if err != nil {
		f.Close()
		l.disk.remove(l.path(number))
		return err
	}
	l.file, l.number, l.size = f, number, segmentHeaderBytes
	return nil
}

// writeAll writes b, or says why not: a short write is an error, whatever w says.
func writeAll(w io.Writer, b []byte) error {
	_, err := (&countingWriter{w: w}).Write(b)
	return err
}
