package views

import (
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/registry"
)

// Query selects entities by their components and shows their columns as the slices of a T.
// It is made once by NewQuery, usually when the program starts; archetypes that come into
// being later are found by the next loop.
//
// Concurrency: any goroutine may use a query, several at the same time, with tokens of its
// registry.
type Query[T any] struct {
	reg  *registry.Registry
	plan *plan // immutable

	// matched is replaced whole when the store's list of archetypes has changed. Goroutines
	// that find it old at the same time each build the new one; the last stored is as good as
	// any, since all of them are of the version the store has while they look.
	matched atomic.Pointer[matches]
	spares  spares[T]
}

// NewQuery makes a query from the view struct T and filters. T is a struct of slices:
//
//   - []C shows component C
//   - []F with the tag `ecs:"Component.Field"` shows one field of a component that was
//     registered with registry.Split
//   - []handles.Local shows the entities' handles, to be read only
//
// `ecs:"read"` on a column declares that no loop writes it. A struct without fields is fine:
// filters alone make a query for Count, and Runs then yields once a run, with nothing in it.
//
// Errors: registry.ErrNotRegistered for a component that the registry doesn't know, with its
// type; registry.ErrSplit for a whole column of a split component; otherwise an error that
// names the field or filter at fault: something else than an exported slice, a tag component
// (it has no column: use With), a column shown twice, a component both required and excluded.
//
// Concurrency: any goroutine; never waits for Logic. Allocates: yes, once a query.
func NewQuery[T any](r *registry.Registry, filters ...Filter) (*Query[T], error) {
	t := reflect.TypeFor[T]()
	if r == nil {
		return nil, fmt.Errorf("views: query %v: no registry", t)
	}
	p, err := newPlan(r.Schema(), t, filters)
	if err != nil {
		return nil, fmt.Errorf("views: query %v: %w", t, err)
	}
	return &Query[T]{reg: r, plan: p}, nil
}

// Runs yields every maximal run of live entities that match, archetype by archetype in order
// of creation and in slot order: slices of equal length, in one struct that is reused from run
// to run. Inactive and dead entities are in none; whether a slot lives is looked up when its
// run is about to be yielded. An entity spawned, or changed so that it matches, during the
// loop is not in it.
//
// The slices are the storage itself. They are valid until the window or frame ends, and what
// is written to them is written to the entities. The struct is valid until the next run.
//
// Panics: with registry.ErrExpired if a is used after its callback, with ErrForeign
// if a belongs to another registry.
//
// Concurrency: whoever holds a, several goroutines if it is a frame; never waits. Allocates:
// no, nor does a loop over it, except for the first and for more than 8 loops at one time.
func (q *Query[T]) Runs(a registry.Access) iter.Seq[*T] {
	// Small enough to be inlined into the caller's range statement: the closure then stays on
	// the stack, and the loop's body is called directly.
	return func(yield func(*T) bool) { q.run(a, yield) }
}

// run is the loop behind Runs. Everything it took is given back by one deferred call, however
// the body ends.
func (q *Query[T]) run(a registry.Access, yield func(*T) bool) {
	store := registry.Iterate(a)
	t, place := q.spares.take()
	defer finish(a, t, place)
	list := q.matching(a, store)

	for i := range list {
		arch, fills := list[i].arch, list[i].fills
		// The chunk list, and each chunk's bounds, are read again after every yield: the body
		// may hold a window, and even Reset is among the things it can do with it.
		for j := 0; j < len(arch.Chunks()); j++ {
			c := arch.Chunks()[j]
			for from := 0; from < c.Allocated(); {
				lo, hi := nextRun(c.Active(), from, c.Allocated())
				if lo == hi {
					break
				}
				if check.Enabled && (lo < from || hi <= lo || hi > c.Allocated()) {
					check.Failf("views: run %d to %d of chunk %d of %s, from slot %d, allocated %d", lo, hi, j, arch, from, c.Allocated())
				}
				show(unsafe.Pointer(t), fills, c, lo, hi-lo)
				if !yield(t) {
					return
				}
				from = hi
			}
		}
	}
}

func finish[T any](a registry.Access, t *T, place *spare[T]) {
	place.giveBack(t)
	registry.Finish(a)
}

// Count is the number of live entities that match: what Runs would show, without looking at
// any column.
//
// Panics: as Runs.
//
// Concurrency: as Runs. Allocates: no.
func (q *Query[T]) Count(a registry.Access) int {
	store := registry.Iterate(a)
	defer registry.Finish(a)
	n := 0
	for _, m := range q.matching(a, store) {
		for _, c := range m.arch.Chunks() {
			n += countLive(c.Active(), c.Allocated())
		}
	}
	return n
}

// matching lists the archetypes that match, looking for them again if the store's list has
// changed. A list is of one store, so one that fits shows that the token is of the query's
// registry, and only a new list needs to ask.
func (q *Query[T]) matching(a registry.Access, store *archetype.Store) []match {
	if m := q.matched.Load(); m != nil && m.store == store && m.version == store.Version() {
		return m.list
	}
	return q.match(a, store)
}

func (q *Query[T]) match(a registry.Access, store *archetype.Store) []match {
	if a.Registry() != q.reg {
		panic(fmt.Errorf("views: query %v: %w", reflect.TypeFor[T](), ErrForeign))
	}
	m := q.plan.find(store)
	q.matched.Store(m)
	return m.list
}
