package handles

// What a record index that was ever issued may be, in GlobalsState.
const (
	GlobalFirst   uint8 = iota + 1 // issued, and never used else but by claims that were taken back
	GlobalAgain                    // issued, and freed before
	GlobalFree                     // freed
	GlobalBurned                   // never used but by claims that were taken back
	GlobalRetired                  // past its last generation
)

// GlobalsState is the state of a space of record indices.
type GlobalsState struct {
	Runs  []GlobalRun // all indices that were ever issued, ascending; neighbours of one use are in one run
	Ended []GlobalEnd // those whose generations have ended, ascending
}

// GlobalRun is indices one after another that are the same.
type GlobalRun struct {
	First, Count uint32
	Use          uint8 // GlobalFirst and so on
}

// GlobalEnd says how many generations of an index have ended; 1<<32 if it is retired.
type GlobalEnd struct {
	Index uint32
	Times uint64
}

// State is the state of the space.
//
// Concurrency: the owner only; never waits. Allocates: the state.
func (g *Globals) State() GlobalsState {
	var s GlobalsState
	for index := range g.used.all() {
		use, ended := g.use(index)
		if n := len(s.Runs); n > 0 && s.Runs[n-1].Use == use && s.Runs[n-1].First+s.Runs[n-1].Count == index {
			s.Runs[n-1].Count++
		} else {
			s.Runs = append(s.Runs, GlobalRun{First: index, Count: 1, Use: use})
		}
		if ended != 0 {
			s.Ended = append(s.Ended, GlobalEnd{index, ended})
		}
	}
	return s
}

// use is what an index is that was ever issued, and how many of its generations have ended.
func (g *Globals) use(index uint32) (use uint8, ended uint64) {
	switch ended = g.ended.Get(index); {
	case ended == retiredMark:
		return GlobalRetired, ended
	case !g.settled.has(index):
		if g.burned.Has(index) {
			return GlobalBurned, ended
		}
		return GlobalFirst, ended
	case g.free.Has(index):
		return GlobalFree, ended
	}
	return GlobalAgain, ended
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
	for _, run := range s.Runs {
		if g.fresh == uint64(run.First) {
			g.fresh += uint64(run.Count)
		}
		g.used.addRun(run.First, run.Count)
		if run.Use != GlobalFirst && run.Use != GlobalBurned {
			g.settled.addRun(run.First, run.Count)
		}
		switch run.Use {
		case GlobalFirst, GlobalAgain:
			g.issued += int(run.Count)
		case GlobalRetired:
			g.retired += int(run.Count)
		default:
			for i := range run.Count {
				if run.Use == GlobalFree {
					g.free.Add(run.First + i)
				} else {
					g.burned.Add(run.First + i)
				}
			}
		}
	}
	for _, e := range s.Ended {
		g.ended.Ensure(e.Index).Store(e.Times)
	}
	return nil
}

// addRun adds neighbouring indices, none of which is in the set.
func (s *indexSet) addRun(first, n uint32) {
	for ; n > 0 && first%64 != 0; first, n = first+1, n-1 {
		s.add(first)
	}
	for ; n >= 64; first, n = first+64, n-64 {
		s.add(first) // makes the page
		s.pages[first>>pageBits][first%pageSize/64] = ^uint64(0)
		s.count += 63
	}
	for ; n > 0; first, n = first+1, n-1 {
		s.add(first)
	}
}

// checkState says what is wrong with a state.
func (g *Globals) checkState(s GlobalsState) error {
	ended, next, use := s.Ended, uint64(1), uint8(0) // what the run before ends with
	for i, run := range s.Runs {
		end := uint64(run.First) + uint64(run.Count)
		switch {
		case uint64(run.First) < next || run.Count == 0 || end > uint64(g.limit)+1:
			return stateError("run %d is of %d globals from %d, after %d, and the limit is %d", i, run.Count, run.First, next-1, g.limit)
		case run.Use < GlobalFirst || run.Use > GlobalRetired:
			return stateError("run %d of globals has use %d", i, run.Use)
		case i > 0 && uint64(run.First) == next && run.Use == use:
			return stateError("run %d of globals goes on as the one before it", i)
		}
		next, use = end, run.Use
		n := uint32(0)
		for ; len(ended) > 0 && uint64(ended[0].Index) < end; ended, n = ended[1:], n+1 {
			e := ended[0]
			possible := e.Times > 0 && e.Times <= uint64(g.generation.last-g.generation.first)
			if use == GlobalRetired {
				possible = e.Times == retiredMark
			}
			if e.Index < run.First || !possible {
				return stateError("global %d: %d generations have ended, in or before a run of use %d", e.Index, e.Times, use)
			}
			if len(ended) > 1 && ended[1].Index <= e.Index {
				return stateError("generations of globals: index %d follows %d", ended[1].Index, e.Index)
			}
		}
		if n != run.Count && (use == GlobalBurned || use == GlobalRetired) {
			return stateError("run %d of %d globals has use %d, and of %d generations have ended", i, run.Count, use, n)
		}
	}
	if len(ended) > 0 {
		return stateError("generations of global %d have ended, which was never issued", ended[0].Index)
	}
	return nil
}
