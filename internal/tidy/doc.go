// Package tidy holds the rules of this repository that no compiler checks: which package may
// import which, which foreign modules are welcome where, where unsafe may be used, that no test
// sleeps, and that everything exported says what it does and who may call it.
//
// [Load] parses the sources of the module once, each file whatever its build tags; a rule is a
// function from the parsed [Module] to what is wrong with it, and [Check] runs them all. The
// package's own test does that with this repository, and shows each rule failing on a small
// module made for it: a checker that cannot fail is worthless.
//
// It runs no commands and imports nothing of this module. Nested modules are read as parts of the one around them: the rules
// hold for them too, and they may import more.
package tidy
