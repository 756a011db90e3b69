package views

import (
	"fmt"
	"reflect"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// Construct is a view of an entity that it has spawned and owns: Close destroys it. It is what an
// object with an entity behind it embeds.
//
// Concurrency: as Entity, but Close is for any goroutine.
type Construct[T any] struct {
	entity Entity[T]
}

// NewConstruct spawns an entity of class c with the values of e and makes a view of it. T is a
// struct of pointers as for NewEntity; what it names must be among the components of E, unless it
// is optional. When there is an error, nothing was spawned. When the callback fails later, the
// entity is gone as any other that it spawned, and Get answers registry.ErrStale.
//
// Errors: as Class.Spawn; as NewEntity for T; registry.ErrNoComponent for a component that E lacks.
//
// Concurrency: window holder. Allocates: yes, once a view.
func NewConstruct[T, E any](w *registry.Window, c *registry.Class[E], e E) (*Construct[T], error) {
	t := reflect.TypeFor[T]()
	fail := func(err error) (*Construct[T], error) { return nil, fmt.Errorf("views: construct %v: %w", t, err) }
	r, err := registry.Opened(w)
	if err != nil {
		return fail(err)
	}
	if c == nil {
		return fail(fmt.Errorf("no class %v", reflect.TypeFor[E]()))
	}
	columns, err := cursorColumns(r.Schema(), t)
	if err != nil {
		return fail(err)
	}
	if err := classHas[E](r, columns); err != nil {
		return fail(err)
	}
	h, err := c.Spawn(w, e)
	if err != nil {
		return fail(err)
	}
	return &Construct[T]{Entity[T]{cursor: cursor{reg: r, h: h, columns: columns}}}, nil
}

// classHas says which column an entity of class E would lack from the start.
func classHas[E any](r *registry.Registry, columns []cursorColumn) error {
	var sig archetype.Signature
	e := reflect.TypeFor[E]()
	for i := range e.NumField() { // a class is a struct of components
		if comp, ok := r.Schema().ByType(e.Field(i).Type); ok {
			sig = sig.With(comp.ID)
		}
	}
	for _, column := range columns {
		if !column.optional && !sig.Has(column.id) {
			comp, _ := r.Schema().ByID(column.id)
			return fmt.Errorf("field %s: class %v: component %s: %w", column.name, e, comp.Name, registry.ErrNoComponent)
		}
	}
	return nil
}

// Get gives the view with its pointers to where the entity's components are now, as Entity.Get
// does.
//
// Errors: as Entity.Get; registry.ErrStale after Close.
//
// Concurrency: as Entity.Get. Allocates: no, but for ErrForeign.
func (c *Construct[T]) Get(a registry.Access) (*T, error) {
	if c.entity.lease.Holds(a) {
		return &c.entity.view, nil
	}
	return c.entity.follow(a)
}

// Entity is the entity that the construct owns, alive or not.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (c *Construct[T]) Entity() handles.Local { return c.entity.h }

// Close destroys the entity, as Registry.Destroy does: at once for everybody who asks, in a
// deterministic registry at the next window for systems, and not undone by a failed callback; who
// wants that calls Window.Destroy with Entity(). A second call is harmless, also when
// the entity's slot or index has a new owner.
//
// Concurrency: any goroutine, also while another one uses the view; never waits. Allocates: no.
func (c *Construct[T]) Close() {
	// That somebody else has destroyed it is what Close is for, and nothing else can be wrong with
	// the handle. The view is its goroutine's: it finds out by the entity's word.
	_ = c.entity.reg.Destroy(c.entity.h)
}
