package archetype

import (
	"reflect"
	"unsafe"
)

// Copier moves and zeroes the cells of one type. It exists because columns are untyped
// memory, and because a copy through reflect or a func value would make the caller's value
// escape to the heap: every call in here is direct.
//
// A pointer-free cell is bytes, and moves as bytes. A cell with pointers moves by a plan that
// stores each pointer word as a pointer, so that the garbage collector's write barrier sees it.
//
// Copiers are values; they do not change.
type Copier struct {
	size uintptr
	kind copyKind
	plan []moveOp // of kindPlan
}

// copyKind selects how a cell is moved. Kinds up to kind64 are static moves of that many bytes.
type copyKind uint8

const (
	kind16 copyKind = iota // first: tested alone on the inlined path
	kind0
	kind1
	kind2
	kind4
	kind8
	kind12
	kind20
	kind24
	kind28
	kind32
	kind36
	kind40
	kind48
	kind64
	kindBytes   // any other number of bytes
	kindPointer // one pointer word
	kindString
	kindPlan // anything else with pointers
)

// kindOfSize is the kind of a pointer-free cell.
func kindOfSize(size uintptr) copyKind {
	switch size {
	case 0:
		return kind0
	case 1:
		return kind1
	case 2:
		return kind2
	case 4:
		return kind4
	case 8:
		return kind8
	case 12:
		return kind12
	case 16:
		return kind16
	case 20:
		return kind20
	case 24:
		return kind24
	case 28:
		return kind28
	case 32:
		return kind32
	case 36:
		return kind36
	case 40:
		return kind40
	case 48:
		return kind48
	case 64:
		return kind64
	}
	return kindBytes
}

// NewCopier is the copier of a type.
//
// Concurrency: any goroutine; never waits. Allocates: for types with pointers.
func NewCopier(t reflect.Type) Copier {
	c := Copier{size: t.Size(), kind: kindOfSize(t.Size())}
	if !hasPointers(t) {
		return c
	}
	switch t.Kind() {
	case reflect.String:
		c.kind = kindString
	case reflect.Pointer, reflect.UnsafePointer, reflect.Map, reflect.Chan, reflect.Func:
		c.kind = kindPointer
	default:
		c.kind, c.plan = kindPlan, planOf(t)
	}
	return c
}

// Size is how many bytes a cell has.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (c *Copier) Size() uintptr { return c.size }

// pointers says whether the garbage collector must see the cell's stores.
func (c *Copier) pointers() bool { return c.kind >= kindPointer }

// Copy moves a cell from src to dst. Both point to values of the copier's type, and are equal
// or do not overlap.
//
// Concurrency: who may write dst and read src; never waits. Allocates: no.
func (c *Copier) Copy(dst, src unsafe.Pointer) {
	if c.kind == kind16 {
		// Sound as all the moves of this file are: dst and src have c.size bytes each, arrays
		// of bytes need no alignment, and no pointer of the cell is among them.
		*(*[16]byte)(dst) = *(*[16]byte)(src)
		return
	}
	c.copy(dst, src)
}

// Zero makes the cell the zero value of its type.
//
// Concurrency: who may write dst; never waits. Allocates: no.
func (c *Copier) Zero(dst unsafe.Pointer) {
	if c.kind == kind16 { // as in Copy
		*(*[16]byte)(dst) = [16]byte{}
		return
	}
	c.zero(dst)
}

// copy and zero take every kind but kind16.
func (c *Copier) copy(dst, src unsafe.Pointer) {
	switch c.kind {
	case kind0:
	case kind1:
		*(*[1]byte)(dst) = *(*[1]byte)(src)
	case kind2:
		*(*[2]byte)(dst) = *(*[2]byte)(src)
	case kind4:
		*(*[4]byte)(dst) = *(*[4]byte)(src)
	case kind8:
		*(*[8]byte)(dst) = *(*[8]byte)(src)
	case kind12:
		*(*[12]byte)(dst) = *(*[12]byte)(src)
	case kind20:
		*(*[20]byte)(dst) = *(*[20]byte)(src)
	case kind24:
		*(*[24]byte)(dst) = *(*[24]byte)(src)
	case kind28:
		*(*[28]byte)(dst) = *(*[28]byte)(src)
	case kind32:
		*(*[32]byte)(dst) = *(*[32]byte)(src)
	case kind36:
		*(*[36]byte)(dst) = *(*[36]byte)(src)
	case kind40:
		*(*[40]byte)(dst) = *(*[40]byte)(src)
	case kind48:
		*(*[48]byte)(dst) = *(*[48]byte)(src)
	case kind64:
		*(*[64]byte)(dst) = *(*[64]byte)(src)
	case kindPointer:
		*(*unsafe.Pointer)(dst) = *(*unsafe.Pointer)(src)
	case kindString:
		*(*string)(dst) = *(*string)(src)
	case kindPlan:
		copyPlan(c.plan, dst, src)
	default:
		copyBytes(dst, src, c.size)
	}
}

func (c *Copier) zero(dst unsafe.Pointer) {
	switch c.kind {
	case kind0:
	case kind1:
		*(*[1]byte)(dst) = [1]byte{}
	case kind2:
		*(*[2]byte)(dst) = [2]byte{}
	case kind4:
		*(*[4]byte)(dst) = [4]byte{}
	case kind8:
		*(*[8]byte)(dst) = [8]byte{}
	case kind12:
		*(*[12]byte)(dst) = [12]byte{}
	case kind20:
		*(*[20]byte)(dst) = [20]byte{}
	case kind24:
		*(*[24]byte)(dst) = [24]byte{}
	case kind28:
		*(*[28]byte)(dst) = [28]byte{}
	case kind32:
		*(*[32]byte)(dst) = [32]byte{}
	case kind36:
		*(*[36]byte)(dst) = [36]byte{}
	case kind40:
		*(*[40]byte)(dst) = [40]byte{}
	case kind48:
		*(*[48]byte)(dst) = [48]byte{}
	case kind64:
		*(*[64]byte)(dst) = [64]byte{}
	case kindPointer:
		*(*unsafe.Pointer)(dst) = nil
	case kindString:
		*(*string)(dst) = ""
	case kindPlan:
		zeroPlan(c.plan, dst)
	default:
		zeroBytes(dst, c.size)
	}
}

// copyBytes and zeroBytes are for memory without pointers: they have no write barrier.
func copyBytes(dst, src unsafe.Pointer, n uintptr) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}

func zeroBytes(dst unsafe.Pointer, n uintptr) { clear(unsafe.Slice((*byte)(dst), n)) }
