package declare

import (
	"math"
	"slices"
)

// The batch backend computes an expression for many slots at once, a lane for each. A value is one of three: a vector, with a number
// for each lane; a mask, with a bit, which is what conditions give; or uniform, one number for all lanes, computed once for a
// system. Constants, t, and all that looks at a certain other entity is uniform.

// laneOp is one loop over the lanes of a block: over vectors and masks, which are numbered each on their own, and
// uniform values.
type laneOp struct {
	code laneCode
	dst  int32
	a, b int32 // vectors or masks
	c    int32 // mask of a select
	s, k int32 // uniform
}

// laneCode says which loop. The last letters say what it goes over: V for a vector, S for a uniform value. Those up to laneSelect give a
// vector, the others a mask.
type laneCode uint8

const (
	laneFill laneCode = iota // s
	laneCopy
	laneNumber // of mask a: 1 or 0
	laneNeg
	laneAbs
	laneSqrt
	laneFloor
	laneSign
	laneAddVV
	laneAddVS
	laneSubVV
	laneSubVS
	laneSubSV
	laneMulVV
	laneMulVS
	laneDivVV
	laneDivVS
	laneDivSV
	laneModVV
	laneModVS
	laneModSV
	laneMinVV
	laneMinVS
	laneMaxVV
	laneMaxVS
	laneAddMul    // a + s*b
	laneSubMul    // a - s*b
	laneMulAdd    // s*(k + b)
	laneAddMulAdd // a + s*(k + b)
	laneSelect    // a where mask c is set, else b

	laneAll  // s for all lanes
	laneTest // vector a
	laneAnd
	laneOr
	laneNot
	laneEqVV
	laneEqVS
	laneNeVV
	laneNeVS
	laneLtVV
	laneLtVS
	laneLeVV
	laneLeVS
	laneGtVS
	laneGeVS
)

// lanes is an update or a despawn for the batch backend. Vectors below arity are the columns of the state.
//
// No operation writes a column: what is to be stored waits in other vectors until the block is computed, so that all
// that is read is as it was when the system started.
type lanes struct {
	arity          int
	uniform        []Expr // what is computed once; each may use lets among those before it
	letAt          []int  // of each let that is uniform, its place there; else -1
	ops            []laneOp
	vectors, masks int // how many there are, columns included
	stores         []laneStore
	ends           int32 // mask of who becomes inactive; -1 for none
}

// laneStore stores a vector in a state slot.
type laneStore struct {
	slot   int
	vector int32
}

// laneValue is where a value is while lanes are compiled.
type laneValue struct {
	kind laneKind
	at   int32
	expr Expr // of what is uniform
}

type laneKind uint8

const (
	uniformValue laneKind = iota
	vectorValue
	maskValue
)

// laneCompiler makes lanes.
type laneCompiler struct {
	out         *lanes
	lets        []laneValue
	freeVectors []int32
	freeMasks   []int32
	keptVectors map[int32]bool // of lets, and of what is to be stored
	keptMasks   map[int32]bool
	constants   map[uint64]int32 // places in uniform, by their bits
}

// compileLanes makes the lanes of an update or a despawn.
func compileLanes(p *Program, s *System) *lanes {
	arity := len(p.Groups[s.On].Slots)
	c := laneCompiler{
		out:         &lanes{arity: arity, vectors: arity, ends: -1, letAt: make([]int, len(s.Lets))},
		keptVectors: map[int32]bool{}, keptMasks: map[int32]bool{}, constants: map[uint64]int32{},
	}
	for i := range s.Lets {
		v := c.expr(s.Lets[i].Expr)
		c.out.letAt[i] = -1
		if v.kind == uniformValue {
			c.out.letAt[i] = int(c.uniform(v.expr))
			v.expr = &Local{Let: i}
		}
		c.keep(v)
		c.lets = append(c.lets, v)
	}
	for i := range s.Assigns {
		v := laneValue{kind: vectorValue, at: c.vector(c.expr(s.Assigns[i].Expr))}
		if v.at < int32(arity) { // another rule may store there
			v = c.emitVector(laneOp{code: laneCopy, a: v.at})
		}
		c.keep(v)
		c.out.stores = append(c.out.stores, laneStore{s.Assigns[i].Slot, v.at})
	}
	switch {
	case s.Kind == Despawn:
		c.out.ends = c.mask(c.expr(s.When))
	case s.Active != nil:
		active := c.mask(c.expr(s.Active))
		c.out.ends = c.emitMask(laneOp{code: laneNot, a: active}).at
	}
	return c.out
}

// uniform has an expression computed once, and gives its place.
func (c *laneCompiler) uniform(e Expr) int32 {
	if k, ok := e.(*Const); ok {
		bits := math.Float64bits(k.Value)
		if at, ok := c.constants[bits]; ok {
			return at
		}
		c.constants[bits] = int32(len(c.out.uniform))
	}
	if l, ok := e.(*Local); ok {
		return int32(c.out.letAt[l.Let])
	}
	c.out.uniform = append(c.out.uniform, e)
	return int32(len(c.out.uniform) - 1)
}

