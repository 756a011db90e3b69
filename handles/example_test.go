package handles_test

import (
	"fmt"

	"github.com/airlock-ecs/airlock/handles"
)

// An index lives, dies, and waits for a confirm before it comes back with the next generation.
func Example() {
	space := handles.NewLocals(handles.LocalsConfig{Limit: 1})

	first, _ := space.Issue(0)
	fmt.Println(first, space.Alive(first))

	space.Kill(first)     // any goroutine; of several exactly one wins
	space.Free(first, 10) // the owner, once the entity's memory is reclaimed: in frame 10
	_, ok := space.Issue(0)
	fmt.Println("issued while pending:", ok)

	space.ConfirmThrough(10)
	second, _ := space.Reserve() // any goroutine: a name now, the entity later
	fmt.Println(second, space.Status(second), "-", first, space.Status(first))

	space.Spawned(second, 0)
	fmt.Println(space.Alive(second), space.Stats().Issued)
	// Output:
	// L1.1 true
	// issued while pending: false
	// L1.2 not spawned - L1.1 stale
	// true 1
}

// A net handle is a string in JSON and eight bytes on the wire.
func ExampleNet() {
	n := handles.NewNet(0, 7, 3)
	parsed, rest, err := handles.ParseNet(n.Append(nil))
	fmt.Println(n, parsed == n, len(rest), err, n.Wire())
	// Output: N0:7.3 true 0 <nil> 7
}
