package pool

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// newborn is an entity of a spawn in progress.
type newborn struct {
	h     handles.Local
	block *registry.Block // nil: it is not of a pool
}

// Spawn makes an entity of a prefab, and those below it, and gives the handle of the first. All of them come into being or
// none. Where a pool has no idle slots left it grows; one that may not refuses, and counts that.
//
// Errors: registry.ErrNotRegistered for a prefab that is not defined, or has a child that is not; ErrExhausted if a pool is
// full or the registry is; registry.ErrExpired; a window of another registry.
// Concurrency: window holder. Allocates: no, but when a pool grows and for the growth of logs.
func (p *Prefabs) Spawn(w *registry.Window, id string) (handles.Local, error) {
	if err := p.opens(w); err != nil {
		return 0, err
	}
	t, err := p.treeOf(id)
	if err != nil {
		return 0, err
	}
	for i := range t.demands { // first all that need not change anything
		d := &t.demands[i]
		d.of.begin(p.r, d.def)
		if err := d.of.fits(d.n); err != nil {
			d.of.refuse.Add(1)
			return 0, fmt.Errorf("pool: spawning %q: %w", id, err)
		}
	}
	for i := range t.demands {
		d := &t.demands[i]
		if err := d.of.widen(w, d.def.kind, d.n); err != nil {
			d.of.refuse.Add(1)
			return 0, fmt.Errorf("pool: spawning %q: %w", id, err)
		}
	}
	if err := p.bear(w, t, func(m *member) (newborn, error) {
		if m.of.pool.Load() != nil {
			return m.of.take(w, m.def.kind)
		}
		h, err := m.def.kind.spawn(w)
		return newborn{h: h}, err
	}); err != nil {
		return 0, err
	}
	for i, m := range t.members {
		if m.parent < 0 || planted.Enabled && planted.Is(planted.PrefabChildLeaked) && i > 1 {
			continue
		}
		if err := registry.SetParent(w, p.born[i].h, p.born[m.parent].h); err != nil { // others have destroyed one of them meanwhile
			return 0, errors.Join(fmt.Errorf("pool: spawning %q: %w", id, err), p.takeBack(w))
		}
	}
	return p.born[0].h, nil
}

// SpawnNow is Spawn from a system: the entities are there at once, for what runs after this in the frame. It takes idle
// slots of pools, as many as their blocks have; a pool does not grow in a frame, and what has no pool cannot be
// spawned in one. Somebody below another dies with it from the next window on; if the upper one is dead by then, the
// other ends there.
//
// What it does depends on the blocks alone, and not on what was declared, so that a frame that is simulated again, or
// replayed, has the same entities. A pool that was declared smaller than its blocks can be filled beyond that.
//
// Errors: as Spawn; ErrExhausted without idle slots for all, of which nothing has come then; registry.ErrParallel for the
// frame of a part of a parallel loop.
// Concurrency: Logic, inside a frame. Allocates: if there are children; no otherwise, but for the growth of logs.
func (p *Prefabs) SpawnNow(f *registry.Frame, id string) (handles.Local, error) {
	if err := p.opens(f); err != nil {
		return 0, err
	}
	t, err := p.treeOf(id)
	if err != nil {
		return 0, err
	}
	for i := range t.demands {
		d := &t.demands[i]
		d.of.begin(p.r, d.def)
		if _, slots, inUse := d.of.tally(); slots-inUse < d.n {
			d.of.refuse.Add(1)
			return 0, fmt.Errorf("pool: spawning %q: prefab %q has no idle slots left, and a frame makes none: %w", id, d.of.id, ErrExhausted)
		}
	}
	if err := p.bear(f, t, func(m *member) (newborn, error) { return m.of.take(f, m.def.kind) }); err != nil {
		return 0, err
	}
	if len(t.members) > 1 {
		p.linkLater(f, t)
	}
	return p.born[0].h, nil
}

// linkLater has the newborns put below each other in the next window.
func (p *Prefabs) linkLater(f *registry.Frame, t *prefabTree) {
	links := make([][2]handles.Local, 0, len(t.members)-1)
	for i, m := range t.members {
		if m.parent >= 0 {
			links = append(links, [2]handles.Local{p.born[i].h, p.born[m.parent].h})
		}
	}
	f.Defer(func(w *registry.Window) error {
		for _, l := range links {
			if registry.SetParent(w, l[0], l[1]) != nil { // then it dies, as it would have with the other
				_ = w.Destroy(l[0]) // or it is dead already
			}
		}
		return nil
	})
}

