package pool

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/airlock-ecs/airlock/internal/check"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// Config says what a pool holds and how far it goes. The zero value is a pool that starts empty and
// doubles, of a T that has a method Reset.
type Config[T any] struct {
	Name     string // for errors and reports; "" is the name of the type
	Capacity int    // places at the start
	Max      int    // the most places there may ever be; 0 means no limit but that of two million
	Grow     Grow   // what happens when all are in use; the zero value is Double
	Lazy     bool   // build the first Capacity instances when they are taken, not in New

	// New makes an instance, each time another; nil means new(T). One that it makes of memory the
	// collector does not free, or frees only with others, is not found when it is lost.
	New func() (*T, error)
	// Reset makes a used instance like a new one, and should keep its allocations. Nil means that T
	// has a method Reset.
	Reset func(*T)

	// OnLeak hears of each instance that was lost, on a goroutine of its own. Nil means that a
	// debug build writes it to the default log, and a release build just counts it.
	OnLeak func(Leak)
}

// Pool lends instances of T and takes them back. What was given back is lent again: it never goes
// away by itself, unlike in a sync.Pool, and New is called for the same place again only after the
// instance was lost, trimmed, or spoiled by a Reset that failed.
//
// An instance is in one of three hands. Free, the pool holds it. In use, only the guard and what
// the caller makes of it hold it, so that one that everybody has dropped is found by the collector.
// On its way, it belongs to the call that builds or resets it, and counts as in use.
//
// Invariant: InUse + Free == Cap at every instant, and Cap <= Max if there is a Max.
type Pool[T any] struct {
	name      string
	limit     int // the most places there may be
	max       int // as configured
	grow      Grow
	warm      bool
	build     func() (*T, error)
	reset     func(*T)
	onLeak    func(Leak)
	exhausted error // made once, so that a refusal allocates nothing

	free objectStack[T] // popped and pushed by any goroutine; it also counts what is in use
	peak atomic.Int64   // raised by whoever sees more in use; never above what was in use once
	made atomic.Int64   // instances that build has made

	mu      sync.Mutex // guards what follows; leaf lock: no other, and no stranger's code, under it
	cap     int        // what may be in use before the pool grows
	open    int        // places that exist: free or in use; at most cap, the others are opened when wanted
	spare   uint32     // the first of the places that Trim closed, as in objectPlace.next
	refused int
	leaked  int
	grown   int
}

// New makes a pool. Unless the configuration says Lazy it builds Capacity instances now; what is
// added by growing is built when it is first taken, so that no take pays for more than one.
//
// Errors: for a negative number, a Capacity above Max, a policy that does not grow, a T without
// reset, and what Config.New returns.
// Panics: as Config.New does.
// Concurrency: any goroutine. Allocates: yes.
func New[T any](c Config[T]) (*Pool[T], error) {
	if c.Name == "" {
		c.Name = objectName[T]()
	}
	p := &Pool[T]{
		name: c.Name, limit: objectPlaces, max: c.Max, grow: c.Grow, warm: !c.Lazy, cap: c.Capacity,
		build: c.New, reset: c.Reset, onLeak: c.OnLeak,
		exhausted: fmt.Errorf("pool %s: all in use: %w", c.Name, ErrExhausted),
	}
	if c.Max > 0 {
		p.limit = min(c.Max, objectPlaces)
	}
	if p.build == nil {
		p.build = objectMaker[T]()
	}
	if p.reset == nil {
		p.reset = objectResetter[T]()
	}
	if err := c.check(p); err != nil {
		return nil, fmt.Errorf("pool %s: %w", c.Name, err)
	}
	if !p.warm {
		return p, nil
	}
	for range p.cap {
		s := p.openLocked() // nobody else knows the pool yet
		v, err := p.newInstance(s)
		if err != nil {
			return nil, err
		}
		s.value = v
		p.free.push(s, 0)
	}
	return p, nil
}

// check finds what cannot be meant.
func (c *Config[T]) check(p *Pool[T]) error {
	switch {
	case c.Capacity < 0 || c.Max < 0:
		return fmt.Errorf("capacity %d, max %d: must not be negative", c.Capacity, c.Max)
	case c.Capacity > p.limit:
		return fmt.Errorf("capacity %d is above the maximum of %d", c.Capacity, p.limit)
	case p.reset == nil:
		return errors.New("no reset: set Config.Reset or give the type a method Reset()")
	}
	return c.Grow.check()
}

// Take lends an instance that is like a new one, until its guard is released. Somebody has to: a
// guard that is lost costs its instance, and the place is free again only after the collector has
// noticed.
//
// Errors: ErrExhausted when everything is in use and the pool may not grow, and what Config.New
// returns; either way nothing is taken, and no place is lost.
// Panics: as Config.New does.
// Concurrency: any goroutine; it waits for others for a few instructions. Allocates: not for what
// has been built.
func (p *Pool[T]) Take() (Handle[T], error) {
	s, inUse := p.free.pop(objectTaken)
	if s == nil {
		if s, inUse = p.another(); s == nil {
			return Handle[T]{}, p.exhausted
		}
	}
	if int64(inUse) > p.peak.Load() {
		p.raise(inUse)
	}
	v := s.value
	if v == nil {
		var err error
		if v, err = p.fill(s); err != nil {
			return Handle[T]{}, err
		}
	}
	s.value = nil // from here only the guard holds it
	h := Handle[T]{place: s, value: v, generation: s.generation.Load()}
	if check.Enabled {
		h.life.begin()
		s.life = h.life
	}
	return h, nil
}

