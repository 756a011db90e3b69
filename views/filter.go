package views

import (
	"fmt"
	"reflect"

	"github.com/airlock-ecs/airlock/registry"
)

// Filter narrows a query. The zero Filter is refused by NewQuery.
//
// Concurrency: a value for any goroutine.
type Filter struct {
	kind  filterKind
	typ   reflect.Type // a component, or a class
	since uint64
	class func(*registry.Registry) (int, bool)
}

type filterKind uint8

const (
	filterNone filterKind = iota
	filterWith
	filterWithout
	filterChanged
	filterClass
	filterPublished
)

// With keeps only entities that have component C. It is the way to ask for a tag, which has
// no column to show.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func With[C any]() Filter { return Filter{kind: filterWith, typ: reflect.TypeFor[C]()} }

// Without keeps only entities that don't have component C.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func Without[C any]() Filter { return Filter{kind: filterWithout, typ: reflect.TypeFor[C]()} }

// InClass keeps only entities of class E, with whatever components were added or removed since.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func InClass[E any]() Filter {
	return Filter{kind: filterClass, typ: reflect.TypeFor[E](), class: registry.ClassIndex[E]}
}

// Changed keeps only entities that have component C, in chunks where C may have been written after
// a frame: a slot taken or given back, Set, a pointer from Get, or a loop that shows the column
// without `read`. What is written in a frame carries its number, what is written between two
// frames that of the later one. It goes by whole chunks: neighbours come along, and a change
// that was undone counts. See RunsSince for a frame that differs from loop to loop.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func Changed[C any](sinceFrame uint64) Filter {
	return Filter{kind: filterChanged, typ: reflect.TypeFor[C](), since: sinceFrame}
}

// Published has NewQuery refuse a query that snapshots cannot show, since one of its columns is
// Cold, instead of the loop over the first snapshot.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func Published() Filter { return Filter{kind: filterPublished} }

// String is the filter as it is written in code, for messages.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func (f Filter) String() string {
	switch f.kind {
	case filterWith:
		return "With[" + f.typ.String() + "]"
	case filterWithout:
		return "Without[" + f.typ.String() + "]"
	case filterChanged:
		return fmt.Sprintf("Changed[%v](%d)", f.typ, f.since)
	case filterClass:
		return "InClass[" + f.typ.String() + "]"
	case filterPublished:
		return "Published"
	default:
		return "Filter{}"
	}
}
