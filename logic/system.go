package logic

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/registry"
)

// Phase is a part of a frame. The phases run in the order of their declaration.
type Phase uint8

// The phases of a frame.
const (
	PrePhysics Phase = iota
	Physics
	PostPhysics
	Late

	phaseCount
)

// String is the phase's name.
//
// Concurrency: any goroutine; never waits. Allocates: no, for the declared phases.
func (p Phase) String() string {
	if p < phaseCount {
		return [phaseCount]string{"PrePhysics", "Physics", "PostPhysics", "Late"}[p]
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// Frame is what a system gets: the right to read and write this frame's cells, and the time
// it stands for. It expires with the frame.
type Frame struct {
	*registry.Frame
	Delta float64 // seconds a frame stands for: 1 / Config.Rate, always
}

// System is a registered callback of a phase.
type System struct {
	e       *Engine
	phase   Phase
	name    string
	region  string // what a trace calls it
	fn      func(*Frame)
	removed atomic.Bool
}

// systemChange is a registration or a removal that waits for the next window.
type systemChange struct {
	system *System
	remove bool
}

// registrations are the changes to the systems that wait. A short mutex guards them; Logic
// takes them out whole.
type registrations struct {
	mu      sync.Mutex // guards waiting; leaf lock
	waiting []systemChange
	taken   []systemChange // Logic's, swapped with waiting
	any     atomic.Bool    // something waits: spares a steady frame the lock
}

func (r *registrations) add(c systemChange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, c)
	r.any.Store(true)
}

// take gives what waits, oldest first, valid until the next call. Logic only.
func (r *registrations) take() []systemChange {
	if !r.any.Load() {
		return nil
	}
	clear(r.taken)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting, r.taken = r.taken[:0], r.waiting
	r.any.Store(false)
	return r.taken
}

// without is list without s. It is a new slice: a frame may be walking the old one.
func without(list []*System, s *System) []*System {
	kept := make([]*System, 0, len(list))
	for _, other := range list {
		if other != s {
			kept = append(kept, other)
		}
	}
	return kept
}

// AddSystem has fn run in every frame from the next window on, in its phase, after the
// systems registered before it. The name is the cause in obituaries of what it destroys,
// and tells its failures apart. A system added by another one begins in the next frame.
//
// Errors: ErrStopped; an unknown phase; a nil fn.
// Concurrency: any goroutine; never waits. Allocates: the system.
func (e *Engine) AddSystem(phase Phase, name string, fn func(*Frame)) (*System, error) {
	switch {
	case phase >= phaseCount:
		return nil, fmt.Errorf("logic: system %q: there is no phase %d", name, phase)
	case fn == nil:
		return nil, fmt.Errorf("logic: system %q: %w", name, errors.New("nil function"))
	case e.stopAsked():
		return nil, ErrStopped
	}
	s := &System{e: e, phase: phase, name: name, region: traceSystem + name, fn: fn}
	e.registrations.add(systemChange{system: s})
	return s, nil
}

// Remove takes the system out at the next window; in the frame in progress it may still run.
// A second call is harmless.
//
// Concurrency: any goroutine; never waits. Allocates: no, but for growth.
func (s *System) Remove() error {
	if s.removed.CompareAndSwap(false, true) {
		s.e.registrations.add(systemChange{system: s, remove: true})
	}
	return nil
}

// Name is the name it was registered under.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (s *System) Name() string { return s.name }
