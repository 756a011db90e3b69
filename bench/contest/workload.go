package contest

// Workload is a kind of work that can be measured at several sizes.
type Workload struct {
	Name    string
	Unit    string               // of the figures; "" means ns
	Sizes   []int                // to measure at, ascending
	Bytes   func(n int) int64    // what a contest at that size takes at most; nil: next to nothing
	Target  Target               // what ours is to reach
	Collect bool                 // its passes leave garbage: each begins after a collection
	Open    func(n int) *Contest // sets the contest up; see Contest.Err
}

// Target is the most that ours may take. A zero is no bound.
type Target struct {
	Peer, Raw float64 // as a multiple of the best peer, and of the raw limit
	Value     float64 // in the workload's unit
	From, To  int     // sizes it holds at, both included
}

// At is the target at a size: none where it does not hold.
func (t Target) At(n int) Target {
	if n < t.From || t.To > 0 && n > t.To {
		return Target{}
	}
	return t
}

// Contest is a workload set up at one size, with everybody who is to do it.
type Contest struct {
	Fault
	Ops   int    // operations in one repetition: what the figures are divided by
	Ours  Side   //
	Peers []Side // other libraries' ways; the best one counts
	Raw   *Side  // the physical limit, or the nearest thing to it; nil for none
	Close func() // nil for none
}

// Side is one way of doing the work.
type Side struct {
	Name string
	Ops  int // operations in one repetition, if not the contest's
	// Run does the work reps times, between Start and Stop of the timer; what it prepares stands outside.
	Run func(t *Timer, reps int)
	// Sum tells what was done. It is called after every round, when all sides have run equally often.
	Sum func() uint64
}

// Fault keeps the first of several errors, so that what takes many steps has to look only once.
type Fault struct {
	Err error
}

// Check notes an error, if it is one and the first.
func (f *Fault) Check(err error) {
	if f.Err == nil {
		f.Err = err
	}
}
