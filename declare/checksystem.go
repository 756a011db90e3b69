package declare

import "slices"

// system checks a system. One of which something is missing has no place in the program, which then is not run.
func (c *checker) system(s *system) {
	out := System{Kind: s.kind, Pos: s.pos, On: -1}
	sc := scope{what: "", own: true, t: true, broken: s.broken}
	switch {
	case s.on.name != "":
		out.On = c.group(s.on.name, s.on.pos)
	case !s.broken:
		c.addf(s.pos, "%s without on: what does it run on?", s.kind)
	}
	if out.On >= 0 {
		sc.group = &c.prog.Groups[out.On]
		sc.broken = sc.broken || c.decls[out.On].broken
	} else {
		sc.broken = true // what its names are is not known
	}
	switch s.kind {
	case Spawn:
		c.spawn(s, &out)
	case Update:
		sc.inte = true
		sc.dt = DefaultDt
		if f := s.keys["dt"]; f != nil {
			sc.dt = c.constant(f.expr, "dt")
			if sc.dt < 0 {
				c.addf(f.expr.pos, "dt is %.15g; it must not be negative", sc.dt)
			}
		}
		out.Dt = sc.dt
		c.lets(s, &out, &sc)
		c.assigns(s, &out, &sc)
		if f := s.keys["active"]; f != nil {
			out.Active = c.expr(f.expr, &sc)
		}
	case Despawn:
		c.lets(s, &out, &sc)
		if f := s.keys["when"]; f != nil {
			out.When = c.expr(f.expr, &sc)
		} else if !s.broken {
			c.addf(s.pos, "despawn without when: what does it depend on?")
		}
	}
	c.prog.Systems = append(c.prog.Systems, out)
}

func (c *checker) spawn(s *system, out *System) {
	out.Count, out.Every = 1, 1
	if f := s.keys["count"]; f != nil {
		out.Count = c.whole(f.expr, "count", 0, MaxSteps-1)
	}
	if f := s.keys["every"]; f != nil {
		out.Every = uint64(c.whole(f.expr, "every", 1, MaxSteps-1))
	}
	if f := s.keys["phase"]; f != nil {
		out.Phase = uint64(c.whole(f.expr, "phase", 0, MaxSteps-1))
	}
	if s.pool.name == "" {
		if !s.broken {
			c.addf(s.pos, "spawn without pool: where does it take slots from?")
		}
		return
	}
	out.Pool = c.group(s.pool.name, s.pool.pos)
	if out.Pool >= 0 && !c.prog.Groups[out.Pool].Pool {
		c.addf(s.pool.pos, "%s is an entity; a spawn takes its slots from a pool", s.pool.name)
	}
}

// lets checks the lets of a system. Each sees only those before it, so there are no circles.
func (c *checker) lets(s *system, out *System, sc *scope) {
	sc.lets, sc.all, sc.numbers = map[string]int{}, s.lets, map[string]int{}
	for i, f := range slices.Backward(s.lets) {
		sc.numbers[f.name] = i
	}
	for i, f := range s.lets {
		sc.now = i
		e := c.expr(f.expr, sc)
		out.Lets = append(out.Lets, Let{Name: f.name, Expr: e, Pos: f.pos})
		if old, twice := sc.lets[f.name]; twice {
			c.addf(f.pos, "%s is declared twice, first in line %d", f.name, s.lets[old].pos.Line)
			continue
		}
		if p, taken := c.params[f.name]; taken {
			c.addf(f.pos, "%s is a parameter, declared in line %d", f.name, c.file.params[p].pos.Line)
		}
		if sc.group != nil {
			if slot := sc.group.slot(f.name); slot >= 0 {
				c.addf(f.pos, "%s is a state slot of %s, declared in line %d", f.name, sc.group.Name, sc.group.Slots[slot].Pos.Line)
			}
		}
		sc.lets[f.name] = i
	}
	sc.now = len(s.lets)
}

func (c *checker) assigns(s *system, out *System, sc *scope) {
	lines := map[int]int{}
	for _, a := range s.assigns {
		slot := -1
		if sc.group != nil {
			if _, isLet := sc.lets[a.name]; isLet {
				c.addf(a.pos, "%s is a let; rules assign state slots", a.name)
			} else if _, isParam := c.params[a.name]; isParam {
				c.addf(a.pos, "%s is a parameter; rules assign state slots", a.name)
			} else {
				slot = c.slot(sc.group, sc.broken, a.name, a.pos)
			}
		}
		e := c.expr(a.expr, sc)
		if slot < 0 {
			continue
		}
		if line, twice := lines[slot]; twice {
			c.addf(a.pos, "%s is assigned twice, first in line %d", sc.group.Slots[slot].Name, line)
		}
		lines[slot] = a.pos.Line
		out.Assigns = append(out.Assigns, Assign{Slot: slot, Expr: e, Pos: a.pos})
	}
}

// slot finds a state slot by its name or as sN; -1 if there is none.
func (g *Group) slot(name string) int {
	if n := slotNumber(name); n >= 0 {
		if n < len(g.Slots) {
			return n
		}
		return -1
	}
	return slices.IndexFunc(g.Slots, func(s Slot) bool { return s.Name == name })
}

// slot finds a state slot of a group; -1, with a fault, if there is none.
func (c *checker) slot(g *Group, broken bool, name string, at Pos) int {
	slot := g.slot(name)
	switch {
	case slot >= 0 || broken:
	case c.full():
		c.more++
	case slotNumber(name) >= 0:
		c.addf(at, "there is no %s: %s has %d state slots", shown([]byte(name)), g.Name, len(g.Slots))
	default:
		names := make([]string, len(g.Slots))
		for i := range g.Slots {
			names[i] = g.Slots[i].Name
		}
		c.addf(at, "%s has no state slot %s%s", g.Name, shown([]byte(name)), nearest(name, names))
	}
	return slot
}
