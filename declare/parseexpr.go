package declare

import "strconv"

// How strongly operators bind, from 1.
const (
	bindOr = iota + 1
	bindAnd
	bindNot
	bindCompare
	bindSum
	bindProduct
	bindNegate
)

// infixes are the operators between two operands.
var infixes = map[string]struct {
	op   Op
	bind int
}{
	"or": {Or, bindOr}, "and": {And, bindAnd},
	"==": {Eq, bindCompare}, "!=": {Ne, bindCompare}, "<": {Lt, bindCompare},
	"<=": {Le, bindCompare}, ">": {Gt, bindCompare}, ">=": {Ge, bindCompare},
	"+": {Add, bindSum}, "-": {Sub, bindSum},
	"*": {Mul, bindProduct}, "/": {Div, bindProduct}, "%": {Mod, bindProduct},
}

// functions are the names that take arguments, and how many.
var functions = map[string]int{
	"if": 3, "inte": 1, "min": 2, "max": 2, "abs": 1, "sqrt": 1, "floor": 1, "sign": 1, "clamp": 3,
}

// node counts and returns a new node.
func (p *parser) node(n node) *node {
	if p.nodes++; p.nodes > MaxNodes && !p.failed {
		p.failf(n.pos, "expressions of over %d numbers, names and operators in one file", MaxNodes)
		p.at, p.lost = len(p.tokens)-1, true // the rest of the file would not get any shorter
	}
	if p.failed {
		return &node{} // what there is of it would only lead to more faults
	}
	return &n
}

// expr reads an expression. After a fault it is a node all the same, bad or not.
func (p *parser) expr() *node {
	n := p.infix(bindOr)
	if p.is("=") {
		p.failf(p.token().pos(), "an expression ends before this =; write == to compare, or the name of what is assigned")
		return &node{}
	}
	return n
}

// infix reads an expression of operators that bind at least so strongly: Pratt's way, in which an operand is read, and then
// each operator that may take it as its left side.
func (p *parser) infix(bind int) *node {
	left := p.prefix()
	compared := false
	for !p.failed && (p.token().kind == tokMark || p.token().kind == tokName) {
		in, ok := infixes[p.text()]
		if !ok || in.bind < bind {
			break
		}
		at := p.token().pos()
		if in.bind == bindCompare && compared {
			p.failf(at, "comparisons do not chain; write a < b and b < c")
			break
		}
		compared = in.bind == bindCompare
		p.next()
		right := p.infix(in.bind + 1)
		left = p.node(node{kind: nodeBinary, op: in.op, pos: at, args: []*node{left, right}})
	}
	return left
}

// prefix reads an operand with the operators before it.
func (p *parser) prefix() *node {
	at := p.token().pos()
	op, bind := Op(0), 0
	switch {
	case p.is("-"):
		op, bind = Neg, bindNegate
		p.tokens[p.at].role |= rolePrefix
	case !p.failed && p.token().kind == tokName && p.text() == "not":
		op, bind = Not, bindCompare
	default:
		return p.operand()
	}
	p.deeper()
	defer func() { p.depth-- }()
	if p.failed {
		return &node{}
	}
	p.next()
	return p.node(node{kind: nodeUnary, op: op, pos: at, args: []*node{p.infix(bind)}})
}

func (p *parser) operand() *node {
	if p.failed {
		return &node{}
	}
	t := p.token()
	switch {
	case t.kind == tokNumber:
		number, _ := strconv.ParseFloat(p.text(), 64) // the lexer has seen that it is one
		p.next()
		return p.node(node{kind: nodeNumber, number: number, pos: t.pos()})
	case t.kind == tokName:
		return p.named()
	case p.is("@"):
		p.next()
		n := node{kind: nodeOther, pos: t.pos(), ref: p.ref()}
		p.expect(".", "and a state slot")
		n.name, _ = p.name("the name of a state slot")
		return p.node(n)
	case p.is("("):
		p.deeper()
		p.round++
		defer func() { p.depth, p.round = p.depth-1, p.round-1 }()
		if p.failed {
			return &node{}
		}
		p.next()
		n := p.expr()
		p.expect(")", "to close the bracket")
		return n
	}
	p.unexpected("a number, a name or a bracket")
	return &node{}
}

// named reads an operand that starts with a name.
func (p *parser) named() *node {
	if _, infix := infixes[p.text()]; infix || p.text() == "let" {
		p.unexpected("a number, a name or a bracket")
		return &node{}
	}
	name, at := p.name("")
	switch {
	case name == "state":
		n := node{kind: nodeState, pos: at}
		p.expect(".", "after state")
		n.name, _ = p.name("the name of a state slot")
		return p.node(n)
	case p.token().kind == tokSlot:
		p.failf(at, "%s%s is not a number; write @%s%s.NAME for its state", name, shown([]byte(p.text())), name, shown([]byte(p.text())))
		return &node{}
	case !p.is("("):
		return p.node(node{kind: nodeName, name: name, pos: at})
	}
	p.tokens[p.at].role |= roleCall
	p.deeper()
	p.round++
	defer func() { p.depth, p.round = p.depth-1, p.round-1 }()
	if p.failed {
		return &node{}
	}
	p.next()
	n := node{kind: nodeCall, name: name, pos: at}
	if name == "active" {
		n.kind = nodeActive
		p.accept("@")
		n.ref = p.ref()
		p.expect(")", "after the entity")
		return p.node(n)
	}
	for !p.failed && !p.accept(")") {
		n.args = append(n.args, p.expr())
		if !p.is(")") {
			p.expect(",", "or ) after an argument")
		}
	}
	return p.node(n)
}

// ref reads the name of an entity, or of a slot of a pool.
func (p *parser) ref() ref {
	r := ref{slot: -1}
	r.name, r.pos = p.name("the name of an entity, or a slot of a pool such as p#0")
	if p.failed || p.token().kind != tokSlot {
		return r
	}
	n, err := strconv.ParseUint(p.text()[1:], 10, 31)
	if err != nil {
		n = MaxPool // as much out of range as any
	}
	r.slot = int(n)
	p.next()
	return r
}
