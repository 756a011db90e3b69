// Package snapshot turns states of a registry into numbers and bytes: hashes that tell two states
// apart, differences between them, files that hold one, and a journal of what happened.
//
// # What it owns
//
// The formats. Bytes come in two layouts, and both are read as if somebody had damaged them on purpose:
//
//   - A saved state is a container: a table of sections, then the sections, each with a checksum. Equal
//     states give equal bytes, and no change of a single bit goes unnoticed.
//   - A journal is a directory of segments with a chain of records, each of which vouches for all
//     before it. What can be read of a damaged one is its longest valid prefix, and what cannot be
//     read is reported: how much, from where, and why.
//
// It leaves to package registry what a state is, and to its callers when to save, where to, and what to
// do about a loss.
//
// # Hashes
//
// [Hash] gives a state as a number and [Diff] the first difference of two states: what every entity that is not
// cosmetic is, slot, handle, activity and Temporal values, and nothing else. Both work on windows, frames and
// published frames, and a hash costs what has changed since the last one.
//
// # Files
//
// A saved state appears under its name whole or not at all: it is written beside it, synced, and
// renamed. A journal only grows. When a write or a sync has failed nothing more is written to
// it, for what the disk holds is no longer known; opening it again finds out.
//
// # What readers promise
//
// No input makes them panic, and none makes them allocate by a length that has not been checked: memory
// grows as bytes arrive. [ErrDamaged] says that the bytes are not what was written, [ErrVersion] that
// another version wrote them or that they were never ours, [ErrTooLarge] that a limit is in the way, and
// [ErrSchema] that they belong to other component types. Whatever else goes wrong is the error of the file system.
//
// # Who may call it
//
// What is read or written belongs to one goroutine at a time. Nothing here is global.
package snapshot
