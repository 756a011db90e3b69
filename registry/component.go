package registry

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
)

// ComponentOption changes how RegisterComponent registers a component.
type ComponentOption interface{ component(*archetype.Options) }

// ClassOption changes how RegisterClass registers a class.
type ClassOption interface{ class(*classOptions) }

// Option works for components and for classes.
type Option interface {
	ComponentOption
	ClassOption
}

type componentOption func(*archetype.Options)

func (f componentOption) component(o *archetype.Options) { f(o) }

type classOption func(*classOptions)

func (f classOption) class(o *classOptions) { f(o) }

type named string

func (n named) component(o *archetype.Options) { o.Name = string(n) }
func (n named) class(o *classOptions)          { o.name = string(n) }

type classOptions struct {
	name     string
	slots    int
	slotsSet bool
	cosmetic bool
}

// InTier puts a component into a tier; without it a component is Cold.
//
// Concurrency: any goroutine. Allocates: yes.
func InTier(t archetype.Tier) ComponentOption {
	return componentOption(func(o *archetype.Options) { o.Tier = t })
}

// Split stores a component as one column for each of its leaf fields, nested structs
// flattened. A split component has no single address: Get refuses it.
//
// Concurrency: any goroutine. Allocates: yes.
func Split() ComponentOption {
	return componentOption(func(o *archetype.Options) { o.Split = true })
}

// SlotsPerChunk sets how many entities a chunk of the class holds: 64 to 4096, a multiple
// of 64. Without it a chunk has 1024 slots, and the first of an archetype fewer, unless a
// batch needs more at once.
//
// Concurrency: any goroutine. Allocates: yes.
func SlotsPerChunk(n int) ClassOption {
	return classOption(func(o *classOptions) { o.slots, o.slotsSet = n, true })
}

// Cosmetic keeps a class out of hashes, saved state and rollback, and lets it be
// defragmented in a deterministic registry.
//
// Concurrency: any goroutine. Allocates: yes.
func Cosmetic() ClassOption {
	return classOption(func(o *classOptions) { o.cosmetic = true })
}

// Named names a component or a class; without it that is its Go type. Saved state is
// matched by these names.
//
// Concurrency: any goroutine. Allocates: yes.
func Named(name string) Option { return named(name) }

// RegisterComponent makes C a component of the registry: a struct or any other type but an
// interface. A type of size zero is a tag. A registry takes 256 components.
//
// Errors: ErrAlreadyRegistered, also when a class brought it in as Cold, which the error names;
// ErrPointerInTemporal; an interface, a name in use, a 257th component: an error that
// names the type. Whatever the error, nothing has changed.
// Concurrency: any goroutine, any time. Allocates: yes.
func RegisterComponent[C any](r *Registry, opts ...ComponentOption) (archetype.ComponentID, error) {
	return RegisterComponentType(r, reflect.TypeFor[C](), opts...)
}

// Schema is the registry's table of components.
//
// Concurrency: any goroutine; its lookups never wait. Allocates: no.
func (r *Registry) Schema() *archetype.Schema { return r.schema }

// componentOf finds C, or says that it is not registered. One map lookup: a hot loop uses
// Cells.
func componentOf[C any](r *Registry) (*archetype.Component, error) {
	c, ok := r.schema.ByType(reflect.TypeFor[C]())
	if !ok {
		return nil, fmt.Errorf("component %v: %w", reflect.TypeFor[C](), ErrNotRegistered)
	}
	return c, nil
}

// lastComponent is the component that Add or Remove was called for last. Owner only.
type lastComponent struct {
	typ  unsafe.Pointer // what tells its type from others
	comp *archetype.Component
}

// component is componentOf for the owner, who mostly asks for the same one again: looking that up was an eighth of a move.
func component[C any](r *Registry) (*archetype.Component, error) {
	t := reflect.TypeFor[C]()
	typ := (*[2]unsafe.Pointer)(unsafe.Pointer(&t))[1] // sound as typeWord of package archetype
	if r.asked.typ == typ {
		return r.asked.comp, nil
	}
	comp, err := componentOf[C](r)
	if err == nil {
		r.asked = lastComponent{typ, comp}
	}
	return comp, err
}
