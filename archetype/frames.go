package archetype

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/airlock-ecs/airlock/internal/planted"
)

// Storage goes from frame to frame. A storage frame is a number that only rises; what belongs to
// it lies, in each column, in the buffer numbered frame % FrameCount. While a frame is written it
// is the write frame. Close ends that, and from then on nobody writes it: Advance makes another
// frame the write frame, and first brings its buffers to the state of the last one. Which frame
// comes next is for the caller to say: it steps over those whose buffers are still wanted.
//
// A buffer was last written in a frame that the ring remembers. A column that has not changed
// after it is there already as it is now: it is not copied. So what has rested for as long as the
// ring is deep costs a look at its stamps.

// Rings: columns have 1 frame, 3, or those of the temporal ring.
const (
	ringCold uint8 = iota
	ringShort
	ringLong
	rings
)

// ring is what is known of the buffers that all columns of a number of frames have.
type ring struct {
	count uint64
	held  []uint64 // by buffer: the frame that it was last written in, 0 if it never was
	// The buffer of the write frame held the frame before, so a column that has not changed after
	// that needs no copy: see Advance and Close. Nothing has, when the buffer is the same as that of
	// the frame before.
	before uint64
	rows   uint64 // the same for stamps, which are written by Close
	at     uint64 // the buffer of the write frame; kept, as remainders were a quarter of a frame of two chunks at rest
	from   uint64 // the buffer that is copied from
}

const inPlace = math.MaxUint64

func ringCounts(temporalFrames int) [rings]uint64 {
	return [rings]uint64{1, volatileFrames, uint64(max(temporalFrames, 1))}
}

// ringOf is the ring of a tier's columns.
func ringOf(t Tier, temporalFrames int) uint8 {
	switch t.frames(temporalFrames) {
	case 1:
		return ringCold
	case volatileFrames:
		return ringShort
	}
	return ringLong
}

// firstFrame is the write frame of a new store.
const firstFrame = 1

func (s *Store) initRings() {
	s.frame = firstFrame
	s.copySome = s.copyShare
	for k, count := range ringCounts(s.temporalFrames) {
		s.rings[k] = ring{count: count, held: make([]uint64, count), at: s.frame % count}
		s.rings[k].held[s.rings[k].at] = s.frame
	}
}

// shiftsOf is how far the columns of a layout are, in the write frame, from their frame 0. They are worked
// out once for neighbours: doing so for each chunk took half of a frame in which nothing has changed
// (BenchmarkAdvance).
func (s *Store) shiftsOf(l *FieldLayout) []uintptr {
	if s.shifted != l {
		at := [4]uintptr{uintptr(s.rings[0].at), uintptr(s.rings[1].at), uintptr(s.rings[2].at)}
		s.shifts, s.shifted = l.shifts(s.shifts[:0], at), l
	}
	return s.shifts
}

func (s *Store) nextID() uint64 {
	s.ids++
	return s.ids
}

// Frame is the write frame.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (s *Store) Frame() uint64 { return s.frame }

// Holds says whether the buffers of a frame still have what was written in it: those with three
// frames, and those of the temporal ring.
//
// Concurrency: the registry's owner and its workers; never waits. Allocates: no.
func (s *Store) Holds(frame uint64) (short, long bool) {
	holds := func(r *ring) bool { return r.held[frame%r.count] == frame }
	return holds(&s.rings[ringShort]), s.temporalFrames > 0 && holds(&s.rings[ringLong])
}

// Close ends the writing of the write frame: its stamps are kept with it, for readers. The frame
// may be read by others as soon as they have learned of it, until Advance makes another frame of
// its buffers the write frame.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: once a chunk.
func (s *Store) Close() {
	s.findLateWrites()
	for _, a := range s.list {
		k := a.layout.rings[len(a.layout.rings)-1]
		r := &s.rings[k]
		row, before := int(r.at), r.rows
		for _, c := range a.chunks {
			if c.rows == nil {
				c.rows = make([]uint64, int(r.count)*(len(c.stamps)+2))
				a.reshape() // readers have it by its Ref
			} else if !c.changedAfter(before) {
				continue
			}
			c.saveStamps(row)
		}
	}
}

// saveStamps keeps the stamps with a frame.
func (c *Chunk) saveStamps(row int) {
	n := len(c.stamps)
	to := c.rows[row*(n+2):][: n+2 : n+2]
	copy(to, c.stamps)
	to[n], to[n+1] = c.touched, c.activeAt
}

// changedAfter says whether anything in the chunk has changed after a frame.
func (c *Chunk) changedAfter(frame uint64) bool {
	return max(c.touched, c.activeAt, c.marked) > frame
}

