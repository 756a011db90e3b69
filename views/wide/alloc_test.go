//go:build !race

package wide_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/airlock-ecs/airlock/views/wide"
)

// every runs each kernel once.
func every[F wide.Float](y, x []F) func() {
	return func() {
		wide.Axpy(y, 0.5, x)
		wide.Scale(y, 0.5)
		wide.Add(y, x)
		wide.Clamp(y, 0, 1)
	}
}

func TestKernelsAllocateNothing(t *testing.T) {
	assert.Zero(t, testing.AllocsPerRun(100, every(make([]float32, 100), make([]float32, 100))))
	assert.Zero(t, testing.AllocsPerRun(100, every(make([]float64, 100), make([]float64, 100))))
	assert.Zero(t, testing.AllocsPerRun(100, every(make([]Meters, 100), make([]Meters, 100))))
}
