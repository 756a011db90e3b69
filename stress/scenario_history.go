package stress

import (
	"context"
	"log/slog"
	"sync"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

var discard = slog.New(slog.DiscardHandler)

// hall is where the clients of a history meet entities of each other.
type hall struct {
	mu    sync.Mutex // guards the rest; leaf lock
	known []guest
	next  int
}

type guest struct {
	h handles.Local
	n handles.Net
}

func newHall(size int) *hall { return &hall{known: make([]guest, size)} }

func (k *hall) add(g guest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[k.next%len(k.known)] = g
	k.next++
}

func (k *hall) pick(i int) guest {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.known[i%len(k.known)]
}

// call is one random call by a client.
func (p *producer) call(h *History, known *hall) error {
	r, who := p.g.reg, known.pick(p.rng.IntN(1<<20))
	c := Call{Client: p.id, Local: who.h, Net: who.n}
	n := p.rng.IntN(100)
	if who.h == 0 {
		n = 0
	}
	window := func(fn func(w *registry.Window) error) error {
		if n%2 == 0 {
			return p.g.gate.Spawn(context.Background(), fn)
		}
		t, err := p.lane.Enqueue(fn)
		if err != nil {
			return err
		}
		<-t.Done()
		return t.Err()
	}
	var err error
	switch c.Begin = h.Now(); {
	case n < 22:
		c.What, c.Net = SpawnCall, 0
		err = window(func(w *registry.Window) (err error) {
			if c.Local, err = p.g.bodies.Spawn(w, body{}); err != nil {
				return err
			}
			return registry.Set(w, c.Local, mark{Self: c.Local})
		})
		if OutcomeOf(err) == Exhausted {
			return nil // it has changed nothing: no call
		}
		if err == nil {
			p.book.Spawned++
			known.add(guest{h: c.Local})
		}
	case n < 40:
		c.What = DestroyCall
		if n%3 == 0 {
			err = window(func(w *registry.Window) error { return w.Destroy(c.Local) })
		} else {
			err = p.g.gate.Destroy(c.Local)
		}
		if err == nil {
			p.book.Destroyed++
		}
	case n < 55:
		c.What = AliveCall
		if !r.Alive(c.Local) {
			err = registry.ErrStale
		}
	case n < 70:
		c.What = ResolveCall
		_, err = r.Resolve(c.Local)
	case n < 82:
		c.What = AssignNetCall
		err = window(func(w *registry.Window) (err error) {
			c.Net, err = w.AssignNet(c.Local)
			return err
		})
		if err == nil {
			known.add(guest{c.Local, c.Net})
		}
	case n < 94 && c.Net != 0:
		c.What = ResolveNetCall
		var back handles.Local
		if back, err = r.ResolveNet(c.Net); err == nil && back != c.Local {
			p.g.ledger.Violate(NoAlias, "%v was given to %v, and names %v", c.Net, c.Local, back)
		}
	default:
		c.What = ConfirmCall
		err = window(func(w *registry.Window) error {
			w.ConfirmLocalRecycles()
			w.ConfirmNetRecycles()
			return nil
		})
	}
	return h.Add(c, err)
}
