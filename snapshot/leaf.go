package snapshot

import (
	"encoding/binary"
	"math"
	"reflect"
	"strconv"
)

// leaves says which bytes of a value of a type without pointers are data, and which are padding between
// them: those are whatever the program left there, and no part of a state.
//
// The canonical bytes of a value are its scalars in the order of memory, each in little endian, with
// nothing between them. Unexported and blank fields are values: they are copied with the cell. A uintptr
// counts as 8 bytes, and so do int and uint on a 64-bit host. On a 32-bit host those three have 4, so a
// component with one of them is another one there: state that is to travel names its sizes.
type leaves struct {
	dense bool // the bytes of a cell are its canonical bytes: no padding, on a little-endian host
	size  int  // canonical bytes of a cell
	cell  int  // bytes of a cell

	swap  bool // the host has the highest byte first
	parts []leafPart
}

// leafPart is neighbouring bytes of data, or the elements of an array, each of which has the same parts.
type leafPart struct {
	at    int // from where the parts are counted: the cell, or the element of the array around them
	bytes int // without padding; not of an array
	width int // of each scalar in them

	each          []leafPart // of an array's element, nil if this is no array
	times, stride int        // elements, and bytes from one to the next
}

// leavesOf finds the leaves of a type. It walks the type, so whoever has many cells asks once.
func leavesOf(t reflect.Type) leaves { return newLeaves(t, hostSwaps()) }

// hostSwaps says whether this host has the highest byte of a number first.
func hostSwaps() bool { return binary.NativeEndian.Uint16([]byte{0, 1}) == 1 }

func newLeaves(t reflect.Type, swap bool) leaves {
	l := leaves{size: canonicalSize(t), cell: int(t.Size()), swap: swap, parts: appendParts(nil, t, 0, swap)}
	l.dense = l.size == l.cell && !swap
	return l
}

// appendParts appends the parts of a value that lies at an offset.
func appendParts(parts []leafPart, t reflect.Type, at int, swap bool) []leafPart {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			parts = appendParts(parts, f.Type, at+int(f.Offset), swap)
		}
	case reflect.Array:
		if t.Len() == 0 || canonicalSize(t) == 0 {
			return parts
		}
		elem := t.Elem()
		size, each := int(elem.Size()), appendParts(nil, elem, 0, swap)
		if len(each) == 1 && each[0].each == nil && each[0].bytes == size {
			return appendRun(parts, leafPart{at: at, bytes: size * t.Len(), width: each[0].width}, swap)
		}
		parts = append(parts, leafPart{at: at, each: each, times: t.Len(), stride: size})
	default:
		if size := int(t.Size()); size > 0 {
			width := size
			if k := t.Kind(); k == reflect.Complex64 || k == reflect.Complex128 {
				width /= 2
			}
			parts = appendRun(parts, leafPart{at: at, bytes: size, width: width}, swap)
		}
	}
	return parts
}

// appendRun appends bytes, to the part before them if they follow it. Where scalars are turned round those
// of one part have one width.
func appendRun(parts []leafPart, run leafPart, swap bool) []leafPart {
	if n := len(parts); n > 0 {
		if p := &parts[n-1]; p.each == nil && p.at+p.bytes == run.at && (p.width == run.width || !swap) {
			p.bytes += run.bytes
			return parts
		}
	}
	return append(parts, run)
}

// append appends the canonical bytes of a cell to dst.
func (l leaves) append(dst, cell []byte) []byte {
	if l.dense {
		return append(dst, cell[:l.cell]...)
	}
	return appendLeaves(dst, cell, l.parts, l.swap)
}

func appendLeaves(dst, from []byte, parts []leafPart, swap bool) []byte {
	for i := range parts {
		switch p := &parts[i]; {
		case p.each != nil:
			for k := range p.times {
				dst = appendLeaves(dst, from[p.at+k*p.stride:], p.each, swap)
			}
		case swap && p.width > 1:
			for at := p.at; at < p.at+p.bytes; at += p.width {
				for b := p.width - 1; b >= 0; b-- {
					dst = append(dst, from[at+b])
				}
			}
		default:
			dst = append(dst, from[p.at:p.at+p.bytes]...)
		}
	}
	return dst
}

// put makes a cell of its canonical bytes, the inverse of append. Padding becomes zero.
func (l leaves) put(cell, canonical []byte) {
	if l.dense {
		copy(cell[:l.cell], canonical[:l.size])
		return
	}
	clear(cell[:l.cell])
	putLeaves(cell, canonical[:l.size], l.parts, l.swap)
}

