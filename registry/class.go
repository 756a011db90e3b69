package registry

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
)

// Class is an entity type: a Go struct whose fields are the components an entity of the
// class starts with. RegisterClass makes it; it lives as long as its registry.
type Class[E any] struct {
	r        *Registry
	index    int
	name     string
	slots    int
	cosmetic bool
	sig      archetype.Signature
	layout   *archetype.FieldLayout
	pairs    []uintptr // what to copy from an E: the offsets of what goes into Columns16,
	parts    []part    // and the other parts

	// Owner only.
	home       *archetype.Archetype // where new entities go; nil before the first one
	later      []E                  // values of SpawnLater, until the next window; guarded by wishMu
	laterBase  uint32               // position of the first of them
	remembered []any                // one of a type; see Remembered
}

// part is one column that an entity of the class starts with.
type part struct {
	src  uintptr // offset in E
	col  int     // slot in the field table of the class's own archetype
	size uintptr
	cell archetype.Copier
	pair bool // 16 bytes without pointers: one of the chunk's Columns16
}

// classEntry is what the registry knows of a class without knowing its type.
type classEntry struct {
	name     string
	typ      reflect.Type
	slots    int
	cosmetic bool
	sig      archetype.Signature
	comps    []archetype.ComponentID    // in the order of the fields
	brought  []archetype.ComponentID    // those of them that were not registered before
	forget   func(*archetype.Archetype) // the archetype is gone again
}

