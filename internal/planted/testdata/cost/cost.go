// Package cost has the same function with a bug and without one, for a test that compares what the
// compiler makes of them.
package cost

import "github.com/airlock-ecs/airlock/internal/planted"

//go:noinline
func With(line []int) (sum int) {
	for _, n := range line {
		if planted.Enabled && planted.Is(planted.StaleKill) {
			continue
		}
		sum += n
	}
	if planted.Enabled && planted.Is(planted.DoubleReply) {
		sum++
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
