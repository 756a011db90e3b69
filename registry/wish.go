package registry

import (
	"errors"
	"fmt"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/internal/planted"
)

type wishKind uint8

const (
	wishSpawn wishKind = iota
	wishAdd
	wishRemove
	wishCall
)

// wish is structure that a system or an observer put off to the next window. Values lie
// typed in the class or in the component's values; a wish costs no closure.
type wish struct {
	kind  wishKind
	comp  archetype.ComponentID
	at    uint32 // index of the value
	h     handles.Local
	class wishedClass
	fn    func(*Window) error
	cause string // of whoever wished
}

// wishedClass is a Class of any type.
type wishedClass interface {
	grantSpawn(w *Window, wi *wish) error
	forgetWished()
	trimWished(at uint32)
}

// wishRun is how far the wishes of the last frame have been granted. Like a delivery it
// outlives the goroutine that grants.
type wishRun struct {
	list []wish
	next int
}

// SpawnLater gives a handle now and makes its entity at the next window, before anything
// else: the form for systems. Until then the handle is ErrNotSpawned. In a parallel loop of a
// deterministic registry, or one with a temporal ring, it waits until the parts before are done,
// so that handles do not depend on which worker is faster.
//
// Errors: ErrExhausted; ErrExpired.
// Concurrency: Logic and its workers, inside the frame. Allocates: no, but for growth.
func (c *Class[E]) SpawnLater(f *Frame, e E) (handles.Local, error) {
	r, err := f.open()
	if err != nil {
		return 0, err
	}
	if r != c.r {
		return 0, fmt.Errorf("registry: class %s belongs to another registry", c.name)
	}
	if r.hist.inert {
		return 0, errInert
	}
	if k := f.work; k != nil {
		k.fork.await(k.part)
	}
	r.wishMu.Lock()
	defer r.wishMu.Unlock()
	if !r.takeRoom() { // of the owner's stash first: a system replaces what it destroyed
		return 0, ErrExhausted
	}
	h, ok := r.issuer.Reserve()
	if !ok {
		r.giveRoom(1)
		return 0, ErrExhausted
	}
	if h.Index() < r.outerFirst {
		r.log(undoOp{kind: undoClaim, h: h})
	}
	c.later = append(c.later, e)
	f.wishLocked(wish{kind: wishSpawn, h: h, class: c, at: c.laterBase + uint32(len(c.later)-1)})
	return h, nil
}

// AddLater adds the component C to h at the next window. What fails then goes to the
// engine's OnError.
//
// Errors: ErrNotRegistered; ErrExpired.
// Concurrency: Logic and its workers, inside the frame. Allocates: no, but for growth.
func AddLater[C any](f *Frame, h handles.Local, v C) error {
	r, comp, err := openFor[C](f)
	if err != nil {
		return err
	}
	if r.hist.inert {
		return errInert
	}
	r.wishMu.Lock()
	defer r.wishMu.Unlock()
	log := valuesOf[C](r, comp)
	log.wished = append(log.wished, v)
	f.wishLocked(wish{kind: wishAdd, h: h, comp: comp.ID, at: log.wishedBase + uint32(len(log.wished)-1)})
	return nil
}

// RemoveLater takes the component C from h at the next window. What fails then goes to the
// engine's OnError.
//
// Errors: ErrNotRegistered; ErrExpired.
// Concurrency: Logic and its workers, inside the frame. Allocates: no, but for growth.
func RemoveLater[C any](f *Frame, h handles.Local) error {
	r, comp, err := openFor[C](f)
	if err == nil && r.hist.inert {
		err = errInert
	}
	if err != nil {
		return err
	}
	f.wish(wish{kind: wishRemove, h: h, comp: comp.ID})
	return nil
}

// Defer runs fn in the next window, as an operation of its own: when it fails, it alone is
// undone, and its error goes to the engine's OnError.
//
// An observer that is told what a rollback has undone has no say: its operation is dropped.
//
// Panics: ErrExpired.
// Concurrency: Logic and its workers, inside the frame. Allocates: no, but for growth.
func (f *Frame) Defer(fn func(*Window) error) {
	if !f.Registry().hist.inert {
		f.wish(wish{kind: wishCall, fn: fn})
	}
}

// wish notes a wish that has no value. The list of a worker is its own.
func (f *Frame) wish(w wish) {
	if f.work == nil {
		f.r.wishMu.Lock()
		defer f.r.wishMu.Unlock()
	}
	f.wishLocked(w)
}

