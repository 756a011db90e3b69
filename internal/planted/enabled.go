//go:build planted

package planted

import "os"

// Enabled says whether bugs can be switched on: the build tag planted. It is a constant, so that what
// stands behind it is compiled away in any other build.
const Enabled = true

// chosen is the bug of this process, read once.
var chosen = choose(os.Getenv(Variable))

// Is says whether b is the bug of this process.
//
// Concurrency: any goroutine; never waits. Allocates: no.
func Is(b Bug) bool { return b == chosen }

// choose finds a bug by its name. Panics: if there is none, for a run with a name that is misspelt would find nothing.
func choose(name string) Bug {
	if name == "" {
		return None
	}
	b, ok := Find(name)
	if !ok {
		panic("planted: there is no bug " + name)
	}
	return b
}
