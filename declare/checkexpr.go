package declare

import (
	"math"
	"slices"
)

// scope is what an expression may use.
type scope struct {
	group  *Group // whose slots are its own; nil for none
	own    bool   // entities can be looked at: it is an expression of a system
	t      bool
	inte   bool // dt and inte(e)
	dt     float64
	broken bool   // names may be missing for a fault that is told already
	what   string // why names other than those are refused

	lets    map[string]int // that can be used by now
	all     []*field       // lets of the system
	numbers map[string]int // of all, by their names
	now     int            // number of the let that is being checked
}

// zero stands for an expression that is at fault.
func zero(at Pos) Expr { return &Const{Pos: at} }

// expr checks an expression, resolves its names and folds its constants.
func (c *checker) expr(n *node, s *scope) Expr {
	switch n.kind {
	case nodeNumber:
		return &Const{Value: n.number, Pos: n.pos}
	case nodeName:
		return c.name(n, s)
	case nodeState:
		if s.group == nil {
			if !s.broken {
				c.addf(n.pos, "there is no state here: %s", s.what)
			}
			return zero(n.pos)
		}
		return c.ownSlot(n, s)
	case nodeOther:
		return c.other(n, s)
	case nodeActive:
		if id, _, ok := c.entity(n, s); ok {
			return &ActiveOf{ID: id, Pos: n.pos}
		}
		return zero(n.pos)
	case nodeUnary:
		return foldUnary(n.op, c.expr(n.args[0], s), n.pos)
	case nodeBinary:
		// The left side of a long sum is deep; its operators are taken from the outside in, and put together
		// from the inside out.
		chain := []*node{}
		for n.kind == nodeBinary {
			chain = append(chain, n)
			n = n.args[0]
		}
		e := c.expr(n, s)
		for _, n := range slices.Backward(chain) {
			e = foldBinary(n.op, e, c.expr(n.args[1], s), n.pos)
		}
		return e
	case nodeCall:
		return c.call(n, s)
	}
	return zero(n.pos)
}

// name resolves a name that stands alone.
func (c *checker) name(n *node, s *scope) Expr {
	switch n.name {
	case "pi":
		return &Const{Value: math.Pi, Pos: n.pos}
	case "true":
		return &Const{Value: 1, Pos: n.pos}
	case "false":
		return zero(n.pos)
	case "t":
		if s.t {
			return &Time{Pos: n.pos}
		}
		c.addf(n.pos, "there is no t here: %s", s.what)
		return zero(n.pos)
	case "dt":
		if s.inte {
			return &Const{Value: s.dt, Pos: n.pos}
		}
		c.addf(n.pos, "there is no dt here: only an update has one")
		return zero(n.pos)
	case "active":
		if s.own {
			return &Const{Value: 1, Pos: n.pos} // rules run on what is active
		}
		c.addf(n.pos, "active cannot be used here: %s", s.what)
		return zero(n.pos)
	}
	if i, ok := s.lets[n.name]; ok {
		return &Local{Let: i, Pos: n.pos}
	}
	if s.group != nil && s.group.slot(n.name) >= 0 {
		return c.ownSlot(n, s)
	}
	if i, ok := c.params[n.name]; ok {
		return &Const{Value: c.paramValue(i, n.pos), Pos: n.pos}
	}
	c.undefined(n, s)
	return zero(n.pos)
}

// undefined reports a name that nothing has.
func (c *checker) undefined(n *node, s *scope) {
	later, isLater := s.numbers[n.name]
	switch {
	case c.full():
		c.more++
		return
	case isLater:
		c.laterLet(n, s, later)
		return
	case s.broken || c.file.paramsBroken:
		return
	}
	if _, ok := functions[n.name]; ok {
		c.addf(n.pos, "%s is a function; write %s(…)", n.name, n.name)
		return
	}
	if s.group != nil && slotNumber(n.name) >= 0 {
		c.slot(s.group, false, n.name, n.pos)
		return
	}
	if _, ok := c.groups[n.name]; ok {
		c.addf(n.pos, "%s is an entity or a pool; write @%s.NAME for a state slot of an entity", n.name, n.name)
		return
	}
	var names []string
	if s.group != nil {
		for _, slot := range s.group.Slots {
			names = append(names, slot.Name)
		}
	}
	for _, f := range s.all[:min(s.now, len(s.all))] {
		names = append(names, f.name)
	}
	for _, f := range c.file.params {
		names = append(names, f.name)
	}
	more := ""
	if s.what != "" {
		more = ": " + s.what
	}
	c.addf(n.pos, "nothing is called %s here%s%s", shown([]byte(n.name)), more, nearest(n.name, names))
}

// laterLet reports the use of a let before it is there, in a circle or not.
func (c *checker) laterLet(n *node, s *scope, later int) {
	switch {
	case later == s.now:
		c.addf(n.pos, "circular: %s is made of itself", n.name)
	case s.uses(later, s.now, map[int]bool{}):
		c.addf(n.pos, "circular: %s → … → %s → %s", n.name, s.all[s.now].name, n.name)
	default:
		c.addf(n.pos, "%s is used before its let, in line %d", n.name, s.all[later].pos.Line)
	}
}

