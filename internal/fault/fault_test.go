package fault_test

import (
	"bytes"
	"fmt"
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
	for p := range fault.Pauses {
		name := fault.Pause(p).String()
		assert.NotEmpty(t, name)
		assert.False(t, names[name], name)
		names[name] = true
	}
	assert.Equal(t, "Point(255)", fault.Point(255).String())
	assert.Equal(t, "Pause(255)", fault.Pause(255).String())
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

// script is a simulation that writes down what it is asked.
type script struct{ asked []string }

func (s *script) At(place fmt.Stringer) { s.asked = append(s.asked, "at "+place.String()) }

func (s *script) Wait(place fmt.Stringer, ready ...func() bool) int {
	s.asked = append(s.asked, "wait "+place.String())
	return len(ready) - 1
}

func (s *script) Fork(place fmt.Stringer) { s.asked = append(s.asked, "fork "+place.String()) }

func (s *script) Begin() int {
	s.asked = append(s.asked, "begin")
	return 7
}

func (s *script) End(id int, panicked any) {
	s.asked = append(s.asked, fmt.Sprint("end ", id, " ", panicked))
}

func TestASimulationIsAskedUntilItIsOver(t *testing.T) {
	s := new(script)
	tour := func() (chosen int) {
		fault.At(fault.Granted)
		fault.Yield(fault.Spinning)
		fault.Fork(fault.Inner)
		func() {
			defer fault.End(fault.Begin())
			if fault.Enabled && len(s.asked) == 4 {
				panic("told")
			}
		}()
		return fault.Wait(fault.Parked, nil, nil)
	}
	over := fault.Simulate(s)
	chosen := tour()
	over()
	assert.Equal(t, -1, tour())
	if fault.Enabled {
		assert.Equal(t, 1, chosen)
		assert.Equal(t, []string{"at granted", "at spinning", "fork inner", "begin", "end 7 told", "wait parked"}, s.asked)
	} else {
		assert.Equal(t, -1, chosen)
		assert.Empty(t, s.asked)
	}
}

func TestAPoolIsAStackInASimulation(t *testing.T) {
	var p fault.Pool
	var made, first, second = new(int), new(int), new(int)
	p.New = func() any { return made }
	defer fault.Simulate(new(script))()
	p.Put(first)
	p.Put(second)
	got := []any{p.Get(), p.Get(), p.Get()}
	if fault.Enabled {
		for i, want := range []*int{second, first, made} {
			assert.Same(t, want, got[i])
		}
	} else {
		assert.Len(t, got, 3)
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

// calls counts the calls of functions of package fault under n.
func calls(n ast.Node) (count int) {
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && !isFault(call.Fun, "Begin") {
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && isFault(call.Fun, s.Sel.Name) {
				count++
			}
		}
		return true
	})
	return count
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
						guarded += calls(n.Body)
					}
				case *ast.CallExpr:
					for _, name := range []string{"At", "Yield", "Wait", "Fork"} {
						if !isFault(n.Fun, name) {
							continue
						}
						if p, ok := n.Args[0].(*ast.SelectorExpr); ok {
							used[p.Sel.Name]++
							guarded--
						}
					}
					if isFault(n.Fun, "End") { // which begins in the same line
						guarded--
					}
				}
				return true
			})
			assert.Zero(t, guarded, "%s: a point without the constant in front of it", name)
		}
	}
	assert.Len(t, used, fault.Points+fault.Pauses, "each point and pause has its place")
	for name, places := range used {
		assert.Equal(t, 1, places, "%s: one name, one place", name)
	}
}
