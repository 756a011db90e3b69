// Command worlds runs a declared world inside an engine, beside a system in Go. The world is fountain.world; in Go
// there is a cat that walks along under it, and a system that looks which drops are on the cat. A
// reader on a goroutine of its own asks now and then what there is to draw.
//
// The other worlds of this directory are for airlock run; each says at its top how to look at it:
//
//   - particles.world: an emitter, a pool, and what becomes of a particle
//   - fountain.world: random numbers, two systems that share the work, drops that bounce
//   - arrows.world: pools that spawn from pools, in volleys
//   - predators.world: populations as numbers, and animals that follow them
//
// hashes.golden has the hash of each of them after some steps: whatever computes them, it does not change.
package main
