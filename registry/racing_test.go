//go:build race

package registry_test

// racing says that the race detector is on: everything is slower, and allocations are not
// what they are without it.
const racing = true
