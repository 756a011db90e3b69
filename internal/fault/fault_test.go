package fault_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/fault"
)

func TestEveryPointHasItsOwnName(t *testing.T) {
	names := make(map[string]bool)
	for p := range fault.Points {
		name := fault.Point(p).String()
		assert.NotEmpty(t, name)
		assert.False(t, names[name], name)
		names[name] = true
	}
	assert.Equal(t, "Point(255)", fault.Point(255).String())
}

func TestAFunctionHangsUntilItIsTakenDown(t *testing.T) {
	var ran []string
	first := fault.Hang(fault.Granted, func() { ran = append(ran, "first") })
	fault.At(fault.Granted)
	fault.At(fault.Returned)
	second := fault.Hang(fault.Granted, func() { ran = append(ran, "second") })
	first() // the second one stays
	fault.At(fault.Granted)
	second()
	fault.At(fault.Granted)
	if fault.Enabled {
		assert.Equal(t, []string{"first", "second"}, ran)
	} else {
		assert.Empty(t, ran)
	}
}

// instruction is a line of the compiler's listing: offset, position, mnemonic, operands.
var instruction = regexp.MustCompile(`^\t0x[0-9a-f]+ \d+ \([^)]*\)\t(.*)$`)

// listing is what the compiler makes of the functions of a package, without positions and bookkeeping.
func listing(t *testing.T, dir string) map[string][]string {
	t.Helper()
	// Flags of this test's own run, such as -race or -cover, do not reach the child.
	cmd := exec.Command("go", "build", "-gcflags=-S", dir)
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

func TestAPointCostsNothingInAnOrdinaryBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the compiler")
	}
	functions := listing(t, "./testdata/cost")
	require.Greater(t, len(functions["Without"]), 5, "the listing is not understood")
	assert.Equal(t, functions["Without"], functions["With"])
}

// isFault says whether x is fault.name.
func isFault(x ast.Expr, name string) bool {
	s, ok := x.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "fault"
}

func TestEveryPointStandsBehindTheConstant(t *testing.T) {
	used := make(map[string]int)
	for _, dir := range []string{"../../logic", "../../registry"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, name := range files {
			src, err := os.ReadFile(name)
			require.NoError(t, err)
			if strings.HasSuffix(name, "_test.go") || !bytes.Contains(src, []byte("internal/fault")) {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, name, src, 0)
			require.NoError(t, err)
			guarded := 0
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.IfStmt:
					cond := n.Cond
					if and, ok := cond.(*ast.BinaryExpr); ok && and.Op == token.LAND {
						cond = and.X
					}
					if isFault(cond, "Enabled") {
						guarded++
					}
				case *ast.CallExpr:
					if isFault(n.Fun, "At") {
						if p, ok := n.Args[0].(*ast.SelectorExpr); ok {
							used[p.Sel.Name]++
							guarded--
						}
					}
				}
				return true
			})
			assert.Zero(t, guarded, "%s: a point without the constant in front of it", name)
		}
	}
	assert.Len(t, used, fault.Points, "each point has its place")
	for name, places := range used {
		assert.Equal(t, 1, places, "%s: one name, one place", name)
	}
}
