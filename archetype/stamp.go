package archetype

import (
	"sync/atomic"

	"github.com/airlock-ecs/airlock/internal/planted"
)

// Chunks remember when they changed, so that loops and copies can leave alone what did not: a
// stamp for each column, and one that goes for all of them, since taking a slot and giving it
// back writes every column. A stamp is the storage frame in which it was written; it never
// falls. Undo does not take stamps back: a chunk may seem changed that is as it was.
//
// Columns are marked by several workers of one frame at once, hence atomically, and all of
// them store the same number. Slots are taken and given back by the owner alone.

// Mark notes that cells of the column of a table slot are written now. Who hands out a way to
// write them calls it.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) Mark(tableSlot int) {
	// Looking first keeps the line shared by the workers that mark the same chunk.
	if now := *c.now; atomic.LoadUint64(&c.stamps[tableSlot]) != now {
		c.stamp(tableSlot, now)
	}
}

// stamp marks a column and the chunk. Apart from Mark, so that Mark is inlined.
func (c *Chunk) stamp(tableSlot int, now uint64) {
	atomic.StoreUint64(&c.stamps[tableSlot], now)
	if planted.Enabled && planted.Is(planted.ChangeNotStamped) {
		return
	}
	// A store is a locked operation: one for the chunk in a frame, not one for each of its columns.
	if atomic.LoadUint64(&c.marked) != now {
		atomic.StoreUint64(&c.marked, now)
	}
}

// MarkActive notes that the Active plane is written now.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) MarkActive() {
	// A field of its own: every death comes along here.
	if now := *c.now; atomic.LoadUint64(&c.activeAt) != now {
		atomic.StoreUint64(&c.activeAt, now)
	}
}

// ChangedAt is the stamp of the last change to the column of a component's table slot: a write, or
// a slot that was taken or given back.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) ChangedAt(tableSlot int) uint64 {
	return max(c.touched, atomic.LoadUint64(&c.stamps[tableSlot]))
}

// StructureChangedAt is the stamp of the last change to which entities the chunk shows: slots
// taken or given back, and bits of the Active plane.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (c *Chunk) StructureChangedAt() uint64 {
	return max(c.touched, atomic.LoadUint64(&c.activeAt))
}
