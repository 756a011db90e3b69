package snapshot

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

// fieldShape is a scalar of a component, or an array that is described as one: its path and what it is.
type fieldShape struct{ path, kind string }

// componentShape is what a component looks like to those who have to agree about its bytes.
type componentShape struct {
	name   string
	tier   archetype.Tier
	split  bool
	coded  bool         // its type holds pointers, so that a codec writes it
	fields []fieldShape // of one that is not coded; none of a tag

	id archetype.ComponentID // in the registry at hand
}

// classShape is what a class looks like.
type classShape struct {
	name       string
	components []string // names, in the order of the fields
	slots      int
	cosmetic   bool

	index int // in the registry at hand
}

func componentShapeOf(c *archetype.Component) componentShape {
	s := componentShape{name: c.Name, tier: c.Tier, split: c.Split, coded: c.Pointers, id: c.ID}
	if !c.Pointers {
		s.fields = appendFields(nil, c.Type, "")
	}
	return s
}

// appendFields appends the fields of a type, nested structs flattened.
func appendFields(fields []fieldShape, t reflect.Type, path string) []fieldShape {
	switch {
	case t.Size() == 0:
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			fields = appendFields(fields, f.Type, joinPath(path, f.Name))
		}
	default:
		fields = append(fields, fieldShape{path, string(appendType(nil, t))})
	}
	return fields
}

// schema is the classes and components that a state is about, each sorted by name. Their places are the
// numbers that files know them by: it does not matter in which order they were registered.
type schema struct {
	components []componentShape
	classes    []classShape
}

// schemaOf is all classes of a registry that are not cosmetic, those of which there are archetypes, and
// the components of both.
func schemaOf(r *registry.Registry, archetypes []registry.ArchetypeState) *schema {
	s := &schema{}
	used := archetype.Signature{}
	for i, c := range r.ClassInfos() {
		stored := slices.ContainsFunc(archetypes, func(a registry.ArchetypeState) bool { return a.Class == i })
		if c.Cosmetic && !stored {
			continue
		}
		s.classes = append(s.classes, classShapeOf(r, c, i))
		for _, id := range c.Components {
			used = used.With(id)
		}
	}
	for i := range archetypes {
		for id := range archetypes[i].Components.All() {
			used = used.With(id)
		}
	}
	for id := range used.All() {
		c, _ := r.Schema().ByID(id)
		s.components = append(s.components, componentShapeOf(c))
	}
	slices.SortFunc(s.components, func(a, b componentShape) int { return cmp.Compare(a.name, b.name) })
	slices.SortFunc(s.classes, func(a, b classShape) int { return cmp.Compare(a.name, b.name) })
	return s
}

func classShapeOf(r *registry.Registry, c registry.ClassInfo, index int) classShape {
	s := classShape{name: c.Name, slots: c.Slots, cosmetic: c.Cosmetic, index: index}
	for _, id := range c.Components {
		comp, _ := r.Schema().ByID(id)
		s.components = append(s.components, comp.Name)
	}
	return s
}

// SchemaHash is a number for all classes and components of a registry: what they are called, how they are laid out,
// tiers, and the order in which they were registered. Whatever refers to them by number is good only
// where it is the same.
//
// Concurrency: any goroutine. Allocates: yes.
func SchemaHash(r *registry.Registry) uint64 { return schemaHash(r) }

func schemaHash(r *registry.Registry) uint64 {
	e := &encoder{}
	n := r.Schema().Len()
	e.count(n)
	for id := range n {
		c, _ := r.Schema().ByID(archetype.ComponentID(id))
		shape := componentShapeOf(c)
		shape.put(e)
	}
	classes := r.ClassInfos()
	e.count(len(classes))
	for i, c := range classes {
		shape := classShapeOf(r, c, i)
		shape.put(e)
	}
	hash := xxh3.New()
	for _, piece := range e.pieces {
		hash.Write(piece)
	}
	hash.Write(e.tail)
	return hash.Sum64()
}

func (s *schema) put(e *encoder) {
	e.count(len(s.components))
	for i := range s.components {
		s.components[i].put(e)
	}
	e.count(len(s.classes))
	for i := range s.classes {
		s.classes[i].put(e)
	}
}

func (c *componentShape) put(e *encoder) {
	e.string(c.name)
	e.u8(uint8(c.tier))
	e.flag(c.split)
	e.flag(c.coded)
	e.count(len(c.fields))
	for _, f := range c.fields {
		e.string(f.path)
		e.string(f.kind)
	}
}

