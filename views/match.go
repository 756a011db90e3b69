package views

import (
	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/check"
)

// matches is the list of archetypes that a plan selects, as of one version of the store.
//
// Ownership: immutable once published; goroutines that share a query share it.
type matches struct {
	store   *archetype.Store
	version uint64 // of the store's list of archetypes
	list    []match
}

// match is one archetype with everything that filling the view struct needs to know of it,
// so that a run costs no lookup.
type match struct {
	arch  *archetype.Archetype
	fills []fill
}

// fill says where a slice header goes and what it shows.
type fill struct {
	offset uintptr // of the slice header in the view struct
	size   uintptr // of an element
	slot   int     // in the archetype's field table
}

// find lists the archetypes that match now. The caller is inside the store's access, so the
// list doesn't change under it.
func (p *plan) find(store *archetype.Store) *matches {
	m := &matches{store: store, version: store.Version()}
	for _, a := range store.Archetypes() {
		if sig := a.Signature(); !sig.Contains(p.need) || sig.Intersects(p.avoid) {
			continue
		}
		fills := make([]fill, len(p.columns))
		for i, c := range p.columns {
			fills[i] = fill{offset: c.offset, size: c.size, slot: a.ColumnOf(c.key)}
			if check.Enabled && fills[i].slot < 0 {
				check.Failf("views: archetype %s matches, but has no column for field %s", a, c.name)
			}
		}
		m.list = append(m.list, match{a, fills})
	}
	return m
}
