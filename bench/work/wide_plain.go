//go:build !goexperiment.simd || !amd64

package work

// wideTarget is no bound: this build has no vector kernels.
const wideTarget = 0
