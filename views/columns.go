package views

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// SpawnColumns makes n entities of a class and has fill write their columns: T is a struct of slices
// as for NewQuery, over components of E. fill is called once for each run of neighbouring slots, with
// cells that are zero; it may be nil. The handles come in the order of the runs; the caller keeps
// them. A batch that does not fit, or whose fill panics, has no effect at all. Entities are in
// sight when fill has returned from their run.
//
// Errors: as NewQuery for T; an error that names the field for a component that E does not have;
// registry.ErrExhausted; a negative n; registry.ErrExpired.
//
// Concurrency: window holder. Allocates: the handles, a T, and for a class the first time what looking at T takes.
func SpawnColumns[T, E any](w *registry.Window, c *registry.Class[E], n int, fill func(*T)) ([]handles.Local, error) {
	k, err := registry.Remembered(w, c, func() (*columnsOf[T], error) { return newColumnsOf[T](w, c) })
	if err != nil {
		return nil, err
	}
	if fill == nil {
		return registry.SpawnRuns(w, c, n, nil)
	}
	view := new(T)
	defer func() { // kept beyond its run, it shows nothing
		var empty T
		*view = empty
	}()
	m := k.last
	return registry.SpawnRuns(w, c, n, func(ch *archetype.Chunk, slot uint32, _, n int) {
		if m.arch != ch.Archetype() {
			m = k.plan.match(ch.Archetype())
			m.begin(unsafe.Pointer(view))
			k.last = m
		}
		m.show(unsafe.Pointer(view), ch, int(slot), n)
		fill(view)
	})
}

// columnsOf is what looking at T came to, for a class: a batch of a thousand took a quarter longer when each looked anew.
// Window holder only.
type columnsOf[T any] struct {
	plan *plan
	last match // what it came to for the archetype that was filled last
}

func newColumnsOf[T, E any](w *registry.Window, c *registry.Class[E]) (*columnsOf[T], error) {
	t := reflect.TypeFor[T]()
	p, err := newPlan(w.Registry(), t, nil)
	if err != nil {
		return nil, fmt.Errorf("views: columns %v: %w", t, err)
	}
	for i := range p.columns {
		col := &p.columns[i]
		if _, ok := c.Layout().Lookup(col.key); !ok && col.isCells() && !col.optional {
			return nil, fmt.Errorf("views: columns %v: field %s: class %s has no such component", t, col.name, c.Name())
		}
	}
	return &columnsOf[T]{plan: p}, nil
}
