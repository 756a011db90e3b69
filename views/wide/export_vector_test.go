//go:build goexperiment.simd && amd64

package wide

import "simd/archsimd"

// Vectors returns the vector bodies that this processor has.
func Vectors() (singles []Body[float32], doubles []Body[float64]) {
	if archsimd.X86.AVX2() {
		singles = append(singles, Body[float32]{"avx2", 8, axpyF32x8, scaleF32x8, addF32x8, clampF32x8})
		doubles = append(doubles, Body[float64]{"avx2", 4, axpyF64x4, scaleF64x4, addF64x4, clampF64x4})
	}
	if archsimd.X86.AVX512() {
		singles = append(singles, Body[float32]{"avx512", 16, axpyF32x16, scaleF32x16, addF32x16, clampF32x16})
		doubles = append(doubles, Body[float64]{"avx512", 8, axpyF64x8, scaleF64x8, addF64x8, clampF64x8})
	}
	return singles, doubles
}
