package archetype

import (
	"bytes"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"
)

// Verify walks the whole store and checks every invariant: the accounts of slab and cache
// indices, counters against planes, and that what nobody has taken is zero.
//
// Concurrency: owner or idle registry only; never waits. Allocates: yes.
func (s *Store) Verify() error {
	if err := s.slab.verify(); err != nil {
		return err
	}
	if err := s.cache.verify(); err != nil {
		return err
	}
	if err := s.verifyIndices(); err != nil {
		return err
	}
	var places, blocks, chunks uint64
	pooled := 0
	for i, a := range s.list {
		if a.ordinal != i {
			return fmt.Errorf("archetype %s: it is at %d in the list, and says %d", a, i, a.ordinal)
		}
		if a.pooled != 0 {
			if pooled++; a.pooled != pooled || a.allocated > a.pooledSlots || a.hole != nil {
				return fmt.Errorf("archetype %s: pool %d of the list thinks that it is pool %d, and has %d of %d slots", a, pooled, a.pooled, a.allocated, a.pooledSlots)
			}
		} else if s.byKey[archetypeKey{a.class, a.sig}] != a {
			return fmt.Errorf("archetype %s: entry %d of the list is not found by its key", a, i)
		}
		if err := a.verify(); err != nil {
			return fmt.Errorf("archetype %s: %w", a, err)
		}
		for _, c := range a.chunks {
			places += uint64(c.layout.slots)
			chunks += uint64(len(c.holes))
		}
		for _, e := range a.extents {
			blocks += uint64(e.layout.block)
		}
	}
	gone := map[*extent]bool{} // of archetypes that were dropped
	for _, g := range s.ghosts {
		if a := g.archetype; !slices.Contains(s.list, a) && !gone[g.extent] {
			gone[g.extent] = true
			blocks += uint64(g.extent.layout.block)
		}
	}
	for _, c := range s.blocks {
		if c != nil {
			chunks--
		}
	}
	switch {
	case len(s.byKey)+pooled != len(s.list):
		return fmt.Errorf("archetype: %d archetypes listed, %d found by key", len(s.list), len(s.byKey))
	case chunks != 0:
		return fmt.Errorf("archetype: the block table and the chunks differ by %d words", int64(chunks))
	case places+s.cache.count() != cacheIndices:
		return fmt.Errorf("archetype: chunks have %d cache indices, %d are free", places, s.cache.count())
	case uint64(s.cacheCap.Load()) != s.cache.high():
		return fmt.Errorf("archetype: cache cap %d, highest index in use %d", s.cacheCap.Load(), s.cache.high())
	case blocks != uint64(s.slab.taken):
		return fmt.Errorf("archetype: extents have %d bytes of the slab, %d are out", blocks, s.slab.taken)
	}
	return s.verifyMaps()
}

// verifyMaps compares the block maps with the chunks.
func (s *Store) verifyMaps() error {
	for _, m := range s.maps {
		if len(m.cells) != len(s.blocks) {
			return fmt.Errorf("archetype: component %d: the cells of %d blocks are known, of %d", m.id, len(m.cells), len(s.blocks))
		}
		known := m.ring == ringCold || m.frame == s.frame
		for p, cells := range m.cells {
			var want unsafe.Pointer
			if c := s.blocks[p]; c != nil && c.archetype.Column(m.id) >= 0 {
				want = c.Cell(c.archetype.Column(m.id), uint32(p<<6)-c.base, m.size)
			}
			if (cells == nil) != (want == nil) || known && cells != want {
				return fmt.Errorf("archetype: component %d: the cells of block %d are at %p, and known to be at %p", m.id, p, want, cells)
			}
		}
	}
	return nil
}

