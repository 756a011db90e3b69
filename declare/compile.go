package declare

import (
	encoding "encoding/binary"
	"math"
)

// code is a system for the reference machine: what it does for one entity of its group. The machine runs it
// for each, active or not: it is the code that keeps what is not active as it is.
type code struct {
	bytes     []byte
	registers int
}

// compile makes the code of a system.
func compile(p *Program, s *System) code {
	c := compiler{group: &p.Groups[s.On]}
	switch s.Kind {
	case Spawn:
		c.spawn(p, s)
	case Update:
		c.update(s)
	case Despawn:
		c.despawn(s)
	}
	c.emit(End)
	return code{c.out, c.most}
}

// compiler writes the code of one system. Registers are taken and given back as a stack.
type compiler struct {
	group *Group
	out   []byte
	next  int   // the next free register
	most  int   // registers that are needed
	lets  []int // registers
}

// take gives the next register.
func (c *compiler) take() int {
	c.next++
	c.most = max(c.most, c.next)
	return c.next - 1
}

// emit writes an instruction, with its operands in their order: a number is a float64, all others are ints.
func (c *compiler) emit(op Opcode, operands ...any) {
	c.out = append(c.out, byte(op))
	for i, kind := range instructions[op].operands {
		if kind == opNumber {
			c.out = encoding.LittleEndian.AppendUint64(c.out, math.Float64bits(operands[i].(float64)))
			continue
		}
		v := uint64(operands[i].(int))
		for n := range kind.bytes() {
			if n < 8 {
				c.out = append(c.out, byte(v>>(8*n)))
			} else {
				c.out = append(c.out, 0) // the upper limbs of an id
			}
		}
	}
}

// constant has a number in a register.
func (c *compiler) constant(v float64) int {
	r := c.take()
	c.emit(LoadConst, r, v)
	return r
}

// apply has the outcome of an operation on two registers in the first.
func (c *compiler) apply(op Op, x, y int) { c.emit(Apply2, x, int(op), x, y) }

// spawn looks for a slot and takes it, again and again until there is none, or enough are taken.
func (c *compiler) spawn(p *Program, s *System) {
	if s.Count == 0 {
		return
	}
	pool := &p.Groups[s.Pool]
	copied := 0
	if len(pool.Slots) == len(c.group.Slots) {
		copied = len(pool.Slots)
	}
	left, one, found := c.constant(float64(s.Count)), c.constant(1), c.take()
	again := len(c.out)
	c.emit(FindFreeSlot, found, int(pool.First), pool.Count)
	c.emit(SpawnInto, found, copied)
	c.apply(Sub, left, one)
	c.apply(And, found, left)
	c.emit(JumpIf, found, again)
}

// update computes all lets and rules, and stores what is to be stored.
func (c *compiler) update(s *System) {
	c.computeLets(s.Lets)
	running := c.take()
	c.emit(LoadRunning, running)
	for i := range s.Assigns {
		a := &s.Assigns[i]
		top := c.next
		value, finite, old := c.expr(a.Expr), c.take(), c.take()
		c.emit(IsFinite, finite, value)
		c.apply(And, finite, running)
		c.emit(LoadOwn, old, a.Slot)
		c.emit(Select, value, finite, value, old)
		c.emit(StoreOwn, a.Slot, value)
		c.emit(Apply1, finite, int(Not), finite)
		c.apply(And, finite, running)
		c.emit(Refuse, finite)
		c.next = top
	}
	if s.Active != nil {
		ends := c.expr(s.Active)
		c.emit(Apply1, ends, int(Not), ends)
		c.end(ends, running)
	}
}

// despawn ends who meets the condition.
func (c *compiler) despawn(s *System) {
	c.computeLets(s.Lets)
	running := c.take()
	c.emit(LoadRunning, running)
	c.end(c.expr(s.When), running)
}

// end makes the entity inactive if two registers are true. A slot of a pool has its initial state from then on.
func (c *compiler) end(ends, running int) {
	c.apply(And, ends, running)
	after := c.constant(0)
	c.emit(Select, after, ends, after, running)
	c.emit(StoreActive, after)
	if !c.group.Pool {
		return
	}
	for i := range c.group.Slots {
		top := c.next
		initial, now := c.constant(c.group.Slots[i].Init), c.take()
		c.emit(LoadNew, now, i)
		c.emit(Select, initial, ends, initial, now)
		c.emit(StoreOwn, i, initial)
		c.next = top
	}
}

func (c *compiler) computeLets(lets []Let) {
	for i := range lets {
		c.lets = append(c.lets, c.expr(lets[i].Expr))
	}
}

// expr computes an expression into the next register.
func (c *compiler) expr(e Expr) int {
	switch e := e.(type) {
	case *Const:
		return c.constant(e.Value)
	case *Time:
		r := c.take()
		c.emit(LoadTime, r)
		return r
	case *Own:
		r := c.take()
		c.emit(LoadOwn, r, e.Slot)
		return r
	case *Other:
		r := c.take()
		c.emit(LoadOther, r, int(e.ID), e.Slot)
		return r
	case *ActiveOf:
		r := c.take()
		c.emit(LoadActive, r, int(e.ID))
		return r
	case *Local:
		r, let := c.take(), c.lets[e.Let]
		c.emit(Select, r, let, let, let) // a copy: what asked for it writes over it
		return r
	case *Unary:
		r := c.expr(e.X)
		c.emit(Apply1, r, int(e.Op), r)
		return r
	case *Binary:
		x := c.expr(e.X)
		y := c.expr(e.Y)
		c.apply(e.Op, x, y)
		c.next = x + 1
		return x
	case *If:
		cond := c.expr(e.Cond)
		x := c.expr(e.Then)
		y := c.expr(e.Else)
		c.emit(Select, cond, cond, x, y)
		c.next = cond + 1
		return cond
	}
	return c.constant(0)
}
