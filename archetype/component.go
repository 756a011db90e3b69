package archetype

import (
	"fmt"
	"reflect"
)

// FieldKey names a column: a component, and which of its fields. Keys order columns.
type FieldKey struct {
	Component ComponentID
	Field     uint16
}

// String is "component.field", in numbers.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func (k FieldKey) String() string { return fmt.Sprintf("%d.%d", k.Component, k.Field) }

// order is the key as a number that sorts as the key does.
func (k FieldKey) order() uint32 { return uint32(k.Component)<<16 | uint32(k.Field) }

// Component is a component type as its schema knows it. It does not change after registration.
type Component struct {
	ID       ComponentID
	Name     string
	Type     reflect.Type
	Tier     Tier
	Split    bool    // one column per leaf field instead of one for the whole component
	Size     uintptr // of a value of the type
	Pointers bool    // the type holds pointers
	Fields   []Field // one column each; none for a tag
}

// Tag says whether the component has no data: it is in signatures, but has no column.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (c *Component) Tag() bool { return len(c.Fields) == 0 }

// Field is one column of a component: the whole of it, or one leaf field of a split one.
type Field struct {
	Key      FieldKey
	Name     string // "" for a whole component; "X", "Inner.X" for a leaf
	Type     reflect.Type
	Offset   uintptr // in the component
	Size     uintptr
	Align    uintptr
	Pointers bool   // its column is typed memory of its own
	Cell     Copier // moves one cell
}

// fieldsOf lists the columns of a component. Nested structs are flattened, arrays are leaves.
// Unexported and blank fields are columns too: they are part of the value, and a round trip
// through the columns must not lose them.
func fieldsOf(id ComponentID, t reflect.Type, split bool) []Field {
	if t.Size() == 0 {
		return nil
	}
	var fields []Field
	if split {
		fields = appendLeaves(nil, t, 0, "")
	} else {
		fields = []Field{newField("", t, 0)}
	}
	for i := range fields {
		fields[i].Key = FieldKey{Component: id, Field: uint16(i)}
	}
	return fields
}

// appendLeaves adds the leaf fields of struct type t, which lies at offset in the component.
func appendLeaves(fields []Field, t reflect.Type, offset uintptr, prefix string) []Field {
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case f.Type.Size() == 0: // no value, no column
		case f.Type.Kind() == reflect.Struct:
			fields = appendLeaves(fields, f.Type, offset+f.Offset, prefix+f.Name+".")
		default:
			fields = append(fields, newField(prefix+f.Name, f.Type, offset+f.Offset))
		}
	}
	return fields
}

func newField(name string, t reflect.Type, offset uintptr) Field {
	return Field{
		Name:     name,
		Type:     t,
		Offset:   offset,
		Size:     t.Size(),
		Align:    uintptr(t.Align()),
		Pointers: hasPointers(t),
		Cell:     NewCopier(t),
	}
}

// countLeaves is how many columns a split type would have, without building them.
func countLeaves(t reflect.Type) int {
	if t.Size() == 0 {
		return 0
	}
	if t.Kind() != reflect.Struct {
		return 1
	}
	n := 0
	for i := range t.NumField() {
		n += countLeaves(t.Field(i).Type)
	}
	return n
}

// hasPointers says whether the garbage collector must look into values of the type.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Bool, reflect.Uintptr,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	default: // String, Slice, Map, Chan, Func, Interface, Pointer, UnsafePointer
		return true
	}
}