func (a *Archetype) verify() error {
	allocated, slots, size, holes := 0, 0, 0, 0
	var lowest *Chunk
	for i, c := range a.chunks {
		if c.archetype != a || c.index != i {
			return fmt.Errorf("chunk %d thinks it is chunk %d of %s", i, c.index, c.archetype)
		}
		if i < len(a.chunks)-1 && c.Allocated() != c.Slots() {
			return fmt.Errorf("chunk %d of %d has slots that were never taken", i, len(a.chunks))
		}
		if c.holeWords != 0 {
			holes++
			if lowest == nil {
				lowest = c
			}
		}
		if a.holes.Has(uint32(i)) != (c.holeWords != 0) {
			return fmt.Errorf("chunk %d: the archetype is wrong about its holes", i)
		}
		if err := c.verify(); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
		allocated += c.Allocated()
		slots += c.Slots()
		size += int(c.layout.typed)
	}
	for _, e := range a.extents {
		size += int(e.layout.block)
	}
	switch {
	case a.live < 0 || a.live > a.allocated:
		return fmt.Errorf("live %d, allocated %d", a.live, a.allocated)
	case a.allocated != allocated || allocated > slots:
		return fmt.Errorf("allocated %d, %d in its chunks, which have %d slots", a.allocated, allocated, slots)
	case a.bytes != size:
		return fmt.Errorf("bytes %d, %d in its extents and chunks", a.bytes, size)
	case len(a.chunks) == 0 && a.tail != nil, len(a.chunks) > 0 && a.tail != a.chunks[len(a.chunks)-1]:
		return fmt.Errorf("the tail is not the last of %d chunks", len(a.chunks))
	case a.hole != lowest || a.holes.Len() != holes:
		return fmt.Errorf("%d chunks with holes, %d recorded, or the lowest is not the first of them", holes, a.holes.Len())
	}
	if err := a.verifyExtents(); err != nil {
		return err
	}
	for i, c := range a.chunks {
		if err := c.verifyTable(); err != nil {
			return fmt.Errorf("chunk %d: %w", i, err)
		}
	}
	return a.holes.Verify()
}

func (c *Chunk) verify() error {
	s := c.archetype.store
	for slot := 0; slot < c.Slots(); slot += 64 {
		if s.ChunkAt(c.base+uint32(slot)) != c {
			return fmt.Errorf("cache index %d leads elsewhere", c.base+uint32(slot))
		}
	}
	if latest := slices.Max(c.stamps); latest > c.marked {
		return fmt.Errorf("a column was written in frame %d, the chunk last in frame %d", latest, c.marked)
	}
	if c.Allocated() > c.Slots() || c.base%64 != 0 {
		return fmt.Errorf("allocated %d of %d slots, from cache index %d", c.allocated, c.Slots(), c.base)
	}
	for w := range c.holes {
		if err := c.verifyWord(w); err != nil {
			return err
		}
	}
	for i := range c.layout.fields {
		if err := c.verifyColumn(&c.layout.fields[i]); err != nil {
			return err
		}
	}
	return nil
}

// verifyTable checks that the accessors are pointed at the write frame.
func (c *Chunk) verifyTable() error {
	want := make([]unsafe.Pointer, len(c.bases))
	c.layout.BuildFieldTable(want, c.bases, *c.now)
	n := len(want)
	if !slices.Equal(c.table, want) || unsafe.Pointer(unsafe.SliceData(c.active)) != want[n-2] || unsafe.Pointer(unsafe.SliceData(c.entities)) != want[n-1] {
		return fmt.Errorf("columns are at %v in frame %d, and should be at %v", c.table, *c.now, want)
	}
	for i, column := range c.archetype.zeroing16 {
		if c.table16[i] != want[column] {
			return fmt.Errorf("column %d, of 16 bytes, is at %p, and should be at %p", column, c.table16[i], want[column])
		}
	}
	return nil
}

