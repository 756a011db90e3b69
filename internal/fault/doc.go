// Package fault names the places of the engine where things can go wrong in an order that no test
// reaches by waiting: between a caller's queueing and its sleep, between the grant and the callback,
// between the stop and the answer to those who wait.
//
// In a build with the tag faults, a test hangs a function on a point, and every goroutine that comes by
// runs it there and then: it may stop the engine, end a context, wait for another goroutine, or just
// yield. In any other build Enabled is the constant false, and what stands behind it is compiled away:
//
//	if fault.Enabled {
//		fault.At(fault.Granted)
//	}
//
// The points are those of the whole process, not of one engine: tests that hang functions do not run
// in parallel. A function that is hung may not panic, or end its goroutine: a point lies in the
// engine's own code, not in a callback.
//
// A test may also have a Simulation decide who runs: then one goroutine holds a token, and gives it on at
// points, and at pauses, where the engine waits, yields, or starts a goroutine.
//
// The package imports nothing of this module.
package fault
