package registry

import (
	"fmt"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/bitset"
)

// What packages above need to walk over everything there is: all chunks, who exists in them, and which of
// their contents have a name that is good for ever.

// Source is the registry that a token opens, and whether it shows a published frame.
//
// Errors: ErrExpired.
// Concurrency: as the token. Allocates: no.
func Source(a Access) (r *Registry, isPublished bool, err error) {
	r, _, err = opened(a)
	if err == ErrReadOnly {
		return a.tokenOf().r, true, nil
	}
	return r, false, err
}

// Lodger gives what a package above keeps with the registry under a key of its own type, for as long
// as the registry. The first call makes it; of several first calls each may make one, and all get the same.
//
// Panics: if the key cannot be compared.
// Concurrency: any goroutine; never waits. Allocates: what is made, once.
func (r *Registry) Lodger(key any, build func() any) any {
	if v, ok := r.lodgers.Load(key); ok {
		return v
	}
	v, _ := r.lodgers.LoadOrStore(key, build())
	return v
}

// CosmeticClass says whether a class, by its number, is kept out of hashes, saved state and rollback.
//
// Concurrency: any goroutine; waits for a registration at most. Allocates: no.
func (r *Registry) CosmeticClass(class int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return class >= 0 && class < len(r.classes) && r.classes[class].cosmetic
}

// EachChunk calls fn with every chunk that a token gives access to, archetype by archetype in the
// order of their creation, until fn says false. A window sees first who was destroyed from outside, as a
// loop in it does. What fn was given is valid until it returns; it changes nothing.
//
// Of an older frame, only archetypes with a Temporal component are left. If it had others, the answer is
// ErrNotPublished, and fn has not been called; those of cosmetic classes are left out.
//
// Errors: ErrExpired; ErrNotPublished, with the archetype.
// Concurrency: as the token; of a frame nobody may write what fn reads. Allocates: no, but for growth, and
// for more than 8 calls at one time.
func EachChunk(a Access, fn func(l *Look) bool) error { return eachChunk(a, false, fn) }

// EachTemporalChunk is EachChunk for the archetypes whose planes and entities follow the temporal ring: of
// these, older frames have everything that is state.
//
// Errors: ErrExpired.
// Concurrency: as EachChunk. Allocates: as EachChunk.
func EachTemporalChunk(a Access, fn func(l *Look) bool) error { return eachChunk(a, true, fn) }

func eachChunk(a Access, temporal bool, fn func(l *Look) bool) error {
	r, inWindow, err := opened(a)
	if err != nil && err != ErrReadOnly {
		return err
	}
	s := published(a)
	if s != nil {
		r = s.r
		if err := s.showsAll(); err != nil && !temporal {
			return err
		}
	}
	l := r.takeLook()
	defer l.giveBack()
	if s != nil {
		l.published = true
		l.eachPublished(s, temporal, fn)
		return nil
	}
	Iterate(a)
	defer Finish(a)
	l.begin(inWindow, !a.tokenOf().part)
	for _, arch := range r.store.Archetypes() {
		if temporal && !arch.Temporal() {
			continue
		}
		for _, l.Chunk = range arch.Chunks() {
			if !fn(l) {
				return nil
			}
		}
	}
	return nil
}

// showsAll says whether the frame has everything that is state.
func (s *Snapshot) showsAll() error {
	d := s.kept.dir
	for i, a := range d.Archetypes() {
		if len(d.Chunks(i)) > 0 && !s.shows(a) && !s.r.CosmeticClass(a.Class()) {
			return fmt.Errorf("of frame %d entities of %s are not left: %w", s.frame, a, ErrNotPublished)
		}
	}
	return nil
}

func (l *Look) eachPublished(s *Snapshot, temporal bool, fn func(l *Look) bool) {
	d := s.kept.dir
	for i, a := range d.Archetypes() {
		if !s.shows(a) || temporal && !a.Temporal() {
			continue
		}
		for _, ref := range d.Chunks(i) {
			ref.Show(&l.scratch, s.storage)
			l.Chunk = &l.scratch
			if !fn(l) {
				return
			}
		}
	}
}

// Look is a chunk as EachChunk shows it.
//
// Concurrency: whoever EachChunk called with it.
type Look struct {
	// Chunk is to be asked for its cells; in a published frame those are the frame's. Nothing is written
	// through it.
	Chunk *archetype.Chunk

	r         *Registry
	published bool
	settling  bool   // whether what the write frame has can be named at all
	now       uint64 // the write frame

	// Blocks of 64 cache indices in which somebody has come or gone that no stamp tells of.
	doubts   bitset.Set
	doubtful bool // there are some

	scratch archetype.Chunk // what Chunk is in a published frame
	busy    atomic.Bool     // somebody has it; see looks
}

