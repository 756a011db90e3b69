package main

import (
	"errors"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// explained is an error of the command line; one that names an unknown flag or command says which one is nearest. kong
// knows those that are two letters away, and may name several.
func explained(app *kong.Application, err error) string {
	text := err.Error()
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return text
	}
	for _, what := range []string{"unknown flag ", "unexpected argument "} {
		given, ok := strings.CutPrefix(text, what)
		if !ok {
			continue
		}
		given, _, _ = strings.Cut(given, ", did you mean")
		text = what + given
		if name := nearest(given, candidates(app, parse.Context, what == "unknown flag ")); name != "" {
			text += ", did you mean " + name + "?"
		}
		return text
	}
	return plain(text)
}

// plain says what kong says of a value that is missing or of another kind, without the words of its scanner. What it does not
// know stays as it is.
func plain(text string) string {
	for _, r := range rewordings {
		if m := r.of.FindStringSubmatchIndex(text); m != nil {
			return string(r.of.ExpandString(nil, r.to, text, m))
		}
	}
	return text
}

var rewordings = []struct {
	of *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`^expected one of "`), `a command is missing, such as arena or run`},
	{regexp.MustCompile(`^expected "(.+)"$`), `$1 is missing`},
	{regexp.MustCompile(`^missing flags: (.+)$`), `$1 is missing`},
	{regexp.MustCompile(`^(--[a-z-]+): expected \w+ value but got "EOL"`), `$1 needs a value`},
	{regexp.MustCompile(`^(--[a-z-]+): expected \w+ value but got "(.+)" \(short flag\)`), `$1 needs a value, and $2 looks like a flag: write $1=$2`},
	{regexp.MustCompile(`^(--[a-z-]+): expected a valid 64 bit int but got (".*")$`), `$1 needs a whole number, not $2`},
	{regexp.MustCompile(`^(--[a-z-]+): expected a valid 64 bit uint but got (".*")$`), `$1 needs a whole number from 0 on, not $2`},
	{regexp.MustCompile(`^(--[a-z-]+): expected duration but got (".*?"): `), `$1 needs a time such as 10s or 5m, not $2`},
}

// candidates are the flags that could stand where the line went wrong, or the commands.
func candidates(app *kong.Application, at *kong.Context, flags bool) (names []string) {
	node := app.Node
	if at != nil && at.Selected() != nil {
		node = at.Selected()
	}
	if flags {
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				names = append(names, "--"+f.Name)
			}
		}
		return names
	}
	for _, c := range node.Children {
		names = append(names, c.Name)
	}
	return names
}

// nearest is the candidate that is fewest edits away, the first of several, and none that shares hardly anything with what was
// given. What begins like a candidate means it.
func nearest(given string, candidates []string) (best string) {
	length := len(strings.TrimLeft(given, "-"))
	least := max(2, length/3) + 1
	for _, c := range candidates {
		d := distance(given, c)
		if length > 1 && strings.HasPrefix(c, given) {
			d = 1
		}
		if d < least {
			best, least = c, d
		}
	}
	return best
}

// distance is how many letters have to be put in, left out, replaced or swapped with their neighbour to make b of a.
func distance(a, b string) int {
	before, last, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(last[j]+1, next[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}
