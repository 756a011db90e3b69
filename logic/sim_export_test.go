//go:build faults

package logic

// Spinners has so many callers spin at a time, whatever the number of processors.
func Spinners(e *Engine, n int) { e.door.maxSpinners = int32(n) }

// TakeAhead has lanes of a queue of 64 take places ahead, as those of a large one do.
func TakeAhead(e *Engine) {
	if e.queue.limit == 64 {
		e.queue.stride = 4
	}
}
