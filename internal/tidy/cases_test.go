package tidy_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/tidy"
)

// cases are how many hostile cases there are of each kind. Each is a test called after its id, logic-7 say, so that
// -run '/^logic-7$' finds it.
var cases = map[string]int{
	"handles": 9, "archetype": 9, "registry": 15, "logic": 18, "views": 8, "defrag": 5, "pool": 13, "snapshot": 6,
	"declare": 3, "inspect": 3,
}

var caseName = regexp.MustCompile(`^([a-z]+-[0-9]+)(/.*)?$`)

// caseless are the cases that no test of a module is called after.
func caseless(m *tidy.Module) (without []string) {
	called := map[string]bool{}
	for _, p := range m.Packages {
		for _, f := range p.Files {
			if !f.Test || p.Dir == "internal/tidy" { // the names here are no tests
				continue
			}
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(lit.Value); err == nil {
					if name := caseName.FindStringSubmatch(text); name != nil {
						called[name[1]] = true
					}
				}
				return true
			})
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(cases)) {
		for i := range cases[kind] {
			if id := fmt.Sprintf("%s-%d", kind, i+1); !called[id] {
				without = append(without, id)
			}
		}
	}
	return without
}

func TestEveryHostileCaseHasATestOfItsName(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the whole repository, which is the same in every build")
	}
	m, err := tidy.Load(os.DirFS(root(t)))
	require.NoError(t, err)
	assert.Empty(t, caseless(m))

	m, err = tidy.Load(module(map[string]string{
		"handles/a_test.go": `func f() { t.Run("handles-1", nil); t.Run("handles-2/twice", nil); t.Run("on handles-3", nil) }`,
		"handles/a.go":      `const name = "handles-4"`,
	}))
	require.NoError(t, err)
	without := caseless(m)
	assert.NotContains(t, without, "handles-1")
	assert.NotContains(t, without, "handles-2")
	assert.Subset(t, without, []string{"handles-3", "handles-4", "handles-9", "logic-18"})
	assert.Len(t, without, 87)
}
