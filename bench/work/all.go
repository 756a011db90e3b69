package work

import (
	"slices"

	"github.com/airlock-ecs/airlock/bench/contest"
)

// The sizes that workloads have as a rule.
const (
	k1   = 1 << 10
	k16  = 1 << 14
	k256 = 1 << 18
	m1   = 1 << 20
	m10  = 10_000_000
)

// standard are the sizes of what is proportional to the number of entities.
func standard() []int { return []int{k1, k16, k256, m1, m10} }

// All are all workloads, in the order of the table.
func All() []*contest.Workload {
	return slices.Concat(queries(), accesses(), creations(), removals(), moves(), registries(), holes(),
		lookups(), handshakes(), deferrals(), propagations(), pools(), games(), wides(), footprints(), growths())
}

// perEntity is the Bytes of a workload with so many for each entity.
func perEntity(bytes int64) func(int) int64 {
	return func(n int) int64 { return bytes * int64(n) }
}
