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
	r.drainReserved()
	if r.rec != nil {
		r.rec.add(op{kind: opReset})
	}
	r.eachIndex(func(i uint32) {
		if s := r.locals.Word(i).State(); s == handles.Alive || s == handles.Reserved {
			r.killOne(handles.NewLocal(i, r.locals.Word(i).Generation()))
		}
	})
	r.drainOutside()
	r.commit()
	if r.hist.on {
		r.homePooled()
		r.processTo(len(r.dying), len(r.vacated), r.frame.Load())
		r.hist.forgetDead(r)
	} else {
		r.process()
		r.commit() // the slots of pools that got others were logged
	}
	r.disownUnseen()
	r.countNamed()
	for _, a := range r.store.Archetypes() {
		if a.Pooled() == 0 {
			a.Clear()
		}
	}
	r.barrier()
	r.moves++ // an empty registry has chunks to lose, and nothing else
	clear(r.bornChunks)
	r.bornChunks = r.bornChunks[:0]
	return nil
}

// disownUnseen parts those from their slots whom another goroutine has killed and has not
// put into the outside list yet. Their storage goes now; when they turn up in the list,
// they are deaths without a place. Owner only, with all other deaths reclaimed.
func (r *Registry) disownUnseen() {
	frame := r.frame.Load()
	for _, a := range r.store.Archetypes() {
		if a.Pooled() != 0 {
			continue // they come home when they turn up
		}
		for _, ch := range a.Chunks() {
			for slot, h := range ch.Entities()[:ch.Allocated()] {
				if h == 0 {
					continue
				}
				r.tombstone(h, ch.Base()+uint32(slot))
				last := len(r.dying) - 1 // comes with the outside list
				r.dying, r.graves = r.dying[:last], r.graves[:last]
				if !r.pooled(h.Index()) {
					r.freeNames(h)
				}
				r.freeNet(h.Index(), frame)
				r.locals.SetPlace(h, handles.NoPlace)
				r.killed.Add(-1)
			}
		}
	}
}
