package registry

// Task is work in parts for Fork.
type Task interface {
	// Part does one part, with a frame of its own. Workers call it at the same time with different
	// worker numbers, which are below Workers; parts of one worker come one after another.
	//
	// Concurrency: several workers at once, with different parts.
	Part(f *Frame, worker, part int)
}

// Workers is how many workers Fork has for a: 1 if there is nothing to spread work over.
//
// Panics: ErrExpired.
// Concurrency: as the token. Allocates: no.
func Workers(a Access) int {
	mustOpen(a)
	return 1
}

// Fork has the workers of the engine do all parts of a task, 0 up to parts, and returns when all
// are done. If spread is false, or a is not the frame of a system, the caller does them alone, in
// order; what comes out is the same. What parts put off and destroy is merged in the order of
// the parts.
//
// A part that panics or exits does not stop the others; the first of them in the order of the
// parts panics on from here.
//
// Panics: ErrExpired; ErrNotPublished on a snapshot.
// Concurrency: as the token. Allocates: no, but for growth.
func Fork(a Access, t Task, parts int, spread bool) {
	r := mustOpen(a)
	f := r.currentFrame()
	for part := range parts {
		t.Part(f, 0, part)
	}
}
