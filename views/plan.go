package views

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// plan is what NewQuery found out about a view struct and its filters. It is independent of
// the archetypes that exist.
//
// Ownership: written by newPlan, read by any goroutine afterwards.
// Invariant: no two columns share a key, and need and avoid have no component in common.
type plan struct {
	columns []column
	need    archetype.Signature // components of columns and of With and Changed filters
	avoid   archetype.Signature // components of Without filters
	changed []change
	shown   []*archetype.Component // those that columns show cells of
	class   int                    // the only one, -1: any
}

// column is one field of the view struct.
type column struct {
	name     string             // the field's name, for messages
	key      archetype.FieldKey // what it shows
	offset   uintptr            // of the slice header in the view struct
	size     uintptr            // of an element
	read     bool               // declared as not written: showing it does not mark it as changed
	optional bool               // nil where the archetype doesn't have it
}

// change is a Changed filter.
type change struct {
	component archetype.ComponentID
	since     uint64
}

// entityKey is the column of handles that every archetype has. indexKey stands for the column of
// cache indices, which no archetype stores.
var (
	entityKey = archetype.FieldKey{Component: archetype.EntityID}
	indexKey  = archetype.FieldKey{Component: archetype.EntityID, Field: 1}
)

// newPlan checks the view struct t and the filters against a registry.
func newPlan(r *registry.Registry, t reflect.Type, filters []Filter) (*plan, error) {
	schema := r.Schema()
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is not a struct of slices", t)
	}
	p := &plan{class: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		c, err := newColumn(schema, f)
		if err == nil {
			err = p.add(t, c)
		}
		if comp, ok := schema.ByID(c.key.Component); ok && err == nil {
			p.shown = append(p.shown, comp)
		}
		if err != nil {
			return nil, fmt.Errorf("field %s %v: %w", f.Name, f.Type, err)
		}
	}
	for _, f := range filters {
		if err := p.addFilter(r, f); err != nil {
			return nil, fmt.Errorf("filter %v: %w", f, err)
		}
	}
	return p, nil
}

// add appends a column unless another one shows the same cells: two slices of one column
// would be a way to write behind a `read` tag.
func (p *plan) add(t reflect.Type, c column) error {
	for _, other := range p.columns {
		if other.key == c.key {
			return fmt.Errorf("shows the same column as field %s", other.name)
		}
	}
	p.columns = append(p.columns, c)
	if c.isCells() && !c.optional {
		p.need = p.need.With(c.key.Component)
	}
	return nil
}

// isCells says that the column shows cells of a component.
func (c *column) isCells() bool { return c.key != entityKey && c.key != indexKey }

// addFilter refuses a contradiction, because a query that can never match is a mistake that
// would otherwise show as a loop that silently does nothing.
func (p *plan) addFilter(r *registry.Registry, f Filter) error {
	switch f.kind {
	case filterNone:
		return errors.New("the zero Filter selects nothing; use With or Without")
	case filterClass:
		return p.addClass(r, f)
	case filterPublished:
		return p.published(r.Schema())
	}
	c, ok := r.Schema().ByType(f.typ)
	if !ok {
		return notRegistered(f.typ)
	}
	if f.kind == filterChanged {
		p.changed = append(p.changed, change{c.ID, f.since})
	}
	own, other := &p.need, &p.avoid
	if f.kind == filterWithout {
		own, other = other, own
		for i := range p.columns {
			if p.columns[i].key.Component == c.ID && p.columns[i].optional {
				return fmt.Errorf("field %s would always be nil", p.columns[i].name)
			}
		}
	}
	if other.Has(c.ID) {
		return fmt.Errorf("nothing can match: %s is both required and excluded", c.Name)
	}
	*own = own.With(c.ID)
	return nil
}

func (p *plan) addClass(r *registry.Registry, f Filter) error {
	class, ok := f.class(r)
	switch {
	case !ok:
		return fmt.Errorf("class %v: %w", f.typ, registry.ErrNotRegistered)
	case p.class >= 0 && p.class != class:
		return errors.New("nothing can match: an entity has one class")
	}
	p.class = class
	return nil
}

// published says which component keeps snapshots from showing the columns. The filter may stand
// anywhere among the others: they add no columns.
func (p *plan) published(schema *archetype.Schema) error {
	for i := range p.columns {
		c := &p.columns[i]
		if !c.isCells() {
			continue
		}
		if comp, ok := schema.ByID(c.key.Component); ok && comp.Tier == archetype.Cold {
			return fmt.Errorf("field %s: component %s is Cold; register it with InTier(Volatile): %w",
				c.name, comp.Name, registry.ErrNotPublished)
		}
	}
	return nil
}

