package archetype

import (
	"reflect"
	"unsafe"

	"github.com/airlock-ecs/airlock/handles"
)

// Chunk is a fixed block of slots: a column for each field, the entity column, and bit planes
// with 64 slots to a word. Slot i has cache index Base()+i.
//
// Accessors speak of the write frame. They are small so that they are inlined; none checks a
// slot beyond what the slices do.
//
// Invariant: every slot from allocated on is zero; a slot with a set hole bit is below
// allocated and zero; bit w of holeWords is set exactly if holes[w] is not zero, and the same
// of bornWords; a slot has an Active or a born bit, or none, never both.
//
// A Chunk is written by the goroutine that owns the registry. It is of no use once its
// archetype has released it, and then panics rather than show what its memory became.
type Chunk struct {
	// What a look at one cell needs, in a line of the cache.
	table     []unsafe.Pointer // where each column begins in the write frame
	archetype *Archetype
	base      uint32          // cache index of slot 0
	allocated uint32          // high-water mark: slots from here on were never taken
	entities  []handles.Local // the entity column of the write frame

	table16   []unsafe.Pointer // as table, of the columns with pointer-free cells of 16 bytes
	active    []uint64         // the Active plane of the write frame
	holes     []uint64         // slots that were reclaimed and not taken again
	holeWords uint64           // one bit for each word of holes: 4096 slots are 64 words

	now      *uint64  // Store.frame
	touched  uint64   // when slots were last taken or given back, see stamp.go
	activeAt uint64   // when the Active plane was last written
	stamps   []uint64 // when each column of a component was last written, by table slot
	marked   uint64   // the latest of them
	high     uint32   // slots from here on are zero in all frames; see Store.Advance

	soiled    uint32 // 1: free slots may not be zero, see soil.go; stored by workers, too
	emptyPass uint64 // of Store.pass: when it was last noted as empty
	doomed    bool   // is being released

	born      []uint64 // slots to become active when a loop in a window ends
	bornWords uint64

	layout *FieldLayout
	id     uint64           // no other chunk of the store ever has it
	made   uint64           // the storage frame in which it was made
	rows   []uint64         // the stamps of each frame that is kept, see Store.Close; nil before the first is
	index  int              // in archetype.chunks
	tables []unsafe.Pointer // table and table16 for each buffer, see resolve
	bases  []unsafe.Pointer // where frame 0 of each column begins: part of tables
	extent *extent          // whose memory it has
	place  int              // in the extent
}

// Base is the cache index of slot 0.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Base() uint32 { return c.base }

// Slots is how many slots the chunk has.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Slots() int { return len(c.entities) }

// Allocated is the high-water mark: slots from here on were never taken. A loop over the
// chunk ends here.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Allocated() int { return int(c.allocated) }

// Archetype is the archetype that the chunk belongs to.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Archetype() *Archetype { return c.archetype }

// Index is the chunk's place in its archetype's list.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Index() int { return c.index }

// Layout is how the chunk's columns lie. Chunks of an archetype may share blocks and the first
// may be smaller, so offsets and strides can differ from the archetype's layout and from those
// of another chunk. Table slots are the same in all.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Layout() *FieldLayout { return c.layout }

// Column is where the column of a table slot begins.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Column(tableSlot int) unsafe.Pointer { return c.table[tableSlot] }

// Cell is the cell of a slot in the column of a table slot, whose elements have size bytes.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Cell(tableSlot int, slot uint32, size uintptr) unsafe.Pointer {
	// Sound while slot < Slots() and size is the column's element size: the column has
	// Slots() elements in one object.
	return unsafe.Add(c.table[tableSlot], uintptr(slot)*size)
}

// ID is a number that no other chunk of the store ever has.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) ID() uint64 { return c.id }

// Bytes is the column of a table slot as bytes, all slots of it; nil for one with pointers.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Bytes(tableSlot int) []byte {
	if c.layout.fields[tableSlot].Pointers {
		return nil
	}
	// Sound: a chunk's part of a column in one frame has this many bytes, free of pointers.
	return unsafe.Slice((*byte)(c.table[tableSlot]), c.layout.parts[tableSlot])
}

// Columns16 are the columns, in the write frame, of cells of 16 bytes without pointers, in the
// order of their table slots: the commonest kind, which spawning and reclaiming go through
// without a look at the table.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Columns16() []unsafe.Pointer { return c.table16 }

