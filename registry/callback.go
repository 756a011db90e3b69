package registry

import (
	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/internal/caller"
)

// callback runs fn with a fresh window on the calling goroutine. If fn returns an error,
// panics or exits, everything it did through the window is taken back; a panic or an exit
// then goes on through. Owner only.
func (r *Registry) callback(fn func(*Window) error) (err error) {
	w := r.newWindow()
	r.beginCallback()
	r.openShort(&w.token)
	ok := false
	defer func() {
		r.expire(w)
		r.endCallback(ok)
	}()
	caller.Within(r.id, func() { err = fn(w) })
	ok = err == nil
	return err
}

// callbackRecover is callback, but a panic comes back as a *PanicError.
func (r *Registry) callbackRecover(where string, fn func(*Window) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError(where, v, r.frame.Load())
		}
	}()
	return r.callback(fn)
}

func (r *Registry) callbackRecoverOp(fn func(*Window) error) error {
	return r.callbackRecover("operation", fn)
}

// row is what runs operations one after the other. Owner only.
type row struct {
	open    bool // one runs, with the window that was cut last
	between bool // the next one is being asked for
}

// operations runs fn as an operation of a caller from outside, and while they succeed what next gives, until
// that is nil. The error is that of the last one, which may have panicked; an exit goes on through.
//
// What guards an operation (the frame that marks its goroutine as inside, what recovers, what undoes) is set up
// once for all of them, for it costs as much as the rest: see BenchmarkOperations.
func (r *Registry) operations(fn func(*Window) error, next func() func(*Window) error) (err error) {
	var w row
	r.issuer = r.outer
	defer func() {
		r.endRecording()
		r.issuer = r.locals
		if w.between { // not the fault of an operation
			return
		}
		if v := recover(); v != nil {
			err = newPanicError("operation", v, r.frame.Load())
		}
	}()
	return r.operate(&w, fn, next)
}

// operate is operations without their guards, but for the undoing of one that fails. Of each it keeps nothing that has
// pointers, in variables of its own or behind a pointer: while garbage is collected, each such store costs as much as the
// rest of an operation that does nothing.
func (r *Registry) operate(row *row, fn func(*Window) error, next func() func(*Window) error) (err error) {
	defer func() {
		if row.open {
			r.expire(r.lastWindow())
			r.endCallback(false)
		}
		r.closeShort()
	}()
	caller.Within(r.id, func() {
		for fn := fn; fn != nil; {
			w := r.newWindow()
			r.beginRecording()
			r.beginCallback()
			r.openShort(&w.token)
			row.open = true
			if failure := fn(w); failure != nil {
				err = failure
				return
			}
			row.open = false
			w.closed.Store(true) // the short ways are left to the next one: until then nobody's code runs
			r.endCallback(true)
			r.endRecording()
			row.between = true
			fn = next()
			row.between = false
		}
	})
	return err
}

// expire ends the use of a window.
func (r *Registry) expire(w *Window) {
	w.closed.Store(true)
	r.closeShort()
}

func (r *Registry) beginCallback() {
	r.guard.Enter("a window callback")
	r.inCallback = true
	r.undoFrom, r.run = len(r.undo), runNone
	r.deadBefore = len(r.dying)
	r.wishedBefore = len(r.wishes)
	r.setCause("")
}

func (r *Registry) endCallback(ok bool) {
	if ok && r.unmoved() {
		r.inCallback = false
		r.setCause("")
		r.guard.Exit()
		return
	}
	if ok {
		r.commit()
	} else {
		r.rollback()
	}
	r.inCallback = false
	if !ok {
		r.dropWishes()
	}
	r.setCause("")
	if !ok && len(r.family) > 0 {
		r.killOrphans()
	}
	if r.iterating != 0 { // a loop was left without its end, by iter.Pull say
		r.iterating = 0
	}
	r.showBorn()
	r.showCounts()
	r.guard.Exit()
	r.tellMoves() // what undo has moved back
}

// unmoved says whether a callback that has succeeded has left nothing to commit or to tell, as those that only read
// or write cells do. One expression without a call: half of what an operation costs that does nothing was to find that
// out step by step (BenchmarkOperations).
func (r *Registry) unmoved() bool {
	return len(r.undo)+len(r.undoHandles)+len(r.vacated)+len(r.vacatedRuns)+len(r.valuesUsed)+len(r.pools.saving)+
		len(r.bornChunks)+len(r.pools.dirty)+len(r.moveBatch)+r.iterating == 0 && r.run == runNone &&
		r.rec == nil && !r.hist.on && !r.netsUsed
}

// killOrphans ends the children of those that others destroyed while a callback ran that has
// failed, or a batch in it: with that undone, they live again, or stand below them again.
func (r *Registry) killOrphans() {
	for i := r.deadBefore; i < len(r.dying); i++ {
		r.killChildren(r.dying[i])
	}
}

// Named names what the rest of the callback is about; obituaries and the journal repeat it.
//
// Panics: ErrExpired.
// Concurrency: window holder. Allocates: no.
func (w *Window) Named(cause string) {
	r := w.Registry()
	r.setCause(cause)
	if k := r.rec; k != nil {
		k.rec.names = append(k.rec.names, cause)
		k.add(op{kind: opNamed, other: uint64(len(k.rec.names) - 1)})
	}
}

// showBorn makes the entities visible that were born while loops ran. Owner only.
func (r *Registry) showBorn() {
	if len(r.bornChunks) == 0 {
		return
	}
	for _, ch := range r.bornChunks {
		ch.CommitBorn()
	}
	clear(r.bornChunks)
	r.bornChunks = r.bornChunks[:0]
}

// Iterate begins a loop over storage for packages above. In a window, deaths from outside
// are seen first, and what is born stays out of sight until Finish, so that a loop meets
// each entity once however the callback changes structure.
//
// For a snapshot it gives nil, and there is nothing to begin: see Frames.
//
// Panics: ErrExpired on an expired token.
// Concurrency: as the token. Allocates: no.
func Iterate(a Access) *archetype.Store {
	r, inWindow, err := opened(a)
	if err != nil {
		if err == ErrReadOnly {
			return nil
		}
		panic(err)
	}
	if inWindow {
		if !r.late() {
			r.drainOutside()
		}
		r.iterating++
		r.closeShort()
	}
	return r.store
}

// Finish ends the loop that Iterate began; defer it.
//
// Concurrency: as the token. Allocates: no.
func Finish(a Access) {
	r, inWindow, err := opened(a)
	if err != nil || !inWindow || r.iterating == 0 {
		return
	}
	r.iterating--
	if r.iterating == 0 {
		r.showBorn()
		r.openShort(a.tokenOf())
	}
}
