package handles

// LocalsState is the state of a space of local indices. Of spaces beside each other each has its own.
type LocalsState struct {
	First   uint32   // lowest index of the space
	Words   []uint64 // Word of each index from First to the highest that was ever claimed
	Retired uint64   // indices past their last generation

	// Names that wait: the next ones of their indices. Lists are in the order in which they were
	// filled: the first of Free is the next, the last of Returned and of Burned.
	Free          []Local  // ready for reuse
	Pending       []Local  // freed, and waiting for a confirm
	PendingFrames []uint64 // in which each pending one was freed
	Returned      []Local  // used before, their claim taken back
	Burned        []Local  // never used but by claims that were taken back

	Burnt []uint32 // indices in use that were else never used but by claims taken back, ascending
	Over  bool     // more were pending at the last Publish than may be
}

// State is the state of the space.
//
// Concurrency: the owner only, while nobody else is inside; never waits. Allocates: the state.
func (l *Locals) State() LocalsState { return l.StateIn(nil) }

// StateIn is State, with its Words in the memory of a slice if that is large enough.
//
// Concurrency: as State. Allocates: as State, but for what fits.
func (l *Locals) StateIn(words []uint64) LocalsState {
	s := LocalsState{First: uint32(l.firstIndex), Retired: uint64(l.counts.retired), Over: l.over.Load()}
	if highest := uint64(l.Highest()); highest >= l.firstIndex {
		n := highest - l.firstIndex + 1
		if uint64(cap(words)) < n {
			words = make([]uint64, n)
		}
		s.Words = words[:n]
		for i := range s.Words {
			s.Words[i] = l.words.Get(s.First + uint32(i))
		}
	}
	waiting := newStretch(s.First, len(s.Words))
	add := func(names *[]Local, e entry) bool {
		if l.outdated(e) {
			return false
		}
		h := Local(e)
		*names = append(*names, h)
		waiting.mark(h.Index())
		s.Words[h.Index()-s.First] |= NoPlace
		return true
	}
	r := &l.recycles
	for at := r.head; at < r.confirmed; at++ {
		add(&s.Free, r.at(at))
	}
	at := r.confirmed
	for _, run := range r.runs.runs[r.runs.from:] {
		for ; at < run.end; at++ {
			if add(&s.Pending, r.at(at)) {
				s.PendingFrames = append(s.PendingFrames, run.frame)
			}
		}
	}
	for i := range l.returned.len() {
		add(&s.Returned, l.returned.at(i))
	}
	for i := range l.burned.len() {
		add(&s.Burned, l.burned.at(i))
	}
	for _, index := range l.burnt.appendTo(nil) {
		if !waiting.has(index) {
			s.Burnt = append(s.Burnt, index)
		}
	}
	return s
}

// Restore puts a fresh space into a saved state: from then on it does what the saved one would have
// done, one that was made with the same LocalsConfig. Nothing changes if it fails.
//
// Errors: ErrNotFresh if anything was ever claimed here, ErrState if no space of this config can be in that state.
// Concurrency: the owner only, while nobody else is inside; never waits; the caller keeps the slices. Allocates:
// pages of words, and what the lists hold.
func (l *Locals) Restore(s LocalsState) error {
	if l.Lives() != 0 || l.recycles.tail != 0 {
		return ErrNotFresh
	}
	if err := l.checkState(s); err != nil {
		return err
	}
	issued, claims := 0, uint64(0)
	l.fresh = l.firstIndex + uint64(len(s.Words))
	for i, w := range s.Words {
		index := s.First + uint32(i)
		if w == 0 {
			l.fresh = min(l.fresh, uint64(index))
			continue
		}
		l.words.Ensure(index).Store(w)
		claims += uint64(Word(w).Generation() - l.generation.first + 1)
		issued++
	}
	l.freshHint.Store(l.fresh)
	if n := uint64(len(s.Words)); n > 0 {
		l.byName.highest = l.firstIndex + n - 1
	}
	l.recycles.restore(entries(s.Free), entries(s.Pending), s.PendingFrames)
	l.returned.set(entries(s.Returned))
	l.burned.set(entries(s.Burned))
	l.comeback = len(s.Returned) > 0
	for _, index := range s.Burnt {
		l.burnt.add(index)
	}
	for _, h := range s.Burned {
		l.burnt.add(h.Index())
	}
	l.over.Store(s.Over)
	issued -= len(s.Free) + len(s.Pending) + len(s.Returned) + len(s.Burned) + int(s.Retired)
	// Each claim has raised one generation. Whose claims they were is not to be seen from outside.
	l.counts = tally{
		claimedUnused: int(claims),
		ended:         int(claims) - issued,
		freed:         len(s.Free) + len(s.Returned),
		retired:       int(s.Retired),
	}
	return nil
}

