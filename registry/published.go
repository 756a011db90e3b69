package registry

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// Published frames. When a frame ends, its storage frame is closed and shown to readers, and the
// owner goes on in other buffers. A reader pins the frame it reads: the owner never waits for it,
// but steps over its buffers.
//
// There are three buffers of what is Volatile, and of planes and entity columns that follow no
// Temporal component: one for the frame being written, one for the newest published one, one to
// spare. Before a frame is published the owner has made sure of buffers for the next one. Without
// any, because readers hold both others, the frame is not published, and the next one is written
// over it.
//
// Who wins between a reader that pins and the owner that wants the buffers:
//
//   - The newest frame and the number of pins it got are one word, head. A reader pins by adding
//     one to it, and learns in the same step what it has pinned. The owner replaces the word by
//     compare-and-swap: that it succeeded says how many pins there were. So there is no moment at
//     which a reader has chosen a frame and not pinned it.
//   - An older frame is pinned by counting up its late pins, then looking whether it is still kept;
//     the owner says first that it is not, then looks at the pins. One of the two sees the other.
//
// Happens-before: the owner closes the frame, then stores head (or storage); a reader loads it, then
// reads. A reader reads, then adds to released (or subtracts from late); the owner loads that, then
// writes the buffers.

// kept is a frame that is kept, in the buffers of one storage frame.
type kept struct {
	storage  atomic.Uint64 // the storage frame; 0: nobody can pin it any more, or yet
	frame    atomic.Uint64 // its number
	released atomic.Uint64 // pins as the newest frame that were given back
	late     atomic.Int64  // pins as an older frame
	at       uint64        // the storage frame, for who has pinned it; the owner writes it, number and dir, while nobody has
	number   uint64        // as frame, which is 0 if a state was loaded since
	taken    atomic.Uint64 // pins as the newest frame there were, once it is not the newest any more; the owner writes it
	dir      *archetype.Directory
	told     bool // owner: that it is held for long

	// Where each entity of the frame is, for those that are not found at the place they have now.
	// Made by the first reader that needs it; the owner forgets it when nobody pins the frame.
	placesMu sync.Mutex // guards the making of places; readers only
	places   atomic.Pointer[placeIndex]

	index uint64 // in frames.kept; never changes

	_ [64]byte // readers of one frame do not slow down those of another
}

// frames is what the registry keeps of its past.
type frames struct {
	head   atomic.Uint64 // newest published: its place in kept, plus one, and 48 bits of pins
	_      [120]byte     // readers write head
	kept   []kept
	pinned atomic.Int64     // frames with late pins, and readers that are about to pin one
	short  [3]atomic.Uint64 // by buffer of three: the storage frame that has it
	skips  atomic.Uint64    // frames that were not published
	apart  atomic.Bool      // storage frames have other numbers than the frames in them: some were stepped over
	recent [recentFrames]numbered

	holders holderBook

	// Owner only.
	begun     bool              // a frame is in progress, which ends with its publication
	closed    bool              // the write frame is closed: another one is to be made the write frame before anything is written
	nextShort uint64            // the buffer of three for it
	rehearsal bool              // frames are simulated again only to see whether they come out the same
	buried    int               // dying[:buried] have their entity cells cleared
	late      []*LateWriteError // to be told, in an ecsdebug build
}

// numbered is a frame's number and its storage frame, the latest of those that have the same remainder.
// The owner writes frame last, and 0 into it first, so that a reader that finds its frame before and after
// it has read storage has the storage frame of that one.
type numbered struct{ frame, storage atomic.Uint64 }

const (
	pinBits = 48
	pinMask = 1<<pinBits - 1

	// longHeld is after how many frames a pin is worth a word.
	longHeld = 600
	// recentFrames is of how many frames the storage frame is remembered, whether they are kept or not.
	recentFrames = 64
	// lookEvery is how often the owner looks for such pins, in frames; a power of two.
	lookEvery = 64
)

func (r *Registry) initFrames() {
	n := max(r.cfg.TemporalFrames, 3)
	r.frames.kept = make([]kept, n)
	for i := range r.frames.kept {
		r.frames.kept[i].index = uint64(i)
	}
	s := r.store.Frame()
	r.frames.short[s%3].Store(s)
}

// of is where a storage frame is kept.
func (f *frames) of(storage uint64) *kept { return &f.kept[storage%uint64(len(f.kept))] }

// newest is the newest published frame, nil before the first, and the pins that it has got so far; without one,
// those of readers that got nothing.
func (f *frames) newest() (k *kept, pins uint64) {
	head := f.head.Load()
	if head>>pinBits == 0 {
		return nil, head
	}
	return &f.kept[head>>pinBits-1], head & pinMask
}

