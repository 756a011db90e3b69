// Package stress holds what shows that the engine keeps its promises under load, and that would notice if it did
// not: a reference model, checks of invariants, a ledger in which every operation has one outcome, histories of
// what several goroutines saw, and load generators.
//
// # What it owns
//
//   - Model is a registry in plain maps, for tests to step beside a real one: also for the tests of programs that
//     use airlock. Compare, CompareStats and Distinct say where the two differ.
//   - Ledger numbers operations and settles their outcomes; Roll follows lives by the events that tell of them.
//   - History keeps who called what when, and says whether some order explains all answers.
//   - Scenarios are load generators; Run ends with a Report of what was done, measured and found.
//
// It leaves the registry alone: everything here goes through what any program may call.
//
// # Life of a run
//
// A scenario makes a registry, an engine and its producers, lets them work until its time is over or its context
// ends, stops the engine, checks every invariant that applies, and reports. Nothing outlives it.
//
// # Who may call what
//
// A Model belongs to one goroutine at a time. A Book of a Ledger belongs to its producer, and what its callbacks
// note to whoever holds the window: that exclusion is the engine's, so the race detector sees it broken here.
package stress
