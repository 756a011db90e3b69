package registry

import "github.com/airlock-ecs/airlock/handles"

// Reset empties the registry: every entity dies, each with its event, every reservation
// ends, storage is given back. Every handle ever issued stays dead for ever. Components,
// classes and observers stay. What the callback did so far is committed, and Reset itself
// is not undone.
//
// Errors: ErrExpired.
// Concurrency: window holder. Allocates: no.
func (w *Window) Reset() error {
	r, err := w.open()
	if err != nil {
		return err
	}
	r.commit()
	r.drainOutside()
	for i := uint32(1); i <= r.locals.Highest(); i++ {
		if s := r.locals.Word(i).State(); s == handles.Alive || s == handles.Reserved {
			h := handles.NewLocal(i, r.locals.Word(i).Generation())
			if old, won := r.locals.Kill(h); won {
				r.bury(h, old)
			}
		}
	}
	r.drainOutside()
	r.commit()
	r.process()
	for _, a := range r.store.Archetypes() {
		a.Clear()
	}
	clear(r.bornChunks)
	r.bornChunks = r.bornChunks[:0]
	return nil
}
