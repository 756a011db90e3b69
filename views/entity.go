package views

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// Entity is a cursor over one entity: a struct of pointers to its components that Get fills in,
// and fills in anew when the entity has moved or the token is another one. User code repairs
// nothing: it asks Get for the struct whenever something may have moved the entity or ended the
// token, and otherwise uses the struct it has.
//
// A view subscribes to nothing and is told nothing. It looks at the entity's word at each Get, so
// views that are not used cost nothing, and one that is dropped without Close leaks nothing.
//
// Concurrency: one goroutine at a time. Two goroutines that want the same entity have a view each,
// and must not write the same component.
type Entity[T any] struct {
	lease registry.Lease // on the cells that the view's pointers name
	view  T              // its pointers are good while the lease holds, and nil after an error
	cursor
}

// cursor is what an Entity knows but for what Get looks at first, which lies together in a line of
// the cache.
type cursor struct {
	reg     *registry.Registry
	h       handles.Local
	closed  bool
	columns []cursorColumn // immutable
}

// NewEntity makes a view of the entity h. T is a struct of pointers:
//
//   - *C shows component C
//   - *F with the tag `ecs:"Component.Field"` shows one field of a component that was registered
//     with registry.Split
//
// `ecs:"read"` on a pointer declares that nobody writes through it: the other columns count as
// changed whenever Get fills them in. `ecs:"optional"` makes a pointer nil while the entity lacks
// the component, which else is an error of Get. A reserved handle is fine: Get answers
// registry.ErrNotSpawned until it has its entity.
//
// Errors: registry.ErrInvalidHandle for a handle that was never issued, the zero handle too;
// registry.ErrStale for a dead one; registry.ErrNotRegistered for a component that the registry
// doesn't know; registry.ErrSplit for a pointer to a whole split component; otherwise an error
// that names the field at fault: something else than an exported pointer, a tag component (it
// has no cell: use registry.Has), a cell shown twice.
//
// Concurrency: any goroutine; never waits. Allocates: yes, once a view.
func NewEntity[T any](r *registry.Registry, h handles.Local) (*Entity[T], error) {
	t := reflect.TypeFor[T]()
	if r == nil {
		return nil, fmt.Errorf("views: entity %v: no registry", t)
	}
	columns, err := cursorColumns(r.Schema(), t)
	if err == nil {
		err = nameable(r, h)
	}
	if err != nil {
		return nil, fmt.Errorf("views: entity %v: %w", t, err)
	}
	return &Entity[T]{cursor: cursor{reg: r, h: h, columns: columns}}, nil
}

// nameable says what is wrong with a handle that is to be bound: a reserved one will do.
func nameable(r *registry.Registry, h handles.Local) error {
	if _, err := r.Resolve(h); err != nil && err != registry.ErrNotSpawned {
		return fmt.Errorf("%v: %w", h, err)
	}
	return nil
}

// Get gives the view with its pointers to where the entity's components are now. They are valid
// until the window or frame ends or the entity moves, because a component is added or removed or
// storage is compacted; call Get again after anything that may do that, it costs little more than
// a look at the entity's word. What is written through them is not undone by a failed callback.
//
// The struct is the same at each call. After an error its pointers are nil, so that one kept too
// long reaches nobody.
//
// Errors: registry.ErrStale once the entity is destroyed, for ever; registry.ErrNotSpawned for a
// reserved handle; registry.ErrNoComponent, with its name, when the entity lacks one that is not
// optional; registry.ErrExpired for an expired token, and after Close; registry.ErrReadOnly on a
// snapshot, which registry.Get and queries read; ErrForeign for a token of another registry.
//
// Concurrency: whoever holds a and the view; two workers must not touch one entity. Allocates: no,
// but for ErrForeign.
func (e *Entity[T]) Get(a registry.Access) (*T, error) {
	if e.lease.Holds(a) {
		return &e.view, nil
	}
	return e.follow(a)
}

// follow fills the view in anew.
func (e *Entity[T]) follow(a registry.Access) (*T, error) {
	if err := e.point(a, &e.lease, unsafe.Pointer(&e.view)); err != nil {
		e.clear()
		return nil, err
	}
	return &e.view, nil
}

// clear leaves the view without pointers and without a lease on any.
func (e *Entity[T]) clear() {
	var empty T
	e.lease, e.view = registry.Lease{}, empty
}

// Entity is the entity that the view shows, alive or not.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (e *Entity[T]) Entity() handles.Local { return e.h }

// Close ends the view: its pointers are nil, and Get answers registry.ErrExpired. The entity goes
// on. A second call is harmless.
//
// Concurrency: the view's goroutine; never waits. Allocates: no.
func (e *Entity[T]) Close() {
	e.closed = true
	e.clear()
}

// point points the view struct at t to the entity's cells and takes the lease on them. After an
// error either may be left half done.
//
// The fields of the struct are known by offset only, because T is the caller's; what makes that
// sound is the same as for a query's show:
//   - offset is the reflect offset of a field of pointer type in the struct that t points to.
//   - the pointer is stored as a pointer, so the collector sees it, with its write barrier.
//   - the pointer's element type is the type that the column was laid out with (cursorColumns
//     compares them), and slot is one of the chunk's.
func (c *cursor) point(a registry.Access, lease *registry.Lease, t unsafe.Pointer) error {
	if c.closed {
		return registry.ErrExpired
	}
	ch, slot, err := takeLease(lease, c.reg, a, c.h)
	if err != nil {
		return err
	}
	arch := ch.Archetype()
	for i := range c.columns {
		column := &c.columns[i]
		first := arch.Column(column.id)
		if first < 0 && !column.optional {
			return column.missing // before anything is marked
		}
	}
	for i := range c.columns {
		column := &c.columns[i]
		first := arch.Column(column.id)
		pointer := (*unsafe.Pointer)(unsafe.Add(t, column.offset))
		if first < 0 {
			*pointer = nil
			continue
		}
		if !column.read {
			ch.Mark(first + column.part)
			if registry.Recording(a) {
				registry.NoteCell(a, c.h, column.id, column.part)
			}
		}
		*pointer = ch.Cell(first+column.part, slot, column.size)
	}
	return nil
}
