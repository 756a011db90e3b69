package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/airlock-ecs/airlock/declare"
)

// mostLines is how many lines a plot has: more could not be told apart.
const mostLines = 16

// curve is a line of a plot: the value of a state slot while its entity is active, or how many of a group are.
type curve struct {
	name  string
	group int    // whose active ones are counted
	id    uint32 // 0 for a count
	slot  int
	extents
}

// curves finds what --slots names: NAME counts, ENTITY.SLOT and POOL#N.SLOT are values.
func curves(p *declare.Program, names []string) ([]*curve, error) {
	if names == nil {
		names = defaultCurves(p)
	}
	var list []*curve
	for _, name := range names {
		c, err := findCurve(p, strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	switch n := len(list); {
	case n == 0:
		return nil, fmt.Errorf("--plot has nothing to draw: name something with --slots")
	case n > mostLines:
		return nil, fmt.Errorf("--plot draws up to %d lines, not %d: choose with --slots", mostLines, n)
	}
	return list, nil
}

// defaultCurves are the pools, or without any the state slots of the entities.
func defaultCurves(p *declare.Program) (names []string) {
	for i := range p.Groups {
		if p.Groups[i].Pool {
			names = append(names, p.Groups[i].Name)
		}
	}
	if len(names) > 0 {
		return names
	}
	for i := range p.Groups {
		for _, s := range p.Groups[i].Slots {
			names = append(names, p.Groups[i].Name+"."+s.Name)
		}
	}
	return names
}

func findCurve(p *declare.Program, name string) (*curve, error) {
	c := &curve{name: name, slot: -1}
	entity, slot, value := strings.Cut(name, ".")
	if !value {
		for i := range p.Groups {
			if c.group = i; p.Groups[i].Name == entity {
				return c, nil
			}
		}
	}
	id, ok := p.ID(entity)
	switch {
	case ok && !value:
		return nil, fmt.Errorf("--slots %s: which slot of it? Such as %s.%s", name, entity, exampleSlot(p, id))
	case !ok:
		for i := range p.Groups {
			if g := &p.Groups[i]; g.Name == strings.SplitN(entity, "#", 2)[0] && g.Pool {
				return nil, fmt.Errorf("--slots %s: %s is a pool with the slots %s#0 to %s", name, g.Name, g.Name, p.Name(g.First+uint32(g.Count)-1))
			}
		}
		return nil, fmt.Errorf("--slots %s: there is no entity or pool %s", name, entity)
	}
	c.id = id
	group, _, _ := p.GroupOf(id)
	slots := p.Groups[group].Slots
	for i := range slots {
		if slot == slots[i].Name || slot == "s"+strconv.Itoa(i) {
			c.slot = i
			return c, nil
		}
	}
	return nil, fmt.Errorf("--slots %s: %s has no state slot %s", name, p.Groups[group].Name, slot)
}

// exampleSlot is a name of a state slot to show how one is written.
func exampleSlot(p *declare.Program, id uint32) string {
	if group, _, _ := p.GroupOf(id); len(p.Groups[group].Slots) > 0 {
		return p.Groups[group].Slots[0].Name
	}
	return "x"
}

// mostExtents is how many stretches of steps a curve is kept in; at least half as many are in use when there are more steps.
const mostExtents = 1024

// extents keeps the least and the greatest value of stretches of steps, all of which have the same length but for the last.
type extents struct {
	list   []extent
	length uint64 // steps, a power of two
}

// extent is the least and the greatest value of a stretch, and where they are.
type extent struct {
	steps      uint64 // that it has
	lo, hi     float64
	loAt, hiAt uint64
	empty      bool // there is no value
	broken     bool // at some steps there is no value
}

// add adds the value of a step; the steps come one after the other, from 0.
func (e *extents) add(at uint64, v float64, present bool) {
	one := extent{steps: 1, lo: v, hi: v, loAt: at, hiAt: at, empty: !present, broken: !present}
	if e.length == 0 {
		e.length = 1
	}
	if n := len(e.list); n > 0 && e.list[n-1].steps < e.length {
		e.list[n-1] = e.list[n-1].join(one)
		return
	}
	if len(e.list) == mostExtents {
		for i := range mostExtents / 2 {
			e.list[i] = e.list[2*i].join(e.list[2*i+1])
		}
		e.list = e.list[:mostExtents/2]
		e.length *= 2
	}
	e.list = append(e.list, one)
}

// join is a stretch and the one behind it as one.
func (a extent) join(b extent) extent {
	out := a
	out.steps += b.steps
	out.broken = a.broken || b.broken
	switch {
	case b.empty:
		return out
	case a.empty:
		out.empty, out.lo, out.hi, out.loAt, out.hiAt = false, b.lo, b.hi, b.loAt, b.hiAt
		return out
	}
	if b.lo < a.lo {
		out.lo, out.loAt = b.lo, b.loAt
	}
	if b.hi > a.hi {
		out.hi, out.hiAt = b.hi, b.hiAt
	}
	return out
}

// bounds are the least and the greatest value of all; false if there is none.
func (e *extents) bounds() (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, x := range e.list {
		if !x.empty {
			lo, hi, ok = min(lo, x.lo), max(hi, x.hi), true
		}
	}
	return lo, hi, ok
}
