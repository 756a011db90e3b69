package planted_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/planted"
)

func TestEveryBugHasItsOwnName(t *testing.T) {
	require.Greater(t, planted.Bugs, 40)
	for b := range planted.Bugs {
		d := planted.Describe(planted.Bug(b))
		assert.NotEmpty(t, d.Wrong, "bug %d", b)
		found, ok := planted.Find(d.Name)
		assert.True(t, ok, d.Name)
		assert.Equal(t, planted.Bug(b), found, "two are called %s", d.Name)
		assert.Equal(t, d.Name, planted.Bug(b).String())
	}
	assert.Equal(t, "Bug(255)", planted.Bug(255).String())
	_, ok := planted.Find("no such bug")
	assert.False(t, ok)
}

func TestWithoutAChoiceThereIsNoBug(t *testing.T) {
	if os.Getenv(planted.Variable) != "" {
		t.Skip("one is chosen")
	}
	for b := 1; b < planted.Bugs; b++ {
		assert.False(t, planted.Enabled && planted.Is(planted.Bug(b)), planted.Bug(b).String())
	}
}

var use = regexp.MustCompile(`(planted\.Enabled && )?planted\.Is\(planted\.(\w+)\)`)

func TestEveryBugIsPlantedOnceInItsPackage(t *testing.T) {
	used := make(map[string]int)
	root := "../.."
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return cmpErr(err)
		}
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasPrefix(dir, "internal") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range use.FindAllSubmatch(src, -1) {
			assert.NotEmpty(t, m[1], "%s: a bug without the constant in front of it", path)
			used[string(m[2])+" in "+filepath.ToSlash(dir)]++
		}
		return nil
	}))
	assert.Len(t, used, planted.Bugs-1, "each bug has its place")
	packages := make(map[string]int)
	for what, places := range used {
		assert.Equal(t, 1, places, "%s: one name, one place", what)
		_, pkg, _ := strings.Cut(what, " in ")
		packages[pkg]++
	}
	for b := 1; b < planted.Bugs; b++ {
		packages[planted.Describe(planted.Bug(b)).Package]--
	}
	for pkg, n := range packages {
		assert.Zero(t, n, "%s has more or fewer bugs than are described", pkg)
	}
}

// cmpErr passes over a directory if there is no error.
func cmpErr(err error) error {
	if err == nil {
		return fs.SkipDir
	}
	return err
}

// instruction is a line of the compiler's listing: offset, position, mnemonic, operands.
var instruction = regexp.MustCompile(`^\t0x[0-9a-f]+ \d+ \([^)]*\)\t(.*)$`)

// listing is what the compiler makes of the functions of a package, without positions and bookkeeping.
func listing(t *testing.T, dir string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "build", "-gcflags=-S", dir) // without the tags of this test's own run
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), out.String())
	functions := make(map[string][]string)
	name := ""
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, "\n")
		if symbol, rest, ok := strings.Cut(line, " STEXT "); ok {
			name = symbol[strings.LastIndexByte(symbol, '.')+1:]
			_, args, _ := strings.Cut(rest, "size=")
			functions[name] = []string{"size=" + strings.Fields(args)[0]}
			continue
		}
		m := instruction.FindStringSubmatch(line)
		if name == "" || m == nil {
			continue
		}
		switch op, _, _ := strings.Cut(m[1], "\t"); op {
		case "TEXT", "FUNCDATA", "PCDATA":
		default:
			functions[name] = append(functions[name], m[1])
		}
	}
	return functions
}

func TestABugCostsNothingInAnOrdinaryBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the compiler")
	}
	functions := listing(t, "./testdata/cost")
	require.Greater(t, len(functions["Without"]), 5, "the listing is not understood")
	assert.Equal(t, functions["Without"], functions["With"])
}
