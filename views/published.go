package views

import (
	"fmt"
	"reflect"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

// Loops over published frames. They walk the directory that the frame was published with, through a
// look at each chunk as it was, and show nothing that the owner writes. The code that shows runs and
// spans is that of the frame being written.

// eachPublished calls fn with every chunk that matches and has changed after a frame, or above a stamp (0 and 0: all), and
// says whether fn wanted all.
func (q *Query[T]) eachPublished(s *registry.Snapshot, frame, stamp uint64, look *archetype.Chunk, t *T, fn func(m *match, c *archetype.Chunk) bool) bool {
	list := q.matchingPublished(s)
	if frame != 0 {
		stamp = registry.Since(s, frame)
	}
	for i := range list {
		m := &list[i]
		refs := s.Directory().Chunks(m.at)
		if len(refs) > 0 && !s.Shows(m.arch) {
			panic(fmt.Errorf("views: query %v: of frame %d entities of %s are not left: %w", reflect.TypeFor[T](), s.FrameNumber(), m.arch, registry.ErrNotPublished))
		}
		if t != nil {
			m.begin(unsafe.Pointer(t))
		}
		for _, ref := range refs {
			ref.Show(look, s.Storage())
			if stamp != 0 && !m.changedAfter(look, stamp) || len(m.changed) != 0 && !m.shows(s, look) {
				continue
			}
			if !fn(m, look) {
				return false
			}
		}
	}
	return true
}

func (q *Query[T]) runPublished(s *registry.Snapshot, frame, stamp uint64, yield func(*T) bool) bool {
	t, place := q.spares.take()
	defer place.giveBack(t)
	return q.eachPublished(s, frame, stamp, place.lookAt(), t, func(m *match, c *archetype.Chunk) bool {
		return eachRun(m, c, t, true, yield)
	})
}

func (q *Query[T]) spansPublished(s *registry.Snapshot, yield func(*T, Mask) bool) {
	t, place := q.spares.take()
	defer place.giveBack(t)
	if place == nil {
		place = new(spare[T])
	}
	k := 0
	q.eachPublished(s, 0, 0, place.lookAt(), t, func(m *match, c *archetype.Chunk) bool {
		if k == len(place.spans) {
			place.spans = append(place.spans, span{})
		}
		sp := &place.spans[k]
		k++
		if !sp.read(c) {
			return true
		}
		m.show(unsafe.Pointer(t), c, 0, sp.slots)
		return yield(t, Mask{sp})
	})
}

func (q *Query[T]) countPublished(s *registry.Snapshot) (n int) {
	t, place := q.spares.take()
	defer place.giveBack(t)
	q.eachPublished(s, 0, 0, place.lookAt(), nil, func(_ *match, c *archetype.Chunk) bool {
		n += countLive(c.Active(), c.Allocated())
		return true
	})
	return n
}

// lookAt is what the loop shows chunks through.
func (p *spare[T]) lookAt() *archetype.Chunk {
	if p == nil {
		return new(archetype.Chunk)
	}
	return &p.look
}

// matchingPublished lists the archetypes of the snapshot that match.
func (q *Query[T]) matchingPublished(s *registry.Snapshot) []match {
	if s.Registry() != q.reg {
		panic(fmt.Errorf("%w: query %v", ErrForeign, reflect.TypeFor[T]()))
	}
	for _, comp := range q.plan.shown {
		if err := s.Readable(comp); err != nil {
			panic(fmt.Errorf("views: query %v: %w", reflect.TypeFor[T](), err))
		}
	}
	d := s.Directory()
	if m := q.published.Load(); m != nil && m.version == d.Version() {
		return m.list
	}
	m := &matches{version: d.Version(), list: q.plan.among(d.Archetypes())}
	q.published.Store(m)
	return m.list
}