// RegisterClass makes E a class. Every field of E must be exported and of a component
// type, no type twice; component types seen for the first time are registered as Cold. An
// E without fields is a class of bare entities.
//
// Errors: ErrAlreadyRegistered for a type or a name registered before; an error that names
// the type for an E that is no struct, an unexported, doubled or interface-typed
// component, a bad chunk size, or too many components. Whatever the error, nothing has
// changed.
// Concurrency: any goroutine, any time. Allocates: yes.
func RegisterClass[E any](r *Registry, opts ...ClassOption) (*Class[E], error) {
	var o classOptions
	for _, opt := range opts {
		opt.class(&o)
	}
	typ := reflect.TypeFor[E]()
	if o.name == "" {
		o.name = typ.String()
	}
	types, err := componentTypes(typ)
	if err != nil {
		return nil, err
	}
	if o.slotsSet {
		if err := archetype.ValidateSlots(o.slots); err != nil {
			return nil, fmt.Errorf("registry: class %v: %w", typ, err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.classes {
		if c.typ == typ {
			return nil, fmt.Errorf("class %v: %w", typ, ErrAlreadyRegistered)
		}
		if c.name == o.name {
			return nil, fmt.Errorf("class %v: name %q: %w", typ, o.name, ErrAlreadyRegistered)
		}
	}
	known := r.schema.Len()
	comps, err := r.schema.RegisterAll(types)
	if err != nil {
		return nil, fmt.Errorf("registry: class %v: %w", typ, err)
	}
	c := &Class[E]{r: r, index: len(r.classes), name: o.name, slots: o.slots, cosmetic: o.cosmetic}
	r.addClass(c, typ, comps, known)
	var parts []part
	for i, comp := range comps {
		for _, f := range comp.Fields {
			d, _ := c.layout.Lookup(f.Key)
			parts = append(parts, part{src: typ.Field(i).Offset + f.Offset, col: d.Slot, size: f.Size, cell: f.Cell, pair: f.Size == 16 && !f.Pointers})
		}
	}
	slices.SortFunc(parts, func(a, b part) int { return a.col - b.col })
	for _, p := range parts {
		if p.pair {
			c.pairs = append(c.pairs, p.src)
		} else {
			c.parts = append(c.parts, p)
		}
	}
	return c, nil
}

// addClass lists a class with some components, of which those with ids from known on came with it. Holder of mu.
func (r *Registry) addClass(c interface {
	compose(comps []*archetype.Component) classEntry
}, typ reflect.Type, comps []*archetype.Component, known int) {
	entry := c.compose(comps)
	entry.typ = typ
	for _, comp := range comps {
		entry.comps = append(entry.comps, comp.ID)
		if int(comp.ID) >= known {
			entry.brought = append(entry.brought, comp.ID)
		}
	}
	r.classes = append(r.classes, entry)
}

// compose works out signature and layout.
func (c *Class[E]) compose(comps []*archetype.Component) classEntry {
	for _, comp := range comps {
		c.sig = c.sig.With(comp.ID)
	}
	slots := c.slots
	if slots == 0 {
		slots = archetype.DefaultSlots
	}
	c.layout = archetype.NewLayout(sorted(comps), slots, c.r.cfg.TemporalFrames)
	return classEntry{
		name: c.name, slots: c.slots, cosmetic: c.cosmetic, sig: c.sig,
		forget: func(a *archetype.Archetype) {
			if c.home == a {
				c.home = nil
			}
		},
	}
}

// componentTypes lists the types of a class's fields, or says what is wrong with them.
func componentTypes(typ reflect.Type) ([]reflect.Type, error) {
	if typ.Kind() != reflect.Struct {
		return nil, fmt.Errorf("registry: class %v is not a struct", typ)
	}
	seen := map[reflect.Type]string{}
	var types []reflect.Type
	for i := range typ.NumField() {
		f := typ.Field(i)
		switch {
		case !f.IsExported():
			return nil, fmt.Errorf("registry: class %v: field %s is not exported", typ, f.Name)
		case f.Type.Kind() == reflect.Interface:
			return nil, fmt.Errorf("registry: class %v: field %s is of interface type %v", typ, f.Name, f.Type)
		case seen[f.Type] != "":
			return nil, fmt.Errorf("registry: class %v: fields %s and %s are both of type %v", typ, seen[f.Type], f.Name, f.Type)
		}
		seen[f.Type] = f.Name
		types = append(types, f.Type)
	}
	return types, nil
}

func sorted(comps []*archetype.Component) []*archetype.Component {
	out := make([]*archetype.Component, len(comps))
	copy(out, comps)
	for i := range out {
		for k := i; k > 0 && out[k].ID < out[k-1].ID; k-- {
			out[k], out[k-1] = out[k-1], out[k]
		}
	}
	return out
}

// Layout is how an entity of the class is laid out in a chunk of regular size, for
// adapters (physics, GPU, replication) that walk the columns themselves.
//
// Concurrency: any goroutine. Allocates: no.
func (c *Class[E]) Layout() *archetype.FieldLayout { return c.layout }

// Name is the class's name: its type, unless Named said otherwise.
//
// Concurrency: any goroutine. Allocates: no.
func (c *Class[E]) Name() string { return c.name }

// ClassIndex is the number of the class E in the order of registration.
//
// Concurrency: any goroutine. Allocates: no.
func ClassIndex[E any](r *Registry) (int, bool) {
	typ := reflect.TypeFor[E]()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, c := range r.classes {
		if c.typ == typ {
			return i, true
		}
	}
	return 0, false
}

// class gives what is known of a class by its number.
func (r *Registry) class(index int) classEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.classes[index]
}

// archetypeOf finds the archetype of a class and signature or makes it, which a failed
// callback takes back. Owner only.
func (r *Registry) archetypeOf(class int, sig archetype.Signature) *archetype.Archetype {
	c := r.class(class)
	before := r.store.Version()
	a := r.store.Archetype(class, sig, c.name, c.slots)
	if r.store.Version() != before {
		r.log(undoOp{kind: undoArchetype})
	}
	return a
}

// enter checks the token and that it opens the class's own registry.
func (c *Class[E]) enter(w *Window) (*Registry, error) {
	if w != nil && w.r == c.r && !w.closed.Load() && c.home != nil {
		return c.r, nil
	}
	return c.enterSlow(w)
}

func (c *Class[E]) enterSlow(w *Window) (*Registry, error) {
	r, err := w.open()
	if err != nil {
		return nil, err
	}
	if r != c.r {
		return nil, c.elsewhere()
	}
	if c.home = r.archetypeOf(c.index, c.sig); r.rec != nil { // it lasts, whether anybody is born there or not
		r.rec.add(op{kind: opHome, class: int32(c.index)})
	}
	return r, nil
}

func (c *Class[E]) elsewhere() error {
	return fmt.Errorf("registry: class %s belongs to another registry", c.name)
}

// write copies the components of e into a slot of the class's own archetype.
//
// The pointer arithmetic is sound because src is the offset of a field of E, so that it
// stays inside *e, because a column has a cell of the field's size for each slot, and
// because nothing keeps the pointers. Words of pairs need no alignment of their own here,
// and hold no pointers.
//
// Pairs go word by word: e was just written in words, and a load of both at once would have
// to wait until those stores have left the store buffer, which doubled the cost of a spawn.
func (c *Class[E]) write(ch *archetype.Chunk, slot uint32, e *E) {
	writePairs(ch.Columns16(), c.pairs, slot, unsafe.Pointer(e))
	if len(c.parts) > 0 {
		c.writeRest(ch, slot, e)
	}
}

// writePairs copies the words at the offsets of base to the columns; see write.
func writePairs(columns []unsafe.Pointer, offsets []uintptr, slot uint32, base unsafe.Pointer) {
	columns = columns[:len(offsets)]
	for i, offset := range offsets {
		from, to := (*[2]uint64)(unsafe.Add(base, offset)), (*[2]uint64)(unsafe.Add(columns[i], uintptr(slot)*16))
		first, second := from[0], from[1]
		to[0], to[1] = first, second
	}
}

func (c *Class[E]) writeRest(ch *archetype.Chunk, slot uint32, e *E) {
	for i := range c.parts {
		p := &c.parts[i]
		p.cell.Copy(ch.Cell(p.col, slot, p.size), unsafe.Add(unsafe.Pointer(e), p.src))
	}
}
