package handles

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// NetsConfig sets the bounds of a space of net indices.
type NetsConfig struct {
	Limit uint32 // highest index issued here; 0 means 1<<24 - 1

	// Knobs of the tests, so that the ends of the space come within reach.
	GenerationBits  uint8  // width of a generation; 0 means 32
	FirstGeneration uint32 // of an index that was never issued; 0 means 1
	FirstIndex      uint32 // lowest index ever issued; 0 means 1
}

// Nets is the space of net handles: those of this process are issued and freed like local ones,
// those of other processes are bound to local indices and unbound. The owner issues, binds and
// frees; any goroutine looks up.
//
// The word of an index is generation:32 | local index:32; a local index of 0 means that nobody
// is bound. Only the owner stores words; a reader that loads one sees a name and its binding
// together, but not what became of the local index since: it asks the space of those, and then
// loads the word again.
//
// Invariant: each own index that was ever issued is in exactly one of these: issued, free,
// pending, retired, or burned (never used but by claims that were taken back).
type Nets struct {
	// Written by NewNets only.
	owner      uint8
	limit      uint32
	firstIndex uint32
	generation generations
	own        LazyWords // 32 KiB of directory for the few processes that have net handles
	// The tables of other owners, each made by the owner of this space at the first Bind; the
	// store of the pointer publishes the table.
	foreign [256]atomic.Pointer[foreignNets]

	// Owner only.
	recycles recycles // pending and free indices; nobody scans it
	returned []Net    // used before, their claim taken back; the last is the next to be issued
	burned   []Net    // never used else, their claim taken back; the last is the next to be issued
	burnt    indexSet // as burned, but also while issued again
	fresh    uint32   // cursor: all indices below it were issued
	issued   int
	free     int // in returned, and free in recycles
	retired  int
	bound    int // foreign ones
}

// NewNets makes an empty space for a process.
//
// Panics: if a knob is out of range.
// Concurrency: any goroutine; never waits. Allocates: no more than the value itself.
func NewNets(owner uint8, c NetsConfig) *Nets {
	if c.Limit == 0 {
		c.Limit = MaxNetIndex
	}
	if c.Limit > MaxNetIndex {
		panic("handles: a net index has 24 bits")
	}
	first := max(c.FirstIndex, 1)
	return &Nets{
		owner:      owner,
		limit:      c.Limit,
		firstIndex: first,
		generation: newGenerations(c.GenerationBits, c.FirstGeneration),
		own:        LazyWords{limit: c.Limit},
		fresh:      first,
	}
}

func netWord(generation, local uint32) uint64 { return uint64(generation)<<32 | uint64(local) }

// words is the table of an owner; nil if there is none, as before the first own handle.
func (n *Nets) words(owner uint8) *Words {
	if owner == n.owner {
		return n.own.words.Load()
	}
	if f := n.foreign[owner].Load(); f != nil {
		return &f.words
	}
	return nil
}

func (n *Nets) word(owner uint8, index uint32) uint64 {
	if w := n.words(owner); w != nil {
		return w.Get(index)
	}
	return 0
}

// Local is the local index that h is bound to, and what h means: Live, Stale or Invalid. The
// index is 0 unless h is live.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (n *Nets) Local(h Net) (uint32, Status) {
	w := n.word(h.Owner(), h.Index())
	switch generation := uint32(w >> 32); {
	case h.Generation() == 0 || h.Generation() > generation:
		return 0, Invalid
	case h.Generation() < generation:
		if h.Owner() == n.owner && h.Generation() < n.generation.first {
			return 0, Invalid
		}
		return 0, Stale
	case uint32(w) == 0:
		return 0, Stale
	}
	return uint32(w), Live
}

// ByWire is the whole name that a short form stands for at the moment, and the local index it is
// bound to. False if nobody is bound.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (n *Nets) ByWire(wire uint32) (Net, uint32, bool) {
	short := Net(wire)
	w := n.word(short.Owner(), short.Index())
	if uint32(w) == 0 {
		return 0, 0, false
	}
	return short | Net(w>>32)<<32, uint32(w), true
}

// Issue names a local index: with the index taken back last, else the one free for longest, else a fresh
// one. False if there is none, or if local is 0.
//
// Concurrency: the owner only; never waits. Allocates: a page of words, once for 4096 fresh indices.
func (n *Nets) Issue(local uint32) (Net, bool) {
	if local == 0 {
		return 0, false
	}
	h, used, ok := n.next()
	if !ok {
		return 0, false
	}
	if used {
		n.free--
	}
	n.issued++
	n.own.Ensure(h.Index()).Store(netWord(h.Generation(), local))
	return h, true
}

func (n *Nets) next() (h Net, used, ok bool) {
	if last := len(n.returned) - 1; last >= 0 {
		h, n.returned = n.returned[last], n.returned[:last]
		return h, true, true
	}
	if e, ok := n.recycles.next(); ok {
		return Net(e), true, true
	}
	if last := len(n.burned) - 1; last >= 0 {
		h, n.burned = n.burned[last], n.burned[:last]
		return h, false, true
	}
	if n.fresh > n.limit {
		return 0, false, false
	}
	n.fresh++
	return NewNet(n.owner, n.fresh-1, n.generation.first), false, true
}

// Unissue takes Issue back: h is dead, its generation burned, and its index the next to be
// issued, so that claims taken back in reverse order are issued again in the same order. Stats are as before the
// claim, unless h had the last generation of its index, which is then retired. A name that is
// not live, or another owner's, is left alone.
//
// Concurrency: the owner only; never waits. Allocates: when more claims are taken back than ever before.
func (n *Nets) Unissue(h Net) {
	if !n.live(h) || h.Owner() != n.owner {
		return
	}
	unused := h.Generation() == n.generation.first || n.burnt.has(h.Index())
	switch more := n.end(h); {
	case !more:
		n.burnt.remove(h.Index())
	case unused:
		n.burnt.add(h.Index())
		n.burned = append(n.burned, nextNet(h))
	default:
		n.free++
		n.returned = append(n.returned, nextNet(h))
	}
}

