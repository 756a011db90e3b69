package archetype

import (
	"bytes"
	"unsafe"

	"github.com/airlock-ecs/airlock/internal/check"
)

// Late writes. A pointer or a slice from a loop is good until its frame ends. Who keeps one and writes
// through it later writes a frame that others read, or a Cold cell that may belong to another entity by
// now. An ecsdebug build finds that out when the next frame is closed: it keeps a copy of what each
// column without pointers was when its frame was closed, and compares.
//
//   - A buffer of a closed frame that is not the write frame's is never written: any difference is a
//     late write, and the buffer tells the frame whose pointer it was.
//   - A Cold column has one buffer, which is written in every frame. But whoever may write it has marked
//     it; one that was not marked since the copy was made, and is another one, was written late.
//
// Columns with pointers are not looked at: their cells cannot be compared by their bytes. In a release
// build there is nothing of this.

// LateWrite is a write through a pointer that was kept past its frame.
type LateWrite struct {
	Archetype *Archetype
	Component *Component
	Place     uint32 // cache index of the first cell that differs
	Frame     uint64 // the storage frame that was written, of a Cold component the last one in which its column was marked
}

// shadow is what a column was when its frames were closed, in an ecsdebug build.
type shadow struct {
	frames []uint64 // by buffer: the storage frame that the copy is of, 0 without one
	bytes  []byte   // of all buffers, end to end
}

// shadows are those of a chunk's columns.
type shadows struct {
	columns []shadow
	pass    uint64 // of lateWrites.pass: when the chunk was last there
}

// lateWrites is what a store keeps for that: nothing in a release build.
type lateWrites struct {
	found  []LateWrite
	chunks map[uint64]*shadows // by the chunk's id
	pass   uint64
}

// LateWrites are the late writes that the last Close has found; valid until the next one. Empty in a
// release build.
//
// Concurrency: the registry's owner; never waits. Allocates: no.
func (s *Store) LateWrites() []LateWrite { return s.late.found }

// findLateWrites compares what was closed with what it was, and copies the frame that is being closed.
func (s *Store) findLateWrites() {
	if !check.Enabled {
		return
	}
	late := &s.late
	if late.chunks == nil {
		late.chunks = map[uint64]*shadows{}
	}
	late.found = nil
	late.pass++
	for _, a := range s.list {
		for _, c := range a.chunks {
			sh := late.chunks[c.id]
			if sh == nil {
				sh = &shadows{columns: make([]shadow, len(a.cells))}
				late.chunks[c.id] = sh
			}
			sh.pass = late.pass
			for i := range sh.columns {
				if !c.layout.fields[i].Pointers {
					c.compare(i, &sh.columns[i])
				}
			}
		}
	}
	for id, sh := range late.chunks {
		if sh.pass != late.pass {
			delete(late.chunks, id)
		}
	}
}

// compare looks for late writes to a column, and copies its buffer of the write frame.
func (c *Chunk) compare(i int, sh *shadow) {
	s := c.archetype.store
	r := &s.rings[c.layout.rings[i]]
	part := c.layout.parts[i]
	if sh.frames == nil {
		sh.frames = make([]uint64, r.count)
		sh.bytes = make([]byte, r.count*uint64(part))
	}
	cold := r.count == 1
	for b, frame := range sh.frames {
		switch {
		case frame == 0:
			continue
		case cold && c.ChangedAt(i) > frame, !cold && r.held[b] != frame:
			continue // it was for the write frame to write
		}
		// Sound: a frame of the column, as in BuildFieldTable.
		now := unsafe.Slice((*byte)(unsafe.Add(c.bases[i], uintptr(b)*c.layout.strides[i])), part)
		was := sh.bytes[uintptr(b)*part:][:part]
		if bytes.Equal(now, was) {
			continue
		}
		at := 0
		for now[at] == was[at] {
			at++
		}
		if cold {
			frame = c.ChangedAt(i)
		}
		s.late.found = append(s.late.found, LateWrite{
			Archetype: c.archetype, Component: c.archetype.componentOf(i), Frame: frame,
			Place: c.base + uint32(uintptr(at)/c.layout.fields[i].ElementSize),
		})
		copy(was, now) // it is told once
	}
	b := s.frame % r.count
	if sh.frames[b] != 0 && c.ChangedAt(i) <= sh.frames[b] {
		sh.frames[b] = s.frame
		return // it is there already
	}
	sh.frames[b] = s.frame
	copy(sh.bytes[uintptr(b)*part:][:part], c.Bytes(i))
}

// componentOf is the component that the column of a table slot belongs to.
func (a *Archetype) componentOf(tableSlot int) *Component {
	for _, comp := range a.comps {
		if first := a.Column(comp.ID); first >= 0 && tableSlot >= first && tableSlot < first+len(comp.Fields) {
			return comp
		}
	}
	return nil
}
