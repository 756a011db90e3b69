package views

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// Field is a cursor over one field of one component: it reads and writes that field of the entity
// it is bound to, whether the component is split or not, and goes on to the next entity that has
// the component.
//
// Concurrency: one goroutine at a time.
type Field[V any] struct {
	lease  registry.Lease   // on the cell
	cell   *V               // good while the lease holds
	chunk  *archetype.Chunk // that the cell is in
	slot   uint32
	column int // in the chunk's field table
	h      handles.Local

	reg    *registry.Registry
	what   fieldOf
	keep   func(h handles.Local, ch *archetype.Chunk, slot uint32) // notes the component for undo
	add    func(cell *V, delta V)                                  // nil if V is not a number
	former spot                                                    // where Advance goes on
}

// fieldOf is where a field is in its component.
//
// Ownership: immutable once made.
type fieldOf struct {
	id      archetype.ComponentID
	part    int     // which of the component's columns
	offset  uintptr // of the field in a cell of the column
	size    uintptr // of a cell
	missing error   // what an entity without the component is answered
}

// NewField makes a cursor over a field of component C, bound to h. The field is named by its path:
// "X", or "Pos.X" for a field of a struct that C holds; embedded structs go by their type's name.
// The empty path is the component itself. V is the field's exact type. The zero handle makes a
// cursor that is not bound: Advance binds it to the first entity.
//
// Errors: registry.ErrNotRegistered for C; registry.ErrSplit for a path that a split component
// has several columns for; an error that names both types when V is another than the field's, or
// what is wrong with the path: no such field, one that is not exported, one without size;
// registry.ErrInvalidHandle and registry.ErrStale as for NewEntity.
//
// Concurrency: any goroutine; never waits. Allocates: yes, once a cursor.
func NewField[C, V any](r *registry.Registry, h handles.Local, path string) (*Field[V], error) {
	t := reflect.TypeFor[C]()
	if r == nil {
		return nil, fmt.Errorf("views: field %q of %v: no registry", path, t)
	}
	comp, ok := r.Schema().ByType(t)
	if !ok {
		return nil, fmt.Errorf("views: field %q: %w", path, notRegistered(t))
	}
	what, err := findField(comp, path, reflect.TypeFor[V]())
	if err != nil {
		return nil, fmt.Errorf("views: field %q of %s: %w", path, comp.Name, err)
	}
	f := &Field[V]{reg: r, what: what, add: adder[V]()}
	f.keep = func(h handles.Local, ch *archetype.Chunk, slot uint32) { registry.Keep[C](r, comp, h, ch, slot) }
	if err := f.Bind(h); err != nil {
		return nil, err
	}
	return f, nil
}

// Bind binds the cursor to another entity, or with the zero handle to none. After an error it is
// bound as before.
//
// Errors: registry.ErrInvalidHandle for a handle that was never issued; registry.ErrStale for a
// dead one. A reserved one is fine.
//
// Concurrency: the cursor's goroutine; never waits. Allocates: no, but for an error.
func (f *Field[V]) Bind(h handles.Local) error {
	if h != 0 {
		if err := nameable(f.reg, h); err != nil {
			return fmt.Errorf("views: bind: %w", err)
		}
	}
	f.h, f.former = h, spot{}
	f.clear()
	return nil
}

// Entity is the entity that the cursor is bound to, alive or not; zero if it is bound to none.
//
// Concurrency: the cursor's goroutine; never waits. Allocates: no.
func (f *Field[V]) Entity() handles.Local { return f.h }

// Get gives the field's value. The column does not count as changed.
//
// Errors: registry.ErrStale once the entity is destroyed, for ever; registry.ErrNotSpawned for a
// reserved handle; registry.ErrInvalidHandle while the cursor is bound to none;
// registry.ErrNoComponent, with its name, when the entity lacks it; registry.ErrExpired;
// registry.ErrReadOnly on a snapshot; ErrForeign for a token of another registry.
//
// Concurrency: whoever holds a and the cursor. Allocates: no, but for ErrForeign.
func (f *Field[V]) Get(a registry.Access) (V, error) {
	if f.lease.Holds(a) {
		return *f.cell, nil
	}
	return f.getSlow(a)
}

func (f *Field[V]) getSlow(a registry.Access) (v V, err error) {
	if err := f.follow(a); err != nil {
		return v, err
	}
	return *f.cell, nil
}

