//go:build !race

package registry_test

// racing says that the race detector is on.
const racing = false
