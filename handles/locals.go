package handles

import (
	"math"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// LocalsConfig sets the bounds of a space of local indices.
type LocalsConfig struct {
	Limit uint32 // highest index

	// MostPending is how many indices may be pending while others are claimed that were never
	// used; 0 means any number. It bounds what a space takes that nobody confirms.
	MostPending int

	FirstIndex uint32 // lowest index ever issued; 0 means 1
	Words      uint32 // highest index that the words reach, for spaces Beside this one; 0 means Limit

	// Knobs of the tests, so that the ends of the spaces come within reach.
	GenerationBits  uint8  // width of a generation; 0 means 32
	FirstGeneration uint32 // of an index that was never claimed; 0 means 1
}

// Locals is the space of local indices: it issues them, says of each what it is, and takes it
// back. The owner issues and frees; any goroutine reserves, kills and asks.
//
// The word of an index arbitrates. A claim is one compare-and-swap of it, from "not in use,
// generation g" to "alive" or "reserved, generation g+1", whatever list the index was found
// in: two that find the same index cannot both get it, and an entry that is out of date claims
// nothing. The lists (recycles, undone stacks, a cursor for fresh ones) only say where to look.
//
// Indices are looked for in this order, by owner and reservers alike: taken back and used
// before; freed and confirmed, oldest first; taken back and never used else; fresh.
//
// Invariant: each index that was ever claimed is in exactly one of these: issued, free,
// pending, retired, or burned (never used but by claims that were taken back). The generation
// in its word never falls, but by Unclaim.
type Locals struct {
	// Written by NewLocals and Beside only.
	words      Words  // its pages may be shared, see Beside
	limit      uint64 // wider than an index, so that a cursor can stand after the last one
	generation generations
	firstIndex uint64
	most       int // pending, see LocalsConfig

	// The words that Verify answers for: the stretch of the space, and what lies around it up to
	// the spaces beside it. Written by NewLocals and Beside only.
	wordsFrom, wordsTo uint64

	_ [cacheLine]byte

	// Owner only.
	fresh     uint64   // cursor: all indices below it were claimed
	counts    tally    // what the owner has done
	comeback  bool     // returned may hold names, so the fast path is off
	burnt     indexSet // never used but by claims that were taken back; claimed or in burned
	recycles  recycles // pending and free indices; ends with what other goroutines write
	byName    byName   // what Claim did and learned
	_         [cacheLine]byte
	returned  undone        // used before, their claim taken back. Owner pushes, any goroutine pops
	burned    undone        // never used else, their claim taken back. Owner pushes, any goroutine pops
	over      atomic.Bool   // overdue, as of the last Publish: for reservers
	freshHint atomic.Uint64 // all indices below it were claimed; raised by whoever saw that

	// What reservers have done: each adds after its claim; the owner adds it up in Stats, and the
	// sum is exact while nobody is inside Reserve.
	reservedUsed   atomic.Int64 // claims of free indices
	reservedUnused atomic.Int64 // claims of fresh and burned ones
}

// tally counts the owner's deeds.
type tally struct {
	claimedUsed   int // by Issue and Claim, of free indices
	claimedUnused int // by Issue and Claim, of fresh and burned ones
	ended         int // by Free and Unissue, and by Claim the generations it passes over
	freed         int // names that became free
	retired       int
}

// NewLocals makes an empty space.
//
// Panics: if a knob is out of range.
// Concurrency: any goroutine; never waits. Allocates: the directory of the words.
func NewLocals(c LocalsConfig) *Locals {
	if c.Words != 0 && c.Words < c.Limit {
		panic("handles: the words of a space end before its indices")
	}
	l := newLocals(c, newWords(max(c.Words, c.Limit)), newGenerations(c.GenerationBits, c.FirstGeneration))
	l.wordsTo = math.MaxUint64
	return l
}

func newLocals(c LocalsConfig, words Words, g generations) *Locals {
	first := uint64(max(c.FirstIndex, 1))
	l := &Locals{
		words:      words,
		limit:      uint64(c.Limit),
		generation: g,
		firstIndex: first,
		most:       c.MostPending,
		fresh:      first,
	}
	l.freshHint.Store(first)
	return l
}

// Word is all there is to know about an index; 0 if it was never claimed.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *Locals) Word(index uint32) Word { return Word(l.words.Get(index)) }

// WordAt is where the Word of an index that was claimed before is kept, for those who look at it
// again and again. It never moves. Nobody else writes it.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *Locals) WordAt(index uint32) *atomic.Uint64 { return l.words.At(index) }

// Pages are the words of all indices, PageSize to a page, for loops that look at many of them; nil for a page that nobody has
// needed so far. Nobody else writes them, and a page never moves. See Word.PlaceOf.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *Locals) Pages() []atomic.Pointer[Page] { return l.words.pages }

// Alive says whether h names an entity.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *Locals) Alive(h Local) bool {
	return l.words.Get(h.Index())>>placeBits == uint64(h.Generation())<<2|uint64(Alive)
}

