package registry

import (
	"math/rand/v2"
	"sync/atomic"
	"unsafe"
)

// Access is the right to read one registry's cells: *Window, *Frame or *Snapshot.
type Access interface {
	// Registry is the registry the token opens. Panics: ErrExpired on an expired token.
	// Concurrency: as the token. Allocates: no.
	Registry() *Registry
	// FrameNumber is the frame the token reads. Panics: ErrExpired on an expired token.
	// Concurrency: as the token. Allocates: no.
	FrameNumber() uint64

	tokenOf() *token     // nil for a nil token; a type that embeds a token is an Access, too
	snapshot() *Snapshot // itself, nil for every other token
}

// token is what Window and Frame share. A token is made once and never reused, so that one
// kept too long can be told from the current one; blocks of tokens keep that cheap. A window's is
// all that an operation leaves to the garbage collector, so it is small.
//
// closed is atomic because a token may leak to another goroutine: using it late must be
// an error there, not a data race.
type token struct {
	r      *Registry
	kind   tokenKind
	part   bool // of a Fork: it is the token of a Frame with a worker
	closed atomic.Bool
}

// worker is whose part of a Fork the token is for; nil for any other.
func (t *token) worker() *forkWorker {
	if !t.part {
		return nil
	}
	return (*Frame)(unsafe.Pointer(t)).work // sound: only begin of a fork sets part, in a Frame, whose first field it is
}

type tokenKind uint8

const (
	windowToken tokenKind = iota + 1
	frameToken
	snapshotToken
)

// valid is false for the zero token, too.
func (t *token) valid() bool { return t.r != nil && !t.closed.Load() }

// must turns an expired token into a panic, where no error can be returned.
func must(r *Registry, err error) *Registry {
	if err != nil {
		panic(err)
	}
	return r
}

// Window is the right to change structure, held by one goroutine for one callback.
// Every method: window holder only.
type Window struct{ token }

// Registry is the registry whose window this is.
//
// Panics: ErrExpired after the callback.
// Concurrency: window holder. Allocates: no.
func (w *Window) Registry() *Registry { return must(w.open()) }

// FrameNumber is the frame at whose top the window is open; 0 before the first frame.
//
// Panics: ErrExpired after the callback.
// Concurrency: window holder. Allocates: no.
func (w *Window) FrameNumber() uint64 { return w.Registry().frame.Load() }

func (w *Window) tokenOf() *token {
	if w == nil {
		return nil
	}
	return &w.token
}

func (w *Window) snapshot() *Snapshot { return nil }

// open checks the token and gives its registry.
func (w *Window) open() (*Registry, error) {
	if w == nil || !w.valid() {
		return nil, ErrExpired
	}
	return w.r, nil
}

// Frame is the right to read and write fields, to destroy and to put structure off to the
// next window, held by systems and observers until their frame ends.
type Frame struct {
	token
	number uint64
	work   *forkWorker // whose part of a Fork the frame is for; nil for any other
}

// Registry is the registry whose frame this is.
//
// Panics: ErrExpired after the frame.
// Concurrency: Logic and its workers, inside the frame. Allocates: no.
func (f *Frame) Registry() *Registry { return must(f.open()) }

// FrameNumber is the number of the frame; the first one is 1.
//
// Panics: ErrExpired after the frame.
// Concurrency: Logic and its workers, inside the frame. Allocates: no.
func (f *Frame) FrameNumber() uint64 {
	f.Registry()
	return f.number
}

// Input is what a player has given for this frame, see Engine.Input; false if nothing. When the frame is
// simulated again it is what is known by then. It is to be read only, and valid for as long as anybody likes.
//
// Panics: ErrExpired after the frame.
// Concurrency: Logic and its workers, inside the frame. Allocates: no.
func (f *Frame) Input(player uint8) ([]byte, bool) {
	for _, in := range f.Registry().inputs {
		if in.Player == player {
			return in.Data, true
		}
	}
	return nil, false
}

// Input is what a player gives for a frame.
type Input struct {
	Player uint8
	Data   []byte
}

// Rand is a generator seeded by the frame number alone, so that the same frame draws the
// same numbers on every machine and after every rollback.
//
// Panics: ErrExpired after the frame.
// Concurrency: Logic only, inside the frame; in a parallel loop with the frame of the part. Allocates: no.
func (f *Frame) Rand() *rand.Rand {
	r := f.Registry()
	if f.work != nil {
		return f.work.rand(f.number)
	}
	if r.randFrame != f.number+1 {
		r.pcg.Seed(randSeed, f.number)
		r.randFrame = f.number + 1
	}
	return r.rand
}

// randSeed is the first word of every frame's seed; the second is the frame number.
const randSeed = 0x61_69_72_6c_6f_63_6b_00

func (f *Frame) tokenOf() *token {
	if f == nil {
		return nil
	}
	return &f.token
}

func (f *Frame) snapshot() *Snapshot { return nil }

func (f *Frame) open() (*Registry, error) {
	if f == nil || !f.valid() {
		return nil, ErrExpired
	}
	return f.r, nil
}

// opened checks a token that may write and gives its registry. inWindow says that it is a Window.
// For a snapshot the answer is ErrReadOnly: who can do with one asks published.
func opened(a Access) (r *Registry, inWindow bool, err error) {
	if a == nil {
		return nil, false, ErrExpired
	}
	t := a.tokenOf()
	switch {
	case t == nil || !t.valid():
		return nil, false, ErrExpired
	case t.kind == snapshotToken:
		return nil, false, ErrReadOnly
	}
	return t.r, t.kind == windowToken, nil
}

// mustOpen is opened where no error can be returned.
func mustOpen(a Access) *Registry {
	r, _, err := opened(a)
	return must(r, err)
}

// tokenBlock is how many tokens are made at once: a fresh one a frame then costs no
// allocation that testing.AllocsPerRun can count. With the word that the allocator puts before it, a block of one less than
// a power of two is one of its sizes; of one more it would leave an eighth unused.
const tokenBlock = 127

// windowBlock is the same for windows, of which each operation has one: in small blocks they cost a tenth more of it.
const windowBlock = 511

// newWindow cuts a fresh window token. Owner only.
func (r *Registry) newWindow() *Window {
	if r.windowsCut == len(r.windowBlock) {
		r.windowBlock, r.windowsCut = make([]Window, windowBlock), 0
	}
	r.windowsCut++
	w := r.lastWindow()
	w.r, w.kind = r, windowToken
	return w
}

// lastWindow is the one that was cut last. Owner only.
func (r *Registry) lastWindow() *Window { return &r.windowBlock[r.windowsCut-1] }

// currentFrame gives the token of the current frame, cutting it on first use. Owner only.
func (r *Registry) currentFrame() *Frame {
	if r.current == nil {
		r.current = r.cutFrame()
	}
	return r.current
}

// cutFrame cuts a token of the current frame. Owner, or holder of wishMu.
func (r *Registry) cutFrame() *Frame {
	if r.framesCut == len(r.frameBlock) {
		r.frameBlock, r.framesCut = make([]Frame, tokenBlock), 0
		for i := range r.frameBlock {
			r.frameBlock[i].r, r.frameBlock[i].kind = r, frameToken
		}
	}
	f := &r.frameBlock[r.framesCut]
	f.number = r.frame.Load()
	r.framesCut++
	return f
}

// endFrame expires the current frame's token. What is written from now on belongs to the
// next frame. Owner only.
func (r *Registry) endFrame() {
	if r.current != nil {
		r.current.closed.Store(true)
		r.current = nil
	}
	r.forks = 0
}
