package handles

import (
	"fmt"
	"sync/atomic"
)

const (
	segmentBits = 10
	segmentSize = 1 << segmentBits // names: 8 KiB
	segmentMask = segmentSize - 1

	firstSegments = 4 // entries of the first directory
)

// recycles is the line in which dead names wait for reuse, oldest first. An entry is the next
// name of an index, index and generation. Pending and free are two stretches of one line, so
// that a confirm only moves the border between them, however many names it confirms:
//
//	.. claimed | free ......... | pending ...... |
//	          head          confirmed          tail
//
// The owner reads and writes it; other goroutines find free names in it with scan. Between
// head and confirmed there may be names that scan found and somebody claimed: the owner learns
// that when it tries to claim them, and goes on.
//
// Positions count all names ever put in and never go back, but by rewind. They lie in segments of fixed size,
// so that entries can be written without a locked operation (an atomic store is one on amd64):
// a ring would be written over while a slow reader reads it.
//
// Invariant: head <= confirmed <= tail; the segments from head's to tail's are linked, and so are
// those from keep's, if names are kept.
type recycles struct {
	// Owner only.
	head      uint64              // next name to claim
	fastEnd   uint64              // Invariant: the names from head to fastEnd are free and lie in headSeg
	headSeg   *[segmentSize]entry // segment of head, valid while head < fastEnd
	confirmed uint64              // end of the free names
	tail      uint64              // end of the pending names
	tailSeg   *segment            // segment of tail, valid unless tail is at the start of one
	firstSeg  uint64              // number of the oldest linked segment
	spare     []*segment          // unlinked, to be written again once no reader is inside
	peak      uint64              // most segments ever linked at once: more are not kept
	runs      frameRuns           // the frames of the pending names
	keep      uint64              // if keeps: position from which on the names stay readable, see rewind
	keeps     bool

	_ [cacheLine]byte // what others write does not slow the owner's fields down

	// Any goroutine.
	published atomic.Uint64 // confirmed, stored by the owner after the entries it covers; scan loads it first
	hint      atomic.Uint64 // all names before it are claimed; raised by whoever saw that, lowered by rewind only
	readers   atomic.Int64  // goroutines inside scan; the owner writes a segment again only after it loaded 0
	directory atomic.Pointer[[]atomic.Pointer[segment]]
	// A power of two of links, segment number n at n modulo their count. The owner stores a link
	// before it publishes a position in that segment, and nil before it puts the segment to spare.
}

// cacheLine is two lines: the hardware fetches them in pairs.
const cacheLine = 128

// entry is a handle of the space that the line belongs to, Local or Net.
type entry uint64

type segment struct {
	number uint64 // written before it is linked; position >> segmentBits
	names  [segmentSize]entry
}

// add puts a name at the end of the line, pending since frame.
func (r *recycles) add(name entry, frame uint64) {
	at := r.tail & segmentMask
	if at == 0 {
		r.link()
	}
	r.tailSeg.names[at] = name
	r.tail++
	r.runs.add(frame, r.tail)
}

// next takes the oldest free name. Owner only; whether it can be claimed is for the caller to see.
func (r *recycles) next() (entry, bool) {
	if r.head == r.fastEnd && !r.refill() {
		return 0, false
	}
	name := r.headSeg[r.head&segmentMask]
	r.head++
	return name, true
}

// slowNext makes next look anew: what the owner claims from the fast stretch is not what it wants.
func (r *recycles) slowNext() { r.fastEnd = r.head }

// refill finds the next stretch of free names that lie in one segment.
func (r *recycles) refill() bool {
	r.unlink()
	if r.head == r.confirmed {
		return false
	}
	number := r.head >> segmentBits
	d := *r.directory.Load()
	r.headSeg = &d[number%uint64(len(d))].Load().names
	r.fastEnd = min(r.confirmed, (number+1)<<segmentBits)
	return true
}

// confirmThrough frees the names that were freed in frames up to frame, and says how many.
func (r *recycles) confirmThrough(frame uint64) int {
	return r.confirmTo(r.runs.through(frame, r.confirmed))
}

// confirmWhile frees pending names, oldest first, as long as ok says yes to their running number and frame.
func (r *recycles) confirmWhile(ok func(seq, frame uint64) bool) int {
	return r.confirmTo(r.runs.while(ok, r.confirmed))
}

func (r *recycles) confirmTo(position uint64) int {
	n := int(position - r.confirmed)
	if n > 0 {
		r.confirmed = position
		r.published.Store(position)
	}
	return n
}

func (r *recycles) pending() int { return int(r.tail - r.confirmed) }

// publish makes what others and the owner have claimed known to both.
func (r *recycles) publish() {
	hint := r.hint.Load()
	if hint > r.head { // all before it are claimed
		r.head = hint
		r.slowNext()
		r.unlink()
	} else if hint < r.head {
		r.hint.CompareAndSwap(hint, r.head) // fails only if somebody raised it
	}
}

