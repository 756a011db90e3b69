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
		s.rings[k].at = frame % r.count
		s.rings[k].held[s.rings[k].at] = frame
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

// Fault is a way to break the store, and what Verify says then.
type Fault struct {
	Break func()
	Says  string
}

// Faults break a store with an archetype of five chunks, of which the second and the fourth have holes, and a pool.
func (s *Store) Faults() map[string]Fault {
	a, pool := s.list[0], s.list[1]
	last := a.chunks[len(a.chunks)-1]
	key := archetypeKey{a.class, a.sig}
	before := s.frame - 1 // a storage frame that is kept
	return map[string]Fault{
		"an empty range":      {func() { f := s.cache.free; f[0].hi = f[0].lo }, "is empty or beyond"},
		"a range beyond":      {func() { s.cache.free[len(s.cache.free)-1].hi = s.cache.end + 1 }, "is empty or beyond"},
		"a range in two":      {func() { f := s.cache.free[0]; s.cache.free = []span{{f.lo, f.lo + 64}, {f.lo + 64, f.hi}} }, "not in order or not joined"},
		"a lost index":        {func() { s.cache.free[len(s.cache.free)-1].hi -= 64 }, "cache indices"},
		"a cap":               {func() { s.cacheCap.Add(64) }, "cache cap"},
		"a slab range":        {func() { f := s.slab.free.free; f[0].hi = f[0].lo }, "is empty or beyond"},
		"a slab account":      {func() { s.slab.taken++ }, "archetype: slab has"},
		"a byte of the slab":  {func() { *(*byte)(s.slab.at(s.slab.free.free[0].lo)) = 1 }, "free slab byte"},
		"a block of nobody":   {func() { s.slab.alloc(64) }, "bytes of the slab"},
		"a pool's number":     {func() { pool.pooled = 7 }, "thinks that it is pool 7"},
		"a pool's slots":      {func() { pool.pooledSlots-- }, "of 99 slots"},
		"a lost key":          {func() { delete(s.byKey, key) }, "not found by its key"},
		"a key too many":      {func() { s.byKey[archetypeKey{99, a.sig}] = a }, "archetypes listed"},
		"a block too many":    {func() { s.blocks = append(s.blocks, last) }, "the block table and the chunks differ"},
		"a block elsewhere":   {func() { s.blocks[a.chunks[2].base/64] = last }, "leads elsewhere"},
		"a number":            {func() { a.chunks[1].index = 2 }, "chunk 1 thinks it is chunk 2"},
		"an early end":        {func() { a.chunks[2].allocated-- }, "slots that were never taken"},
		"a late end":          {func() { last.allocated = uint32(last.Slots()) + 1 }, "allocated 65 of 64 slots"},
		"a hole too many":     {func() { a.holes.Add(0) }, "wrong about its holes"},
		"a negative count":    {func() { a.live = -1 }, "live -1"},
		"too many alive":      {func() { a.live = a.allocated + 1 }, "live"},
		"a count of slots":    {func() { a.allocated++ }, "in its chunks"},
		"a count of bytes":    {func() { a.bytes++ }, "in its extents and chunks"},
		"a tail":              {func() { a.tail = a.chunks[0] }, "the tail is not the last"},
		"the lowest hole":     {func() { a.hole = a.chunks[3] }, "the lowest is not the first"},
		"a stamp":             {func() { last.stamps[0] = last.marked + 1 }, "the chunk last in frame"},
		"two in a place":      {func() { a.chunks[3].place = a.chunks[2].place }, "is another one's"},
		"a column elsewhere":  {func() { a.chunks[3].bases[0] = a.chunks[2].bases[0] }, "does not begin at place"},
		"a ghost in a place":  {func() { s.bury(a, last.extent, last.place) }, "kept for readers"},
		"a ghost of no place": {func() { s.bury(a, &extent{layout: last.layout}, 0) }, "kept for readers"},
		"a place in use":      {func() { a.extents[0].chunks++ }, "in use and 2 chunks"},
		"a count of places":   {func() { a.vacant++ }, "places vacant"},
		"another frame":       {func() { a.chunks[0].Frame(0, before)[3] ^= 1 }, "is another one in frame"},
		"a frame beyond":      {func() { last.Mark(0); f := last.Frame(0, before); f[len(f)-1] = 1 }, "written where nobody was"},
	}
}
