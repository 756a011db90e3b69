// Package wide has the arithmetic that loops over columns of numbers ask for most: Axpy,
// Scale, Add and Clamp over slices of float32 or float64.
//
// It owns nothing. A kernel reads and writes the slices it is given, keeps neither, and knows
// of no entities: columns of components registered with Split are such slices, whole chunks
// of them if the loop may compute dead lanes, and so is anything else.
//
//	for m := range q.Spans(f) {
//		wide.Axpy(m.X, dt, m.VX) // x += dt * vx
//		wide.Axpy(m.Y, dt, m.VY)
//	}
//
// # Two bodies
//
// Each kernel has a body in plain Go, which every build has. A build for amd64 with
// GOEXPERIMENT=simd also has bodies for AVX2 and AVX-512, which are several times faster while
// the data is in the processor's caches; a processor that lacks the instructions takes the
// plain body. That experiment, and the package simd/archsimd behind it, is outside of the Go 1
// promise: a later Go may change or drop it. The functions of this package stay what they are
// either way, and so do their results.
//
// The vector bodies take slices of float32 and of float64 themselves. A slice of a type of
// one's own, such as []Meters, is another type than []float32 with no way from one to the
// other but package unsafe, so it takes the plain body in every build.
//
// # Rounding
//
// Every operation is rounded to its type, by itself, to nearest even. No processor fuses the
// product and the sum of Axpy, as compilers may do with y[i] += a*x[i]. Denormal numbers are
// not flushed to zero. Elements do not depend on each other, and no sum is reordered. So every
// number that comes out has the same bits in every body and on every architecture.
//
// What is NaN in one body is NaN in all, but which NaN (its sign and payload) is the
// processor's choice, except in Clamp, which computes nothing and keeps a NaN as it is.
//
// # Overlap
//
// The two slices of Axpy and of Add may be the same one. If they overlap otherwise, the
// kernel stays inside of them, but what it writes depends on the body.
//
// # Who may call it
//
// Any goroutine, with slices of its own: a kernel reads and writes them as a loop would, and
// two that write the same elements at the same time are a data race. The race detector does
// not see what the vector bodies read and write; it sees it in a build without the experiment.
package wide
