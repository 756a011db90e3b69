package contest

import (
	"math"
	"runtime"
	"time"
)

// Timer adds up what a side's passes take. It either takes the time or counts allocations, for
// counting disturbs the time.
type Timer struct {
	Fault
	counting bool
	began    time.Time
	memory   runtime.MemStats
	total    float64
	allocs   uint64
	counted  bool
}

// Start begins to count.
func (t *Timer) Start() {
	t.count(false)
	t.began = time.Now()
}

// Stop ends what Start began.
func (t *Timer) Stop() {
	t.total += float64(time.Since(t.began))
	t.count(true)
}

// Add adds a figure that the side took itself, in the unit of the workload. It goes with Counted.
func (t *Timer) Add(figure float64) { t.total += figure }

// Counted runs fn, whose allocations count and whose time does not.
func (t *Timer) Counted(fn func()) {
	t.count(false)
	fn()
	t.count(true)
}

// count adds what has been allocated in the process so far, or takes it off.
func (t *Timer) count(end bool) {
	if !t.counting {
		return
	}
	runtime.ReadMemStats(&t.memory)
	if t.counted = true; end {
		t.allocs += t.memory.Mallocs
	} else {
		t.allocs -= t.memory.Mallocs
	}
}

// allocations is what was counted, NaN if nothing was.
func (t *Timer) allocations() float64 {
	if !t.counted {
		return math.NaN()
	}
	return float64(t.allocs)
}