// wishLocked notes a wish; wishMu is held, for the value if for nothing else. Those of a part of a
// parallel loop wait for its end.
func (f *Frame) wishLocked(w wish) {
	w.cause = f.r.causeNow
	if f.work != nil {
		f.work.wishes = append(f.work.wishes, w)
	} else {
		f.r.wishes = append(f.r.wishes, w)
	}
}

// dropWishes forgets what the parts of parallel loops in a failed callback have wished, and ends the
// reservations that they made. Owner only.
func (r *Registry) dropWishes() {
	for _, w := range r.wishes[r.wishedBefore:] {
		if w.kind == wishSpawn && r.killOne(w.h) && r.rec != nil {
			r.recordDestroyed(w.h) // a reservation of a caller from outside does not go back with its claim
		}
	}
	clear(r.wishes[r.wishedBefore:])
	r.wishes = r.wishes[:r.wishedBefore]
}

// runWishes grants what was wished since the last window, in order, each as an operation of
// its own. Owner only; workers of the frame have joined.
func (r *Registry) runWishes() {
	run := &r.granted
	if run.next == len(run.list) {
		r.wishesGranted() // of a run whose last operation exited
		if len(r.wishes) == 0 {
			return
		}
		run.list, r.wishes, run.next = r.wishes, run.list, 0
	}
	for run.next < len(run.list) {
		if err := r.grantRow(run); err != nil {
			r.report(err)
		}
	}
	r.wishesGranted()
}

// wishesGranted forgets the wishes, and the values they kept. If there are new wishes already, of a
// parallel loop in a wish, theirs lie behind them: then all are kept until those are granted.
func (r *Registry) wishesGranted() {
	run := &r.granted
	for i := range run.list {
		if len(r.wishes) > 0 || r.hist.on {
			break // history forgets them when they can not be granted again
		}
		switch wi := &run.list[i]; wi.kind {
		case wishSpawn:
			wi.class.forgetWished()
		case wishAdd:
			r.values[wi.comp].forgetWished()
		}
	}
	clear(run.list)
	run.list, run.next = run.list[:0], 0
}

// grantRow grants wishes up to one that fails, which alone is undone. As with operations, what guards them is set up once
// for all. A wish that calls nobody's code has a window that nobody can keep: those share one.
func (r *Registry) grantRow(run *wishRun) (err error) {
	var open *Window
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError("deferred operation", v, r.frame.Load())
		}
	}()
	defer func() {
		if open != nil {
			r.expire(open)
			r.endCallback(false)
		}
	}()
	caller.Within(r.id, func() {
		var shared *Window
		for err == nil && run.next < len(run.list) {
			wi := &run.list[run.next]
			run.next++
			if planted.Enabled && planted.Is(planted.WishLost) && run.next == 3 {
				continue
			}
			w := shared
			if w == nil || wi.kind == wishCall {
				w = r.newWindow()
			}
			if wi.kind != wishCall {
				w.closed.Store(false)
				shared = w
			}
			r.beginCallback()
			r.openShort(&w.token)
			open = w
			if err = r.grant(w, wi); err == nil {
				open = nil
				r.expire(w)
				r.endCallback(true)
			}
		}
	})
	return err
}

func (r *Registry) grant(w *Window, wi *wish) error {
	w.Named(wi.cause)
	switch wi.kind {
	case wishSpawn:
		return wi.class.grantSpawn(w, wi)
	case wishAdd:
		return r.values[wi.comp].grantAdd(w, wi)
	case wishRemove:
		comp, _ := r.schema.ByID(wi.comp)
		err := r.removeQuietly(comp, wi.h)
		r.tellMoves()
		return err
	}
	return wi.fn(w)
}

// grantSpawn makes the wished entity. A reservation that was destroyed before its birth is
// no failure: nobody waits for it.
func (c *Class[E]) grantSpawn(w *Window, wi *wish) error {
	err := c.SpawnReserved(w, wi.h, c.later[wi.at-c.laterBase])
	if errors.Is(err, ErrStale) {
		return nil
	}
	return err
}

// trimWished forgets the values up to one.
func (c *Class[E]) trimWished(at uint32) { c.later = trimTo(c.later, &c.laterBase, at) }

// trimTo drops the values up to a position from the front, when that is worth the copying. Positions wrap
// around.
func trimTo[E any](list []E, base *uint32, at uint32) []E {
	if n := int(at - *base + 1); n > len(list)/2 && n <= len(list) {
		*base += uint32(n)
		return slices.Delete(list, 0, n)
	}
	return list
}

func (c *Class[E]) forgetWished() {
	clear(c.later)
	c.later = c.later[:0]
}
