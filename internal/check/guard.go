package check

import "sync/atomic"

// Guard notices two goroutines that are inside one place at once. It is not a lock: nobody
// waits, and what it reports is a bug of its user. The zero value is ready; a Guard must not be
// copied after first use.
//
// A second Enter by the goroutine that is inside already counts as an overlap too: the places
// guarded here are not reentrant.
//
// In a release build a Guard has no size and its methods no code. That is why the holder sits
// in an array: a loop over an empty one compiles to nothing, and so each method exists once
// for both builds.
type Guard struct {
	holder [guardWords]atomic.Pointer[string] // what is inside, nil when nobody is
}

// Enter marks the place as taken, by what.
//
// Panics: in a debug build, when somebody is inside.
// Concurrency: any goroutine; never waits. Allocates: in a debug build only.
func (g *Guard) Enter(what string) {
	if Enabled {
		entering := what // the copy escapes, and only in this build
		for i := range g.holder {
			if !g.holder[i].CompareAndSwap(nil, &entering) {
				inside := "somebody who has just left"
				if p := g.holder[i].Load(); p != nil {
					inside = *p
				}
				Failf("%s entered while %s is inside", what, inside)
			}
		}
	}
}

// Exit marks the place as free again.
//
// Panics: in a debug build, when nobody is inside.
// Concurrency: the goroutine that entered; never waits. Allocates: no.
func (g *Guard) Exit() {
	if Enabled {
		for i := range g.holder {
			if g.holder[i].Swap(nil) == nil {
				Failf("exit from a place that nobody entered")
			}
		}
	}
}
