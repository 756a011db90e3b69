package registry

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// Get gives a pointer to the component C of h, in place. It is valid until the window or
// the frame ends; what is written through it is not undone by a failed callback. The column
// counts as changed, whether the pointer is written to or not. Of a snapshot it is a pointer into the
// published frame, to be read only, and good until Release.
//
// Errors: ErrStale, ErrInvalidHandle, ErrNotSpawned; ErrNoComponent when h lacks C;
// ErrSplit for a split component; ErrNotRegistered; ErrExpired; on a snapshot ErrNotPublished for what
// its frame does not have.
// Concurrency: as the token; two workers must not touch one entity. Allocates: no.
func Get[C any](a Access, h handles.Local) (*C, error) {
	r, comp, err := openFor[C](a)
	if err != nil {
		if s := published(a); s != nil {
			return getPublished[C](s, h)
		}
		return nil, err
	}
	ch, slot, err := r.locate(h)
	if err != nil {
		return nil, err
	}
	if r.rec != nil {
		r.rec.touch(h, comp.ID, -1)
	}
	return pointer[C](comp, ch, slot)
}

// Peek gives a copy of the component C of h. Unlike Get it hands out no pointer, so that
// nothing can have changed.
//
// Errors: as Get, without ErrSplit.
// Concurrency: as the token. Allocates: no.
func Peek[C any](a Access, h handles.Local) (C, error) {
	var v C
	r, comp, err := openFor[C](a)
	if err != nil {
		if s := published(a); s != nil {
			return peekPublished[C](s, h)
		}
		return v, err
	}
	ch, slot, err := r.locate(h)
	if err != nil {
		return v, err
	}
	if !load(comp, ch, slot, &v) {
		return v, ErrNoComponent
	}
	return v, nil
}

// Set gives the component C of h a value. In a window it is undone if the callback fails.
//
// Errors: as Get, without ErrSplit; ErrReadOnly on a snapshot.
// Concurrency: as the token; two workers must not touch one entity. Allocates: no, but
// for the undo log's growth.
func Set[C any](a Access, h handles.Local, v C) error {
	r, comp, err := openFor[C](a)
	if err != nil {
		return err
	}
	ch, slot, err := r.locate(h)
	if err != nil {
		return err
	}
	if !ch.Archetype().Has(comp.ID) {
		return ErrNoComponent
	}
	if r.hist.inert {
		return errInert
	}
	set(r, comp, h, ch, slot, &v)
	return nil
}

// Has says whether h is alive and has the component C.
//
// Panics: ErrExpired.
// Concurrency: as the token. Allocates: no.
func Has[C any](a Access, h handles.Local) bool {
	if s := published(a); s != nil {
		return hasPublished[C](s, h)
	}
	r := mustOpen(a)
	comp, err := componentOf[C](r)
	if err != nil {
		return false
	}
	ch, _, err := r.locate(h)
	return err == nil && ch.Archetype().Has(comp.ID)
}

// openFor checks the token and finds the component.
func openFor[C any](a Access) (*Registry, *archetype.Component, error) {
	r, _, err := opened(a)
	if err != nil {
		return nil, nil, err
	}
	comp, err := componentOf[C](r)
	return r, comp, err
}

// pointer gives the cell of an unsplit component.
//
// The conversion is sound: the column was laid out, or allocated, for values of type C,
// because comp was found by that type.
func pointer[C any](comp *archetype.Component, ch *archetype.Chunk, slot uint32) (*C, error) {
	if !ch.Archetype().Has(comp.ID) {
		return nil, ErrNoComponent
	}
	switch {
	case len(comp.Fields) == 0:
		return new(C), nil // a tag: size zero, so this allocates nothing
	case comp.Split:
		return nil, fmt.Errorf("component %s: %w", comp.Name, ErrSplit)
	}
	col := ch.Archetype().Column(comp.ID)
	ch.Mark(col)
	return (*C)(ch.Cell(col, slot, comp.Size)), nil
}

// load copies a component out, field by field, and says whether it is there. v is comp's
// type; the offsets are those of its fields.
func load[C any](comp *archetype.Component, ch *archetype.Chunk, slot uint32, v *C) bool {
	a := ch.Archetype()
	if !a.Has(comp.ID) {
		return false
	}
	col := a.Column(comp.ID)
	for i := range comp.Fields {
		f := &comp.Fields[i]
		f.Cell.Copy(unsafe.Add(unsafe.Pointer(v), f.Offset), ch.Cell(col+i, slot, f.Size))
	}
	return true
}

// store copies a component in, as load copies it out.
func store[C any](comp *archetype.Component, ch *archetype.Chunk, slot uint32, v *C) {
	col := ch.Archetype().Column(comp.ID)
	for i := range comp.Fields {
		f := &comp.Fields[i]
		ch.Mark(col + i)
		f.Cell.Copy(ch.Cell(col+i, slot, f.Size), unsafe.Add(unsafe.Pointer(v), f.Offset))
	}
}

// set stores a value, after its old one went to the undo log.
func set[C any](r *Registry, comp *archetype.Component, h handles.Local, ch *archetype.Chunk, slot uint32, v *C) {
	keep[C](r, comp, h, ch, slot)
	store(comp, ch, slot, v)
}

