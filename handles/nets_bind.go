package handles

import "github.com/airlock-ecs/airlock/internal/planted"

// foreignNets are the names of one other owner.
type foreignNets struct {
	words Words // stored by the owner of the space, loaded by any goroutine

	// Owner only: the generation that was last seen before the present binding, for Unbind.
	before map[uint32][]uint32 // by page
}

// Bind gives a local index the name that another owner issued. It refuses an own name, a zero
// index or generation, an index that is bound at present, and a generation older than the last one seen of
// that index: an old message must not bring the dead back. The same generation may come again,
// for an entity can leave this process's sight and return under its name.
//
// Concurrency: the owner only; never waits. Allocates: tables, once for an owner and once for 4096 indices.
func (n *Nets) Bind(h Net, local uint32) bool {
	if !n.Bindable(h) || local == 0 {
		return false
	}
	f := n.others(h.Owner())
	word := f.words.Ensure(h.Index())
	*f.seenBefore(h.Index()) = uint32(word.Load() >> 32)
	word.Store(netWord(h.Generation(), local))
	n.bound++
	return true
}

// Bindable says whether Bind would take a name, for who has something to do before others find it bound.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (n *Nets) Bindable(h Net) bool {
	if h.Owner() == n.owner || h.Index() == 0 || h.Generation() == 0 {
		return false
	}
	w := n.word(h.Owner(), h.Index())
	return uint32(w) == 0 && h.Generation() >= uint32(w>>32)
}

// others is the table of another owner, made if need be.
func (n *Nets) others(owner uint8) *foreignNets {
	f := n.foreign[owner].Load()
	if f == nil {
		f = &foreignNets{words: newWords(MaxNetIndex), before: map[uint32][]uint32{}}
		n.foreign[owner].Store(f)
	}
	return f
}

// Unbind takes Bind back: the name is unknown again, as it was before. False if h is not bound.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (n *Nets) Unbind(h Net) bool {
	if _, s := n.Local(h); s != Live || h.Owner() == n.owner {
		return false
	}
	if planted.Enabled && planted.Is(planted.UnbindRemembers) {
		n.unbind(h, h.Generation())
		return true
	}
	n.unbind(h, *n.foreign[h.Owner()].Load().seenBefore(h.Index()))
	return true
}

// unbind frees another owner's index, and leaves seen as the last generation seen of it.
func (n *Nets) unbind(h Net, seen uint32) {
	n.foreign[h.Owner()].Load().words.At(h.Index()).Store(netWord(seen, 0))
	n.bound--
}

func (f *foreignNets) seenBefore(index uint32) *uint32 {
	p := f.before[index>>pageBits]
	if p == nil {
		p = make([]uint32, pageSize)
		f.before[index>>pageBits] = p
	}
	return &p[index%pageSize]
}

// count is the number of indices that are bound.
func (f *foreignNets) count() int {
	bound := 0
	for p := range f.words.pages {
		page := f.words.pages[p].Load()
		if page == nil {
			continue
		}
		for i := range page {
			if uint32(page[i].Load()) != 0 {
				bound++
			}
		}
	}
	return bound
}
