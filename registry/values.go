package registry

import "github.com/airlock-ecs/airlock/archetype"

// valueLog keeps values of one component typed, so that the garbage collector sees what
// they point to: old ones until a callback commits, wished ones until the next window.
type valueLog interface {
	restore(ch *archetype.Chunk, slot uint32, at int)
	forgetOld()
	forgetWished()
	trimWished(at uint32)
	grantAdd(w *Window, wi *wish) error
}

type values[C any] struct {
	comp       *archetype.Component
	old        []C    // owner only
	wished     []C    // guarded by Registry.wishMu
	wishedBase uint32 // position of the first of them
}

// valuesOf finds the log of C. Owner, or holder of wishMu.
func valuesOf[C any](r *Registry, comp *archetype.Component) *values[C] {
	if v, ok := r.values[comp.ID].(*values[C]); ok {
		return v
	}
	v := &values[C]{comp: comp}
	r.values[comp.ID] = v
	return v
}

// keep copies the value in a slot and says where it lies in old.
func (v *values[C]) keep(ch *archetype.Chunk, slot uint32) int {
	var c C
	load(v.comp, ch, slot, &c)
	v.old = append(v.old, c)
	return len(v.old) - 1
}

func (v *values[C]) restore(ch *archetype.Chunk, slot uint32, at int) {
	if ch.Archetype().Has(v.comp.ID) {
		store(v.comp, ch, slot, &v.old[at])
	}
}

func (v *values[C]) forgetOld() {
	clear(v.old)
	v.old = v.old[:0]
}

func (v *values[C]) forgetWished() {
	clear(v.wished)
	v.wished = v.wished[:0]
}

func (v *values[C]) trimWished(at uint32) { v.wished = trimTo(v.wished, &v.wishedBase, at) }

func (v *values[C]) grantAdd(w *Window, wi *wish) error {
	return Add(w, wi.h, v.wished[wi.at-v.wishedBase])
}