// Spread has several goroutines call run, with numbers from 0 up to n, and returns when all have.
type Spread func(n int, run func(worker int))

// Advance makes next the write frame: every column of more than one frame has there what it had in
// the write frame before. With workers above 1 the copying is spread over them when it is worth it.
//
// next is higher than the frame before. Nobody reads the buffers of next, but for those that it
// shares with the frame before: those go on as they are.
//
// Concurrency: the registry's owner with no workers about; never waits for readers. Allocates: no,
// but for growth.
func (s *Store) Advance(next uint64, workers int, spread Spread) {
	from := s.frame
	for k := range s.rings {
		r := &s.rings[k]
		r.at, r.from = next%r.count, r.at
		r.before, r.rows = r.held[r.at], r.held[r.at]
		if r.at == r.from {
			r.before, r.rows = inPlace, from
		}
		r.held[r.at] = next
	}
	s.frame, s.shifted = next, nil
	bytes := s.collect()
	switch {
	case len(s.dirty) == 0:
	case workers > 1 && bytes >= spreadBytes:
		s.copied.Store(0)
		spread(min(workers, (len(s.dirty)+mostInRun-1)/mostInRun), s.copySome)
	default:
		s.copyRuns(s.dirty)
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
}

// spreadBytes is how much there must be to copy for a second goroutine to be of use.
const spreadBytes = 1 << 20

// collect points all chunks to the write frame and lists those with a column to copy. It says
// how many bytes these may be.
func (s *Store) collect() (bytes int) {
	before := min(s.rings[ringShort].before, s.rings[ringLong].before)
	for _, a := range s.list {
		for _, c := range a.chunks {
			if c.changedAfter(before) {
				s.dirty = append(s.dirty, c)
				bytes += int(c.layout.ringed)
			}
			c.resolve(s)
		}
	}
	return bytes
}

// mostInRun is how many chunks are copied at one go: enough for long copies, few enough for several workers.
const mostInRun = 32

// copyShare copies chunks as one of several workers, which take runs of them one by one.
func (s *Store) copyShare(int) {
	for {
		end := int(s.copied.Add(mostInRun))
		if end-mostInRun >= len(s.dirty) {
			return
		}
		s.copyRuns(s.dirty[end-mostInRun : min(end, len(s.dirty))])
	}
}

// mostSlack is how many bytes of zeros are copied rather than begin another copy behind them.
const mostSlack = 1 << 10

// mostInPiece is how many bytes of several columns are copied in one piece. From a megabyte on, the runtime's copy writes past
// the caches, and the next frame but one would have found in them what it copies.
const mostInPiece = 1 << 19

// copyRuns copies chunks, neighbours in memory together: their parts of a column lie end to end, and
// a jump from column to column in each chunk costs a fifth more than one copy (BenchmarkAdvance).
func (s *Store) copyRuns(chunks []*Chunk) {
	for len(chunks) > 0 {
		first, n := chunks[0], 1
		for n < len(chunks) && n < mostInRun && chunks[n].extent == first.extent && chunks[n].place == first.place+n {
			n++
		}
		s.copyRun(chunks[:n])
		chunks = chunks[n:]
	}
}

// copyRun brings the columns of neighbours to the state they had in the frame that is copied. Neighbours that are all there
// are in their block are copied in one piece with the columns that follow: between what is used of one and the next, there
// are zeros in all frames.
func (s *Store) copyRun(run []*Chunk) {
	for _, c := range run {
		c.high = max(c.high, c.allocated)
	}
	l := run[0].layout
	slack := uintptr(0)
	if len(run) == l.places {
		slack = mostSlack
	}
	var piece struct {
		to, from unsafe.Pointer
		n        uintptr
	}
	for i, k := range l.rings {
		r := &s.rings[k]
		if k == ringCold || r.before == inPlace || planted.Enabled && planted.Is(planted.TierNotPublished) && k == ringShort {
			continue
		}
		behind := uintptr(r.from) * l.strides[i]
		if planted.Enabled && planted.Is(planted.RingOffByOne) {
			behind = uintptr((r.from+1)%r.count) * l.strides[i]
		}
		for j := 0; j < len(run); {
			c := run[j]
			j++
			if c.columnChangedAt(i) <= r.before {
				continue
			}
			// Sound: a frame of the column, as in BuildFieldTable.
			to, from := c.table[i], unsafe.Add(c.bases[i], behind)
			if l.fields[i].Pointers {
				cell := &c.archetype.cells[i]
				for at := uintptr(0); at < uintptr(c.high)*cell.size; at += cell.size {
					cell.Copy(unsafe.Add(to, at), unsafe.Add(from, at))
				}
				continue
			}
			n := c.used(i)
			for ; n%l.parts[i] == 0 && j < len(run) && run[j].columnChangedAt(i) > r.before; j++ {
				n += run[j].used(i) // sound: the part of the next chunk begins where this one's ends, in every frame
			}
			if gap := uintptr(to) - uintptr(piece.to) - piece.n; gap <= slack && piece.n+gap+n <= mostInPiece && uintptr(from)-uintptr(piece.from) == piece.n+gap {
				piece.n += gap + n
				continue
			}
			copyBytes(piece.to, piece.from, piece.n)
			piece.to, piece.from, piece.n = to, from, n
		}
	}
	copyBytes(piece.to, piece.from, piece.n)
}

// columnChangedAt is the stamp of the last change to any column, the plane and the entity column too.
func (c *Chunk) columnChangedAt(i int) uint64 {
	switch plane := len(c.layout.rings) - 2; {
	case i < plane:
		return max(c.touched, c.stamps[i])
	case i == plane:
		return max(c.touched, c.activeAt)
	}
	return c.touched
}

// used is how many bytes of a column without pointers are not zero for sure, in any frame.
func (c *Chunk) used(i int) uintptr {
	if i == len(c.layout.rings)-2 {
		return (uintptr(c.high) + 63) / 64 * 8
	}
	return uintptr(c.high) * c.layout.fields[i].ElementSize
}

// ghost is a place that no chunk has any more, but readers of older frames may.
type ghost struct {
	archetype *Archetype
	extent    *extent
	place     int
	since     uint64 // the first frame that does not have it
}

// bury keeps a place that a chunk has left for readers of older frames.
func (s *Store) bury(a *Archetype, e *extent, place int) {
	s.ghosts = append(s.ghosts, ghost{a, e, place, s.frame})
}

// Haunted says whether there is anything for Reap.
//
// Concurrency: the registry's owner; never waits. Allocates: no.
func (s *Store) Haunted() bool { return len(s.ghosts) > 0 }

// Reap gives the memory back that only frames before oldest had: the oldest frame that can be read.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (s *Store) Reap(oldest uint64) {
	if len(s.ghosts) == 0 {
		return
	}
	kept := s.ghosts[:0]
	for _, g := range s.ghosts {
		if g.since > oldest && !(planted.Enabled && planted.Is(planted.GhostReapedEarly)) {
			kept = append(kept, g)
			continue
		}
		g.extent.clear(g.place)
		g.archetype.vacatePlace(g.extent, g.place)
	}
	clear(s.ghosts[len(kept):])
	s.ghosts = kept
}

