package tidy

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// packageDocs is the rule that each package, commands too, says in its doc.go what it is.
func packageDocs(m *Module, report report) {
	for _, p := range m.Packages {
		if !slices.ContainsFunc(p.Files, func(f *File) bool { return !f.Test }) {
			continue // only tests
		}
		i := slices.IndexFunc(p.Files, func(f *File) bool { return path.Base(f.Name) == "doc.go" })
		switch {
		case i < 0:
			report(p.Dir, "a package without doc.go")
		case p.Files[i].Syntax.Doc.Text() == "":
			report(p.Files[i].Name+":1", "doc.go without a package comment")
		}
	}
}

// exportedDocs is the rule that everything exported has a doc comment: functions, methods of
// exported types and of exported interfaces, types, constants and variables. A comment on a group
// of constants or variables, or behind one, will do. Fields are left to the comment of their type.
func exportedDocs(m *Module, report report) {
	for _, p := range m.Packages {
		if p.main() {
			continue // nobody can import it
		}
		for _, f := range p.Files {
			if f.Test {
				continue
			}
			for _, decl := range f.Syntax.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					if name, exported := exportedName(decl); exported && decl.Doc.Text() == "" {
						report(m.at(decl), "%s has no doc comment", name)
					}
				case *ast.GenDecl:
					exportedSpecs(m, decl, report)
				}
			}
		}
	}
}

// exportedSpecs checks the types, constants or variables of one declaration for exportedDocs.
func exportedSpecs(m *Module, decl *ast.GenDecl, report report) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			documented := spec.Doc.Text() != "" || spec.Comment.Text() != "" || !decl.Lparen.IsValid() && decl.Doc.Text() != ""
			if spec.Name.IsExported() && !documented {
				report(m.at(spec), "type %s has no doc comment", spec.Name.Name)
			}
			for method := range interfaceMethods(spec) {
				if method.Doc.Text() == "" && method.Comment.Text() == "" {
					report(m.at(method), "%s.%s has no doc comment", spec.Name.Name, method.Names[0].Name)
				}
			}
		case *ast.ValueSpec:
			if spec.Doc.Text() != "" || spec.Comment.Text() != "" || decl.Doc.Text() != "" {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					report(m.at(name), "%s %s has no doc comment", decl.Tok, name.Name)
				}
			}
		}
	}
}

// concurrencyLines is the rule that everything which can be called in a public package says
// who may call it, in a line of its doc that starts with "Concurrency:". Methods of an exported interface may
// leave that to the comment of the interface. Error, Unwrap and String are for any goroutine by their nature.
func concurrencyLines(m *Module, report report) {
	for _, p := range m.Packages {
		if _, layer, known := layerOf(p.Dir); !known || layer == 0 || layer == topLayer || internal(p.Dir) {
			continue
		}
		for _, f := range p.Files {
			if f.Test {
				continue
			}
			for _, decl := range f.Syntax.Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					name, exported := exportedName(decl)
					obvious := decl.Recv != nil && slices.Contains([]string{"Error", "Unwrap", "String"}, decl.Name.Name)
					if exported && !obvious && !saysConcurrency(decl.Doc) {
						report(m.at(decl), "%s does not say who may call it (Concurrency: …)", name)
					}
				case *ast.GenDecl:
					for _, spec := range decl.Specs {
						t, ok := spec.(*ast.TypeSpec)
						if !ok || saysConcurrency(t.Doc) || saysConcurrency(decl.Doc) {
							continue
						}
						for method := range interfaceMethods(t) {
							if !saysConcurrency(method.Doc) && !saysConcurrency(method.Comment) {
								report(m.at(method), "%s.%s does not say who may call it (Concurrency: …)", t.Name.Name, method.Names[0].Name)
							}
						}
					}
				}
			}
		}
	}
}

// internal reports whether a directory is hidden from other modules.
func internal(dir string) bool { return slices.Contains(strings.Split(dir, "/"), "internal") }

// saysConcurrency reports whether a comment has a concurrency line.
func saysConcurrency(doc *ast.CommentGroup) bool {
	for line := range strings.Lines(doc.Text()) {
		if strings.HasPrefix(line, "Concurrency:") && strings.TrimSpace(line) != "Concurrency:" {
			return true
		}
	}
	return false
}

// exportedName returns the name of a function, or of a method with its type, and whether other
// packages can call it by that name.
func exportedName(decl *ast.FuncDecl) (string, bool) {
	if decl.Recv == nil || len(decl.Recv.List) == 0 {
		return decl.Name.Name, decl.Name.IsExported()
	}
	receiver := decl.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.ParenExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.Name + "." + decl.Name.Name, t.IsExported() && decl.Name.IsExported()
		default:
			return decl.Name.Name, decl.Name.IsExported()
		}
	}
}

// interfaceMethods yields the exported methods that an exported interface type declares itself.
func interfaceMethods(spec *ast.TypeSpec) func(yield func(*ast.Field) bool) {
	return func(yield func(*ast.Field) bool) {
		t, ok := spec.Type.(*ast.InterfaceType)
		if !ok || !token.IsExported(spec.Name.Name) {
			return
		}
		for _, method := range t.Methods.List {
			if len(method.Names) == 1 && method.Names[0].IsExported() && !yield(method) {
				return
			}
		}
	}
}
