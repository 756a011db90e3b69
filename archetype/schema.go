package archetype

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync/atomic"
)

// maxCellBytes bounds the size of a component, so that the size of a chunk of them (at most
// 4096 slots, times the frames of the ring) is far from the end of a machine word.
const maxCellBytes = 16 << 20

// Options says how a component is stored.
type Options struct {
	Tier  Tier
	Split bool   // one column per leaf field; the type must be a struct
	Name  string // "" means the type's own name
}

// Schema is the list of the component types of one registry. It only grows.
//
// Invariant: component i of the list has ID i; types and names lead to the same components.
type Schema struct {
	now atomic.Pointer[schemaState] // replaced whole by a registration, loaded by any goroutine
}

// schemaState is one state of a schema; it is never written after it was stored.
type schemaState struct {
	list   []*Component
	byType map[reflect.Type]*Component
	byName map[string]*Component
	types  typeTable // of byType
}

// NewSchema returns an empty schema.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func NewSchema() *Schema {
	s := &Schema{}
	s.now.Store(&schemaState{})
	return s
}

// Register adds a component type.
//
// Errors: ErrAlreadyRegistered for a type or a name that is taken, ErrPointerInTemporal,
// ErrTooManyComponents, and others for what cannot be a component: no type, an interface, a
// type of more than 16 MiB, Split on what is not a struct. Nothing is registered then.
// Concurrency: one registration at a time, under the caller's lock; lookups go on beside it.
// Allocates: yes.
func (s *Schema) Register(t reflect.Type, o Options) (*Component, error) {
	next := s.copy()
	c, err := next.add(t, o)
	if err != nil {
		return nil, err
	}
	next.types = newTypeTable(next.list)
	s.now.Store(next)
	return c, nil
}

// RegisterAll finds the components of a new class: types that are registered as they are,
// the others registered as Cold. If any of them is refused, none is registered.
//
// Errors: as Register, and ErrAlreadyRegistered for a type that stands in the list twice.
// Concurrency: one registration at a time, under the caller's lock; lookups go on beside it.
// Allocates: yes.
func (s *Schema) RegisterAll(types []reflect.Type) ([]*Component, error) {
	next := s.copy()
	found := make([]*Component, 0, len(types))
	for i, t := range types {
		if slices.Contains(types[:i], t) {
			return nil, fmt.Errorf("%w: %s is there twice", ErrAlreadyRegistered, t)
		}
		c, ok := next.byType[t]
		if !ok {
			var err error
			if c, err = next.add(t, Options{}); err != nil {
				return nil, err
			}
		}
		found = append(found, c)
	}
	next.types = newTypeTable(next.list)
	s.now.Store(next)
	return found, nil
}

// ByType finds the component of a Go type.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *Schema) ByType(t reflect.Type) (*Component, bool) {
	c := s.now.Load().types.find(typeWord(t))
	return c, c != nil
}

// ByName finds the component of a name.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *Schema) ByName(name string) (*Component, bool) {
	c, ok := s.now.Load().byName[name]
	return c, ok
}

// ByID finds the component of an id. ActiveID and EntityID have none.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *Schema) ByID(id ComponentID) (*Component, bool) {
	if list := s.now.Load().list; int(id) < len(list) {
		return list[id], true
	}
	return nil, false
}

// Len is the number of components.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *Schema) Len() int { return len(s.now.Load().list) }

// copy is a state to add to. Copying everything makes a registration cost as much as there
// are components, at most 256, and a lookup nothing at all.
func (s *Schema) copy() *schemaState {
	old := s.now.Load()
	next := &schemaState{
		list:   slices.Clone(old.list),
		byType: make(map[reflect.Type]*Component, len(old.list)+1),
		byName: make(map[string]*Component, len(old.list)+1),
	}
	maps.Copy(next.byType, old.byType)
	maps.Copy(next.byName, old.byName)
	return next
}

// add checks a type and appends its component.
func (st *schemaState) add(t reflect.Type, o Options) (*Component, error) {
	if err := checkType(t, o); err != nil {
		return nil, err
	}
	if o.Name == "" {
		o.Name = t.String()
	}
	if old, ok := st.byType[t]; ok {
		return nil, fmt.Errorf("%w: type %s, as %q in tier %s", ErrAlreadyRegistered, t, old.Name, old.Tier)
	}
	if old, ok := st.byName[o.Name]; ok {
		return nil, fmt.Errorf("%w: name %q of type %s from package %q belongs to a type from package %q; give one of them another name",
			ErrAlreadyRegistered, o.Name, t, t.PkgPath(), old.Type.PkgPath())
	}
	if len(st.list) == MaxComponents {
		return nil, fmt.Errorf("%w: no room for %s", ErrTooManyComponents, t)
	}
	id := ComponentID(len(st.list))
	c := &Component{
		ID:       id,
		Name:     o.Name,
		Type:     t,
		Tier:     o.Tier,
		Split:    o.Split,
		Size:     t.Size(),
		Pointers: hasPointers(t),
		Fields:   fieldsOf(id, t, o.Split),
	}
	st.list = append(st.list, c)
	st.byType[t] = c
	st.byName[o.Name] = c
	return c, nil
}

// checkType refuses what cannot be a component with these options, whatever else there is.
func checkType(t reflect.Type, o Options) error {
	switch {
	case t == nil:
		return fmt.Errorf("archetype: a component needs a type")
	case t.Kind() == reflect.Interface:
		return fmt.Errorf("archetype: %s is an interface: a component is one concrete type", t)
	case o.Tier > Temporal:
		return fmt.Errorf("archetype: %s: there is no tier %d", t, o.Tier)
	case o.Tier == Temporal && hasPointers(t):
		return fmt.Errorf("%w: %s", ErrPointerInTemporal, t)
	case o.Split && t.Kind() != reflect.Struct:
		return fmt.Errorf("archetype: %s is not a struct: it has no fields to split", t)
	case t.Size() > maxCellBytes:
		return fmt.Errorf("archetype: %s has %d bytes, a component may have %d: keep a pointer to what is larger", t, t.Size(), maxCellBytes)
	case o.Split && countLeaves(t) > math.MaxUint16+1:
		return fmt.Errorf("archetype: %s has %d leaf fields, a split component may have %d", t, countLeaves(t), math.MaxUint16+1)
	}
	return nil
}