// Restore brings the columns of the temporal ring to what they were in a frame that is kept, but for the
// archetypes that are to be skipped. Slots are in use as they were then.
//
// Concurrency: the registry's owner with no workers about; never waits. Allocates: no.
func (s *Store) Restore(frame uint64, skip func(*Archetype) bool) {
	r := &s.rings[ringLong]
	for _, a := range s.list {
		if skip(a) {
			continue
		}
		for _, c := range a.chunks {
			for i := range len(c.stamps) - 2 {
				if c.layout.rings[i] != ringLong || max(c.touched, c.stamps[i]) <= frame || planted.Enabled && planted.Is(planted.RestoreSkipsColumn) && i > 0 {
					continue
				}
				c.Mark(i)
				// Sound as in copyFrom.
				src := unsafe.Add(c.bases[i], uintptr(frame%r.count)*c.layout.strides[i])
				copyBytes(c.table[i], src, uintptr(max(c.high, c.allocated))*c.layout.fields[i].ElementSize)
			}
		}
	}
}

// Same compares planes and entity columns that follow the temporal ring with those of a frame that is kept.
//
// Errors: one that names the first difference.
// Concurrency: the registry's owner with no workers about. Allocates: for the error.
func (s *Store) Same(frame uint64) error {
	for _, a := range s.list {
		if !a.Temporal() {
			continue
		}
		for _, c := range a.chunks {
			ref := Ref{layout: c.layout, bases: c.bases}
			if active := ref.Active(frame); !slices.Equal(active, c.active) {
				return fmt.Errorf("archetype %s: chunk %d: active %#x, was %#x", a, c.index, c.active, active)
			}
			if entities := ref.Entities(frame); !slices.Equal(entities, c.entities) {
				return fmt.Errorf("archetype %s: chunk %d: entities %v, were %v", a, c.index, c.entities, entities)
			}
		}
	}
	return nil
}
