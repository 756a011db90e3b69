package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

// written gives the bytes of a container.
func written(t require.TestingT, c *containerWriter) []byte {
	var b bytes.Buffer
	n, err := c.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	return b.Bytes()
}

// noise gives n bytes that are always the same, to read only.
func noise(n int) []byte { return allNoise()[:n:n] }

var allNoise = sync.OnceValue(func() []byte {
	b := make([]byte, 32<<20)
	rand.NewChaCha8([32]byte{7}).Read(b)
	return b
})

// small is a container of some sections, size bytes in all.
func small(t require.TestingT, size int) []byte {
	c := newContainer()
	c.section(1).string("airlock")
	c.section(2)
	e := c.section(9)
	e.flags = 0x80000001
	e.bytes(noise(size - 3*(entryBytes+sumBytes) - headerBytes - sumBytes - 11))
	b := written(t, c)
	require.Len(t, b, size)
	return b
}

// unseen hides that a reader knows how much it has left.
type unseen struct{ io.Reader }

func TestContainerGivesBackWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type model struct {
			id, flags uint32
			data      []byte
		}
		var want []model
		c, again := newContainer(), newContainer()
		id := rapid.Uint32Range(0, 3).Draw(t, "first id")
		for range rapid.IntRange(0, 6).Draw(t, "sections") {
			m := model{id: id, flags: rapid.Uint32().Draw(t, "flags")}
			id += rapid.Uint32Range(1, 1000).Draw(t, "step")
			e := c.section(m.id)
			e.flags = m.flags
			for range rapid.IntRange(0, 6).Draw(t, "pieces") {
				size := rapid.SampledFrom([]int{0, 1, 7, 240, 5000, smallBytes - 1, smallBytes, hashBytes + 9}).Draw(t, "size")
				b := noise(size)
				m.data = append(m.data, b...)
				if rapid.Bool().Draw(t, "reference") {
					e.reference(b)
				} else {
					e.bytes(b)
				}
			}
			e = again.section(m.id)
			e.flags = m.flags
			e.bytes(m.data)
			want = append(want, m)
		}
		b := written(t, c)
		require.True(t, bytes.Equal(b, written(t, again)), "pieces do not show")
		require.True(t, bytes.Equal(b, written(t, c)), "writing leaves the container as it is")

		r := io.Reader(bytes.NewReader(b))
		if rapid.Bool().Draw(t, "unseen") {
			r = unseen{r}
		}
		got, err := readContainer(r, int64(len(b)))
		require.NoError(t, err)
		require.Len(t, got.sections, len(want))
		for _, m := range want {
			require.Error(t, got.end(), "a section is unopened")
			d, err := got.open(m.id)
			require.NoError(t, err)
			require.Equal(t, m.flags, d.flags)
			require.True(t, bytes.Equal(m.data, d.bytes(len(m.data))))
			require.NoError(t, d.end())
		}
		require.NoError(t, got.end())
		_, err = got.open(id)
		require.ErrorIs(t, err, ErrDamaged, "there is no such section")
		_, err = readContainer(bytes.NewReader(b), int64(len(b))-1)
		require.ErrorIs(t, err, ErrTooLarge)
	})
}

func TestContainerHasOneLayout(t *testing.T) {
	c := newContainer()
	e := c.section(0x01020304)
	e.flags = 5
	e.u8(1)
	e.u32(2)
	e.u64(3)
	e.uvarint(300)
	e.string("ab")
	body := []byte{1, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0xac, 2, 2, 0, 0, 0, 'a', 'b'}
	want := append([]byte("airlock\x00"), 1, 0, 0, 0, 1, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0)
	want = append(want, 4, 3, 2, 1, 5, 0, 0, 0, byte(len(body)), 0, 0, 0, 0, 0, 0, 0)
	want = binary.LittleEndian.AppendUint64(want, xxh3.Hash(want))
	want = append(want, body...)
	want = binary.LittleEndian.AppendUint64(want, xxh3.HashSeed(body, 0x01020304))
	require.Equal(t, want, written(t, c))
}