// newColumn resolves one field of a view struct.
func newColumn(schema *archetype.Schema, f reflect.StructField) (column, error) {
	if !f.IsExported() {
		return column{}, errors.New("is not exported, so no loop outside its package could read it")
	}
	if f.Type.Kind() != reflect.Slice {
		return column{}, errors.New("is not a slice; a field of a view is a column, []C for a component C")
	}
	tag, err := parseTag(f.Tag.Get("ecs"))
	if err != nil {
		return column{}, err
	}
	elem := f.Type.Elem()
	c := column{name: f.Name, offset: f.Offset, size: elem.Size(), read: tag.read, optional: tag.optional}
	switch {
	case tag.index && elem != reflect.TypeFor[uint32]():
		return c, errors.New("cache indices are a []uint32")
	case tag.index && (tag.path != "" || tag.optional):
		return c, errors.New("every entity has a cache index: the tag is `ecs:\"index\"` and no more")
	case tag.index:
		c.key, c.read = indexKey, true
	case tag.path != "":
		c.key, err = splitKey(schema, tag.path, elem)
	case elem == reflect.TypeFor[handles.Local]() && tag.optional:
		return c, errors.New("every entity has a handle, it cannot be optional")
	case elem == reflect.TypeFor[handles.Local]():
		c.key, c.read = entityKey, true
	default:
		c.key, err = componentKey(schema, elem)
	}
	return c, err
}

// tagOptions is a parsed `ecs` tag: at most one path, then options, separated by commas.
type tagOptions struct {
	path                  string // "Component.Field" of a split component
	read, optional, index bool
}

func parseTag(tag string) (tagOptions, error) {
	var o tagOptions
	if tag == "" {
		return o, nil
	}
	for word := range strings.SplitSeq(tag, ",") {
		switch word = strings.TrimSpace(word); {
		case word == "read":
			o.read = true
		case word == "optional":
			o.optional = true
		case word == "index":
			o.index = true
		case strings.Contains(word, ".") && o.path == "":
			o.path = word
		default:
			return o, fmt.Errorf("tag ecs:%q: don't know %q; a tag is \"index\", or \"Component.Field\", \"read\" and \"optional\", separated by commas", tag, word)
		}
	}
	return o, nil
}

// componentKey is the column of a whole component.
func componentKey(schema *archetype.Schema, t reflect.Type) (archetype.FieldKey, error) {
	c, ok := schema.ByType(t)
	switch {
	case !ok:
		return archetype.FieldKey{}, notRegistered(t)
	case len(c.Fields) == 0:
		return archetype.FieldKey{}, fmt.Errorf("%s is a tag: it has no column; ask for it with the filter With[%v]", c.Name, t)
	case c.Split:
		return archetype.FieldKey{}, fmt.Errorf(
			"%w: name one field of %s, as in `ecs:\"%s.%s\"`", registry.ErrSplit, c.Name, shortName(c.Name), c.Fields[0].Name)
	}
	return c.Fields[0].Key, nil
}

// splitKey is the column of one field of a split component. The path is the component's
// name, with or without its package, and the field's.
func splitKey(schema *archetype.Schema, path string, elem reflect.Type) (archetype.FieldKey, error) {
	var found *archetype.Field
	whole := ""
	for i := range schema.Len() {
		c, ok := schema.ByID(archetype.ComponentID(i))
		if !ok {
			continue
		}
		rest, ok := strings.CutPrefix(path, c.Name+".")
		if !ok {
			rest, ok = strings.CutPrefix(path, shortName(c.Name)+".")
		}
		if !ok {
			continue
		}
		if !c.Split {
			whole = c.Name // remembered for the message: the name is right, the way to ask is not
			continue
		}
		for j := range c.Fields {
			if c.Fields[j].Name != rest {
				continue
			}
			if found != nil {
				return archetype.FieldKey{}, fmt.Errorf("tag ecs:%q names fields of two components; write the package too", path)
			}
			found = &c.Fields[j]
		}
	}
	switch {
	case found == nil && whole != "":
		return archetype.FieldKey{}, fmt.Errorf("tag ecs:%q: %s is not split: ask for the whole component", path, whole)
	case found == nil:
		return archetype.FieldKey{}, fmt.Errorf("tag ecs:%q names no field of a split component: %w", path, registry.ErrNotRegistered)
	case found.Type != elem:
		return archetype.FieldKey{}, fmt.Errorf("tag ecs:%q: that field is a []%v", path, found.Type)
	case elem.Size() == 0:
		return archetype.FieldKey{}, fmt.Errorf("tag ecs:%q: that field has no size, so no column", path)
	}
	return found.Key, nil
}

// shortName is a component's name without its package.
func shortName(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[i+1:]
	}
	return name
}

func notRegistered(t reflect.Type) error {
	switch {
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface:
		return fmt.Errorf("%v is no component, components are held by value: %w", t, registry.ErrNotRegistered)
	case t.Size() == 0:
		return fmt.Errorf("%v: %w (as a tag it has no column; ask for it with a filter)", t, registry.ErrNotRegistered)
	case t == reflect.TypeFor[uint32]():
		return fmt.Errorf("%v: %w (a column of cache indices has the tag `ecs:\"index\"`)", t, registry.ErrNotRegistered)
	}
	return fmt.Errorf("%v: %w", t, registry.ErrNotRegistered)
}
