package snapshot

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

// journalSchema is the components and classes of a registry in the order of their names. Their places in that order
// are how a journal refers to them, whatever the order of their registration.
type journalSchema struct {
	hash    uint64
	comps   []*archetype.Component
	fields  [][]fieldCodec // of comps
	classes []journalClass

	compRank  map[archetype.ComponentID]int // places in comps
	classRank map[int]int                   // places in classes, by number
}

// journalClass is a class and its number in the registry.
type journalClass struct {
	registry.ClassInfo
	number int
}

// journalSchemaVersion is hashed with every schema: whoever describes them in another way has another one.
const journalSchemaVersion = 1

func newJournalSchema(r *registry.Registry) (*journalSchema, error) {
	s := &journalSchema{compRank: map[archetype.ComponentID]int{}, classRank: map[int]int{}}
	for i, c := range r.ClassInfos() { // before the components, which are registered first
		s.classes = append(s.classes, journalClass{c, i})
	}
	for id := range r.Schema().Len() {
		c, _ := r.Schema().ByID(archetype.ComponentID(id))
		s.comps = append(s.comps, c)
	}
	slices.SortFunc(s.comps, func(a, b *archetype.Component) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.classes, func(a, b journalClass) int { return cmp.Compare(a.Name, b.Name) })
	for i, c := range s.comps {
		s.compRank[c.ID] = i
		codecs := make([]fieldCodec, len(c.Fields))
		for k := range c.Fields {
			var err error
			if codecs[k], err = newFieldCodec(c, &c.Fields[k]); err != nil {
				return nil, err
			}
		}
		s.fields = append(s.fields, codecs)
	}
	for i, c := range s.classes {
		s.classRank[c.number] = i
	}
	s.hash = xxh3.Hash(s.describe(r))
	return s, nil
}

// describe writes down all that has to be equal: the names of components with what they consist of, and the names of
// classes with the size of their chunks and the names of their components.
func (s *journalSchema) describe(r *registry.Registry) []byte {
	text := strconv.AppendInt(nil, journalSchemaVersion, 10)
	for _, c := range s.comps {
		text = strconv.AppendQuote(append(text, "\ncomponent "...), c.Name)
		text = append(append(text, ' '), layoutOf(c)...)
	}
	for _, c := range s.classes {
		text = strconv.AppendQuote(append(text, "\nclass "...), c.Name)
		text = strconv.AppendInt(append(text, ' '), int64(c.Slots), 10)
		text = strconv.AppendBool(append(text, ' '), c.Cosmetic)
		names := make([]string, len(c.Components))
		for i, id := range c.Components {
			comp, _ := r.Schema().ByID(id)
			names[i] = comp.Name
		}
		slices.Sort(names)
		for _, name := range names {
			text = strconv.AppendQuote(append(text, ' '), name)
		}
	}
	return text
}
