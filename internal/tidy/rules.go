package tidy

import (
	"cmp"
	"fmt"
	"slices"
)

// report is how a rule says that something is wrong at a place.
type report func(at, format string, args ...any)

// Check returns what breaks the rules in m, in the order of the places.
func Check(m *Module) []Problem {
	var problems []Problem
	for _, rule := range []struct {
		name  string
		check func(*Module, report)
	}{
		{"layers", layers},
		{"modules", foreignModules},
		{"unsafe", unsafeUse},
		{"sleep", sleepingTests},
		{"doc.go", packageDocs},
		{"documented", exportedDocs},
		{"concurrency", concurrencyLines},
	} {
		rule.check(m, func(at, format string, args ...any) {
			problems = append(problems, Problem{Rule: rule.name, At: at, Text: fmt.Sprintf(format, args...)})
		})
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.At, b.At) })
	return problems
}
