package registry

import (
	"github.com/airlock-ecs/airlock/handles"
)

// Alive says whether h names a living entity.
//
// Concurrency: any goroutine; one atomic load, never waits. Allocates: no.
func (r *Registry) Alive(h handles.Local) bool { return r.locals.Alive(h) }

// Resolve gives the record of a living entity: the name that stays with it for its life,
// and whose index is reused at once.
//
// Errors: ErrStale, ErrInvalidHandle, ErrNotSpawned.
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Registry) Resolve(h handles.Local) (handles.Global, error) {
	// If no index was ever joined to the record of another one, h had its own when it was seen alive: tables are never taken
	// back. One look at the word is enough then, in half of the time of two with a record each.
	if r.locals.Alive(h) && r.records.Unused() {
		return handles.NewGlobal(h.Index(), h.Generation()), nil
	}
	return r.resolve(h)
}

// resolve is Resolve where some records serve other indices, and of handles of nobody.
func (r *Registry) resolve(h handles.Local) (handles.Global, error) {
	for {
		if s := r.locals.Status(h); s != handles.Live {
			return 0, notAlive(s)
		}
		g := r.record(h)
		// Between the loads h may have died and its record served another, or a failed callback
		// may have taken its birth back and another one have spawned it again. Generations of a
		// record only rise, so if h is alive and has the same one, it had it all the time.
		if r.locals.Alive(h) && r.record(h) == g {
			return g, nil
		}
	}
}

// record is what names the record of a living entity: of any goroutine's use only between two
// looks at its word.
func (r *Registry) record(h handles.Local) handles.Global {
	if record := r.records.Get(h.Index()); record != 0 {
		return r.globals.Handle(uint32(record))
	}
	return handles.NewGlobal(h.Index(), h.Generation())
}

// NetOf gives the net handle of a living entity, or the zero handle when it has none.
//
// Errors: ErrStale, ErrInvalidHandle, ErrNotSpawned.
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Registry) NetOf(h handles.Local) (handles.Net, error) {
	for {
		if s := r.locals.Status(h); s != handles.Live {
			return 0, notAlive(s)
		}
		n := handles.Net(r.netOf.Get(h.Index()))
		if r.locals.Alive(h) && handles.Net(r.netOf.Get(h.Index())) == n { // as in Resolve
			return n, nil
		}
	}
}

// AliveNet says whether n names a living entity.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Registry) AliveNet(n handles.Net) bool {
	_, err := r.ResolveNet(n)
	return err == nil
}

// ResolveNet gives the entity that n names.
//
// Errors: ErrStale when it is dead or n was replaced, ErrInvalidHandle when n was never
// issued or bound here.
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Registry) ResolveNet(n handles.Net) (handles.Local, error) {
	index, status := r.nets.Local(n)
	switch status {
	case handles.Live:
	case handles.Invalid:
		return 0, ErrInvalidHandle
	default:
		return 0, ErrStale
	}
	h, ok := r.namedBy(index, n)
	if !ok {
		return 0, ErrStale
	}
	return h, nil
}

// namedBy gives the entity alive at a local index if n is its name. The local word is read
// first and last: while it is the same and alive, the name between belongs to that life.
func (r *Registry) namedBy(index uint32, n handles.Net) (handles.Local, bool) {
	w := r.locals.Word(index)
	h := handles.NewLocal(index, w.Generation())
	if w.State() != handles.Alive || handles.Net(r.netOf.Get(index)) != n {
		return 0, false
	}
	return h, r.locals.Alive(h)
}

// ResolveWire gives the entity that a net handle's Wire form names now. That form has no
// generation: it is sound only while no peer can still mean an earlier entity by it.
//
// Errors: ErrStale when its entity is dead, ErrInvalidHandle when it names none.
// Concurrency: any goroutine; never waits. Allocates: no.
func (r *Registry) ResolveWire(wire uint32) (handles.Local, error) {
	n, index, ok := r.nets.ByWire(wire)
	if !ok {
		return 0, ErrInvalidHandle
	}
	h, ok := r.namedBy(index, n)
	if !ok {
		return 0, ErrStale
	}
	return h, nil
}
