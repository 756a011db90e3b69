package views

import (
	"reflect"
	"unsafe"
)

// adder gives the addition of numbers of type V, nil if V is no number. One plain addition: no
// product that could be fused with it, so it has the same bits on every machine.
func adder[V any]() func(*V, V) {
	switch reflect.TypeFor[V]().Kind() {
	case reflect.Int:
		return addAs[V, int]
	case reflect.Int8:
		return addAs[V, int8]
	case reflect.Int16:
		return addAs[V, int16]
	case reflect.Int32:
		return addAs[V, int32]
	case reflect.Int64:
		return addAs[V, int64]
	case reflect.Uint:
		return addAs[V, uint]
	case reflect.Uint8:
		return addAs[V, uint8]
	case reflect.Uint16:
		return addAs[V, uint16]
	case reflect.Uint32:
		return addAs[V, uint32]
	case reflect.Uint64:
		return addAs[V, uint64]
	case reflect.Uintptr:
		return addAs[V, uintptr]
	case reflect.Float32:
		return addAs[V, float32]
	case reflect.Float64:
		return addAs[V, float64]
	case reflect.Complex64:
		return addAs[V, complex64]
	case reflect.Complex128:
		return addAs[V, complex128]
	default:
		return nil
	}
}

type number interface {
	int | int8 | int16 | int32 | int64 | uint | uint8 | uint16 | uint32 | uint64 | uintptr |
		float32 | float64 | complex64 | complex128
}

// addAs adds a V to a V, which is a K or a named type of that kind. Sound: a named type is
// represented as the type that it names.
func addAs[V any, K number](cell *V, delta V) {
	*(*K)(unsafe.Pointer(cell)) += *(*K)(unsafe.Pointer(&delta))
}
