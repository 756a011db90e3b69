package inspect

import (
	"math/bits"
	"net/url"
	"slices"
	"strconv"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/registry"
)

// world is what the last published frame shows of where everybody is: its head, and dots in four lists of one length.
type world struct {
	worldHead
	Handle []handles.Local
	Class  []int // in Classes
	X, Y   []float64
}

type worldHead struct {
	Frame     uint64
	Error     string   `json:",omitempty"` // why there is nothing to show
	Component string   // whose X and Y: all that were asked for, or the likeliest of each archetype
	Choices   []string // components with X and Y that are published
	Classes   []string
	Total     int // active entities that have a place
	Elsewhere int // of the dots looked at, those at no finite place
}

// appendJSON writes the dots by hand: there are some thousand, ten times a second.
func (v *world) appendJSON(buf []byte) []byte {
	buf = append(appendHead(buf, &v.worldHead), `,"Handle":`...)
	buf = appendList(buf, len(v.Handle), func(buf []byte, i int) []byte {
		buf, _ = v.Handle[i].AppendText(append(buf, '"')) // there is no handle without a text
		return append(buf, '"')
	})
	buf = append(buf, `,"Class":`...)
	buf = appendList(buf, len(v.Class), func(buf []byte, i int) []byte { return strconv.AppendInt(buf, int64(v.Class[i]), 10) })
	buf = append(buf, `,"X":`...)
	buf = appendList(buf, len(v.X), func(buf []byte, i int) []byte { return appendNumber(buf, v.X[i]) })
	buf = append(buf, `,"Y":`...)
	buf = appendList(buf, len(v.Y), func(buf []byte, i int) []byte { return appendNumber(buf, v.Y[i]) })
	return append(buf, '}')
}

// worldTopic is the view of the world, by one component or by the likeliest.
func worldTopic(h *Handler, q url.Values) (*keptView, error) {
	component := q.Get("component")
	return h.views.find("world "+component, &keptView{h: h, event: "world", published: func() any {
		return h.lookAround(component)
	}}), nil
}

func (h *Handler) lookAround(component string) *world {
	v := &world{worldHead: worldHead{Component: component, Choices: []string{}, Classes: []string{}}}
	err := h.read(func(s *registry.Snapshot) {
		v.Frame = s.FrameNumber()
		v.read(s)
	})
	if err != nil {
		v.Error = err.Error()
	}
	return v
}

// read finds the places first, and how many dots there are, then takes as many as can be drawn, evenly.
func (v *world) read(s *registry.Snapshot) {
	d := s.Directory()
	chosen := make([]place, len(d.Archetypes()))
	for i, a := range d.Archetypes() {
		if !s.Shows(a) {
			continue
		}
		for _, comp := range a.Components() {
			p, ok := placeOf(comp)
			if !ok || s.Readable(comp) != nil {
				continue
			}
			if !slices.Contains(v.Choices, comp.Name) {
				v.Choices = append(v.Choices, comp.Name)
			}
			if v.Component != "" && comp.Name != v.Component {
				continue
			}
			if chosen[i].comp == nil || likely(comp.Name) > likely(chosen[i].comp.Name) {
				chosen[i] = p
			}
		}
		if chosen[i].comp == nil {
			continue
		}
		for _, ref := range d.Chunks(i) {
			for _, word := range ref.Active(s.Storage()) {
				v.Total += bits.OnesCount64(word)
			}
		}
	}
	every, next := (v.Total+mostDots-1)/mostDots, 0
	dots := min(v.Total, mostDots)
	v.Handle, v.Class, v.X, v.Y = make([]handles.Local, 0, dots), make([]int, 0, dots), make([]float64, 0, dots), make([]float64, 0, dots)
	for i, p := range chosen {
		if p.comp == nil {
			continue
		}
		class := v.classOf(d.Archetypes()[i])
		for _, ref := range d.Chunks(i) {
			next = v.readChunk(s, ref, p, class, every, next)
		}
	}
}

func (v *world) classOf(a *archetype.Archetype) int {
	if i := slices.Index(v.Classes, a.ClassName()); i >= 0 {
		return i
	}
	v.Classes = append(v.Classes, a.ClassName())
	return len(v.Classes) - 1
}

// readChunk takes one dot in every so many; the next one after some have passed.
func (v *world) readChunk(s *registry.Snapshot, ref *archetype.Ref, p place, class, every, next int) int {
	xs, errX := p.x.in(s, ref, p.comp)
	ys, errY := p.y.in(s, ref, p.comp)
	if errX != nil || errY != nil {
		return next
	}
	entities := ref.Entities(s.Storage())
	for w, word := range ref.Active(s.Storage()) {
		for ; word != 0; word &= word - 1 {
			if next > 0 {
				next--
				continue
			}
			next = every - 1
			slot := w<<6 + bits.TrailingZeros64(word)
			x, y := xs.at(slot), ys.at(slot)
			if !drawable(x, y) {
				v.Elsewhere++
				continue
			}
			v.Handle, v.Class = append(v.Handle, entities[slot]), append(v.Class, class)
			v.X, v.Y = append(v.X, x), append(v.Y, y)
		}
	}
	return next
}
