package archetype

import (
	"fmt"
	"strings"

	"github.com/airlock-ecs/airlock/internal/bitset"
)

// Archetype is the storage of the entities that have one class and one set of components.
//
// It has two counters: Allocated, the slots that were ever taken, and Live, the entities.
// What lies between them are tombstones, slots in the middle of something, and holes.
//
// Invariant: live <= allocated <= slots of all chunks; only the last chunk has slots that
// were never taken; holes has exactly the chunks with hole bits, and hole is the lowest.
type Archetype struct {
	// The fast paths of Take and Reclaim use these.
	tail      *Chunk   // the last chunk, nil if there is none
	hole      *Chunk   // the lowest chunk with a hole, nil if there is none
	allocated int      // high-water mark over all chunks
	zeroing16 []uint32 // table slots of the 16-byte columns
	zeroing   []uint32 // and of the other columns of components

	cells  []Copier // of the components' columns, by table slot
	live   int
	chunks []*Chunk
	holes  bitset.Set // indices of the chunks with holes
	bytes  int        // of extents and typed columns

	shrinking bool // is in Store.shrinking

	pooled, pooledSlots int // see Pool; 0 for an ordinary archetype
	ordinal             int // its place in Store.list; never changes

	shape       uint64 // changes with the list of chunks and where they are
	listed      []*Ref // what readers find, of listedShape
	listedShape uint64

	extents []*extent // where the chunks' memory is, oldest first
	vacant  int       // places in them that no chunk has

	store      *Store
	class      int
	className  string
	sig        Signature
	comps      []*Component // by id
	layout     *FieldLayout // of all chunks but perhaps the first
	first      *FieldLayout // of the chunk that is made while there is none
	largeFirst bool         // the first chunk is a regular one; set by TakeRun when there is none
	asked      int          // chunks that a TakeRun asks for beyond the first; only while it takes

	extentLayouts [9]*FieldLayout // by the logarithm of the places; made when needed, from 1 on

	columns [columnIDs]int32 // table slot of a component's first column, -1 without one

	addEdges, removeEdges []*Archetype // by component; as long as the highest one that was set

	sharedFrom *Archetype // of shared; nil at first, see sharedWith
	shared     []sharedColumn
}

func newArchetype(s *Store, class int, sig Signature, className string, slotsPerChunk int) *Archetype {
	slots, first := slotsPerChunk, slotsPerChunk
	if slotsPerChunk == 0 {
		slots, first = DefaultSlots, firstSlots
	}
	if err := ValidateSlots(slots); err != nil {
		panic(err.Error())
	}
	a := &Archetype{store: s, class: class, className: className, sig: sig, ordinal: len(s.list)}
	for id := range sig.All() {
		c, ok := s.schema.ByID(id)
		if !ok {
			panic(fmt.Sprintf("archetype: class %s: there is no component %d", className, id))
		}
		a.comps = append(a.comps, c)
		for i := range c.Fields {
			a.cells = append(a.cells, c.Fields[i].Cell)
		}
	}
	a.planZeroing()
	a.layout = NewLayout(a.comps, slots, s.temporalFrames)
	a.first = a.layout
	if first != slots {
		a.first = NewLayout(a.comps, first, s.temporalFrames)
	}
	for i := range a.columns {
		a.columns[i] = -1
	}
	for key, f := range a.layout.All() {
		if key.Field == 0 {
			a.columns[key.Component] = int32(f.Slot)
		}
	}
	return a
}

// Class is the number of the class, as the store was told.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) Class() int { return a.class }

// ClassName is the name of the class.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) ClassName() string { return a.className }

// Ordinal is how many archetypes of the store came into being before this one, and its place in
// Store.Archetypes.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) Ordinal() int { return a.ordinal }

// Store is the store that the archetype belongs to.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) Store() *Store { return a.store }

// Signature is the set of components.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) Signature() Signature { return a.sig }

// Has says whether entities here have the component. All have ActiveID and EntityID, but
// those are in no signature: for them the answer is false.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) Has(id ComponentID) bool { return a.sig.Has(id) }

// Temporal says whether the Active plane and the entity column have the frames of the temporal
// ring, and are not those of the last two or three frames only.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) Temporal() bool { return a.layout.rings[len(a.layout.rings)-1] == ringLong }

// Components are the components by id, tags among them. The caller does not change the slice.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) Components() []*Component { return a.comps }

// Layout is how the columns of a chunk of regular size lie that has its block for itself. Chunks
// of larger archetypes share blocks, and one of default size has a smaller first chunk, so
// offsets and strides of a chunk are those of Chunk.Layout; table slots are the same.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) Layout() *FieldLayout { return a.layout }

// Column is the table slot of a component's first column, -1 if it has none here. The columns
// of a split component follow one another.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) Column(id ComponentID) int {
	if int(id) < len(a.columns) {
		return int(a.columns[id])
	}
	return -1
}

// ColumnOf is the table slot of a column, -1 if it is not here.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (a *Archetype) ColumnOf(key FieldKey) int {
	if f, ok := a.layout.Lookup(key); ok {
		return f.Slot
	}
	return -1
}

// Chunks are the chunks in the order in which they are filled. The slice is valid until the
// next chunk is made or released.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (a *Archetype) Chunks() []*Chunk { return a.chunks }

// Allocated is the high-water mark: how many slots were ever taken. Reclaiming does not lower
// it, only undo and Clear do.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (a *Archetype) Allocated() int { return a.allocated }

// Live is how many entities there are, as the registry counts them with AddLive.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (a *Archetype) Live() int { return a.live }

// AddLive changes Live by n.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (a *Archetype) AddLive(n int) { a.live += n }

// Bytes is the memory that the archetype holds: the slab blocks in which its chunks lie, those
// places in them included that no chunk has yet, and the chunks' columns with pointers. What
// was never written may not be resident. Bookkeeping is not counted.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (a *Archetype) Bytes() int { return a.bytes }

// Edge is where SetEdge says an entity goes that gets the component (add) or loses it; nil if
// nothing was said.
//
// Concurrency: window holder; never waits. Allocates: no.
func (a *Archetype) Edge(id ComponentID, add bool) *Archetype {
	edges := a.removeEdges
	if add {
		edges = a.addEdges
	}
	if int(id) < len(edges) {
		return edges[id]
	}
	return nil
}

// SetEdge notes where an entity goes that gets the component (add) or loses it.
//
// Panics: if id is not below MaxComponents.
// Concurrency: window holder; never waits. Allocates: now and then.
func (a *Archetype) SetEdge(id ComponentID, add bool, to *Archetype) {
	if id >= MaxComponents {
		panic(fmt.Sprintf("archetype: edge of component %d", id))
	}
	edges := &a.removeEdges
	if add {
		edges = &a.addEdges
	}
	for int(id) >= len(*edges) {
		*edges = append(*edges, nil)
	}
	(*edges)[id] = to
}

// forget removes all edges to another archetype.
func (a *Archetype) forget(to *Archetype) {
	if a.sharedFrom == to {
		a.sharedFrom = nil
	}
	for _, edges := range [][]*Archetype{a.addEdges, a.removeEdges} {
		for i, e := range edges {
			if e == to {
				edges[i] = nil
			}
		}
	}
}

// String is the class and the components, for messages.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func (a *Archetype) String() string {
	names := make([]string, len(a.comps))
	for i, c := range a.comps {
		names[i] = c.Name
	}
	return fmt.Sprintf("%s[%s]", a.className, strings.Join(names, " "))
}
