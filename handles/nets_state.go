package handles

import "math"

// NetsState is the state of a space of net handles.
type NetsState struct {
	Owner  uint8    // the process
	First  uint32   // lowest own index
	Words  []uint64 // generation:32 | local index:32 of each own index from First to the highest ever issued
	Deaths uint64   // running number of the next death that will be pending

	// Own names that wait: the next ones of their indices. Lists are in the order in which they were
	// filled: the first of Free is the next, the last of Returned and of Burned.
	Free          []Net    // ready for reuse
	Pending       []Net    // freed, and waiting for a confirm
	PendingFrames []uint64 // in which each pending one was freed
	Returned      []Net    // used before, their claim taken back
	Burned        []Net    // never used but by claims that were taken back

	Burnt []uint32 // own indices in use that were else never used but by claims taken back, ascending

	Foreign []ForeignNet // what is known of other owners, by owner and index, ascending
}

// ForeignNet is what is known of an index of another owner.
type ForeignNet struct {
	Name   Net    // with the generation last seen
	Local  uint32 // the local index it is bound to; 0 if it is not
	Before uint32 // the generation last seen before it was bound, for Unbind; 0 if there was none, or it is not bound
}

// State is the state of the space.
//
// Concurrency: the owner only; never waits. Allocates: the state.
func (n *Nets) State() NetsState {
	s := NetsState{Owner: n.owner, First: n.firstIndex, Deaths: n.Deaths()}
	for i := n.firstIndex; i < n.fresh; i++ {
		s.Words = append(s.Words, n.own.Get(i))
	}
	r := &n.recycles
	for at := r.head; at < r.confirmed; at++ {
		s.Free = append(s.Free, Net(r.at(at)))
	}
	at := r.confirmed
	for _, run := range r.runs.runs[r.runs.from:] {
		for ; at < run.end; at++ {
			s.Pending, s.PendingFrames = append(s.Pending, Net(r.at(at))), append(s.PendingFrames, run.frame)
		}
	}
	s.Returned = append(s.Returned, n.returned...)
	s.Burned = append(s.Burned, n.burned...)
	for _, index := range n.burnt.appendTo(nil) {
		if uint32(n.own.Get(index)) != 0 {
			s.Burnt = append(s.Burnt, index)
		}
	}
	for owner := range n.foreign {
		if f := n.foreign[owner].Load(); f != nil {
			s.Foreign = f.appendTo(s.Foreign, uint8(owner))
		}
	}
	return s
}

// appendTo appends what is known of an owner to a list.
func (f *foreignNets) appendTo(known []ForeignNet, owner uint8) []ForeignNet {
	for p := range f.words.pages {
		page := f.words.pages[p].Load()
		if page == nil {
			continue
		}
		for i := range page {
			w, index := page[i].Load(), uint32(p<<pageBits+i)
			if w == 0 {
				continue
			}
			k := ForeignNet{Name: NewNet(owner, index, uint32(w>>32)), Local: uint32(w)}
			if k.Local != 0 {
				k.Before = *f.seenBefore(index)
			}
			known = append(known, k)
		}
	}
	return known
}

// Restore puts a fresh space into a saved state: from then on it does what the saved one would have
// done, one of the same owner that was made with the same NetsConfig. Nothing changes if it fails.
//
// Errors: ErrNotFresh if anything was ever issued or bound here, ErrState if no such space can be in that state.
// Concurrency: the owner only; never waits; the caller keeps the slices. Allocates: pages of words, what the
// lists hold, and a table for each other owner.
func (n *Nets) Restore(s NetsState) error {
	if n.fresh != n.firstIndex || n.Deaths() != 0 || n.seenOthers() {
		return ErrNotFresh
	}
	if err := n.checkState(s); err != nil {
		return err
	}
	n.fresh = n.firstIndex + uint32(len(s.Words))
	for i, w := range s.Words {
		n.own.Ensure(s.First + uint32(i)).Store(w)
		if uint32(w) != 0 {
			n.issued++
		}
	}
	n.recycles.beginAt(s.Deaths - uint64(len(s.Free)) - uint64(len(s.Pending)))
	n.recycles.restore(entries(s.Free), entries(s.Pending), s.PendingFrames)
	n.returned = append(n.returned, s.Returned...)
	n.burned = append(n.burned, s.Burned...)
	for _, h := range s.Burned {
		n.burnt.add(h.Index())
	}
	for _, index := range s.Burnt {
		n.burnt.add(index)
	}
	n.free = len(s.Free) + len(s.Returned)
	n.retired = len(s.Words) - n.issued - n.free - len(s.Pending) - len(s.Burned)
	for _, k := range s.Foreign {
		f := n.others(k.Name.Owner())
		f.words.Ensure(k.Name.Index()).Store(netWord(k.Name.Generation(), k.Local))
		if k.Local != 0 {
			*f.seenBefore(k.Name.Index()) = k.Before
			n.bound++
		}
	}
	return nil
}

