package views

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

// cursorColumn is one field of a struct of pointers.
//
// Ownership: immutable once made.
type cursorColumn struct {
	name     string  // the field's name, for messages
	offset   uintptr // of the pointer in the view struct
	size     uintptr // of a cell
	id       archetype.ComponentID
	part     int   // which of the component's columns: 0 for a whole component
	read     bool  // shown without being marked as changed
	optional bool  // nil when the entity lacks the component
	missing  error // what Get answers otherwise, made once so that asking again allocates nothing
}

// cursorColumns checks the view struct t against a schema.
func cursorColumns(schema *archetype.Schema, t reflect.Type) ([]cursorColumn, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v is not a struct of pointers", t)
	}
	columns := make([]cursorColumn, 0, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		c, err := newCursorColumn(schema, f)
		for _, other := range columns {
			if err == nil && other.id == c.id && other.part == c.part {
				// Two pointers to one cell would be a way to write behind a `read` tag.
				err = fmt.Errorf("shows the same cell as field %s", other.name)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("field %s %v: %w", f.Name, f.Type, err)
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// newCursorColumn resolves one field of a view struct.
func newCursorColumn(schema *archetype.Schema, f reflect.StructField) (cursorColumn, error) {
	if !f.IsExported() {
		return cursorColumn{}, errors.New("is not exported, so nobody outside its package could read it")
	}
	if f.Type.Kind() != reflect.Pointer {
		return cursorColumn{}, errors.New("is not a pointer; a field of an entity's view is *C for a component C")
	}
	c := cursorColumn{name: f.Name, offset: f.Offset}
	path, err := c.parseTag(f.Tag.Get("ecs"))
	if err != nil {
		return cursorColumn{}, err
	}
	var comp *archetype.Component
	if path == "" {
		comp, err = wholeComponent(schema, f.Type.Elem())
	} else {
		comp, c.part, err = splitLeaf(schema, path, f.Type.Elem())
	}
	if err != nil {
		return cursorColumn{}, err
	}
	c.id, c.size = comp.ID, comp.Fields[c.part].Size
	c.missing = fmt.Errorf("views: component %s: %w", comp.Name, registry.ErrNoComponent)
	return c, nil
}

// parseTag takes the options from an `ecs` tag and gives the path in it, if there is one.
func (c *cursorColumn) parseTag(tag string) (path string, err error) {
	if tag == "" {
		return "", nil
	}
	for word := range strings.SplitSeq(tag, ",") {
		switch word = strings.TrimSpace(word); {
		case word == "read":
			c.read = true
		case word == "optional":
			c.optional = true
		case strings.Contains(word, ".") && path == "":
			path = word
		default:
			return "", fmt.Errorf(
				"tag ecs:%q: don't know %q; a tag is \"Component.Field\", \"read\", \"optional\", or some of them", tag, word)
		}
	}
	return path, nil
}

// wholeComponent finds a component that has one address.
func wholeComponent(schema *archetype.Schema, t reflect.Type) (*archetype.Component, error) {
	comp, ok := schema.ByType(t)
	switch {
	case !ok && t.Kind() != reflect.Pointer && t.Size() == 0:
		return nil, fmt.Errorf("%v: %w (as a tag it has no cell; ask with registry.Has)", t, registry.ErrNotRegistered)
	case !ok:
		return nil, notRegistered(t)
	case comp.Tag():
		return nil, fmt.Errorf("%s is a tag: it has no cell; ask with registry.Has[%v]", comp.Name, t)
	case comp.Split:
		return nil, fmt.Errorf("%w: name one field of %s, as in `ecs:\"%s.%s\"`, of %s",
			registry.ErrSplit, comp.Name, shortName(comp.Name), comp.Fields[0].Name, leafNames(comp, ""))
	}
	return comp, nil
}

// splitLeaf finds the column of one field of a split component. The path is the component's
// name, with or without its package, and the field's, as in a query.
func splitLeaf(schema *archetype.Schema, path string, t reflect.Type) (*archetype.Component, int, error) {
	var found, named *archetype.Component // named: the component is right, whatever the rest is
	part := 0
	for i := range schema.Len() {
		comp, ok := schema.ByID(archetype.ComponentID(i))
		if !ok {
			continue
		}
		rest, ok := strings.CutPrefix(path, comp.Name+".")
		if !ok {
			rest, ok = strings.CutPrefix(path, shortName(comp.Name)+".")
		}
		if !ok {
			continue
		}
		named = comp
		for j := range comp.Fields {
			if !comp.Split || comp.Fields[j].Name != rest {
				continue
			}
			if found != nil {
				return nil, 0, fmt.Errorf("tag ecs:%q names fields of two components; write the package too", path)
			}
			found, part = comp, j
		}
	}
	switch {
	case named == nil:
		return nil, 0, fmt.Errorf("tag ecs:%q names no field of a component: %w", path, registry.ErrNotRegistered)
	case found == nil && !named.Split:
		return nil, 0, fmt.Errorf("tag ecs:%q: %s is not split: ask for the whole component", path, named.Name)
	case found == nil:
		return nil, 0, fmt.Errorf("tag ecs:%q: %s has no such field; it has %s", path, named.Name, leafNames(named, ""))
	case found.Fields[part].Type != t:
		return nil, 0, fmt.Errorf("tag ecs:%q: that field is a *%v", path, found.Fields[part].Type)
	}
	return found, part, nil
}

// leafNames lists the columns of a split component below a path, for messages.
func leafNames(comp *archetype.Component, below string) string {
	var names []string
	for i := range comp.Fields {
		if strings.HasPrefix(comp.Fields[i].Name, below) {
			names = append(names, comp.Fields[i].Name)
		}
	}
	return strings.Join(names, ", ")
}