// Free ends a name: one issued here goes to pending, stamped with the frame of the call, or is
// retired if its generation was the last; another owner's is unbound. A name that is not live is
// left alone.
//
// Concurrency: the owner only; never waits. Allocates: a segment, once for 1024 deaths, while more are pending than ever before.
func (n *Nets) Free(h Net, frame uint64) {
	if !n.live(h) {
		return
	}
	if h.Owner() != n.owner {
		n.unbind(h, h.Generation())
		return
	}
	if n.burnt.count > 0 {
		n.burnt.remove(h.Index())
	}
	if n.end(h) {
		if planted.Enabled && planted.Is(planted.NetGenerationNotBumped) {
			h -= 1 << 32
		}
		n.recycles.add(entry(nextNet(h)), frame)
	}
}

// live says whether h can be ended; a debug build stops at a caller that ends it twice.
func (n *Nets) live(h Net) bool {
	_, s := n.Local(h)
	if check.Enabled && s != Live {
		check.Failf("handles: %v is ended, and is %v", h, s)
	}
	return s == Live
}

// end unbinds an own name, and says whether its index has another generation.
func (n *Nets) end(h Net) bool {
	n.own.At(h.Index()).Store(netWord(h.Generation(), 0))
	n.issued--
	if h.Generation() >= n.generation.last {
		n.retired++
		return false
	}
	return true
}

func nextNet(h Net) Net { return h + 1<<32 }

// Returns says whether the index of an own name will be pending when the name is freed: it
// is not another owner's, and has a generation left.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (n *Nets) Returns(h Net) bool {
	return h != 0 && h.Owner() == n.owner && h.Generation() < n.generation.last
}

// Pending is the number of own indices that wait for a confirm.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (n *Nets) Pending() int { return n.recycles.pending() }

// Confirm makes all pending indices free, and says how many.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (n *Nets) Confirm() int { return n.confirmed(n.recycles.confirmThrough(math.MaxUint64)) }

// ConfirmThrough makes the pending indices free that were freed in frames up to frame, and says how many.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (n *Nets) ConfirmThrough(frame uint64) int {
	return n.confirmed(n.recycles.confirmThrough(frame))
}

// ConfirmWhile makes pending indices free, oldest first, as long as ok says yes to the running
// number of the death and its frame; it says how many. ok must not use the space.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (n *Nets) ConfirmWhile(ok func(seq, frame uint64) bool) int {
	return n.confirmed(n.recycles.confirmWhile(ok))
}

func (n *Nets) confirmed(count int) int {
	n.free += count
	return count
}

// Deaths is the running number of the next death that will be pending.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (n *Nets) Deaths() uint64 { return n.recycles.tail }

// Bound is the number of other owners' names that are bound.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (n *Nets) Bound() int { return n.bound }

// Stats counts the own indices.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (n *Nets) Stats() SpaceStats {
	return SpaceStats{
		Issued:        n.issued,
		Free:          n.free,
		Pending:       n.recycles.pending(),
		Retired:       n.retired,
		OldestPending: n.recycles.runs.oldest(),
	}
}

// Verify walks the whole space and says what contradicts its invariants.
//
// Concurrency: the owner only; never waits. Allocates: a bit for each index that waits, and what an error needs.
func (n *Nets) Verify() error {
	if err := n.recycles.verify(); err != nil {
		return fmt.Errorf("nets: %w", err)
	}
	var waiting indexSet // free, pending or burned
	check := func(h Net) error {
		w := n.own.Get(h.Index())
		if h.Owner() != n.owner || waiting.has(h.Index()) || w != netWord(h.Generation()-1, 0) {
			return fmt.Errorf("nets: %v waits for reuse, its word is %#x, waiting twice %t", h, w, waiting.has(h.Index()))
		}
		waiting.add(h.Index())
		return nil
	}
	for at := n.recycles.head; at < n.recycles.tail; at++ {
		if err := check(Net(n.recycles.at(at))); err != nil {
			return err
		}
	}
	for _, h := range n.returned {
		if err := check(h); err != nil {
			return err
		}
	}
	if got := waiting.count - n.recycles.pending(); got != n.free {
		return fmt.Errorf("nets: %d free found, %d counted", got, n.free)
	}
	for _, h := range n.burned {
		if err := check(h); err != nil {
			return err
		}
		if !n.burnt.has(h.Index()) {
			return fmt.Errorf("nets: %v is burned, and not marked", h)
		}
	}
	return n.verifyWords(&waiting)
}

func (n *Nets) verifyWords(waiting *indexSet) error {
	issued, retired, bound := 0, 0, 0
	for i := n.firstIndex; i < n.fresh; i++ {
		switch w := n.own.Get(i); {
		case uint32(w) != 0:
			issued++
		case !waiting.has(i) && uint32(w>>32) == n.generation.last:
			retired++
		case !waiting.has(i):
			return fmt.Errorf("nets: index %d is in no list, its word is %#x", i, w)
		}
	}
	for owner := range n.foreign {
		if f := n.foreign[owner].Load(); f != nil {
			bound += f.count()
		}
	}
	if issued != n.issued || retired != n.retired || bound != n.bound {
		return fmt.Errorf("nets: %d issued, %d retired, %d bound found; %d, %d, %d counted",
			issued, retired, bound, n.issued, n.retired, n.bound)
	}
	return nil
}
