package snapshot

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/zeebo/xxh3"
)

var (
	// ErrDamaged reports bytes that are not what was written: cut off, changed, or with something behind them.
	ErrDamaged = errors.New("snapshot: damaged")

	// ErrVersion reports bytes that another version of this package wrote, or that are something else altogether.
	ErrVersion = errors.New("snapshot: not of this version")

	// ErrTooLarge reports more bytes than a limit allows.
	ErrTooLarge = errors.New("snapshot: too large")
)

// A container is, with all numbers in little endian and nothing between its parts:
//
//	magic     8 bytes
//	version   4
//	count     4, sections
//	total     8, bytes of the whole container
//	table     16 for each section: id 4, flags 4, length 8; ids ascend
//	checksum  8, of all that comes before
//	sections  the bytes of each, followed by their checksum 8
//
// There is one way to write down a list of sections, so equal sections are equal bytes. Checksums are XXH3,
// 64 bits, and that of a section has its id for a seed: two sections cannot change places.
const (
	containerMagic   = "airlock\x00"
	containerVersion = 1

	headerBytes = 24 // up to the table
	entryBytes  = 16 // of the table
	sumBytes    = 8

	maxSections = 1 << 16 // the table is read before anything vouches for its length

	// defaultLimit is the size of the largest container that is read unless the caller says otherwise.
	defaultLimit int64 = 4 << 30

	aheadBytes = 1 << 20   // the most that is allocated for bytes that may never arrive
	hashBytes  = 128 << 10 // hashed at a time, while they are in the cache
	smallBytes = 64 << 10  // gathered before they are written or read in one go
)

// containerWriter collects the sections of a container; WriteTo writes them as often as it is called.
type containerWriter struct {
	sections []*encoder
	err      error // the first misuse, reported by WriteTo
}

func newContainer() *containerWriter { return &containerWriter{} }

// section begins the next section. Its id must be higher than the one before, for that is what makes the
// order of sections fixed.
func (c *containerWriter) section(id uint32) *encoder {
	if n := len(c.sections); c.err == nil && n > 0 && id <= c.sections[n-1].id {
		c.err = fmt.Errorf("snapshot: section %d follows section %d: ids have to ascend", id, c.sections[n-1].id)
	}
	e := &encoder{id: id}
	c.sections = append(c.sections, e)
	return e
}

// header is everything before the first section.
func (c *containerWriter) header() ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	if len(c.sections) > maxSections {
		return nil, fmt.Errorf("%w: %d sections, and %d are the most", ErrTooLarge, len(c.sections), maxSections)
	}
	total := uint64(headerBytes + len(c.sections)*(entryBytes+sumBytes) + sumBytes)
	for _, e := range c.sections {
		if e.err != nil {
			return nil, fmt.Errorf("section %d: %w", e.id, e.err)
		}
		total += e.length()
	}
	b := make([]byte, 0, headerBytes+len(c.sections)*entryBytes+sumBytes)
	b = append(b, containerMagic...)
	b = binary.LittleEndian.AppendUint32(b, containerVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(c.sections)))
	b = binary.LittleEndian.AppendUint64(b, total)
	for _, e := range c.sections {
		b = binary.LittleEndian.AppendUint32(b, e.id)
		b = binary.LittleEndian.AppendUint32(b, e.flags)
		b = binary.LittleEndian.AppendUint64(b, e.length())
	}
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b)), nil
}

// WriteTo writes the container and says how many bytes w took.
func (c *containerWriter) WriteTo(w io.Writer) (int64, error) {
	header, err := c.header()
	if err != nil {
		return 0, err
	}
	counted := &countingWriter{w: w}
	out := bufio.NewWriterSize(counted, smallBytes) // it passes on what is larger without a copy
	out.Write(header)                               // its errors stay until Flush
	var sum [sumBytes]byte
	hash := xxh3.New()
	for _, e := range c.sections {
		hash.ResetSeed(uint64(e.id))
		for _, piece := range e.pieces {
			if err := writeHashed(out, hash, piece); err != nil {
				return counted.n, err
			}
		}
		if err := writeHashed(out, hash, e.tail); err != nil {
			return counted.n, err
		}
		binary.LittleEndian.PutUint64(sum[:], hash.Sum64())
		out.Write(sum[:])
	}
	err = out.Flush()
	return counted.n, err
}