// With lends an instance to fn and takes it back when fn returns, panics or exits. Its error is
// fn's, or Take's.
//
// Panics: as fn, Config.New and the reset do.
// Concurrency: any goroutine; fn may use the pool. Allocates: as Take.
func (p *Pool[T]) With(fn func(*T) error) error {
	h, err := p.Take()
	if err != nil {
		return err
	}
	// Nobody else has the guard, so that this cannot fail.
	defer func() { _ = h.Release() }()
	return fn(h.value)
}

// GiveBack takes an instance back, as Handle.Release does, if it is one of this pool's.
//
// Errors: ErrForeign for the guard of another pool, and those of Release.
// Panics: as the reset does; the place is free all the same.
// Concurrency: any goroutine; of several calls one succeeds. Allocates: no.
func (p *Pool[T]) GiveBack(h Handle[T]) error {
	if h.place == nil || h.place.pool != p {
		return fmt.Errorf("pool %s: give back: %w", p.name, ErrForeign)
	}
	return h.Release()
}

// putBack resets the instance v of s and frees the place. The call has them to itself: the guards are
// void, and nothing is free yet. In what state v is after a reset that failed nobody knows, so that
// it is not lent again then.
func (p *Pool[T]) putBack(s *objectPlace[T], v *T) {
	clean := false
	defer func() {
		if !clean {
			s.forget(v)
			p.free.push(s, objectTaken)
		}
	}()
	if planted.Enabled && planted.Is(planted.InstanceNotReset) {
		clean, s.value = true, v
		p.free.push(s, objectTaken)
		return
	}
	p.reset(v)
	clean = true
	s.value = v
	p.free.push(s, objectTaken)
}

// Trim closes free places until the capacity is target, or no more are free, and returns the
// capacity. Instances in those places are dropped: they were reset when they came back. The pool
// may grow again afterwards. A target below 0 counts as 0.
//
// Trim(Stats().Peak) keeps what was once needed.
//
// Concurrency: any goroutine. Allocates: no.
func (p *Pool[T]) Trim(target int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cap = min(p.cap, max(p.open, target)) // places that were never opened go first
	for p.cap > target {
		s, _ := p.free.pop(0)
		if s == nil {
			break
		}
		s.forget(s.value)
		s.next, p.spare = p.spare, s.index+1
		p.open--
		p.cap--
	}
	return p.cap
}

// another finds a place when none is free: it opens one, and grows the pool if it must. It is nil when
// the pool may not grow.
func (p *Pool[T]) another() (s *objectPlace[T], inUse int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s, inUse = p.free.pop(objectTaken); s != nil {
		return s, inUse
	}
	// At the moment pop looked, all open places were in use, whether those who took them have got so far as to say so or not.
	p.raise(p.open)
	if p.open == p.cap {
		next := p.grow.next(p.cap, p.limit)
		if next == p.cap {
			p.refused++
			return nil, 0
		}
		p.cap = next
		p.grown++
	}
	return p.openLocked(), p.free.count(objectTaken)
}

// openLocked opens a place that Trim closed, or the next new one. It is not free yet.
func (p *Pool[T]) openLocked() *objectPlace[T] {
	index := uint32(p.open) // when none is closed, those below are all open
	p.open++
	if p.spare == 0 {
		return p.free.segments.add(p, index)
	}
	s := p.free.at(p.spare - 1)
	p.spare = s.next
	return s
}

// fill builds an instance for a place that was taken without one. If there is none to be had the
// place is free again, whichever way that was said.
func (p *Pool[T]) fill(s *objectPlace[T]) (v *T, err error) {
	defer func() {
		if v == nil {
			p.free.push(s, objectTaken)
		}
	}()
	return p.newInstance(s)
}

// newInstance builds one, and has the collector tell when it is lost from s.
func (p *Pool[T]) newInstance(s *objectPlace[T]) (*T, error) {
	v, err := p.build()
	switch {
	case err != nil:
		return nil, fmt.Errorf("pool %s: new: %w", p.name, err)
	case v == nil:
		return nil, fmt.Errorf("pool %s: new: neither an instance nor an error", p.name)
	}
	if err := p.watch(s, v); err != nil {
		return nil, err
	}
	p.made.Add(1)
	return v, nil
}

// raise lifts the peak to what somebody has seen in use.
func (p *Pool[T]) raise(inUse int) {
	for {
		peak := p.peak.Load()
		if int64(inUse) <= peak || p.peak.CompareAndSwap(peak, int64(inUse)) {
			return
		}
	}
}

// Stats are the counters at one instant during the call: InUse and Free add up to Cap, also while
// others take and give back. That has its price: every take and release writes one word that all of them
// share. A pair takes under three times as long as one of a sync.Pool, which does not know what is
// in use, and among many goroutines ten times, which is half as long as behind a mutex
// (BenchmarkTakeRelease).
//
// Concurrency: any goroutine. Allocates: no.
func (p *Pool[T]) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	inUse := p.free.inUse()
	p.raise(inUse) // whoever took it may not have got so far
	return Stats{
		Cap: p.cap, InUse: inUse, Free: p.cap - inUse,
		Peak: int(p.peak.Load()), Built: int(p.made.Load()),
		Refused: p.refused, Leaked: p.leaked, Grown: p.grown,
		Max: p.max, Grow: p.grow, Warm: p.warm,
	}
}
