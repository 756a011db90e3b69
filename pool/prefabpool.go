package pool

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// ErrInUse reports a declaration that does not go with what is in use of a pool.
var ErrInUse = errors.New("pool: in use")

// settings are what was declared of a pool. They are replaced, never changed.
type settings struct {
	Declared
	reach int // the most of what the blocks have that may be in use before the pool grows; noReach for all
}

// noReach is the reach of a pool in which all that its blocks have may be in use.
const noReach = math.MaxInt

// blockList are the blocks of a pool. It is replaced, never changed.
type blockList struct {
	all    []*registry.Block // as the registry has them
	usable []*registry.Block // those of the prefab's class
}

// limit is what may be in use of blocks with some slots, before the pool grows.
func (s *settings) limit(slots int) int { return min(max(s.Capacity, slots), s.reach) }

// defaults are the settings of a pool that nobody has declared.
func defaults(id string) *settings {
	return &settings{Declared: Declared{Prefab: id, Capacity: defaultCapacity}, reach: noReach}
}

// look finds out which blocks there are now. Owner only.
func (q *prefab) look(r *registry.Registry, d *definition) {
	all := r.BlocksNamed(q.id)
	list := q.blocks.Load()
	if list != nil && slices.Equal(list.all, all) {
		return
	}
	list = &blockList{all: slices.Clone(all)}
	for _, b := range list.all { // a saved world may have called other ones so
		if b.Chunks()[0].Archetype().ClassName() == d.kind.className() {
			list.usable = append(list.usable, b)
		}
	}
	q.blocks.Store(list)
}

// begin is look before a spawn: with it, a prefab has the pool that it has by default. Owner only.
func (q *prefab) begin(r *registry.Registry, d *definition) {
	q.look(r, d)
	if q.pool.Load() == nil && (d.pooled || len(q.blocks.Load().usable) > 0) {
		q.pool.Store(defaults(q.id))
	}
}

// count says what the pool has, at the last boundary or, inside a callback, now: its settings, nil for none, the slots of its
// blocks, and how many are in use. Any goroutine.
func (q *prefab) count() (s *settings, slots, inUse int) {
	if list := q.blocks.Load(); list != nil {
		for _, b := range list.usable {
			c := b.Counts()
			slots += c.InUse + c.Free
			inUse += c.InUse
		}
	}
	return q.pool.Load(), slots, inUse
}

// tally is count at this moment. Owner only.
func (q *prefab) tally() (s *settings, slots, inUse int) {
	if list := q.blocks.Load(); list != nil {
		for _, b := range list.usable {
			n := b.InUse()
			if planted.Enabled && planted.Is(planted.PoolCountsTwice) {
				inUse += n / 2
			}
			slots += n + b.Free()
			inUse += n
		}
	}
	return q.pool.Load(), slots, inUse
}

// notePeak notes what is in use. Owner only.
func (q *prefab) notePeak() {
	if _, _, inUse := q.tally(); int64(inUse) > q.peak.Load() {
		q.peak.Store(int64(inUse))
	}
}

// grow is the limit with which n more may be in use, and in how many steps it is reached; false if it never is.
func (s *settings) grow(slots, inUse, n int) (limit, steps int, ok bool) {
	for limit = s.limit(slots); limit < inUse+n; steps++ {
		next := s.Grow.next(limit, s.Max)
		if next == limit {
			return limit, steps, false
		}
		limit = next
	}
	return limit, steps, true
}

// fits says whether n more may be in use of the pool, if there is one, however it has to grow.
func (q *prefab) fits(n int) error {
	s, slots, inUse := q.tally()
	if s == nil {
		return nil
	}
	if limit, _, ok := s.grow(slots, inUse, n); !ok {
		return fmt.Errorf("prefab %q has %d of %d in use: %w", q.id, inUse, limit, ErrExhausted)
	}
	return nil
}

