package views

import (
	"iter"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
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
// Concurrency: the goroutine that loops. Allocates: once for each chunk of the loop.
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
func (m Mask) Full() bool { return m.s == nil || m.Count() == m.s.slots }

// Count is how many slots are live.
//
// Concurrency: the goroutine that loops. Allocates: no.
func (m Mask) Count() (n int) {
	for _, word := range m.Words() {
		n += bits.OnesCount64(word)
	}
	return n
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
	if len(s.words) != n {
		s.words, s.listed = append(s.words[:0], make([]uint64, n)...), false
	}
	active, any := c.Active()[:n], uint64(0)
	for w := range active {
		word := atomic.LoadUint64(&active[w])
		any |= word
		if s.words[w] != word {
			s.words[w], s.listed = word, false
		}
	}
	return any != 0
}

// list writes the numbers of the set bits. It has room for all slots from the first time on, so that
// it does not matter how the bits change.
func (s *span) list() {
	if cap(s.live) < s.slots {
		s.live = make([]uint16, 0, len(s.words)*64)
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
// may compute dead lanes, and loops over what is sparse (Mask.Live). In slots that are not live,
// anything may be read and written, with one exception: inactive entities, and those that were spawned
// since the loop began, have their cells there. Where there are some, a kernel goes by the mask.
//
// Order, validity and marking are those of Runs.
//
// Panics: as Runs.
//
// Concurrency: as Runs. Allocates: as Runs, and once for each chunk.
func (q *Query[T]) Spans(a registry.Access) iter.Seq2[*T, Mask] {
	return func(yield func(*T, Mask) bool) { q.spans(a, yield) }
}

func (q *Query[T]) spans(a registry.Access, yield func(*T, Mask) bool) {
	store := registry.Iterate(a)
	t, place := q.spares.take()
	defer finish(a, t, place)
	if place == nil {
		place = new(spare[T]) // this loop's own
	}
	list := q.matching(a, store)
	k := 0
	for i := range list {
		m := &list[i]
		m.begin(unsafe.Pointer(t))
		for j := 0; j < len(m.arch.Chunks()); j++ {
			c := m.arch.Chunks()[j]
			if !m.shows(c) {
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
			if len(m.marks) != 0 && !(Mask{s}).Full() {
				c.Soil()
			}
			m.show(unsafe.Pointer(t), c, 0, s.slots)
			if !yield(t, Mask{s}) {
				return
			}
		}
	}
}
