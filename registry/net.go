package registry

import (
	"fmt"
	"math"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// AssignNet gives a living entity a net handle of this registry's owner. An entity has at
// most one: asked again, AssignNet answers with it.
//
// Errors: ErrExhausted after 2^24-1 names; ErrStale, ErrInvalidHandle, ErrNotSpawned; ErrIdle;
// ErrExpired.
// Concurrency: window holder. Allocates: a page of words now and then.
func (w *Window) AssignNet(h handles.Local) (handles.Net, error) {
	r, err := w.open()
	if err != nil {
		return 0, err
	}
	if err := r.somebody(h); err != nil {
		return 0, err
	}
	if n := r.netOf.Get(h.Index()); n != 0 {
		return handles.Net(n), nil
	}
	n, ok := r.hist.netLimbo[h]
	if ok { // it had the name when the frame ran first, and somebody may know
		delete(r.hist.netLimbo, h)
	} else if n, ok = r.nets.Issue(h.Index()); !ok {
		return 0, fmt.Errorf("net handles of owner %d: %w", r.cfg.Owner, ErrExhausted)
	}
	if r.rec != nil {
		r.rec.add(op{kind: opAssign, h: h, other: uint64(n)})
	}
	r.netOf.Ensure(h.Index()).Store(uint64(n))
	r.netsUsed, r.shortOut = true, nil
	r.log(undoOp{kind: undoNet, h: h, at: uint64(n)})
	return n, nil
}

// BindNet gives a living entity the name that another owner's registry issued for it.
//
// Errors: ErrInvalidHandle for the zero handle or a name of this registry's own owner;
// ErrAlreadyRegistered when either has another partner; ErrStale for a name older than
// one bound before, or a dead entity; ErrIdle; ErrExpired.
// Concurrency: window holder. Allocates: a page of words now and then.
func (w *Window) BindNet(h handles.Local, n handles.Net) error {
	r, err := w.open()
	if err != nil {
		return err
	}
	if err := r.somebody(h); err != nil {
		return err
	}
	if n.Owner() == r.cfg.Owner || n.Index() == 0 || n.Generation() == 0 {
		return fmt.Errorf("bind %v: %w", n, ErrInvalidHandle)
	}
	if old := handles.Net(r.netOf.Get(h.Index())); old != 0 {
		if old == n {
			return nil
		}
		return fmt.Errorf("bind %v: %v is named %v: %w", n, h, old, ErrAlreadyRegistered)
	}
	r.releaseDead(n)
	if !r.nets.Bindable(n) {
		if other, err := r.ResolveNet(n); err == nil {
			return fmt.Errorf("bind %v: it names %v: %w", n, other, ErrAlreadyRegistered)
		}
		return fmt.Errorf("bind %v: %w", n, ErrStale)
	}
	r.netOf.Ensure(h.Index()).Store(uint64(n)) // first: who finds n bound looks here whether it is still that of h
	r.nets.Bind(n, h.Index())
	r.netsUsed, r.shortOut = true, nil
	r.log(undoOp{kind: undoNet, h: h, at: uint64(n)})
	if r.rec != nil {
		r.rec.add(op{kind: opBind, h: h, other: uint64(n)})
	}
	return nil
}

// releaseDead takes another owner's index from an entity that is dead and not reclaimed yet,
// when a newer name on that index is bound: the message that says who died often says who
// came instead.
func (r *Registry) releaseDead(n handles.Net) {
	old, index, ok := r.nets.ByWire(n.Wire())
	if !ok || old.Generation() >= n.Generation() {
		return
	}
	if _, alive := r.namedBy(index, old); alive {
		return
	}
	r.netOf.At(index).Store(0)
	r.nets.Free(old, r.frame.Load())
	r.log(undoOp{kind: undoRelease, at: uint64(old), slot: index})
}

// unname takes a net handle back that a failed callback issued or bound.
func (r *Registry) unname(h handles.Local, n handles.Net) {
	r.netOf.At(h.Index()).Store(0)
	if planted.Enabled && planted.Is(planted.NetNameKeptByUndo) {
		return
	}
	if n.Owner() == r.cfg.Owner && r.hist.going {
		if r.hist.netLimbo == nil {
			r.hist.netLimbo = map[handles.Local]handles.Net{}
		}
		r.hist.netLimbo[h] = n
		return
	}
	if n.Owner() == r.cfg.Owner {
		r.nets.Unissue(n)
		if r.rec != nil {
			r.netBurns++
		}
	} else {
		r.nets.Unbind(n)
	}
}

// ConfirmLocalRecycles lets every pending local index serve again, and says how many. It
// and the other confirms commit what the callback did so far.
//
// Panics: ErrExpired.
// Concurrency: window holder. Allocates: no, but for the free list's growth.
func (w *Window) ConfirmLocalRecycles() int {
	return w.ConfirmLocalRecyclesThrough(math.MaxUint64)
}

// ConfirmLocalRecyclesThrough does so for the indices freed in frames up to and including
// frame.
//
// Panics: ErrExpired.
// Concurrency: window holder. Allocates: no, but for the free list's growth.
func (w *Window) ConfirmLocalRecyclesThrough(frame uint64) int {
	r := w.Registry()
	if r.rec != nil {
		r.rec.add(op{kind: opConfirm, other: frame})
	}
	r.commit()
	if r.hist.on { // what is not out of the ring may have to come back
		now := r.frame.Load()
		frame = min(frame, now-min(now, r.hist.frames))
	}
	return r.confirmLocals(frame)
}

// ConfirmNetRecycles lets every pending net index serve again, and says how many.
//
// Panics: ErrExpired.
// Concurrency: window holder. Allocates: no, but for the free list's growth.
func (w *Window) ConfirmNetRecycles() int {
	return w.ConfirmNetRecyclesThrough(math.MaxUint64)
}

// ConfirmNetRecyclesThrough does so for the indices freed in frames up to and including
// frame.
//
// Panics: ErrExpired.
// Concurrency: window holder. Allocates: no, but for the free list's growth.
func (w *Window) ConfirmNetRecyclesThrough(frame uint64) int {
	r := w.Registry()
	if r.rec != nil {
		r.rec.add(op{kind: opConfirmNet, other: frame})
	}
	r.commit()
	return r.nets.ConfirmThrough(frame)
}