// uses reports whether a let is made of another, directly or through others.
func (s *scope) uses(let, other int, seen map[int]bool) bool {
	seen[let] = true
	stack := []*node{s.all[let].expr}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = append(stack[:len(stack)-1], n.args...)
		if n.kind != nodeName {
			continue
		}
		i, ok := s.numbers[n.name]
		if ok && (i == other || !seen[i] && s.uses(i, other, seen)) {
			return true
		}
	}
	return false
}

// ownSlot resolves a slot of the entity that the expression is for.
func (c *checker) ownSlot(n *node, s *scope) Expr {
	if slot := c.slot(s.group, s.broken, n.name, n.pos); slot >= 0 {
		return &Own{Slot: slot, Pos: n.pos}
	}
	return zero(n.pos)
}

// other resolves @name.x.
func (c *checker) other(n *node, s *scope) Expr {
	id, g, ok := c.entity(n, s)
	if !ok {
		return zero(n.pos)
	}
	if slot := c.slot(&c.prog.Groups[g], c.decls[g].broken, n.name, n.pos); slot >= 0 {
		return &Other{ID: id, Slot: slot, Pos: n.pos}
	}
	return zero(n.pos)
}

// entity finds the entity that a node refers to, and its group.
func (c *checker) entity(n *node, s *scope) (id uint32, group int, ok bool) {
	if !s.own {
		c.addf(n.pos, "other entities cannot be looked at here: %s", s.what)
		return 0, 0, false
	}
	r := n.ref
	i := c.group(r.name, r.pos)
	if i < 0 {
		return 0, 0, false
	}
	g := &c.prog.Groups[i]
	switch {
	case g.Pool && r.slot < 0:
		c.addf(r.pos, "%s is a pool; name one of its slots, as in %s#0", r.name, r.name)
	case !g.Pool && r.slot >= 0:
		c.addf(r.pos, "%s is an entity and has no slots", r.name)
	case r.slot >= g.Count:
		if c.decls[i].count.kind != nodeBad {
			c.addf(r.pos, "%s has the slots 0 to %d", r.name, g.Count-1)
		}
	default:
		return g.First + uint32(max(r.slot, 0)), i, true
	}
	return 0, 0, false
}

// call checks a function with its arguments.
func (c *checker) call(n *node, s *scope) Expr {
	want, known := functions[n.name]
	args := make([]Expr, len(n.args))
	for i, a := range n.args {
		args[i] = c.expr(a, s)
	}
	switch {
	case !known:
		if !c.full() {
			names := []string{"active"}
			for name := range functions {
				names = append(names, name)
			}
			slices.Sort(names)
			c.addf(n.pos, "there is no function %s%s", shown([]byte(n.name)), nearest(n.name, names))
		}
		return zero(n.pos)
	case len(args) != want:
		c.addf(n.pos, "%s takes %d arguments, not %d", n.name, want, len(args))
		return zero(n.pos)
	}
	switch n.name {
	case "if":
		return foldIf(args[0], args[1], args[2], n.pos)
	case "inte":
		if !s.inte {
			c.addf(n.pos, "there is no inte here: only an update has a dt")
			return zero(n.pos)
		}
		return foldBinary(Mul, &Const{Value: s.dt, Pos: n.pos}, args[0], n.pos)
	case "clamp":
		return foldBinary(Min, foldBinary(Max, args[0], args[1], n.pos), args[2], n.pos)
	case "min":
		return foldBinary(Min, args[0], args[1], n.pos)
	case "max":
		return foldBinary(Max, args[0], args[1], n.pos)
	case "abs":
		return foldUnary(Abs, args[0], n.pos)
	case "sqrt":
		return foldUnary(Sqrt, args[0], n.pos)
	case "floor":
		return foldUnary(Floor, args[0], n.pos)
	}
	return foldUnary(Sign, args[0], n.pos)
}

func foldUnary(op Op, x Expr, at Pos) Expr {
	if x, ok := x.(*Const); ok {
		return &Const{Value: unary(op, x.Value), Pos: at}
	}
	return &Unary{Op: op, X: x, Pos: at}
}

func foldBinary(op Op, x, y Expr, at Pos) Expr {
	a, ok := x.(*Const)
	b, also := y.(*Const)
	if ok && also {
		return &Const{Value: binary(op, a.Value, b.Value), Pos: at}
	}
	return &Binary{Op: op, X: x, Y: y, Pos: at}
}

func foldIf(cond, then, other Expr, at Pos) Expr {
	if k, ok := cond.(*Const); ok {
		if isTrue(k.Value) {
			return then
		}
		return other
	}
	return &If{Cond: cond, Then: then, Else: other, Pos: at}
}
