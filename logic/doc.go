// Package logic runs a registry: frames at a fixed rate, systems in their phases, and the
// airlock by which other goroutines get at the storage.
//
// Logic is the role of owning the storage. An [Engine] plays it in [Engine.Run], as a loop of
// its own, or in [Engine.Step], a frame at a time. Once a frame, at its top, it opens the
// window and serves who waits: goroutines in [Engine.Spawn], which run their callback
// themselves while Logic stands still and hand the window to one another, and operations left
// by [Engine.Defer], [Engine.Enqueue] and a [Producer], which Logic runs. Whatever does not
// fit the frame's budget waits for the next, in order.
//
// A frame is: advance, bury the dead, give indices back, open the window, observers, the
// systems of PrePhysics, Physics, PostPhysics and Late, observers again.
//
// Life of an engine: New attaches it to the registry; it is idle, steps, or runs; Stop, the
// end of Run's context or a system's panic without an OnError ends it for good, after every
// accepted operation has run or been answered with [ErrStopped]. The registry is then free for
// another engine.
//
// What the package leaves to others: storage and structure to registry, loops over columns to
// views. It adds no rule of its own to either; the window's token carries them.
//
// Inside, the step of a frame is plain data and arithmetic (see stepper) and knows neither
// clock nor goroutine; the Engine is the shell around it. User code on Logic runs on an inner
// goroutine, because user code may end its goroutine: the next one goes on behind the culprit.
package logic