// widen makes room for n more, which fit. Owner only.
func (q *prefab) widen(w *registry.Window, k kind, n int) error {
	s, slots, inUse := q.tally()
	if s == nil {
		return nil
	}
	limit, steps, _ := s.grow(slots, inUse, n)
	if inUse+n > slots {
		if err := q.build(w, k, limit-slots, inUse+n-slots); err != nil {
			return err
		}
	}
	if steps > 0 {
		q.grown.Add(int64(steps))
		if s.reach != noReach {
			raised := *s
			if raised.reach = limit; limit >= slots {
				raised.reach = noReach
			}
			q.pool.Store(&raised)
		}
	}
	return nil
}

// build makes a block of some slots, or, if there is no room for them, of fewer, but at least some.
func (q *prefab) build(w *registry.Window, k kind, slots, least int) error {
	for {
		_, err := k.newBlock(w, q.id, slots)
		if err == nil {
			q.look(w.Registry(), q.def.Load())
			return nil
		}
		if !errors.Is(err, ErrExhausted) || slots <= least {
			return fmt.Errorf("prefab %q cannot grow by %d: %w", q.id, slots, err)
		}
		slots = max(slots/2, least)
	}
}

// Ready makes sure that n of a prefab can be spawned without growing, as far as its pool may grow: for systems, which spawn
// from what there is. What is below the prefab is not looked at.
//
// Errors: registry.ErrNotRegistered for a prefab that is not defined; ErrExhausted if the pool may not grow so far, or there is
// no room, which is not counted as refused, or if it has no pool; registry.ErrExpired; a window of another registry.
// Concurrency: window holder. Allocates: no, but when the pool grows.
func (p *Prefabs) Ready(w *registry.Window, id string, n int) error {
	if err := p.opens(w); err != nil {
		return err
	}
	q := p.table.Load().byID[id]
	if q == nil || q.def.Load() == nil {
		return fmt.Errorf("pool: there is no prefab %q: %w", id, registry.ErrNotRegistered)
	}
	d := q.def.Load()
	q.begin(p.r, d)
	if q.pool.Load() == nil {
		return fmt.Errorf("pool: prefab %q has no pool: %w", id, ErrExhausted)
	}
	if most := p.r.Config().MaxEntities; n > most { // step by step, and from some numbers on never, a pool would grow so far
		return fmt.Errorf("pool: %d of prefab %q, and MaxEntities is %d: %w", n, id, most, ErrExhausted)
	}
	err := q.fits(n)
	if err == nil {
		err = q.widen(w, d.kind, n)
	}
	if err != nil {
		return fmt.Errorf("pool: %w", err)
	}
	return nil
}

// Stats gives the pools that there are, in the order of their ids: those that were declared, whether their prefab is
// defined or not, and those that came into being with a first spawn.
//
// Cap is what may be in use before the pool grows, whether there are blocks for it already or not; Built is how many
// slots the blocks have. InUse counts who is in a slot, in whatever way he got there, when the last callback or system
// ended; who is inside one sees how it is now. Blocks that have come without these Prefabs, when frames were simulated again or
// a saved world was loaded, count from their next use. Peak, Refused and Grown count what went through these Prefabs.
//
// Concurrency: any goroutine; never waits. Allocates: no, but inside a callback.
func (p *Prefabs) Stats() iter.Seq2[string, Stats] {
	return func(yield func(string, Stats) bool) {
		t := p.table.Load()
		for _, id := range t.ids {
			if s, ok := t.byID[id].stats(); ok && !yield(id, s) {
				return
			}
		}
	}
}

// StatsOf is what Stats says of a pool, and whether there is one.
//
// Concurrency: any goroutine; never waits. Allocates: no, but inside a callback.
func (p *Prefabs) StatsOf(id string) (Stats, bool) {
	if q := p.table.Load().byID[id]; q != nil {
		return q.stats()
	}
	return Stats{}, false
}

