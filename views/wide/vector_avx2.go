//go:build goexperiment.simd && amd64

package wide

import "simd/archsimd"

// The bodies for AVX2: 8 numbers of 32 bits or 4 of 64 at once. They do whole vectors and
// return how many elements that were; the plain bodies do the rest. There is one for each
// type: in a generic function the methods of a vector would be calls.
//
// Each slice is cut to its length because the compiler then sees that s[i:] has elements left
// and drops the code that keeps an empty rest from pointing behind the array; that alone is
// worth 2 times.
//
// Clamp compares and merges. Min and Max would be one instruction each, but which operand they
// return for NaN and for zeros of two signs depends on the order of the operands, and the
// compiler takes them for commutative.
//
// Code behind a body that uses the older SSE instructions, as all scalar code does, waits on
// some processors for the upper halves of the registers, unless they are cleared.

func axpyF32x8(y []float32, a float32, x []float32) int {
	y, x = y[:len(y):len(y)], x[:len(y):len(y)]
	as, i := archsimd.BroadcastFloat32x8(a), 0
	for ; i < len(y)-7; i += 8 {
		to, from := (*[8]float32)(y[i:]), (*[8]float32)(x[i:])
		archsimd.LoadFloat32x8(to).Add(archsimd.LoadFloat32x8(from).Mul(as)).Store(to)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func scaleF32x8(x []float32, a float32) int {
	x = x[:len(x):len(x)]
	as, i := archsimd.BroadcastFloat32x8(a), 0
	for ; i < len(x)-7; i += 8 {
		to := (*[8]float32)(x[i:])
		archsimd.LoadFloat32x8(to).Mul(as).Store(to)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func addF32x8(dst, src []float32) int {
	dst, src = dst[:len(dst):len(dst)], src[:len(dst):len(dst)]
	i := 0
	for ; i < len(dst)-7; i += 8 {
		to, from := (*[8]float32)(dst[i:]), (*[8]float32)(src[i:])
		archsimd.LoadFloat32x8(to).Add(archsimd.LoadFloat32x8(from)).Store(to)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func clampF32x8(x []float32, lo, hi float32) int {
	x = x[:len(x):len(x)]
	los, his, i := archsimd.BroadcastFloat32x8(lo), archsimd.BroadcastFloat32x8(hi), 0
	for ; i < len(x)-7; i += 8 {
		to := (*[8]float32)(x[i:])
		v := archsimd.LoadFloat32x8(to)
		v = los.Merge(v, v.Less(los))
		his.Merge(v, v.Greater(his)).Store(to)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func axpyF64x4(y []float64, a float64, x []float64) int {
	y, x = y[:len(y):len(y)], x[:len(y):len(y)]
	as, i := archsimd.BroadcastFloat64x4(a), 0
	for ; i < len(y)-3; i += 4 {
		to, from := (*[4]float64)(y[i:]), (*[4]float64)(x[i:])
		archsimd.LoadFloat64x4(to).Add(archsimd.LoadFloat64x4(from).Mul(as)).Store(to)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func scaleF64x4(x []float64, a float64) int {
	x = x[:len(x):len(x)]
	as, i := archsimd.BroadcastFloat64x4(a), 0
	for ; i < len(x)-3; i += 4 {
		to := (*[4]float64)(x[i:])
		archsimd.LoadFloat64x4(to).Mul(as).Store(to)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func addF64x4(dst, src []float64) int {
	dst, src = dst[:len(dst):len(dst)], src[:len(dst):len(dst)]
	i := 0
	for ; i < len(dst)-3; i += 4 {
		to, from := (*[4]float64)(dst[i:]), (*[4]float64)(src[i:])
		archsimd.LoadFloat64x4(to).Add(archsimd.LoadFloat64x4(from)).Store(to)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func clampF64x4(x []float64, lo, hi float64) int {
	x = x[:len(x):len(x)]
	los, his, i := archsimd.BroadcastFloat64x4(lo), archsimd.BroadcastFloat64x4(hi), 0
	for ; i < len(x)-3; i += 4 {
		to := (*[4]float64)(x[i:])
		v := archsimd.LoadFloat64x4(to)
		v = los.Merge(v, v.Less(los))
		his.Merge(v, v.Greater(his)).Store(to)
	}
	archsimd.ClearAVXUpperBits()
	return i
}
