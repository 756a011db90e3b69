package registry

import (
	"reflect"
	"unsafe"

	"github.com/airlock-ecs/airlock/archetype"
)

// The cells of a pool's slots: what they are reset to, and what a callback has overwritten.

// describe finds the columns of a block, and makes the places for their values.
func (b *Block) describe() {
	if b.fields != nil { // made once more
		return
	}
	for _, comp := range b.arch.Components() {
		for i := range comp.Fields {
			b.fields = append(b.fields, &comp.Fields[i])
		}
	}
	b.initial = make([]unsafe.Pointer, len(b.fields))
	b.saved = make([]cellLog, len(b.fields))
	words := 0
	for col, f := range b.fields {
		switch {
		case f.Pointers || f.Size == 0:
			b.rest = append(b.rest, col)
		case f.Size == 16:
			b.pairs = append(b.pairs, [2]uint64{})
		default:
			b.flats = append(b.flats, flat{col: col, size: f.Size, at: words})
			words += int(f.Size+7) / 8
		}
	}
	b.image = make([]uint64, words)
	pairs, flats := b.pairs, b.flats
	for col, f := range b.fields {
		switch {
		case f.Pointers || f.Size == 0:
			b.initial[col] = reflect.New(f.Type).UnsafePointer()
			b.saved[col] = cellLog{typ: f.Type, size: f.Size}
		case f.Size == 16:
			b.initial[col], pairs = unsafe.Pointer(&pairs[0]), pairs[1:]
		default:
			b.initial[col], flats = unsafe.Pointer(&b.image[flats[0].at]), flats[1:]
		}
	}
	b.plain = len(b.flats)+len(b.rest) == 0
}

// pair is the cell of a slot in one of a chunk's Columns16.
func pair(column unsafe.Pointer, slot uint32) *[2]uint64 {
	return (*[2]uint64)(unsafe.Add(column, uintptr(slot)*16))
}

// takeInitial makes the cells of a slot those that slots are reset to. Sound, as all in this file: a value of a field's
// type, made by reflect, and a cell of the same type, in a column of the number that the field has in the archetype.
func (b *Block) takeInitial(i uint32) {
	ch, slot := b.at(i)
	for col, f := range b.fields {
		f.Cell.Copy(b.initial[col], ch.Cell(col, slot, f.Size))
	}
}

// reset gives a slot its initial cells.
func (b *Block) reset(ch *archetype.Chunk, slot uint32) {
	columns := ch.Columns16()[:len(b.pairs)]
	for k, initial := range b.pairs {
		*pair(columns[k], slot) = initial
	}
	b.resetFlat(ch, slot)
	for _, col := range b.rest {
		f := b.fields[col]
		f.Cell.Copy(ch.Cell(col, slot, f.Size), b.initial[col])
	}
	ch.Rewrite()
}

// restUntouched says whether a slot has its initial cells, bit by bit, in the columns that are no pairs.
func (b *Block) restUntouched(ch *archetype.Chunk, slot uint32) bool {
	if !b.flatUntouched(ch, slot) {
		return false
	}
	for _, col := range b.rest {
		f := b.fields[col]
		if !sameBytes(ch.Cell(col, slot, f.Size), b.initial[col], f.Size) {
			return false
		}
	}
	return true
}

// resetIdle resets all idle slots.
func (b *Block) resetIdle() {
	for i, ok := b.idle.First(); ok; i, ok = b.idle.Next(i + 1) {
		b.reset(b.at(i))
	}
}

// save keeps the cells of a slot until the callback is committed, and gives their position, from 1 on; 0 outside of
// callbacks, where nothing is taken back but by going back.
func (b *Block) save(ch *archetype.Chunk, slot uint32) uint32 {
	if !b.r.inCallback {
		return 0
	}
	columns := ch.Columns16()[:len(b.pairs)]
	for _, column := range columns {
		b.savedPairs = append(b.savedPairs, *pair(column, slot))
	}
	if len(b.flats) > 0 {
		b.saveFlat(ch, slot)
	}
	for _, col := range b.rest {
		f := b.fields[col]
		_, p := b.saved[col].add()
		f.Cell.Copy(p, ch.Cell(col, slot, f.Size))
	}
	if b.savedTo == 0 && !b.keeping {
		b.r.pools.saving = append(b.r.pools.saving, b)
	}
	b.savedTo++
	return b.savedTo
}

// unsave gives a slot the cells back that were kept.
func (b *Block) unsave(ch *archetype.Chunk, slot, position uint32) {
	if position == 0 || b.r.hist.going { // what no frame keeps goes on as it is
		return
	}
	columns := ch.Columns16()[:len(b.pairs)]
	kept := b.savedPairs[int(position-1)*len(columns):]
	for k, column := range columns {
		*pair(column, slot) = kept[k]
	}
	b.unsaveFlat(ch, slot, position)
	for _, col := range b.rest {
		f := b.fields[col]
		f.Cell.Copy(ch.Cell(col, slot, f.Size), b.saved[col].at(b.saved[col].base+uint64(position-1)))
	}
	ch.Rewrite()
}

// forgetSaved forgets all cells that were kept. Owner only.
func (p *pools) forgetSaved() {
	for _, b := range p.saving {
		b.savedTo, b.savedPairs, b.savedFlat, b.keeping = 0, b.savedPairs[:0], b.savedFlat[:0], false
		for col := range b.saved {
			l := &b.saved[col]
			for i := l.base; i < l.end && b.fields[col].Pointers; i++ { // they would keep alive what the values point to
				b.fields[col].Cell.Copy(l.at(i), b.initial[col])
			}
			l.end = l.base
		}
	}
	clear(p.saving)
	p.saving = p.saving[:0]
}

// SetInitial makes the cells of a slot, idle or not, those that slots are reset to from now on. Idle slots have them
// already, if whoever calls has written them there; it is part of the setting up of a pool and not taken back.
//
// Errors: ErrExpired; ErrReadOnly.
// Concurrency: window holder. Allocates: no.
func (b *Block) SetInitial(w *Window, i int) error {
	if _, err := w.open(); err != nil {
		return err
	}
	b.takeInitial(uint32(i))
	b.resetIdle()
	if b.r.rec != nil {
		b.r.rec.initials(b)
	}
	return nil
}
