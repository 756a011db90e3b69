package airlock_test

import (
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The README begins with a program, and this is what keeps it true: it is example_test.go, byte
// for byte, which go test compiles, runs and compares with its output. The next ones, about published
// frames and about pools, are example_read_test.go and example_pools_test.go.
func TestTheReadmeShowsTheExample(t *testing.T) {
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	blocks := goBlocks(t, "README.md")
	require.Equal(t, string(example), blocks[0].text, "copy example_test.go into the first block of README.md")
	require.Less(t, strings.Count(string(example), "\n"), 60, "the first program a reader sees fits a screen")
	for i, name := range []string{"example_read_test.go", "example_pools_test.go"} {
		example, err = os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(example), blocks[i+1].text, "copy %s into block %d of README.md", name, i+2)
	}
}

// The guide shows parts of programs, the cookbook whole ones. Each is an example with output, which go test compiles, runs
// and compares, in a package of its own: what a page shows stands in the file that it has named last.
func TestThePagesShowTheirPrograms(t *testing.T) {
	for page, dir := range map[string]string{"docs/GUIDE.md": "examples/guide", "docs/COOKBOOK.md": "examples/cookbook"} {
		programs := examples(t, dir)
		shown := map[string]int{}
		for _, b := range blocks(t, page) {
			at := fmt.Sprintf("%s:%d", page, b.line)
			switch b.kind {
			case "go":
				p, ok := programs[filepath.Join(filepath.Dir(page), b.program)]
				if !assert.True(t, ok, "%s: %q is no example", at, b.program) {
					continue
				}
				shown[p.name]++
				if dir == "examples/cookbook" {
					assert.Equal(t, p.source, b.text, "%s shows %s whole", at, p.name)
				} else {
					assert.True(t, p.has(b.text), "%s: this is not in %s:\n%s", at, p.name, b.text)
				}
			case "text":
				p := programs[filepath.Join(filepath.Dir(page), b.program)]
				assert.Contains(t, "\n"+p.output, "\n"+b.text, "%s: %s does not print that", at, p.name)
			default:
				t.Errorf("%s: a block of %q: what is to be done with it?", at, b.kind)
			}
		}
		for name := range programs {
			assert.Positive(t, shown[filepath.Base(name)], "%s shows nothing of %s", page, name)
		}
	}
}

// Every package that others import shows its main use: in an example with output, which go test runs.
func TestEveryPackageHasAnExample(t *testing.T) {
	packages := 0
	require.NoError(t, filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch {
		case path != "." && strings.HasPrefix(d.Name(), "."), d.Name() == "internal", d.Name() == "testdata",
			path == "cmd", path == "examples", path == "bench", path == "tools":
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "doc.go")); err != nil {
			return nil // no package
		}
		packages++
		for _, list := range examplesIn(t, path) {
			for _, e := range list {
				if e.Output != "" {
					return nil
				}
			}
		}
		t.Errorf("%s has no example with output", path)
		return nil
	}))
	require.GreaterOrEqual(t, packages, 13)
}

// Every link in the README and the pages leads somewhere: to a file or directory of the repository, or a heading.
func TestLinksLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	links := 0
	for _, page := range append(pages, "README.md") {
		for i, line := range strings.Split(prose(t, page), "\n") {
			for _, m := range regexp.MustCompile(`\]\(([^()\s]+)\)`).FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				links++
				path, anchor, _ := strings.Cut(m[1], "#")
				target := page
				if path != "" {
					target = filepath.Join(filepath.Dir(page), path)
				}
				_, err := os.Stat(target)
				if !assert.NoError(t, err, "%s:%d", page, i+1) || anchor == "" {
					continue
				}
				assert.Contains(t, anchors(t, target), anchor, "%s:%d: %s has no such heading", page, i+1, target)
			}
		}
	}
	require.Greater(t, links, 50)
}

func TestAnchorsAreThoseOfHeadings(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.md")
	require.NoError(t, os.WriteFile(name, []byte("# One, two\n## `Step` in somebody's loop\n```sh\n# no heading\n```\n## One, two\n"), 0o600))
	require.Equal(t, []string{"one-two", "step-in-somebodys-loop", "one-two-1"}, anchors(t, name))
}

// block is what stands between two fences.
type block struct {
	kind, text string
	line       int
	program    string // the link to a test file that stands nearest above
}

// goBlocks returns the Go code in a Markdown file: at least three blocks.
func goBlocks(t *testing.T, name string) (list []block) {
	for _, b := range blocks(t, name) {
		if b.kind == "go" {
			list = append(list, b)
		}
	}
	require.GreaterOrEqual(t, len(list), 3, "%s has less Go code than that", name)
	return list
}

func blocks(t *testing.T, name string) (list []block) {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	program, open := "", false
	for i, line := range strings.SplitAfter(string(text), "\n") {
		kind, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !open:
			list, open = append(list, block{kind: strings.TrimSpace(kind), line: i + 1, program: program}), true
		case fence:
			open = false
		case open:
			list[len(list)-1].text += line
		default:
			if m := regexp.MustCompile(`\]\((\S+_test\.go)\)`).FindStringSubmatch(line); m != nil {
				program = m[1]
			}
		}
	}
	require.False(t, open, "%s: a block has no end", name)
	return list
}

// prose is a page with its blocks and code spans left empty, line by line.
func prose(t *testing.T, name string) string {
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var out strings.Builder
	open := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "```") {
			open = !open
		} else if !open {
			out.WriteString(regexp.MustCompile("`[^`\n]*`").ReplaceAllStringFunc(line, func(code string) string {
				return strings.NewReplacer("(", "", ")", "", "[", "", "]", "").Replace(code)
			}))
			continue
		}
		out.WriteString("\n")
	}
	return out.String()
}

// anchors are the names that a page's headings have in links.
func anchors(t *testing.T, name string) (list []string) {
	seen := map[string]int{}
	for _, line := range strings.Split(prose(t, name), "\n") {
		hashes, title, ok := strings.Cut(line, " ")
		if !ok || hashes == "" || strings.Trim(hashes, "#") != "" {
			continue
		}
		anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(title), "")
		anchor = strings.ReplaceAll(anchor, " ", "-")
		seen[anchor]++
		if n := seen[anchor]; n > 1 {
			anchor = fmt.Sprintf("%s-%d", anchor, n-1)
		}
		list = append(list, anchor)
	}
	return list
}

// program is a file with an example.
type program struct{ name, source, output string }

// has says whether a part of the program is the text, at some depth.
func (p program) has(text string) bool {
	for depth := range 5 {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			if line != "" {
				lines[i] = strings.Repeat("\t", depth) + line
			}
		}
		if strings.Contains("\n"+p.source, "\n"+strings.Join(lines, "\n")) {
			return true
		}
	}
	return false
}

// examples are the programs of a package of examples, by path. Each has output to compare, and so is run.
func examples(t *testing.T, dir string) map[string]program {
	programs := map[string]program{}
	for name, list := range examplesIn(t, dir) {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, e := range list {
			require.NotEmpty(t, e.Output, "%s has no output, so nobody runs it", name)
			require.NotContains(t, programs, name, "one example a file")
			programs[name] = program{filepath.Base(name), string(source), e.Output}
		}
	}
	require.NotEmpty(t, programs)
	return programs
}

// examplesIn are the examples of a directory, by the path of their file.
func examplesIn(t *testing.T, dir string) map[string][]*doc.Example {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	list := map[string][]*doc.Example{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		list[name] = doc.Examples(file)
	}
	return list
}