// opens checks a token.
func (p *Prefabs) opens(a registry.Access) error {
	r, err := registry.Opened(a)
	if err != nil {
		return err
	}
	if r != p.r {
		return errors.New("pool: the prefabs belong to another registry")
	}
	return nil
}

// bear makes the members of a tree, one after the other, and takes them back if one fails.
func (p *Prefabs) bear(a registry.Access, t *prefabTree, spawn func(*member) (newborn, error)) error {
	p.born = p.born[:0]
	for i := range t.members {
		m := &t.members[i]
		n, err := spawn(m)
		if err != nil {
			if errors.Is(err, ErrExhausted) {
				m.of.refuse.Add(1)
			}
			return errors.Join(fmt.Errorf("pool: spawning %q: %w", t.members[0].of.id, err), p.takeBack(a))
		}
		p.born = append(p.born, n)
	}
	for i := range t.demands {
		t.demands[i].of.notePeak()
	}
	return nil
}

// takeBack ends what the spawn in progress has made, children first.
func (p *Prefabs) takeBack(a registry.Access) (failed error) {
	for i := len(p.born) - 1; i >= 0; i-- {
		var err error
		if n := p.born[i]; n.block != nil {
			err = n.block.Despawn(a, n.h)
		} else if w, ok := a.(*registry.Window); ok {
			err = w.Destroy(n.h)
		}
		if err != nil && !errors.Is(err, registry.ErrStale) { // others may have destroyed it meanwhile
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// take spawns in the first block that has an idle slot.
func (q *prefab) take(a registry.Access, k kind) (newborn, error) {
	for _, b := range q.blocks.Load().usable {
		if b.Free() == 0 {
			continue
		}
		h, err := k.spawnIn(a, b)
		if err == nil || !errors.Is(err, ErrExhausted) { // else the idle ones were destroyed by other goroutines
			return newborn{h: h, block: b}, err
		}
	}
	return newborn{}, fmt.Errorf("prefab %q has no idle slot: %w", q.id, ErrExhausted)
}

// GiveBack ends an entity of a prefab, and all below it. If it is from a pool, its slot is idle again at once; those of
// entities below it are by the next frame. Registry.Destroy and Window.Destroy do the same, only that no slot is
// idle before the next frame.
//
// An entity counts as one of a prefab if it is in a pool of one, or in no pool and of the class of one.
//
// Errors: registry.ErrStale if it is dead; registry.ErrInvalidHandle if it is nobody's handle or not of a prefab; ErrIdle for
// the entity of an idle slot; registry.ErrExpired; a window of another registry. Nothing has happened then.
// Concurrency: window holder. Allocates: no, but for the growth of logs.
func (p *Prefabs) GiveBack(w *registry.Window, h handles.Local) error {
	if err := p.opens(w); err != nil {
		return err
	}
	ch, _, err := registry.Locate(w, h)
	if err != nil {
		return err
	}
	blocks := registry.Blocks(w)
	class := ch.Archetype().ClassName()
	if n := ch.Archetype().Pooled(); n != 0 {
		return p.despawn(w, blocks[n-1], class, h)
	}
	for _, b := range blocks { // with a component more or less than its class it stands elsewhere
		if _, ok := b.SlotOf(h); ok {
			return p.despawn(w, b, class, h)
		}
	}
	for _, q := range p.table.Load().byID {
		if d := q.def.Load(); d != nil && d.kind.className() == class {
			return w.Destroy(h)
		}
	}
	return notOfPrefab(h)
}

func notOfPrefab(h handles.Local) error {
	return fmt.Errorf("pool: %v is not of a prefab: %w", h, registry.ErrInvalidHandle)
}

// despawn ends an entity of a block, if that is one of a prefab of the class.
func (p *Prefabs) despawn(w *registry.Window, b *registry.Block, class string, h handles.Local) error {
	q := p.table.Load().byID[b.Name()]
	if q == nil {
		return notOfPrefab(h)
	}
	if d := q.def.Load(); d == nil || d.kind.className() != class {
		return notOfPrefab(h)
	}
	return b.Despawn(w, h)
}
