package wide

import "fmt"

// Float is what the kernels compute with: float32, float64, and types of one's own over them.
type Float interface{ ~float32 | ~float64 }

// Axpy adds a*x[i] to y[i] for every i. The product is rounded before it is added.
//
// Panics: if y and x differ in length; nothing is written then.
// Concurrency: any goroutine that may write y and read x. Allocates: no.
func Axpy[F Float](y []F, a F, x []F) {
	if len(y) != len(x) {
		panicLengths("Axpy", "y", len(y), "x", len(x))
	}
	n := axpyWide(y, a, x)
	axpyGo(y[n:], a, x[n:])
}

// Scale multiplies every x[i] by a.
//
// Concurrency: any goroutine that may write x. Allocates: no.
func Scale[F Float](x []F, a F) {
	n := scaleWide(x, a)
	scaleGo(x[n:], a)
}

// Add adds src[i] to dst[i] for every i.
//
// Panics: if dst and src differ in length; nothing is written then.
// Concurrency: any goroutine that may write dst and read src. Allocates: no.
func Add[F Float](dst, src []F) {
	if len(dst) != len(src) {
		panicLengths("Add", "dst", len(dst), "src", len(src))
	}
	n := addWide(dst, src)
	addGo(dst[n:], src[n:])
}

// Clamp sets every x[i] that is less than lo to lo, and every one that is greater than hi to hi.
//
// It compares and chooses: what is neither keeps its bits. So a NaN stays the NaN it was, and
// -0 stays -0 between 0 and 1, for it is not less than 0 (the built-in max would make it 0).
// A bound that is NaN bounds nothing. If lo > hi, hi stands for both.
//
// Concurrency: any goroutine that may write x. Allocates: no.
func Clamp[F Float](x []F, lo, hi F) {
	if lo > hi {
		lo = hi // so that the order of the two comparisons doesn't matter
	}
	n := clampWide(x, lo, hi)
	clampGo(x[n:], lo, hi)
}

// panicLengths is a function of its own to keep the formatting out of the kernels.
//
//go:noinline
func panicLengths(kernel, to string, toCount int, from string, fromCount int) {
	panic(fmt.Sprintf("wide: %s: %s has %d elements, %s has %d", kernel, to, toCount, from, fromCount))
}
