//go:build goexperiment.simd && amd64

package wide

import "simd/archsimd"

// The bodies for AVX2 over float64. See those over float32 for what is common to all.

func axpyF64x4(y []float64, a float64, x []float64) int {
	y, x = y[:len(y):len(y)], x[:len(y):len(y)]
	as, i := archsimd.BroadcastFloat64x4(a), 0
	for ; i < len(y)-15; i += 16 {
		to, from := (*[16]float64)(y[i:]), (*[16]float64)(x[i:])
		axpyStepF64x4((*[4]float64)(to[0:]), (*[4]float64)(from[0:]), as)
		axpyStepF64x4((*[4]float64)(to[4:]), (*[4]float64)(from[4:]), as)
		axpyStepF64x4((*[4]float64)(to[8:]), (*[4]float64)(from[8:]), as)
		axpyStepF64x4((*[4]float64)(to[12:]), (*[4]float64)(from[12:]), as)
	}
	for ; i < len(y)-3; i += 4 {
		axpyStepF64x4((*[4]float64)(y[i:]), (*[4]float64)(x[i:]), as)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func axpyStepF64x4(to, from *[4]float64, as archsimd.Float64x4) {
	archsimd.LoadFloat64x4(to).Add(archsimd.LoadFloat64x4(from).Mul(as)).Store(to)
}

func scaleF64x4(x []float64, a float64) int {
	x = x[:len(x):len(x)]
	as, i := archsimd.BroadcastFloat64x4(a), 0
	for ; i < len(x)-15; i += 16 {
		to := (*[16]float64)(x[i:])
		scaleStepF64x4((*[4]float64)(to[0:]), as)
		scaleStepF64x4((*[4]float64)(to[4:]), as)
		scaleStepF64x4((*[4]float64)(to[8:]), as)
		scaleStepF64x4((*[4]float64)(to[12:]), as)
	}
	for ; i < len(x)-3; i += 4 {
		scaleStepF64x4((*[4]float64)(x[i:]), as)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func scaleStepF64x4(to *[4]float64, as archsimd.Float64x4) {
	archsimd.LoadFloat64x4(to).Mul(as).Store(to)
}

func addF64x4(dst, src []float64) int {
	dst, src = dst[:len(dst):len(dst)], src[:len(dst):len(dst)]
	i := 0
	for ; i < len(dst)-15; i += 16 {
		to, from := (*[16]float64)(dst[i:]), (*[16]float64)(src[i:])
		addStepF64x4((*[4]float64)(to[0:]), (*[4]float64)(from[0:]))
		addStepF64x4((*[4]float64)(to[4:]), (*[4]float64)(from[4:]))
		addStepF64x4((*[4]float64)(to[8:]), (*[4]float64)(from[8:]))
		addStepF64x4((*[4]float64)(to[12:]), (*[4]float64)(from[12:]))
	}
	for ; i < len(dst)-3; i += 4 {
		addStepF64x4((*[4]float64)(dst[i:]), (*[4]float64)(src[i:]))
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func addStepF64x4(to, from *[4]float64) {
	archsimd.LoadFloat64x4(to).Add(archsimd.LoadFloat64x4(from)).Store(to)
}

func clampF64x4(x []float64, lo, hi float64) int {
	x = x[:len(x):len(x)]
	los, his, i := archsimd.BroadcastFloat64x4(lo), archsimd.BroadcastFloat64x4(hi), 0
	for ; i < len(x)-15; i += 16 {
		to := (*[16]float64)(x[i:])
		clampStepF64x4((*[4]float64)(to[0:]), los, his)
		clampStepF64x4((*[4]float64)(to[4:]), los, his)
		clampStepF64x4((*[4]float64)(to[8:]), los, his)
		clampStepF64x4((*[4]float64)(to[12:]), los, his)
	}
	for ; i < len(x)-3; i += 4 {
		clampStepF64x4((*[4]float64)(x[i:]), los, his)
	}
	archsimd.ClearAVXUpperBits()
	return i
}

func clampStepF64x4(to *[4]float64, los, his archsimd.Float64x4) {
	v := archsimd.LoadFloat64x4(to)
	v = los.Merge(v, v.Less(los))
	his.Merge(v, v.Greater(his)).Store(to)
}
