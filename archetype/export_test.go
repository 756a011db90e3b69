package archetype

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// PlanBytes spells out the plan of a type: for each byte, whether it is moved as part of a
// pointer word, and an error if a byte is moved twice or never.
func PlanBytes(t reflect.Type) ([]bool, error) {
	seen := make([]int, t.Size())
	pointer := make([]bool, t.Size())
	var walk func(plan []moveOp, at uintptr)
	walk = func(plan []moveOp, at uintptr) {
		for _, op := range plan {
			n := op.n
			if op.kind == opPointers {
				n *= wordBytes
			}
			if op.kind == opLoop {
				for k := range op.n {
					walk(op.sub, at+op.offset+k*op.stride)
				}
				continue
			}
			for i := range n {
				seen[at+op.offset+i]++
				pointer[at+op.offset+i] = op.kind == opPointers
			}
		}
	}
	walk(planOf(t), 0)
	for i, n := range seen {
		if n != 1 {
			return nil, fmt.Errorf("byte %d of %s is moved %d times", i, t, n)
		}
	}
	return pointer, nil
}

// PlanSteps is how many steps the plan of a type has, those of loops counted once.
func PlanSteps(t reflect.Type) int {
	var count func(plan []moveOp) int
	count = func(plan []moveOp) int {
		n := len(plan)
		for _, op := range plan {
			n += count(op.sub)
		}
		return n
	}
	return count(planOf(t))
}

// Ranges is the range allocator.
type Ranges = ranges

func (r *ranges) Take(n uint64) (uint64, bool) { return r.take(n) }
func (r *ranges) Give(lo, n uint64)            { r.give(lo, n) }
func (r *ranges) High() uint64                 { return r.high() }
func (r *ranges) Count() uint64                { return r.count() }
func (r *ranges) Verify() error                { return r.verify() }

// Slab is the slab.
type Slab = slab

func (s *slab) Alloc(size uintptr) (unsafe.Pointer, uint64) { return s.alloc(size) }
func (s *slab) Release(lo uint64, size uintptr)             { s.release(lo, size) }
func (s *slab) Verify() error                               { return s.verify() }
func (s *slab) Regions() int                                { return len(s.regions) }

// Corrupt hands the test a chunk's planes to break.
func (c *Chunk) Corrupt() (holes, born []uint64) { return c.holes, c.born }

// SetWriteFrame makes the store, in which there is no chunk yet, write another storage frame.
func (s *Store) SetWriteFrame(frame uint64) {
	s.frame, s.shifted = frame, nil
	for k, r := range s.rings {
		s.rings[k].held = make([]uint64, r.count)
		s.rings[k].held[frame%r.count] = frame
	}
}

// Turn makes the next frame the write frame.
func (s *Store) Turn() {
	s.Close()
	s.Advance(s.frame+1, 1, nil)
}

// LimitCacheIndices leaves only the lowest n cache indices of an empty store.
func (s *Store) LimitCacheIndices(n uint64) {
	s.cache = ranges{}
	s.cache.give(0, n)
}

// Extents are how many places and how many chunks each extent of the archetype has.
func (a *Archetype) Extents() (places, chunks []int) {
	for _, e := range a.extents {
		places, chunks = append(places, e.layout.places), append(chunks, e.chunks)
	}
	return places, chunks
}

// Place is the number of the chunk's extent in its archetype, and the place in it.
func (c *Chunk) Place() (extent, place int) {
	return slices.Index(c.archetype.extents, c.extent), c.place
}

// Frame is the chunk's part of a column in a storage frame, as bytes.
func (c *Chunk) Frame(column int, frame uint64) []byte {
	f := &c.layout.fields[column]
	at := unsafe.Add(c.bases[column], uintptr(frame%uint64(f.FrameCount))*f.FrameStride)
	return unsafe.Slice((*byte)(at), c.layout.parts[column])
}

// VacantByte is a byte of a place that no chunk has; nil if there is none.
func (a *Archetype) VacantByte() *byte {
	for _, e := range a.extents {
		if e.vacant() > 0 {
			return (*byte)(e.column(0, e.used.lowestOutside()))
		}
	}
	return nil
}

// ReleaseChunk takes a chunk out of the middle. All its slots are holes or were never taken.
func (a *Archetype) ReleaseChunk(i int) {
	a.chunks[i].doomed = true
	a.releaseDoomed()
}

// SlabBytes is how much of the slab is in blocks that are out.
func (s *Store) SlabBytes() int { return int(s.slab.taken) }
