package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"

	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/internal/planted"
	"github.com/airlock-ecs/airlock/registry"
)

// Difference is the first thing that two states differ in.
type Difference struct {
	Archetype string        // class and components: "Arrow[Position Velocity]"
	Slot      int           // see Diff
	Entity    handles.Local // who has the slot, in the first state, or else in the second
	Component string        // "" if the difference is no value of one
	Field     string        // of the component: "X", "Inner.X", "[3]", "" for all of it; else "handle", "active" or ""
	A, B      any           // the values; "present" and "absent" if only one state has an entity there
}

// String says what differs, for people.
func (d Difference) String() string {
	a, b := fmt.Sprint(d.A), fmt.Sprint(d.B)
	if a == b {
		a, b = withBits(d.A), withBits(d.B)
	}
	what := ""
	switch {
	case d.Archetype == "":
		return "no difference"
	case d.Component != "" || d.Field != "":
		what = joinPath(d.Component, d.Field) + ": "
	}
	if d.Entity == 0 { // nobody is there yet: what the archetype consists of differs
		return fmt.Sprintf("%s: %s%s / %s", d.Archetype, what, a, b)
	}
	return fmt.Sprintf("%s slot %d (%v): %s%s / %s", d.Archetype, d.Slot, d.Entity, what, a, b)
}

// withBits is a value with the bits that do not show in it.
func withBits(v any) string {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Float32: // Float would go by way of float64, which quiets some NaNs
		return fmt.Sprintf("%v (%#08x)", v, math.Float32bits(r.Convert(reflect.TypeFor[float32]()).Interface().(float32)))
	case reflect.Float64:
		return fmt.Sprintf("%v (%#016x)", v, math.Float64bits(r.Float()))
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fmt.Sprintf("%v (%#v)", v, v) // its String hides something
	}
	return fmt.Sprint(v)
}

// Diff finds the first difference between two states, in what Hash is about: it finds none exactly if their
// hashes are equal. The tokens may be of two registries, or of one: two snapshots, or a window and a
// snapshot.
//
// First is by class and components of the archetype, in the order of their names, then by slot, then in
// this order: who exists, the handle, whether it is active, and the values by component and field. Slots
// are counted through the archetype in the order of iteration, without the blocks of 64 slots in which
// nobody exists.
//
// Panics: registry.ErrExpired; registry.ErrNotPublished, as Hash answers it.
// Concurrency: as the tokens; of a frame nobody may write meanwhile. Allocates: yes, some bytes for every
// entity.
func Diff(a, b registry.Access) (Difference, bool) { return diff(a, b, registry.EachChunk) }

// DiffTemporal is Diff for the archetypes with a Temporal component: the part that a registry with a temporal
// ring still has of an older frame.
//
// Panics: registry.ErrExpired.
// Concurrency: as Diff. Allocates: as Diff.
func DiffTemporal(a, b registry.Access) (Difference, bool) {
	return diff(a, b, registry.EachTemporalChunk)
}

func diff(a, b registry.Access, each func(registry.Access, func(*registry.Look) bool) error) (Difference, bool) {
	left, right := mustImage(a, each), mustImage(b, each)
	for i, k := 0, 0; i < len(left.archetypes) || k < len(right.archetypes); {
		var l, r archetypeImage
		order := 0
		switch {
		case k == len(right.archetypes):
			order = -1
		case i == len(left.archetypes):
			order = 1
		default:
			order = left.archetypes[i].plan.compare(right.archetypes[k].plan)
		}
		if order <= 0 {
			l = left.archetypes[i]
			i++
		}
		if order >= 0 {
			r = right.archetypes[k]
			k++
		}
		if d, differ := diffArchetype(a, b, l, r); differ {
			return d, true
		}
	}
	return Difference{}, false
}

func mustImage(a registry.Access, each func(registry.Access, func(*registry.Look) bool) error) *image {
	m, err := imageOf(a, each)
	if err != nil {
		panic(err)
	}
	return m
}

