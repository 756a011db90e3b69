package stress

import (
	"errors"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// Roll follows every life by the events that tell of it: one Spawned, then one Destroyed, each handle once in all
// time, and an index again only when its window has closed. It is for registries that do not go back.
//
// Its fields belong to Logic, and to whoever reads them when the engine has ended.
type Roll struct {
	l      *Ledger
	window uint64
	lives  []lived                // by local index
	open   map[handles.Local]bool // who is alive, if indices may be used again within one batch of events; else nil

	Spawned, Destroyed uint64
	Indices            int // different ones
}

// lived is the last life of an index.
type lived struct {
	generation uint32
	alive      bool
	died       uint64
}

// NewRoll observes a registry in which nothing lives yet. window is how many frames a freed local index waits;
// negative if confirms are by hand: then an index may live several times in one window, and of that all births are
// told before all deaths.
//
// Errors: those of Observe.
// Concurrency: any goroutine. Allocates: yes.
func NewRoll(l *Ledger, r *registry.Registry, window int) (*Roll, error) {
	roll := &Roll{l: l, window: uint64(max(window, 0))}
	if window < 0 {
		roll.open = map[handles.Local]bool{}
	}
	_, err1 := r.Observe(registry.Spawned, func(f *registry.Frame, events []registry.Event) { roll.spawned(f.FrameNumber(), events) })
	_, err2 := r.Observe(registry.Destroyed, func(f *registry.Frame, events []registry.Event) { roll.destroyed(f.FrameNumber(), events) })
	return roll, errors.Join(err1, err2)
}

func (r *Roll) of(h handles.Local) *lived {
	for int(h.Index()) >= len(r.lives) {
		r.lives = append(r.lives, make([]lived, int(h.Index())+1-len(r.lives)+len(r.lives)/4)...)
	}
	return &r.lives[h.Index()]
}

func (r *Roll) spawned(now uint64, events []registry.Event) {
	for _, e := range events {
		last := r.of(e.Entity)
		switch {
		case e.Entity.Generation() <= last.generation:
			r.l.Violate(NoAlias, "frame %d: %v was spawned after generation %d of its index", now, e.Entity, last.generation)
		case last.alive && r.open == nil:
			r.l.Violate(NoAlias, "frame %d: %v was spawned while generation %d of its index was alive", now, e.Entity, last.generation)
		case last.generation > 0 && now < last.died+r.window:
			r.l.Violate(SafeReuse, "frame %d: %v was spawned, but generation %d of its index died in frame %d", now, e.Entity, last.generation, last.died)
		}
		if last.generation == 0 {
			r.Indices++
		}
		*last = lived{generation: e.Entity.Generation(), alive: true}
		if r.open != nil {
			r.open[e.Entity] = true
		}
	}
	r.Spawned += uint64(len(events))
}

func (r *Roll) destroyed(now uint64, events []registry.Event) {
	for _, e := range events {
		last := r.of(e.Entity)
		if r.open != nil {
			if !r.open[e.Entity] {
				r.l.Violate(NoAlias, "frame %d: %v was destroyed, and was not alive", now, e.Entity)
			}
			delete(r.open, e.Entity)
			if last.generation == e.Entity.Generation() {
				last.alive = false
			}
			continue
		}
		if last.generation != e.Entity.Generation() || !last.alive {
			r.l.Violate(NoAlias, "frame %d: %v was destroyed, but of its index generation %d is known, alive: %v", now, e.Entity, last.generation, last.alive)
			continue
		}
		last.alive, last.died = false, now
	}
	r.Destroyed += uint64(len(events))
}

// Audit says whether the registry counts what was told: spawned = live + tombstoned + recycled.
//
// Errors: none; what is wrong is a violation.
// Concurrency: any goroutine, when the engine has ended and nobody is inside. Allocates: for violations.
func (r *Roll) Audit(s registry.Stats, most int) {
	alive := 0
	for _, l := range r.lives {
		if l.alive {
			alive++
		}
	}
	if r.open != nil {
		alive = len(r.open)
	}
	reserved := s.Local.Issued - s.Live - s.PendingDestructions
	recycled := s.Local.Free + s.Local.Pending + s.Local.Retired
	switch {
	case alive != s.Live:
		r.l.Violate(Conservation, "%d entities are alive, and by what was told %d", s.Live, alive)
	case r.Spawned != r.Destroyed+uint64(s.Live):
		r.l.Violate(Conservation, "%d were spawned, and %d live, %d are dead", r.Spawned, s.Live, r.Destroyed)
	case uint64(s.Tombstoned) > r.Destroyed:
		r.l.Violate(Conservation, "%d are tombstones, and %d are dead", s.Tombstoned, r.Destroyed)
	case reserved < 0:
		r.l.Violate(Conservation, "%d indices are issued, for %d living and %d dying", s.Local.Issued, s.Live, s.PendingDestructions)
	case r.Indices > s.Local.Issued+recycled:
		r.l.Violate(Conservation, "%d different indices were seen, and there are %d", r.Indices, s.Local.Issued+recycled)
	case s.Live+reserved > most:
		r.l.Violate(Caps, "%d live and %d are reserved, of %d", s.Live, reserved, most)
	}
}
