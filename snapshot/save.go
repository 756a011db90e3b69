package snapshot

import (
	"cmp"
	"io"
	"math/bits"
	"reflect"
	"slices"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// A saved state is a container of these sections. Entities are not in it one by one: words of
// local indices say where each is, chunks which slots are in use, and the last section has nothing but the
// cells of the living, column by column.
const (
	sectionMeta    uint32 = iota + 1 // version of all that follows, frame
	sectionSchema                    // components and classes, by name
	sectionLocals                    // each space of local indices
	sectionGlobals                   //
	sectionNets                      //
	sectionNames                     // records, net handles of entities, families
	sectionDeaths                    // the dead that are not reclaimed, and slots that nobody has any more
	sectionStores                    // archetypes and chunks, in the order of their creation
	sectionPools                     // what is a pool among them, and what its slots are reset to
	sectionCoded                     // for each archetype, component with a codec by name, and chunk: the cells
	sectionCells                     // the same of the other components
)

// stateVersion changes with the meaning of any section.
const stateVersion = 2

// Save writes the state of the registry, as of the moment of the call, to out: everything by which it goes on as
// it would have, handles, free lists and generations included. Entities of cosmetic classes are saved
// as dead. It changes nothing. What the callback did before is saved, and whether it fails later makes no difference.
//
// The state does not contain what is not the registry's to keep: obituaries, statistics, observers, what an
// engine has been asked to do, and published frames.
//
// Equal states are equal bytes, whatever memory they lie in: of a cell only its fields are written, in little
// endian, and no padding. A component that holds pointers is written by its type's AppendBinary, or
// MarshalBinary, and read by UnmarshalBinary on its pointer; it is up to them to give equal bytes.
//
// The window is held until all is written. Take holds it for no longer than a copy takes. The bytes are not compressed: out
// may do that.
//
// Errors: ErrNoCodec, with the component, and what its methods say, before anything is written;
// registry.ErrPutOff while operations that were put off wait; registry.ErrExpired; what out says.
// Concurrency: window holder; others may reserve and destroy. Allocates: yes.
func Save(out io.Writer, w *registry.Window) error {
	c, err := collect(w, false)
	if err != nil {
		return err
	}
	_, err = c.WriteTo(out)
	return err
}

// collect puts the state into sections. Unless it is to be owned, large columns are not copied: the
// container has to be written before anything changes.
func collect(w *registry.Window, owned bool) (*containerWriter, error) {
	state, archetypes, err := registry.CaptureState(w)
	if err != nil {
		return nil, err
	}
	s := schemaOf(w.Registry(), state.Stores)
	c := newContainer()
	e := c.section(sectionMeta)
	e.u32(stateVersion)
	e.u64(state.Frame)
	s.put(c.section(sectionSchema))
	putLocals(c.section(sectionLocals), state.Locals)
	putGlobals(c.section(sectionGlobals), state.Globals)
	putNets(c.section(sectionNets), state.Nets)
	putNames(c.section(sectionNames), state)
	putDeaths(c.section(sectionDeaths), state)
	putStores(c.section(sectionStores), state.Stores, s)
	if err := putPools(c.section(sectionPools), state, registry.Blocks(w)); err != nil {
		return nil, err
	}
	return c, putCells(c.section(sectionCoded), c.section(sectionCells), state.Stores, archetypes, owned)
}

func putLocals(e *encoder, spaces []handles.LocalsState) {
	e.count(len(spaces))
	for _, l := range spaces {
		e.u32(l.First)
		putWords(e, l.Words)
		e.u64(l.Retired)
		putNumbers(e, l.Free)
		putNumbers(e, l.Pending)
		putNumbers(e, l.PendingFrames)
		putNumbers(e, l.Returned)
		putNumbers(e, l.Burned)
		putIndices(e, l.Burnt)
		e.flag(l.Over)
	}
}

func putGlobals(e *encoder, g handles.GlobalsState) {
	e.count(len(g.Runs))
	for _, run := range g.Runs {
		e.u32(run.First)
		e.u32(run.Count)
		e.u8(run.Use)
	}
	e.count(len(g.Ended))
	for _, end := range g.Ended {
		e.u32(end.Index)
		e.u64(end.Times)
	}
}

func putNets(e *encoder, n handles.NetsState) {
	e.u8(n.Owner)
	e.u32(n.First)
	putNumbers(e, n.Words)
	e.u64(n.Deaths)
	putNumbers(e, n.Free)
	putNumbers(e, n.Pending)
	putNumbers(e, n.PendingFrames)
	putNumbers(e, n.Returned)
	putNumbers(e, n.Burned)
	putIndices(e, n.Burnt)
	e.count(len(n.Foreign))
	for _, k := range n.Foreign {
		e.u64(uint64(k.Name))
		e.u32(k.Local)
		e.u32(k.Before)
	}
}

func putNames(e *encoder, s *registry.State) {
	e.count(len(s.Records))
	for _, rec := range s.Records {
		e.u32(rec.Index)
		e.u32(rec.Record)
	}
	putIndices(e, s.Parted)
	e.count(len(s.Named))
	for _, n := range s.Named {
		e.u32(n.Index)
		e.u64(uint64(n.Net))
	}
	e.count(len(s.Links))
	for _, k := range s.Links {
		e.u32(k.Parent)
		e.u32(k.Child)
	}
}

// putDeaths writes each cause once, where it is met first.
func putDeaths(e *encoder, s *registry.State) {
	number := map[string]int{}
	var causes []string
	for _, d := range s.Deaths {
		if _, ok := number[d.Cause]; !ok {
			number[d.Cause] = len(causes)
			causes = append(causes, d.Cause)
		}
	}
	e.count(len(causes))
	for _, cause := range causes {
		e.string(cause)
	}
	e.count(len(s.Deaths))
	for _, d := range s.Deaths {
		e.u64(uint64(d.Entity))
		e.u32(d.Place)
		e.u32(uint32(number[d.Cause]))
		e.flag(d.WasActive)
		e.flag(d.Replaced)
		e.u64(uint64(d.Net))
	}
	putNumbers(e, s.Outside)
	e.flag(s.Ringed)
	e.flag(s.Kept)
	putIndices(e, s.Vacated)
	e.count(len(s.Ring))
	for _, f := range s.Ring {
		e.u64(f.Frame)
		e.u32(uint32(f.Deaths))
		e.u32(uint32(f.Vacated))
	}
}

func putStores(e *encoder, stores []registry.ArchetypeState, s *schema) {
	numbers := map[archetype.ComponentID]int{}
	for i := range s.components {
		numbers[s.components[i].id] = i
	}
	e.count(len(stores))
	for i := range stores {
		st := &stores[i]
		e.u32(uint32(slices.IndexFunc(s.classes, func(c classShape) bool { return c.index == st.Class })))
		var components []uint32
		for id := range st.Components.All() {
			components = append(components, uint32(numbers[id]))
		}
		slices.Sort(components)
		putIndices(e, components)
		e.flag(st.LargeFirst)
		e.u32(uint32(st.Pooled))
		e.count(len(st.Chunks))
		for k := range st.Chunks {
			ch := &st.Chunks[k]
			e.u32(ch.Base)
			e.u32(uint32(ch.Slots))
			e.u32(uint32(ch.Allocated))
			e.u8(uint8(ch.Emptied))
			putNumbers(e, ch.Holes)
			putNumbers(e, ch.Active)
		}
	}
}

// putWords writes words of local indices: runs of words that are all the same, or each the one before plus one, which
// is the next slot.
func putWords(e *encoder, words []uint64) {
	e.count(len(words))
	for len(words) > 0 {
		n, step := 1, uint64(0)
		if len(words) > 1 && words[1] == words[0]+1 {
			step = 1
		}
		for n < len(words) && words[n] == words[n-1]+step {
			n++
		}
		e.uvarint(uint64(n)<<1 | step)
		e.u64(words[0])
		words = words[n:]
	}
}

// putNumbers writes a list of words.
func putNumbers[N ~uint64](e *encoder, list []N) {
	e.count(len(list))
	for part := range slices.Chunk(list, smallBytes/8) {
		e.room()
		e.tail = slices.Grow(e.tail, 8*len(part))
		for _, n := range part {
			e.tail = appendUint64(e.tail, uint64(n))
		}
	}
}

func putIndices(e *encoder, list []uint32) {
	e.count(len(list))
	for _, n := range list {
		e.u32(n)
	}
}

// savedColumn is what is saved of a component, or of one field of a split one.
type savedColumn struct {
	comp   *archetype.Component
	field  int // which of the component's fields
	leaves leaves
	bools  []int  // of the canonical bytes, those that are 0 or 1
	codec  *codec // writes the component; nil if it has no pointers
}

// columnsOf lists what is saved of an archetype with some components: those by name, their fields in order. Without a
// codec for one of them it fails, but not if nobody lives there.
func columnsOf(comps []*archetype.Component, living int) ([]savedColumn, error) {
	comps = slices.Clone(comps)
	slices.SortFunc(comps, func(a, b *archetype.Component) int { return cmp.Compare(a.Name, b.Name) })
	var columns []savedColumn
	for _, comp := range comps {
		if comp.Pointers && living == 0 {
			continue
		}
		if comp.Pointers {
			codec, err := codecOf(comp)
			if err != nil {
				return nil, err
			}
			columns = append(columns, savedColumn{comp: comp, codec: codec})
			continue
		}
		for i := range comp.Fields {
			f := &comp.Fields[i]
			columns = append(columns, savedColumn{
				comp: comp, field: i, leaves: leavesOf(f.Type), bools: appendBools(nil, f.Type, 0),
			})
		}
	}
	return columns, nil
}

// living is how many entities an archetype has.
func living(st *registry.ArchetypeState) (n int) {
	for _, word := range st.Live {
		n += bits.OnesCount64(word)
	}
	return n
}

// putCells writes the cells of the living.
func putCells(coded, plain *encoder, stores []registry.ArchetypeState, archetypes []*archetype.Archetype, owned bool) error {
	columns := make([][]savedColumn, len(stores))
	size := 0
	for i := range stores {
		n := living(&stores[i])
		var err error
		if columns[i], err = columnsOf(archetypes[i].Components(), n); err != nil {
			return err
		}
		for _, col := range columns[i] {
			if col.leaves.dense && owned {
				size += n * col.leaves.size
			}
		}
	}
	p := cellPutter{coded: coded, plain: plain}
	if owned {
		p.arena = make([]byte, 0, size)
	}
	for i := range stores {
		for k := range columns[i] {
			for c, ch := range archetypes[i].Chunks() {
				if err := p.put(&columns[i][k], ch, stores[i].LiveIn(c)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// cellPutter writes the cells of columns.
type cellPutter struct {
	coded, plain *encoder

	arena   []byte // copies of what is owned; nil if nothing is to be
	scratch []byte
}

// put writes the cells of a chunk in one column.
func (p *cellPutter) put(col *savedColumn, ch *archetype.Chunk, live []uint64) error {
	if col.codec != nil {
		return p.putCoded(col, ch, live)
	}
	cells := ch.Bytes(ch.Archetype().Column(col.comp.ID) + col.field)
	for from, to := range runsOf(live) {
		part := cells[from*col.leaves.cell : to*col.leaves.cell]
		if !col.leaves.dense {
			p.scratch = p.scratch[:0]
			for ; len(part) > 0; part = part[col.leaves.cell:] {
				p.scratch = col.leaves.append(p.scratch, part)
			}
			p.plain.bytes(p.scratch)
			continue
		}
		if p.arena != nil {
			at := len(p.arena)
			p.arena = append(p.arena, part...)
			part = p.arena[at:]
		}
		p.plain.reference(part)
	}
	return nil
}

func (p *cellPutter) putCoded(col *savedColumn, ch *archetype.Chunk, live []uint64) error {
	for from, to := range runsOf(live) {
		for slot := from; slot < to; slot++ {
			b, err := col.codec.encode(p.scratch, func(to reflect.Value) { ch.LoadComponent(col.comp, uint32(slot), to) })
			if err != nil {
				return err
			}
			p.coded.count(len(b))
			p.coded.bytes(b)
		}
	}
	return nil
}
