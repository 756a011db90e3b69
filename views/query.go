package views

import (
	"fmt"
	"iter"
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
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
	matched   atomic.Pointer[matches]
	published atomic.Pointer[matches] // the same for snapshots, by the directory of their frame
	spares    spares[T]

	spreadFrom int // entities that Parallel spreads; set once
	forks      forks[T]
}

// NewQuery makes a query from the view struct T and filters. T is a struct of slices:
//
//   - []C shows component C
//   - []F with the tag `ecs:"Component.Field"` shows one field of a component that was
//     registered with registry.Split
//   - []handles.Local shows the entities' handles, to be read only
//   - []uint32 with the tag `ecs:"index"` shows their cache indices, to be read only
//
// `ecs:"read"` on a column declares that no loop writes it, so that it does not count as changed.
// `ecs:"optional"` shows it where there is one: elsewhere the slice is nil. A struct without fields
// is fine: filters alone make a query for Count, and Runs then yields once a run, with nothing in it.
//
// Errors: registry.ErrNotRegistered for a component or class that the registry doesn't know, with
// its type; registry.ErrSplit for a whole column of a split component; registry.ErrNotPublished
// if Published finds a Cold column; otherwise an error that names the field or filter at fault:
// something else than an exported slice, a tag component (it has no column: use With), a column shown
// twice, a component both required and excluded.
//
// Concurrency: any goroutine; never waits for Logic. Allocates: yes, once a query.
func NewQuery[T any](r *registry.Registry, filters ...Filter) (*Query[T], error) {
	t := reflect.TypeFor[T]()
	if r == nil {
		return nil, fmt.Errorf("views: query %v: no registry", t)
	}
	p, err := newPlan(r, t, filters)
	if err != nil {
		return nil, fmt.Errorf("views: query %v: %w", t, err)
	}
	return &Query[T]{reg: r, plan: p, spreadFrom: spreadFrom}, nil
}

// Runs yields every maximal run of live entities that match, archetype by archetype in order
// of creation and in slot order: slices of equal length, in one struct that is reused from run
// to run. Inactive and dead entities are in none; whether a slot lives is looked up when its
// run is about to be yielded. An entity spawned, or changed so that it matches, during the
// loop is not in it. A run ends with its chunk.
//
// The slices are the storage itself. They are valid until the window or frame ends, and what
// is written to them is written to the entities. The struct is valid until the next run.
//
// On a snapshot the loop shows that frame, and its slices are to be read only, until Release.
//
// Panics: with registry.ErrExpired if a is used after its callback, with ErrForeign
// if a belongs to another registry; on a snapshot with registry.ErrNotPublished for a column that it
// does not have: a Cold one, or of an older frame one that is not Temporal.
//
// Concurrency: whoever holds a, several goroutines if it is a frame or a snapshot; never waits. Allocates:
// no, nor does a loop over it, except for the first and for more than 8 loops at one time.
func (q *Query[T]) Runs(a registry.Access) iter.Seq[*T] {
	// Small enough to be inlined into the caller's range statement: the closure then stays on
	// the stack, and the loop's body is called directly.
	return func(yield func(*T) bool) { q.run(a, 0, 0, yield) }
}

// RunsSince is Runs over the chunks in which entities came, went, moved or were switched, or a
// column of the query was or may have been written, after a frame; with 0 those that were ever
// written. What is written in a frame carries its number, what is written between two frames that
// of the later one. So a loop that is to miss nothing passes the frame before the one it last ran
// in: what came later in that frame is then seen, and what came before is seen twice.
//
// Panics: as Runs.
//
// Concurrency: as Runs. Allocates: as Runs.
func (q *Query[T]) RunsSince(a registry.Access, frame uint64) iter.Seq[*T] {
	return func(yield func(*T) bool) { q.run(a, frame, 0, yield) }
}

