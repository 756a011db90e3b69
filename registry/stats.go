package registry

import (
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// SpaceStats counts the indices of one handle space.
type SpaceStats = handles.SpaceStats

// Stats is a copy of the counters at the last boundary: a window, a phase or an Update.
//
// Live = sum of Archetypes.Live; Live + Idle + Tombstoned <= Allocated = sum of
// Archetypes.Allocated; Inactive is a part of Live.
type Stats struct {
	Frame               uint64 // the frame in progress or last run
	Live                int    // entities alive, active or not
	Inactive            int    // of these, those taken out of the world by SetActive
	Idle                int    // idle slots of pools, in none of the numbers but Allocated and the spaces
	Tombstoned          int    // entities dead whose slot is not reclaimed
	Allocated           int    // slots ever used: what loops walk over
	Chunks              int
	PublishSkips        uint64 // frames that were not published, because readers held all buffers there were
	Pinned              int    // frames that readers hold at this moment
	PendingDestructions int    // entities and reservations that wait for ProcessDeferredDestructions
	Global, Local, Net  SpaceStats
	Archetypes          []ArchetypeStats // those that have chunks, in order of creation
}

// ArchetypeStats counts one archetype.
type ArchetypeStats struct {
	Class           string
	Number          int // place in the order of creation, see Registry.Archetypes
	Components      int // number of its components
	Allocated, Live int
	Idle            int // slots of a pool
	Pooled          int // which of the pools it is, from 1 on; 0: none
	Chunks          int
	Bytes           int64 // of the memory set aside for its chunks
}

// Stats copies the counters. It shows the last boundary; with nobody inside the registry,
// and no engine running, it is exact.
//
// Concurrency: any goroutine; never waits for the owner. Allocates: the copy.
func (r *Registry) Stats() Stats {
	select {
	case r.owner <- struct{}{}: // nobody inside: bring the board up to date
		if !r.late() && r.outside.Load() != 0 {
			r.beginWriting(1, nil)
			r.drainOutside()
		}
		r.publish()
		<-r.owner
	default:
	}
	s := r.board.read()
	s.Frame = r.frame.Load()
	s.PublishSkips = r.frames.skips.Load()
	s.Pinned = r.frames.countPinned()
	return s
}

// Archetypes are the archetypes that Stats speaks of by their Number, with those that have no chunks. The caller
// does not change the slice. Of an archetype, only what any goroutine may ask can be asked.
//
// Concurrency: any goroutine; never waits. Allocates: the slice.
func (r *Registry) Archetypes() []*archetype.Archetype {
	buf := r.board.bufs[r.board.seq.Load()&1].Load()
	if buf == nil {
		return nil
	}
	list := make([]*archetype.Archetype, len(buf.archs))
	for i, label := range buf.archs {
		list[i] = label.archetype
	}
	return list
}

// Lives says how many local indices were ever claimed, by births and reservations, and how many claims have ended, up to the
// last boundary: for rates. Both only rise, also by what a failed callback has tried, which leaves no trace in Stats.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Registry) Lives() (claimed, ended uint64) {
	for {
		seq := r.board.seq.Load()
		buf := r.board.bufs[seq&1].Load()
		if buf == nil {
			return 0, 0
		}
		// Claims and ends are summed up in one word; what is issued is their difference.
		lives, issued := buf.words[statLives].Load(), buf.words[statSpaces+spaceWords].Load()
		if r.board.seq.Load() == seq {
			ended = (lives - min(lives, issued)) / 2
			return ended + issued, ended
		}
	}
}

const (
	statLive = iota
	statInactive
	statTombstoned
	statAllocated
	statChunks
	statPending
	statIdle
	statLives                              // claims and ends of claims
	statSpaces                             // three spaces of spaceWords words
	spaceWords = 5                         //
	statHeader = statSpaces + 3*spaceWords // then archWords words an archetype
	archWords  = 5                         //
)

// statBoard shows the counters to any goroutine. It has two buffers of atomic words; the
// owner writes the one that is not shown and then shows it by raising seq. A reader copies
// the shown one and, if seq has moved since, copies again: it waits for nobody, for while
// the owner rests seq does not move. Words that did not change are not stored.
type statBoard struct {
	seq  atomic.Uint64
	bufs [2]atomic.Pointer[statBuffer]
}

type statBuffer struct {
	words []atomic.Uint64
	archs []archLabel // written before the buffer is stored, never after
}

type archLabel struct {
	class      string
	components int
	pooled     int
	archetype  *archetype.Archetype
}

// statSum is everything that changes whenever any counter does. The last three only rise.
type statSum struct {
	inactive, dying, placeless     int
	idle, homed                    int
	global, local, net             SpaceStats
	version, lives, moves, settled uint64
}

