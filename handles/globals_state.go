package handles

// What a record index may be, in GlobalsState.
const (
	GlobalNew     uint8 = iota // never issued
	GlobalFirst                // issued, and never used else but by claims that were taken back
	GlobalAgain                // issued, and freed before
	GlobalFree                 // freed
	GlobalBurned               // never used but by claims that were taken back
	GlobalRetired              // past its last generation
)

// GlobalsState is the state of a space of record indices, of each from 1 to the highest that was ever
// issued: of index i at i-1.
type GlobalsState struct {
	Ended []uint64 // how many of its generations have ended; 1<<32 if it is retired
	Uses  []uint8  // what it is: GlobalNew and so on
}

// State is the state of the space.
//
// Concurrency: the owner only; never waits. Allocates: the state.
func (g *Globals) State() GlobalsState {
	var s GlobalsState
	for index := range g.used.all() {
		for uint32(len(s.Uses)) < index-1 {
			s.Ended, s.Uses = append(s.Ended, 0), append(s.Uses, GlobalNew)
		}
		s.Ended, s.Uses = append(s.Ended, g.ended.Get(index)), append(s.Uses, g.use(index))
	}
	return s
}

// use is what an index is that was ever issued.
func (g *Globals) use(index uint32) uint8 {
	switch {
	case g.ended.Get(index) == retiredMark:
		return GlobalRetired
	case g.free.Has(index):
		return GlobalFree
	case g.burned.Has(index):
		return GlobalBurned
	case g.settled.has(index):
		return GlobalAgain
	}
	return GlobalFirst
}

// Restore puts a fresh space into a saved state: from then on it does what the saved one would have
// done, one that was made with the same numbers. Nothing changes if it fails.
//
// Errors: ErrNotFresh if anything was ever issued here, ErrState if no such space can be in that state.
// Concurrency: the owner only; never waits; the caller keeps the slices. Allocates: pages of words and marks.
func (g *Globals) Restore(s GlobalsState) error {
	if g.used.count != 0 {
		return ErrNotFresh
	}
	if err := g.checkState(s); err != nil {
		return err
	}
	g.fresh = uint64(len(s.Uses)) + 1
	for i, use := range s.Uses {
		index := uint32(i) + 1
		if use == GlobalNew {
			g.fresh = min(g.fresh, uint64(index))
			continue
		}
		g.used.add(index)
		if s.Ended[i] != 0 {
			g.ended.Ensure(index).Store(s.Ended[i])
		}
		if use != GlobalFirst && use != GlobalBurned {
			g.settled.add(index)
		}
		switch use {
		case GlobalFirst, GlobalAgain:
			g.issued++
		case GlobalFree:
			g.free.Add(index)
		case GlobalBurned:
			g.burned.Add(index)
		case GlobalRetired:
			g.retired++
		}
	}
	return nil
}

// checkState says what is wrong with a state.
func (g *Globals) checkState(s GlobalsState) error {
	n := len(s.Uses)
	if len(s.Ended) != n || uint64(n) > uint64(g.limit) {
		return stateError("generations of %d globals, uses of %d, the limit is %d", len(s.Ended), n, g.limit)
	}
	if n > 0 && s.Uses[n-1] == GlobalNew {
		return stateError("the last of %d globals was never issued", n)
	}
	for i, use := range s.Uses {
		ended := s.Ended[i]
		ok := ended <= uint64(g.generation.last-g.generation.first)
		switch use {
		case GlobalNew:
			ok = ended == 0
		case GlobalFirst, GlobalAgain, GlobalFree:
		case GlobalBurned:
			ok = ok && ended > 0
		case GlobalRetired:
			ok = ended == retiredMark
		default:
			ok = false
		}
		if !ok {
			return stateError("global %d has use %d, and %d generations have ended", uint64(i)+1, use, ended)
		}
	}
	return nil
}