// putLeaves gives what is left of the canonical bytes.
func putLeaves(to, from []byte, parts []leafPart, swap bool) []byte {
	for i := range parts {
		p := &parts[i]
		if p.each != nil {
			for k := range p.times {
				from = putLeaves(to[p.at+k*p.stride:], from, p.each, swap)
			}
			continue
		}
		run := to[p.at : p.at+p.bytes]
		copy(run, from)
		from = from[p.bytes:]
		if swap && p.width > 1 {
			for at := 0; at < len(run); at += p.width {
				for lo, hi := at, at+p.width-1; lo < hi; lo, hi = lo+1, hi-1 {
					run[lo], run[hi] = run[hi], run[lo]
				}
			}
		}
	}
	return from
}

// canonicalSize is how many canonical bytes a value of the type has.
func canonicalSize(t reflect.Type) int {
	switch t.Kind() {
	case reflect.Struct:
		n := 0
		for i := range t.NumField() {
			n += canonicalSize(t.Field(i).Type)
		}
		return n
	case reflect.Array:
		return t.Len() * canonicalSize(t.Elem())
	}
	return int(t.Size())
}

// leaf is one scalar of a value.
type leaf struct {
	path string // "", "X", "Inner.X", "[3]", "Slots[3].X", "C.imag"
	kind reflect.Type
	at   int // in the canonical bytes
}

// leafAt finds the scalar that a canonical byte of a value of the type belongs to.
func leafAt(t reflect.Type, at int) leaf {
	switch t.Kind() {
	case reflect.Struct:
		before := 0
		for i := range t.NumField() {
			f := t.Field(i)
			size := canonicalSize(f.Type)
			if at < before+size {
				return leafAt(f.Type, at-before).inside(f.Name, before)
			}
			before += size
		}
	case reflect.Array:
		i := at / canonicalSize(t.Elem())
		before := i * canonicalSize(t.Elem())
		return leafAt(t.Elem(), at-before).inside("["+strconv.Itoa(i)+"]", before)
	case reflect.Complex64, reflect.Complex128:
		half, name := reflect.TypeFor[float32](), "real"
		if t.Kind() == reflect.Complex128 {
			half = reflect.TypeFor[float64]()
		}
		before := 0
		if at >= int(half.Size()) {
			before, name = int(half.Size()), "imag"
		}
		return leaf{path: name, kind: half, at: before}
	}
	return leaf{kind: t}
}

// inside is the leaf as what encloses it calls it.
func (l leaf) inside(name string, before int) leaf {
	l.path = joinPath(name, l.path)
	l.at += before
	return l
}

// joinPath puts a dot between two parts of a path, but before an index.
func joinPath(name, path string) string {
	if name == "" || path == "" || path[0] == '[' {
		return name + path
	}
	return name + "." + path
}

// value makes a scalar of the canonical bytes of the value that it is a part of. Bits that have several
// looks, those of a NaN, stay what they are.
func (l leaf) value(canonical []byte) any {
	size := int(l.kind.Size())
	var word [8]byte
	copy(word[:], canonical[l.at:l.at+size])
	bits := binary.LittleEndian.Uint64(word[:])
	v := reflect.New(l.kind).Elem()
	switch l.kind.Kind() {
	case reflect.Bool:
		v.SetBool(bits != 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		unused := 64 - 8*size
		v.SetInt(int64(bits) << unused >> unused)
	case reflect.Float32: // SetFloat would go by way of float64, which quiets some NaNs
		v.Set(reflect.ValueOf(math.Float32frombits(uint32(bits))).Convert(l.kind))
	case reflect.Float64:
		v.Set(reflect.ValueOf(math.Float64frombits(bits)).Convert(l.kind))
	default:
		v.SetUint(bits)
	}
	return v.Interface()
}

// appendType appends a description of a type: the names, kinds and order of all that its values consist
// of, but no name of a type, so that one that is only renamed stays the same. Types that hold pointers
// are described by their names, for there is no end to them.
func appendType(dst []byte, t reflect.Type) []byte {
	switch t.Kind() {
	case reflect.Struct:
		dst = append(dst, "struct{"...)
		for i := range t.NumField() {
			f := t.Field(i)
			if i > 0 {
				dst = append(dst, "; "...)
			}
			dst = append(dst, f.Name...)
			dst = append(dst, ' ')
			dst = appendType(dst, f.Type)
		}
		return append(dst, '}')
	case reflect.Array:
		dst = append(dst, '[')
		dst = strconv.AppendInt(dst, int64(t.Len()), 10)
		dst = append(dst, ']')
		return appendType(dst, t.Elem())
	case reflect.Int, reflect.Uint, reflect.Uintptr: // their size is the host's
		dst = append(dst, t.Kind().String()...)
		return strconv.AppendInt(append(dst, ':'), int64(t.Size())*8, 10)
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface:
		return append(dst, t.String()...)
	}
	return append(dst, t.Kind().String()...)
}