// scan offers free names to claim, oldest first, until one is claimed. Any goroutine.
func (r *recycles) scan(claim func(name entry) bool) (entry, bool) {
	if r.hint.Load() >= r.published.Load() {
		return 0, false // also the common case of a space that never freed anything
	}
	r.readers.Add(1)
	name, ok := r.scanInside(claim)
	r.readers.Add(-1)
	return name, ok
}

func (r *recycles) scanInside(claim func(name entry) bool) (entry, bool) {
	hint := r.hint.Load()
	end := r.published.Load() // before the directory: then what it covers is linked, or already claimed
	d := *r.directory.Load()
	for at := hint; at < end; at++ {
		number := at >> segmentBits
		s := d[number%uint64(len(d))].Load()
		if s == nil || s.number != number { // the owner is through with it
			at |= segmentMask
			continue
		}
		if name := s.names[at&segmentMask]; claim(name) {
			r.hint.CompareAndSwap(hint, at+1) // fails if somebody else raised it: a low hint is only slower
			return name, true
		}
	}
	if hint < end {
		r.hint.CompareAndSwap(hint, end)
	}
	return 0, false
}

// link adds an empty segment at the tail.
func (r *recycles) link() {
	number := r.tail >> segmentBits
	if hint := r.hint.Load(); hint > r.head { // only others claim: the owner's head stayed behind
		r.publish()
	}
	r.unlink()
	links := r.directory.Load()
	if links == nil || number-r.firstSeg == uint64(len(*links)) {
		links = r.grow(links)
	}
	s := r.segment()
	s.number = number
	(*links)[number%uint64(len(*links))].Store(s)
	r.tailSeg = s
	r.peak = max(r.peak, number+1-r.firstSeg)
}

// grow doubles the directory. A reader that still has the old one is inside, so that no segment
// it can reach is written again; what is linked later it takes for claimed.
func (r *recycles) grow(old *[]atomic.Pointer[segment]) *[]atomic.Pointer[segment] {
	if old == nil {
		links := make([]atomic.Pointer[segment], firstSegments)
		r.directory.Store(&links)
		return &links
	}
	links := make([]atomic.Pointer[segment], 2*len(*old))
	for i := range uint64(len(*old)) {
		number := r.firstSeg + i
		links[number%uint64(len(links))].Store((*old)[number%uint64(len(*old))].Load())
	}
	r.directory.Store(&links)
	return &links
}

// segment is an empty segment: a spare one, if nobody can be reading it.
func (r *recycles) segment() *segment {
	// A reader that is inside since before the unlinking is counted; one that comes later finds
	// no link: the link's nil was stored before this load, and readers count before they load links.
	if n := len(r.spare); n > 0 && r.readers.Load() == 0 {
		s := r.spare[n-1]
		r.spare[n-1] = nil
		r.spare = r.spare[:n-1]
		return s
	}
	return new(segment)
}

// unlink retires the segments that head has left behind, as far as nobody goes back to them.
func (r *recycles) unlink() {
	needed := r.head
	if r.keeps {
		needed = min(needed, r.keep)
	}
	for ; r.firstSeg < needed>>segmentBits; r.firstSeg++ {
		d := *r.directory.Load()
		link := &d[r.firstSeg%uint64(len(d))]
		s := link.Load()
		link.Store(nil)
		if linked := (r.tail+segmentMask)>>segmentBits - r.firstSeg; linked+uint64(len(r.spare)) <= r.peak {
			r.spare = append(r.spare, s)
		}
	}
}

// beginAt lets the positions of a line that was never used begin with one, as if so many names had gone through it.
func (r *recycles) beginAt(position uint64) {
	r.head, r.confirmed, r.tail, r.fastEnd = position, position, position, position
	r.firstSeg = position >> segmentBits
	r.published.Store(position)
	r.hint.Store(position)
	if position&segmentMask != 0 {
		r.link()
	}
}

// at is the name at a position. Owner only.
func (r *recycles) at(position uint64) entry {
	d := *r.directory.Load()
	return d[position>>segmentBits%uint64(len(d))].Load().names[position&segmentMask]
}

// verify checks the line's own invariants. Owner only.
func (r *recycles) verify() error {
	if r.head > r.confirmed || r.confirmed > r.tail || r.fastEnd > r.confirmed {
		return fmt.Errorf("recycles: head %d, fast end %d, confirmed %d, tail %d", r.head, r.fastEnd, r.confirmed, r.tail)
	}
	if p, h := r.published.Load(), r.hint.Load(); p != r.confirmed || h > r.confirmed {
		return fmt.Errorf("recycles: published %d, hint %d, confirmed %d", p, h, r.confirmed)
	}
	if n := r.readers.Load(); n != 0 {
		return fmt.Errorf("recycles: %d readers inside", n)
	}
	from := r.head
	if r.keeps {
		from = min(from, max(r.keep, r.firstSeg<<segmentBits))
	}
	for n := from >> segmentBits; n<<segmentBits < r.tail; n++ {
		d := *r.directory.Load()
		if s := d[n%uint64(len(d))].Load(); s == nil || s.number != n {
			return fmt.Errorf("recycles: segment %d is not linked", n)
		}
	}
	return r.runs.verify(r.confirmed, r.tail)
}