func TestTheChecksumOfPartsIsThatOfTheWhole(t *testing.T) {
	for _, near := range []int{1, 64, 240, 1024, 1088, 2048, smallBytes, hashBytes, hashBytes + 1024, 3*hashBytes + 64} {
		for size := near - 1; size <= near+1; size++ {
			for _, split := range []int{0, size / 3, size / 2} {
				c := newContainer()
				for id := range uint32(3) {
					e := c.section(id)
					e.reference(noise(split))
					e.reference(noise(size)[split:])
				}
				b := written(t, c)
				for id := range 3 {
					sum := b[len(b)-(2-id)*(size+sumBytes)-sumBytes:]
					require.Equal(t, xxh3.HashSeed(noise(size), uint64(id)), binary.LittleEndian.Uint64(sum), "%d bytes", size)
				}
				_, err := readContainer(bytes.NewReader(b), 0)
				require.NoError(t, err)
			}
		}
	}
}

func TestContainerWriterRefusesMisuse(t *testing.T) {
	c := newContainer()
	c.section(2)
	c.section(2)
	_, err := c.WriteTo(io.Discard)
	require.ErrorContains(t, err, "section 2 follows section 2")

	c = newContainer()
	c.section(1).count(-1)
	_, err = c.WriteTo(io.Discard)
	require.ErrorIs(t, err, ErrTooLarge)

	c = newContainer()
	for i := range uint32(maxSections + 1) {
		c.section(i)
	}
	_, err = c.WriteTo(io.Discard)
	require.ErrorIs(t, err, ErrTooLarge)
}

// stingy takes some bytes and then fails, or says nothing about it.
type stingy struct {
	left int
	err  error
}

func (s *stingy) Write(b []byte) (int, error) {
	if n := s.left; n < len(b) {
		s.left = 0
		return n, s.err
	}
	s.left -= len(b)
	return len(b), nil
}

func TestWriteToReportsAWriterThatFails(t *testing.T) {
	full := errors.New("full")
	c := newContainer()
	c.section(1).reference(noise(300_000))
	c.section(2).u64(1)
	size := len(written(t, c))
	for left := 0; left < size; left += 999 {
		n, err := c.WriteTo(&stingy{left, full})
		require.ErrorIs(t, err, full)
		require.EqualValues(t, left, n)
		_, err = c.WriteTo(&stingy{left, nil})
		require.ErrorIs(t, err, io.ErrShortWrite)
	}
	n, err := c.WriteTo(&stingy{size, full})
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	_, err = (&countingWriter{w: braggart{}}).Write([]byte("x"))
	require.Error(t, err)
}

// braggart takes more than it was given.
type braggart struct{}

func (braggart) Write(b []byte) (int, error) { return len(b) + 1, nil }

func TestContainerDetectsEveryTruncation(t *testing.T) {
	b := small(t, 16<<10)
	for n := range b {
		_, err := readContainer(bytes.NewReader(b[:n]), 0)
		require.ErrorIs(t, err, ErrDamaged, "%d bytes", n)
	}
	for n := 0; n < len(b); n += 97 {
		_, err := readContainer(unseen{bytes.NewReader(b[:n])}, 0)
		require.ErrorIs(t, err, ErrDamaged, "%d bytes", n)
	}
	_, err := readContainer(bytes.NewReader(append(b, 0)), 0)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "behind the end")
}

