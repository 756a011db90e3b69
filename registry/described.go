package registry

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
)

// Components and classes that are described while the program runs, by data that it has read, instead of by its own types.

// Described is the value of a class that RegisterDescribed made: its components are known at run time only, and
// an entity starts with the zero values of all.
type Described struct{}

// RegisterComponentType is RegisterComponent for a type that is known at run time only, such as reflect.StructOf makes.
//
// Errors: as RegisterComponent.
// Concurrency: any goroutine, any time. Allocates: yes.
func RegisterComponentType(r *Registry, typ reflect.Type, opts ...ComponentOption) (archetype.ComponentID, error) {
	var o archetype.Options
	for _, opt := range opts {
		opt.component(&o)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := r.schema.Register(typ, o)
	if err == nil {
		return c.ID, nil
	}
	if class, ok := r.broughtIn(typ); ok && errors.Is(err, ErrAlreadyRegistered) {
		return 0, fmt.Errorf("%w: class %s brought it in, and what a class brings in is Cold: register the component before the class", err, class)
	}
	return 0, err
}

// broughtIn names the class whose registration made typ a component. Holder of mu.
func (r *Registry) broughtIn(typ reflect.Type) (class string, ok bool) {
	if typ == nil {
		return "", false
	}
	comp, ok := r.schema.ByType(typ)
	if !ok {
		return "", false
	}
	i := slices.IndexFunc(r.classes, func(c classEntry) bool { return slices.Contains(c.brought, comp.ID) })
	if i < 0 {
		return "", false
	}
	return r.classes[i].name, true
}

// RegisterDescribed is RegisterClass for a class of a name and of components that are registered. There may be several
// with the same components.
//
// Errors: ErrAlreadyRegistered for the name of another class; ErrNotRegistered for a component; one without a name, with
// a component twice, or a bad chunk size. Whatever the error, nothing has changed.
// Concurrency: any goroutine, any time. Allocates: yes.
func RegisterDescribed(r *Registry, name string, components []archetype.ComponentID, opts ...ClassOption) (*Class[Described], error) {
	o := classOptions{name: name}
	for _, opt := range opts {
		opt.class(&o)
	}
	if o.name == "" {
		return nil, fmt.Errorf("registry: a described class needs a name")
	}
	if o.slotsSet {
		if err := archetype.ValidateSlots(o.slots); err != nil {
			return nil, fmt.Errorf("registry: class %s: %w", o.name, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(r.classes, func(c classEntry) bool { return c.name == o.name }) {
		return nil, fmt.Errorf("registry: class %s: %w", o.name, ErrAlreadyRegistered)
	}
	comps := make([]*archetype.Component, len(components))
	for i, id := range components {
		comp, ok := r.schema.ByID(id)
		if !ok {
			return nil, fmt.Errorf("registry: class %s: component %d: %w", o.name, id, ErrNotRegistered)
		}
		if slices.Contains(components[:i], id) {
			return nil, fmt.Errorf("registry: class %s: component %s twice", o.name, comp.Name)
		}
		comps[i] = comp
	}
	c := &Class[Described]{r: r, index: len(r.classes), name: o.name, slots: o.slots, cosmetic: o.cosmetic}
	r.addClass(c, reflect.TypeFor[Described](), comps, r.schema.Len())
	return c, nil
}
