package caller

import "reflect"

// ID returns what to call an object: the address p points to, which does not move while the
// object lives. Objects of size zero may share one.
//
// Panics: when p is not a pointer, map, channel or function.
// Concurrency: any goroutine; never waits. Allocates: no.
func ID(p any) uintptr { return reflect.ValueOf(p).Pointer() }

// Within calls fn, marked as inside id until it returns, panics or exits. Calls may be nested,
// with several ids.
//
// It is not inlined, so that its frame exists, and the address of id is taken, so that the
// argument stays in its place on the stack, where the runtime finds it for a trace. The frame of
// a call that was left by a panic or runtime.Goexit is still on the stack while deferred calls of
// its callers run; there the id is 0. A caller may clean up in such a call, and is not inside.
//
// Concurrency: any goroutine; never waits by itself. Allocates: no.
//
//go:noinline
func Within(id uintptr, fn func()) {
	defer leave(&id)
	fn()
}

// leave marks a frame of Within as left.
//
//go:noinline
func leave(id *uintptr) { *id = 0 }