func TestContainerDetectsEveryFlippedBit(t *testing.T) {
	b := small(t, 16<<10)
	in := bytes.NewReader(nil)
	step := 1
	if raceEnabled {
		step = 5
	}
	for bit := 0; bit < len(b)*8; bit += step {
		b[bit/8] ^= 1 << (bit % 8)
		in.Reset(b)
		_, err := readContainer(in, 0)
		want := ErrDamaged
		if bit < 12*8 {
			want = ErrVersion
		}
		if !errors.Is(err, want) { // a call of require for each bit would take most of the time
			require.ErrorIs(t, err, want, "bit %d", bit)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	in.Reset(b)
	_, err := readContainer(in, 0)
	require.NoError(t, err)
}

func TestContainerErrorsSayWhichSectionAndWhat(t *testing.T) {
	b := small(t, 1000)
	for want, change := range map[string]func(b []byte) []byte{
		"header: cut off after 0 of 24 bytes":               func(b []byte) []byte { return nil },
		"header: cut off after 23 of 24 bytes":              func(b []byte) []byte { return b[:23] },
		"section table: cut off after 55 of 56 bytes":       func(b []byte) []byte { return b[:79] },
		"section 1: cut off after 10 of 11 bytes":           func(b []byte) []byte { return b[:90] },
		"checksum of section 1: cut off after 7 of 8 bytes": func(b []byte) []byte { return b[:98] },
		"header: the checksum differs":                      func(b []byte) []byte { b[20]++; return b },
		"section 2: the checksum differs":                   func(b []byte) []byte { b[100]++; return b },
		"section 9: the checksum differs":                   func(b []byte) []byte { b[999]++; return b },
		"header: 4294967295 sections":                       func(b []byte) []byte { copy(b[12:], "\xff\xff\xff\xff"); return b },
		"it begins with \"Airlock":                          func(b []byte) []byte { b[0] = 'A'; return b },
		"version 2, and this is 1":                          func(b []byte) []byte { b[8]++; return b },
	} {
		_, err := readContainer(bytes.NewReader(change(bytes.Clone(b))), 0)
		require.ErrorContains(t, err, want)
	}
}

// forged makes a header whose checksum is right, whatever it says.
func forged(total uint64, entries ...[2]uint64) []byte {
	b := []byte(containerMagic)
	b = binary.LittleEndian.AppendUint32(b, containerVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(entries)))
	b = binary.LittleEndian.AppendUint64(b, total)
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint64(b, e[0])
		b = binary.LittleEndian.AppendUint64(b, e[1])
	}
	return binary.LittleEndian.AppendUint64(b, xxh3.Hash(b))
}

func TestContainerRefusesForgedLengths(t *testing.T) {
	const huge = 3 << 30
	for name, b := range map[string][]byte{
		"total 0":                forged(0),
		"total of less":          forged(31),
		"total of more":          forged(33),
		"total -1":               forged(math.MaxUint64),
		"length -1":              forged(1<<20, [2]uint64{1, math.MaxUint64}),
		"length of all":          forged(math.MaxInt64, [2]uint64{1, math.MaxInt64}),
		"lengths that wrap":      forged(80, [2]uint64{1, 1 << 63}, [2]uint64{2, 1 << 63}),
		"ids that do not ascend": forged(80, [2]uint64{1, 0}, [2]uint64{1, 0}),
		"bytes that never come":  append(forged(huge+56, [2]uint64{1, huge}), noise(3000)...),
	} {
		for kind, r := range map[string]io.Reader{"sized": bytes.NewReader(b), "unseen": unseen{bytes.NewReader(b)}} {
			used := allocated(func() {
				_, err := readContainer(r, 0)
				require.ErrorIs(t, err, ErrDamaged, "%s, %s", name, kind)
			})
			require.Less(t, used, uint64(2<<20), "%s, %s", name, kind)
		}
	}
	_, err := readContainer(bytes.NewReader(forged(5<<30+56, [2]uint64{1, 5 << 30})), 0)
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorContains(t, err, fmt.Sprint(defaultLimit))
}

// allocated is how many bytes f allocates, give or take what others do at the time.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestSectionsCannotChangePlaces(t *testing.T) {
	c := newContainer()
	c.section(1).u64(10)
	c.section(2).u64(20)
	b := written(t, c)
	first, second := b[len(b)-32:len(b)-16], b[len(b)-16:]
	swapped := append(append(bytes.Clone(b[:len(b)-32]), second...), first...)
	_, err := readContainer(bytes.NewReader(swapped), 0)
	require.ErrorIs(t, err, ErrDamaged)
}

