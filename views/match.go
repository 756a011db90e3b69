package views

import (
	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// matches is the list of archetypes that a plan selects, as of one version of the store.
//
// Ownership: immutable once published; goroutines that share a query share it.
type matches struct {
	store   *archetype.Store // nil for snapshots
	version uint64           // of the store's list of archetypes, or of a directory's
	list    []match
}

// match is one archetype with everything that filling the view struct needs to know of it,
// so that a run costs no lookup.
type match struct {
	arch    *archetype.Archetype
	at      int // its place in the list of archetypes
	fills   []fill
	index   int       // offset of the slice of cache indices in the view struct, -1 without one
	absent  []uintptr // offsets of slices that stay nil here
	marks   []int     // table slots of the columns that a loop may write
	watched []int     // table slots of the columns of components
	changed []since
}

// fill says where a slice header goes and what it shows.
type fill struct {
	offset uintptr // of the slice header in the view struct
	size   uintptr // of an element
	slot   int     // in the archetype's field table
}

// since says that chunks count only if they have changed after a frame.
type since struct {
	first, n int // table slots of the component; a tag has none
	frame    uint64
}

// find lists the archetypes that match now. The caller is inside the store's access, so the
// list doesn't change under it.
func (p *plan) find(store *archetype.Store) *matches {
	return &matches{store: store, version: store.Version(), list: p.among(store.Archetypes())}
}

// among lists those archetypes of a list that match.
func (p *plan) among(archetypes []*archetype.Archetype) (list []match) {
	for i, a := range archetypes {
		sig := a.Signature()
		if !sig.Contains(p.need) || sig.Intersects(p.avoid) || p.class >= 0 && a.Class() != p.class {
			continue
		}
		m := p.match(a)
		m.at = i
		list = append(list, m)
	}
	return list
}

// match works out how to show an archetype.
func (p *plan) match(a *archetype.Archetype) match {
	m := match{arch: a, index: -1}
	for i := range p.columns {
		c := &p.columns[i]
		if c.key == indexKey {
			m.index = int(c.offset)
			continue
		}
		slot := a.ColumnOf(c.key)
		if slot < 0 {
			if check.Enabled && !c.optional {
				check.Failf("views: archetype %s matches, but has no column for field %s", a, c.name)
			}
			m.absent = append(m.absent, c.offset)
			continue
		}
		m.fills = append(m.fills, fill{offset: c.offset, size: c.size, slot: slot})
		if c.key != entityKey {
			m.watched = append(m.watched, slot)
		}
		if !c.read {
			m.marks = append(m.marks, slot)
		}
	}
	for _, c := range p.changed {
		s := since{first: a.Column(c.component), frame: c.since}
		for _, comp := range a.Components() {
			if comp.ID == c.component {
				s.n = len(comp.Fields)
			}
		}
		m.changed = append(m.changed, s)
	}
	return m
}

// shows says whether a chunk has changed as the filters demand.
func (m *match) shows(a registry.Access, c *archetype.Chunk) bool {
	for i := range m.changed {
		s := &m.changed[i]
		latest := c.StructureChangedAt()
		for k := range s.n {
			latest = max(latest, c.ChangedAt(s.first+k))
		}
		if latest <= registry.Since(a, s.frame) {
			return false
		}
	}
	return true
}

// changedAfter says whether a chunk shows anything else than at the end of a frame.
func (m *match) changedAfter(c *archetype.Chunk, frame uint64) bool {
	if c.StructureChangedAt() > frame {
		return true
	}
	for _, slot := range m.watched {
		if c.ChangedAt(slot) > frame {
			return true
		}
	}
	return false
}

// mark notes that a loop may write the chunk.
func (m *match) mark(c *archetype.Chunk) {
	for _, slot := range m.marks {
		if planted.Enabled && planted.Is(planted.LoopDoesNotMark) {
			continue
		}
		c.Mark(slot)
	}
}
