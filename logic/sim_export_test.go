//go:build faults

package logic

// Spinners has so many callers spin at a time, whatever the number of processors.
func Spinners(e *Engine, n int) { e.door.maxSpinners = int32(n) }
