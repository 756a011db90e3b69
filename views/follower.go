package views

import (
	"iter"

	"github.com/airlock-ecs/airlock/registry"
)

// Follower shows what has changed since it last looked: RunsSince with a memory. It remembers the stamp of the storage and no
// frame number, so that frames which are simulated again count as later ones, and what a rollback has put back as changed.
//
// Concurrency: one goroutine at a time.
type Follower[T any] struct {
	q    *Query[T]
	seen uint64 // what has changed since is stamped above it; 0: nothing was seen
}

// Follow gives a follower that has seen nothing. A query may have any number of them.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func (q *Query[T]) Follow() *Follower[T] { return &Follower[T]{q: q} }

// Runs is Query.Runs over the chunks in which entities came, went, moved or were switched, or a column of the query was or
// may have been written, since the last loop of the follower began; the first one shows all. Nothing is missed: what a frame or
// a window writes after the loop comes with the next one, and so what it wrote before comes twice. A loop that does not get to its end
// counts for nothing, and the next one shows the same again.
//
// The tokens come in the order of their frames; a snapshot shows its frame, which nobody writes any more, once.
//
// Panics: as Query.Runs.
//
// Concurrency: as Query.Runs, for one goroutine at a time. Allocates: as Query.Runs.
func (f *Follower[T]) Runs(a registry.Access) iter.Seq[*T] {
	return func(yield func(*T) bool) { f.run(a, yield) }
}

func (f *Follower[T]) run(a registry.Access, yield func(*T) bool) {
	if seen, whole := f.q.run(a, 0, f.seen, yield); whole {
		f.seen = seen
	}
}
