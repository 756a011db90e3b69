package zstd

import (
	"encoding/binary"
	"fmt"

	compress "github.com/klauspost/compress/zstd"

	"github.com/airlock-ecs/airlock/snapshot"
)

// The trailer is a skippable frame of 16 bytes, all numbers in little endian:
//
//	magic     4
//	length    4, of what follows
//	mark      8, the last one is the version of this format
//	checksum  8, XXH3 of all that comes before the trailer
const (
	frameMagic   = "\x28\xb5\x2f\xfd"
	trailerMagic = "\x5a\x2a\x4d\x18"
	trailerMark  = "airlock\x01"
	trailerBytes = 24

	// stateMagic is how a saved state begins that is not compressed. At stateTotalAt it says how long it is, in 8 bytes.
	stateMagic   = "airlock\x00"
	stateTotalAt = 16

	windowBytes = 4 << 20  // the farthest that a frame refers back, at any level
	inputBytes  = 64 << 10 // read at a time

	defaultLevel    = 2
	defaultMaxBytes = 1 << 30
)

// trailer is what comes behind a frame with that checksum.
func trailer(sum uint64) []byte {
	b := make([]byte, 0, trailerBytes)
	b = append(b, trailerMagic...)
	b = binary.LittleEndian.AppendUint32(b, trailerBytes-8)
	b = append(b, trailerMark...)
	return binary.LittleEndian.AppendUint64(b, sum)
}

// checkTrailer compares what comes behind a frame with what should.
func checkTrailer(b []byte, sum uint64) error {
	want := trailer(sum)
	version := len(trailerMagic) + 4 + len(trailerMark) - 1
	switch {
	case len(b) < trailerBytes:
		return fmt.Errorf("%w: cut off", snapshot.ErrDamaged)
	case string(b[:version]) != string(want[:version]):
		return fmt.Errorf("%w: it does not end with a checksum: it is cut off, has something behind it, or was compressed by something else", snapshot.ErrDamaged)
	case b[version] != want[version]:
		return fmt.Errorf("%w: compressed in version %d, and this is %d", snapshot.ErrVersion, b[version], want[version])
	case string(b) != string(want):
		return fmt.Errorf("%w: the checksum of the compressed bytes differs", snapshot.ErrDamaged)
	}
	return nil
}

// Option says how a state is compressed, or what is accepted.
type Option func(*options)

type options struct {
	level    int
	maxBytes int64
}

// Level is how much time goes into making a state small: from 1, the fastest, to 4, the smallest; 0 means 2. Whatever it
// was, Load needs not be told.
//
// Concurrency: any goroutine. Allocates: yes.
func Level(n int) Option { return func(o *options) { o.level = n } }

// MaxBytes is how long a state may be that is not compressed; 0 means 1 GiB. A longer one is ErrTooLarge, when it is saved as
// well as when it is loaded: nobody should learn only then that it is.
//
// Concurrency: any goroutine. Allocates: yes.
func MaxBytes(n int64) Option { return func(o *options) { o.maxBytes = n } }

func optionsOf(opts []Option) (options, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if o.level == 0 {
		o.level = defaultLevel
	}
	if o.maxBytes == 0 {
		o.maxBytes = defaultMaxBytes
	}
	if o.level < int(compress.SpeedFastest) || o.level > int(compress.SpeedBestCompression) {
		return o, fmt.Errorf("zstd: level %d: there are %d to %d", o.level, compress.SpeedFastest, compress.SpeedBestCompression)
	}
	if o.maxBytes < 0 {
		return o, fmt.Errorf("zstd: at most %d bytes", o.maxBytes)
	}
	return o, nil
}

// tooLarge is the error of a state that is longer than it may be.
func (o options) tooLarge() error {
	return fmt.Errorf("%w: more than %d bytes when it is not compressed; see MaxBytes", snapshot.ErrTooLarge, o.maxBytes)
}