// run is the loop behind Runs, RunsSince, and Follower.Runs, which goes by a stamp instead of a frame. It gives the stamp
// that what changes from here on is above, and whether the body wanted all. Everything it took is given back by one
// deferred call, however the body ends.
func (q *Query[T]) run(a registry.Access, frame, stamp uint64, yield func(*T) bool) (seen uint64, whole bool) {
	store := registry.Iterate(a)
	if store == nil {
		s := registry.Frames(a)
		return s.Storage(), q.runPublished(s, frame, stamp, yield)
	}
	t, place := q.spares.take()
	defer finish(a, t, place)
	list := q.matching(a, store)
	if frame != 0 {
		stamp = registry.Since(a, frame)
	}
	seen = max(store.Frame(), 1) - 1 // more may be written in this one
	recording := registry.Recording(a)
	for i := range list {
		m := &list[i]
		m.begin(unsafe.Pointer(t))
		// The chunk list, and each chunk's bounds, are read again after every yield: the body
		// may hold a window, and even Reset is among the things it can do with it.
		for j := 0; j < len(m.arch.Chunks()); j++ {
			c := m.arch.Chunks()[j]
			if stamp != 0 && !m.changedAfter(c, stamp) || len(m.changed) != 0 && !m.shows(a, c) {
				continue
			}
			if recording {
				registry.NoteColumns(a, c, m.marks)
			}
			if !eachRun(m, c, t, false, yield) {
				return seen, false
			}
		}
	}
	return seen, true
}

// eachRun yields the runs of a chunk; false if the body wants no more. A chunk that is not to be
// marked passes for marked.
func eachRun[T any](m *match, c *archetype.Chunk, t *T, marked bool, yield func(*T) bool) bool {
	for from := 0; from < c.Allocated(); {
		lo, hi := nextRun(c.Active(), from, c.Allocated())
		if lo == hi {
			break
		}
		if check.Enabled && (lo < from || hi <= lo || hi > c.Allocated()) {
			check.Failf("views: run %d to %d of a chunk of %s, from slot %d, allocated %d", lo, hi, m.arch, from, c.Allocated())
		}
		if !marked {
			m.mark(c)
			marked = true
		}
		m.show(unsafe.Pointer(t), c, lo, hi-lo)
		if !yield(t) {
			return false
		}
		from = hi
	}
	return true
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
	if store == nil {
		return q.countPublished(registry.Frames(a))
	}
	defer registry.Finish(a)
	n := 0
	list := q.matching(a, store)
	for i := range list {
		for _, c := range list[i].arch.Chunks() {
			if list[i].shows(a, c) {
				n += countLive(c.Active(), c.Allocated())
			}
		}
	}
	return n
}

// DestroyAll destroys the entities that match, those that Runs would show, and says how many that
// were. Their children, which die with them, are not counted, unless they match and are met first.
//
// Panics: as Runs.
//
// Concurrency: window holder; never waits. Allocates: no, but for the undo log's growth.
func (q *Query[T]) DestroyAll(w *registry.Window) int {
	store := registry.Iterate(w)
	defer registry.Finish(w)
	n := 0
	list := q.matching(w, store)
	for i := range list {
		for _, c := range list[i].arch.Chunks() {
			if !list[i].shows(w, c) {
				continue
			}
			for lo, hi := nextRun(c.Active(), 0, c.Allocated()); lo < hi; lo, hi = nextRun(c.Active(), hi, c.Allocated()) {
				n += w.DestroyBatch(c.Entities()[lo:hi])
			}
		}
	}
	return n
}

// matching lists the archetypes that match, looking for them again if the store's list has
// changed. A list is of one store, so one that fits shows that the token is of the query's
// registry, and only a new list needs to ask.
func (q *Query[T]) matching(a registry.Access, store *archetype.Store) []match {
	if m := q.matched.Load(); m != nil && m.store == store && (m.version == store.Version() || planted.Enabled && planted.Is(planted.MatchesNotRenewed)) {
		return m.list
	}
	return q.match(a, store)
}

func (q *Query[T]) match(a registry.Access, store *archetype.Store) []match {
	if a.Registry() != q.reg {
		panic(fmt.Errorf("%w: query %v", ErrForeign, reflect.TypeFor[T]()))
	}
	m := q.plan.find(store)
	q.matched.Store(m)
	return m.list
}