// keep has a value stay where it is to the end of the block.
func (c *laneCompiler) keep(v laneValue) {
	switch v.kind {
	case vectorValue:
		c.keptVectors[v.at] = true
	case maskValue:
		c.keptMasks[v.at] = true
	}
}

// dropVector gives a vector back that is not used any more.
func (c *laneCompiler) dropVector(at int32) {
	if at >= int32(c.out.arity) && !c.keptVectors[at] && !slices.Contains(c.freeVectors, at) {
		c.freeVectors = append(c.freeVectors, at)
	}
}

func (c *laneCompiler) dropMask(at int32) {
	if !c.keptMasks[at] && !slices.Contains(c.freeMasks, at) {
		c.freeMasks = append(c.freeMasks, at)
	}
}

// emitVector adds an operation that gives a vector: what is used for the last time may be where it goes, for lanes
// do not look at each other.
func (c *laneCompiler) emitVector(op laneOp) laneValue {
	if last := len(c.freeVectors) - 1; last >= 0 {
		op.dst, c.freeVectors = c.freeVectors[last], c.freeVectors[:last]
	} else {
		op.dst = int32(c.out.vectors)
		c.out.vectors++
	}
	c.out.ops = append(c.out.ops, op)
	return laneValue{kind: vectorValue, at: op.dst}
}

func (c *laneCompiler) emitMask(op laneOp) laneValue {
	if last := len(c.freeMasks) - 1; last >= 0 {
		op.dst, c.freeMasks = c.freeMasks[last], c.freeMasks[:last]
	} else {
		op.dst = int32(c.out.masks)
		c.out.masks++
	}
	c.out.ops = append(c.out.ops, op)
	return laneValue{kind: maskValue, at: op.dst}
}

// vector has a value in a vector.
func (c *laneCompiler) vector(v laneValue) int32 {
	switch v.kind {
	case uniformValue:
		return c.emitVector(laneOp{code: laneFill, s: c.uniform(v.expr)}).at
	case maskValue:
		c.dropMask(v.at)
		return c.emitVector(laneOp{code: laneNumber, a: v.at}).at
	}
	return v.at
}

// mask has the truth of a value in a mask.
func (c *laneCompiler) mask(v laneValue) int32 {
	switch v.kind {
	case uniformValue:
		return c.emitMask(laneOp{code: laneAll, s: c.uniform(v.expr)}).at
	case vectorValue:
		c.dropVector(v.at)
		return c.emitMask(laneOp{code: laneTest, a: v.at}).at
	}
	return v.at
}

// expr computes an expression.
func (c *laneCompiler) expr(e Expr) laneValue {
	switch e := e.(type) {
	case *Own:
		return laneValue{kind: vectorValue, at: int32(e.Slot)}
	case *Local:
		return c.lets[e.Let]
	case *Unary:
		return c.unary(e)
	case *Binary:
		return c.binary(e)
	case *If:
		return c.choice(e)
	}
	return laneValue{kind: uniformValue, expr: e}
}

func (c *laneCompiler) unary(e *Unary) laneValue {
	x := c.expr(e.X)
	switch {
	case x.kind == uniformValue:
		return laneValue{kind: uniformValue, expr: e}
	case e.Op == Not:
		m := c.mask(x)
		c.dropMask(m)
		return c.emitMask(laneOp{code: laneNot, a: m})
	}
	codes := [...]laneCode{Neg: laneNeg, Abs: laneAbs, Sqrt: laneSqrt, Floor: laneFloor, Sign: laneSign}
	v := c.vector(x)
	c.dropVector(v)
	return c.emitVector(laneOp{code: codes[e.Op], a: v})
}

func (c *laneCompiler) choice(e *If) laneValue {
	cond, x, y := c.expr(e.Cond), c.expr(e.Then), c.expr(e.Else)
	if cond.kind == uniformValue && x.kind == uniformValue && y.kind == uniformValue {
		return laneValue{kind: uniformValue, expr: e}
	}
	op := laneOp{code: laneSelect, c: c.mask(cond), a: c.vector(x), b: c.vector(y)}
	c.dropMask(op.c)
	c.dropVector(op.a)
	c.dropVector(op.b)
	return c.emitVector(op)
}

// forms are the loops of an operation: over two vectors, over a vector and a uniform value, and the other way round. Those
// with a swapped form have the sides changed.
type forms struct {
	vv, vs, sv laneCode
	swapped    bool // in vv
}

