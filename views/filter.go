package views

import "reflect"

// Filter narrows a query to the archetypes that have, or don't have, a component that the
// query doesn't show. The zero Filter is refused by NewQuery.
//
// Concurrency: a value for any goroutine.
type Filter struct {
	kind      filterKind
	component reflect.Type
}

type filterKind uint8

const (
	filterNone filterKind = iota
	filterWith
	filterWithout
)

// With keeps only entities that have component C. It is the way to ask for a tag, which has
// no column to show.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func With[C any]() Filter { return Filter{filterWith, reflect.TypeFor[C]()} }

// Without keeps only entities that don't have component C.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func Without[C any]() Filter { return Filter{filterWithout, reflect.TypeFor[C]()} }

// String is the filter as it is written in code, for messages.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func (f Filter) String() string {
	switch f.kind {
	case filterWith:
		return "With[" + f.component.String() + "]"
	case filterWithout:
		return "Without[" + f.component.String() + "]"
	default:
		return "Filter{}"
	}
}