// pins are the pins that a frame got as the newest one, if newest is that and got those.
func (k *kept) pins(newest *kept, pins uint64) uint64 {
	if k == newest {
		return pins
	}
	return k.taken.Load()
}

// countPinned is how many frames readers have. Any goroutine; exact while nobody acquires or releases.
func (f *frames) countPinned() (n int) {
	newest, pins := f.newest()
	for i := range f.kept {
		if k := &f.kept[i]; k.pinned(k.pins(newest, pins)) {
			n++
		}
	}
	return n
}

// pinned says whether a reader has the frame; it is not the newest, or pins are those that it got as such.
func (k *kept) pinned(pins uint64) bool {
	return pins != k.released.Load() || k.late.Load() != 0
}

// publishFrame closes the write frame and shows it to readers. From then on it is not written: what
// writes next begins the next one. It does nothing if no frame has begun since the last one was
// published. Owner only, with no workers about.
func (r *Registry) publishFrame() {
	f := &r.frames
	defer r.tellLateWrites()
	if !f.begun {
		return
	}
	now, present := r.frame.Load(), r.hist.present.Load()
	if now > present { // and not a frame that is simulated again: what changes in it has changed after it
		f.number(now, r.store.Frame())
		r.recorded.begin(now + 1)
	}
	f.begun = false
	k := r.closeFrame()
	s := k.at
	// Readers need not see frames of the past once more, but what the present has become.
	shown := (now > present || now == present && !f.rehearsal) && r.showNewest(s)
	if !shown {
		if now > present {
			f.skips.Add(1)
		}
		f.nextShort = s % 3
		f.short[s%3].Store(wanted)
	}
	if shown || r.cfg.TemporalFrames > 0 {
		k.storage.Store(s)
	}
	if r.frame.Load()%lookEvery == 0 {
		r.tellLongHeld()
	}
}

// closeFrame closes the write frame and keeps it. Owner only, with no workers about.
func (r *Registry) closeFrame() *kept {
	r.buryCells()
	r.store.Close()
	r.noteLateWrites()
	s := r.store.Frame()
	k := r.frames.of(s) // nobody pins it: its buffers were chosen for that
	k.frame.Store(r.frame.Load())
	k.released.Store(0)
	k.taken.Store(0)
	k.at, k.number, k.dir, k.told = s, r.frame.Load(), r.store.Directory(), false
	k.places.Store(nil)
	r.frames.closed = true
	r.markFrame(s)
	return k
}

// after is the first storage frame after s that has the buffer b, of as many as there are kept, and the
// buffer short of three. The numbers of buffers have no common divisor, or are both three.
func (f *frames) after(s, b, short uint64) uint64 {
	n := uint64(len(f.kept))
	next := s + 1 + (b+n-(s+1)%n)%n
	for next%3 != short {
		next += n
	}
	return next
}

// chooseBuffer takes the buffer of the temporal ring that has rested longest from those that no reader
// has, nor can have as the newest frame. There is one: AcquireAt sees to it. While readers let go of one
// frame and pin another, a walk along the ring may meet each where it is, and is repeated.
func (r *Registry) chooseBuffer(s uint64) uint64 {
	f := &r.frames
	for {
		best := (*kept)(nil)
		newest, pins := f.newest()
		for i := range f.kept {
			k := &f.kept[i]
			if k == f.of(s) || k == newest || k.pinned(k.pins(newest, pins)) || best != nil && best.storage.Load() <= k.storage.Load() {
				continue
			}
			best = k
		}
		if best == nil {
			continue
		}
		if was := best.storage.Swap(0); was == 0 || best.late.Load() == 0 {
			return best.index
		} else {
			best.storage.Store(was) // a reader was first
		}
	}
}

// wanted stands in frames.short for a frame to come.
const wanted = math.MaxUint64

// showNewest makes s the newest published frame, if there is a buffer of three for the next frame that
// no reader has, and takes that.
func (r *Registry) showNewest(s uint64) bool {
	return r.showBefore(s, (s+1)%3) || r.showBefore(s, (s+2)%3)
}

