// Package sim runs goroutines one at a time, in an order that a seed decides, so that a schedule which
// breaks something can be run again.
//
// It owns a token. The actor that has it runs until it comes by a place of its code that says so
// (At), has to wait (Wait), or ends; then a Strategy says who goes on. Nothing else runs meanwhile, so the
// same code and the same decisions give the same run, whatever the machine does. The code under test is
// the real one: package fault puts the places into the engine, and a Sim is its Simulation. It leaves to
// its users what the actors do, and how to see that something went wrong.
//
// # Life
//
//	New -> Go for each actor -> Run, which returns when all have ended, or with a Failure
//
// A Failure is a state in which somebody has not ended and nobody can run, which is what a lost wake-up
// looks like; an actor that panics; too many steps; or what an actor has told by Fail. It carries the
// last decisions. All actors are ended then, by runtime.Goexit at their next place.
//
// # Strategies
//
// Random draws every decision, Priorities is a probabilistic concurrency test (Burckhardt, Kothari,
// Musuvathi, Nagarakatte: A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, ASPLOS
// 2010), and Explorer goes through all schedules of a bounded number of preemptions, one after the other
// (Musuvathi, Qadeer: Iterative Context Bounding, PLDI 2007).
//
// # What an actor must keep to
//
// It waits for others by Wait only: one that blocks elsewhere keeps the token, and the run hangs; a test
// in a bubble of testing/synctest is told so. It holds no mutex at a place. It depends on nothing but its
// own state and the decisions: no clock but a bubble's, no random source without a seed, no map order.
//
// # What no simulation shows
//
// Actors run one after the other, with a happens-before edge from each to the next, between the places
// only. So it finds what goes wrong in some order of the stretches between places, and does not find data
// races, what only shows in weak memory, or an order within a stretch: a place that is missing is a
// preemption that is never tried.
//
// # Who may call what
//
// Go before Run, or as an actor; At, Wait, Fork, Choose and Fail as the actor that has the token.
//
// The package imports nothing of this module.
package sim
