package archetype

import (
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

const (
	// maxPlaces is how many chunks an extent has room for. With 64, the jumps between extents
	// still cost 8% of a dense loop over two 16-byte columns of 256k entities, with 256 some 4%.
	maxPlaces = 256
	// maxExtentBytes bounds the block of an extent, so that an archetype with a long ring does
	// not take hundreds of megabytes at once.
	maxExtentBytes = 16 << 20
)

// extent is a block of the slab with places for some chunks of one archetype. It is laid out
// as one chunk with the slots of all of them would be: in each frame of each column the
// chunks' parts lie end to end. So a loop over the chunks in order walks through each column
// without a jump. A jump costs about a microsecond, as the processor's prefetchers start
// again: with a block for each chunk, a dense loop over two 16-byte columns of a million
// entities cost 2.6 times one over plain slices (views, BenchmarkRunsDense).
//
// Extents grow with their archetype: a new one has as many places as there are chunks, or as a batch
// asks for, rounded down to a power of two, so that half of the memory is in use in an archetype that
// only grows. The first has one place, for it stays when all others go.
// One that shrinks keeps the extents in which it has a chunk.
//
// Places are given back in any order, and the lowest vacant place is taken first. Columns with
// pointers are outside of all this, each chunk has its own.
//
// Invariant: some place is in use; used has exactly the places that a chunk of the archetype
// has, and chunks is how many; a vacant place is zero in all frames.
type extent struct {
	layout *FieldLayout
	base   unsafe.Pointer // of the block
	block  uint64         // its offset in the slab
	used   placeSet
	chunks int
}

// placeSet is a set of places.
type placeSet [maxPlaces / 64]uint64

func (s *placeSet) has(p int) bool { return s[p>>6]>>(p&63)&1 != 0 }
func (s *placeSet) flip(p int)     { s[p>>6] ^= 1 << (p & 63) }

// lowestOutside is the lowest place that is not in the set. There is one.
func (s *placeSet) lowestOutside() int {
	w := 0
	for s[w] == ^uint64(0) {
		w++
	}
	return w<<6 + bits.TrailingZeros64(^s[w])
}

func (s *placeSet) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// vacant is how many places have no chunk.
func (e *extent) vacant() int { return e.layout.places - e.chunks }

// column is where frame 0 of a column begins for the chunk at a place.
func (e *extent) column(i, place int) unsafe.Pointer {
	l := e.layout
	// Sound for columns in the block: every frame of it has room for the parts of all places.
	return unsafe.Add(e.base, l.fields[i].Offset+uintptr(place)*l.parts[i])
}

// addChunk makes a chunk at the lowest vacant place. It is not in the archetype's list yet.
func (a *Archetype) addChunk(base uint32) *Chunk {
	if a.vacant == 0 {
		a.addExtent()
	}
	i := 0 // some 20 for a million entities, and as a rule the last one
	for a.extents[i].vacant() == 0 {
		i++
	}
	e := a.extents[i]
	place := e.used.lowestOutside()
	e.used.flip(place)
	e.chunks++
	a.vacant--
	return newChunk(a, e, place, base)
}

// addExtent takes memory for the next chunks from the slab.
func (a *Archetype) addExtent() {
	l := a.extentLayout()
	e := &extent{layout: l}
	e.base, e.block = a.store.slab.alloc(l.block)
	a.extents = append(a.extents, e)
	a.vacant += l.places
	a.bytes += int(l.block)
}

// firstLayout is the layout of the chunk that comes first: a small one, unless more than that
// holds was asked for at once. Two runs instead of one cost a loop over a thousand entities
// a twentieth.
func (a *Archetype) firstLayout() *FieldLayout {
	if a.largeFirst {
		return a.layout
	}
	return a.first
}

// extentLayout is the layout of the next extent.
func (a *Archetype) extentLayout() *FieldLayout {
	if len(a.chunks) == 0 {
		return a.firstLayout()
	}
	regular := len(a.chunks)
	if a.firstLayout() != a.layout {
		regular--
	}
	size := 0 // as a power of two
	for p := 2; p <= min(max(regular, a.asked), maxPlaces) && uintptr(p)*a.layout.block <= maxExtentBytes; p *= 2 {
		size++
	}
	if size == 0 {
		return a.layout
	}
	if a.extentLayouts[size] == nil {
		a.extentLayouts[size] = newLayout(a.comps, a.layout.slots, 1<<size, a.store.temporalFrames)
	}
	return a.extentLayouts[size]
}

// vacate gives the place of a chunk back, cleared, and with the last one the extent.
func (a *Archetype) vacate(c *Chunk) {
	// Free slots are zero in the write frame, and no other frame of a chunk was written before the
	// rings turned: where nobody lives, there is nothing to clear. It was half of the time of a
	// compaction (defrag, BenchmarkCompact).
	c.clean()
	if c.Taken() > 0 || c.made != a.store.frame {
		c.extent.clear(c.place)
	}
	a.vacatePlace(c.extent, c.place)
}

// clear zeroes all frames of a place.
func (e *extent) clear(place int) {
	for i := range e.layout.fields {
		f := &e.layout.fields[i]
		for frame := uintptr(0); frame < uintptr(f.FrameCount) && !f.Pointers; frame++ {
			// Sound: the part of the chunk in a frame of the column, as column says.
			zeroBytes(unsafe.Add(e.column(i, place), frame*f.FrameStride), e.layout.parts[i])
		}
	}
}

// vacatePlace gives a place of zeros back, and with the last one the extent.
func (a *Archetype) vacatePlace(e *extent, place int) {
	e.used.flip(place)
	e.chunks--
	a.vacant++
	if e.chunks != 0 {
		return
	}
	i := slices.Index(a.extents, e)
	a.extents = slices.Delete(a.extents, i, i+1)
	a.vacant -= e.layout.places
	a.bytes -= int(e.layout.block)
	a.store.slab.release(e.block, e.layout.block)
}

// verifyExtents checks that chunks and places belong together, and that vacant ones are zero.
func (a *Archetype) verifyExtents() error {
	used := map[*extent]*placeSet{}
	for _, e := range a.extents {
		used[e] = &placeSet{}
	}
	for i, c := range a.chunks {
		places := used[c.extent]
		if places == nil || places.has(c.place) || c.layout != c.extent.layout {
			return fmt.Errorf("chunk %d: its place %d is another one's, or not in a listed extent", i, c.place)
		}
		places.flip(c.place)
		for k := range c.layout.fields {
			if !c.layout.fields[k].Pointers && c.bases[k] != c.extent.column(k, c.place) {
				return fmt.Errorf("chunk %d: column %d does not begin at place %d of its extent", i, k, c.place)
			}
		}
	}
	for _, g := range a.store.ghosts {
		if g.archetype != a {
			continue
		}
		places := used[g.extent]
		if places == nil || places.has(g.place) {
			return fmt.Errorf("place %d is kept for readers, and another one's or not in a listed extent", g.place)
		}
		places.flip(g.place)
	}
	vacant := 0
	for i, e := range a.extents {
		if e.used != *used[e] || e.chunks != e.used.count() || e.chunks == 0 {
			return fmt.Errorf("extent %d has places %#x in use and %d chunks, but its chunks have places %#x", i, e.used, e.chunks, *used[e])
		}
		vacant += e.vacant()
		if err := e.verify(); err != nil {
			return fmt.Errorf("extent %d: %w", i, err)
		}
	}
	if a.vacant != vacant {
		return fmt.Errorf("%d places vacant, %d recorded", vacant, a.vacant)
	}
	return nil
}

// verify checks that what no chunk has is zero: vacant places, and what rounds a frame up.
func (e *extent) verify() error {
	l := e.layout
	for i := range l.fields {
		f := &l.fields[i]
		if f.Pointers {
			continue
		}
		for frame := range uintptr(f.FrameCount) {
			start := unsafe.Add(e.base, f.Offset+frame*f.FrameStride)
			for place := range l.places {
				if e.used.has(place) {
					continue
				}
				if at, bad := nonZero(unsafe.Add(start, uintptr(place)*l.parts[i]), l.parts[i]); bad {
					return fmt.Errorf("place %d is vacant, but not zero at byte %d of frame %d of column %s", place, at, frame, f.Type)
				}
			}
			end := uintptr(l.places) * l.parts[i]
			if _, bad := nonZero(unsafe.Add(start, end), l.spans[i]-end); bad {
				return fmt.Errorf("frame %d of column %s was written beyond its end", frame, f.Type)
			}
		}
	}
	return nil
}
