//go:build goexperiment.simd && amd64

package work

// wideTarget is the bound of wide kernels, as a multiple of a plain loop over slices.
const wideTarget = 0.3
