package handles

import "github.com/airlock-ecs/airlock/internal/planted"

// LocalsMark is what the lists and counters of a space were at some moment. The zero value is ready
// for Mark, which uses its memory again.
//
// A mark stays good until its space is rewound to an earlier one; those between are void then. It is
// good for nothing in another space.
type LocalsMark struct {
	// Written by Mark, read by Rewind and KeepFrom: all of them the owner's.
	fresh, freshHint uint64
	highest          uint64 // see byName
	claimedPending   int    // see byName
	counts           tally
	reservedUsed     int64
	reservedUnused   int64
	over             bool
	line             lineMark
	returned, burned []entry
	burnt            []uint32
}

// lineMark is what a line of recycles was. Its names are not copied: they stay in their segments,
// see recycles.keep.
type lineMark struct {
	head, confirmed, tail, hint uint64
	runs                        []frameRun
}

// Mark records the lists and counters of the space in m, not the words. Nobody else may be inside
// Reserve meanwhile; Kill does not matter.
//
// Concurrency: the owner only, its workers joined; never waits. Allocates: when more waits in a list than m ever held.
func (l *Locals) Mark(m *LocalsMark) {
	m.fresh, m.freshHint = l.fresh, l.freshHint.Load()
	m.highest, m.claimedPending = l.byName.highest, l.byName.pending
	m.counts = l.counts
	m.reservedUsed, m.reservedUnused = l.reservedUsed.Load(), l.reservedUnused.Load()
	m.over = l.over.Load()
	l.recycles.mark(&m.line)
	m.returned = l.returned.appendTo(m.returned[:0])
	m.burned = l.burned.appendTo(m.burned[:0])
	m.burnt = l.burnt.appendTo(m.burnt[:0])
}

// Rewind puts the lists and counters back to what they were at Mark. The caller puts the words back,
// before or after: each name claimed since with Unclaim, the newest of an index first, and each that
// died since with Revive or ReviveReserved. Then the same operations give the same handles.
//
// A space may be rewound to one mark any number of times. Nobody else may be inside Reserve
// meanwhile; Kill does not matter.
//
// Panics: if m is older than what KeepFrom kept, and its names are gone.
// Concurrency: the owner only, its workers joined; never waits. Allocates: while more segments become spare than ever before.
func (l *Locals) Rewind(m *LocalsMark) {
	l.recycles.rewind(&m.line)
	l.fresh = m.fresh
	l.freshHint.Store(m.freshHint)
	l.byName.highest, l.byName.pending = m.highest, m.claimedPending
	l.byName.seen = 0 // an index may wait where it waited before
	l.counts = m.counts
	l.reservedUsed.Store(m.reservedUsed)
	l.reservedUnused.Store(m.reservedUnused)
	l.over.Store(m.over)
	l.returned.set(m.returned)
	l.burned.set(m.burned)
	l.comeback = len(m.returned) > 0
	l.burnt.clear()
	for _, index := range m.burnt {
		l.burnt.add(index)
	}
}

// KeepFrom says which mark is the oldest that the space may still be rewound to; nil if it is
// rewound to none. What waited at that mark and was claimed since is kept, and nothing older. It is
// due right after the first Mark, before anything is claimed.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) KeepFrom(m *LocalsMark) {
	if l.recycles.keeps = m != nil; m != nil {
		l.recycles.keep = m.line.head
	}
}

// Unclaim makes as if h had never been claimed, in its word, whatever became of h: the index is as
// its generation before had left it, dead and without a place, or as new if h was the first. It does
// nothing if h is not the current name of its index. Lists and counters are for Rewind.
//
// Concurrency: the owner only, beside others that Kill; never waits. Allocates: no.
func (l *Locals) Unclaim(h Local) {
	word := l.words.At(h.Index())
	if word == nil || h.Generation() < l.generation.first {
		return
	}
	before := Word(0)
	if h.Generation() > l.generation.first {
		before = MakeWord(h.Generation()-1, Dying, NoPlace)
	}
	for {
		old := word.Load()
		if Word(old).Generation() != h.Generation() {
			return
		}
		if word.CompareAndSwap(old, uint64(before)) { // fails if h was killed meanwhile
			return
		}
	}
}

func (r *recycles) mark(m *lineMark) {
	m.head, m.confirmed, m.tail, m.hint = r.head, r.confirmed, r.tail, r.hint.Load()
	m.runs = append(m.runs[:0], r.runs.runs[r.runs.from:]...)
}

// rewind puts the line back to a mark. Owner only, while nobody is inside scan: hint and
// published fall. Names behind the mark's tail are forgotten, and their segments spare.
func (r *recycles) rewind(m *lineMark) {
	if m.head>>segmentBits < r.firstSeg {
		panic("handles: a space is rewound to a mark that was not kept")
	}
	d := r.directory.Load()
	for n := (m.tail + segmentMask) >> segmentBits; n<<segmentBits < r.tail; n++ {
		link := &(*d)[n%uint64(len(*d))]
		r.spare = append(r.spare, link.Load())
		link.Store(nil)
	}
	if m.tail&segmentMask != 0 {
		r.tailSeg = (*d)[m.tail>>segmentBits%uint64(len(*d))].Load()
	}
	r.head, r.confirmed, r.tail = m.head, m.confirmed, m.tail
	r.slowNext()
	r.runs.runs, r.runs.from = append(r.runs.runs[:0], m.runs...), 0
	r.published.Store(m.confirmed)
	if planted.Enabled && planted.Is(planted.RewindKeepsHint) {
		return
	}
	r.hint.Store(m.hint)
}
