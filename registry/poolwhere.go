package registry

import (
	"reflect"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
)

// DespawnWhere despawns, in ascending order of slots, who is active in a block and pred says yes to, and says how many
// that were. pred gets a copy of the entity's components: what it does to it changes nothing. It may despawn and spawn
// in the same block; who it spawns in a slot that was passed is not asked about.
//
// Errors: ErrParallel; ErrExpired; ErrStale for a block whose making was taken back. Nothing has changed then.
// Concurrency: as Despawn. Allocates: an E, and what Despawn does.
func DespawnWhere[E any](a Access, c *Class[E], b *Block, pred func(h handles.Local, e *E) bool) (int, error) {
	r, err := b.entered(a)
	if err != nil {
		return 0, err
	}
	e, n := new(E), 0
	for i := range uint32(b.n) {
		ch, slot := b.at(i)
		if slot&63 == 0 && ch.Active()[slot>>6] == 0 && !b.anyAway(ch, slot) {
			continue
		}
		h := b.who(i)
		if h == 0 {
			continue
		}
		at, atSlot, err := r.locate(h)
		if err != nil || !shown(at, atSlot) {
			continue
		}
		c.read(at, atSlot, e)
		if pred(h, e) && r.despawn(b, i, h) == nil {
			n++
		}
	}
	return n, nil
}

// who is in use of a slot, wherever; 0 if nobody is.
func (b *Block) who(i uint32) handles.Local {
	if b.idle.Has(i) {
		return 0
	}
	index := b.tenant[i].Load()
	return handles.NewLocal(index, b.r.locals.Word(index).Generation())
}

// anyAway says whether somebody may have moved out of one of the 64 slots from one on.
func (b *Block) anyAway(ch *archetype.Chunk, slot uint32) bool {
	for _, h := range ch.Entities()[slot:min(slot+64, uint32(ch.Allocated()))] {
		if h == 0 {
			return true
		}
	}
	return ch.AnyBorn()
}

// read copies the components of an entity, of an archetype of the class, into e. One that was removed is zero.
//
// The pointer arithmetic is sound as in write.
func (c *Class[E]) read(ch *archetype.Chunk, slot uint32, e *E) {
	if a := ch.Archetype(); a.Signature() != c.sig {
		var zero E
		*e = zero
		v := reflect.ValueOf(e).Elem()
		for i := range v.NumField() {
			if comp, ok := c.r.schema.ByType(v.Field(i).Type()); ok && a.Has(comp.ID) && !comp.Tag() {
				ch.LoadComponent(comp, slot, v.Field(i).Addr())
			}
		}
		return
	}
	base := unsafe.Pointer(e)
	columns := ch.Columns16()
	for i, offset := range c.pairs {
		*(*[2]uint64)(unsafe.Add(base, offset)) = *(*[2]uint64)(unsafe.Add(columns[i], uintptr(slot)*16))
	}
	for i := range c.parts {
		p := &c.parts[i]
		p.cell.Copy(unsafe.Add(base, p.src), ch.Cell(p.col, slot, p.size))
	}
}

// Chunks are the chunks of the block's slots, in order: all of one size but a single smaller one. Their cells may be
// written where a token may, see archetype.CellsOf and Chunk.Mark; who is in which slot changes through the block only.
//
// Concurrency: window holder, or Logic and its workers inside a frame. Allocates: no.
func (b *Block) Chunks() []*archetype.Chunk { return b.arch.Chunks() }

// Idle says whether a slot is idle.
//
// Concurrency: window holder, or Logic and its workers inside a frame. Allocates: no.
func (b *Block) Idle(i int) bool { return b.idle.Has(uint32(i)) }
