// Package pool keeps what is needed again and again, so that a steady world allocates nothing: Go
// objects, blocks of entities, and prefabs, which are entities made by name.
//
// # Objects
//
// A Pool lends instances of a type, to any goroutine, and takes them back reset. It differs from a
// sync.Pool, on which it is not built, in what it promises: what was given back is lent again and
// never just disappears; there is a bound, if one is set; the counters are exact at each instant; and
// a guard that is released twice, or used afterwards, gets an error.
//
// Life of an instance: built -> in use -> being reset -> free -> in use, and so on, until
// it is trimmed while free or lost while in use.
//
// While an instance is in use the pool has no pointer to it. If its guard gets lost, and every pointer
// to the instance, the collector notices, sooner or later: the instance is counted as leaked, its
// place is free, and New fills it for the next taker. Only what nobody can reach is ever given up, and
// it is given up for good, so that nobody finds his instance in other hands. Reset
// runs exactly once for each release; for one that was lost there is nothing left to reset, and
// what Trim drops was reset when it came back.
//
// An ecsdebug build says where a guard was released before, and where what leaked was taken. A release
// build has no trace of that.
//
// # Entities and prefabs
//
// An Entities is a contiguous block of entities that exist from the start and are activated
// instead of spawned. Prefabs has names for what is spawned often, and gives each a pool of such
// blocks if it is declared or used with one; it reads declarations from a file. Both are used
// with the token of a window, and belong to its registry.
//
// # Growth
//
// The three share Grow and Stats. Capacity is what may be in use before a pool grows; whether the
// instances are made up front is another question. No pool shrinks by itself.
package pool
