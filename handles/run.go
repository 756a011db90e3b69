package handles

// MoveRun is Move of entities at neighbouring places, the first of them at from, to neighbouring places from to on.
// It says how many it has moved: it ends at the first one that is not alive where it should be.
//
// Concurrency: the owner only; never waits; the caller keeps hs. Allocates: no.
func (l *Locals) MoveRun(hs []Local, from, to uint32) int {
	return l.changeRun(hs, Alive, from, to)
}

// KillRun is Kill of entities at neighbouring places, the first of them at place. It says how many it has killed: it
// ends at the first one that is not alive where it should be.
//
// Concurrency: the owner only; never waits; the caller keeps hs. Allocates: no.
func (l *Locals) KillRun(hs []Local, place uint32) int {
	return l.changeRun(hs, Dying, place, place)
}

// changeRun takes entities at neighbouring places to a state and to other ones. The places are known, hence what the
// words must be: each is one compare-and-swap, without a look before it.
func (l *Locals) changeRun(hs []Local, to State, from, at uint32) int {
	var p *Page
	last := ^uint32(0) // number of p
	for i, h := range hs {
		index := h.Index()
		if n := index >> pageBits; n != last {
			if int(n) >= len(l.words.pages) {
				return i
			}
			if p = l.words.pages[n].Load(); p == nil {
				return i
			}
			last = n
		}
		place := uint32(i)
		old, now := MakeWord(h.Generation(), Alive, from+place), MakeWord(h.Generation(), to, at+place)
		if h.Generation() == 0 || !p[index%pageSize].CompareAndSwap(uint64(old), uint64(now)) {
			return i
		}
	}
	return len(hs)
}
