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
	for i := 0; i < len(hs); {
		first := hs[i]
		index, place := first.Index(), uint32(i)
		number := int(index >> pageBits)
		if first.Generation() == 0 || number >= len(l.words.pages) {
			return i
		}
		p := l.words.pages[number].Load()
		if p == nil {
			return i
		}
		words := p[index%pageSize:]
		words = words[:sequence(hs[i:], len(words))]
		// What was born together has consecutive names: then the words follow each other, as their places do, and so do
		// what they are and what they become.
		old, now := uint64(MakeWord(first.Generation(), Alive, from+place)), uint64(MakeWord(first.Generation(), to, at+place))
		for k := range words {
			if !words[k].CompareAndSwap(old+uint64(k), now+uint64(k)) {
				return i + k
			}
		}
		i += len(words)
	}
	return len(hs)
}

// nextIndex is what is between two names of one generation whose indices are neighbours.
const nextIndex = Local(1) << 32

// sequence is how many handles, from the front of hs and at most so many, have one generation and consecutive indices. At
// least one of them is there.
func sequence(hs []Local, most int) int {
	hs = hs[:min(len(hs), most)]
	want := hs[0]
	for i, h := range hs {
		if h != want {
			return i
		}
		want += nextIndex
	}
	return len(hs)
}