func (c *classShape) put(e *encoder) {
	e.string(c.name)
	e.count(len(c.components))
	for _, name := range c.components {
		e.string(name)
	}
	e.u32(uint32(c.slots))
	e.flag(c.cosmetic)
}

// flag appends a truth.
func (e *encoder) flag(b bool) {
	if b {
		e.u8(1)
	} else {
		e.u8(0)
	}
}

// flag reads a truth.
func (d *decoder) flag() bool {
	b := d.u8()
	if b > 1 {
		d.fail("a truth of %d", b)
	}
	return b == 1
}

// getSchema reads a schema, and checks that it is in order.
func getSchema(d *decoder) *schema {
	s := &schema{}
	for i := range d.count(archetype.MaxComponents, 15) {
		c := componentShape{name: d.string(), tier: archetype.Tier(d.u8()), split: d.flag(), coded: d.flag()}
		for range d.count(1<<24, 8) {
			c.fields = append(c.fields, fieldShape{d.string(), d.string()})
		}
		if i > 0 && c.name <= s.components[i-1].name {
			d.fail("component %q follows %q", c.name, s.components[i-1].name)
		}
		if d.err != nil {
			return nil
		}
		s.components = append(s.components, c)
	}
	for i := range d.count(1<<24, 13) {
		c := classShape{name: d.string()}
		for range d.count(archetype.MaxComponents, 4) {
			c.components = append(c.components, d.string())
		}
		c.slots, c.cosmetic = int(d.u32()), d.flag()
		if i > 0 && c.name <= s.classes[i-1].name {
			d.fail("class %q follows %q", c.name, s.classes[i-1].name)
		}
		if d.err != nil {
			return nil
		}
		s.classes = append(s.classes, c)
	}
	return s
}

// match finds the classes and components in a registry, or says which of them is missing or another one. What the
// registry has beside them does not matter.
func (s *schema) match(r *registry.Registry) error {
	for i := range s.components {
		c := &s.components[i]
		comp, ok := r.Schema().ByName(c.name)
		if !ok {
			return mismatch("component %s is not registered here", c.name)
		}
		here := componentShapeOf(comp)
		if err := c.same(&here); err != nil {
			return err
		}
		c.id = comp.ID
	}
	classes := r.ClassInfos()
	for i := range s.classes {
		c := &s.classes[i]
		c.index = slices.IndexFunc(classes, func(o registry.ClassInfo) bool { return o.Name == c.name })
		if c.index < 0 {
			return mismatch("class %s is not registered here", c.name)
		}
		here := classShapeOf(r, classes[c.index], c.index)
		if err := c.same(&here); err != nil {
			return err
		}
	}
	return nil
}

func mismatch(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSchema, fmt.Sprintf(format, args...))
}

// same compares what was saved with what is here.
func (c *componentShape) same(here *componentShape) error {
	switch {
	case c.tier != here.tier:
		return mismatch("component %s was saved as %s, and is %s", c.name, c.tier, here.tier)
	case c.split != here.split:
		return mismatch("component %s was saved as one that is split: %t, and here that is %t", c.name, c.split, here.split)
	case c.coded != here.coded:
		return mismatch("component %s was saved as one that holds pointers: %t, and here that is %t", c.name, c.coded, here.coded)
	}
	for i, f := range c.fields {
		if i >= len(here.fields) {
			return mismatch("component %s was saved with a field %s, and has none", c.name, f)
		}
		if f != here.fields[i] {
			return mismatch("component %s: field %d was saved as %s, and is %s", c.name, i, f, here.fields[i])
		}
	}
	if n := len(c.fields); n < len(here.fields) {
		return mismatch("component %s has a field %s, and was saved without", c.name, here.fields[n])
	}
	return nil
}

// String is the field as it is declared.
func (f fieldShape) String() string {
	if f.path == "" {
		return f.kind
	}
	return f.path + " " + f.kind
}

// same compares what was saved with what is here.
func (c *classShape) same(here *classShape) error {
	switch {
	case !slices.Equal(c.components, here.components):
		return mismatch("class %s was saved with components %s, and has %s", c.name, strings.Join(c.components, " "), strings.Join(here.components, " "))
	case c.slots != here.slots:
		return mismatch("class %s was saved with %d slots a chunk (0: the default), and has %d", c.name, c.slots, here.slots)
	case c.cosmetic != here.cosmetic:
		return mismatch("class %s was saved as a cosmetic one: %t, and here that is %t", c.name, c.cosmetic, here.cosmetic)
	}
	return nil
}
