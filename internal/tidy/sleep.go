package tidy

import (
	"go/ast"
	"slices"
)

// sleepingTests is the rule that no test waits for real time to pass: time.Sleep belongs in the
// bubble of testing/synctest, where it costs nothing and is exact.
func sleepingTests(m *Module, report report) {
	for _, p := range m.Packages {
		for _, f := range p.Files {
			name := ""
			for _, spec := range f.Syntax.Imports {
				if importPath(spec) == "time" {
					name = "time"
					if spec.Name != nil {
						name = spec.Name.Name
					}
				}
			}
			bubbles := slices.ContainsFunc(f.Syntax.Imports, func(s *ast.ImportSpec) bool { return importPath(s) == "testing/synctest" })
			if !f.Test || name == "" || bubbles {
				continue
			}
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Name == name && n.Sel.Name == "Sleep" {
						report(m.at(n), "a test sleeps outside of a synctest bubble")
					}
				case *ast.Ident:
					if name == "." && n.Name == "Sleep" {
						report(m.at(n), "a test sleeps outside of a synctest bubble")
					}
				}
				return true
			})
		}
	}
}