func TestContainerReadsFromAnything(t *testing.T) {
	c := newContainer()
	c.section(1).bytes(noise(3<<20 + 5))
	c.section(2).string("end")
	b := written(t, c)
	path := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	behind := bytes.NewReader(append([]byte("before"), b...))
	_, err = behind.Seek(6, io.SeekStart)
	require.NoError(t, err)
	pipe, in, err := os.Pipe()
	require.NoError(t, err)
	defer pipe.Close()
	go func() {
		in.Write(b)
		in.Close()
	}()
	for name, r := range map[string]io.Reader{
		"file": file, "pipe": pipe, "a seeker in the middle": struct{ io.ReadSeeker }{behind},
		"in bits": iotest.HalfReader(unseen{bytes.NewReader(b)}), "early end": iotest.DataErrReader(bytes.NewReader(b)),
		"no size": struct{ io.ReadSeeker }{noSize{bytes.NewReader(b)}},
	} {
		got, err := readContainer(r, 0)
		require.NoError(t, err, name)
		d, err := got.open(1)
		require.NoError(t, err)
		require.True(t, bytes.Equal(noise(3<<20+5), d.data), name)
	}
	broken := errors.New("broken")
	for n := 0; n < len(b); n += 99_991 {
		_, err = readContainer(io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(broken)), 0)
		require.ErrorIs(t, err, broken)
		require.NotErrorIs(t, err, ErrDamaged, "nobody knows")
	}
	_, err = readContainer(io.MultiReader(bytes.NewReader(b), iotest.ErrReader(broken)), 0)
	require.ErrorIs(t, err, broken)
	_, err = readContainer(struct{ io.ReadSeeker }{lostPlace{bytes.NewReader(b)}}, 0)
	require.ErrorIs(t, err, errNoSeek)
}

// noSize can seek, but knows of no end, like files of the system that are made up as they are read.
type noSize struct{ *bytes.Reader }

func (r noSize) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		return 0, nil
	}
	return r.Reader.Seek(offset, whence)
}

var errNoSeek = errors.New("no seek")

// lostPlace cannot go back to where it was.
type lostPlace struct{ *bytes.Reader }

func (r lostPlace) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		return 0, errNoSeek
	}
	return r.Reader.Seek(offset, whence)
}

func TestDecoderReadsWhatTheEncoderWrote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newContainer()
		e := c.section(1)
		var reads []func(d *decoder)
		for range rapid.IntRange(0, 50).Draw(t, "values") {
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				v := rapid.Uint8().Draw(t, "u8")
				e.u8(v)
				reads = append(reads, func(d *decoder) { require.Equal(t, v, d.u8()) })
			case 1:
				v := rapid.Uint32().Draw(t, "u32")
				e.u32(v)
				reads = append(reads, func(d *decoder) { require.Equal(t, v, d.u32()) })
			case 2:
				v := rapid.Uint64().Draw(t, "u64")
				e.u64(v)
				reads = append(reads, func(d *decoder) { require.Equal(t, v, d.u64()) })
			case 3:
				v := rapid.Uint64().Draw(t, "uvarint")
				e.uvarint(v)
				reads = append(reads, func(d *decoder) { require.Equal(t, v, d.uvarint()) })
			case 4:
				v := rapid.String().Draw(t, "string")
				e.string(v)
				reads = append(reads, func(d *decoder) { require.Equal(t, v, d.string()) })
			case 5:
				v := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "bytes")
				e.count(len(v))
				e.bytes(v)
				reads = append(reads, func(d *decoder) { require.Equal(t, len(v), len(d.bytes(d.count(20, 1)))) })
			}
		}
		got, err := readContainer(bytes.NewReader(written(t, c)), 0)
		require.NoError(t, err)
		d, err := got.open(1)
		require.NoError(t, err)
		for _, read := range reads {
			read(d)
			require.NoError(t, d.err)
		}
		require.NoError(t, d.end())
	})
}