// looks are kept with the registry, so that a walk allocates nothing.
type looks [8]Look

type looksKey struct{}

func newLooks() any { return new(looks) }

func (r *Registry) takeLook() *Look {
	all := r.Lodger(looksKey{}, newLooks).(*looks)
	for i := range all {
		if l := &all[i]; !l.busy.Load() && l.busy.CompareAndSwap(false, true) {
			l.r = r
			return l
		}
	}
	return &Look{r: r}
}

func (l *Look) giveBack() {
	l.scratch.Conceal()
	if l.doubtful {
		l.doubts.Clear()
	}
	l.Chunk, l.published, l.settling, l.doubtful = nil, false, false, false
	l.busy.Store(false)
}

// begin prepares for the write frame. No stamp tells of the death of an inactive entity: it has no bit to
// clear, and its cell stays until it is reclaimed or its frame is published.
//
// In a part of a parallel loop nothing is settled: what its workers kill is known when they are joined.
func (l *Look) begin(inWindow, settling bool) {
	r := l.r
	l.now, l.settling = r.store.Frame(), settling
	if !settling {
		return
	}
	r.wishMu.Lock()
	for _, g := range r.graves[min(r.frames.buried, len(r.graves)):] {
		if g.how&wasActive == 0 {
			l.doubt(g.place)
		}
	}
	r.wishMu.Unlock()
	if inWindow || r.late() {
		return // they were seen, or are operations of the next window
	}
	for i := uint32(r.outside.Load()); i != 0; i = uint32(r.nextDead.Get(i)) {
		l.doubt(r.locals.Word(i).Place())
	}
}

func (l *Look) doubt(place uint32) {
	if place != handles.NoPlace {
		l.doubts.Add(place >> 6)
		l.doubtful = true
	}
}

// doubted says whether somebody may have come or gone in the chunk without a stamp.
func (l *Look) doubted() bool {
	if !l.doubtful {
		return false
	}
	first := l.Chunk.Base() >> 6
	block, ok := l.doubts.Next(first)
	return ok && block < first+uint32(l.Chunk.Slots()>>6)
}

// Active says which of the 64 slots of a word have an active entity. One that was born while a loop runs
// counts as what it becomes when that ends.
//
// Concurrency: as the Look. Allocates: no.
func (l *Look) Active(w int) uint64 {
	c := l.Chunk
	active := atomic.LoadUint64(&c.Active()[w])
	if c.AnyBorn() {
		for slot := range uint32(64) {
			if c.Born(uint32(w)<<6 | slot) {
				active |= 1 << slot
			}
		}
	}
	return active
}

// Exists says which of the 64 slots of a word have an entity that exists in the frame, active or not.
//
// Concurrency: as the Look. Allocates: no.
func (l *Look) Exists(w int) uint64 {
	exists := l.Active(w)
	if exists == ^uint64(0) {
		return exists
	}
	c := l.Chunk
	for slot, h := range c.Entities()[w<<6 : w<<6+64] {
		if bit := uint64(1) << slot; h != 0 && exists&bit == 0 && (l.published || l.r.livesAt(h, c.Base()+uint32(w<<6+slot))) {
			exists |= bit
		}
	}
	return exists
}

// livesAt says whether locate finds h at a place whose cell has it.
func (r *Registry) livesAt(h handles.Local, place uint32) bool {
	w := r.locals.Word(h.Index())
	return w.Generation() == h.Generation() && w.Place() == place &&
		(w.State() == handles.Alive || w.State() == handles.Dying && r.late())
}

// Settled is the stamp of the content of a table slot's column, that of who exists for the plane and the
// entity column, and whether the content belongs to that stamp for good. If so, the chunk's ID, the table
// slot and the stamp name it: wherever they are met again, among published frames or among windows and
// frames, it is the same.
//
// In a published frame all is settled. In a window or a frame what was last written in an earlier one is.
//
// Concurrency: as the Look. Allocates: no.
func (l *Look) Settled(tableSlot int) (stamp uint64, ok bool) {
	c := l.Chunk
	if tableSlot < c.Layout().Len()-2 {
		stamp = c.ChangedAt(tableSlot)
		return stamp, l.published || l.settling && stamp < l.now
	}
	stamp = c.StructureChangedAt()
	return stamp, l.published || l.settling && stamp < l.now && !l.doubted()
}
