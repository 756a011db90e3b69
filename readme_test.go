package airlock_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README begins with a program, and this is what keeps it true: it is example_test.go, byte
// for byte, which go test compiles, runs and compares with its output. The next ones, about published
// frames and about pools, are example_read_test.go and example_pools_test.go.
func TestTheReadmeShowsTheExample(t *testing.T) {
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	blocks := goBlocks(t, "README.md")
	require.Equal(t, string(example), blocks[0], "copy example_test.go into the first block of README.md")
	require.Less(t, strings.Count(string(example), "\n"), 60, "the first program a reader sees fits a screen")
	for i, name := range []string{"example_read_test.go", "example_pools_test.go"} {
		example, err = os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(example), blocks[i+1], "copy %s into block %d of README.md", name, i+2)
	}
}

// goBlocks returns what stands between the fences of Go code in a Markdown file: at least three blocks.
func goBlocks(t *testing.T, name string) (blocks []string) {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	for rest := string(text); ; {
		_, after, found := strings.Cut(rest, "```go\n")
		if !found {
			require.GreaterOrEqual(t, len(blocks), 3, "%s has less Go code than that", name)
			return blocks
		}
		block, next, found := strings.Cut(after, "```\n")
		require.True(t, found, "%s: a block of Go code has no end", name)
		blocks, rest = append(blocks, block), next
	}
}
