package handles

import "fmt"

// Verify walks the whole space and says what contradicts its invariants. Of spaces beside each
// other it walks one.
//
// Concurrency: the owner only, while nobody else is inside; never waits. Allocates: a bit for each index that waits, and what an error needs.
func (l *Locals) Verify() error {
	if err := l.recycles.verify(); err != nil {
		return fmt.Errorf("locals: %w", err)
	}
	var waiting indexSet // free, pending or burned
	if err := l.verifyRecycles(&waiting); err != nil {
		return err
	}
	for i := range l.returned.len() {
		if e := l.returned.at(i); !l.outdated(e) {
			if err := l.verifyWaiting(Local(e), &waiting); err != nil {
				return err
			}
		}
	}
	stats := l.Stats()
	if got := waiting.count - stats.Pending; got != stats.Free {
		return fmt.Errorf("locals: %d free found, %d counted", got, stats.Free)
	}
	for i := range l.burned.len() {
		h := Local(l.burned.at(i))
		if l.outdated(entry(h)) {
			continue
		}
		if err := l.verifyWaiting(h, &waiting); err != nil {
			return err
		}
		if !l.burnt.has(h.Index()) {
			return fmt.Errorf("locals: %v is burned, and not marked", h)
		}
	}
	if l.returned.len() > 0 && !l.comeback {
		return fmt.Errorf("locals: %d taken back, and the fast path is on", l.returned.len())
	}
	return l.verifyWords(&waiting, stats)
}

// verifyRecycles checks the line of recycles, in which names that reservers claimed may still stand among the
// free ones, and names that Claim took anywhere.
func (l *Locals) verifyRecycles(waiting *indexSet) error {
	taken := 0
	for at := l.recycles.head; at < l.recycles.tail; at++ {
		h := Local(l.recycles.at(at))
		if at < l.recycles.confirmed && l.outdated(entry(h)) {
			continue
		}
		if taken < l.byName.pending && l.outdated(entry(h)) {
			taken++
			continue
		}
		if at < l.recycles.hint.Load() {
			return fmt.Errorf("locals: %v is free, and reservers pass it over", h)
		}
		if err := l.verifyWaiting(h, waiting); err != nil {
			return err
		}
	}
	if taken != l.byName.pending {
		return fmt.Errorf("locals: %d pending ones found claimed by name, %d counted", taken, l.byName.pending)
	}
	return nil
}

// verifyWaiting checks a name that waits for reuse.
func (l *Locals) verifyWaiting(h Local, waiting *indexSet) error {
	if w := l.Word(h.Index()); w.life() != life(h.Generation()-1, Dying) || waiting.has(h.Index()) {
		return fmt.Errorf("locals: %v waits for reuse, its word is %v %d, waiting twice %t",
			h, w.State(), w.Generation(), waiting.has(h.Index()))
	}
	waiting.add(h.Index())
	return nil
}

func (l *Locals) verifyWords(waiting *indexSet, stats SpaceStats) error {
	inUse := 0
	cursor := max(l.fresh, l.freshHint.Load())
	for p := l.wordsFrom >> pageBits; p < uint64(len(l.words.pages)) && p<<pageBits <= l.wordsTo; p++ {
		page := l.words.pages[p].Load()
		from, to := max(p<<pageBits, l.wordsFrom), min(p<<pageBits|(pageSize-1), l.wordsTo)
		if page == nil {
			if lowest := max(from, l.firstIndex); lowest <= to && lowest < cursor {
				return fmt.Errorf("locals: page %d is missing", p)
			}
			continue
		}
		for index := from; index <= to; index++ {
			used, err := l.verifyWord(index, Word(page[index%pageSize].Load()), waiting)
			if err != nil {
				return err
			}
			if used {
				inUse++
			}
		}
	}
	// A word does not tell the last generation's death from its retirement.
	if inUse != stats.Issued+stats.Retired {
		return fmt.Errorf("locals: %d issued or retired found, %d and %d counted", inUse, stats.Issued, stats.Retired)
	}
	return nil
}

// verifyWord checks one word, and says whether its index is issued or retired.
func (l *Locals) verifyWord(index uint64, w Word, waiting *indexSet) (bool, error) {
	switch {
	case w == 0 && index >= l.firstIndex && index < min(max(l.fresh, l.freshHint.Load()), l.limit+1):
		return false, fmt.Errorf("locals: index %d was passed over", index)
	case w == 0:
		return false, nil
	case index < l.firstIndex || index > l.limit:
		return false, fmt.Errorf("locals: index %d was issued, the bounds are %d and %d", index, l.firstIndex, l.limit)
	case index > uint64(l.Highest()):
		return false, fmt.Errorf("locals: index %d was issued, the highest is %d", index, l.Highest())
	case w.State() == Free || w.Generation() < l.generation.first || w.Generation() > l.generation.last:
		return false, fmt.Errorf("locals: index %d is %v with generation %d", index, w.State(), w.Generation())
	case w.State() == Reserved && w.Place() != NoPlace:
		return false, fmt.Errorf("locals: index %d is reserved, and has place %d", index, w.Place())
	}
	return !waiting.has(uint32(index)), nil
}
