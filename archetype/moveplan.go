package archetype

import (
	"reflect"
	"unsafe"
)

const wordBytes = unsafe.Sizeof(uintptr(0))

// unrollOps is how many operations an array may become; a longer one is a loop.
const unrollOps = 16

// moveOp is one step of moving a value that holds pointers. The steps of a plan cover every
// byte of the type, padding too, so that a zeroed cell is zero to the last byte.
//
// The plan is the type's pointer map, found by walking it with reflect. The rejected
// alternative, reflect.Value.Set, costs ten times as much for a small struct and makes the
// caller's value escape.
type moveOp struct {
	kind   opKind
	offset uintptr
	n      uintptr  // pointers: words; bytes: bytes; loop: how often
	stride uintptr  // loop: from one element to the next
	sub    []moveOp // loop: the steps of one element, with offsets in it
}

type opKind uint8

const (
	opBytes    opKind = iota // plain memory
	opPointers               // consecutive pointer words
	opLoop                   // the elements of an array
)

// planOf is the plan of a type that holds pointers.
func planOf(t reflect.Type) []moveOp { return appendOps(nil, t, 0) }

// appendOps adds the steps of a value of type t at offset; the plan so far ends there.
func appendOps(ops []moveOp, t reflect.Type, offset uintptr) []moveOp {
	if !hasPointers(t) {
		return appendRun(ops, opBytes, offset, t.Size())
	}
	switch t.Kind() {
	case reflect.String, reflect.Slice: // data, then length and capacity
		ops = appendRun(ops, opPointers, offset, 1)
		return appendRun(ops, opBytes, offset+wordBytes, t.Size()-wordBytes)
	case reflect.Interface: // type or method table, then data
		return appendRun(ops, opPointers, offset, 2)
	case reflect.Array:
		return appendArray(ops, t, offset)
	case reflect.Struct:
		end := offset
		for i := range t.NumField() {
			f := t.Field(i)
			ops = appendRun(ops, opBytes, end, offset+f.Offset-end) // padding
			ops = appendOps(ops, f.Type, offset+f.Offset)
			end = offset + f.Offset + f.Type.Size()
		}
		return appendRun(ops, opBytes, end, offset+t.Size()-end)
	default: // Pointer, UnsafePointer, Map, Chan, Func
		return appendRun(ops, opPointers, offset, 1)
	}
}

// appendArray unrolls a short array, and makes a loop of a long one.
func appendArray(ops []moveOp, t reflect.Type, offset uintptr) []moveOp {
	elem, n := t.Elem(), uintptr(t.Len())
	sub := planOf(elem)
	switch {
	case len(sub) == 1 && sub[0].kind == opPointers:
		return appendRun(ops, opPointers, offset, n*sub[0].n)
	case n*uintptr(len(sub)) <= unrollOps:
		for i := range n {
			ops = appendOps(ops, elem, offset+i*elem.Size())
		}
		return ops
	}
	return append(ops, moveOp{kind: opLoop, offset: offset, n: n, stride: elem.Size(), sub: sub})
}

// appendRun adds n bytes or pointer words, to the step before them if they continue it.
func appendRun(ops []moveOp, kind opKind, offset, n uintptr) []moveOp {
	if n == 0 {
		return ops
	}
	if last := len(ops) - 1; last >= 0 && ops[last].kind == kind {
		ops[last].n += n // steps are added without gaps, so this one begins where that one ends
		return ops
	}
	return append(ops, moveOp{kind: kind, offset: offset, n: n})
}

// copyPlan moves a value. Sound because dst and src point to values of the plan's type, all
// offsets are inside it, and the words taken for pointers are pointers to the collector too
// (the first word of an interface points to a type or a method table; treating it as a
// pointer is one barrier too many, never one too few).
func copyPlan(plan []moveOp, dst, src unsafe.Pointer) {
	for i := range plan {
		op := &plan[i]
		d, s := unsafe.Add(dst, op.offset), unsafe.Add(src, op.offset)
		switch op.kind {
		case opBytes:
			if op.n == 8 {
				*(*[8]byte)(d) = *(*[8]byte)(s)
			} else {
				copyBytes(d, s, op.n)
			}
		case opPointers:
			for k := uintptr(0); k < op.n; k++ {
				*(*unsafe.Pointer)(unsafe.Add(d, k*wordBytes)) = *(*unsafe.Pointer)(unsafe.Add(s, k*wordBytes))
			}
		case opLoop:
			for k := uintptr(0); k < op.n; k++ {
				copyPlan(op.sub, unsafe.Add(d, k*op.stride), unsafe.Add(s, k*op.stride))
			}
		}
	}
}

// zeroPlan zeroes a value; sound as copyPlan is.
func zeroPlan(plan []moveOp, dst unsafe.Pointer) {
	for i := range plan {
		op := &plan[i]
		d := unsafe.Add(dst, op.offset)
		switch op.kind {
		case opBytes:
			zeroBytes(d, op.n)
		case opPointers:
			for k := uintptr(0); k < op.n; k++ {
				*(*unsafe.Pointer)(unsafe.Add(d, k*wordBytes)) = nil
			}
		case opLoop:
			for k := uintptr(0); k < op.n; k++ {
				zeroPlan(op.sub, unsafe.Add(d, k*op.stride))
			}
		}
	}
}