func (q *prefab) stats() (Stats, bool) {
	s, slots, inUse := q.count()
	if s == nil {
		return Stats{}, false
	}
	limit := max(s.limit(slots), inUse)
	most := s.Max
	if most > 0 {
		most = max(most, limit)
	}
	return Stats{
		Cap: limit, InUse: inUse, Free: limit - inUse, Peak: max(int(q.peak.Load()), inUse), Built: slots,
		Refused: int(q.refuse.Load()), Grown: int(q.grown.Load()),
		Max: most, Grow: s.Grow, Warm: s.Prewarm,
	}, true
}

// Declare gives a prefab a pool, or its pool other settings: capacity is what may be in use before it grows, as g says.
// With prewarm its slots are made at once, if the prefab is defined, and by the first spawn else. The prefab may be
// defined afterwards.
//
// A capacity below the one before makes the pool smaller: its blocks stay, and fewer of their slots are used. One above it
// or equal leaves the pool as large as it has grown.
//
// Errors: ErrInUse if more are in use than a smaller capacity allows; ErrExhausted without room to pre-warm;
// registry.ErrExpired; no id, a capacity below 0 or above 1<<24, a bad policy. Nothing has changed then.
// Concurrency: window holder. Allocates: yes.
func (p *Prefabs) Declare(w *registry.Window, id string, capacity int, g Grow, prewarm bool) error {
	return p.Apply(w, Declared{Prefab: id, Capacity: capacity, Grow: g, Prewarm: prewarm})
}

// Apply is Declare for any number of pools, all or none of them: what a pool file declares that was read elsewhere, say. A
// pool with a Max never grows beyond that.
//
// If there is no room to pre-warm them all, blocks that were made for some are there, idle and named after the prefab, unless the
// callback fails.
//
// Errors: as Declare, all that are wrong joined; a prefab twice.
// Concurrency: window holder. Allocates: yes.
func (p *Prefabs) Apply(w *registry.Window, declared ...Declared) error {
	if err := p.opens(w); err != nil {
		return err
	}
	_, err := p.apply(w, declared, nil, nil, false)
	return err
}

// Configure is Apply before there is a window: nothing is pre-warmed before the first spawn. A replay, say, is set up with
// it.
//
// Errors: as Apply.
// Concurrency: setup only. Allocates: yes.
func (p *Prefabs) Configure(declared ...Declared) error {
	_, err := p.apply(nil, declared, nil, nil, false)
	return err
}

// apply gives pools their settings, and those in gone none any more. What is impossible is refused by name, beside what
// errs has of that; what is possible goes in if partly says so or all is. It says whether anything has changed.
func (p *Prefabs) apply(w *registry.Window, declared []Declared, gone []string, errs []error, partly bool) (changed bool, err error) {
	seen := map[string]bool{}
	wanted := make([]Declared, 0, len(declared))
	for _, d := range declared {
		err := p.refusal(w, d)
		if err == nil && seen[d.Prefab] {
			err = fmt.Errorf("pool: prefab %q is declared twice", d.Prefab)
		}
		if seen[d.Prefab] = true; err != nil {
			errs = append(errs, err)
			continue
		}
		wanted = append(wanted, d)
	}
	left := make([]string, 0, len(gone))
	for _, id := range gone {
		if _, _, inUse := p.see(w, id); inUse > 0 {
			errs = append(errs, fmt.Errorf("%w: prefab %q is not declared any more, and has %d", ErrInUse, id, inUse))
			continue
		}
		left = append(left, id)
	}
	if len(errs) > 0 && !partly {
		return false, errors.Join(errs...)
	}
	for i := 0; i < len(wanted); i++ {
		made, err := p.prewarm(w, wanted[i])
		if changed = changed || made; err == nil {
			continue
		}
		errs = append(errs, err)
		if !partly {
			return changed, errors.Join(errs...)
		}
		wanted = slices.Delete(wanted, i, i+1)
		i--
	}
	for _, d := range wanted {
		changed = p.declare(w, d) || changed
	}
	for _, id := range left {
		changed = p.drop(w, id) || changed
	}
	return changed, errors.Join(errs...)
}

