package handles

// byName is what Claim leaves behind in the lists, and how it finds its way in them. Owner only.
type byName struct {
	highest uint64 // index ever claimed by name, also beyond the cursor of the fresh ones; 0 if none
	pending int    // names among the pending ones whose index was claimed since

	// Where in the line an index waits, position + 1 by index from the first of the space. It is
	// filled when somebody asks, so that Free, which is hot, has nothing to do with it. Positions
	// before seen were looked at.
	pages []*[pageSize]uint64
	seen  uint64
}

// from says where the index of a claimed name was found.
type from uint8

const (
	nowhere      from = iota // in use, or retired
	fromFresh                // never claimed
	fromBurned               // never used but by claims that were taken back
	fromReturned             // used before, its claim taken back
	fromFree                 // freed and confirmed
	fromPending              // freed
)

// Claim claims exactly the name h, for replaying a record, wherever its index waits: free, taken
// back, pending as well, or fresh, also beyond those that were claimed so far. The word goes to h's
// generation, s and place; a reserved name has no place, whatever place says. Generations between the
// last one and h's are burned: Lives counts each as claimed and taken back. What the lists still
// say of the index claims nothing.
//
// False if the index is in use, dying included, if it had this generation or a higher one before, or
// if it is not of this space; and if s is Free.
//
// Concurrency: the owner only, beside others; never waits. Allocates: a page of words, once for 4096 fresh
// indices, and a page of positions, once for 4096 used ones.
func (l *Locals) Claim(h Local, s State, place uint32) bool {
	if !l.Owns(h.Index()) || h.Generation() < l.generation.first || h.Generation() > l.generation.last || s == Free || s > Dying {
		return false
	}
	if s == Reserved {
		place = NoPlace
	}
	word := l.words.Ensure(h.Index())
	for {
		old := Word(word.Load())
		found := l.find(h, old)
		if found == nowhere {
			return false
		}
		// Fails if a reserver claimed it, or its place changed: look again.
		if word.CompareAndSwap(uint64(old), uint64(MakeWord(h.Generation(), s, place))) {
			l.claimed(h, old, found)
			return true
		}
	}
}

// find says where the index of h waits, whose word is old.
//
// A dying word with generation g waits exactly if the name g+1 is in a list: it was put there when g
// was freed or taken back, and whoever claimed it since has changed the word.
func (l *Locals) find(h Local, old Word) from {
	switch {
	case old == 0:
		return fromFresh
	case old.State() != Dying || old.Generation() >= h.Generation():
		return nowhere
	}
	name := entry(NewLocal(h.Index(), old.Generation()+1))
	if at, ok := l.position(name); ok {
		if at < l.recycles.confirmed {
			return fromFree
		}
		return fromPending
	}
	if l.returned.has(name) {
		return fromReturned
	}
	if l.burned.has(name) {
		return fromBurned
	}
	return nowhere // also if a reserver has popped it, and is about to claim it
}

// position is where in the line a name stands.
func (l *Locals) position(name entry) (uint64, bool) {
	r, b := &l.recycles, &l.byName
	for b.seen = max(b.seen, r.head); b.seen < r.tail; b.seen++ {
		*b.at(l, Local(r.at(b.seen)).Index()) = b.seen + 1
	}
	at := *b.at(l, Local(name).Index()) - 1 // of those that were never seen: beyond any position
	if at < r.head || at >= r.tail || r.at(at) != name {
		return 0, false
	}
	return at, true
}

func (b *byName) at(l *Locals, index uint32) *uint64 {
	i := uint64(index) - l.firstIndex
	n := int(i >> pageBits)
	if n >= len(b.pages) {
		b.pages = append(b.pages, make([]*[pageSize]uint64, n+1-len(b.pages))...)
	}
	if b.pages[n] == nil {
		b.pages[n] = new([pageSize]uint64)
	}
	return &b.pages[n][i%pageSize]
}

// claimed keeps the books of a claim by name, and takes from the lists what is out of date and in
// front: who replays a record for long may never take the next one.
func (l *Locals) claimed(h Local, old Word, found from) {
	before := old.Generation()
	if found == fromFresh {
		before = l.generation.first - 1
	}
	burned := int(h.Generation() - before - 1)
	l.counts.ended += burned
	if found == fromFresh || found == fromBurned {
		l.counts.claimedUnused += 1 + burned
	} else {
		l.counts.claimedUsed += 1 + burned
		l.counts.freed += burned
	}
	switch found {
	case fromFresh:
		if burned > 0 {
			l.burnt.add(h.Index())
		}
		l.byName.highest = max(l.byName.highest, uint64(h.Index()))
		for l.fresh <= l.limit && l.words.Get(uint32(l.fresh)) != 0 {
			l.fresh++
		}
	case fromBurned:
		l.burned.trim(l.outdated)
	case fromReturned:
		l.returned.trim(l.outdated)
	case fromFree:
		l.recycles.pass(l.outdated)
	case fromPending:
		l.counts.freed++ // it is never confirmed
		l.byName.pending++
	}
}

// pass moves the head over free names that gone says are claimed. Owner only.
func (r *recycles) pass(gone func(name entry) bool) {
	for r.head < r.confirmed && gone(r.at(r.head)) {
		r.head++
	}
	if r.head > r.fastEnd {
		r.slowNext()
	}
	r.unlink()
}

// takenPending counts and forgets the pending names before a position whose index was claimed by
// name. It comes before the confirm, after which reservers claim the others.
func (l *Locals) takenPending(position uint64) int {
	taken := 0
	for at := l.recycles.confirmed; at < position && l.byName.pending > 0; at++ {
		if l.outdated(l.recycles.at(at)) {
			taken++
			l.byName.pending--
		}
	}
	return taken
}

// oldestPending is the frame of the name that is pending for longest; 0 if none is.
func (l *Locals) oldestPending() uint64 {
	r := &l.recycles
	if l.byName.pending == 0 {
		return r.runs.oldest()
	}
	for at := r.confirmed; at < r.tail; at++ {
		if !l.outdated(r.at(at)) {
			return r.runs.at(at)
		}
	}
	return 0
}
