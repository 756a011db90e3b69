// Package contest times several ways of doing the same work beside one another, in one process.
//
// On a shared machine speed drifts from one second to the next, so only what ran side by side can
// be compared. The sides of a [Contest] take turns, forwards and backwards; what is reported is the
// median over the rounds of each side's cost, and of the ratios within a round, with their spread.
// After every round each side says by a checksum what it did: sides that did different work are an
// error, not a row.
//
// A [Workload] knows how to open a contest at a size, and [Measure] runs it. What the work is, the
// package leaves to its user.
package contest
