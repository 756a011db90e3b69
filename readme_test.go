package airlock_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README begins with a program, and this is what keeps it true: it is example_test.go, byte
// for byte, which go test compiles, runs and compares with its output.
func TestTheReadmeShowsTheExample(t *testing.T) {
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	require.Equal(t, string(example), firstGoBlock(t, "README.md"), "copy example_test.go into the first block of README.md")
	require.Less(t, strings.Count(string(example), "\n"), 60, "the first program a reader sees fits a screen")
}

// firstGoBlock returns the lines between the first fence of Go code in a Markdown file and its end.
func firstGoBlock(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```go\n")
	require.True(t, found, "%s has no Go code", name)
	block, _, found := strings.Cut(rest, "```\n")
	require.True(t, found, "%s: the first block of Go code has no end", name)
	return block
}
