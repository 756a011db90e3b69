package archetype

import (
	"iter"
	"math/bits"
)

// ComponentID numbers the components of one schema in the order of their registration.
type ComponentID uint16

// MaxComponents is how many components a schema can hold, tags included.
const MaxComponents = 256

const (
	// ActiveID names the Active flag as a component. Its column is a bit plane.
	ActiveID ComponentID = MaxComponents + iota
	// EntityID names the entity column: the handle of the entity in each slot.
	EntityID

	columnIDs = MaxComponents + 2 // how many ids can have a column
)

// Signature is a set of components: one bit for each id below MaxComponents. It is a value
// and can be a map key.
type Signature [MaxComponents / 64]uint64

// Has says whether id is in the set. ActiveID and EntityID never are: every archetype has them.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s Signature) Has(id ComponentID) bool {
	return id < MaxComponents && s[id>>6]>>(id&63)&1 != 0
}

// With is the set with id in it.
//
// Panics: if id is not below MaxComponents.
// Concurrency: any goroutine; never waits. Allocates: no.
func (s Signature) With(id ComponentID) Signature {
	s[id>>6] |= 1 << (id & 63)
	return s
}

// Without is the set without id.
//
// Panics: if id is not below MaxComponents.
// Concurrency: any goroutine; never waits. Allocates: no.
func (s Signature) Without(id ComponentID) Signature {
	s[id>>6] &^= 1 << (id & 63)
	return s
}

// Contains says whether every member of all is in the set.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s Signature) Contains(all Signature) bool {
	return all[0]&^s[0]|all[1]&^s[1]|all[2]&^s[2]|all[3]&^s[3] == 0
}

// Intersects says whether any member of some is in the set.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s Signature) Intersects(some Signature) bool {
	return some[0]&s[0]|some[1]&s[1]|some[2]&s[2]|some[3]&s[3] != 0
}

// Len is the number of members.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s Signature) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// All yields the members, lowest first.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s Signature) All() iter.Seq[ComponentID] {
	return func(yield func(ComponentID) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(ComponentID(i<<6 | bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}
