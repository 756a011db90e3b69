package tidy

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Module is the parsed source of a Go module, and of those nested in it.
type Module struct {
	Path     string     // as in go.mod
	Packages []*Package // by directory, in the order of its name
	nested   []string   // directories of nested modules
	files    *token.FileSet
}

// Package is one directory with Go files: a package, its tests, or both.
type Package struct {
	Dir    string // below the module's root, "." for the root itself
	Nested string // directory of the nested module that it belongs to, "" for none
	Files  []*File
}

// File is one parsed Go file.
type File struct {
	Name     string // below the module's root
	Syntax   *ast.File
	Test     bool // named _test.go
	External bool // a test in a package of its own, "x_test"
}

// Problem is one place that breaks a rule.
type Problem struct {
	Rule string // the name of the rule
	At   string // "file:line", or a directory
	Text string
}

// String returns the problem as compilers print theirs.
func (p Problem) String() string { return fmt.Sprintf("%s: %s (%s)", p.At, p.Text, p.Rule) }

// Load parses the module whose root directory is fsys, with the modules nested in it. Those are called
// after their directories: another name in their go.mod is an error, and so are files that do not parse. It names
// all of them.
func Load(fsys fs.FS) (*Module, error) {
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	m := &Module{Path: modulePath(string(mod)), files: token.NewFileSet()}
	if m.Path == "" {
		return nil, errors.New("tidy: go.mod names no module")
	}
	byDir := map[string]*Package{}
	var broken []error
	err = fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if skipped(name) {
				return fs.SkipDir
			}
			mod, err := fs.ReadFile(fsys, path.Join(name, "go.mod"))
			if name == "." || errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if got, want := modulePath(string(mod)), m.Path+"/"+name; err == nil && got != want {
				broken = append(broken, fmt.Errorf("tidy: %s/go.mod: the module is %q, not %q", name, got, want))
			}
			m.nested = append(m.nested, name)
			return err
		case path.Ext(name) != ".go" || strings.HasPrefix(path.Base(name), "_") || strings.HasPrefix(path.Base(name), "."):
			return nil
		}
		source, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(m.files, name, source, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			broken = append(broken, err)
			return nil
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &Package{Dir: dir, Nested: m.nestedAt(dir)}
		}
		test := strings.HasSuffix(name, "_test.go")
		byDir[dir].Files = append(byDir[dir].Files, &File{
			Name: name, Syntax: syntax, Test: test,
			External: test && strings.HasSuffix(syntax.Name.Name, "_test"),
		})
		return nil
	})
	m.Packages = slices.SortedFunc(maps.Values(byDir), func(a, b *Package) int { return cmp.Compare(a.Dir, b.Dir) })
	return m, errors.Join(append(broken, err)...)
}

// skipped reports whether the go command would not look for packages in dir.
func skipped(dir string) bool {
	if dir == "." {
		return false
	}
	base := path.Base(dir)
	return base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_'
}

// nestedAt returns the directory of the nested module that dir is in, the innermost one, "" for none. Directories
// are walked from above, so those that matter are known.
func (m *Module) nestedAt(dir string) string {
	for ; dir != "."; dir = parent(dir) {
		if slices.Contains(m.nested, dir) {
			return dir
		}
	}
	return ""
}

// modulePath returns the path in the text of a go.mod file.
func modulePath(text string) string {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "module" {
			return fields[1]
		}
	}
	return ""
}

// at returns where a node is.
func (m *Module) at(node ast.Node) string {
	p := m.files.Position(node.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// importPath returns the path that an import spec names.
func importPath(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
	return p
}

// main reports whether the package is a command.
func (p *Package) main() bool {
	return slices.ContainsFunc(p.Files, func(f *File) bool { return !f.Test && f.Syntax.Name.Name == "main" })
}