// Status says what h means.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (l *Locals) Status(h Local) Status {
	w := l.Word(h.Index())
	switch {
	case h.Generation() < l.generation.first || h.Generation() > w.Generation():
		return Invalid
	case h.Generation() < w.Generation():
		return Stale
	case w.State() == Alive:
		return Live
	case w.State() == Reserved:
		return NotSpawned
	}
	return Stale
}

// Issue claims the next free index for an entity at place. False if there is none.
//
// Concurrency: the owner only; never waits. Allocates: a page of words, once for 4096 fresh indices.
func (l *Locals) Issue(place uint32) (Local, bool) {
	r := &l.recycles
	if r.head < r.fastEnd {
		name := Local(r.headSeg[r.head&segmentMask])
		r.head++
		// The page is there: the index was claimed before.
		word := &l.words.pages[name.Index()>>pageBits].Load()[name.Index()%pageSize]
		if old := word.Load(); old>>placeBits == life(name.Generation()-1, Dying) &&
			word.CompareAndSwap(old, uint64(MakeWord(name.Generation(), Alive, place))) {
			l.counts.claimedUsed++
			if planted.Enabled && planted.Is(planted.GenerationNotBumped) {
				word.Store(uint64(MakeWord(name.Generation()-1, Alive, place)))
				return name - 1, true
			}
			return name, true
		}
	}
	return l.issueSlow(place)
}

func (l *Locals) issueSlow(place uint32) (Local, bool) {
	if l.comeback || l.recycles.head != l.recycles.confirmed {
		if name, ok := l.nextUsed(place); ok {
			l.counts.claimedUsed++
			return name, true
		}
	}
	name, ok := l.nextUnused(place)
	if ok {
		l.counts.claimedUnused++
	}
	return name, ok
}

// nextUsed claims an index that was used before.
func (l *Locals) nextUsed(place uint32) (Local, bool) {
	if l.comeback {
		if name, ok := l.takeBack(&l.returned, Alive, place); ok {
			return name, true
		}
		l.comeback = false
	}
	for {
		e, ok := l.recycles.next()
		if !ok {
			return 0, false
		}
		if l.claim(Local(e), Alive, place) { // else a reserver was here
			return Local(e), true
		}
	}
}

// nextUnused claims an index that was never used, or only by claims that were taken back.
func (l *Locals) nextUnused(place uint32) (Local, bool) {
	if l.overdue() {
		return 0, false
	}
	if name, ok := l.takeBack(&l.burned, Alive, place); ok {
		return name, true
	}
	for l.fresh <= l.limit {
		index := uint32(l.fresh)
		l.fresh++
		if l.fresh%freshStep == 0 {
			raise(&l.freshHint, l.fresh)
		}
		if l.claimFresh(index, Alive, place) {
			return NewLocal(index, l.generation.first), true
		}
	}
	return 0, false
}

// freshStep is how many fresh indices the owner claims before it tells the reservers, which
// have to walk over them otherwise.
const freshStep = 1024

// Reserve claims the next free index for an entity that comes later. False if there is none.
//
// Concurrency: any goroutine; never waits. Allocates: a page of words, once for 4096 fresh indices.
func (l *Locals) Reserve() (Local, bool) {
	if name, ok := l.takeBack(&l.returned, Reserved, NoPlace); ok {
		l.reservedUsed.Add(1)
		return name, true
	}
	if e, ok := l.recycles.scan(func(e entry) bool { return l.claim(Local(e), Reserved, NoPlace) }); ok {
		l.reservedUsed.Add(1)
		return Local(e), true
	}
	if l.over.Load() {
		return 0, false
	}
	if name, ok := l.takeBack(&l.burned, Reserved, NoPlace); ok {
		l.reservedUnused.Add(1)
		return name, true
	}
	for index := l.freshHint.Load(); index <= l.limit; index++ {
		if l.claimFresh(uint32(index), Reserved, NoPlace) {
			raise(&l.freshHint, index+1)
			l.reservedUnused.Add(1)
			return NewLocal(uint32(index), l.generation.first), true
		}
	}
	raise(&l.freshHint, l.limit+1)
	return 0, false
}