// publish shows the present counters, if one has changed. Owner only.
func (r *Registry) publish() {
	r.showCounts()
	if r.collectRoom(); !r.hist.on {
		r.settleRoom()
	}
	r.locals.Publish()
	if r.outerFirst != 0 {
		r.outer.Publish()
	}
	local, lives := r.localStats()
	sum := statSum{
		inactive: r.inactive, dying: len(r.dying) - r.hist.processed, placeless: r.placeless,
		idle: r.pools.idle, homed: r.pools.homed,
		global: r.globalStats(local), local: local, net: r.nets.Stats(),
		version: r.store.Version(), lives: lives, moves: r.moves, settled: r.settled,
	}
	if sum == r.shown {
		return
	}
	r.shown = sum
	b := &r.board
	seq := b.seq.Load()
	buf := b.bufs[(seq+1)&1].Load()
	if buf == nil || r.boardVersion[(seq+1)&1] != sum.version {
		buf = r.newStatBuffer()
		r.boardVersion[(seq+1)&1] = sum.version
		b.bufs[(seq+1)&1].Store(buf)
	}
	allocated, chunks, live := 0, 0, 0
	for i, a := range r.store.Archetypes() {
		w := buf.words[statHeader+i*archWords:]
		n := len(a.Chunks())
		allocated += a.Allocated()
		chunks += n
		idle := r.idleIn(a)
		live += a.Live() - idle
		put(&w[0], a.Allocated())
		put(&w[1], a.Live()-idle)
		put(&w[2], n)
		put(&w[3], a.Bytes())
		put(&w[4], idle)
	}
	w := buf.words
	put(&w[statLive], live)
	put(&w[statInactive], sum.inactive-sum.idle)
	put(&w[statTombstoned], sum.dying-sum.placeless-sum.homed)
	put(&w[statAllocated], allocated)
	put(&w[statChunks], chunks)
	put(&w[statPending], sum.dying)
	put(&w[statIdle], sum.idle)
	put(&w[statLives], int(sum.lives))
	putSpace(w[statSpaces:], sum.global)
	putSpace(w[statSpaces+spaceWords:], sum.local)
	putSpace(w[statSpaces+2*spaceWords:], sum.net)
	b.seq.Store(seq + 1)
}

// newStatBuffer makes a buffer for the archetypes there are now.
func (r *Registry) newStatBuffer() *statBuffer {
	as := r.store.Archetypes()
	buf := &statBuffer{words: make([]atomic.Uint64, statHeader+len(as)*archWords)}
	for _, a := range as {
		buf.archs = append(buf.archs, archLabel{class: a.ClassName(), components: len(a.Components()), pooled: a.Pooled(), archetype: a})
	}
	return buf
}

func put(w *atomic.Uint64, n int) {
	if v := uint64(n); w.Load() != v {
		w.Store(v)
	}
}

func putSpace(w []atomic.Uint64, s SpaceStats) {
	put(&w[0], s.Issued)
	put(&w[1], s.Free)
	put(&w[2], s.Pending)
	put(&w[3], s.Retired)
	put(&w[4], int(s.OldestPending))
}

// read copies the shown buffer. Any goroutine.
func (b *statBoard) read() Stats {
	for {
		seq := b.seq.Load()
		buf := b.bufs[seq&1].Load()
		if buf == nil {
			return Stats{} // nothing was ever shown
		}
		s := buf.copy()
		if b.seq.Load() == seq {
			return s
		}
	}
}

func (buf *statBuffer) copy() Stats {
	n := func(i int) int { return int(buf.words[i].Load()) }
	space := func(i int) SpaceStats {
		return SpaceStats{Issued: n(i), Free: n(i + 1), Pending: n(i + 2), Retired: n(i + 3), OldestPending: uint64(n(i + 4))}
	}
	s := Stats{
		Live: n(statLive), Inactive: n(statInactive), Tombstoned: n(statTombstoned),
		Allocated: n(statAllocated), Chunks: n(statChunks), PendingDestructions: n(statPending), Idle: n(statIdle),
		Global: space(statSpaces), Local: space(statSpaces + spaceWords), Net: space(statSpaces + 2*spaceWords),
	}
	for i, label := range buf.archs {
		at := statHeader + i*archWords
		if n(at+2) == 0 {
			continue
		}
		s.Archetypes = append(s.Archetypes, ArchetypeStats{
			Class: label.class, Number: i, Components: label.components, Pooled: label.pooled, Idle: n(at + 4),
			Allocated: n(at), Live: n(at + 1), Chunks: n(at + 2), Bytes: int64(n(at + 3)),
		})
	}
	return s
}
