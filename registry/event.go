package registry

import (
	"errors"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/caller"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// EventKind is what an event tells. Events reach observers in the order of the kinds.
type EventKind uint8

// The kinds of events, in the order in which they are told.
const (
	Spawned EventKind = iota
	Added
	Removed
	Moved
	Destroyed

	kinds     = 5
	kindMoves = kinds // an OnMove subscriber, in an Observer's kind
)

// String is the name of the kind.
func (k EventKind) String() string {
	return [...]string{"Spawned", "Added", "Removed", "Moved", "Destroyed"}[min(k, Destroyed)]
}

// Event is one fact about one entity. Component says what was added or removed.
type Event struct {
	Kind      EventKind
	Entity    handles.Local
	Component archetype.ComponentID
}

// Observer is a subscription to events or to moves.
type Observer struct {
	r      *Registry
	kind   EventKind
	number int // in the order of subscription
	event  func(*Frame, []Event)
	move   func([]Move)
	left   bool // guarded by Registry.mu
}

// Observe calls fn with what has happened of one kind: after the window, after the last
// phase of a frame, and at the end of Update, in one batch a time. fn may spawn (SpawnLater),
// destroy, subscribe and unsubscribe; structure it asks for comes with the next window. The
// events are valid during the call. A panic in fn is reported once and stops no other
// observer. It takes effect at the next window.
//
// Errors: an unknown kind, a nil fn.
// Concurrency: any goroutine. Allocates: yes.
func (r *Registry) Observe(kind EventKind, fn func(*Frame, []Event)) (*Observer, error) {
	if kind >= kinds {
		return nil, errors.New("registry: Observe of an unknown event kind")
	}
	if fn == nil {
		return nil, errors.New("registry: Observe without a function")
	}
	return r.subscribe(&Observer{r: r, kind: kind, event: fn}), nil
}

func (r *Registry) subscribe(o *Observer) *Observer {
	if o.move != nil {
		o.kind = kindMoves
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.obsNumber++
	o.number = r.obsNumber
	r.obsQueue = append(r.obsQueue, o)
	return o
}

// Remove ends the subscription from the next window on.
//
// Errors: ErrStale when it was removed before.
// Concurrency: any goroutine. Allocates: no.
func (o *Observer) Remove() error {
	o.r.mu.Lock()
	defer o.r.mu.Unlock()
	if o.left {
		return ErrStale
	}
	o.left, o.r.obsLeave = true, true
	return nil
}

// admitObservers lets subscriptions and removals take effect. Owner, at a window.
func (r *Registry) admitObservers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.obsQueue) == 0 && !r.obsLeave {
		return
	}
	for _, o := range r.obsQueue {
		if o.kind == kindMoves {
			r.movers = append(r.movers, o)
		} else {
			r.observers[o.kind] = append(r.observers[o.kind], o)
		}
	}
	clear(r.obsQueue)
	r.obsQueue = r.obsQueue[:0]
	if r.obsLeave {
		r.movers = staying(r.movers)
		for k := range r.observers {
			r.observers[k] = staying(r.observers[k])
		}
		r.obsLeave = false
	}
}

// staying drops those that have left; mu is held.
func staying(os []*Observer) []*Observer {
	kept := os[:0]
	for _, o := range os {
		if !o.left {
			kept = append(kept, o)
		}
	}
	clear(os[len(kept):])
	return kept
}

// event notes a fact when somebody observes its kind. Owner, or holder of wishMu.
func (r *Registry) event(kind EventKind, h handles.Local, comp archetype.ComponentID) {
	if len(r.observers[kind]) > 0 {
		r.events[kind] = append(r.events[kind], Event{Kind: kind, Entity: h, Component: comp})
	}
}

// unevent takes the last event of a kind about h back, which an undone step has noted.
func (r *Registry) unevent(kind EventKind, h handles.Local) {
	es := r.events[kind]
	for i := len(es) - 1; i >= 0; i-- {
		if es[i].Entity == h {
			r.events[kind] = append(es[:i], es[i+1:]...)
			return
		}
	}
}

// delivery is how far telling the observers has come. It outlives the goroutine that
// tells: when an observer exits it, the next call of deliver goes on behind that observer.
type delivery struct {
	open  bool
	kind  EventKind
	next  int // observer of kind
	batch []Event
}

// deliver tells the observers everything that has happened, and what they cause to happen
// (a death that kills another, say), until there is nothing left. It loops rather than
// recurs. It ends: observers can only destroy, and structure they ask for waits. Owner only.
func (r *Registry) deliver() {
	if !r.pendingEvents() {
		return
	}
	f := r.currentFrame()
	d := &r.delivering
	r.inFrame = true
	r.openShort(&f.token)
	defer func() { // also when an observer exits
		r.inFrame = false
		r.closeShort()
	}()
	for {
		if !d.open {
			if !r.openBatch() {
				break
			}
		}
		for d.next < len(r.observers[d.kind]) {
			o := r.observers[d.kind][d.next]
			d.next++
			r.tellObserver(o, f, d.batch)
			if planted.Enabled && planted.Is(planted.ObserverToldTwice) {
				r.tellObserver(o, f, d.batch)
			}
		}
		d.open = false
	}
}

func (r *Registry) pendingEvents() bool {
	if r.delivering.open {
		return true
	}
	for k := range r.events {
		if len(r.events[k]) > 0 {
			return true
		}
	}
	return false
}

// openBatch takes the events of the first kind that has any. The two slices of a kind
// change places, so that a steady number of events allocates nothing.
func (r *Registry) openBatch() bool {
	if planted.Enabled && planted.Is(planted.EventsOutOfOrder) {
		for k := range r.events {
			slices.Reverse(r.events[k])
		}
	}
	for k := range r.events {
		if len(r.events[k]) > 0 {
			d := &r.delivering
			spare := r.spareEvents[k]
			r.spareEvents[k] = r.events[k]
			d.open, d.kind, d.next, d.batch = true, EventKind(k), 0, r.events[k]
			r.events[k] = spare[:0]
			return true
		}
	}
	return false
}

func (r *Registry) tellObserver(o *Observer, f *Frame, batch []Event) {
	defer func() {
		if v := recover(); v != nil {
			r.report(r.panicError(o.kind.String()+" observer", v))
		}
	}()
	caller.Within(r.id, func() { o.event(f, batch) })
}

// panicError wraps a recovered value; called in the deferred function that recovered it.
func (r *Registry) panicError(where string, v any) error {
	return newPanicError(where, v, r.frame.Load())
}

// report hands a failure to the engine, or keeps it for Update's answer. Owner only.
func (r *Registry) report(err error) {
	if c := r.engine.Load(); c != nil && c.hooks.OnError != nil {
		c.hooks.OnError(err)
		return
	}
	r.reported = append(r.reported, err)
}
