package declare

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Limits of a source. Each is named by the error of whoever goes over it.
const (
	MaxSource   = 1 << 20 // bytes of a file
	MaxNesting  = 64      // brackets, blocks and prefix operators inside each other
	MaxNodes    = 1 << 16 // operands and operators of all expressions of a file
	MaxName     = 128     // bytes of a name
	MaxText     = 1024    // bytes of a quoted text
	MaxParams   = 256     // parameters of a world
	MaxState    = 64      // state slots of an entity, or of each slot of a pool
	MaxRules    = 1024    // lets and assignments of a system, each
	MaxPool     = 1 << 20 // slots of a pool
	MaxEntities = 1 << 24 // entities and slots of pools together
	MaxCells    = 1 << 26 // state slots of all of them together
	MaxSteps    = 1 << 31 // count, every and phase of a spawn stay below it
	MaxErrors   = 20      // errors told of one file
)

// DefaultDt is the dt of an update that does not say one.
const DefaultDt = 1.0 / 60

// Pos is a place in a source: line and column from 1, the column in characters. The zero Pos is
// the file as a whole.
type Pos struct{ Line, Column int }

// Program is a declared world that was read, checked and bound to its parameters: names are
// indices, constants are numbers, and what runs it needs no further check. It is plain data;
// whoever shares it does not write it any more.
//
// Invariant: Groups lists the entities in the order of their declarations, then the pools. Their
// ids follow each other without a gap from 1.
type Program struct {
	File       string // as it was passed to Load
	Title      string
	Dt         float64 // of the world's clock: the dt of the first update, DefaultDt without one
	Params     []Param
	Attributes []Attribute // of the world
	Groups     []Group
	Systems    []System // in the order in which they run
}

// Param is a parameter with the value it is bound to.
type Param struct {
	Name  string
	Value float64 // finite
	Pos   Pos
}

// Group is the entities of one declaration. An ordinary entity is a group of one that starts
// active; a pool is Count slots that start inactive.
type Group struct {
	Name       string
	Pool       bool
	First      uint32 // id of the entity, or of slot 0
	Count      int    // 1 for an entity, from 1 to MaxPool for a pool
	Slots      []Slot // state slots; their number is the arity
	Attributes []Attribute
	Pos        Pos
}

// Slot is one number of the state.
type Slot struct {
	Name string
	Init float64 // finite
	Pos  Pos
}

// Attribute is for presentation alone: no system can read or write it.
type Attribute struct {
	Name   string // position, color, size, shape, label, gravity or hidden
	Values []AttributeValue
	Pos    Pos
}

// AttributeValue is a text, or an expression of the state of the entity it is for: Expr is nil for a
// text.
type AttributeValue struct {
	Text string
	Expr Expr // Const, Own, Unary, Binary and If only
}

// SystemKind says which of the fields of a System mean something.
type SystemKind uint8

// The kinds of systems.
const (
	Spawn   SystemKind = iota + 1 // On, Pool, Count, Every, Phase
	Update                        // On, Dt, Lets, Assigns, Active
	Despawn                       // On, Lets, When
)

// String is the word of the language.
func (k SystemKind) String() string {
	switch k {
	case Spawn:
		return "spawn"
	case Update:
		return "update"
	case Despawn:
		return "despawn"
	}
	return "system"
}

// System is one system. Package documentation says how each kind runs.
type System struct {
	Kind SystemKind
	On   int // index in Groups: the callers of a spawn, otherwise the group it runs on
	Pos  Pos

	Pool  int    // of a spawn: index in Groups, always of a pool
	Count int    // slots a caller spawns at most in a step
	Every uint64 // steps from one run to the next, at least 1
	Phase uint64 // first step

	Dt      float64  // finite, not negative
	Lets    []Let    // in the order in which they are to be computed
	Assigns []Assign // in the order of the source; no slot twice
	Active  Expr     // what is assigned to active; nil for nothing

	When Expr // condition of a despawn
}

// Let is a value that a system computes once for each slot and names. A let refers to the state at the start
// of the system and to the lets before it.
type Let struct {
	Name string
	Expr Expr
	Pos  Pos
}

// Assign gives a state slot of the group a new value.
type Assign struct {
	Slot int // index in the Slots of the group
	Expr Expr
	Pos  Pos
}

// Expr is a checked expression: one of Const, Time, Own, Other, ActiveOf, Local, Unary, Binary, If,
// and no other. It has no effects and always has a value. Subexpressions of constants are folded. A tree is at most a few hundred levels deep to the right,
// for that takes brackets, but a long sum goes down MaxNodes/2 levels to the left.
type Expr interface {
	// At is where the expression stands: its operator, or its first token.
	// Concurrency: any goroutine. Allocates: no.
	At() Pos
}

