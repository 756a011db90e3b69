package handles

import "sync/atomic"

// Names of places that are never given up, those of a pool's slots: consecutive indices, each of which
// goes from one generation to the next without ever waiting in a list.

// IssueRun claims n consecutive indices that were never used, for entities at consecutive places from place
// on, with one generation, and gives the first. Those of a run that was taken back come first, so that who fails again and
// again does not use the space up. False if there are no more so many in a row, and nothing has changed, but that
// some indices in the way may be burned: others have reserved among them meanwhile.
//
// Concurrency: the owner only; never waits. Allocates: pages of words.
func (l *Locals) IssueRun(n int, place uint32) (first Local, ok bool) {
	if n < 1 || l.overdue() {
		return 0, false
	}
	if first, ok := l.issueBurned(n, place); ok {
		return first, true
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

// issueBurned claims the n indices that were taken back last, if that was in descending order and their generations are equal.
func (l *Locals) issueBurned(n int, place uint32) (Local, bool) {
	top := l.burned.len()
	if top < n {
		return 0, false
	}
	first := Local(l.burned.at(top - 1))
	name := func(i int) Local { return NewLocal(first.Index()+uint32(i), first.Generation()) }
	for i := range n {
		if Local(l.burned.at(top-1-i)) != name(i) || l.outdated(entry(name(i))) {
			return 0, false
		}
	}
	for i := range n {
		got, ok := l.takeBack(&l.burned, Alive, place+uint32(i))
		if ok {
			l.counts.claimedUnused++
		}
		if got == name(i) {
			continue
		}
		if ok { // others have reserved among them meanwhile
			l.Unissue(got)
		}
		for i--; i >= 0; i-- {
			l.Unissue(name(i))
		}
		return 0, false
	}
	return first, true
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

// WordsFrom are the words of an index and of those after it, as many as lie together, for the owner of a run: Succeed takes
// one. They never move.
//
// Concurrency: any goroutine; never waits. Allocates: a page of words, if there is none.
func (l *Locals) WordsFrom(index uint32) []atomic.Uint64 {
	l.words.Ensure(index)
	return l.words.pages[index>>pageBits].Load()[index%pageSize:]
}

// Succeed is Kill and Renew at once, for h at a place, whose word is given: from its return h is dead, and its index has the
// name of a later generation, which is not beyond LastGeneration, at the same place. False, and nothing has changed, if h is
// not alive and there. The caller tells Succeeded, once for many.
//
// Concurrency: the owner only, beside others that Kill; never waits. Allocates: no.
func Succeed(word *atomic.Uint64, h Local, generation uint32, place uint32) bool {
	old := uint64(MakeWord(h.Generation(), Alive, place))
	return word.CompareAndSwap(old, old+uint64(generation-h.Generation())<<32)
}

// Succeeded notes that names were succeeded by others.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Succeeded(names int) {
	l.counts.claimedUnused += names
	l.counts.ended += names
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