// see counts a pool as the registry has it now; w may be nil.
func (p *Prefabs) see(w *registry.Window, id string) (s *settings, slots, inUse int) {
	q := p.table.Load().byID[id]
	if q == nil {
		return nil, 0, 0
	}
	if w == nil {
		return q.count()
	}
	if d := q.def.Load(); d != nil {
		q.look(p.r, d)
	}
	return q.tally()
}

// refusal says why a declaration cannot be, nil if it can.
func (p *Prefabs) refusal(w *registry.Window, d Declared) error {
	if err := d.Grow.check(); err != nil {
		return fmt.Errorf("pool: prefab %q: %w", d.Prefab, err)
	}
	switch {
	case d.Prefab == "":
		return errors.New("pool: a declaration without the id of a prefab")
	case d.Capacity < 0 || d.Capacity > maxDeclared || d.Max < 0 || d.Max > maxDeclared:
		return fmt.Errorf("pool: prefab %q: capacity and max must be from 0 to %d, and are %d and %d", d.Prefab, maxDeclared, d.Capacity, d.Max)
	case d.Max > 0 && d.Max < d.Capacity:
		return fmt.Errorf("pool: prefab %q: the max of %d is below the capacity of %d", d.Prefab, d.Max, d.Capacity)
	}
	s, slots, inUse := p.see(w, d.Prefab)
	if s == nil || same(s.Declared, d) {
		return nil
	}
	if most := s.becomes(d, slots).reach; inUse > most {
		return fmt.Errorf("%w: prefab %q: %d are too few, for there are %d", ErrInUse, d.Prefab, most, inUse)
	}
	return nil
}

// becomes are the settings of a pool that has some slots when it is declared once more. s is nil if it is declared
// first: then what has come from elsewhere stays.
func (s *settings) becomes(d Declared, slots int) *settings {
	next := &settings{Declared: d, reach: noReach}
	switch {
	case s == nil:
	case d.Capacity < s.Capacity:
		next.reach = d.Capacity
	case s.reach != noReach:
		next.reach = max(s.reach, d.Capacity)
	}
	if d.Max > 0 {
		next.reach = min(next.reach, d.Max)
	}
	if next.reach >= slots {
		next.reach = noReach
	}
	return next
}

// prewarm makes the slots of a pool that is to have them at once, and says whether it made some.
func (p *Prefabs) prewarm(w *registry.Window, d Declared) (bool, error) {
	q := p.table.Load().byID[d.Prefab]
	if !d.Prewarm || q == nil || q.def.Load() == nil || w == nil {
		return false, nil
	}
	_, slots, _ := p.see(w, d.Prefab)
	more := d.Capacity - slots
	if more <= 0 {
		return false, nil
	}
	if err := q.build(w, q.def.Load().kind, more, more); err != nil {
		return false, fmt.Errorf("pool: pre-warming: %w", err)
	}
	return true, nil
}

// declare stores settings, and says whether they are others than before.
func (p *Prefabs) declare(w *registry.Window, d Declared) bool {
	q := p.named(d.Prefab)
	s, slots, _ := p.see(w, d.Prefab)
	if s != nil && same(s.Declared, d) {
		return false
	}
	q.pool.Store(s.becomes(d, slots))
	return true
}

// same says whether two declarations are, wherever they stand.
func same(a, b Declared) bool {
	a.Line, b.Line = 0, 0
	return a == b
}

// drop takes the settings of a pool back: it is as if it was never declared.
func (p *Prefabs) drop(w *registry.Window, id string) bool {
	s, slots, _ := p.see(w, id)
	if s == nil {
		return false
	}
	var left *settings
	if slots > 0 { // its blocks stay, and are a pool
		left = defaults(id)
	}
	p.table.Load().byID[id].pool.Store(left)
	return true
}
