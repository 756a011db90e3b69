package archetype

import (
	"reflect"
	"slices"
	"unsafe"
)

// blockMap says of each block of 64 cache indices where a component's cells are, in the write frame, so that who looks for
// single cells all over the place needs neither the chunk nor its table. There is one for each component that was asked
// for.
//
// It is made, and renewed once in a frame if the component's columns have several, under Store.mapping, by whoever has a
// token: then nobody makes or releases chunks. Chunks that come and go are entered by the owner with no workers about,
// as in Store.blocks. It is read by those who have asked for it in the same frame.
//
// Invariant: cells is as long as Store.blocks, and nil where no chunk has the column; if frame is the write frame, or the
// component's columns have one frame, an element is the first of its 64 cells, else it is that of some other frame.
type blockMap struct {
	id    ComponentID
	size  uintptr // of a cell
	ring  uint8
	frame uint64
	cells []unsafe.Pointer // by cache index / 64
}

// Blocks is where the cells of a component's first column are in the write frame: by cache index / 64 the 64 cells from
// there on, nil if there are none. The slice changes as chunks come and go, and the caller does not change it. It is good
// for as long as the write frame is the same.
//
// Panics: if C is not the type of the column's cells.
// Concurrency: the registry's owner and its workers, inside the frame; waits for others that ask. Allocates: at the first
// call for a component.
func Blocks[C any](s *Store, id ComponentID) *[]*[64]C {
	comp, ok := s.schema.ByID(id)
	if !ok || len(comp.Fields) == 0 || comp.Fields[0].Type != reflect.TypeFor[C]() {
		panic("archetype: cells that are not of type " + reflect.TypeFor[C]().String())
	}
	s.mapping.Lock()
	defer s.mapping.Unlock()
	// Sound: an element points to 64 cells of this type, in one column, and a slice of pointers is laid out alike whatever
	// they point to. The owner goes on to write elements as what they are here: pointers.
	return (*[]*[64]C)(unsafe.Pointer(&s.blockMapLocked(comp).cells))
}

// blockMapLocked is the map of a component, as it is in the write frame.
func (s *Store) blockMapLocked(comp *Component) *blockMap {
	i := slices.IndexFunc(s.maps, func(m *blockMap) bool { return m.id == comp.ID })
	if i < 0 {
		i = len(s.maps)
		s.maps = append(s.maps, &blockMap{id: comp.ID, size: comp.Fields[0].Type.Size(), ring: ringOf(comp.Tier, s.temporalFrames)})
	}
	m := s.maps[i]
	if m.frame == 0 || m.ring != ringCold && m.frame != s.frame {
		m.frame = s.frame
		m.cells = slices.Grow(m.cells[:0], len(s.blocks))[:len(s.blocks)]
		clear(m.cells)
		for _, a := range s.list {
			for _, c := range a.chunks {
				m.enter(c)
			}
		}
	}
	return m
}

// enter notes where the cells of a chunk are.
func (m *blockMap) enter(c *Chunk) {
	column := c.archetype.Column(m.id)
	if column < 0 {
		return
	}
	first := int(c.base >> 6)
	for w := range c.holes {
		// Sound: the chunk has 64 slots for each word of holes.
		m.cells[first+w] = unsafe.Add(c.table[column], uintptr(w)*64*m.size)
	}
}

// mapEntered notes a chunk in all maps, whose cache indices may be higher than any before, or whose memory is elsewhere.
func (s *Store) mapEntered(c *Chunk) {
	for _, m := range s.maps {
		if more := len(s.blocks) - len(m.cells); more > 0 {
			m.cells = slices.Grow(m.cells, more)[:len(s.blocks)]
		}
		m.enter(c)
	}
}

// mapLeft takes a chunk out of all maps.
func (s *Store) mapLeft(c *Chunk) {
	first := int(c.base >> 6)
	for _, m := range s.maps {
		clear(m.cells[first : first+len(c.holes)])
	}
}
