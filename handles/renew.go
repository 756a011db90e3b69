package handles

// Names of places that are never given up, those of a pool's slots: consecutive indices, each of which
// goes from one generation to the next without ever waiting in a list.

// IssueRun claims n consecutive indices that were never used, for entities at consecutive places from place
// on, and gives the first. False if there are no more so many in a row, and nothing has changed, but that
// some indices in the way may be burned: others have reserved among them meanwhile.
//
// Concurrency: the owner only; never waits. Allocates: pages of words.
func (l *Locals) IssueRun(n int, place uint32) (first Local, ok bool) {
	if n < 1 || l.overdue() {
		return 0, false
	}
	from := max(l.fresh, l.freshHint.Load(), l.byName.highest+1)
	for from+uint64(n)-1 <= l.limit {
		got := 0
		for got < n && l.claimFresh(uint32(from)+uint32(got), Alive, place+uint32(got)) {
			got++
		}
		l.counts.claimedUnused += got
		if got == n {
			l.skipTo(from)
			l.fresh = from + uint64(n)
			raise(&l.freshHint, l.fresh)
			return NewLocal(uint32(from), l.generation.first), true
		}
		l.skipTo(from)
		for i := got - 1; i >= 0; i-- {
			l.Unissue(NewLocal(uint32(from)+uint32(i), l.generation.first))
		}
		from += uint64(got) + 1 // a reserver has that one
		l.fresh = from
	}
	return 0, false
}

// skipTo burns the indices between the cursor and another that nobody has claimed: those before a name that
// Claim took far ahead. Each is claimed and taken back.
func (l *Locals) skipTo(index uint64) {
	for l.fresh < index {
		i := uint32(l.fresh)
		l.fresh++
		if l.claimFresh(i, Alive, NoPlace) {
			l.counts.claimedUnused++
			l.Unissue(NewLocal(i, l.generation.first))
		}
	}
}

// Renew gives the index of h, which is dying and in no list, its next name, for an entity at place: the
// generation after h's, or after another one if that is higher. False if h was its last, or is not dying.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Renew(h Local, after uint32, place uint32) (Local, bool) {
	g := max(h.Generation(), after)
	if g >= l.generation.last {
		return 0, false
	}
	word := l.words.At(h.Index())
	if old := word.Load(); old>>placeBits != life(h.Generation(), Dying) || !word.CompareAndSwap(old, uint64(MakeWord(g+1, Alive, place))) {
		return 0, false
	}
	l.counts.claimedUnused++
	l.counts.ended++
	return NewLocal(h.Index(), g+1), true
}

// Succeed is Kill and Renew at once: from its return h is dead, and its index has the next name, at the same place. False if
// h is not alive, or its last, and nothing has changed then.
//
// Concurrency: the owner only, beside others that Kill; never waits. Allocates: no.
func (l *Locals) Succeed(h Local, after uint32) (Local, bool) {
	g := max(h.Generation(), after)
	word := l.words.At(h.Index())
	if word == nil || g >= l.generation.last {
		return 0, false
	}
	old := word.Load()
	if old>>placeBits != life(h.Generation(), Alive) || !word.CompareAndSwap(old, uint64(MakeWord(g+1, Alive, Word(old).Place()))) {
		return 0, false // others do not move it, so that they have killed it
	}
	l.counts.claimedUnused++
	l.counts.ended++
	return NewLocal(h.Index(), g+1), true
}

// Unrenew takes Renew back: h, which is the current name of its index and dying, is as if it had never been,
// and the index has an earlier generation, dying and without a place. False if h is something else.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Unrenew(h Local, generation uint32) bool {
	word := l.words.At(h.Index())
	old := word.Load()
	return old>>placeBits == life(h.Generation(), Dying) && generation <= h.Generation() &&
		word.CompareAndSwap(old, uint64(MakeWord(generation, Dying, NoPlace)))
}

// Skip burns the generations of a run's index from h's on, up to another: h, alive or dying, is as if it had been called by
// that one, and Unissue or Free go on from there. For an index that is given up, and has had further names that were taken back
// by Unrenew. It does nothing if h is not the current name of its index, or had a higher generation already.
//
// Concurrency: the owner only; never waits. Allocates: a page of marks now and then.
func (l *Locals) Skip(h Local, generation uint32) Local {
	word := l.words.At(h.Index())
	if word == nil || generation <= h.Generation() || generation > l.generation.last {
		return h
	}
	for {
		old := Word(word.Load())
		if old.Generation() != h.Generation() || old.State() == Free {
			return h
		}
		// Fails if h was killed meanwhile, or has another place: look again.
		if word.CompareAndSwap(uint64(old), uint64(MakeWord(generation, old.State(), old.Place()))) {
			burned := int(generation - h.Generation())
			l.counts.claimedUnused += burned
			l.counts.ended += burned
			l.burnt.add(h.Index()) // never used but by claims that are taken back
			return NewLocal(h.Index(), generation)
		}
	}
}
