package declare

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// checker turns a file into a Program. It goes on after a fault, with 0 for the value of what is at fault, to
// find the others.
type checker struct {
	*faults
	file   *file
	prog   *Program
	given  map[string]float64 // parameters of the caller
	params map[string]int     // index in file.params
	values []float64          // of parameters
	states []bindState        // of parameters
	chain  []string           // parameters that are being computed, for the message about a circle
	groups map[string]int     // index in prog.Groups; of two with one name the first
	decls  []*group           // of prog.Groups
}

// bindState says how far the value of a parameter is.
type bindState uint8

const (
	unbound bindState = iota
	binding
	bound
)

// check builds the program. It is of use only if there are no faults after it.
func check(f *faults, parsed *file, given map[string]float64) *Program {
	c := &checker{
		faults: f, file: parsed, given: given, params: map[string]int{}, groups: map[string]int{},
		prog: &Program{File: f.file, Title: parsed.title, Dt: DefaultDt},
	}
	if parsed.world.Line == 0 && len(f.found) == 0 {
		c.addf(parsed.end, "a file needs world { … }")
	}
	c.bindParams()
	c.declareGroups()
	c.prog.Attributes = c.attributes(parsed.attributes, scope{what: "the world has no state"})
	for _, s := range parsed.systems {
		c.system(s)
	}
	for _, s := range c.prog.Systems {
		if s.Kind == Update {
			c.prog.Dt = s.Dt
			break
		}
	}
	return c.prog
}

// bindParams computes all parameters, whichever of them use which.
func (c *checker) bindParams() {
	c.values = make([]float64, len(c.file.params))
	c.states = make([]bindState, len(c.file.params))
	for i, f := range c.file.params {
		if first, twice := c.params[f.name]; twice {
			c.addf(f.pos, "%s is declared twice, first in line %d", f.name, c.file.params[first].pos.Line)
			continue
		}
		c.params[f.name] = i
	}
	for i, f := range c.file.params {
		c.bind(i)
		c.prog.Params = append(c.prog.Params, Param{Name: f.name, Value: c.values[i], Pos: f.pos})
	}
	names := slices.Sorted(maps.Keys(c.params))
	for _, name := range slices.Sorted(maps.Keys(c.given)) {
		switch _, known := c.params[name]; {
		case !known && !c.file.paramsBroken:
			c.addf(Pos{}, "the world has no parameter %s%s", shown([]byte(name)), nearest(name, names))
		case !isFinite(c.given[name]):
			c.addf(Pos{}, "parameter %s is given a value that is not finite", shown([]byte(name)))
		}
	}
}

// bind computes a parameter, also one that the caller gives a value: what the file says must be sound.
func (c *checker) bind(i int) {
	f := c.file.params[i]
	c.states[i] = binding
	c.chain = append(c.chain, f.name)
	c.values[i] = c.constant(f.expr, "the value of "+f.name)
	c.chain = c.chain[:len(c.chain)-1]
	c.states[i] = bound
	if v, ok := c.given[f.name]; ok {
		c.values[i] = v
	}
}

// paramValue is the value of a parameter that an expression at a place uses.
func (c *checker) paramValue(i int, at Pos) float64 {
	name := c.file.params[i].name
	switch c.states[i] {
	case unbound:
		c.bind(i)
	case binding:
		first := slices.Index(c.chain, name)
		c.addf(at, "circular: %s", strings.Join(append(slices.Clone(c.chain[max(first, 0):]), name), " → "))
	}
	return c.values[i]
}

// constant computes an expression that must be one number.
func (c *checker) constant(n *node, what string) float64 {
	before := len(c.found) + c.more
	e := c.expr(n, &scope{what: what + " is a constant, of numbers and parameters"})
	k, ok := e.(*Const)
	switch {
	case !ok || len(c.found)+c.more > before:
		return 0
	case !isFinite(k.Value):
		c.addf(n.pos, "%s is not finite", what)
		return 0
	}
	return k.Value
}