// formsOf are the loops of the operations but And and Or.
var formsOf = [...]forms{
	Add: {vv: laneAddVV, vs: laneAddVS, sv: laneAddVS},
	Sub: {vv: laneSubVV, vs: laneSubVS, sv: laneSubSV},
	Mul: {vv: laneMulVV, vs: laneMulVS, sv: laneMulVS},
	Div: {vv: laneDivVV, vs: laneDivVS, sv: laneDivSV},
	Mod: {vv: laneModVV, vs: laneModVS, sv: laneModSV},
	Min: {vv: laneMinVV, vs: laneMinVS, sv: laneMinVS},
	Max: {vv: laneMaxVV, vs: laneMaxVS, sv: laneMaxVS},
	Eq:  {vv: laneEqVV, vs: laneEqVS, sv: laneEqVS},
	Ne:  {vv: laneNeVV, vs: laneNeVS, sv: laneNeVS},
	Lt:  {vv: laneLtVV, vs: laneLtVS, sv: laneGtVS},
	Le:  {vv: laneLeVV, vs: laneLeVS, sv: laneGeVS},
	Gt:  {vv: laneLtVV, vs: laneGtVS, sv: laneLtVS, swapped: true},
	Ge:  {vv: laneLeVV, vs: laneGeVS, sv: laneLeVS, swapped: true},
}

func (c *laneCompiler) binary(e *Binary) laneValue {
	if v, ok := c.fused(e); ok {
		return v
	}
	x, y := c.expr(e.X), c.expr(e.Y)
	if x.kind == uniformValue && y.kind == uniformValue {
		return laneValue{kind: uniformValue, expr: e}
	}
	if e.Op == And || e.Op == Or {
		op := laneOp{code: laneAnd, a: c.mask(x), b: c.mask(y)}
		if e.Op == Or {
			op.code = laneOr
		}
		c.dropMask(op.a)
		c.dropMask(op.b)
		return c.emitMask(op)
	}
	form := &formsOf[e.Op]
	var op laneOp
	switch {
	case x.kind == uniformValue:
		op = laneOp{code: form.sv, a: c.vector(y), s: c.uniform(x.expr)}
		c.dropVector(op.a)
	case y.kind == uniformValue:
		op = laneOp{code: form.vs, a: c.vector(x), s: c.uniform(y.expr)}
		c.dropVector(op.a)
	default:
		op = laneOp{code: form.vv, a: c.vector(x), b: c.vector(y)}
		if form.swapped {
			op.a, op.b = op.b, op.a
		}
		c.dropVector(op.a)
		c.dropVector(op.b)
	}
	if op.code > laneSelect {
		return c.emitMask(op)
	}
	return c.emitVector(op)
}

// fused finds the commonest forms of motion, x + dt*v and x + dt*(a + v), which are one loop instead of two or
// three. They are the same operations in the same order, each rounded.
func (c *laneCompiler) fused(e *Binary) (laneValue, bool) {
	switch e.Op {
	case Add, Sub:
		x, product := e.X, e.Y
		s, v, ok := c.scaled(product, Mul)
		if !ok && e.Op == Add { // a sum does not know its sides apart
			x, product = e.Y, e.X
			s, v, ok = c.scaled(product, Mul)
		}
		if !ok || c.known(x) {
			return laneValue{}, false
		}
		op := laneOp{code: laneAddMul, s: c.uniform(c.plain(s))}
		if e.Op == Sub {
			op.code = laneSubMul
		} else if k, inner, ok := c.scaled(v, Add); ok {
			op.code, op.k, v = laneAddMulAdd, c.uniform(c.plain(k)), inner
		}
		op.a = c.vector(c.expr(x))
		op.b = c.vector(c.expr(v))
		c.dropVector(op.a)
		c.dropVector(op.b)
		return c.emitVector(op), true
	case Mul:
		s, v, ok := c.scaled(e, Mul)
		if !ok {
			return laneValue{}, false
		}
		k, inner, ok := c.scaled(v, Add)
		if !ok {
			return laneValue{}, false
		}
		op := laneOp{code: laneMulAdd, s: c.uniform(c.plain(s)), k: c.uniform(c.plain(k)), b: c.vector(c.expr(inner))}
		c.dropVector(op.b)
		return c.emitVector(op), true
	}
	return laneValue{}, false
}

// scaled takes an operation apart that has a uniform value, at a glance, on one of its sides only.
func (c *laneCompiler) scaled(e Expr, op Op) (s, v Expr, ok bool) {
	b, ok := e.(*Binary)
	switch {
	case !ok || b.Op != op || c.known(b.X) == c.known(b.Y):
		return nil, nil, false
	case c.known(b.X):
		return b.X, b.Y, true
	}
	return b.Y, b.X, true
}

// known says whether an expression is uniform, at a glance.
func (c *laneCompiler) known(e Expr) bool {
	switch e := e.(type) {
	case *Const, *Time, *Other, *ActiveOf:
		return true
	case *Local:
		return c.lets[e.Let].kind == uniformValue
	}
	return false
}

// plain is an expression that is known to be uniform, as uniform takes it.
func (c *laneCompiler) plain(e Expr) Expr {
	if l, ok := e.(*Local); ok {
		return c.lets[l.Let].expr
	}
	return e
}