// keep puts a component's value into the undo log while a callback runs.
func keep[C any](r *Registry, comp *archetype.Component, h handles.Local, ch *archetype.Chunk, slot uint32) {
	if !r.inCallback {
		return
	}
	if r.rec != nil {
		r.rec.touch(h, comp.ID, -1)
	}
	log := valuesOf[C](r, comp)
	if len(log.old) == 0 {
		r.valuesUsed = append(r.valuesUsed, comp.ID)
	}
	at := log.keep(ch, slot)
	r.log(undoOp{kind: undoSet, h: h, comp: comp.ID, at: uint64(at)})
}

// Cells is a component resolved once, for hot loops of random accesses. It stays valid as
// long as its registry.
type Cells[C any] struct{ cells }

// cells is what Cells knows. It does not change.
type cells struct {
	r      *Registry
	locals *handles.Locals  // of r
	store  *archetype.Store // of r
	comp   *archetype.Component
	id     archetype.ComponentID // noColumn if the component is not one column
}

// noColumn is an id that no column has.
const noColumn = math.MaxUint16

// NewCells resolves the component C.
//
// Errors: ErrNotRegistered.
// Concurrency: any goroutine. Allocates: yes.
func NewCells[C any](r *Registry) (*Cells[C], error) {
	comp, err := componentOf[C](r)
	if err != nil {
		return nil, err
	}
	c := &Cells[C]{cells{r: r, locals: r.locals, store: r.store, comp: comp, id: comp.ID}}
	if comp.Split || len(comp.Fields) != 1 {
		c.id = noColumn
	}
	return c, nil
}

// Get gives a pointer to the component of h in place, as the function Get does; false when
// h is not alive or lacks it, the token is another registry's, or the component is split.
//
// Panics: ErrExpired.
// Concurrency: as the token. Allocates: no.
func (c *Cells[C]) Get(a Access, h handles.Local) (*C, bool) {
	ch, slot, ok := c.find(a, h)
	if !ok {
		if s := published(a); s != nil && s.r == c.r {
			p, err := getPublished[C](s, h)
			return p, err == nil
		}
		return nil, false
	}
	col := ch.Archetype().Column(c.comp.ID)
	if col < 0 || c.comp.Split {
		p, err := pointer[C](c.comp, ch, slot)
		return p, err == nil
	}
	ch.Mark(col)
	if c.r.rec != nil {
		c.r.rec.touch(h, c.comp.ID, -1)
	}
	return (*C)(ch.Cell(col, slot, unsafe.Sizeof(*new(C)))), true
}

// Peek gives a copy of the component of h; false as for Get, but a split one is gathered.
//
// Panics: ErrExpired.
// Concurrency: as the token. Allocates: no.
func (c *Cells[C]) Peek(a Access, h handles.Local) (v C, ok bool) {
	// The usual case, written out: a token of the write frame, a living entity, a component in one column. With
	// its steps in a function of their own it took a fifth longer.
	t := usual(a)
	if t == nil {
		t = unusual(a)
	}
	if t != nil && t.r == c.r && !t.closed.Load() {
		w := c.locals.Word(h.Index())
		if w.State() == handles.Alive && w.Generation() == h.Generation() {
			if p := c.store.CellAt(w.Place(), c.id, unsafe.Sizeof(v)); p != nil {
				return *(*C)(p), true // sound: the column was laid out, or allocated, for values of type C
			}
		}
	}
	return c.peekSlow(a, h)
}

// usual is the token in a, if it is of one of the two usual types, and otherwise nil. Asking each for itself cost a
// third of a Peek.
func usual(a Access) *token {
	if f, ok := a.(*Frame); ok && f != nil {
		return &f.token
	}
	if w, ok := a.(*Window); ok && w != nil {
		return &w.token
	}
	return nil
}

// unusual is the token in an a of any type, nil if there is none or it is a snapshot's.
func unusual(a Access) *token {
	if a == nil {
		return nil
	}
	if t := a.tokenOf(); t != nil && t.kind != snapshotToken {
		return t
	}
	return nil
}

func (c *Cells[C]) peekSlow(a Access, h handles.Local) (v C, ok bool) {
	ch, slot, ok := c.find(a, h)
	if !ok {
		if s := published(a); s != nil && s.r == c.r {
			v, err := peekPublished[C](s, h)
			return v, err == nil
		}
		return v, false
	}
	return v, load(c.comp, ch, slot, &v)
}

// Set gives the component of h a value, as the function Set does; false as for Peek.
//
// Panics: ErrExpired.
// Concurrency: as the token. Allocates: no, but for the undo log's growth.
func (c *Cells[C]) Set(a Access, h handles.Local, v C) bool {
	ch, slot, ok := c.find(a, h)
	if !ok || !ch.Archetype().Has(c.comp.ID) {
		return false
	}
	set(c.r, c.comp, h, ch, slot, &v)
	return true
}

func (c *cells) find(a Access, h handles.Local) (*archetype.Chunk, uint32, bool) {
	r, _, err := opened(a)
	if err != nil && err != ErrReadOnly {
		panic(err)
	}
	if r != c.r {
		return nil, 0, false
	}
	ch, slot, err := r.locate(h)
	return ch, slot, err == nil
}