// whole computes a constant that must be an integer of a range.
func (c *checker) whole(n *node, what string, least, most int) int {
	before := len(c.found) + c.more
	v := c.constant(n, what)
	switch {
	case n.kind == nodeBad || len(c.found)+c.more > before:
	case v != math.Floor(v):
		c.addf(n.pos, "%s is %.15g; it must be an integer", what, v)
	case v < float64(least) || v > float64(most):
		c.addf(n.pos, "%s is %.15g; it goes from %d to %d", what, v, least, most)
	default:
		return int(v)
	}
	return least
}

// declareGroups gives entities and then pools their ids. All names are known before the first attribute is checked.
func (c *checker) declareGroups() {
	first := map[string]Pos{}
	for _, g := range c.file.groups {
		if at, twice := first[g.name]; twice {
			c.addf(g.pos, "%s is declared twice, first in line %d", g.name, at.Line)
			continue
		}
		first[g.name] = g.pos
	}
	entities, cells, over := 0, 0, false
	for _, pools := range []bool{false, true} {
		for _, g := range c.file.groups {
			if g.pool != pools {
				continue
			}
			out := Group{Name: g.name, Pool: g.pool, First: uint32(entities) + 1, Count: 1, Pos: g.pos}
			if g.pool {
				out.Count = c.whole(g.count, "the number of slots of "+g.name, 1, MaxPool)
			}
			entities += out.Count
			cells += out.Count * len(g.slots)
			if !over && (entities > MaxEntities || cells > MaxCells) {
				over = true
				c.addf(g.pos, "too large with %s: a world has up to %d entities with slots of pools, and up to %d state slots in all",
					g.name, MaxEntities, MaxCells)
			}
			if over {
				entities, cells = 0, 0 // the ids no longer matter, and must not overflow
			}
			c.slots(&out, g)
			if _, twice := c.groups[g.name]; !twice {
				c.groups[g.name] = len(c.prog.Groups)
			}
			c.decls = append(c.decls, g)
			c.prog.Groups = append(c.prog.Groups, out)
		}
	}
	for i, g := range c.decls {
		c.prog.Groups[i].Attributes = c.attributes(g.attributes, scope{
			group: &c.prog.Groups[i], broken: g.broken, what: "an attribute uses only the state of its own entity",
		})
	}
}

func (c *checker) slots(out *Group, g *group) {
	lines := map[string]int{}
	for _, f := range g.slots {
		if line, twice := lines[f.name]; twice {
			c.addf(f.pos, "%s is declared twice, first in line %d", f.name, line)
		} else if i, taken := c.params[f.name]; taken {
			c.addf(f.pos, "%s is a parameter, declared in line %d", f.name, c.file.params[i].pos.Line)
		}
		lines[f.name] = f.pos.Line
		out.Slots = append(out.Slots, Slot{Name: f.name, Init: c.constant(f.expr, "the initial value of "+f.name), Pos: f.pos})
	}
}

func (c *checker) attributes(list []*attribute, s scope) []Attribute {
	var out []Attribute
	for _, a := range list {
		values := make([]AttributeValue, len(a.values))
		for i, v := range a.values {
			values[i].Text = v.text
			if v.expr != nil {
				values[i].Expr = c.expr(v.expr, &s)
			}
		}
		out = append(out, Attribute{Name: a.name, Values: values, Pos: a.pos})
	}
	return out
}

// group finds an entity or a pool by its name; -1, with a fault, if there is none.
func (c *checker) group(name string, at Pos) int {
	if i, ok := c.groups[name]; ok {
		return i
	}
	switch {
	case c.file.groupsBroken:
	case c.full():
		c.more++
	default:
		names := make([]string, len(c.prog.Groups))
		for i := range c.prog.Groups {
			names[i] = c.prog.Groups[i].Name
		}
		c.addf(at, "there is no entity or pool %s%s", shown([]byte(name)), nearest(name, names))
	}
	return -1
}