func TestDecoderRefusesWhatIsNotThere(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		read func(d *decoder)
		want string
	}{
		"u8":             {nil, func(d *decoder) { d.u8() }, "1 bytes are wanted, and 0 are left"},
		"u32":            {make([]byte, 3), func(d *decoder) { d.u32() }, "4 bytes are wanted, and 3 are left"},
		"u64":            {make([]byte, 7), func(d *decoder) { d.u64() }, "8 bytes are wanted, and 7 are left"},
		"uvarint":        {[]byte{0x80}, func(d *decoder) { d.uvarint() }, "not a number"},
		"a long uvarint": {[]byte{0x80, 0}, func(d *decoder) { d.uvarint() }, "not a number"},
		"a wide uvarint": {bytes.Repeat([]byte{0xff}, 11), func(d *decoder) { d.uvarint() }, "not a number"},
		"bytes":          {nil, func(d *decoder) { d.bytes(-1) }, "-1 bytes are wanted"},
		"count":          {[]byte{5, 0, 0, 0}, func(d *decoder) { d.count(4, 0) }, "5 elements, and 4 are the most"},
		"bytes of count": {[]byte{2, 0, 0, 0, 1, 2, 3}, func(d *decoder) { d.count(9, 2) }, "2 elements of 2 bytes, and 3 bytes are left"},
		"a huge count":   {[]byte{255, 255, 255, 255}, func(d *decoder) { d.count(math.MaxInt, math.MaxInt) }, "0 bytes are left"},
		"string":         {[]byte{2, 0, 0, 0, 'a'}, func(d *decoder) { _ = d.string() }, "2 elements of 1 bytes, and 1 bytes are left"},
		"end":            {[]byte{1, 2}, func(d *decoder) { d.u8() }, "at byte 1: 1 bytes too many"},
		"fail":           {nil, func(d *decoder) { d.fail("no %s", "sense") }, "section 3 at byte 0: no sense"},
	} {
		d := &decoder{id: 3, data: c.data}
		c.read(d)
		err := d.end()
		require.ErrorIs(t, err, ErrDamaged, name)
		require.ErrorContains(t, err, c.want, name)
		require.Zero(t, d.u8())
		require.Zero(t, d.u64())
		require.Zero(t, d.uvarint())
		require.Empty(t, d.string())
		require.Equal(t, err, d.end(), "the first error stays")
	}
}

func FuzzContainer(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add(small(f, 200), true)
	f.Add(small(f, 300), false)
	f.Add(forged(32), true)
	f.Add(forged(1<<30+56, [2]uint64{1, 1 << 30}), false)
	f.Fuzz(func(t *testing.T, b []byte, hidden bool) {
		r := io.Reader(bytes.NewReader(b))
		if hidden {
			r = unseen{r}
		}
		c, err := readContainer(r, 1<<30)
		if err != nil {
			require.True(t, errors.Is(err, ErrDamaged) || errors.Is(err, ErrVersion) || errors.Is(err, ErrTooLarge), "%v", err)
			return
		}
		again := newContainer()
		for _, s := range c.sections {
			require.LessOrEqual(t, len(s.data), len(b))
			e := again.section(s.id)
			e.flags = s.flags
			e.bytes(s.data)
			d, err := c.open(s.id)
			require.NoError(t, err)
			for d.err == nil && d.left() > 0 {
				switch d.u8() % 4 {
				case 0:
					require.LessOrEqual(t, d.count(1000, 3)*3, d.left())
				case 1:
					_ = d.string()
				case 2:
					d.uvarint()
				case 3:
					d.u64()
				}
			}
		}
		require.NoError(t, c.end())
		require.True(t, bytes.Equal(b, written(t, again)), "there is one way to write it")
	})
}

func BenchmarkContainer(b *testing.B) {
	data := noise(32 << 20)
	c := newContainer()
	c.section(1).reference(data)
	file := written(b, c)
	sink := make([]byte, len(data))
	b.Run("copy and hash", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			copy(sink, data)
			xxh3.Hash(sink)
		}
	})
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			out := fill{sink: sink}
			if _, err := c.WriteTo(&out); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, hide := range map[string]func(io.Reader) io.Reader{
		"read sized":  func(r io.Reader) io.Reader { return r },
		"read unseen": func(r io.Reader) io.Reader { return unseen{r} },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := readContainer(hide(bytes.NewReader(file)), 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// fill copies what it is given over and over into the same memory.
type fill struct {
	sink []byte
	at   int
}

func (f *fill) Write(b []byte) (int, error) {
	if f.at+len(b) > len(f.sink) {
		f.at = 0
	}
	f.at += copy(f.sink[f.at:], b)
	return len(b), nil
}