// verifyFrames checks that a buffer which was written after the column last changed is the same as
// that of the write frame, and that every buffer is zero where no slot was ever taken.
func (c *Chunk) verifyFrames(f *FieldDescriptor) error {
	r := &c.archetype.store.rings[c.layout.rings[f.Slot]]
	changed := c.columnChangedAt(f.Slot)
	part := c.layout.parts[f.Slot]
	used := uintptr(max(c.high, c.allocated)) * f.ElementSize
	if f.Slot == len(c.table)-2 {
		used = uintptr(max(c.high, c.allocated)+63) / 64 * 8
	}
	now := unsafe.Slice((*byte)(c.table[f.Slot]), part)
	for buffer, held := range r.held {
		if uint64(buffer) == c.archetype.store.frame%r.count {
			continue
		}
		// Sound: the chunk's part of a frame, and this one is one of FrameCount.
		then := unsafe.Slice((*byte)(unsafe.Add(c.bases[f.Slot], uintptr(buffer)*f.FrameStride)), part)
		if at, bad := nonZero(unsafe.Pointer(unsafe.SliceData(then)), part); bad && held < c.made {
			return fmt.Errorf("frame %d of column %s was written before the chunk was made in frame %d, at byte %d", held, f.Type, c.made, at)
		}
		if changed <= held && !bytes.Equal(now, then) {
			return fmt.Errorf("column %s last changed in frame %d, but is another one in frame %d", f.Type, changed, held)
		}
		if used == part {
			continue // and there is no byte to point to
		}
		if at, bad := nonZero(unsafe.Add(unsafe.Pointer(unsafe.SliceData(then)), used), part-used); bad {
			return fmt.Errorf("frame %d of column %s was written where nobody was, at byte %d", held, f.Type, used+at)
		}
	}
	return nil
}

// verifyWord checks the bits of 64 slots against each other.
func (c *Chunk) verifyWord(w int) error {
	never := ^uint64(0) // slots that were never taken
	if n := c.Allocated() - w<<6; n >= 64 {
		never = 0
	} else if n > 0 {
		never = ^uint64(0) << n
	}
	holes, active, born := c.holes[w], c.active[w], c.born[w]
	switch {
	case (holes != 0) != (c.holeWords>>w&1 != 0) || (born != 0) != (c.bornWords>>w&1 != 0):
		return fmt.Errorf("word %d: the summary is wrong about its holes %#x or born slots %#x", w, holes, born)
	case holes&never != 0:
		return fmt.Errorf("word %d: holes %#x among slots never taken", w, holes&never)
	case active&born != 0:
		return fmt.Errorf("word %d: %#x active and still to be born", w, active&born)
	case (active|born)&(holes|never) != 0:
		return fmt.Errorf("word %d: %#x active, but not taken", w, (active|born)&(holes|never))
	}
	return nil
}

// verifyColumn checks that the cells of free slots are zero, and the other frames of the column.
func (c *Chunk) verifyColumn(f *FieldDescriptor) error {
	if err := c.verifyFrames(f); err != nil {
		return err
	}
	if plane := len(c.table) - 2; f.Slot == plane {
		return nil // its bits were compared with the holes
	}
	for w := range c.holes {
		for holes := c.holes[w]; holes != 0 && (c.soiled == 0 || f.Slot == len(c.table)-1); holes &= holes - 1 {
			slot := uint32(w<<6 | bits.TrailingZeros64(holes))
			if _, bad := nonZero(c.Cell(f.Slot, slot, f.ElementSize), f.ElementSize); bad {
				return fmt.Errorf("slot %d is free, but its cell in column %s is not zero", slot, f.Type)
			}
		}
	}
	never := c.Slots() - c.Allocated()
	if never == 0 {
		return nil // and there is no cell to point to
	}
	if at, bad := nonZero(c.Cell(f.Slot, c.allocated, f.ElementSize), uintptr(never)*f.ElementSize); bad {
		return fmt.Errorf("slot %d was never taken, but its cell in column %s is not zero",
			c.Allocated()+int(at/f.ElementSize), f.Type)
	}
	return nil
}
