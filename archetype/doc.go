// Package archetype is the memory of a registry: which component types there are, how the
// fields of a set of them lie in a chunk, where chunks come from, which slots are in use.
//
// It knows nothing about identity. What a handle is, whether it is alive and who may end a
// life belongs to package registry; here an entity is a slot of a chunk, and a handle is one
// more cell that is stored and zeroed. It has no lock either: but for two things said below,
// everything is written by the goroutine that owns the registry at that time, and workers
// read between fork and join.
//
// From the outside in:
//
//   - [Schema]: component types, registered once, each with its tier and fields.
//   - [Store]: one per registry. It owns the [Archetype] list, the slab, the cache indices.
//   - [Archetype]: one (class, [Signature]) pair; chunks of slots, filled lowest first.
//   - [Chunk]: some slots with one column a field, and bit planes beside them.
//   - [FieldLayout]: where in a block of memory each column lies, for every frame of its ring.
//
// Chunks of a larger archetype share blocks, so that a loop walks through each column without a
// jump: up to 256 of them lie in an extent, and their columns end to end in it. A chunk's offsets
// and strides are those of its extent, as [Chunk.Layout] says; in every other way a chunk is by
// itself: cache indices, counters, planes, its life. [Archetype.Layout] is that of a chunk alone.
//
// Life of a slot: fresh -> taken -> reclaimed -> taken, and only undo makes it fresh again.
// Memory that nobody has taken is zero: slots are zeroed when they are given back, the whole
// place of a chunk when it is released. So taking a slot writes nothing, and no value leaks.
//
// Columns of the Volatile and Temporal tiers have several frames. The Store has one write
// frame, and nothing outside it is ever written here: what lies in the others belongs to
// readers of published frames.
//
// What other goroutines may touch: lookups in a Schema (a copy-on-write snapshot),
// [Store.CacheCap], and single bits of a chunk's Active plane through the Atomic methods,
// as far as the registry lets them hold a chunk at all.
package archetype
