//go:build goexperiment.simd && amd64

package wide

import "simd/archsimd"

// The functions here choose the vector body for a type and a processor. Like the bodies, they
// return how many elements are done, from the first on: none when there is no body.
//
// The type is looked up at run time, because a generic function has one machine code for all
// types over float32. That costs some 2 ns a call and allocates nothing; named functions for
// each type would save them and read worse.

func axpyWide[F Float](y []F, a F, x []F) int {
	switch y := any(y).(type) {
	case []float32:
		switch {
		case archsimd.X86.AVX512():
			return axpyF32x16(y, float32(a), any(x).([]float32))
		case archsimd.X86.AVX2():
			return axpyF32x8(y, float32(a), any(x).([]float32))
		}
	case []float64:
		switch {
		case archsimd.X86.AVX512():
			return axpyF64x8(y, float64(a), any(x).([]float64))
		case archsimd.X86.AVX2():
			return axpyF64x4(y, float64(a), any(x).([]float64))
		}
	}
	return 0
}

func scaleWide[F Float](x []F, a F) int {
	switch x := any(x).(type) {
	case []float32:
		switch {
		case archsimd.X86.AVX512():
			return scaleF32x16(x, float32(a))
		case archsimd.X86.AVX2():
			return scaleF32x8(x, float32(a))
		}
	case []float64:
		switch {
		case archsimd.X86.AVX512():
			return scaleF64x8(x, float64(a))
		case archsimd.X86.AVX2():
			return scaleF64x4(x, float64(a))
		}
	}
	return 0
}

func addWide[F Float](dst, src []F) int {
	switch dst := any(dst).(type) {
	case []float32:
		switch {
		case archsimd.X86.AVX512():
			return addF32x16(dst, any(src).([]float32))
		case archsimd.X86.AVX2():
			return addF32x8(dst, any(src).([]float32))
		}
	case []float64:
		switch {
		case archsimd.X86.AVX512():
			return addF64x8(dst, any(src).([]float64))
		case archsimd.X86.AVX2():
			return addF64x4(dst, any(src).([]float64))
		}
	}
	return 0
}

func clampWide[F Float](x []F, lo, hi F) int {
	switch x := any(x).(type) {
	case []float32:
		switch {
		case archsimd.X86.AVX512():
			return clampF32x16(x, float32(lo), float32(hi))
		case archsimd.X86.AVX2():
			return clampF32x8(x, float32(lo), float32(hi))
		}
	case []float64:
		switch {
		case archsimd.X86.AVX512():
			return clampF64x8(x, float64(lo), float64(hi))
		case archsimd.X86.AVX2():
			return clampF64x4(x, float64(lo), float64(hi))
		}
	}
	return 0
}
