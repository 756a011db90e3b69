// Package cost has the same function with a point and without one, for a test that compares what the
// compiler makes of them.
package cost

import "github.com/airlock-ecs/airlock/internal/fault"

//go:noinline
func With(line []int) (sum int) {
	for _, n := range line {
		if fault.Enabled {
			fault.At(fault.Granted)
		}
		sum += n
	}
	if fault.Enabled {
		fault.At(fault.Returned)
	}
	return sum
}

//go:noinline
func Without(line []int) (sum int) {
	for _, n := range line {
		sum += n
	}
	return sum
}
