// Package zstd keeps saved states compressed: it is a writer and a reader around those of package snapshot.
//
// It is a module of its own, so that only its users depend on the compressor. What a state is, and when one may be saved or
// loaded, is told there: [Save] and [Load] are snapshot.Save and snapshot.Load, [SaveFile] takes an image of snapshot.Take.
//
// # Format
//
// A file is one Zstandard frame with a saved state, and behind it a skippable frame with a checksum of the first. Any
// Zstandard tool makes a file for snapshot.LoadFile of it (zstd -d), and passes the second frame over. It is there
// because the checksums of the state are of what is compressed: bits of a frame that mean nothing, and frames added
// to it, would go unnoticed. With it no change of a single bit does.
//
// Equal states give equal bytes at equal levels, as long as the compressor is of the same version.
//
// # What readers promise
//
// As in package snapshot no input makes them panic, and after an error the registry is as it was. Memory is bounded: the
// window of a frame by 4 MiB, and what comes out of it by [MaxBytes]. A state that says it is longer is refused at once.
//
// # Who may call it
//
// Who may call snapshot's. Nothing here is global.
package zstd