// writeHashed writes b and adds it to a hash, in parts that stay in the cache between the two.
func writeHashed(w io.Writer, hash *xxh3.Hasher, b []byte) error {
	for part := range slices.Chunk(b, hashBytes) {
		hash.Write(part)
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// countingWriter counts what was written, holds writers to their contract, and never writes again after an error: a
// short write is an error, whatever the writer says and whoever forgets to look.
type countingWriter struct {
	w   io.Writer
	n   int64
	err error // the first one
}

func (c *countingWriter) Write(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(b)
	if n < 0 || n > len(b) {
		n, err = 0, errors.New("snapshot: the writer took an impossible number of bytes")
	}
	if n < len(b) && err == nil {
		err = io.ErrShortWrite
	}
	c.n, c.err = c.n+int64(n), err
	return n, err
}

// encoder collects the bytes of one section. Small things are copied, and large ones can stay where they are.
type encoder struct {
	id     uint32
	flags  uint32 // for whoever reads the section; kept in the table
	pieces [][]byte
	sealed uint64 // bytes in pieces
	tail   []byte // what comes after the pieces
	err    error  // the first misuse, reported by WriteTo
}

func (e *encoder) length() uint64 { return e.sealed + uint64(len(e.tail)) }

// reference appends b without a copy: it must not change until the container has been written.
func (e *encoder) reference(b []byte) {
	if len(b) < smallBytes/16 {
		e.bytes(b)
		return
	}
	e.seal()
	e.pieces = append(e.pieces, b)
	e.sealed += uint64(len(b))
}

// seal ends the tail, so that a long section is not copied whenever it grows.
func (e *encoder) seal() {
	if len(e.tail) > 0 {
		e.pieces = append(e.pieces, e.tail)
		e.sealed += uint64(len(e.tail))
		e.tail = nil
	}
}

// room seals a tail that has become long.
func (e *encoder) room() {
	if len(e.tail) >= smallBytes {
		e.seal()
		e.tail = make([]byte, 0, smallBytes+smallBytes/16)
	}
}

// bytes appends a copy of b, and nothing that says how long it is.
func (e *encoder) bytes(b []byte) {
	e.room()
	e.tail = append(e.tail, b...)
}

func (e *encoder) u8(v uint8) {
	e.room()
	e.tail = append(e.tail, v)
}

func (e *encoder) u32(v uint32) {
	e.room()
	e.tail = binary.LittleEndian.AppendUint32(e.tail, v)
}

func (e *encoder) u64(v uint64) {
	e.room()
	e.tail = binary.LittleEndian.AppendUint64(e.tail, v)
}

func (e *encoder) uvarint(v uint64) {
	e.room()
	e.tail = binary.AppendUvarint(e.tail, v)
}

// count appends the number of elements that follow.
func (e *encoder) count(n int) {
	if (n < 0 || uint64(n) > math.MaxUint32) && e.err == nil {
		e.err = fmt.Errorf("%w: a count of %d", ErrTooLarge, n)
	}
	e.u32(uint32(n))
}

func (e *encoder) string(s string) {
	e.count(len(s))
	e.room()
	e.tail = append(e.tail, s...)
}

// container is what was read: sections whose checksums fit.
type container struct {
	sections []section
}

// section is one part of a container.
type section struct {
	id, flags uint32
	length    uint64 // as the table has it
	data      []byte
	opened    bool
}

// readContainer reads one container of at most limit bytes, 0 for defaultLimit, and the end of r
// behind it. Errors: ErrVersion, ErrDamaged, ErrTooLarge, or what r says.
//
// It does not allocate for bytes that may not exist: if r cannot say how many it has left (by Len or Seek), not
// more than aheadBytes before they arrive.
func readContainer(r io.Reader, limit int64) (*container, error) {
	if limit <= 0 {
		limit = defaultLimit
	}
	left, err := remaining(r)
	if err != nil {
		return nil, fmt.Errorf("snapshot: how much is there to read: %w", err)
	}
	if _, inMemory := r.(interface{ Len() int }); !inMemory {
		r = bufio.NewReaderSize(r, smallBytes)
	}
	c, total, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	if total > uint64(limit) {
		return nil, fmt.Errorf("%w: %d bytes, and the limit is %d", ErrTooLarge, total, limit)
	}
	ahead := uint64(aheadBytes)
	if left >= 0 && total <= uint64(left) {
		ahead = math.MaxUint64
	}
	hash := xxh3.New()
	for i := range c.sections {
		if err := c.sections[i].read(r, hash, ahead); err != nil {
			return nil, err
		}
	}
	var behind [1]byte
	switch _, err := io.ReadFull(r, behind[:]); err {
	case io.EOF:
		return c, nil
	case nil:
		return nil, fmt.Errorf("%w: there are bytes behind the end", ErrDamaged)
	default:
		return nil, readError("the end", 0, 0, err)
	}
}

// remaining is how many bytes r says it has left, -1 if it cannot tell. It is a hint that may be wrong (the
// files of /proc have no size), so a low one is no reason to refuse anything.
func remaining(r io.Reader) (int64, error) {
	if r, ok := r.(interface{ Len() int }); ok {
		return int64(r.Len()), nil
	}
	s, ok := r.(io.Seeker)
	if !ok {
		return -1, nil
	}
	here, err := s.Seek(0, io.SeekCurrent)
	if err != nil {
		return -1, nil // a pipe has the method, and no position
	}
	end, err := s.Seek(0, io.SeekEnd)
	if err != nil {
		end = -1
	}
	_, err = s.Seek(here, io.SeekStart)
	return max(end-here, -1), err
}

// readHeader reads everything before the sections. What it returns adds up: the lengths of the
// sections and all that comes with them are the total.
func readHeader(r io.Reader) (*container, uint64, error) {
	head := make([]byte, headerBytes, headerBytes+64*entryBytes)
	if n, err := io.ReadFull(r, head); err != nil {
		return nil, 0, readError("header", n, headerBytes, err)
	}
	if string(head[:8]) != containerMagic {
		return nil, 0, fmt.Errorf("%w: it begins with %q and not with %q", ErrVersion, head[:8], containerMagic)
	}
	if v := binary.LittleEndian.Uint32(head[8:]); v != containerVersion {
		return nil, 0, fmt.Errorf("%w: version %d, and this is %d", ErrVersion, v, containerVersion)
	}
	count, total := binary.LittleEndian.Uint32(head[12:]), binary.LittleEndian.Uint64(head[16:])
	if count > maxSections {
		return nil, 0, fmt.Errorf("%w: header: %d sections", ErrDamaged, count)
	}
	end := headerBytes + int(count)*entryBytes + sumBytes // at most aheadBytes and a little
	head = slices.Grow(head, end-len(head))[:end]
	if n, err := io.ReadFull(r, head[headerBytes:]); err != nil {
		return nil, 0, readError("section table", n, end-headerBytes, err)
	}
	if binary.LittleEndian.Uint64(head[end-sumBytes:]) != xxh3.Hash(head[:end-sumBytes]) {
		return nil, 0, fmt.Errorf("%w: header: the checksum differs", ErrDamaged)
	}

	c := &container{sections: make([]section, count)}
	want := uint64(end)
	for i := range c.sections {
		e := head[headerBytes+i*entryBytes:]
		s := section{
			id:     binary.LittleEndian.Uint32(e),
			flags:  binary.LittleEndian.Uint32(e[4:]),
			length: binary.LittleEndian.Uint64(e[8:]),
		}
		if i > 0 && s.id <= c.sections[i-1].id {
			return nil, 0, fmt.Errorf("%w: section table: section %d follows section %d", ErrDamaged, s.id, c.sections[i-1].id)
		}
		if s.length > math.MaxInt64-sumBytes-want {
			return nil, 0, fmt.Errorf("%w: section table: section %d of %d bytes", ErrDamaged, s.id, s.length)
		}
		c.sections[i] = s
		want += s.length + sumBytes
	}
	if want != total {
		return nil, 0, fmt.Errorf("%w: header: %d bytes in all, and the sections make it %d", ErrDamaged, total, want)
	}
	return c, total, nil
}

// read reads the bytes of the section and their checksum. Where the source may end early they come in
// blocks, and become one piece when all of them are there and right.
func (s *section) read(r io.Reader, hash *xxh3.Hasher, ahead uint64) error {
	if s.length > math.MaxInt {
		return fmt.Errorf("%w: %s has %d bytes", ErrTooLarge, s.name(), s.length)
	}
	var blocks [][]byte
	hash.ResetSeed(uint64(s.id))
	for got := uint64(0); got < s.length; {
		block := make([]byte, min(s.length-got, ahead))
		for part := range slices.Chunk(block, hashBytes) {
			n, err := io.ReadFull(r, part)
			if got += uint64(n); err != nil {
				return readError(s.name(), int(got), int(s.length), err)
			}
			hash.Write(part)
		}
		blocks = append(blocks, block)
	}
	var sum [sumBytes]byte
	if n, err := io.ReadFull(r, sum[:]); err != nil {
		return readError("checksum of "+s.name(), n, sumBytes, err)
	}
	if binary.LittleEndian.Uint64(sum[:]) != hash.Sum64() {
		return fmt.Errorf("%w: %s: the checksum differs", ErrDamaged, s.name())
	}
	if len(blocks) == 1 {
		s.data = blocks[0]
	} else {
		s.data = slices.Concat(blocks...)
	}
	return nil
}

func (s *section) name() string { return fmt.Sprintf("section %d", s.id) }

// readError tells an early end, which is damage, from a reader that failed.
func readError(what string, got, want int, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: %s: cut off after %d of %d bytes", ErrDamaged, what, got, want)
	}
	return fmt.Errorf("snapshot: read %s: %w", what, err)
}

// open gives a decoder of the section with that id. A container without it is damaged, as nothing is optional.
func (c *container) open(id uint32) (*decoder, error) {
	i, found := slices.BinarySearchFunc(c.sections, id, func(s section, id uint32) int {
		return cmp.Compare(s.id, id)
	})
	if !found {
		return nil, fmt.Errorf("%w: section %d is missing", ErrDamaged, id)
	}
	s := &c.sections[i]
	s.opened = true
	return &decoder{id: s.id, flags: s.flags, data: s.data}, nil
}

// end reports a section that nobody has opened: another version had something to say there.
func (c *container) end() error {
	for i := range c.sections {
		if s := &c.sections[i]; !s.opened {
			return fmt.Errorf("%w: %s has no meaning", ErrDamaged, s.name())
		}
	}
	return nil
}

// decoder reads the bytes of one section. After the first error it reads nothing but zeros, so a
// caller may look at err once for many reads, but has to before it believes any of them.
type decoder struct {
	id    uint32
	flags uint32
	data  []byte
	at    int   // where the next read begins
	err   error // the first one
}

// fail damages the decoder, for a reason that its reader knows.
func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: section %d at byte %d: %s", ErrDamaged, d.id, d.at, fmt.Sprintf(format, args...))
	}
}

