package contest

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"
)

// Options say how long to measure.
type Options struct {
	Passes int           // rounds in which every side has a pass
	Least  time.Duration // shortest pass of the fastest side: short work is repeated so often
	Budget time.Duration // for one row, set-up not counted: fewer rounds if they take longer, but not below five
}

// Figure is what a side cost.
type Figure struct {
	Name  string
	Cost  float64 // of one operation, in the workload's unit
	Ratio float64 // ours to it, median over the rounds
}

// Row is what one workload came to at one size.
type Row struct {
	Workload string
	Unit     string
	Size     int
	Ours     float64 // of one operation
	Peer     *Figure // the best one; nil without peers
	Raw      *Figure // nil without one
	Allocs   float64 // of ours, per operation; NaN if they were not counted
	Spread   float64 // quartile distance of the ratios that count, over their median
	Passes   int
	Target   Target
}

// noisy is the spread from which on a ratio is not to be relied on.
const noisy = 0.15

// fewest is how many rounds there are, whatever they take.
const fewest = 5

// ErrDiffers says that the sides of a contest did not do the same work.
var ErrDiffers = errors.New("contest: different work")

// Noisy reports whether the ratios differed too much from round to round.
func (r *Row) Noisy() bool { return r.Spread > noisy }

// Bound reports whether there is a target.
func (r *Row) Bound() bool { return r.Target.Peer > 0 || r.Target.Raw > 0 || r.Target.Value > 0 }

// Met reports whether the figures reach the target; Noisy says what that is worth.
func (r *Row) Met() bool {
	return (r.Target.Peer == 0 || r.Peer != nil && r.Peer.Ratio <= r.Target.Peer) &&
		(r.Target.Raw == 0 || r.Raw != nil && r.Raw.Ratio <= r.Target.Raw) &&
		(r.Target.Value == 0 || r.Ours <= r.Target.Value)
}

// Measure opens a workload's contest at a size and runs it.
//
// Errors: ErrDiffers; what a side has failed with.
func Measure(w *Workload, n int, o Options) (*Row, error) {
	runtime.GC() // of the contest before
	c := w.Open(n)
	if c.Close != nil {
		defer c.Close()
	}
	if c.Err != nil {
		return nil, fmt.Errorf("%s at %d: %w", w.Name, n, c.Err)
	}
	row, err := c.measure(w, n, o)
	if err != nil {
		return nil, fmt.Errorf("%s at %d: %w", w.Name, n, err)
	}
	return row, nil
}

// sides are all sides: ours, the peers, and the raw limit if there is one.
func (c *Contest) sides() []*Side {
	all := []*Side{&c.Ours}
	for i := range c.Peers {
		all = append(all, &c.Peers[i])
	}
	if c.Raw != nil {
		all = append(all, c.Raw)
	}
	return all
}

// measure warms up, finds out how often to repeat, counts allocations, and runs the rounds.
func (c *Contest) measure(w *Workload, n int, o Options) (*Row, error) {
	r := &rounds{sides: c.sides(), ops: c.Ops, collect: w.Collect, reps: 1}
	if _, err := r.run(false); err != nil {
		return nil, err
	}
	once, err := r.run(false)
	if err != nil {
		return nil, err
	}
	if w.Unit == "" {
		// The fastest decides, but nobody is to take longer than thirty times that.
		least, most := slices.Min(once), slices.Max(once)
		r.reps = int(max(1, min(math.Ceil(float64(o.Least)/max(least, 1)), 30*float64(o.Least)/max(most, 1))))
	}
	begin := time.Now()
	if _, err := r.run(false); err != nil {
		return nil, err
	}
	passes := o.Passes
	if took := time.Since(begin); took > 0 && o.Budget > 0 {
		passes = min(passes, max(fewest, int(o.Budget/took)))
	}
	counted, err := r.run(true)
	if err != nil {
		return nil, err
	}
	costs := make([][]float64, len(r.sides))
	for range passes {
		took, err := r.run(false)
		if err != nil {
			return nil, err
		}
		for i, side := range r.sides {
			costs[i] = append(costs[i], took[i]/float64(r.reps*side.operations(c.Ops)))
		}
	}
	row := &Row{
		Workload: w.Name, Unit: w.Unit, Size: n, Passes: passes, Target: w.Target.At(n),
		Ours: median(costs[0]), Allocs: counted[0] / float64(r.reps*c.Ours.operations(c.Ops)),
	}
	if row.Unit == "" {
		row.Unit = "ns"
	}
	row.compare(r.sides, costs, c.Raw)
	return row, nil
}

// compare fills in the ratios of the first side to the others, and their spread.
func (r *Row) compare(sides []*Side, costs [][]float64, raw *Side) {
	var peers, raws []float64
	for i, side := range sides[1:] {
		ratios := quotients(costs[0], costs[i+1])
		f := &Figure{Name: side.Name, Cost: median(costs[i+1]), Ratio: median(ratios)}
		switch {
		case side == raw:
			r.Raw, raws = f, ratios
		case r.Peer == nil || f.Cost < r.Peer.Cost:
			r.Peer, peers = f, ratios
		}
	}
	toPeer, toRaw := r.Peer != nil, r.Raw != nil
	if r.Target.Peer > 0 || r.Target.Raw > 0 {
		toPeer, toRaw = toPeer && r.Target.Peer > 0, toRaw && r.Target.Raw > 0
	} else if toPeer {
		toRaw = false
	}
	if toPeer {
		r.Spread = spread(peers)
	}
	if toRaw {
		r.Spread = max(r.Spread, spread(raws))
	}
}

// operations is the number of operations in one repetition.
func (s *Side) operations(ofContest int) int {
	if s.Ops > 0 {
		return s.Ops
	}
	return max(1, ofContest)
}

// rounds are the turns that the sides take.
type rounds struct {
	sides   []*Side
	ops     int
	collect bool
	reps    int
	count   int
}

// run has every side do its work once, every other time in reverse order, and compares what they
// say they did. It gives what each took, or what each allocated.
func (r *rounds) run(counting bool) ([]float64, error) {
	took := make([]float64, len(r.sides))
	for k := range r.sides {
		i := k
		if r.count%2 == 1 {
			i = len(r.sides) - 1 - k
		}
		if r.collect {
			runtime.GC()
		}
		t := Timer{counting: counting}
		r.sides[i].Run(&t, r.reps)
		if t.Err != nil {
			return nil, fmt.Errorf("%s: %w", r.sides[i].Name, t.Err)
		}
		took[i] = t.total
		if counting {
			took[i] = t.allocations()
		}
	}
	r.count++
	want := r.sides[0].Sum()
	for _, side := range r.sides[1:] {
		if got := side.Sum(); got != want {
			return nil, fmt.Errorf("%w: %s has the checksum %d, %s has %d", ErrDiffers, r.sides[0].Name, want, side.Name, got)
		}
	}
	return took, nil
}
