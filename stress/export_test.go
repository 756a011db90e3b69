package stress

import (
	"context"
	"errors"
	"time"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// Linearize is the search of History.Check, in one part.
func Linearize(part []Call) bool {
	_, ok := linearize(part)
	return ok
}

// LeftWithin is NothingLeft with another limit.
func LeftWithin(e *logic.Engine, goroutines int, within time.Duration) error {
	return nothingLeft(e, goroutines, within)
}

// Tell is what a registry that Roll observes would tell it.
func (r *Roll) Tell(now uint64, spawned bool, hs ...handles.Local) {
	var events []registry.Event
	for _, h := range hs {
		events = append(events, registry.Event{Entity: h})
	}
	if spawned {
		r.spawned(now, events)
	} else {
		r.destroyed(now, events)
	}
}

type callback = func(*registry.Window) error

// Lies are engines with one bug each.
var Lies = map[string]func(gate) gate{
	"runs every operation twice": func(g gate) gate {
		return liar{gate: g, spawn: func(ctx context.Context, fn callback) error {
			return g.Spawn(ctx, func(w *registry.Window) error { return errors.Join(fn(w), fn(w)) })
		}}
	},
	"loses an operation": func(g gate) gate {
		return liar{gate: g, spawn: every(20, g, func(context.Context, callback) error { return nil })}
	},
	"refuses what it has done": func(g gate) gate {
		return liar{gate: g, spawn: every(20, g, func(ctx context.Context, fn callback) error {
			return errors.Join(g.Spawn(ctx, fn), logic.ErrQueueFull)
		})}
	},
	"does later what it has refused": func(g gate) gate {
		return liar{gate: g, spawn: every(20, g, func(ctx context.Context, fn callback) error {
			if _, err := g.Lane().Enqueue(fn); err != nil {
				return err
			}
			return context.Canceled
		})}
	},
	"answers with something else": func(g gate) gate {
		return liar{gate: g, spawn: every(20, g, func(ctx context.Context, fn callback) error {
			return errors.Join(g.Spawn(ctx, fn), errors.New("unknown"))
		})}
	},
	"keeps what has failed": func(g gate) gate {
		return liar{gate: g, batch: func(ctx context.Context, fns ...callback) []error {
			errs := make([]error, len(fns))
			kept := make([]callback, len(fns))
			for i, fn := range fns {
				kept[i] = func(w *registry.Window) error {
					errs[i] = fn(w)
					return nil
				}
			}
			for i, err := range g.SpawnBatch(ctx, kept...) {
				errs[i] = errors.Join(errs[i], err)
			}
			return errs
		}}
	},
	"answers the wrong one": func(g gate) gate {
		return liar{gate: g, batch: func(ctx context.Context, fns ...callback) []error {
			errs := g.SpawnBatch(ctx, fns...)
			return append(errs[1:], errs[0])
		}}
	},
	"turns a batch round": func(g gate) gate {
		return liar{gate: g, batch: func(ctx context.Context, fns ...callback) []error {
			turned := make([]callback, len(fns))
			for i, fn := range fns {
				turned[len(fns)-1-i] = fn
			}
			errs := g.SpawnBatch(ctx, turned...)
			back := make([]error, len(errs))
			for i, err := range errs {
				back[len(fns)-1-i] = err
			}
			return back
		}}
	},
	"overtakes in a lane": func(g gate) gate { return liar{gate: g, lane: true} },
	"destroys nobody": func(g gate) gate {
		return liar{gate: g, destroy: func(handles.Local) error { return nil }}
	},
	"destroys somebody else": func(g gate) gate {
		return liar{gate: g, destroy: func(h handles.Local) error {
			_ = g.Destroy(handles.NewLocal(h.Index()+1, h.Generation()))
			return g.Destroy(h)
		}}
	},
	"lets two destroyers win": func(g gate) gate {
		return liar{gate: g, destroy: func(h handles.Local) error { _ = g.Destroy(h); return nil }}
	},
}

// every is a way in that lies for each n-th operation of somebody.
func every(n int, g gate, lie func(context.Context, callback) error) func(context.Context, callback) error {
	turn := make(chan int, 1)
	turn <- 0
	return func(ctx context.Context, fn callback) error {
		i := <-turn
		turn <- i + 1
		if i%n == n-1 {
			return lie(ctx, fn)
		}
		return g.Spawn(ctx, fn)
	}
}

// liar is a gate with some of its methods changed.
type liar struct {
	gate
	spawn   func(context.Context, callback) error
	batch   func(context.Context, ...callback) []error
	destroy func(handles.Local) error
	lane    bool
}

func (l liar) Spawn(ctx context.Context, fn func(*registry.Window) error) error {
	if l.spawn == nil {
		return l.gate.Spawn(ctx, fn)
	}
	return l.spawn(ctx, fn)
}

func (l liar) SpawnBatch(ctx context.Context, fns ...func(*registry.Window) error) []error {
	if l.batch == nil {
		return l.gate.SpawnBatch(ctx, fns...)
	}
	return l.batch(ctx, fns...)
}

func (l liar) Destroy(h handles.Local) error {
	if l.destroy == nil {
		return l.gate.Destroy(h)
	}
	return l.destroy(h)
}

func (l liar) Lane() lane {
	if !l.lane {
		return l.gate.Lane()
	}
	return &lyingLane{lanes: [2]lane{l.gate.Lane(), l.gate.Lane()}}
}

// lyingLane is two lanes, of which each has its own order.
type lyingLane struct {
	lanes [2]lane
	n     int
}

func (l *lyingLane) Enqueue(fn func(*registry.Window) error) (ticket, error) {
	l.n++
	return l.lanes[l.n%2].Enqueue(fn)
}

// WithLie is a context in which scenarios have that engine.
func WithLie(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, wrapKey{}, Lies[name])
}
