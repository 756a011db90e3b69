// Command hunt runs the tests with each planted bug in turn, and says which of them finds it.
//
// The tests are built once, with the tag planted. Without a bug all checks have to pass. Then each bug goes through the
// checks that its package is under until one fails: general ones first, which were not written for it, such as models,
// histories, loads, simulations of schedules, and comparisons of two ways to the same end; then all tests of its package. A
// bug that is a missing happens-before edge begins with checks under the race detector.
//
// What a check finds counts only if the test that failed fails with the bug once more, and passes without it. A test that
// hangs has found the bug only if it says so itself, at its own limit of time; one that hunt has to end has not.
//
// hunt fails if a bug escapes, or if too few are found by general checks. It is run at the root of the repository:
//
//	go run ./internal/planted/hunt
//	go run ./internal/planted/hunt -bugs early-recycle,lost-wake-up -v
package main
