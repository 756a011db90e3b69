package check

import "fmt"

// Failf panics with a broken invariant. Call it behind Enabled and after the test has failed,
// so that a passing check formats nothing.
//
// Panics: always, with a string that starts with "airlock: invariant broken: ".
// Concurrency: any goroutine.
func Failf(format string, args ...any) {
	panic("airlock: invariant broken: " + fmt.Sprintf(format, args...))
}
