package declare

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

// PresentationFrame is what a world looks like in a published frame. It is the caller's.
type PresentationFrame struct {
	Frame    uint64  // of the registry
	Steps    uint64  // of the world, that have run by then
	Time     float64 // that has passed
	Title    string
	World    Appearance  // of the world's own attributes
	Entities []Presented // the active ones that are not hidden, by ascending ids

	numbers []float64        // what the slices above are cut from
	look    *archetype.Chunk // at one chunk after the other
}

// Presented is an active entity.
type Presented struct {
	ID    uint32
	Name  string // as Program.Name gives it
	Group int    // index in Groups
	Slot  int    // of a pool; 0 of an ordinary entity
	State []float64
	Appearance
}

// Appearance is attributes with the values they have for an entity. What was not declared is nil or "".
type Appearance struct {
	Position  []float64 // up to three numbers, as Size and Gravity
	Size      []float64
	Gravity   []float64
	Color     []float64 // three or four numbers, if it was not declared as a text
	ColorName string
	Shape     string
	Label     string
}

// Present is what the world looks like in a published frame: active entities only, by ascending ids, with their attributes.
// Those for whom hidden is true are left out. Empty for another registry's snapshot, or one in which
// the world is not.
//
// Panics: registry.ErrExpired after Release.
// Concurrency: any goroutine that holds the snapshot; never waits. Allocates: what it gives.
func (w *World) Present(snap *registry.Snapshot) PresentationFrame {
	var out PresentationFrame
	w.PresentTo(snap, &out)
	return out
}

// PresentTo is Present into a frame of before, whose memory it uses again: what was taken from there is not valid any more.
//
// Panics: registry.ErrExpired after Release.
// Concurrency: any goroutine that holds the snapshot; never waits. Allocates: no, but for growth, and for the names of pages of
// slots that none has asked for before.
func (w *World) PresentTo(snap *registry.Snapshot, out *PresentationFrame) {
	*out = PresentationFrame{Entities: out.Entities[:0], numbers: out.numbers[:0], look: out.look}
	if out.look == nil {
		out.look = new(archetype.Chunk)
	}
	ch := out.look
	defer ch.Conceal()
	p := w.places.Load()
	if snap.Registry() != w.r || p == nil {
		return
	}
	slot, ok := show(snap, p.base, p.number, ch)
	if !ok || !ch.Bit(uint32(slot)) {
		return
	}
	steps := archetype.CellsOf[uint64](ch, 0)[slot]
	out.Frame, out.Steps, out.Time, out.Title = snap.FrameNumber(), steps, w.p.Time(steps), w.p.Title
	out.World = out.appearance(w.p.Attributes, nil)
	for i := range w.p.Groups {
		for from := 0; from < w.p.Groups[i].Count; {
			first, ok := p.show(snap, i, from, ch)
			if !ok {
				break
			}
			w.presentChunk(out, i, from-first, ch)
			from += ch.Slots() - first
		}
	}
}

// presentChunk adds the active slots of a chunk, whose slot 0 is a certain one of a group.
func (w *World) presentChunk(out *PresentationFrame, group, from int, ch *archetype.Chunk) {
	g := &w.p.Groups[group]
	for word, active := range ch.Active() {
		for ; active != 0; active &= active - 1 {
			at := word<<6 | bits.TrailingZeros64(active)
			if from+at < 0 || from+at >= g.Count {
				continue
			}
			state := out.cut(len(g.Slots))
			for s := range state {
				state[s] = archetype.CellsOf[float64](ch, s)[at]
			}
			if hidden(g.Attributes, state) {
				continue
			}
			id := g.First + uint32(from+at)
			out.Entities = append(out.Entities, Presented{
				ID: id, Name: w.nameOf(group, from+at), Group: group, Slot: from + at, State: state,
				Appearance: out.appearance(g.Attributes, state),
			})
		}
	}
}

// cut gives some of the frame's numbers. Once they have been moved to a larger place, those given before stay where they
// were.
func (f *PresentationFrame) cut(n int) []float64 {
	if cap(f.numbers)-len(f.numbers) < n {
		f.numbers = make([]float64, 0, max(2*cap(f.numbers), n, 256))
	}
	f.numbers = f.numbers[:len(f.numbers)+n]
	return f.numbers[len(f.numbers)-n : len(f.numbers) : len(f.numbers)]
}

func hidden(list []Attribute, state []float64) bool {
	i := slices.IndexFunc(list, func(a Attribute) bool { return a.Name == "hidden" })
	return i >= 0 && isTrue(list[i].Values[0].Eval(state))
}

// appearance computes attributes.
func (f *PresentationFrame) appearance(list []Attribute, state []float64) (out Appearance) {
	for i := range list {
		a := &list[i]
		text := a.Values[0].Text
		switch a.Name {
		case "shape":
			out.Shape = text
		case "label":
			out.Label = text
		case "color":
			if out.ColorName = text; a.Values[0].Expr != nil {
				out.Color = f.values(a, state)
			}
		case "position":
			out.Position = f.values(a, state)
		case "size":
			out.Size = f.values(a, state)
		case "gravity":
			out.Gravity = f.values(a, state)
		}
	}
	return out
}

func (f *PresentationFrame) values(a *Attribute, state []float64) []float64 {
	out := f.cut(len(a.Values))
	for i := range out {
		out[i] = a.Values[i].Eval(state)
	}
	return out
}

// Names of slots are made by the page, and kept: a frame of a hundred thousand would else make as many.

const namePage = 1 << 10

// pagesOf is how many pages a group has: none for an ordinary entity, which has its own name.
func pagesOf(g *Group) int {
	if !g.Pool {
		return 0
	}
	return (g.Count + namePage - 1) / namePage
}

// nameOf is Program.Name of a slot. Of several that make a page at once one is kept.
func (w *World) nameOf(group, slot int) string {
	g := &w.p.Groups[group]
	if !g.Pool {
		return g.Name
	}
	page := &w.names[w.firstPage[group]+slot/namePage]
	if list := page.Load(); list != nil {
		return (*list)[slot%namePage]
	}
	first := slot / namePage * namePage
	list := make([]string, min(namePage, g.Count-first))
	for i := range list {
		list[i] = g.Name + "#" + strconv.Itoa(first+i)
	}
	page.Store(&list)
	return list[slot%namePage]
}
