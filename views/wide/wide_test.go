package wide_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/airlock-ecs/airlock/views/wide"
)

func TestKernelsRefuseSlicesOfUnequalLength(t *testing.T) {
	long, short := []float32{1, 2, 3}, []float32{4, 5}
	assert.PanicsWithValue(t, "wide: Axpy: y has 3 elements, x has 2", func() { wide.Axpy(long, 2, short) })
	assert.PanicsWithValue(t, "wide: Axpy: y has 2 elements, x has 3", func() { wide.Axpy(short, 2, long) })
	assert.PanicsWithValue(t, "wide: Add: dst has 3 elements, src has 2", func() { wide.Add(long, short) })
	assert.PanicsWithValue(t, "wide: Add: dst has 0 elements, src has 2", func() { wide.Add(nil, short) })
	assert.Equal(t, []float32{1, 2, 3}, long)
	assert.Equal(t, []float32{4, 5}, short)
}

func TestKernelsTakeEmptySlices(t *testing.T) {
	wide.Axpy(nil, 2, []float32{})
	wide.Scale([]float64(nil), 2)
	wide.Add([]float64{}, nil)
	wide.Clamp([]float32(nil), 0, 1)
}

// repeated returns v as often as fills vectors of every width and leaves a rest.
func repeated[F wide.Float](v F) []F {
	s := make([]F, 16+8+4+1)
	for i := range s {
		s[i] = v
	}
	return s
}

// The sums would be tiny instead of 0 if the product weren't rounded before it is added.
func TestAxpyRoundsTheProduct(t *testing.T) {
	y := repeated(float32(-(1 + 0x1p-11)))
	wide.Axpy(y, 1+0x1p-12, repeated(float32(1+0x1p-12)))
	assert.Equal(t, repeated(float32(0)), y)

	z := repeated(-(1 + 0x1p-26))
	wide.Axpy(z, 1+0x1p-27, repeated(1+0x1p-27))
	assert.Equal(t, repeated(0.0), z)

	m := repeated(Meters(-(1 + 0x1p-11)))
	wide.Axpy(m, 1+0x1p-12, repeated(Meters(1+0x1p-12)))
	assert.Equal(t, repeated(Meters(0)), m)
}

func TestClampDoesWhatItsCommentSays(t *testing.T) {
	negative, nan, inf := math.Copysign(0, -1), math.NaN(), math.Inf(1)
	for _, test := range []struct {
		name            string
		v, lo, hi, want float64
	}{
		{"below", -3, -1, 1, -1},
		{"above", 3, -1, 1, 1},
		{"inside", 0.5, -1, 1, 0.5},
		{"at a bound", 1, -1, 1, 1},
		{"infinite", -inf, -1, 1, -1},
		{"between infinities", inf, -inf, inf, inf},
		{"NaN", nan, -1, 1, nan},
		{"-0 inside", negative, -1, 1, negative},
		{"-0 at 0", negative, 0, 1, negative},
		{"0 at -0", 0, -1, negative, 0},
		{"below a bound of -0", -1, negative, 1, negative},
		{"no lower bound", -3, nan, 1, -3},
		{"no lower bound, above", 3, nan, 1, 1},
		{"no upper bound", 3, -1, nan, 3},
		{"no upper bound, below", -3, -1, nan, -1},
		{"bounds crossed, below", -3, 1, -1, -1},
		{"bounds crossed, between", 0, 1, -1, -1},
		{"bounds crossed, above", 3, 1, -1, -1},
		{"bounds crossed, NaN", nan, 1, -1, nan},
	} {
		t.Run(test.name, func(t *testing.T) {
			doubles := repeated(test.v)
			wide.Clamp(doubles, test.lo, test.hi)
			agree(t, "float64", repeated(test.want), doubles, true)

			singles := repeated(float32(test.v))
			wide.Clamp(singles, float32(test.lo), float32(test.hi))
			agree(t, "float32", repeated(float32(test.want)), singles, true)
		})
	}
}
