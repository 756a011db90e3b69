package registry

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// What packages above read without knowing its type when they are compiled.

// ArchetypeOf is the archetype that h is in.
//
// Errors: ErrStale, ErrInvalidHandle, ErrNotSpawned; ErrExpired; on a snapshot ErrNotPublished, as Get.
// Concurrency: as the token; of what it gives, only what any goroutine may ask can be asked. Allocates: no.
func ArchetypeOf(a Access, h handles.Local) (*archetype.Archetype, error) {
	if s := published(a); s != nil {
		ref, _, err := s.find(h)
		if err != nil {
			return nil, err
		}
		return ref.Archetype(), nil
	}
	r, _, err := opened(a)
	if err != nil {
		return nil, err
	}
	ch, _, err := r.locate(h)
	if err != nil {
		return nil, err
	}
	return ch.Archetype(), nil
}

// ValueOf is a copy of a component of h, as Peek gives it. What pointers in it refer to is the entity's.
//
// Errors: as Peek.
// Concurrency: as the token. Allocates: the copy.
func ValueOf(a Access, h handles.Local, comp *archetype.Component) (reflect.Value, error) {
	v := reflect.New(comp.Type)
	if s := published(a); s != nil {
		ref, slot, err := s.find(h)
		if err != nil {
			return reflect.Value{}, err
		}
		col, err := s.column(comp, ref)
		if err != nil {
			return reflect.Value{}, err
		}
		copyOut(comp, v.UnsafePointer(), func(i int, size uintptr) unsafe.Pointer { return ref.Cell(col+i, slot, size, s.storage) })
		return v.Elem(), nil
	}
	r, _, err := opened(a)
	if err != nil {
		return reflect.Value{}, err
	}
	ch, slot, err := r.locate(h)
	if err != nil {
		return reflect.Value{}, err
	}
	if !ch.Archetype().Has(comp.ID) {
		return reflect.Value{}, ErrNoComponent
	}
	col := ch.Archetype().Column(comp.ID)
	copyOut(comp, v.UnsafePointer(), func(i int, size uintptr) unsafe.Pointer { return ch.Cell(col+i, slot, size) })
	return v.Elem(), nil
}

// copyOut copies a component out, as load does. Sound if v is a value of its type and cell gives the cells of its columns.
func copyOut(comp *archetype.Component, v unsafe.Pointer, cell func(i int, size uintptr) unsafe.Pointer) {
	for i := range comp.Fields {
		f := &comp.Fields[i]
		f.Cell.Copy(unsafe.Add(v, f.Offset), cell(i, f.Size))
	}
}

// Column is the column of a field in a chunk of the frame: a slice with an element for each slot. It is the
// published frame itself: to be read only, and good until Release.
//
// Errors: ErrNotPublished; ErrNoComponent if the chunk has no such column; ErrExpired.
// Concurrency: any goroutine that holds the snapshot. Allocates: no.
func (s *Snapshot) Column(ref *archetype.Ref, comp *archetype.Component, field int) (reflect.Value, error) {
	if s == nil || !s.valid() {
		return reflect.Value{}, ErrExpired
	}
	col, err := s.column(comp, ref)
	switch {
	case err != nil:
		return reflect.Value{}, err
	case field < 0 || field >= len(comp.Fields):
		return reflect.Value{}, fmt.Errorf("component %s has no field %d: %w", comp.Name, field, ErrNoComponent)
	}
	f := &comp.Fields[field]
	// Sound: a frame of the column has a cell of the field's type for each slot.
	return reflect.SliceAt(f.Type, ref.Cell(col+field, 0, f.Size, s.storage), ref.Slots()), nil
}
