package declare_test

import (
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, src := range []string{
		"", " \t", pooled, rich, strings.ReplaceAll(pooled, "\n", "\r\n"), "\uFEFF" + pooled, "world {", "world { params { k = 1e999 } }",
		"world { pool p[2] { state = (x = ((((((1)))))) } }", "world { } systems { grid { on = 3 } }", "world { title = \"\\\"\xff\" }",
		"world { params { a = b b = a } }", "world { entity e { } } systems { update { on = e let a = b let b = a } }",
		"systems { update { on = p#1 // c\n x = p #3\n } } world { pool p[3] { hidden = x\n } }",
	} {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		wellPlaced(t, src)
		steady(t, src)
	})
}
