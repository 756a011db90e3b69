package archetype

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/airlock-ecs/airlock/handles"
)

// Directory is what a store consists of, for readers of its closed frames: it is not changed, while
// the store goes on. Consecutive frames mostly share one.
type Directory struct {
	version    uint64 // Store.version and the shapes that it was made for
	shapes     uint64
	archetypes []*Archetype
	chunks     [][]*Ref // of each archetype, in its order
	byBase     []*Ref   // by cache index
}

// Ref is a chunk as readers find it: where its memory is and which cache indices it has. It is not
// changed; a chunk that moves gets another one.
type Ref struct {
	id        uint64
	archetype *Archetype
	layout    *FieldLayout
	bases     []unsafe.Pointer
	rows      []uint64
	base      uint32
	index     int
}

// reshape notes that a list of chunks has changed, or where one of them is.
func (a *Archetype) reshape() {
	a.store.shapes++
	a.shape = a.store.shapes
}

// Directory is what the store consists of now. It is made anew when chunks have come, gone or
// moved since the last time, for the archetypes that this is about.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: when it is made anew.
func (s *Store) Directory() *Directory {
	if d := s.directory; d != nil && d.version == s.version && d.shapes == s.shapes {
		return d
	}
	d := &Directory{version: s.version, shapes: s.shapes, archetypes: slices.Clone(s.list)}
	n := 0
	for _, a := range s.list {
		if a.listedShape != a.shape {
			a.list()
		}
		d.chunks = append(d.chunks, a.listed)
		n += len(a.listed)
	}
	d.byBase = make([]*Ref, 0, n)
	for _, refs := range d.chunks {
		d.byBase = append(d.byBase, refs...)
	}
	slices.SortFunc(d.byBase, func(a, b *Ref) int { return cmp.Compare(a.base, b.base) })
	s.directory = d
	return d
}

// list makes the list of an archetype's chunks for readers. Those that are as they were keep
// their Ref.
func (a *Archetype) list() {
	old := a.listed
	a.listed = make([]*Ref, 0, len(a.chunks))
	a.listedShape = a.shape
	for i, c := range a.chunks {
		for len(old) > 0 && old[0].id < c.id { // chunks are in the order in which they were made
			old = old[1:]
		}
		if len(old) > 0 && old[0].is(c) {
			a.listed = append(a.listed, old[0])
			continue
		}
		a.listed = append(a.listed, &Ref{
			id: c.id, archetype: a, layout: c.layout, bases: slices.Clone(c.bases), rows: c.rows, base: c.base, index: i,
		})
	}
}

// is says whether a Ref shows the chunk where it is now.
func (r *Ref) is(c *Chunk) bool {
	return r.id == c.id && r.base == c.base && r.index == c.index && r.layout == c.layout && r.bases[len(r.bases)-1] == c.bases[len(c.bases)-1] && len(r.rows) == len(c.rows)
}

// Version changes whenever the list of archetypes does, as the store's does.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (d *Directory) Version() uint64 { return d.version }

// Archetypes are the archetypes in the order of their creation. The caller does not change the slice.
// Of an archetype, only what any goroutine may ask can be asked.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (d *Directory) Archetypes() []*Archetype { return d.archetypes }

// Chunks are the chunks of an archetype, by its place in Archetypes. The caller does not change
// the slice.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (d *Directory) Chunks(archetype int) []*Ref { return d.chunks[archetype] }

// At is the chunk that has a cache index, nil if none has.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (d *Directory) At(place uint32) *Ref {
	i, ok := slices.BinarySearchFunc(d.byBase, place, func(r *Ref, place uint32) int { return cmp.Compare(r.base, place) })
	if !ok {
		if i == 0 {
			return nil
		}
		i--
	}
	if r := d.byBase[i]; place-r.base < uint32(r.layout.slots) {
		return r
	}
	return nil
}

// Archetype is the archetype that the chunk belongs to.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Ref) Archetype() *Archetype { return r.archetype }

// Base is the cache index of slot 0.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Ref) Base() uint32 { return r.base }

// Slots is how many slots the chunk has.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Ref) Slots() int { return r.layout.slots }

// Entities is the entity column of a frame, which is closed and kept. To be read only.
//
// Concurrency: who keeps the frame; never waits. Allocates: no.
func (r *Ref) Entities(frame uint64) []handles.Local {
	// Sound as Chunk.resolve is.
	return unsafe.Slice((*handles.Local)(r.column(len(r.bases)-1, frame)), r.layout.slots)
}

// Active is the Active plane of a frame, which is closed and kept. To be read only.
//
// Concurrency: who keeps the frame; never waits. Allocates: no.
func (r *Ref) Active(frame uint64) []uint64 {
	return unsafe.Slice((*uint64)(r.column(len(r.bases)-2, frame)), r.layout.slots/64)
}

// Cell is the cell of a slot in the column of a table slot, in a frame that is closed and kept. To
// be read only.
//
// Concurrency: who keeps the frame; never waits. Allocates: no.
func (r *Ref) Cell(tableSlot int, slot uint32, size uintptr, frame uint64) unsafe.Pointer {
	// Sound as Chunk.Cell is.
	return unsafe.Add(r.column(tableSlot, frame), uintptr(slot)*size)
}

func (r *Ref) column(i int, frame uint64) unsafe.Pointer {
	// Sound as in BuildFieldTable.
	return unsafe.Add(r.bases[i], uintptr(frame%r.layout.counts[r.layout.rings[i]])*r.layout.strides[i])
}

// Show makes c a look at the chunk in a frame, which is closed and kept: what asks c for columns,
// planes and stamps sees those of that frame. All its slots count as allocated. Nothing may be
// written through it. The caller keeps c, whose memory is used again.
//
// Concurrency: who keeps the frame; never waits. Allocates: for the first chunk that c shows, and a
// larger one.
func (r *Ref) Show(c *Chunk, frame uint64) {
	n := len(r.bases)
	if cap(c.table) < n {
		c.table = make([]unsafe.Pointer, n)
	}
	c.table = c.table[:n]
	r.layout.BuildFieldTable(c.table, r.bases, frame)
	c.active, c.entities = r.Active(frame), r.Entities(frame)
	c.allocated, c.base = uint32(r.layout.slots), r.base
	c.archetype, c.layout, c.id, c.index, c.bases = r.archetype, r.layout, r.id, r.index, r.bases
	k := r.layout.rings[n-1]
	row := r.rows[int(frame%r.layout.counts[k])*(n+2):][: n+2 : n+2]
	c.stamps, c.touched, c.activeAt = row[:n:n], row[n], row[n+1]
}

// Conceal has c, which was made a look at a chunk, forget it.
//
// Concurrency: the caller keeps c. Allocates: no.
func (c *Chunk) Conceal() {
	clear(c.table)
	*c = Chunk{table: c.table[:0]}
}