// checkState says what is wrong with a state.
func (l *Locals) checkState(s LocalsState) error {
	if uint64(s.First) != l.firstIndex {
		return stateError("locals begin at %d, these at %d", l.firstIndex, s.First)
	}
	if room := max(l.limit+1, l.firstIndex) - l.firstIndex; uint64(len(s.Words)) > room {
		return stateError("%d words of locals, the space has %d", len(s.Words), room)
	}
	if n := len(s.Words); n > 0 && s.Words[n-1] == 0 {
		return stateError("the last of %d words of locals is empty", n)
	}
	for i, w := range s.Words {
		if w := Word(w); w != 0 && !l.possible(w) {
			return stateError("local %d is %v with generation %d and place %d", uint64(i)+l.firstIndex, w.State(), w.Generation(), w.Place())
		}
	}
	if len(s.PendingFrames) != len(s.Pending) {
		return stateError("%d pending locals, and frames of %d", len(s.Pending), len(s.PendingFrames))
	}
	marked := newStretch(s.First, len(s.Words))
	if err := l.checkLists(s, marked); err != nil {
		return err
	}
	if err := l.checkBurnt(s, marked); err != nil {
		return err
	}
	// A dead index without a place and past its last generation is retired, or will be once it is
	// freed: which of them makes no difference to the space.
	ended := uint64(0)
	for i, w := range s.Words {
		if Word(w) == MakeWord(l.generation.last, Dying, NoPlace) && !marked.has(s.First+uint32(i)) {
			ended++
		}
	}
	if s.Retired > ended {
		return stateError("%d retired locals, at most %d can be", s.Retired, ended)
	}
	if s.Over && l.most == 0 {
		return stateError("too many locals were pending, and any number may be")
	}
	return nil
}

// possible says whether an index may have a word that is not 0.
func (l *Locals) possible(w Word) bool {
	return w.State() != Free && w.Generation() >= l.generation.first && w.Generation() <= l.generation.last &&
		(w.State() != Reserved || w.Place() == NoPlace)
}

func (l *Locals) checkLists(s LocalsState, marked *stretch) error {
	for _, list := range []struct {
		what  string
		names []Local
	}{{"free locals", s.Free}, {"pending locals", s.Pending}, {"returned locals", s.Returned}, {"burned locals", s.Burned}} {
		for _, h := range list.names {
			if err := marked.markOnce(list.what, h.Index()); err != nil {
				return err
			}
			w := s.Words[h.Index()-s.First]
			if h.Generation() == 0 || h.Generation() > l.generation.last || Word(w) != MakeWord(h.Generation()-1, Dying, NoPlace) {
				return stateError("%s: %v waits, its word is %v %d with place %d",
					list.what, h, Word(w).State(), Word(w).Generation(), Word(w).Place())
			}
		}
	}
	return nil
}

func (l *Locals) checkBurnt(s LocalsState, marked *stretch) error {
	if err := checkAscending("burnt locals", s.Burnt); err != nil {
		return err
	}
	for _, index := range s.Burnt {
		if err := marked.markOnce("burnt locals", index); err != nil {
			return err
		}
		if g := Word(s.Words[index-s.First]).Generation(); g <= l.generation.first {
			return stateError("burnt locals: index %d has generation %d, none was burned", index, g)
		}
	}
	return nil
}

// entries is a list of names as a line and a stack take them.
func entries[N Local | Net](names []N) []entry {
	list := make([]entry, len(names))
	for i, name := range names {
		list[i] = entry(name)
	}
	return list
}
