package declare

import "math"

// Op is an operation of Unary and Binary.
type Op uint8

// The operations. What each of them gives, to the bit, is written at unary and binary and in the
// package documentation.
const (
	Neg Op = iota + 1
	Not
	Abs
	Sqrt
	Floor
	Sign

	Add
	Sub
	Mul
	Div
	Mod
	Min
	Max
	Eq
	Ne
	Lt
	Le
	Gt
	Ge
	And
	Or
)

var opNames = [...]string{
	Neg: "-", Not: "not", Abs: "abs", Sqrt: "sqrt", Floor: "floor", Sign: "sign",
	Add: "+", Sub: "-", Mul: "*", Div: "/", Mod: "%", Min: "min", Max: "max",
	Eq: "==", Ne: "!=", Lt: "<", Le: "<=", Gt: ">", Ge: ">=", And: "and", Or: "or",
}

// String is the operation as it is written in a source.
func (op Op) String() string {
	if int(op) < len(opNames) && opNames[op] != "" {
		return opNames[op]
	}
	return "op"
}

// The functions below are the arithmetic of the language. Whatever computes a value of a declared
// world calls them, or does the same operations in the same order. Each operation is rounded on its
// own: a product is converted, so that no compiler fuses it with the sum that it goes into.

// truth is the number of a condition.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// isTrue is the condition of a number: all but 0 and -0 is true, NaN too, so that of x and not x
// always exactly one is.
func isTrue(x float64) bool { return x != 0 }

// isFinite reports whether an assignment stores x.
func isFinite(x float64) bool { return x-x == 0 }

func mul(x, y float64) float64 { return float64(x * y) }

// div is 0 where y is 0 or -0, whatever x is.
func div(x, y float64) float64 {
	if y == 0 {
		return 0
	}
	return x / y
}

// mod is x - floor(x/y)*y, each operation rounded: it has the sign of y, but for rounding. It is 0 where y is 0
// or -0. The remainder that math.Mod gives would be exact, but takes time in proportion to the exponents.
func mod(x, y float64) float64 {
	if y == 0 {
		return 0
	}
	return x - float64(math.Floor(x/y)*y)
}

// sign is 0 for 0, -0 and NaN.
func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

func unary(op Op, x float64) float64 {
	switch op {
	case Neg:
		return -x
	case Not:
		return truth(!isTrue(x))
	case Abs:
		return math.Abs(x)
	case Sqrt:
		return math.Sqrt(x) // NaN below 0
	case Floor:
		return math.Floor(x)
	case Sign:
		return sign(x)
	}
	return 0
}

// binary computes Min and Max as the built-in functions of Go do: NaN if x or y is, and -0 is less than 0.
func binary(op Op, x, y float64) float64 {
	switch op {
	case Add:
		return x + y
	case Sub:
		return x - y
	case Mul:
		return mul(x, y)
	case Div:
		return div(x, y)
	case Mod:
		return mod(x, y)
	case Min:
		return min(x, y)
	case Max:
		return max(x, y)
	case Eq:
		return truth(x == y)
	case Ne:
		return truth(x != y)
	case Lt:
		return truth(x < y)
	case Le:
		return truth(x <= y)
	case Gt:
		return truth(x > y)
	case Ge:
		return truth(x >= y)
	case And:
		return truth(isTrue(x) && isTrue(y))
	case Or:
		return truth(isTrue(x) || isTrue(y))
	}
	return 0
}

// Eval is the number that the value is for an entity with this state; 0 for a text.
//
// Concurrency: any goroutine. Allocates: no.
func (v *AttributeValue) Eval(state []float64) float64 {
	if v.Expr == nil {
		return 0
	}
	return evalOwn(v.Expr, state)
}

// evalOwn computes an expression of constants and of the slots of one entity.
func evalOwn(e Expr, state []float64) float64 {
	switch e := e.(type) {
	case *Const:
		return e.Value
	case *Own:
		if e.Slot < len(state) {
			return state[e.Slot]
		}
	case *Unary:
		return unary(e.Op, evalOwn(e.X, state))
	case *Binary:
		return binary(e.Op, evalOwn(e.X, state), evalOwn(e.Y, state))
	case *If:
		if isTrue(evalOwn(e.Cond, state)) {
			return evalOwn(e.Then, state)
		}
		return evalOwn(e.Else, state)
	}
	return 0
}
