package archetype

import (
	"math/bits"
	"reflect"
	"unsafe"
)

// typeTable finds components by Go type: an open-addressed table of a power of two of entries, at most half of them in
// use. Whatever names a component by its type looks here first, and a map with interfaces for keys took a third of the
// time of an Add. It is not changed once it is built.
type typeTable struct {
	entries []typeEntry
	shift   uint8 // leaves as many bits of a hash as there are places
}

type typeEntry struct {
	typ       unsafe.Pointer
	component *Component // nil: nobody is here
}

func newTypeTable(list []*Component) typeTable {
	logSize := bits.Len(uint(2 * len(list)))
	t := typeTable{entries: make([]typeEntry, 1<<logSize), shift: uint8(64 - logSize)}
	for _, c := range list {
		typ := typeWord(c.Type)
		i := t.place(typ)
		for t.entries[i].component != nil {
			i = (i + 1) & (len(t.entries) - 1)
		}
		t.entries[i] = typeEntry{typ, c}
	}
	return t
}

func (t *typeTable) find(typ unsafe.Pointer) *Component {
	if len(t.entries) == 0 {
		return nil
	}
	for i := t.place(typ); ; i = (i + 1) & (len(t.entries) - 1) {
		if e := &t.entries[i&(len(t.entries)-1)]; e.typ == typ || e.component == nil {
			return e.component
		}
	}
}

// place is where a type is looked for first: Fibonacci hashing (Knuth, The Art of Computer Programming, vol. 3, 6.4).
func (t *typeTable) place(typ unsafe.Pointer) int {
	return int(uint64(uintptr(typ)) * 0x9E3779B97F4A7C15 >> t.shift)
}

// typeWord is what tells types apart. Sound: package reflect alone implements reflect.Type, by a pointer, and types are
// the same exactly if those are. An interface with methods is a pointer to its method table and that pointer.
func typeWord(t reflect.Type) unsafe.Pointer { return (*[2]unsafe.Pointer)(unsafe.Pointer(&t))[1] }
