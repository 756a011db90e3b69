package archetype

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	// DefaultSlots is how many slots a chunk has when its class does not say.
	DefaultSlots = 1024
	// firstSlots is how many the first chunk of such an archetype has: many small archetypes
	// stay cheap, and the large chunks that come after it cost nothing in iteration.
	firstSlots = 128

	minSlots = 64
	maxSlots = 4096 // slots are uint16 where lists of them are kept, and a word has 64 words' bits

	// cacheIndices is how many cache indices there are: places have 30 bits, of which all
	// ones means "no place", so the last block of 64 is left out.
	cacheIndices = 1<<30 - 64
)

// ValidateSlots says whether chunks can have n slots.
//
// Errors: n is not a multiple of 64 between 64 and 4096.
// Concurrency: any goroutine; never waits. Allocates: only for an error.
func ValidateSlots(n int) error {
	if n < minSlots || n > maxSlots || n%64 != 0 {
		return fmt.Errorf("archetype: a chunk cannot have %d slots: it is a multiple of 64 from %d to %d", n, minSlots, maxSlots)
	}
	return nil
}

// Store is all the memory of a registry: its archetypes, the slab that their chunks lie in,
// and the cache indices that the chunks occupy.
//
// Invariant: blocks[p] is the chunk that has cache indices 64p to 64p+63, nil if none has;
// every chunk of every archetype is there, and nothing else.
//
// Everything is written by the goroutine that owns the registry, with no workers about.
type Store struct {
	schema         *Schema
	temporalFrames int
	frame          uint64 // the write frame, as a storage frame; changes are marked with it
	rings          [rings]ring
	shifts         []uintptr    // of the layout shifted, see shiftsOf
	shifted        *FieldLayout // nil when shifts are of an older frame
	ids            uint64       // of chunks

	dirty     []*Chunk         // those that Advance copies
	copied    atomic.Int64     // how many of them workers have taken
	copySome  func(worker int) // copyShare, made once
	ghosts    []ghost          // memory of chunks that readers may still have
	directory *Directory       // what readers walk, as of the last time that it changed
	shapes    uint64           // changes of Archetype.shape there ever were

	late lateWrites // in an ecsdebug build

	list    []*Archetype // in order of creation
	byKey   map[archetypeKey]*Archetype
	version uint64 // of list

	keep      bool         // all chunks, see Keep
	emptied   []emptied    // chunks that have become empty, and perhaps still are
	pass      uint64       // of ReleaseEmptied
	shrinking []*Archetype // in it

	slab     slab
	cache    ranges                   // cache indices that no chunk has
	blocks   []*Chunk                 // by cache index / 64
	indices  atomic.Pointer[[]uint32] // see Indices
	cacheCap atomic.Uint32            // cache.high(), for any goroutine

	mapping sync.Mutex  // see blockMap; leaf lock
	maps    []*blockMap // see blockMap
}

type archetypeKey struct {
	class int
	sig   Signature
}

// NewStore returns an empty store. temporalFrames is the depth of the temporal ring; 0 means
// that there is none, and Temporal columns are like Volatile ones.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func NewStore(schema *Schema, temporalFrames int) *Store {
	s := &Store{
		schema:         schema,
		temporalFrames: temporalFrames,
		byKey:          map[archetypeKey]*Archetype{},
	}
	s.initRings()
	s.cache.give(0, cacheIndices)
	return s
}

// Archetype is the archetype of a class and a signature; it is created if it is not there.
// Then className is what messages and statistics call it, and slotsPerChunk the size of its
// chunks; 0 means DefaultSlots after a small first chunk.
//
// Panics: if slotsPerChunk is not valid, or a component of the signature is not registered.
// Concurrency: window holder; never waits. Allocates: when it creates one.
func (s *Store) Archetype(class int, sig Signature, className string, slotsPerChunk int) *Archetype {
	key := archetypeKey{class, sig}
	if a, ok := s.byKey[key]; ok {
		return a
	}
	a := newArchetype(s, class, sig, className, slotsPerChunk)
	s.list = append(s.list, a)
	s.byKey[key] = a
	s.version++
	return a
}

// Find is the archetype of a class and a signature, nil if it was not created.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (s *Store) Find(class int, sig Signature) *Archetype {
	return s.byKey[archetypeKey{class, sig}]
}

// Archetypes are all archetypes in the order of their creation. The slice is valid until the
// next one is created or dropped.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (s *Store) Archetypes() []*Archetype { return s.list }

// Version changes whenever the list of archetypes does.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (s *Store) Version() uint64 { return s.version }

// Schema is the schema of the store's components.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *Store) Schema() *Schema { return s.schema }

// Drop takes back the creation of an archetype, the last one that was created, and every
// edge to it. It has no chunks.
//
// Panics: if the archetype is not the last one, or has chunks.
// Concurrency: window holder; never waits. Allocates: no.
func (s *Store) Drop(a *Archetype) {
	last := len(s.list) - 1
	if last < 0 || s.list[last] != a || len(a.chunks) != 0 {
		panic(fmt.Sprintf("archetype: drop of %s, which is not the last one or has chunks", a))
	}
	s.list[last] = nil
	s.list = s.list[:last]
	if a.pooled == 0 {
		delete(s.byKey, archetypeKey{a.class, a.sig})
	}
	for _, other := range s.list {
		other.forget(a)
	}
	s.version++
}

// ChunkAt is the chunk that has the cache index, nil if none has.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (s *Store) ChunkAt(place uint32) *Chunk {
	if p := int(place >> 6); p < len(s.blocks) {
		return s.blocks[p]
	}
	return nil
}

// CellAt is the cell of the slot with a cache index in a component's first column, whose elements
// have size bytes; nil if no chunk has the index, or the archetype no such column.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (s *Store) CellAt(place uint32, id ComponentID, size uintptr) unsafe.Pointer {
	p := int(place >> 6)
	if p >= len(s.blocks) || s.blocks[p] == nil {
		return nil
	}
	c := s.blocks[p]
	if column := c.archetype.Column(id); column >= 0 {
		return c.Cell(column, place-c.base, size) // sound: the block is the chunk's, so that the slot is, too
	}
	return nil
}

// CacheCap is one past the highest cache index that any chunk has: external arrays need be no
// longer.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *Store) CacheCap() uint32 { return s.cacheCap.Load() }

// enter puts a new chunk's cache indices into the table.
func (s *Store) enter(c *Chunk) {
	first, n := int(c.base>>6), len(c.holes)
	if first+n > len(s.blocks) {
		s.blocks = slices.Grow(s.blocks, first+n-len(s.blocks))[:first+n]
	}
	for p := first; p < first+n; p++ {
		s.blocks[p] = c
	}
	s.mapEntered(c)
	s.cacheCap.Store(uint32(s.cache.high()))
}

// leave takes a chunk's cache indices out of the table.
func (s *Store) leave(c *Chunk) {
	first := int(c.base >> 6)
	clear(s.blocks[first : first+len(c.holes)])
	s.mapLeft(c)
}
