package declare

// The syntax tree: what a file says, in its own words. The checker turns it into a Program.

// nodeKind is what a node of an expression is.
type nodeKind uint8

const (
	nodeBad    nodeKind = iota // its fault is reported
	nodeNumber                 // number
	nodeName                   // name: a slot, let, parameter or word
	nodeState                  // state.name
	nodeOther                  // @ref.name
	nodeActive                 // active(ref)
	nodeUnary                  // op, args
	nodeBinary                 // op, args
	nodeCall                   // name, args
)

// node is an expression.
type node struct {
	kind   nodeKind
	op     Op
	pos    Pos
	name   string
	number float64
	ref    ref
	args   []*node
}

// ref is a name that stands for an entity, or with a number for a slot of a pool.
type ref struct {
	name string
	slot int // -1 for none
	pos  Pos
}

// field is name = expr, or let name = expr.
type field struct {
	name string
	pos  Pos
	expr *node
}

// attribute is a presentation attribute; a value without an expression is a text.
type attribute struct {
	name   string
	pos    Pos
	values []attributeValue
}

type attributeValue struct {
	text string
	expr *node
}

// group is an entity or a pool.
type group struct {
	pool       bool
	name       string
	pos        Pos
	count      *node // of a pool
	slots      []*field
	state      Pos // zero without one
	attributes []*attribute
	broken     bool // there are faults in it: what seems to be missing may be there
}

// assign is a rule of an update.
type assign struct {
	name string // of a slot, as it is written
	pos  Pos
	expr *node
}

// system is one system. Keys that are missing are nil, or have no name.
type system struct {
	kind     SystemKind
	pos      Pos
	on, pool ref
	keys     map[string]*field // count, every, phase, dt, when, active
	lets     []*field
	assigns  []*assign
	broken   bool
}

// file is a whole source.
type file struct {
	world      Pos // zero without one
	systemsPos Pos
	end        Pos // of the source
	title      string
	titlePos   Pos
	params     []*field
	attributes []*attribute
	groups     []*group
	systems    []*system

	paramsBroken, groupsBroken bool // some have no name, so that an unknown one may be theirs
}
