package inspect

import (
	"math"
	"reflect"
	"strings"

	"github.com/airlock-ecs/airlock/archetype"
	"github.com/airlock-ecs/airlock/registry"
)

// place says where the X and the Y of a component are.
type place struct {
	comp *archetype.Component
	x, y coordinate
}

type coordinate struct {
	field int   // column of the component
	index []int // in its elements; empty: the element itself
}

// placeOf finds X and Y in a component: numbers with these names.
func placeOf(comp *archetype.Component) (place, bool) {
	p := place{comp: comp}
	if comp.Type.Kind() != reflect.Struct || comp.Tag() {
		return p, false
	}
	var okX, okY bool
	p.x, okX = coordinateOf(comp, "X")
	p.y, okY = coordinateOf(comp, "Y")
	return p, okX && okY
}

func coordinateOf(comp *archetype.Component, name string) (coordinate, bool) {
	if comp.Split {
		for i, f := range comp.Fields {
			if f.Name == name && numeric(f.Type) {
				return coordinate{field: i}, true
			}
		}
		return coordinate{}, false
	}
	f, ok := comp.Type.FieldByName(name)
	return coordinate{index: f.Index}, ok && len(f.Index) == 1 && numeric(f.Type)
}

func numeric(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 && t.Kind() != reflect.Uintptr
}

// axis reads one coordinate of the slots of a chunk.
type axis struct {
	column reflect.Value
	index  []int
}

func (c coordinate) in(s *registry.Snapshot, ref *archetype.Ref, comp *archetype.Component) (axis, error) {
	column, err := s.Column(ref, comp, c.field)
	return axis{column, c.index}, err
}

func (a axis) at(slot int) float64 {
	v := a.column.Index(slot)
	if len(a.index) > 0 {
		v = v.FieldByIndex(a.index)
	}
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	default:
		return v.Float()
	}
}

// drawable says whether a point can be on a canvas, and in JSON.
func drawable(x, y float64) bool {
	return !math.IsNaN(x) && !math.IsInf(x, 0) && !math.IsNaN(y) && !math.IsInf(y, 0)
}

// likely says how likely a component with X and Y is where its entity is, by its name: velocities have X and Y, too.
func likely(name string) int {
	name = strings.ToLower(name)
	for _, sign := range []struct {
		part string
		mark int
	}{
		{"pos", 2}, {"place", 2}, {"loc", 2}, {"coord", 2}, {"point", 1}, {"spot", 1},
		{"vel", -2}, {"acc", -2}, {"speed", -2}, {"force", -2}, {"dir", -1}, {"size", -1}, {"scale", -1},
	} {
		if strings.Contains(name, sign.part) {
			return sign.mark
		}
	}
	return 0
}
