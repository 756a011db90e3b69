//go:build race

package logic_test

// raceEnabled shrinks what the race detector would make last minutes.
const raceEnabled = true
