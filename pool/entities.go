package pool

import (
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// ErrIdle reports an operation on the entity of an idle slot that is not for those.
var ErrIdle = registry.ErrIdle

// Entities is a fixed block of slots for entities of one class, set aside at once: consecutive slots with consecutive
// cache indices and, at the start, consecutive local indices. Every slot has an entity from the start. It is idle at first,
// which is to say inactive: no query, count or event shows it, but it is part of the state, and its handle, Slot(i), is
// good for reading and writing its components. Spawning activates the lowest idle slot, and costs no slot, no index and
// no record; an entity that dies, in whatever way, leaves its slot to another one, idle, with the initial components. It
// has the next generation of the same index: the dead one's handle names nobody ever again.
//
// What goes on in a pool is undone with a callback that fails, and when the registry goes back to a frame of its past:
// Temporal components become what they were, others stay as they are.
//
// With a temporal ring, an entity that a callback from outside spawns has a name of its own rather than that of the
// idle slot, so that frames simulated again with other inputs cannot give it to somebody else.
//
// A block of n slots counts as n of Config.MaxEntities. It never grows; Prefabs are for that. A slot that has had
// 2^32-1 entities is retired.
//
// Concurrency: what takes a window is for its holder; see there for the others.
type Entities[E any] struct {
	c *registry.Class[E]
	b *registry.Block
}

// NewEntities sets n idle slots aside for entities of a class. Their components, and those that a slot has whenever its
// entity has died, are zero; NewEntitiesOf gives others. A failed callback takes it back.
//
// Errors: n below 1; ErrExhausted without room for n entities; registry.ErrExpired; a class of another registry.
// Concurrency: window holder. Allocates: yes.
func NewEntities[E any](w *registry.Window, c *registry.Class[E], n int) (*Entities[E], error) {
	return NewEntitiesOf(w, c, n, *new(E))
}

// NewEntitiesOf is NewEntities with the components that idle slots have.
//
// Errors: as NewEntities.
// Concurrency: window holder. Allocates: yes.
func NewEntitiesOf[E any](w *registry.Window, c *registry.Class[E], n int, initial E) (*Entities[E], error) {
	if c == nil {
		return nil, fmt.Errorf("pool: entities of no class: %w", registry.ErrNotRegistered)
	}
	b, err := registry.NewBlock(w, c, "", n, &initial)
	if err != nil {
		return nil, fmt.Errorf("pool: %d entities of class %s: %w", n, c.Name(), err)
	}
	return &Entities[E]{c: c, b: b}, nil
}

// EntitiesOf gives the blocks of a class that there are, in the order of their making, those of prefabs among them: after
// a saved state was loaded they are what NewEntities gave when it was saved.
//
// Panics: registry.ErrExpired; registry.ErrReadOnly for a snapshot.
// Concurrency: window holder, or Logic inside a frame. Allocates: yes.
func EntitiesOf[E any](a registry.Access, c *registry.Class[E]) []*Entities[E] {
	r, isPublished, err := registry.Source(a)
	if isPublished {
		err = registry.ErrReadOnly
	}
	if err != nil {
		panic(err)
	}
	var list []*Entities[E]
	for _, b := range registry.BlocksOf(r, c) {
		list = append(list, &Entities[E]{c: c, b: b})
	}
	return list
}

// Spawn activates the lowest idle slot, with the components of e. The handle is the slot's, but see Entities about a
// temporal ring. False if no slot is idle: nothing has happened then, but that it is counted as refused.
//
// Panics: registry.ErrExpired.
// Concurrency: window holder. Allocates: no, but for the growth of logs.
func (p *Entities[E]) Spawn(w *registry.Window, e E) (handles.Local, bool) {
	return registry.TrySpawnIn(w, p.c, p.b, &e)
}

// SpawnNow is Spawn from a system: the entity is there at once, for what runs after this in the frame. A loop that is open
// may or may not come to it.
//
// Panics: registry.ErrExpired; registry.ErrParallel for the frame of a part of a parallel loop.
// Concurrency: Logic, inside a frame. Allocates: no, but for the growth of logs.
func (p *Entities[E]) SpawnNow(f *registry.Frame, e E) (handles.Local, bool) {
	return registry.TrySpawnIn(f, p.c, p.b, &e)
}

// SpawnInitial is Spawn with the components that the idle slot has.
//
// Panics: as Spawn, or as SpawnNow.
// Concurrency: as Spawn, or as SpawnNow. Allocates: no, but for the growth of logs.
func (p *Entities[E]) SpawnInitial(a registry.Access) (handles.Local, bool) {
	return registry.TrySpawnIn(a, p.c, p.b, nil)
}

// told makes two answers of an error.
func (p *Entities[E]) told(h handles.Local, err error) (handles.Local, bool) {
	if err != nil && err != registry.ErrExhausted {
		if isMisuse(err) {
			panic(err)
		}
		return 0, false
	}
	return h, err == nil
}

// SpawnFrom is SpawnInitial with those components of a caller that both have. False, too, if the caller is not alive.
//
// Panics: registry.ErrExpired.
// Concurrency: window holder. Allocates: no, but for the growth of logs.
func (p *Entities[E]) SpawnFrom(w *registry.Window, caller handles.Local) (handles.Local, bool) {
	return p.told(p.b.SpawnFrom(w, caller))
}

// SpawnFromNow is SpawnFrom from a system, as SpawnNow is Spawn.
//
// Panics: as SpawnNow.
// Concurrency: Logic, inside a frame. Allocates: no, but for the growth of logs.
func (p *Entities[E]) SpawnFromNow(f *registry.Frame, caller handles.Local) (handles.Local, bool) {
	return p.told(p.b.SpawnFrom(f, caller))
}

// Despawn ends an entity of the pool, and its children. Its slot is idle again at once, with another entity and the
// initial components. A loop that is open must not write to them any more.
//
// Errors: registry.ErrStale if it is dead; registry.ErrInvalidHandle if it is nobody's handle or not of this pool; ErrIdle
// for the entity of an idle slot; registry.ErrExpired. Nothing has happened then.
// Concurrency: window holder. Allocates: no, but for the growth of logs.
func (p *Entities[E]) Despawn(w *registry.Window, h handles.Local) error { return p.b.Despawn(w, h) }

// DespawnNow is Despawn from a system: who runs after this does not see the entity.
//
// Errors: as Despawn; registry.ErrParallel.
// Concurrency: Logic, inside a frame. Allocates: no, but for the growth of logs.
func (p *Entities[E]) DespawnNow(f *registry.Frame, h handles.Local) error { return p.b.Despawn(f, h) }

// DespawnWhere despawns, slot by slot in ascending order, the active entities that pred says yes to, and says how many
// that were. pred gets a copy of the components, which is good until it returns.
//
// Panics: registry.ErrExpired.
// Concurrency: window holder. Allocates: an E.
func (p *Entities[E]) DespawnWhere(w *registry.Window, pred func(h handles.Local, e *E) bool) int {
	return p.despawnWhere(w, pred)
}

// DespawnWhereNow is DespawnWhere from a system.
//
// Panics: as SpawnNow.
// Concurrency: Logic, inside a frame. Allocates: an E.
func (p *Entities[E]) DespawnWhereNow(f *registry.Frame, pred func(h handles.Local, e *E) bool) int {
	return p.despawnWhere(f, pred)
}

func (p *Entities[E]) despawnWhere(a registry.Access, pred func(h handles.Local, e *E) bool) int {
	n, err := registry.DespawnWhere(a, p.c, p.b, pred)
	if err != nil && isMisuse(err) {
		panic(err)
	}
	return n
}

// isMisuse says whether an error is a panic where none can be returned.
func isMisuse(err error) bool {
	return err == registry.ErrExpired || err == registry.ErrParallel || err == registry.ErrReadOnly
}

// Slot is the handle of who is in a slot now, idle or not, from 0 to Len()-1; else zero. After a death through
// Registry.Destroy or Frame.Destroy it is the dead one's until the next frame begins.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func (p *Entities[E]) Slot(i int) handles.Local { return p.b.Slot(i) }

// SlotOf is the slot that h is in, or was; false if that was never one of this pool.
//
// Concurrency: window holder, or Logic and its workers inside a frame. Allocates: no.
func (p *Entities[E]) SlotOf(h handles.Local) (int, bool) { return p.b.SlotOf(h) }

// Len is how many slots there are.
//
// Concurrency: any goroutine. Allocates: no.
func (p *Entities[E]) Len() int { return p.b.Len() }

// Block is the registry's side of the pool.
//
// Concurrency: any goroutine. Allocates: no.
func (p *Entities[E]) Block() *registry.Block { return p.b }

// Stats counts the slots, as they were when the last callback or system ended, and for who is inside one, as they are now.
// Built is their number, for all have an entity from the start; Leaked and Grown are 0, Max is Cap. A slot whose entity has
// died in another way than by Despawn is in use until the next frame begins; one that is retired counts nowhere.
//
// Concurrency: any goroutine; never waits. Allocates: no, but inside a callback that has changed the pool.
func (p *Entities[E]) Stats() Stats { return blockStats(p.b) }

// blockStats are the counters of a block.
func blockStats(b *registry.Block) Stats {
	c := b.Counts()
	return Stats{
		Cap: c.InUse + c.Free, InUse: c.InUse, Free: c.Free, Peak: c.Peak, Built: b.Len(),
		Refused: int(c.Refused), Max: c.InUse + c.Free, Grow: Fixed(), Warm: true,
	}
}