// Entities is the entity column. The caller may write elements of slots it has taken.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Entities() []handles.Local { return c.entities }

// newChunk makes a chunk of zeros at a place of an extent.
func newChunk(a *Archetype, e *extent, place int, base uint32) *Chunk {
	layout := e.layout
	words := layout.slots / 64
	n := layout.Len()
	tables := make([]unsafe.Pointer, layout.tables*(n+len(a.zeroing16)))
	planes := make([]uint64, 2*words+n)
	c := &Chunk{
		tables:    tables,
		bases:     tables[:n:n],
		holes:     planes[:words:words],
		born:      planes[words : 2*words : 2*words],
		stamps:    planes[2*words:],
		now:       &a.store.frame,
		archetype: a,
		layout:    layout,
		id:        a.store.nextID(),
		made:      a.store.frame,
		index:     len(a.chunks),
		base:      base,
		extent:    e,
		place:     place,
	}
	for i := range layout.fields {
		if f := &layout.fields[i]; f.Pointers {
			c.bases[i] = typedColumn(f, layout.slots)
		} else {
			c.bases[i] = e.column(i, place)
		}
	}
	c.tabulate()
	c.resolve(a.store)
	return c
}

// tabulate works out the tables of all buffers. Where the chunk has one that changes, resolve does.
func (c *Chunk) tabulate() {
	var shifts [32]uintptr
	for buffer := range c.layout.tables {
		to := shifts[:0]
		for _, stride := range c.layout.strides {
			to = append(to, uintptr(buffer)*stride)
		}
		c.fillTable(buffer, to)
	}
}

// fillTable writes one of the tables: columns are so far from where they are in frame 0.
func (c *Chunk) fillTable(k int, shifts []uintptr) {
	bases := c.bases[:len(shifts)]
	table := c.tables[k*(len(shifts)+len(c.archetype.zeroing16)):]
	table, table16 := table[:len(shifts)], table[len(shifts):]
	for i, shift := range shifts {
		table[i] = unsafe.Add(bases[i], shift) // sound as in BuildFieldTable
	}
	for i, column := range c.archetype.zeroing16 {
		table16[i] = table[column]
	}
}

// resolve points the accessors at the write frame. There is a table for each buffer of the ring that the chunk's columns have:
// to work one of eleven columns out in each frame took half of what a frame costs in which nothing has changed
// (BenchmarkAdvance). A chunk whose columns have two rings has one that is worked out in each frame, behind that of frame 0.
func (c *Chunk) resolve(s *Store) {
	l := c.layout
	k := int(s.rings[l.ring].at)
	if l.mixed {
		k = 1
		c.fillTable(k, s.shiftsOf(l))
	}
	n := len(c.bases)
	w := n + len(c.archetype.zeroing16)
	row := c.tables[k*w:][:w:w]
	c.table, c.table16 = row[:n:n], row[n:]
	// Sound: the last two columns of a layout are the plane and the entity column, of these
	// element types. The chunk's parts of them are this long, and begin at a multiple of 8 bytes
	// because the columns do.
	c.active = unsafe.Slice((*uint64)(row[n-2]), len(c.holes))
	c.entities = unsafe.Slice((*handles.Local)(row[n-1]), l.slots)
}

// release gives the chunk's memory and cache indices back and makes the chunk useless.
func (c *Chunk) release() {
	s := c.archetype.store
	s.leave(c)
	s.cache.give(uint64(c.base), uint64(c.layout.slots))
	s.cacheCap.Store(uint32(s.cache.high()))
	if c.made == s.frame { // no reader can have it
		c.archetype.vacate(c)
	} else {
		s.bury(c.archetype, c.extent, c.place)
	}
	*c = Chunk{archetype: c.archetype, layout: c.layout}
}

// CellsOf is the column of a table slot in the write frame, all slots of it, as what it consists of: T is the type of
// its field.
//
// Panics: if the column's cells are of another type.
// Concurrency: the registry's owner and its workers; writers mark the column. Never waits. Allocates: no.
func CellsOf[T any](c *Chunk, tableSlot int) []T {
	if f := &c.layout.fields[tableSlot]; f.Type != reflect.TypeFor[T]() {
		panic("archetype: a column of " + f.Type.String() + " as one of " + reflect.TypeFor[T]().String())
	}
	// Sound: a chunk's part of a column has an element of this type for each slot.
	return unsafe.Slice((*T)(c.table[tableSlot]), c.layout.slots)
}
