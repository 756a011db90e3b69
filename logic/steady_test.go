package logic_test

import (
	"testing"

	"github.com/airlock-ecs/airlock/internal/fault"
)

// countsAllocations skips a test of allocations in a build with points for faults, which allocate.
func countsAllocations(t *testing.T) {
	t.Helper()
	if fault.Enabled {
		t.Skip("points for faults allocate")
	}
}
