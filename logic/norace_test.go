//go:build !race

package logic_test

const raceEnabled = false
