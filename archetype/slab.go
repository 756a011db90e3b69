package archetype

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"unsafe"

	"github.com/airlock-ecs/airlock/internal/check"
)

const (
	firstRegionBytes = 16<<10 - columnAlign // a registry with a few small archetypes stays small: all in all 16 KiB of the heap
	maxRegionBytes   = 16 << 20             // regions double up to this; a block of half of one or more gets one of its own size
	regionGap        = columnAlign
)

// slab hands out blocks of pointer-free memory from large regions that never move. A block
// has an offset in one long line on which the regions lie one after another, with a gap
// between them, so that blocks of two regions are never joined into one.
//
// Free blocks are zero, and so is a block that is handed out. Who gives one back has cleared
// what was written of it: fresh regions are zero as the runtime made them, and a store that
// only grows never touches a page before it is written.
//
// Rejected: a region for each chunk. It leaves zeroing and reuse to the garbage collector, which
// then gives back pages only to fault them in again with the next chunk.
type slab struct {
	regions []region // in the order of their offsets
	free    ranges   // offsets
	taken   uintptr  // bytes in blocks that are out
}

// region is memory from offset lo to offset lo+size on the line.
type region struct {
	lo, size uint64
	base     unsafe.Pointer // the byte at lo; keeps the whole allocation alive
}

// alloc hands out a block of zeros that begins at a cache line.
func (s *slab) alloc(size uintptr) (unsafe.Pointer, uint64) {
	n := uint64(alignUp(size, columnAlign))
	lo, ok := s.free.take(n)
	if !ok {
		s.grow(n)
		lo, _ = s.free.take(n)
	}
	s.taken += uintptr(n)
	return s.at(lo), lo
}

// release takes a block of zeros back. Nobody may hold a pointer into it any more.
func (s *slab) release(lo uint64, size uintptr) {
	n := alignUp(size, columnAlign)
	if check.Enabled {
		if at, bad := nonZero(s.at(lo), n); bad {
			check.Failf("archetype: a slab block of %d bytes came back with a value at byte %d", size, at)
		}
	}
	s.free.give(lo, uint64(n))
	s.taken -= n
}

// at is where offset lo is in memory.
func (s *slab) at(lo uint64) unsafe.Pointer {
	i := sort.Search(len(s.regions), func(i int) bool { return s.regions[i].lo > lo }) - 1
	// Sound: lo is in region i, so the sum is in the allocation that its base points into.
	return unsafe.Add(s.regions[i].base, uintptr(lo-s.regions[i].lo))
}

// grow adds a region that has room for n bytes.
func (s *slab) grow(n uint64) {
	size := uint64(firstRegionBytes)
	lo := uint64(0)
	if last := len(s.regions) - 1; last >= 0 {
		size = min(2*s.regions[last].size, maxRegionBytes)
		lo = s.regions[last].lo + s.regions[last].size + regionGap
	}
	if 2*n >= size { // extents double as regions do: rounded up, each would leave half a region that is too small for the next
		size = n
	}

	// Words make the memory aligned for any field and free of pointers. The runtime promises
	// no more alignment than that, so a line is added and the beginning rounded up.
	words := make([]uint64, (size+columnAlign)/8)
	base := unsafe.Pointer(unsafe.SliceData(words))
	pad := -uintptr(base) & (columnAlign - 1)
	s.regions = append(s.regions, region{lo: lo, size: size, base: unsafe.Add(base, pad)})
	s.free.give(lo, size)
}

// verify checks the accounts, and that free memory is zero.
func (s *slab) verify() error {
	if err := s.free.verify(); err != nil {
		return err
	}
	var total uint64
	for _, r := range s.regions {
		total += r.size
	}
	if free := s.free.count(); free+uint64(s.taken) != total {
		return fmt.Errorf("archetype: slab has %d bytes, of them %d free and %d taken", total, free, s.taken)
	}
	for _, f := range s.free.free {
		if at, ok := nonZero(s.at(f.lo), uintptr(f.hi-f.lo)); ok {
			return fmt.Errorf("archetype: free slab byte %d is not zero", f.lo+uint64(at))
		}
	}
	return nil
}

// zeros is what free memory is compared with, a page at a time. It is never written.
var zeros [4096]byte

// nonZero is the offset of a byte that is not zero; false if all n bytes are.
func nonZero(p unsafe.Pointer, n uintptr) (uintptr, bool) {
	memory := unsafe.Slice((*byte)(p), n)
	for at := 0; at < len(memory); at += len(zeros) {
		page := memory[at:min(at+len(zeros), len(memory))]
		if !bytes.Equal(page, zeros[:len(page)]) {
			i := slices.IndexFunc(page, func(b byte) bool { return b != 0 })
			return uintptr(at + i), true
		}
	}
	return 0, false
}
