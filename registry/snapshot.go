package registry

import (
	"fmt"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// Snapshot is the right to read one published frame: what every entity was when that frame ended,
// whatever has become of it since. It is an Access: queries, Get, Peek, Has and the like read it, Set
// and whatever else writes is refused. Who acquires one releases it; Registry.Read does both.
//
// Cold components are not published: ErrNotPublished names the one that was asked for.
//
// Concurrency: any goroutine that has it, several at once, until one of them releases it.
type Snapshot struct {
	token
	frame   uint64
	storage uint64
	kept    *kept
	short   bool // the buffers of three frames are those of the frame, too
	late    bool // pinned as an older frame
}

// Acquire pins the newest published frame, the one that ended last, until Release: it is not
// overwritten. Neither the caller nor Logic waits. A pin costs: with rollback it shortens what can be
// gone back to by the frame that it holds, and while both frames that Logic could write next to are held
// no newer one is published (see Stats.PublishSkips). So read, and release.
//
// Errors: ErrNotPublished before the first frame has ended, and from a load to the end of its frame.
// Concurrency: any goroutine; never waits. Allocates: no, as testing.AllocsPerRun counts, some 80 bytes.
func (r *Registry) Acquire() (*Snapshot, error) {
	f := &r.frames
	if f.head.Load()>>pinBits == 0 {
		return nil, ErrNotPublished
	}
	head := f.head.Add(1)
	if head>>pinBits == 0 { // what was published is no more, see forget
		return nil, ErrNotPublished
	}
	k := &f.kept[head>>pinBits-1]
	return r.newSnapshot(k, k.at, true, false), nil
}

// AcquireAt pins an older frame. With a temporal ring that is one of the last TemporalFrames, less
// those that were lost to pins; of one older than the newest two, as a rule, only Temporal components
// can be read, and entities that have some.
//
// Errors: ErrTooOld for a frame that is not kept; ErrNotPublished for one that has not ended;
// ErrExhausted when readers hold so many older ones, all but four of the ring, that Logic could run out of
// buffers.
// Concurrency: any goroutine; never waits. Allocates: as Acquire.
func (r *Registry) AcquireAt(frame uint64) (*Snapshot, error) {
	f := &r.frames
	for i := range f.kept {
		k := &f.kept[i]
		s := k.storage.Load()
		if s == 0 || k.frame.Load() != frame {
			continue
		}
		if !f.pinLate(k) {
			return nil, fmt.Errorf("frame %d: readers hold too many older frames: %w", frame, ErrExhausted)
		}
		if k.storage.Load() != s || k.number != frame { // the owner wants its buffers, and may have looked before, or it is of no frame any more
			f.unpinLate(k)
			break
		}
		if planted.Enabled && planted.Is(planted.PinLost) {
			f.unpinLate(k)
		}
		// Without a ring there are the buffers of three only, and what storage says is said of them: short may be wanted for a
		// moment, until the owner has seen the pin.
		whole := r.cfg.TemporalFrames == 0 || f.short[s%3].Load() == s
		return r.newSnapshot(k, s, whole, true), nil
	}
	if frame < r.frame.Load() {
		return nil, ErrTooOld
	}
	return nil, ErrNotPublished
}

// pinLate pins a frame as an older one. False, and then it is not pinned, if too many are: with the
// two that can be pinned as the newest, the one being written and the last one there must be one left.
//
// It has room for the frame before it pins it: a reader that is put off in between holds nothing that
// Logic may be looking for.
func (f *frames) pinLate(k *kept) bool {
	for n := k.late.Load(); n > 0; n = k.late.Load() { // another reader's room is enough for both
		if k.late.CompareAndSwap(n, n+1) {
			return true
		}
	}
	if f.pinned.Add(1) > int64(len(f.kept)-min(len(f.kept)-1, 4)) {
		f.pinned.Add(-1)
		return false
	}
	if k.late.Add(1) != 1 { // one was faster
		f.pinned.Add(-1)
	}
	return true
}

func (f *frames) unpinLate(k *kept) {
	if k.late.Add(-1) == 0 {
		f.pinned.Add(-1)
	}
}

// Read acquires the newest published frame, runs fn on it and releases it, whatever fn does.
//
// Errors: ErrNotPublished before the first frame has ended, and then fn does not run; what fn returns.
// Concurrency: any goroutine; never waits. Allocates: as Acquire.
func (r *Registry) Read(fn func(*Snapshot) error) error {
	s, err := r.Acquire()
	if err != nil {
		return err
	}
	defer s.Release()
	return fn(s)
}

// Registry is the registry the snapshot reads.
//
// Panics: ErrExpired after Release.
// Concurrency: any goroutine that holds it. Allocates: no.
func (s *Snapshot) Registry() *Registry {
	if s == nil || !s.valid() {
		panic(ErrExpired)
	}
	return s.r
}

// FrameNumber is the published frame; it stays valid after Release.
//
// Concurrency: any goroutine that holds it. Allocates: no.
func (s *Snapshot) FrameNumber() uint64 { return s.frame }

// Release gives the frame back; a second call is harmless.
//
// Concurrency: any goroutine that holds it; never waits. Allocates: no.
func (s *Snapshot) Release() {
	if s == nil || s.r == nil || !s.closed.CompareAndSwap(false, true) {
		return
	}
	s.r.frames.holders.left(s)
	if s.late {
		s.r.frames.unpinLate(s.kept)
	} else {
		s.kept.released.Add(1)
	}
}

func (s *Snapshot) tokenOf() *token {
	if s == nil {
		return nil
	}
	return &s.token
}

func (s *Snapshot) snapshot() *Snapshot { return s }

// snapshotBlock is fresh snapshots from cut on, see tokenBlock. Any goroutine takes one by adding to
// cut; who finds none left makes the next block.
type snapshotBlock struct {
	cut       atomic.Int64
	snapshots [tokenBlock]Snapshot
}

func (r *Registry) newSnapshot(k *kept, storage uint64, short, late bool) *Snapshot {
	for {
		b := r.snapshots.Load()
		if b != nil {
			if i := b.cut.Add(1) - 1; i < tokenBlock {
				s := &b.snapshots[i]
				s.r, s.kind = r, snapshotToken
				s.frame, s.storage, s.kept, s.short, s.late = k.number, storage, k, short, late
				r.frames.holders.came(s)
				return s
			}
		}
		r.snapshots.CompareAndSwap(b, new(snapshotBlock))
	}
}

// published gives the snapshot that a is, nil if it is none, or one that was released.
func published(a Access) *Snapshot {
	if a == nil {
		return nil
	}
	if s := a.snapshot(); s != nil && s.valid() {
		return s
	}
	return nil
}

// shows says whether the snapshot has planes and entities of an archetype: an older frame has only
// those that follow a Temporal component.
func (s *Snapshot) shows(a *archetype.Archetype) bool {
	return s.short || a.Temporal()
}

// find gives the slot that h had in the frame.
func (s *Snapshot) find(h handles.Local) (*archetype.Ref, uint32, error) {
	if h == 0 {
		return nil, 0, ErrInvalidHandle
	}
	w := s.r.locals.Word(h.Index())
	hidden := false
	if w.Generation() == h.Generation() && w.Place() != handles.NoPlace {
		if ref, slot, ok := s.at(w.Place(), h); ok {
			return ref, slot, nil
		}
		ref := s.kept.dir.At(w.Place())
		hidden = ref != nil && !s.shows(ref.Archetype())
	}
	if place, ok := s.index().of(h); ok {
		if ref, slot, ok := s.at(place, h); ok {
			return ref, slot, nil
		}
	}
	if hidden { // where it is now, the frame has nothing left to look at
		return nil, 0, ErrNotPublished
	}
	if now := s.r.locals.Status(h); now != handles.Live {
		return nil, 0, notAlive(now)
	}
	return nil, 0, ErrNotSpawned // not yet, in that frame
}

// at says whether h had the slot at a place in the frame.
func (s *Snapshot) at(place uint32, h handles.Local) (*archetype.Ref, uint32, bool) {
	ref := s.kept.dir.At(place)
	if ref == nil || !s.shows(ref.Archetype()) {
		return nil, 0, false
	}
	slot := place - ref.Base()
	return ref, slot, ref.Entities(s.storage)[slot] == h
}

// placeIndex is where the entities of a frame are, by local index, in pages; 0 is nowhere, else it is
// the place plus one.
type placeIndex struct {
	pages []*[placePage]uint32
	short bool // the entities that only the buffers of three frames have are in it, see Snapshot.short
}

const placePage = 4096

func (x *placeIndex) of(h handles.Local) (uint32, bool) {
	i := int(h.Index())
	if i/placePage >= len(x.pages) || x.pages[i/placePage] == nil {
		return 0, false
	}
	place := x.pages[i/placePage][i%placePage]
	return place - 1, place != 0
}

// index is the index of the frame, made by the first that needs it.
func (s *Snapshot) index() *placeIndex {
	k := s.kept
	if x := k.places.Load(); x != nil && (x.short || !s.short) {
		return x
	}
	k.placesMu.Lock()
	defer k.placesMu.Unlock()
	if x := k.places.Load(); x != nil && (x.short || !s.short) {
		return x
	}
	x := &placeIndex{short: s.short}
	for i, a := range k.dir.Archetypes() {
		if !s.shows(a) {
			continue
		}
		for _, ref := range k.dir.Chunks(i) {
			for slot, h := range ref.Entities(s.storage) {
				if h != 0 {
					x.set(h.Index(), ref.Base()+uint32(slot)+1)
				}
			}
		}
	}
	k.places.Store(x)
	return x
}

func (x *placeIndex) set(i, place uint32) {
	page := int(i / placePage)
	for page >= len(x.pages) {
		x.pages = append(x.pages, nil)
	}
	if x.pages[page] == nil {
		x.pages[page] = new([placePage]uint32)
	}
	x.pages[page][i%placePage] = place
}

// column finds the column of a component in the frame.
func (s *Snapshot) column(comp *archetype.Component, ref *archetype.Ref) (int, error) {
	col := ref.Archetype().Column(comp.ID)
	switch {
	case !ref.Archetype().Has(comp.ID):
		return 0, ErrNoComponent
	case len(comp.Fields) == 0: // a tag
		return 0, nil
	}
	return col, s.readable(comp)
}

// readable says whether the frame has the columns of a component.
func (s *Snapshot) readable(comp *archetype.Component) error {
	switch {
	case comp.Tier == archetype.Cold:
		return fmt.Errorf("component %s is Cold: register it with InTier(Volatile): %w", comp.Name, ErrNotPublished)
	case !s.short && (comp.Tier == archetype.Volatile || s.r.cfg.TemporalFrames == 0):
		return fmt.Errorf("component %s is Volatile, and of frame %d only Temporal ones are left: %w", comp.Name, s.frame, ErrNotPublished)
	}
	return nil
}

// Frames gives packages above what a snapshot reads: the directory of the frame, and the storage frame
// to look at. nil if a is no snapshot.
//
// Panics: ErrExpired on a snapshot that was released.
// Concurrency: as the token. Allocates: no.
func Frames(a Access) *Snapshot {
	if a == nil {
		return nil
	}
	s := a.snapshot()
	if s != nil && !s.valid() {
		panic(ErrExpired)
	}
	return s
}

// Directory is what the store consisted of, for packages above.
//
// Concurrency: any goroutine that holds the snapshot. Allocates: no.
func (s *Snapshot) Directory() *archetype.Directory { return s.kept.dir }

// Storage is the storage frame, for packages above.
//
// Concurrency: any goroutine that holds the snapshot. Allocates: no.
func (s *Snapshot) Storage() uint64 { return s.storage }

// Shows says, for packages above, whether the frame has an archetype's planes and entities.
//
// Concurrency: any goroutine that holds the snapshot. Allocates: no.
func (s *Snapshot) Shows(a *archetype.Archetype) bool { return s.shows(a) }

// Readable says, for packages above, whether the frame has the columns of a component.
//
// Errors: ErrNotPublished, with the component.
// Concurrency: any goroutine that holds the snapshot. Allocates: for the error.
func (s *Snapshot) Readable(comp *archetype.Component) error { return s.readable(comp) }