type (
	// Const is a number, also one that is not finite: a parameter, pi, dt, true, false, a folded expression.
	Const struct {
		Value float64
		Pos   Pos
	}

	// Time is t, as Program.Time gives it for the step.
	Time struct{ Pos Pos }

	// Own is a state slot of the entity that the system runs on.
	Own struct {
		Slot int
		Pos  Pos
	}

	// Other is a state slot of one certain entity, active or not.
	Other struct {
		ID   uint32
		Slot int
		Pos  Pos
	}

	// ActiveOf is 1 if one certain entity is active, otherwise 0.
	ActiveOf struct {
		ID  uint32
		Pos Pos
	}

	// Local is a let of the same system, by its index.
	Local struct {
		Let int
		Pos Pos
	}

	// Unary is an operation on one value: Neg, Not, Abs, Sqrt, Floor, Sign.
	Unary struct {
		Op  Op
		X   Expr
		Pos Pos
	}

	// Binary is an operation on two values: all the others.
	Binary struct {
		Op   Op
		X, Y Expr
		Pos  Pos
	}

	// If is Then where Cond is true and Else where it is not.
	If struct {
		Cond, Then, Else Expr
		Pos              Pos
	}
)

// At is where it stands.
// Concurrency: any goroutine. Allocates: no.
func (e *Const) At() Pos { return e.Pos }

// At is where it stands.
// Concurrency: any goroutine. Allocates: no.
func (e *Time) At() Pos { return e.Pos }

// At is where it stands.
// Concurrency: any goroutine. Allocates: no.
func (e *Own) At() Pos { return e.Pos }

// At is where it stands.
// Concurrency: any goroutine. Allocates: no.
func (e *Other) At() Pos { return e.Pos }

// At is where it stands.
// Concurrency: any goroutine. Allocates: no.
func (e *ActiveOf) At() Pos { return e.Pos }

// At is where it stands.
// Concurrency: any goroutine. Allocates: no.
func (e *Local) At() Pos { return e.Pos }

// At is where it stands.
// Concurrency: any goroutine. Allocates: no.
func (e *Unary) At() Pos { return e.Pos }

// At is where it stands.
// Concurrency: any goroutine. Allocates: no.
func (e *Binary) At() Pos { return e.Pos }

// At is where it stands.
// Concurrency: any goroutine. Allocates: no.
func (e *If) At() Pos { return e.Pos }

// Due reports whether a spawn runs in a step, the first of which is step 0. The other kinds run in each.
//
// Concurrency: any goroutine. Allocates: no.
func (s *System) Due(step uint64) bool {
	return s.Kind != Spawn || step >= s.Phase && (step-s.Phase)%s.Every == 0
}

// Time is t in a step, and the time that has passed when so many steps are done.
//
// Concurrency: any goroutine. Allocates: no.
func (p *Program) Time(step uint64) float64 { return mul(float64(step), p.Dt) }

// Len is the number of ids: they go from 1 to Len.
//
// Concurrency: any goroutine. Allocates: no.
func (p *Program) Len() int {
	if len(p.Groups) == 0 {
		return 0
	}
	last := &p.Groups[len(p.Groups)-1]
	return int(last.First) - 1 + last.Count
}

// GroupOf finds the group of an id, and which of its slots the id is.
//
// Concurrency: any goroutine. Allocates: no.
func (p *Program) GroupOf(id uint32) (group, slot int, ok bool) {
	group, found := slices.BinarySearchFunc(p.Groups, id, func(g Group, id uint32) int { return cmp.Compare(g.First, id) })
	if !found {
		group--
	}
	if group < 0 || int(id-p.Groups[group].First) >= p.Groups[group].Count {
		return 0, 0, false
	}
	return group, int(id - p.Groups[group].First), true
}

// Name is what an id is called: an entity by its name, a slot of a pool as in p#0.
//
// Concurrency: any goroutine. Allocates: yes, for slots of pools.
func (p *Program) Name(id uint32) string {
	group, slot, ok := p.GroupOf(id)
	switch {
	case !ok:
		return "?#" + strconv.FormatUint(uint64(id), 10)
	case p.Groups[group].Pool:
		return p.Groups[group].Name + "#" + strconv.Itoa(slot)
	}
	return p.Groups[group].Name
}

// ID is the id that Name calls so; false if there is none.
//
// Concurrency: any goroutine. Allocates: no.
func (p *Program) ID(name string) (uint32, bool) {
	name, number, numbered := strings.Cut(name, "#")
	for i := range p.Groups {
		g := &p.Groups[i]
		if g.Name != name || g.Pool != numbered {
			continue
		}
		slot := 0
		if numbered {
			n, err := strconv.ParseUint(number, 10, 32)
			if err != nil || n >= uint64(g.Count) || strconv.FormatUint(n, 10) != number {
				return 0, false
			}
			slot = int(n)
		}
		return g.First + uint32(slot), true
	}
	return 0, false
}
