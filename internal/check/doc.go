// Package check holds what a debug build checks and a release build does not: the constant
// behind the ecsdebug build tag, the panic of a broken invariant, and a guard that notices two
// goroutines in a place made for one.
//
// Costly checks sit behind the constant, so that a release build carries no trace of them and
// no function exists twice:
//
//	if check.Enabled && a.live > a.allocated {
//		check.Failf("archetype %s: live %d > allocated %d", a.name, a.live, a.allocated)
//	}
//
// The package imports nothing of this module and may be imported by all of it.
package check
