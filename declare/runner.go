package declare

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
	"github.com/airlock-ecs/airlock/snapshot"
)

// RunnerOptions say how a Runner runs. The zero value works.
type RunnerOptions struct {
	Backend        Backend
	CrossCheck     bool // run the other backend beside it, and compare after every step
	Workers        int  // of the engine; 0 means GOMAXPROCS
	TemporalFrames int  // of the registry: how deep it can go back; 0: not at all
}

// Runner is a declared world on its own: with a registry, which is deterministic, and an engine that is stepped.
//
// One goroutine at a time calls its methods.
type Runner struct {
	p        *Program
	main     side
	other    side // of a cross-check
	checked  bool
	failure  error // ends it
	swapped  bool  // main is the interpreter
	released bool
}

// side is an engine with the world in it.
type side struct {
	e *logic.Engine
	w *World
}

// CrossCheckError says where the two backends differ first: in which step, and there in the entity with the lowest id.
type CrossCheckError struct {
	Step        uint64 // the step after which they differ, the first of which is step 0
	ID          uint32 // 0 if no value differs, but what else is part of the hash
	Entity      string // its name
	Slot        string // name of the state slot, or "active"
	Batch       float64
	Interpreter float64
	Detail      string // what else is known
}

// Error says what differs.
//
// Concurrency: any goroutine. Allocates: yes.
func (e *CrossCheckError) Error() string {
	if e.ID == 0 {
		return fmt.Sprintf("declare: step %d: the backends differ: %s", e.Step, e.Detail)
	}
	return fmt.Sprintf("declare: step %d: the backends differ in %s of %s (id %d): batch %v (%#016x), interpreter %v (%#016x)",
		e.Step, e.Slot, e.Entity, e.ID, e.Batch, math.Float64bits(e.Batch), e.Interpreter, math.Float64bits(e.Interpreter))
}

// NewRunner makes a registry and an engine for a world. Close ends it.
//
// Errors: as Attach; those of the configurations of registry and engine.
// Concurrency: any goroutine. Allocates: yes.
func NewRunner(p *Program, o RunnerOptions) (*Runner, error) {
	if p == nil {
		return nil, errors.New("declare: a runner without a program")
	}
	r := &Runner{p: p, checked: o.CrossCheck, swapped: o.Backend == Interpreter}
	var err error
	if r.main, err = newSide(p, o); err != nil {
		return nil, err
	}
	if o.CrossCheck {
		other := o
		if other.Backend = Interpreter; r.swapped {
			other.Backend = Batch
		}
		if r.other, err = newSide(p, other); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

func newSide(p *Program, o RunnerOptions) (side, error) {
	reg, err := registry.New(registry.Config{MaxEntities: p.Len() + 1, TemporalFrames: o.TemporalFrames, Deterministic: true})
	if err != nil {
		return side{}, err
	}
	e, err := logic.New(reg, logic.Config{Workers: o.Workers, Watchdog: time.Hour})
	if err != nil {
		return side{}, err
	}
	w, err := Attach(e, p, Options{Backend: o.Backend})
	if err != nil {
		return side{}, errors.Join(err, e.Stop())
	}
	return side{e, w}, nil
}

// Step runs one step. After an error there are no further ones.
//
// Errors: a *CrossCheckError; what a panic of the engine's other systems is; logic.ErrStopped after Close.
// Concurrency: one goroutine at a time. Allocates: no, but for a cross-check.
func (r *Runner) Step() error {
	if r.failure != nil {
		return r.failure
	}
	step := r.main.w.Steps()
	r.failure = r.main.e.Step()
	if r.failure == nil && r.checked {
		r.failure = r.other.e.Step()
		if r.failure == nil {
			r.failure = r.compare(step)
		}
	}
	return r.failure
}

// Engine is the engine, in which Go systems may run beside the world; not with a cross-check, which knows nothing of
// them.
//
// Concurrency: any goroutine. Allocates: no.
func (r *Runner) Engine() *logic.Engine { return r.main.e }

// World is the world.
//
// Concurrency: any goroutine. Allocates: no.
func (r *Runner) World() *World { return r.main.w }

// Hash is snapshot.Hash of the registry as it is after the last step.
//
// Errors: as snapshot.Hash; logic.ErrStopped is none.
// Concurrency: one goroutine at a time. Allocates: no, but for growth.
func (r *Runner) Hash() (uint64, error) { return r.main.hash() }

// hash takes the published frame if that is the last one, for a window would begin the next.
func (s side) hash() (hash uint64, err error) {
	reg := s.e.Registry()
	if snap, acquired := reg.Acquire(); acquired == nil {
		defer snap.Release()
		if snap.FrameNumber() == s.e.FrameNumber() {
			return snapshot.Hash(snap)
		}
	}
	err = reg.Update(func(w *registry.Window) error {
		hash, err = snapshot.Hash(w)
		return err
	})
	return hash, err
}

// Close ends the engine. A second call is harmless.
//
// Errors: those of logic.Engine.Stop.
// Concurrency: one goroutine at a time. Allocates: yes.
func (r *Runner) Close() error {
	if r.released {
		return nil
	}
	r.released = true
	var errs []error
	for _, s := range []side{r.main, r.other} {
		if s.e != nil {
			errs = append(errs, s.e.Stop())
		}
	}
	return errors.Join(errs...)
}

// compare compares the two sides after a step.
func (r *Runner) compare(step uint64) error {
	a, err := r.main.hash()
	if err != nil {
		return err
	}
	b, err := r.other.hash()
	if err != nil || a == b {
		return err
	}
	batch, interpreter := r.main, r.other
	if r.swapped {
		batch, interpreter = interpreter, batch
	}
	found := &CrossCheckError{Step: step}
	err = batch.e.Registry().Update(func(x *registry.Window) error {
		return interpreter.e.Registry().Update(func(y *registry.Window) error {
			r.difference(found, batch.w, x, interpreter.w, y)
			return nil
		})
	})
	if err != nil {
		return err
	}
	return found
}

// difference finds the first value that differs.
func (r *Runner) difference(found *CrossCheckError, batch *World, x *registry.Window, interpreter *World, y *registry.Window) {
	note := func(id uint32, slot string, a, b float64) bool {
		if math.Float64bits(a) == math.Float64bits(b) {
			return false
		}
		found.ID, found.Entity, found.Slot, found.Batch, found.Interpreter = id, r.p.Name(id), slot, a, b
		return true
	}
	for i := range r.p.Groups {
		g := &r.p.Groups[i]
		for id := g.First; id < g.First+uint32(g.Count); id++ {
			a, aActive, _ := batch.State(x, id)
			b, bActive, _ := interpreter.State(y, id)
			for s := range g.Slots {
				if note(id, g.Slots[s].Name, a[s], b[s]) {
					return
				}
			}
			if note(id, "active", truth(aActive), truth(bActive)) {
				return
			}
		}
	}
	if d, differs := snapshot.Diff(x, y); differs {
		found.Detail = d.String()
	} else {
		found.Detail = "the hashes differ, but no value does"
	}
}