// seenOthers says whether a name of another owner was ever bound.
func (n *Nets) seenOthers() bool {
	for owner := range n.foreign {
		if n.foreign[owner].Load() != nil {
			return true
		}
	}
	return false
}

// checkState says what is wrong with a state.
func (n *Nets) checkState(s NetsState) error {
	if s.Owner != n.owner || s.First != n.firstIndex {
		return stateError("nets of owner %d begin at %d, these are of %d and begin at %d", n.owner, n.firstIndex, s.Owner, s.First)
	}
	if room := max(uint64(n.limit)+1, uint64(n.firstIndex)) - uint64(n.firstIndex); uint64(len(s.Words)) > room {
		return stateError("%d words of nets, the space has %d", len(s.Words), room)
	}
	for i, w := range s.Words {
		if g := uint32(w >> 32); g < n.generation.first || g > n.generation.last {
			return stateError("net index %d has generation %d", uint64(i)+uint64(s.First), g)
		}
	}
	if len(s.PendingFrames) != len(s.Pending) {
		return stateError("%d pending nets, and frames of %d", len(s.Pending), len(s.PendingFrames))
	}
	marked := newStretch(s.First, len(s.Words))
	if err := n.checkLists(s, marked); err != nil {
		return err
	}
	if waited := uint64(len(s.Free)) + uint64(len(s.Pending)); s.Deaths < waited || s.Deaths > math.MaxInt64 {
		return stateError("%d nets wait, and %d have died", waited, s.Deaths)
	}
	for i, w := range s.Words {
		if index := s.First + uint32(i); uint32(w) == 0 && uint32(w>>32) != n.generation.last && !marked.has(index) {
			return stateError("net index %d is in no list, and not bound", index)
		}
	}
	if err := n.checkBurnt(s, marked); err != nil {
		return err
	}
	return n.checkForeign(s.Foreign)
}

func (n *Nets) checkLists(s NetsState, marked *stretch) error {
	for _, list := range []struct {
		what  string
		names []Net
	}{{"free nets", s.Free}, {"pending nets", s.Pending}, {"returned nets", s.Returned}, {"burned nets", s.Burned}} {
		for _, h := range list.names {
			if err := marked.markOnce(list.what, h.Index()); err != nil {
				return err
			}
			w := s.Words[h.Index()-s.First]
			if h.Owner() != n.owner || h.Generation() == 0 || h.Generation() > n.generation.last || w != netWord(h.Generation()-1, 0) {
				return stateError("%s: %v waits, its word is %#x", list.what, h, w)
			}
		}
	}
	return nil
}

func (n *Nets) checkBurnt(s NetsState, marked *stretch) error {
	if err := checkAscending("burnt nets", s.Burnt); err != nil {
		return err
	}
	for _, index := range s.Burnt {
		if err := marked.markOnce("burnt nets", index); err != nil {
			return err
		}
		if w := s.Words[index-s.First]; uint32(w) == 0 || uint32(w>>32) <= n.generation.first {
			return stateError("burnt nets: index %d is not in use, or none was burned: %#x", index, w)
		}
	}
	return nil
}

func (n *Nets) checkForeign(known []ForeignNet) error {
	last := uint32(0)
	for _, k := range known {
		h := k.Name
		switch {
		case h.Owner() == n.owner || h.Index() == 0 || h.Generation() == 0:
			return stateError("foreign nets: %v cannot be bound", h)
		case h.Wire() <= last:
			return stateError("foreign nets: %v is not in order", h)
		case k.Before > h.Generation() || k.Local == 0 && k.Before != 0:
			return stateError("foreign nets: %v is bound to %d, before it was %d", h, k.Local, k.Before)
		}
		last = h.Wire()
	}
	return nil
}
