//go:build goexperiment.simd && amd64

package wide

import "simd/archsimd"

// The bodies for AVX2: 8 numbers of 32 bits or 4 of 64 at once. They do whole vectors and
// return how many elements that were; the plain bodies do the rest. There is one for each
// type: in a generic function the methods of a vector would be calls.
//
// Each slice is cut to its length because the compiler then sees that s[i:] has elements left,
// and drops the code that keeps an empty rest from pointing behind the array. That alone is
// worth 2 times, here and for AVX-512.
//
// Four vectors a turn take what the best placed loop over one takes. Badly placed, such a loop
// takes half as long again, and so does one over two.
//
// Clamp compares and merges. Min and Max would be one instruction each, but which operand they
// return for NaN and for zeros of two signs depends on the order of the operands, and the
// compiler takes them for commutative.
//
// The upper halves of the registers are cleared at the end, for on some processors the SSE
// instructions behind a body, as all scalar code has them, would otherwise wait for them.

func axpyF32x8(y []float32, a float32, x []float32) int {
	y, x = y[:len(y):len(y)], x[:len(y):len(y)]
	as, i := archsimd.BroadcastFloat32x8(a), 0
	for ; i < len(y)-31; i += 32 {
		to, from := (*[32]float32)(y[i:]), (*[32]float32)(x[i:])
		axpyStepF32x8((*[8]float32)(to[0:]), (*[8]float32)(from[0:]), as)
		axpyStepF32x8((*[8]float32)(to[8:]), (*[8]float32)(from[8:]), as)
		axpyStepF32x8((*[8]float32)(to[16:]), (*[8]float32)(from[16:]), as)
		axpyStepF32x8((*[8]float32)(to[24:]), (*[8]float32)(from[24:]), as)
	}
	for ; i < len(y)-7; i += 8 {
		axpyStepF32x8((*[8]float32)(y[i:]), (*[8]float32)(x[i:]), as)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func axpyStepF32x8(to, from *[8]float32, as archsimd.Float32x8) {
	archsimd.LoadFloat32x8(to).Add(archsimd.LoadFloat32x8(from).Mul(as)).Store(to)
}

func scaleF32x8(x []float32, a float32) int {
	x = x[:len(x):len(x)]
	as, i := archsimd.BroadcastFloat32x8(a), 0
	for ; i < len(x)-31; i += 32 {
		to := (*[32]float32)(x[i:])
		scaleStepF32x8((*[8]float32)(to[0:]), as)
		scaleStepF32x8((*[8]float32)(to[8:]), as)
		scaleStepF32x8((*[8]float32)(to[16:]), as)
		scaleStepF32x8((*[8]float32)(to[24:]), as)
	}
	for ; i < len(x)-7; i += 8 {
		scaleStepF32x8((*[8]float32)(x[i:]), as)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func scaleStepF32x8(to *[8]float32, as archsimd.Float32x8) {
	archsimd.LoadFloat32x8(to).Mul(as).Store(to)
}

func addF32x8(dst, src []float32) int {
	dst, src = dst[:len(dst):len(dst)], src[:len(dst):len(dst)]
	i := 0
	for ; i < len(dst)-31; i += 32 {
		to, from := (*[32]float32)(dst[i:]), (*[32]float32)(src[i:])
		addStepF32x8((*[8]float32)(to[0:]), (*[8]float32)(from[0:]))
		addStepF32x8((*[8]float32)(to[8:]), (*[8]float32)(from[8:]))
		addStepF32x8((*[8]float32)(to[16:]), (*[8]float32)(from[16:]))
		addStepF32x8((*[8]float32)(to[24:]), (*[8]float32)(from[24:]))
	}
	for ; i < len(dst)-7; i += 8 {
		addStepF32x8((*[8]float32)(dst[i:]), (*[8]float32)(src[i:]))
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func addStepF32x8(to, from *[8]float32) {
	archsimd.LoadFloat32x8(to).Add(archsimd.LoadFloat32x8(from)).Store(to)
}

func clampF32x8(x []float32, lo, hi float32) int {
	x = x[:len(x):len(x)]
	los, his, i := archsimd.BroadcastFloat32x8(lo), archsimd.BroadcastFloat32x8(hi), 0
	for ; i < len(x)-31; i += 32 {
		to := (*[32]float32)(x[i:])
		clampStepF32x8((*[8]float32)(to[0:]), los, his)
		clampStepF32x8((*[8]float32)(to[8:]), los, his)
		clampStepF32x8((*[8]float32)(to[16:]), los, his)
		clampStepF32x8((*[8]float32)(to[24:]), los, his)
	}
	for ; i < len(x)-7; i += 8 {
		clampStepF32x8((*[8]float32)(x[i:]), los, his)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func clampStepF32x8(to *[8]float32, los, his archsimd.Float32x8) {
	v := archsimd.LoadFloat32x8(to)
	v = los.Merge(v, v.Less(los))
	his.Merge(v, v.Greater(his)).Store(to)
}