// claim makes name the index's current one, if its generation is next and the index not in use.
func (l *Locals) claim(name Local, s State, place uint32) bool {
	word := l.words.At(name.Index())
	want := life(name.Generation()-1, Dying)
	for {
		old := word.Load()
		if old>>placeBits != want {
			return false
		}
		if word.CompareAndSwap(old, uint64(MakeWord(name.Generation(), s, place))) {
			return true
		}
	}
}

// takeBack claims the top name of a stack. What was popped is nobody else's, so that the claim
// succeeds, unless Claim took the index by name, or the owner revived a handle after it took it back.
func (l *Locals) takeBack(u *undone, s State, place uint32) (Local, bool) {
	for {
		e, ok := u.pop()
		if !ok {
			return 0, false
		}
		if l.claim(Local(e), s, place) {
			return Local(e), true
		}
		if check.Enabled && !l.outdated(e) {
			check.Failf("handles: %v was taken back, and its index is in use", Local(e))
		}
	}
}

func (l *Locals) claimFresh(index uint32, s State, place uint32) bool {
	word := l.words.Ensure(index)
	return word.Load() == 0 && word.CompareAndSwap(0, uint64(MakeWord(l.generation.first, s, place)))
}

// outdated says that a name in a list was claimed since it was put there, or a later one of its index.
func (l *Locals) outdated(e entry) bool {
	return l.Word(Local(e).Index()).Generation() >= Local(e).Generation()
}

// raise lifts a hint that never falls while others are inside.
func raise(hint *atomic.Uint64, to uint64) {
	for {
		old := hint.Load()
		if old >= to || hint.CompareAndSwap(old, to) {
			return
		}
	}
}

// Publish tells the reservers how far the owner has come, and the other way round, so that
// neither walks over what the other claimed. Called at boundaries; nothing depends on it but speed.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Publish() {
	l.recycles.publish()
	raise(&l.freshHint, l.fresh)
	l.fresh = max(l.fresh, min(l.freshHint.Load(), l.limit+1))
	if over := l.overdue(); over != l.over.Load() {
		l.over.Store(over)
	}
}

// overdue says that more indices are pending than may be while unused ones are claimed.
func (l *Locals) overdue() bool { return l.most > 0 && l.Pending() > l.most }

// Highest is the highest index that was ever claimed, for walks over all of them; exact while
// nobody is inside Reserve. 0 if there is none.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Highest() uint32 {
	if cursor := max(l.fresh, l.freshHint.Load()); cursor > l.firstIndex {
		return uint32(max(cursor-1, l.byName.highest))
	}
	return uint32(l.byName.highest)
}

// Pending is the number of indices that wait for a confirm.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Pending() int { return l.recycles.pending() - l.byName.pending }

// Stats counts the indices. It is exact while nobody is inside Reserve.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Stats() SpaceStats {
	used := l.counts.claimedUsed + int(l.reservedUsed.Load())
	return SpaceStats{
		Issued:        used + l.counts.claimedUnused + int(l.reservedUnused.Load()) - l.counts.ended,
		Free:          l.counts.freed - used,
		Pending:       l.Pending(),
		Retired:       l.counts.retired,
		OldestPending: l.oldestPending(),
	}
}

// Lives counts the claims and the ends of claims there ever were: it changes with each.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Lives() uint64 {
	c := &l.counts
	return uint64(c.claimedUsed+c.claimedUnused+c.ended) + uint64(l.reservedUsed.Load()+l.reservedUnused.Load())
}

// Confirm makes all pending indices free, and says how many.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) Confirm() int { return l.ConfirmThrough(math.MaxUint64) }

// ConfirmThrough makes the pending indices free that were freed in frames up to frame, and says how many.
//
// Concurrency: the owner only; never waits. Allocates: no.
func (l *Locals) ConfirmThrough(frame uint64) int {
	if planted.Enabled && planted.Is(planted.EarlyRecycle) {
		frame += min(1, math.MaxUint64-frame)
	}
	r := &l.recycles
	position := r.runs.through(frame, r.confirmed)
	taken := l.takenPending(position)
	n := r.confirmTo(position) - taken
	l.counts.freed += n
	return n
}