// diffArchetype compares an archetype of both; one of them may have none.
func diffArchetype(a, b registry.Access, l, r archetypeImage) (Difference, bool) {
	p := cmp.Or(l.plan, r.plan)
	if l.plan != nil && r.plan != nil && l.plan.key != r.plan.key {
		for i, c := range l.plan.comps {
			if other := r.plan.comps[i]; c != other {
				return Difference{Archetype: p.name, Component: c.name, A: c.layout, B: other.layout}, true
			}
		}
	}
	size := p.recordBytes()
	n := max(len(l.records), len(r.records)) / size
	for i := range n {
		have, other := at(l.records, i, size), at(r.records, i, size)
		if have != nil && other != nil && equalRecord(have, other) {
			continue
		}
		left, right := blockOf(a, l.plan, i, have), blockOf(b, r.plan, i, other)
		if d, differ := p.diffBlock(left, right); differ {
			d.Archetype = p.name
			d.Slot += 64 * i
			return d, true
		}
	}
	return Difference{}, false
}

// at is a record, nil beyond the last.
func at(records []byte, i, size int) []byte {
	if (i+1)*size > len(records) {
		return nil
	}
	return records[i*size:][:size]
}

// block is the entities of 64 slots, as far as they are hashed.
type block struct {
	exists, active uint64
	handles        [64]handles.Local
	columns        [][]byte // canonical cells of those who exist
}

// blockOf reads the block of a number, an empty one if there is no record of it.
func blockOf(a registry.Access, p *plan, number int, record []byte) (b block) {
	if record == nil {
		return b
	}
	r, _, err := registry.Source(a)
	if err != nil {
		panic(err)
	}
	h := hasherOf(r)
	find := func(l *registry.Look) bool {
		if h.planOf(l.Chunk.Archetype()) != p {
			return true
		}
		for i := range (l.Chunk.Allocated() + 63) / 64 {
			if l.Exists(i) == 0 {
				continue
			}
			if number--; number < 0 {
				b.read(l, p, i)
				return false
			}
		}
		return true
	}
	err = registry.EachChunk(a, find)
	if errors.Is(err, registry.ErrNotPublished) { // an older frame: what is looked for is among what is left
		err = registry.EachTemporalChunk(a, find)
	}
	if err != nil {
		panic(err)
	}
	return b
}

// read reads a word of slots.
func (b *block) read(l *registry.Look, p *plan, word int) {
	b.exists = l.Exists(word)
	b.active = l.Active(word) & b.exists
	copy(b.handles[:], l.Chunk.Entities()[64*word:])
	for i := range p.columns {
		col := &p.columns[i]
		cells, canonical := l.Chunk.Bytes(col.slot)[64*word*col.leaves.cell:], []byte(nil)
		for slot := range 64 {
			if b.exists>>slot&1 != 0 {
				canonical = col.leaves.append(canonical, cells[slot*col.leaves.cell:])
			}
		}
		b.columns = append(b.columns, canonical)
	}
}

// cell gives the canonical bytes of an entity's cell.
func (b *block) cell(column, slot, size int) []byte {
	i := bits.OnesCount64(b.exists & (1<<slot - 1))
	return b.columns[column][i*size:][:size]
}

// diffBlock compares two blocks of the archetype slot by slot.
func (p *plan) diffBlock(a, b block) (Difference, bool) {
	for slot := range 64 {
		inA, inB := a.exists>>slot&1 != 0, b.exists>>slot&1 != 0
		d := Difference{Slot: slot, Entity: b.handles[slot]}
		if inA {
			d.Entity = a.handles[slot]
		}
		switch {
		case inA != inB:
			d.A, d.B = presence(inA), presence(inB)
			return d, true
		case !inA:
			continue
		case a.handles[slot] != b.handles[slot]:
			d.Field, d.A, d.B = "handle", a.handles[slot], b.handles[slot]
			return d, true
		}
		if x, y := a.active>>slot&1 != 0, b.active>>slot&1 != 0; x != y {
			d.Field, d.A, d.B = "active", x, y
			return d, true
		}
		for i := range p.columns {
			col := &p.columns[i]
			x, y := a.cell(i, slot, col.leaves.size), b.cell(i, slot, col.leaves.size)
			if n := firstDifference(x, y); n < len(x) && !(planted.Enabled && planted.Is(planted.DiffMissesField) && i > 0) {
				l := leafAt(col.typ, n)
				d.Component, d.Field = col.comp, joinPath(col.field, l.path)
				d.A, d.B = l.value(x), l.value(y)
				return d, true
			}
		}
	}
	return Difference{}, false
}

func presence(exists bool) string {
	if exists {
		return "present"
	}
	return "absent"
}

// firstDifference is where two slices of one length differ first.
func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}
