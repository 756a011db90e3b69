package registry

import (
	"unsafe"

	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// Hooks is what an engine wants to hear of.
type Hooks struct {
	OnError func(error) // failures of observers and of deferred operations; called on Logic

	// Spread calls run with 0 up to n at the same time, with 0 on the calling goroutine, and returns,
	// or exits, when all have returned. n is at most Workers. run does not panic, but may exit its
	// goroutine.
	Spread  func(n int, run func(worker int))
	Workers int

	// Held is told of a frame that readers have held for many frames; in an ecsdebug build with the
	// stack at which one of them acquired it. Called on Logic.
	Held func(frame uint64, stack string)
}

// Core is the registry as its engine sees it: the frame's machinery, one method a step.
// Package logic drives it. But where a method says otherwise, only the goroutine that
// entered may call it, or one it has lent the window to.
//
// RunWishes and Deliver can be resumed: if a callback exits the goroutine inside them,
// calling them again goes on behind that callback.
type Core struct {
	r     *Registry
	hooks Hooks
	begun bool // has had a frame
}

// Attach makes the caller the registry's only engine.
//
// Errors: ErrRunning when another engine is attached.
// Concurrency: any goroutine; never waits. Allocates: yes.
func (r *Registry) Attach(h Hooks) (*Core, error) {
	c := &Core{r: r, hooks: h}
	if !r.engine.CompareAndSwap(nil, c) {
		return nil, ErrRunning
	}
	return c, nil
}

// Detach frees the registry for another engine; a second call is harmless.
//
// Concurrency: any goroutine, after Leave. Allocates: no.
func (c *Core) Detach() {
	if c.r.engine.CompareAndSwap(c, nil) {
		c.r.recorded.kept.Store(false)
	}
}

// Enter takes ownership: for a whole run, during which Update is refused, or for one step.
//
// Errors: ErrWouldDeadlock inside a callback, ErrRunning while a run goes on.
// Concurrency: any goroutine; waits for an Update to leave. Allocates: no.
func (c *Core) Enter(run bool) error {
	if err := c.r.acquire(); err != nil {
		return err
	}
	c.r.lender = &c.hooks
	c.r.running.Store(run)
	return nil
}

// Leave gives ownership back.
//
// Concurrency: the goroutine that entered, or one after it. Allocates: no.
func (c *Core) Leave() {
	c.r.running.Store(false)
	c.r.lender = nil
	c.r.release()
}

// ID names the registry to package caller.
//
// Concurrency: any goroutine. Allocates: no.
func (c *Core) ID() uintptr { return c.r.id }

// Inside says whether the calling goroutine is inside a callback of this registry. It
// reads the goroutine's own stack: microseconds.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func (c *Core) Inside() bool { return caller.Inside(c.r.id) }

// Beside runs fn as that of somebody who is not the owner and whom the owner may wait for: what waits for the owner is answered as
// inside a callback, and nothing is read as by the owner.
//
// Concurrency: any goroutine. Allocates: as fn.
func (c *Core) Beside(fn func()) {
	caller.Within(c.r.id, func() { caller.Within(c.r.beside(), fn) })
}

// beside marks who is beside the owner, on a stack. Of a registry nobody has the address of its second byte.
func (r *Registry) beside() uintptr { return r.id + 1 }

// owning says whether the calling goroutine is inside a callback of the owner.
func (r *Registry) owning() bool { return caller.Inside(r.id) && !caller.Inside(r.beside()) }

// Registry is the registry.
//
// Concurrency: any goroutine. Allocates: no.
func (c *Core) Registry() *Registry { return c.r }

// FrameNumber is the frame Logic is in, 0 before the first.
//
// Concurrency: any goroutine. Allocates: no.
func (c *Core) FrameNumber() uint64 {
	if planted.Enabled && planted.Is(planted.FrameReadPlainly) {
		return *(*uint64)(unsafe.Pointer(&c.r.frame))
	}
	return c.r.frame.Load()
}

// Advance begins the next frame and gives its number: what every column of more than one frame has is
// brought into the buffers that it is going to write.
//
// Concurrency: Logic only. Allocates: no.
func (c *Core) Advance() uint64 {
	r := c.r
	r.endFrame()
	r.publishFrame()
	r.recorded.on = r.hist.on || r.recorded.kept.Load()
	if !c.begun { // what another engine has run cannot be run again by this one
		c.begun = true
		r.beginWriting(c.hooks.Workers, c.hooks.Spread)
		r.endHistory()
	}
	r.beginHistory()
	r.beginWriting(c.hooks.Workers, c.hooks.Spread)
	r.frames.begun = true
	r.randFrame = 0 // a frame that is simulated again draws the same numbers
	return r.frame.Add(1)
}

// DrainDestroys makes tombstones of the deaths from outside, and says how many.
//
// Concurrency: Logic only. Allocates: no.
func (c *Core) DrainDestroys() int { return c.r.drainOutside() }

// ProcessDestructions reclaims what has died, and says how many handles that were.
//
// Concurrency: Logic only, outside callbacks. Allocates: no.
func (c *Core) ProcessDestructions() int { return c.r.process() }

// ConfirmLocal lets local indices freed in frames up to and including through serve again.
//
// Concurrency: Logic only. Allocates: no, but for the free list's growth.
func (c *Core) ConfirmLocal(through uint64) int { return c.r.confirmLocals(through) }

// ConfirmNet does so for net indices.
//
// Concurrency: Logic only. Allocates: no, but for the free list's growth.
func (c *Core) ConfirmNet(through uint64) int { return c.r.nets.ConfirmThrough(through) }

// ConfirmNetWhile confirms net indices, oldest first, while ok says so; seq is the running
// number of the death.
//
// Concurrency: Logic only. Allocates: no, but for the free list's growth.
func (c *Core) ConfirmNetWhile(ok func(seq, frame uint64) bool) int {
	return c.r.nets.ConfirmWhile(ok)
}

// NetDeaths is the number of the next death of an entity that has a net handle issued here,
// as ConfirmNetWhile counts them. What dies in a later window or phase has it or a higher
// one; what died before the last boundary, or in a callback that ended, a lower one.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (c *Core) NetDeaths() uint64 { return c.r.netDeaths.Load() }

// FreeSlots is how many slots are not in use among those that were ever taken, and how many of those there
// are, in archetypes whose entities may be moved.
//
// Concurrency: Logic only. Allocates: no.
func (c *Core) FreeSlots() (free, allocated int) {
	r := c.r
	for _, a := range r.store.Archetypes() {
		if r.mayMove(a) {
			allocated += a.Allocated()
			free += a.Allocated() - a.Live()
		}
	}
	return free, allocated
}

// OpenWindow begins the window of the frame.
//
// Concurrency: Logic only. Allocates: no.
func (c *Core) OpenWindow() { c.r.openWindow() }

// RunWishes grants what systems and observers have put off.
//
// Concurrency: Logic only, in the window. Allocates: as the wishes.
func (c *Core) RunWishes() { c.r.runWishes() }

// Callback runs fn with a fresh window on the calling goroutine. An error is returned
// after everything fn did was taken back; a panic or an exit goes on through after that.
//
// Concurrency: the window's holder. Allocates: no.
func (c *Core) Callback(fn func(*Window) error) error { return c.r.fromOutside(c.r.callback, fn) }

// CallbackRecover is Callback, but a panic comes back as a *PanicError.
//
// Concurrency: the window's holder. Allocates: no, but for a panic's stack.
func (c *Core) CallbackRecover(fn func(*Window) error) error {
	return c.r.fromOutside(c.r.callbackRecoverOp, fn)
}

// Operations runs fn as CallbackRecover does, and while they succeed what next gives, until that is nil: each
// with a window of its own, and undone alone. The error is that of the last one. next is called between two of
// them, as if inside; it calls nobody's code.
//
// Concurrency: Logic only, in the window. Allocates: no, but for a panic's stack.
func (c *Core) Operations(fn func(*Window) error, next func() func(*Window) error) error {
	return c.r.operations(fn, next)
}

// CloseWindow ends the window of the frame and shows the counters.
//
// Concurrency: Logic only. Allocates: no.
func (c *Core) CloseWindow() {
	c.r.loseAgain()
	c.r.closeWindow()
}

// Deliver tells the observers what has happened.
//
// Concurrency: Logic only, outside callbacks. Allocates: no.
func (c *Core) Deliver() { c.r.deliver() }

// NewFrame gives the token of the current frame, the same one until EndFrame.
//
// Concurrency: Logic only. Allocates: no, as testing.AllocsPerRun counts.
func (c *Core) NewFrame() *Frame { return c.r.currentFrame() }

// SetInputs gives the frame that begins its inputs. They are not changed any more.
//
// Concurrency: Logic only, before the window. Allocates: no.
func (c *Core) SetInputs(inputs []Input) { c.r.inputs = inputs }

// EndFrame expires the token of the current frame and publishes it.
//
// Concurrency: Logic only. Allocates: no, but when chunks have come or gone.
func (c *Core) EndFrame() {
	c.r.endFrame()
	c.r.publishFrame()
}

// System runs fn as the system of that name. Panics and exits go on through.
//
// Concurrency: Logic only. Allocates: no.
func (c *Core) System(name string, fn func()) {
	r := c.r
	r.setCause(name)
	r.inFrame = true
	if r.current != nil {
		r.openShort(&r.current.token)
	}
	defer func() {
		r.setCause("")
		r.inFrame = false
		r.closeShort()
		r.showCounts()
	}()
	caller.Within(r.id, fn)
}

// Boundary stands between phases: deaths from outside are seen, unless they wait for the
// next window, and the counters shown.
//
// Concurrency: Logic only. Allocates: no.
func (c *Core) Boundary() { c.r.boundary() }
