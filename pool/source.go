package pool

import "iter"

// Source is what has pools to show: a *Pool, an *Entities, a *Prefabs, or somebody else's.
//
// Concurrency: any goroutine; never waits for the owner of a registry.
type Source interface {
	// Pools gives the pools that there are, by name, with their counters.
	Pools() iter.Seq2[string, Stats]
}

// Pools gives the pool, by its name.
//
// Concurrency: any goroutine. Allocates: no.
func (p *Pool[T]) Pools() iter.Seq2[string, Stats] {
	return func(yield func(string, Stats) bool) { yield(p.name, p.Stats()) }
}

// Pools gives the pool, by the name of its class.
//
// Concurrency: any goroutine; never waits. Allocates: as Stats.
func (p *Entities[E]) Pools() iter.Seq2[string, Stats] {
	return func(yield func(string, Stats) bool) { yield(p.c.Name(), p.Stats()) }
}

// Pools is Stats.
//
// Concurrency: any goroutine; never waits. Allocates: as Stats.
func (p *Prefabs) Pools() iter.Seq2[string, Stats] { return p.Stats() }
