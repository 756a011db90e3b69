package sim

// Explorer goes through all schedules of a program that have at most so many preemptions: decisions that
// take the turn from an actor that could have gone on. Who follows on one that waits or has ended is
// free, and so is what Choose draws; each of that is tried.
//
// It knows nothing of a state: each schedule is run from the beginning.
//
//	for x := sim.NewExplorer(2); ; {
//		run(sim.New(x, 1000))
//		if !x.More() { break }
//	}
type Explorer struct {
	preemptions int
	path        []choice // the decisions of this run; the first len are given
	depth       int
	spent       int
	runs        int
	astray      bool
}

type choice struct{ taken, options int }

// NewExplorer makes one that stands before the first schedule.
//
// Concurrency: one run at a time. Allocates: the strategy.
func NewExplorer(preemptions int) *Explorer { return &Explorer{preemptions: preemptions} }

// Next says whose turn it is. Going on without a preemption is what is tried first.
func (x *Explorer) Next(ids []int, current int) int {
	if current < 0 {
		return x.Choose(len(ids))
	}
	options := 1
	if x.spent < x.preemptions {
		options = len(ids)
	}
	switch taken := x.Choose(options); {
	case taken == 0:
		return current
	case taken <= current:
		x.spent++
		return taken - 1
	default:
		x.spent++
		return taken
	}
}

// Choose takes the options one after the other.
func (x *Explorer) Choose(n int) int {
	if n == 1 { // nothing to decide, and nothing to remember
		return 0
	}
	if x.depth == len(x.path) {
		x.path = append(x.path, choice{0, n})
	}
	c := x.path[x.depth]
	x.depth++
	if c.options != n { // the program did something else than the last time
		x.astray = true
		return 0
	}
	return c.taken
}

// More moves on to the next schedule, after a run; false when there is none.
//
// Concurrency: one goroutine, between runs. Allocates: no.
func (x *Explorer) More() bool {
	x.runs++
	x.astray = x.astray || x.depth < len(x.path)
	x.depth, x.spent = 0, 0
	for len(x.path) > 0 {
		last := &x.path[len(x.path)-1]
		if last.taken++; last.taken < last.options {
			return true
		}
		x.path = x.path[:len(x.path)-1]
	}
	return false
}

// Runs is how many schedules there were.
//
// Concurrency: as More. Allocates: no.
func (x *Explorer) Runs() int { return x.runs }

// Astray says that a run did not do the same as another one up to the decision in which they differ: the
// program depends on more than the decisions, and not every schedule was tried.
//
// Concurrency: as More. Allocates: no.
func (x *Explorer) Astray() bool { return x.astray }