// Set gives the field a value. In a window it is undone if the callback fails, and what was written
// since to other fields of the component with it.
//
// Errors: as Get.
//
// Concurrency: whoever holds a and the cursor; two workers must not write one field. Allocates:
// no, but for the undo log's growth and ErrForeign.
func (f *Field[V]) Set(a registry.Access, v V) error {
	if err := f.open(a); err != nil {
		return err
	}
	*f.cell = v
	return nil
}

// Add adds delta to a field that is a number: of an integer, floating-point or complex type, named
// or not. Integers wrap around. It is undone as Set is.
//
// Errors: as Get; another error if V is no number.
//
// Concurrency: as Set. Allocates: as Set.
func (f *Field[V]) Add(a registry.Access, delta V) error {
	if f.add == nil {
		return fmt.Errorf("views: %v is no number, so nothing can be added to it", reflect.TypeFor[V]())
	}
	if err := f.open(a); err != nil {
		return err
	}
	f.add(f.cell, delta)
	return nil
}

// open makes the cell ready to be written.
func (f *Field[V]) open(a registry.Access) error {
	if !f.lease.Holds(a) {
		if err := f.follow(a); err != nil {
			return err
		}
	}
	f.keep(f.h, f.chunk, f.slot)
	f.chunk.Mark(f.column)
	return nil
}

// follow finds the cell anew and takes the lease on it.
func (f *Field[V]) follow(a registry.Access) error {
	ch, slot, err := takeLease(&f.lease, f.reg, a, f.h)
	if err != nil {
		f.clear()
		return err
	}
	if !f.former.known() {
		f.former = spotOf(ch, slot) // should the entity be dead when Advance is asked
	}
	if ch.Archetype().Column(f.what.id) < 0 {
		f.clear()
		return f.what.missing
	}
	f.point(ch, slot)
	return nil
}

// point sets the cursor on a slot of an archetype with the component. The lease on the slot was
// taken.
//
// The conversion is sound: the column was laid out, or allocated, for values of the column's type,
// and findField has seen that the field at the offset in it is a V.
func (f *Field[V]) point(ch *archetype.Chunk, slot uint32) {
	f.chunk, f.slot = ch, slot
	f.column = ch.Archetype().Column(f.what.id) + f.what.part
	f.cell = (*V)(unsafe.Add(ch.Cell(f.column, slot, f.what.size), f.what.offset))
}

func (f *Field[V]) clear() {
	f.lease, f.cell, f.chunk = registry.Lease{}, nil, nil
}

// findField finds the field of a component at a path.
func findField(comp *archetype.Component, path string, v reflect.Type) (fieldOf, error) {
	field, offset, err := walk(comp.Type, path)
	if err != nil {
		return fieldOf{}, err
	}
	if field.Size() == 0 {
		return fieldOf{}, fmt.Errorf("%v has no size, so nobody keeps it", field)
	}
	if field != v {
		return fieldOf{}, fmt.Errorf("is a %v, not a %v", field, v)
	}
	missing := fmt.Errorf("views: component %s: %w", comp.Name, registry.ErrNoComponent)
	if !comp.Split {
		return fieldOf{comp.ID, 0, offset, comp.Size, missing}, nil
	}
	for i := range comp.Fields {
		if comp.Fields[i].Name == path {
			return fieldOf{comp.ID, i, 0, comp.Fields[i].Size, missing}, nil
		}
	}
	below := path
	if below != "" {
		below += "."
	}
	return fieldOf{}, fmt.Errorf("%w: name one of %s", registry.ErrSplit, leafNames(comp, below))
}

// walk follows a path of field names into a type. Promoted fields are not found by their own name:
// the columns of split components have no such names either.
func walk(t reflect.Type, path string) (reflect.Type, uintptr, error) {
	offset := uintptr(0)
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		if t.Kind() != reflect.Struct {
			return nil, 0, fmt.Errorf("%v has no field %q: it is no struct", t, name)
		}
		f, ok := t.FieldByName(name)
		switch {
		case !ok || len(f.Index) != 1:
			return nil, 0, fmt.Errorf("%v has no field %q", t, name)
		case !f.IsExported():
			return nil, 0, fmt.Errorf("field %q of %v is not exported", name, t)
		}
		t, offset = f.Type, offset+f.Offset
	}
	return t, offset, nil
}
