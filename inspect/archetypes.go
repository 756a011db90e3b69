package inspect

import (
	"reflect"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

// archetypeRow is an archetype, with what is a hole of it.
type archetypeRow struct {
	registry.ArchetypeStats
	Fragmentation float64 // share of the slots up to the high-water mark that nobody has
	shape
}

// shape is what does not change of an archetype.
type shape struct {
	Tier   string // the highest of its components
	Parts  []part // its components
	Places []string
}

// part is a component as the table shows it.
type part struct {
	Name, Tier, Type string
	Split            bool     `json:",omitempty"`
	Fields           []string `json:",omitempty"`
}

// mostFields bounds what is said of one component.
const mostFields = 64

// archetypeRows adds shapes to the statistics, as far as the table has room.
func (c *collector) archetypeRows(stats []registry.ArchetypeStats) (rows []archetypeRow, left int) {
	all := c.e.Registry().Archetypes()
	if len(c.shapes) > 2*len(all)+mostRows { // of archetypes that are no more
		clear(c.shapes)
	}
	rows = []archetypeRow{}
	for i, s := range stats {
		if i == mostRows {
			return rows, len(stats) - i
		}
		row := archetypeRow{ArchetypeStats: s}
		if s.Allocated > 0 {
			row.Fragmentation = 1 - float64(s.Live+s.Idle)/float64(s.Allocated)
		}
		if s.Number < len(all) && all[s.Number].ClassName() == s.Class { // else it was undone meanwhile
			row.shape = c.shapeOf(all[s.Number])
		}
		rows = append(rows, row)
	}
	return rows, 0
}

func (c *collector) shapeOf(a *archetype.Archetype) shape {
	if s, ok := c.shapes[a]; ok {
		return s
	}
	s, top := shape{Parts: []part{}, Places: []string{}}, archetype.Cold
	for _, comp := range a.Components() {
		top = max(top, comp.Tier)
		s.Parts = append(s.Parts, part{
			Name: comp.Name, Tier: comp.Tier.String(), Type: comp.Type.String(), Split: comp.Split, Fields: fieldNames(comp.Type),
		})
		if _, ok := placeOf(comp); ok {
			s.Places = append(s.Places, comp.Name)
		}
	}
	s.Tier = top.String()
	c.shapes[a] = s
	return s
}

// fieldNames are the fields of a struct type, with their types.
func fieldNames(t reflect.Type) []string {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for i := range min(t.NumField(), mostFields) {
		names = append(names, t.Field(i).Name+" "+t.Field(i).Type.String())
	}
	return names
}
