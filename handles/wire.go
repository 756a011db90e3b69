package handles

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrShort reports bytes that end before the net handle does.
var ErrShort = errors.New("handles: net handle cut short")

// netBytes is what a whole net handle takes on the wire.
const netBytes = 8

// Wire is the short form, owner:8 | index:24. It drops the generation, so it is sound only
// inside the acknowledgement window: as long as no peer can hold an older name of that index.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (n Net) Wire() uint32 { return uint32(n) }

// Append adds the whole handle to buf, eight bytes in network order. The caller keeps buf.
//
// Concurrency: any goroutine; never waits. Allocates: as append does.
func (n Net) Append(buf []byte) []byte {
	return binary.BigEndian.AppendUint64(buf, uint64(n))
}

// ParseNet reads what Append wrote, and gives back the bytes after it. It takes any eight
// bytes: whether they name anybody is for the registry to say. On an error it gives back data
// as it came.
//
// Errors: ErrShort if data holds fewer than eight bytes.
// Concurrency: any goroutine; never waits. Allocates: only for an error.
func ParseNet(data []byte) (Net, []byte, error) {
	if len(data) < netBytes {
		return 0, data, fmt.Errorf("%w: %d of %d bytes", ErrShort, len(data), netBytes)
	}
	return Net(binary.BigEndian.Uint64(data)), data[netBytes:], nil
}
