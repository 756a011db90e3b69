package registry

import (
	"errors"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
)

// kin links an entity into the tree of parents and children, by local index. The table is
// as long as the largest index that was ever linked; links are cut at reclaim, so that
// they hold living and dying entities only. Owner only.
type kin struct{ parent, first, last, next, prev uint32 }

// ErrCycle reports a SetParent that would make an entity its own ancestor.
var ErrCycle = errors.New("registry: an entity cannot be its own ancestor")

// SetParent makes child die with parent; a second call replaces the first, and a zero
// parent sets the child free, as ClearParent does. A failed callback takes it back.
//
// Errors: ErrStale, ErrInvalidHandle or ErrNotSpawned when either is not alive; ErrIdle when one is an idle slot of a
// pool; ErrCycle;
// ErrExpired. After an error nothing has changed.
// Concurrency: window holder. Allocates: when an index is linked for the first time.
func SetParent(w *Window, child, parent handles.Local) error {
	r, err := w.open()
	if err != nil {
		return err
	}
	if err := r.somebody(child); err != nil {
		return err
	}
	if parent != 0 {
		if err := r.somebody(parent); err != nil {
			return err
		}
	}
	c, p := child.Index(), parent.Index()
	if r.descends(p, c) {
		return ErrCycle
	}
	old := r.parentOf(c)
	if old == p {
		return nil
	}
	r.growFamily(c)
	r.growFamily(p)
	r.log(undoOp{kind: undoParent, h: child, slot: old, nslot: r.kin(c).prev})
	after := uint32(0)
	if p != 0 {
		after = r.kin(p).last
	}
	r.link(c, p, after)
	if r.rec != nil {
		r.rec.add(op{kind: opParent, h: child, other: uint64(parent)})
	}
	return nil
}

// ClearParent sets child free: it no longer dies with another entity. Without a parent it is free already. A failed callback
// takes it back.
//
// Errors: ErrStale, ErrInvalidHandle or ErrNotSpawned when it is not alive; ErrIdle when it is an idle slot of a pool; ErrExpired.
// After an error nothing has changed.
// Concurrency: window holder. Allocates: no, but for the undo log's growth.
func ClearParent(w *Window, child handles.Local) error { return SetParent(w, child, 0) }

// Parent is the entity that h dies with, zero if there is none.
//
// Errors: ErrStale, ErrInvalidHandle or ErrNotSpawned when h is not alive; ErrExpired.
// Concurrency: window holder. Allocates: no.
func Parent(w *Window, h handles.Local) (handles.Local, error) {
	r, err := w.open()
	if err != nil {
		return 0, err
	}
	if _, _, err := r.locate(h); err != nil {
		return 0, err
	}
	p := r.parentOf(h.Index())
	if p == 0 {
		return 0, nil
	}
	return handles.NewLocal(p, r.locals.Word(p).Generation()), nil
}

// somebody says whether h is alive, and not the entity of an idle slot.
func (r *Registry) somebody(h handles.Local) error {
	ch, slot, err := r.locate(h)
	if err == nil && r.idleAt(ch, slot) {
		return ErrIdle
	}
	return err
}

func (r *Registry) parentOf(i uint32) uint32 {
	if r.hasKin(i) {
		return r.kin(i).parent
	}
	return 0
}

// descends says whether i is ancestor or stands below it. One without children has nobody
// below it, so that building a deep tree from the top costs no walk.
func (r *Registry) descends(i, ancestor uint32) bool {
	if i == ancestor {
		return true
	}
	if !r.hasKin(ancestor) || r.kin(ancestor).first == 0 {
		return false
	}
	for i = r.parentOf(i); i != 0; i = r.parentOf(i) {
		if i == ancestor {
			return true
		}
	}
	return false
}

func (r *Registry) growFamily(index uint32) {
	r.shortOut = nil
	for !r.hasKin(index) {
		r.family = append(r.family, make([]kin, max(len(r.family), 64))...)
	}
}

// link hangs child below parent (0: below nobody), after the sibling named (0: as first).
func (r *Registry) link(child, parent, after uint32) {
	r.unlink(child)
	if parent == 0 {
		return
	}
	c, p := r.kin(child), r.kin(parent)
	c.parent, c.prev, c.next = parent, after, p.first
	if after != 0 {
		c.next = r.kin(after).next
		r.kin(after).next = child
	} else {
		p.first = child
	}
	if c.next != 0 {
		r.kin(c.next).prev = child
	} else {
		p.last = child
	}
}

// unlink takes child from its parent; its own children stay below it.
func (r *Registry) unlink(child uint32) {
	c := r.kin(child)
	if c.parent == 0 {
		return
	}
	p := r.kin(c.parent)
	if c.prev != 0 {
		r.kin(c.prev).next = c.next
	} else {
		p.first = c.next
	}
	if c.next != 0 {
		r.kin(c.next).prev = c.prev
	} else {
		p.last = c.prev
	}
	c.parent, c.next, c.prev = 0, 0, 0
}

// cutLinks takes a reclaimed entity out of the tree. Its children are dead, too, or were
// set free.
func (r *Registry) cutLinks(i uint32) {
	r.cutLink(i)
	for c := r.kin(i).first; c != 0; c = r.kin(i).first {
		r.cutLink(c)
	}
}

// cutLink is unlink, which history can take back.
func (r *Registry) cutLink(child uint32) {
	if k := r.kin(child); r.hist.on && k.parent != 0 {
		r.log(undoOp{kind: undoParent, h: handles.NewLocal(child, 1), slot: k.parent, nslot: k.prev})
	}
	r.unlink(child)
}

// killChildren ends all that stand below h, level by level, each with its own event. No
// recursion: a chain may be as deep as the registry is large. Owner only.
func (r *Registry) killChildren(h handles.Local) {
	if !r.hasKin(h.Index()) || r.kin(h.Index()).first == 0 {
		return
	}
	queue := append(r.cascade[:0], h)
	for k := 0; k < len(queue); k++ {
		for c := r.kin(queue[k].Index()).first; c != 0; c = r.kin(c).next {
			ch := handles.NewLocal(c, r.locals.Word(c).Generation())
			if r.killOne(ch) && !(planted.Enabled && planted.Is(planted.GrandchildSurvives)) {
				queue = append(queue, ch)
			}
		}
	}
	r.cascade = queue[:0]
}