func (d *decoder) left() int { return len(d.data) - d.at }

// bytes gives the next n bytes, not copied; nil if there are not so many.
func (d *decoder) bytes(n int) []byte {
	if d.err == nil && (n < 0 || n > d.left()) {
		d.fail("%d bytes are wanted, and %d are left", n, d.left())
	}
	if d.err != nil {
		return nil
	}
	b := d.data[d.at : d.at+n : d.at+n]
	d.at += n
	return b
}

func (d *decoder) u8() uint8 {
	if b := d.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// uvarint takes the shortest form of a number and no other: there is one way to write it.
func (d *decoder) uvarint() uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.data[d.at:])
	if n <= 0 || n > 1 && d.data[d.at+n-1] == 0 {
		d.fail("not a number")
		return 0
	}
	d.at += n
	return v
}

// count reads how many elements follow. They are at most limit, and there is place for them in
// what is left if each takes elementBytes or more, so the caller can allocate for them.
func (d *decoder) count(limit, elementBytes int) int {
	n := uint64(d.u32())
	switch {
	case d.err != nil:
		return 0
	case n > uint64(max(limit, 0)):
		d.fail("%d elements, and %d are the most", n, limit)
		return 0
	case elementBytes > 0 && n > uint64(d.left()/elementBytes):
		d.fail("%d elements of %d bytes, and %d bytes are left", n, elementBytes, d.left())
		return 0
	}
	return int(n)
}

func (d *decoder) string() string { return string(d.bytes(d.count(math.MaxInt, 1))) }

// end reports the first error, or bytes that nobody has read.
func (d *decoder) end() error {
	if d.err == nil && d.left() > 0 {
		d.fail("%d bytes too many", d.left())
	}
	return d.err
}
