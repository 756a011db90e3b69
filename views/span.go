package views

import (
	"iter"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// Mask says which slots of a span are live. It is a small value; what it refers to is kept with the
// loop and valid until the next span. The zero Mask is that of no slots.
//
// Concurrency: the goroutine that loops.
type Mask struct{ s *span }

// span is what a loop keeps of a chunk from one time to the next: which slots were live, and their
// numbers as a list. Bits change seldom, so as a rule the list is made once. It is found by the
// chunk's place in the loop and is good for as long as the bits are the same: it says nothing else.
//
// Rejected: a closure for each live slot, which measured twice a walk over the bits; the walk itself
// takes half as long again as the list.
type span struct {
	words  []uint64
	count  int // of the bits in words
	live   []uint16
	listed bool // live is made
	slots  int
	base   uint32
}

// Words are the live slots as bits, slot i at bit i&63 of word i>>6: as they were when the span was
// yielded, whoever has died since. Bits beyond the span are clear. To be read only.
//
// Concurrency: the goroutine that loops. Allocates: no.
func (m Mask) Words() []uint64 {
	if m.s == nil {
		return nil
	}
	return m.s.words
}

// Live are the numbers of the live slots, ascending: the set bits of Words. To be read only.
//
// Concurrency: the goroutine that loops. Allocates: no, but for growth.
func (m Mask) Live() []uint16 {
	if m.s == nil {
		return nil
	}
	if !m.s.listed {
		m.s.list()
	}
	return m.s.live
}

// Full says that every slot of the span is live.
//
// Concurrency: the goroutine that loops. Allocates: no.
func (m Mask) Full() bool { return m.s == nil || m.s.count == m.s.slots }

// Count is how many slots are live.
//
// Concurrency: the goroutine that loops. Allocates: no.
func (m Mask) Count() int {
	if m.s == nil {
		return 0
	}
	return m.s.count
}

// Base is the cache index of slot 0; slot i has Base()+i.
//
// Concurrency: the goroutine that loops. Allocates: no.
func (m Mask) Base() uint32 {
	if m.s == nil {
		return 0
	}
	return m.s.base
}

// read takes the chunk's bits over and says whether any is set.
func (s *span) read(c *archetype.Chunk) bool {
	s.slots, s.base = c.Allocated(), c.Base()
	n := (s.slots + 63) >> 6
	changed := len(s.words) != n
	if changed {
		s.words = append(s.words[:0], make([]uint64, n)...)
	}
	active, words := c.Active()[:n], s.words[:n]
	for w := range active {
		if word := atomic.LoadUint64(&active[w]); words[w] != word {
			words[w], changed = word, true
		}
	}
	if changed && !(planted.Enabled && planted.Is(planted.MaskCountKept) && s.count > 0) {
		s.listed, s.count = false, 0
		for _, word := range words {
			s.count += bits.OnesCount64(word)
		}
	}
	return s.count != 0
}

// list writes the numbers of the set bits. Lists have room for few more than there are, for in a loop
// over what is sparse the lists of all chunks should lie close to each other.
func (s *span) list() {
	if cap(s.live) < s.count {
		s.live = make([]uint16, 0, (s.count+s.count/8+31)&^31)
	}
	s.live = s.live[:0]
	for w, word := range s.words {
		for first := uint16(w << 6); word != 0; word &= word - 1 {
			s.live = append(s.live, first+uint16(bits.TrailingZeros64(word)))
		}
	}
	s.listed = true
}

// Spans yields every chunk with live entities that match, whole: slices over all its slots up to the
// highest that was ever taken, and the mask that says which of them are live. It suits kernels that
// may compute dead lanes, and loops over what is sparse (Mask.Live). With a short body, all lanes are
// cheaper than the list while fewer than a third are dead (BenchmarkSpansScattered).
//
// In slots that are not live, anything may be read and written, with one exception: inactive entities,
// and those that were spawned since the loop began, have their cells there. Where there are some, a
// kernel goes by the mask. What is written to the
// lane of an entity that the same callback has destroyed or moved is not undone if it fails, as all
// that is written through slices.
//
// Order, validity and marking are those of Runs. Of a snapshot, chunks are shown with all their slots.
//
// Panics: as Runs.
//
// Concurrency: as Runs. Allocates: as Runs, and once for each chunk.
func (q *Query[T]) Spans(a registry.Access) iter.Seq2[*T, Mask] {
	return func(yield func(*T, Mask) bool) { q.spans(a, yield) }
}

func (q *Query[T]) spans(a registry.Access, yield func(*T, Mask) bool) {
	store := registry.Iterate(a)
	if store == nil {
		q.spansPublished(registry.Frames(a), yield)
		return
	}
	t, place := q.spares.take()
	defer finish(a, t, place)
	if place == nil {
		place = new(spare[T]) // this loop's own
	}
	list, recording := q.matching(a, store), registry.Recording(a)
	k := 0
	for i := range list {
		m := &list[i]
		m.begin(unsafe.Pointer(t))
		for j := 0; j < len(m.arch.Chunks()); j++ {
			c := m.arch.Chunks()[j]
			if !m.shows(a, c) {
				continue
			}
			if k == len(place.spans) {
				place.spans = append(place.spans, span{})
			}
			s := &place.spans[k]
			k++
			if !s.read(c) {
				continue
			}
			m.mark(c)
			if recording {
				registry.NoteColumns(a, c, m.marks)
			}
			if len(m.marks) != 0 && s.count != s.slots {
				c.Soil()
			}
			m.show(unsafe.Pointer(t), c, 0, s.slots)
			if !yield(t, Mask{s}) {
				return
			}
		}
	}
}
