package registry

import (
	"reflect"
	"slices"
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
	for _, f := range b.fields {
		if f.Size == 16 && !f.Pointers {
			b.pairs = append(b.pairs, [2]uint64{})
		}
	}
	pair := 0
	for col, f := range b.fields {
		if f.Size == 16 && !f.Pointers { // sound: 16 bytes without pointers, as pairs are
			b.initial[col] = unsafe.Pointer(&b.pairs[pair])
			pair++
			continue
		}
		b.rest = append(b.rest, col)
		b.initial[col] = reflect.New(f.Type).UnsafePointer()
		b.saved[col] = cellLog{typ: f.Type, size: f.Size}
	}
	b.plain = len(b.rest) == 0
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
	for _, col := range b.rest {
		f := b.fields[col]
		f.Cell.Copy(ch.Cell(col, slot, f.Size), b.initial[col])
	}
	ch.Rewrite()
}

// untouched says whether a slot has its initial cells, bit by bit.
func (b *Block) untouched(ch *archetype.Chunk, slot uint32) bool {
	columns := ch.Columns16()[:len(b.pairs)]
	for k := range b.pairs {
		if cell := pair(columns[k], slot); cell[0] != b.pairs[k][0] || cell[1] != b.pairs[k][1] {
			return false
		}
	}
	for _, col := range b.rest {
		f := b.fields[col]
		if !sameBytes(ch.Cell(col, slot, f.Size), b.initial[col], f.Size) {
			return false
		}
	}
	return true
}

// sameBytes says whether two cells of a size are equal, bit by bit.
func sameBytes(a, b unsafe.Pointer, size uintptr) bool {
	return unsafe.String((*byte)(a), size) == unsafe.String((*byte)(b), size)
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
	for _, col := range b.rest {
		f := b.fields[col]
		_, p := b.saved[col].add()
		f.Cell.Copy(p, ch.Cell(col, slot, f.Size))
	}
	if b.savedTo == 0 {
		b.r.pools.saving = append(b.r.pools.saving, b)
	}
	b.savedTo++
	return b.savedTo
}

// swapOut is save and reset, in a callback and for a block that is plain.
func (b *Block) swapOut(ch *archetype.Chunk, slot uint32) {
	if b.savedTo == 0 {
		b.r.pools.saving = append(b.r.pools.saving, b)
	}
	b.savedTo++
	n, pairs, columns := len(b.savedPairs), b.pairs, ch.Columns16()
	if cap(b.savedPairs)-n < len(pairs) {
		b.savedPairs = slices.Grow(b.savedPairs, len(pairs))
	}
	b.savedPairs = b.savedPairs[:n+len(pairs)]
	row, columns := b.savedPairs[n:n+len(pairs)], columns[:len(pairs)]
	for k := range row {
		cell := pair(columns[k], slot)
		row[k], *cell = *cell, pairs[k]
	}
	ch.Rewrite()
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
	for _, col := range b.rest {
		f := b.fields[col]
		f.Cell.Copy(ch.Cell(col, slot, f.Size), b.saved[col].at(b.saved[col].base+uint64(position-1)))
	}
	ch.Rewrite()
}

// forgetSaved forgets all cells that were kept. Owner only.
func (p *pools) forgetSaved() {
	for _, b := range p.saving {
		b.savedTo, b.savedPairs = 0, b.savedPairs[:0]
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
