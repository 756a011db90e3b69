// Package flight keeps the last seconds of the program's execution trace in memory, and writes them to a file when a
// frame took too long: what go tool trace shows of the moment before, which nobody could have asked for in time.
//
// It owns the runtime's flight recorder while it records, of which a program has one, and the files in its directory. It leaves
// to package logic when a frame is too long, and what is in a trace.
//
// Life of a [Recorder]: New checks its Config and makes the directory; the first engine that is given it begins to record, the
// last one to end ends that, and waits for the file in progress; an engine may begin again. What is recorded while nobody
// overruns is forgotten by the runtime.
//
// A file is written by a goroutine of its own. All methods may be called from any goroutine; a mutex guards what they share, and is
// held for moments only while somebody records.
package flight
