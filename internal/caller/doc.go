// Package caller answers one question without a goroutine number: is the calling goroutine
// inside a callback of this object? It is what turns a callback that waits for its own
// registry into an error instead of a hang.
//
// Entering has to be as good as free, since it happens on every handshake, and asking may be
// slow, since it happens after a long wait. So [Within] does nothing but leave a frame on the
// stack whose first argument is the object's id, and [Inside] reads the calling goroutine's
// own stack trace and looks for that frame. Nothing is registered, so a goroutine that dies leaves
// nothing behind, and a goroutine started inside a callback is not inside it.
// Rejected: a goroutine id parsed on entry costs several handshakes, profiler labels belong to
// the user and are inherited by new goroutines, and a map by goroutine needs cleaning up.
//
// The runtime prints the arguments of a frame in hexadecimal, marks those with a question mark
// whose value it does not know for certain, and leaves out the middle of stacks deeper than 100
// frames. Inside counts the frames of Within by their program counters, which are complete: a frame
// whose id it could not read counts as the one that is looked for. A wrong error in a
// callback nested 100 frames deep into another registry's is better than a deadlock.
//
// The package imports nothing of this module and may be imported by all of it. Every function
// is for any goroutine.
package caller
