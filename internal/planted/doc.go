// Package planted holds bugs that were put into the engine on purpose, to see whether the tests find them.
//
// In a build with the tag planted one of them is switched on by name, for the whole process, with the
// variable AIRLOCK_PLANTED; without it such a build is as right as any other. In a build without the tag Enabled is
// the constant false, and what stands behind it is compiled away:
//
//	if planted.Enabled && planted.Is(planted.StaleKill) {
//		// wrong
//	}
//
// Command hunt, below this directory, runs the tests with each bug in turn and says which of them found it:
// make planted.
//
// The package imports nothing of this module.
package planted
