//go:build race

package declare_test

// raced says whether the race detector is on, which slows everything down.
const raced = true
