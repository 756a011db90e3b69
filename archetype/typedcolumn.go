package archetype

import (
	"reflect"
	"unsafe"
)

// typedColumn is memory for all frames of a column with pointers. It is allocated as an array
// of its type, so that the garbage collector finds the pointers; the slab is opaque to it.
//
// Such columns are not pooled: what a released chunk held is garbage as soon as the chunk lets
// go, and the collector is better at it than a pool that would have to clear them.
func typedColumn(f *FieldDescriptor, slots int) unsafe.Pointer {
	n := slots * f.FrameCount
	return reflect.MakeSlice(reflect.SliceOf(f.Type), n, n).UnsafePointer()
}
