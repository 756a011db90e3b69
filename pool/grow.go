package pool

import (
	"fmt"
	"math"
	"strconv"

	"github.com/airlock-ecs/airlock/internal/planted"
)

// growFirst is what Double makes of a capacity of 0.
const growFirst = 8

// Grow says what a pool does when everything in it is in use. The zero value is Double. It is
// opaque and may be compared.
type Grow struct {
	kind growKind
	step int // of Additive; 0 for the others, so that equal policies are equal values
}

type growKind uint8

const (
	growDouble growKind = iota // the zero value
	growFixed
	growAdditive
)

// Fixed never grows: what does not fit is refused, and counted.
//
// Concurrency: any goroutine. Allocates: no.
func Fixed() Grow { return Grow{kind: growFixed} }

// Additive grows by n at a time. With n below 1 it is an error wherever a pool is made of it.
//
// Concurrency: any goroutine. Allocates: no.
func Additive(n int) Grow { return Grow{kind: growAdditive, step: n} }

// Double grows to twice the capacity; a capacity of 0 grows to 8.
//
// Concurrency: any goroutine. Allocates: no.
func Double() Grow { return Grow{} }

// String writes the policy as a pool file does: Fixed, Additive(16), Double.
//
// Concurrency: any goroutine. Allocates: for Additive.
func (g Grow) String() string {
	switch g.kind {
	case growFixed:
		return "Fixed"
	case growAdditive:
		return "Additive(" + strconv.Itoa(g.step) + ")"
	default:
		return "Double"
	}
}

// Short writes the policy as a table does: fix, +16, ×2.
//
// Concurrency: any goroutine. Allocates: for Additive.
func (g Grow) Short() string {
	switch g.kind {
	case growFixed:
		return "fix"
	case growAdditive:
		return fmt.Sprintf("%+d", g.step)
	default:
		return "×2"
	}
}

// check refuses a policy that would not grow although its name says so.
func (g Grow) check() error {
	if g.kind == growAdditive && g.step < 1 {
		return fmt.Errorf("pool: grow %v: the step must be at least 1", g)
	}
	return nil
}

// next is what a pool of this capacity grows to, at most limit, where 0 is no limit. It is
// capacity itself when the pool may not grow, and never wraps around.
func (g Grow) next(capacity, limit int) int {
	if limit <= 0 {
		limit = math.MaxInt
	}
	if capacity >= limit {
		return capacity
	}
	step := capacity
	switch {
	case g.kind == growFixed:
		return capacity
	case g.kind == growAdditive:
		step = max(g.step, 0)
	case capacity == 0:
		step = growFirst
	}
	if planted.Enabled && planted.Is(planted.PoolGrowsPastMax) {
		return capacity + step
	}
	return capacity + min(step, limit-capacity)
}
