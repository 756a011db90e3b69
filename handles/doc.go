// Package handles names entities without owning them: a handle is an index, and the generation
// that index had when it was issued. Index 0 is never issued, in no space.
//
// It owns the three handle types, the index spaces they come from, generations, the pending
// recycles, and the word of a local index, by which every goroutine learns at once whether an
// entity lives. It leaves to package registry what a handle stands for.
//
// Life of an index: never used -> claimed (issued or reserved) -> dying -> pending -> free ->
// claimed again, with the next generation; or retired, when its last generation has died. A
// claim that is undone skips pending: its generation is burned, as if the name had lived and
// died, for somebody may have seen it.
//
//	space    who claims                     reuse                      read by others
//	Locals   the owner; Reserve: anybody    FIFO, after a confirm      the word of each index
//	Globals  the owner                      at once, lowest first      the generation of each index
//	Nets     the owner                      FIFO, after a confirm      the binding of each index
//
// Two spaces of Locals can lie Beside each other over the same words, each with a stretch of its own:
// one whose lists a rollback takes back, one whose lists it leaves alone. Mark, Rewind and Unclaim
// take a space back, so that the same operations give the same handles again; Claim takes a name
// that a record says. State and Restore carry a space from one process to another.
//
// "The owner" is the goroutine that owns the registry at that moment: Logic, the holder of the
// window, or the caller of Update. Ownership passes by a happens-before edge (the baton's
// channel, the registry's own lock), so what only the owner touches is plain memory here.
// Everything that two goroutines may touch at once is atomic; each such field says which
// store and which load make the edge:
//
//   - A page of words is created by one compare-and-swap of its directory entry, and then never
//     moves: whoever loads the entry sees a zeroed page.
//   - The word of a local index arbitrates all that concerns it. It is claimed, killed, moved
//     and taken back by compare-and-swap, and its generation never goes back, so a decision taken
//     on an old value cannot succeed on a newer life. Unclaim is the exception: a life that never
//     was leaves its generation to the one that takes its place.
//   - Free names reach Reserve through the queue of recycles: the owner writes an entry plainly,
//     before the atomic store of the confirmed position that covers it, and Reserve loads that
//     position first. A stale or repeated entry harms nobody, for the claim itself is the
//     compare-and-swap of the word, from exactly the generation before.
//   - A segment of that queue is written again only after the owner has unlinked it and then seen
//     that no reader is inside; readers announce themselves before they follow a link.
//   - Names whose claim was undone wait in a lock-free stack whose top carries a version.
package handles
