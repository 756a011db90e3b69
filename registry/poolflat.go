package registry

import (
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
)

// Cells without pointers that are no pairs are moved word by word, without a look at what they are: each has whole
// words of its own in a row, be it the initial one or one that is kept. Through Copier, one at a time, a
// despawn of three small components cost twice as much.

// flat is a column of such cells.
type flat struct {
	col  int
	size uintptr
	at   int // first word in a row
}

// cell is the cell of a slot. Sound as in poolcells.go.
func (f *flat) cell(ch *archetype.Chunk, slot uint32) unsafe.Pointer {
	return ch.Cell(f.col, slot, f.size)
}

// moveBytes copies a cell without pointers. Sound: both have that many bytes, and arrays of bytes need no alignment.
func moveBytes(to, from unsafe.Pointer, size uintptr) {
	switch size {
	case 4:
		*(*[4]byte)(to) = *(*[4]byte)(from)
	case 8:
		*(*[8]byte)(to) = *(*[8]byte)(from)
	case 12:
		*(*[12]byte)(to) = *(*[12]byte)(from)
	default:
		copy(unsafe.Slice((*byte)(to), size), unsafe.Slice((*byte)(from), size))
	}
}

// sameBytes says whether two cells without pointers are equal, bit by bit; or the words of two with pointers.
func sameBytes(a, b unsafe.Pointer, size uintptr) bool {
	switch size {
	case 4:
		return *(*[4]byte)(a) == *(*[4]byte)(b)
	case 8:
		return *(*[8]byte)(a) == *(*[8]byte)(b)
	}
	return unsafe.String((*byte)(a), size) == unsafe.String((*byte)(b), size)
}

// resetFlat gives a slot its initial cells in these columns.
func (b *Block) resetFlat(ch *archetype.Chunk, slot uint32) {
	for i := range b.flats {
		f := &b.flats[i]
		moveBytes(f.cell(ch, slot), unsafe.Pointer(&b.image[f.at]), f.size)
	}
}

// saveFlat keeps the cells of a slot.
func (b *Block) saveFlat(ch *archetype.Chunk, slot uint32) {
	n := len(b.savedFlat)
	if cap(b.savedFlat)-n < len(b.image) {
		b.savedFlat = append(b.savedFlat, b.image...)
	} else {
		b.savedFlat = b.savedFlat[:n+len(b.image)]
	}
	row := b.savedFlat[n:]
	for i := range b.flats {
		f := &b.flats[i]
		moveBytes(unsafe.Pointer(&row[f.at]), f.cell(ch, slot), f.size)
	}
}

// unsaveFlat gives a slot the cells back that were kept at a position.
func (b *Block) unsaveFlat(ch *archetype.Chunk, slot, position uint32) {
	row := b.savedFlat[int(position-1)*len(b.image):]
	for i := range b.flats {
		f := &b.flats[i]
		moveBytes(f.cell(ch, slot), unsafe.Pointer(&row[f.at]), f.size)
	}
}

// flatUntouched says whether a slot has its initial cells.
func (b *Block) flatUntouched(ch *archetype.Chunk, slot uint32) bool {
	for i := range b.flats {
		f := &b.flats[i]
		if !sameBytes(f.cell(ch, slot), unsafe.Pointer(&b.image[f.at]), f.size) {
			return false
		}
	}
	return true
}
