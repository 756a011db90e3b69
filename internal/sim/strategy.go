package sim

import "math/rand/v2"

// Strategy makes the decisions of a run.
type Strategy interface {
	// Next says whose turn it is, as an index into ids, the actors that can run in the order of their
	// birth. Current is the index of the one that has run last, -1 if that one waits or has ended.
	Next(ids []int, current int) int
	// Choose draws a number below n, n at least 1.
	Choose(n int) int
}

// Random draws every decision. One in stay of the decisions takes the turn from who could go on; with 1,
// each of those that can run is as likely as any other.
type Random struct {
	rng  *rand.Rand
	stay int
}

// NewRandom makes one from a seed.
//
// Concurrency: one run at a time. Allocates: the strategy.
func NewRandom(seed uint64, stay int) *Random {
	return &Random{rand.New(rand.NewPCG(seed, 1)), max(stay, 1)}
}

// Next draws who runs.
func (r *Random) Next(ids []int, current int) int {
	if current >= 0 && r.stay > 1 && r.rng.IntN(r.stay) != 0 {
		return current
	}
	return r.rng.IntN(len(ids))
}

// Choose draws a number.
func (r *Random) Choose(n int) int { return r.rng.IntN(n) }

// Priorities gives each actor a priority at random and always runs the highest that can run. At some
// steps, drawn beforehand, who runs falls below all others. A bug that needs d such changes among n actors
// and k steps is met with a probability of at least 1/(n·k^(d-1)), which random decisions are far from.
//
// A run may be longer than the horizon: then as many steps are drawn for each stretch of that length, so
// that nobody is kept from running for ever.
type Priorities struct {
	rng     *rand.Rand
	horizon int
	changes []int // of this stretch
	step    int
	lowest  int
	rank    []int // by actor; 0: not drawn yet
}

// NewPriorities makes one from a seed, with so many changes in horizon steps; at least one.
//
// Concurrency: one run at a time. Allocates: the strategy.
func NewPriorities(seed uint64, changes, horizon int) *Priorities {
	horizon = max(horizon, 1)
	p := &Priorities{rng: rand.New(rand.NewPCG(seed, 2)), horizon: horizon, changes: make([]int, max(changes, 1))}
	p.draw()
	return p
}

func (p *Priorities) draw() {
	for i := range p.changes {
		p.changes[i] = p.rng.IntN(p.horizon)
	}
}

// Next is the highest, after the change that may be due.
func (p *Priorities) Next(ids []int, current int) int {
	for _, at := range p.changes {
		if at == p.step && current >= 0 {
			p.lowest--
			p.rank[ids[current]] = p.lowest
		}
	}
	if p.step++; p.step == p.horizon {
		p.step = 0
		p.draw()
	}
	best, highest := 0, 0
	for i, id := range ids {
		if id >= len(p.rank) {
			p.rank = append(p.rank, make([]int, id+1-len(p.rank))...)
		}
		rank := p.rank[id]
		if rank == 0 {
			rank = 1 + p.rng.IntN(1<<30)
			p.rank[id] = rank
		}
		if i == 0 || rank > highest {
			best, highest = i, rank
		}
	}
	return best
}

// Choose draws a number.
func (p *Priorities) Choose(n int) int { return p.rng.IntN(n) }

// BySeed is a strategy that a seed chooses: a third of them draw every decision, a third stay with who runs
// for a while, and a third have priorities.
//
// Concurrency: one run at a time. Allocates: the strategy.
func BySeed(seed uint64) Strategy {
	rng := rand.New(rand.NewPCG(seed, 3))
	switch rng.IntN(3) {
	case 0:
		return NewRandom(seed, 1)
	case 1:
		return NewRandom(seed, 2<<rng.IntN(5))
	}
	return NewPriorities(seed, 1+rng.IntN(3), 16<<rng.IntN(5))
}
