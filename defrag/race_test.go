//go:build race

package defrag_test

const raceEnabled = true