// showBefore is showNewest with a buffer for the next frame. False if a reader has the frame in it.
func (r *Registry) showBefore(s, short uint64) bool {
	f := &r.frames
	had := f.short[short].Load()
	holder := f.of(had)
	if had == 0 || had == wanted || holder.at != had { // one that was gone back over has no storage frame, but perhaps readers
		holder = nil // nobody can have it
	}
	// First nobody can pin it with this buffer any more, then it is asked whether somebody did.
	f.short[short].Store(wanted)
	whole := holder != nil && r.cfg.TemporalFrames == 0 // it has no other buffers
	if whole {
		holder.storage.Store(0)
	}
	for {
		newest, pins := f.newest()
		if holder != nil {
			if holder.pinned(holder.pins(newest, pins)) {
				f.short[short].Store(had)
				if whole {
					holder.storage.Store(had)
				}
				return false
			}
		}
		head := pins
		if newest != nil {
			head |= f.place(newest) << pinBits
		}
		if f.head.CompareAndSwap(head, f.place(f.of(s))<<pinBits) {
			if newest != nil {
				newest.taken.Store(pins)
			}
			f.nextShort = short
			return true
		}
	}
}

// place is what head says of a frame.
func (f *frames) place(k *kept) uint64 { return k.index + 1 }

// number notes the storage frame of a frame that ends. Owner only.
func (f *frames) number(frame, storage uint64) {
	n := &f.recent[frame%recentFrames]
	n.frame.Store(0)
	n.storage.Store(storage)
	n.frame.Store(frame)
}

// Since is the stamp that whatever changed after a frame is above, for packages above. For a frame of
// long ago it is one that more may be above.
//
// Concurrency: as the token. Allocates: no.
func Since(a Access, frame uint64) uint64 {
	r := a.tokenOf().r
	f := &r.frames
	if !f.apart.Load() {
		return frame
	}
	last := r.frame.Load()
	if s := a.snapshot(); s != nil {
		last = s.frame
	} else if !f.begun {
		last++ // between frames what is written is the next one's
	}
	if frame >= last {
		return math.MaxUint64 // nothing has
	}
	n := &f.recent[frame%recentFrames]
	if n.frame.Load() == frame {
		if s := n.storage.Load(); n.frame.Load() == frame {
			return s
		}
	}
	return frame // storage frames are never behind
}

// beginWriting makes the next frame the write frame, if the last one is closed. Owner only, before
// anything is written.
func (r *Registry) beginWriting(workers int, spread archetype.Spread) {
	f := &r.frames
	if !f.closed {
		return
	}
	f.closed = false
	s, b := r.store.Frame(), f.nextShort
	if r.cfg.TemporalFrames > 0 {
		b = r.chooseBuffer(s)
	}
	next := f.after(s, b, f.nextShort)
	f.short[f.nextShort].Store(next)
	if next != r.frame.Load()+1 && !f.apart.Load() {
		f.apart.Store(true)
	}
	r.store.Advance(next, workers, spread)
	if r.store.Haunted() {
		oldest := next
		newest, pins := f.newest()
		for i := range f.kept {
			if k := &f.kept[i]; k.storage.Load() != 0 || k.pinned(k.pins(newest, pins)) || k == newest {
				oldest = min(oldest, k.at)
			}
		}
		r.store.Reap(oldest)
	}
}

// buryCells takes those who have died since the last time out of the entity column: in the frame that
// is about to be closed they are dead, and their slots belong to nobody; but those of pools have others by now. Owner only.
func (r *Registry) buryCells() {
	if planted.Enabled && planted.Is(planted.DeadInFrame) {
		return
	}
	for i := r.frames.buried; i < len(r.dying); i++ {
		place := r.graves[i].place
		if place == handles.NoPlace {
			continue
		}
		ch := r.store.ChunkAt(place)
		if slot := place - ch.Base(); ch.Entities()[slot] == r.dying[i] {
			ch.Vacate(slot)
		}
	}
	r.frames.buried = len(r.graves)
}

// Rehearse says that frames which are simulated again from now on are not shown to readers, or that they are again.
//
// Concurrency: Logic only, between frames. Allocates: no.
func (c *Core) Rehearse(on bool) { c.r.frames.rehearsal = on }

// PublishSkips is how many frames were not published, as Stats says, which it spares.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (c *Core) PublishSkips() uint64 { return c.r.frames.skips.Load() }

// tellLongHeld tells the engine of pins that are held for long, once each. Owner only.
func (r *Registry) tellLongHeld() {
	f := &r.frames
	newest, pins := f.newest()
	now := r.frame.Load()
	for i := range f.kept {
		k := &f.kept[i]
		if k.told || k.frame.Load()+longHeld > now || !k.pinned(k.pins(newest, pins)) {
			continue
		}
		k.told = true
		if c := r.engine.Load(); c != nil && c.hooks.Held != nil {
			c.hooks.Held(k.frame.Load(), f.holders.of(k))
		}
	}
}
