package tidy_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/internal/tidy"
)

// root returns the directory of this module.
func root(t *testing.T) string {
	dir, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		require.NotEqual(t, dir, filepath.Dir(dir), "no go.mod above the test")
		dir = filepath.Dir(dir)
	}
}

func TestThisRepositoryIsTidy(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the whole repository, which is the same in every build")
	}
	m, err := tidy.Load(os.DirFS(root(t)))
	require.NoError(t, err)
	assert.Equal(t, "github.com/airlock-ecs/airlock", m.Path)
	assert.True(t, slices.ContainsFunc(m.Packages, func(p *tidy.Package) bool { return p.Dir == "snapshot/zstd" && p.Nested == p.Dir }))
	for _, problem := range tidy.Check(m) {
		t.Error(problem)
	}
}

// leftOut instead of a file's source means that there is no such file.
const leftOut = "left out"

// module makes a module named "m" in memory. A file without a package clause gets one named after
// its directory; each package gets a doc.go unless the files bring one or have it left out.
func module(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{"go.mod": {Data: []byte("// A module.\nmodule m // here\n\ngo 1.26\n")}}
	for name, source := range files {
		if source == leftOut {
			continue
		}
		dir := filepath.Dir(name)
		clause := "package " + filepath.Base(dir) + "\n"
		if !strings.Contains(source, "package ") && filepath.Ext(name) == ".go" {
			source = clause + source
		}
		fsys[name] = &fstest.MapFile{Data: []byte(source)}
		doc := filepath.Join(dir, "doc.go")
		if _, ok := files[doc]; !ok && !strings.HasSuffix(name, "_test.go") {
			fsys[doc] = &fstest.MapFile{Data: []byte("// Package doc says what it is.\n" + clause)}
		}
	}
	return fsys
}

// problems loads and checks a module made of files.
func problems(t *testing.T, files map[string]string) []string {
	m, err := tidy.Load(module(files))
	require.NoError(t, err)
	found := []string{}
	for _, p := range tidy.Check(m) {
		found = append(found, p.String())
	}
	return found
}

func TestEachRuleCanFail(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []string // none: this is fine
	}{
		// Layers.
		{"imports downwards", map[string]string{
			"handles/a.go":             `import _ "m/internal/bitset"`,
			"registry/a.go":            `import (_ "m/handles"; _ "m/archetype"; _ "m/internal/check")`,
			"logic/a.go":               `import (_ "m/registry"; _ "m/views")`,
			"cmd/airlock/a.go":         `import (_ "m/examples/arena"; _ "m/logic"; _ "m/internal/check")`,
			"examples/arena/a.go":      `import (_ "m/logic"; _ "m/stress"; _ "m/examples/arena/wire")`,
			"examples/arena/wire/a.go": `import _ "m/handles"`,
			"stress/load/a.go":         `import _ "m/logic"`,
			"example_test.go":          "package airlock_test\nimport _ \"m/logic\"",
		}, nil},
		{"upwards", map[string]string{"handles/a.go": `import _ "m/registry"`},
			[]string{"handles/a.go:2: handles of layer 1 imports registry of layer 3 (layers)"}},
		{"sideways", map[string]string{"views/a.go": `import _ "m/pool"`},
			[]string{"views/a.go:2: views of layer 4 imports pool of layer 4 (layers)"}},
		{"sideways at the bottom", map[string]string{"internal/bitset/a.go": `import _ "m/internal/check"`},
			[]string{"internal/bitset/a.go:2: internal/bitset of layer 0 imports internal/check of layer 0 (layers)"}},
		{"upwards in a test", map[string]string{"archetype/a_test.go": `import _ "m/logic"`},
			[]string{"archetype/a_test.go:2: archetype of layer 2 imports logic of layer 5 (layers)"}},
		{"upwards behind a build tag", map[string]string{"handles/a.go": "//go:build plan9\n\npackage handles\nimport _ \"m/views\""},
			[]string{"handles/a.go:4: handles of layer 1 imports views of layer 4 (layers)"}},
		{"upwards into a part", map[string]string{"logic/a.go": `import _ "m/stress/load"`},
			[]string{"logic/a.go:2: logic of layer 5 imports stress/load of layer 6 (layers)"}},
		{"stress from a test in a package of its own", map[string]string{"handles/a_test.go": "package handles_test\nimport _ \"m/stress\""}, nil},
		{"stress from a test inside the package", map[string]string{"handles/a_test.go": `import _ "m/stress"`},
			[]string{"handles/a_test.go:2: handles of layer 1 imports stress of layer 6 (layers)"}},
		{"one example from another", map[string]string{"examples/a/a.go": `import _ "m/examples/b"`},
			[]string{"examples/a/a.go:2: examples/a of layer 7 imports examples/b of layer 7 (layers)"}},
		{"an example from the library", map[string]string{"stress/a.go": `import _ "m/examples/arena"`},
			[]string{"stress/a.go:2: stress of layer 6 imports examples/arena of layer 7 (layers)"}},
		{"another example from the command", map[string]string{"cmd/airlock/a.go": `import _ "m/examples/b"`},
			[]string{"cmd/airlock/a.go:2: cmd/airlock of layer 7 imports examples/b of layer 7 (layers)"}},
		{"the root", map[string]string{"logic/a.go": `import _ "m"`},
			[]string{"logic/a.go:2: logic of layer 5 imports . of layer 7 (layers)"}},
		{"a package without a layer", map[string]string{"utils/a.go": "", "logic/a.go": `import _ "m/internal/utils"`},
			[]string{"logic/a.go:2: imports internal/utils, which has no layer (layers)",
				"utils: a package without a layer: give it one in docs/ARCHITECTURE.md and in this rule (layers)"}},
		{"a module whose name goes on", map[string]string{"handles/a.go": `import _ "m2.example/registry"`},
			[]string{"handles/a.go:2: the library may not import m2.example/registry (modules)"}},

		// Foreign modules.
		{"the chosen modules", map[string]string{
			"logic/a.go": `import (_ "go.uber.org/atomic"; _ "github.com/puzpuzpuz/xsync/v3"; _ "github.com/zeebo/xxh3"; _ "go/ast")`,
			"logic/a_test.go": `import (_ "github.com/stretchr/testify/require"; _ "pgregory.net/rapid"; _ "go.uber.org/goleak"
				_ "github.com/anishathalye/porcupine"; _ "go.uber.org/atomic")`,
			"cmd/airlock/a.go":      `import (_ "github.com/alecthomas/kong"; _ "go.uber.org/atomic")`,
			"cmd/airlock/a_test.go": `import (_ "github.com/alecthomas/kong"; _ "github.com/stretchr/testify/assert")`,
		}, nil},
		{"a test module in the library", map[string]string{"stress/a.go": `import _ "github.com/stretchr/testify/require"`},
			[]string{"stress/a.go:2: the library may not import github.com/stretchr/testify/require (modules)"}},
		{"a test module in a command", map[string]string{"cmd/airlock/a.go": `import _ "pgregory.net/rapid"`},
			[]string{"cmd/airlock/a.go:2: a command may not import pgregory.net/rapid (modules)"}},
		{"the command's module in an example", map[string]string{"examples/arena/a.go": `import _ "github.com/alecthomas/kong"`},
			[]string{"examples/arena/a.go:2: the library may not import github.com/alecthomas/kong (modules)"}},
		{"the command's module in a test of the library", map[string]string{"logic/a_test.go": `import _ "github.com/alecthomas/kong"`},
			[]string{"logic/a_test.go:2: tests may not import github.com/alecthomas/kong (modules)"}},
		{"a stranger", map[string]string{"logic/a.go": `import _ "golang.org/x/sync/errgroup"`},
			[]string{"logic/a.go:2: the library may not import golang.org/x/sync/errgroup (modules)"}},
		{"another version", map[string]string{"logic/a.go": `import _ "github.com/puzpuzpuz/xsync/v4"`},
			[]string{"logic/a.go:2: the library may not import github.com/puzpuzpuz/xsync/v4 (modules)"}},
		{"a name that goes on", map[string]string{"logic/a.go": `import _ "go.uber.org/atomic2"`},
			[]string{"logic/a.go:2: the library may not import go.uber.org/atomic2 (modules)"}},
		{"C", map[string]string{"logic/a.go": `import "C"`},
			[]string{"logic/a.go:2: imports C: the module is pure Go (modules)"}},

		{"a nested module", map[string]string{"snapshot/zstd/go.mod": "module m/snapshot/zstd",
			"snapshot/zstd/a.go":      `import (_ "m/snapshot"; _ "github.com/klauspost/compress/zstd"; _ "github.com/zeebo/xxh3"; _ "m/snapshot/zstd/x")`,
			"snapshot/zstd/a_test.go": `import (_ "github.com/klauspost/compress/zstd"; _ "github.com/stretchr/testify/require")`}, nil},
		{"a nested module's choice outside of it", map[string]string{"snapshot/zstd/go.mod": "module m/snapshot/zstd",
			"snapshot/a.go": `import _ "github.com/klauspost/compress/zstd"`},
			[]string{"snapshot/a.go:2: the library may not import github.com/klauspost/compress/zstd (modules)"}},
		{"a stranger in a nested module", map[string]string{"snapshot/zstd/go.mod": "module m/snapshot/zstd",
			"snapshot/zstd/x/a.go": `import _ "golang.org/x/sync/errgroup"`},
			[]string{"snapshot/zstd/x/a.go:2: the module snapshot/zstd may not import golang.org/x/sync/errgroup (modules)"}},
		{"a nested module from outside", map[string]string{"snapshot/zstd/go.mod": "module m/snapshot/zstd",
			"snapshot/a.go": `import _ "m/snapshot/zstd"`, "cmd/airlock/a.go": `import _ "m/snapshot/zstd/x"`},
			[]string{"snapshot/a.go:2: imports m/snapshot/zstd, which is a module of its own (modules)",
				"cmd/airlock/a.go:2: imports m/snapshot/zstd/x, which is a module of its own (modules)"}},
		{"a nested module upwards", map[string]string{"snapshot/zstd/go.mod": "module m/snapshot/zstd", "snapshot/zstd/a.go": `import _ "m/logic"`},
			[]string{"snapshot/zstd/a.go:2: snapshot of layer 4 imports logic of layer 5 (layers)"}},
		{"benchmarks beside other libraries", map[string]string{"bench/go.mod": "module m/bench",
			"bench/work/a.go":   `import (_ "m/logic"; _ "m/bench/contest"; _ "github.com/mlange-42/ark/ecs"; _ "gonum.org/v1/plot/vg")`,
			"bench/report/a.go": "// F is documented.\nfunc F() {}", "logic/a.go": `import _ "m/bench/contest"`},
			[]string{"logic/a.go:2: logic of layer 5 imports bench/contest of layer 7 (layers)",
				"logic/a.go:2: imports m/bench/contest, which is a module of its own (modules)"}},
		{"a nested module does not say", map[string]string{"snapshot/zstd/go.mod": "module m/snapshot/zstd", "snapshot/zstd/a.go": "func F() {}"},
			[]string{"snapshot/zstd/a.go:2: F has no doc comment (documented)", "snapshot/zstd/a.go:2: F does not say who may call it (Concurrency: …) (concurrency)"}},

		// Unsafe.
		{"unsafe where it may be", map[string]string{"archetype/a.go": `import _ "unsafe"`, "registry/a_test.go": `import _ "unsafe"`, "views/a.go": `import _ "unsafe"`}, nil},
		{"unsafe elsewhere", map[string]string{"logic/a.go": `import u "unsafe"`},
			[]string{"logic/a.go:2: unsafe outside of archetype, registry and views (unsafe)"}},
		{"unsafe in a test", map[string]string{"handles/a_test.go": `import _ "unsafe"`},
			[]string{"handles/a_test.go:2: unsafe outside of archetype, registry and views (unsafe)"}},
		{"unsafe in a part of the registry", map[string]string{"registry/internal/x/a.go": `import _ "unsafe"`},
			[]string{"registry/internal/x/a.go:2: unsafe outside of archetype, registry and views (unsafe)"}},

		// Sleeping tests.
		{"sleeping in a bubble, or not in a test", map[string]string{
			"logic/a_test.go": "import (\"time\"; \"testing/synctest\")\nfunc f() { time.Sleep(1); synctest.Wait() }",
			"logic/b_test.go": "import \"time\"\nfunc g() { time.Now(); other.Sleep() }",
			"logic/a.go":      "import \"time\"\nfunc h() { time.Sleep(1) }",
		}, nil},
		{"a sleeping test", map[string]string{"logic/a_test.go": "import \"time\"\nfunc f() { time.Sleep(1) }"},
			[]string{"logic/a_test.go:3: a test sleeps outside of a synctest bubble (sleep)"}},
		{"under another name", map[string]string{"logic/a_test.go": "import clock \"time\"\nvar pause = clock.Sleep"},
			[]string{"logic/a_test.go:3: a test sleeps outside of a synctest bubble (sleep)"}},
		{"without a name", map[string]string{"logic/a_test.go": "import . \"time\"\nfunc f() { Sleep(1) }"},
			[]string{"logic/a_test.go:3: a test sleeps outside of a synctest bubble (sleep)"}},

		// Package documentation.
		{"no doc.go", map[string]string{"logic/doc.go": leftOut, "logic/a.go": "// Package logic.\npackage logic"},
			[]string{"logic: a package without doc.go (doc.go)"}},
		{"no doc.go in a command", map[string]string{"cmd/x/doc.go": leftOut, "cmd/x/a.go": "package main"},
			[]string{"cmd/x: a package without doc.go (doc.go)"}},
		{"an empty doc.go", map[string]string{"logic/doc.go": "// Apart.\n\npackage logic"},
			[]string{"logic/doc.go:1: doc.go without a package comment (doc.go)"}},
		{"only tests", map[string]string{"logic/a_test.go": ""}, nil},

		// Documentation of what is exported.
		{"documented", map[string]string{
			"internal/check/a.go": `
				// F is a function.
				func F() {}
				// T is a type.
				type T struct { Field int }
				// M is a method.
				func (*T) M() {}
				func (t) M() {}
				func (*t) M2() {}
				type t struct{}
				type i interface { M() }
				// These belong together.
				const (A = 1; B = 2)
				const (
					// C alone.
					C = 1
					D = 2 // D, too.
					e = 3
				)
				// I is an interface.
				type I interface {
					// M does something.
					M()
					m()
					i
				}
			`,
			"internal/check/a_test.go": "func TestX() {}\ntype Y int",
			"cmd/airlock/a.go":         "package main\nfunc F() {}",
		}, nil},
		{"a function", map[string]string{"internal/check/a.go": "func F() {}"},
			[]string{"internal/check/a.go:2: F has no doc comment (documented)"}},
		{"a directive is no comment", map[string]string{"internal/check/a.go": "//go:noinline\nfunc F() {}"},
			[]string{"internal/check/a.go:3: F has no doc comment (documented)"}},
		{"a comment apart", map[string]string{"internal/check/a.go": "// F is a function.\n\nfunc F() {}"},
			[]string{"internal/check/a.go:4: F has no doc comment (documented)"}},
		{"methods", map[string]string{"internal/check/a.go": `
			// T is a type.
			type T[A, B any] struct{}
			func (T[A, B]) M1() {}
			func (*T[A, _]) M2() {}
			// U is a type.
			type U[A any] struct{}
			func (*U[A]) M3() {}
			func (*(U[A])) String() string { return "" }`},
			[]string{"internal/check/a.go:5: T.M1 has no doc comment (documented)", "internal/check/a.go:6: T.M2 has no doc comment (documented)",
				"internal/check/a.go:9: U.M3 has no doc comment (documented)", "internal/check/a.go:10: U.String has no doc comment (documented)"}},
		{"a type", map[string]string{"internal/check/a.go": "type T int"},
			[]string{"internal/check/a.go:2: type T has no doc comment (documented)"}},
		{"types in a group", map[string]string{"internal/check/a.go": "// Two.\ntype (\n T int\n U int // U is one.\n)"},
			[]string{"internal/check/a.go:4: type T has no doc comment (documented)"}},
		{"values", map[string]string{"internal/check/a.go": "const A, b = 1, 2\nvar (\n C int\n d int\n)"},
			[]string{"internal/check/a.go:2: const A has no doc comment (documented)", "internal/check/a.go:4: var C has no doc comment (documented)"}},
		{"a method of an interface", map[string]string{"internal/check/a.go": "// I is one.\ntype I interface {\n M()\n}"},
			[]string{"internal/check/a.go:4: I.M has no doc comment (documented)"}},

		// Concurrency lines.
		{"who may call", map[string]string{"logic/a.go": `
				// F is a function.
				//
				// Errors: none.
				// Concurrency: any goroutine; never waits. Allocates: no.
				func F() {}
				// T is an error.
				type T struct{}
				// Error says what is wrong.
				func (T) Error() string { return "" }
				// Unwrap returns nil.
				func (*T) Unwrap() error { return nil }
				// String is Error.
				func (*T) String() string { return "" }
				// I is an interface.
				// Concurrency: Logic only.
				type I interface {
					// M does something.
					M()
				}
				// J is an interface.
				type J interface {
					// M does something.
					// Concurrency: any goroutine.
					M()
				}
			`,
			"logic/internal/x/a.go": "// F is a function.\nfunc F() {}",
			"examples/arena/a.go":   "// F is a function.\nfunc F() {}",
			"internal/check/a.go":   "// F is a function.\nfunc F() {}",
			"logic/a_test.go":       "// F is a function.\nfunc F() {}",
		}, nil},
		{"a function does not say", map[string]string{"logic/a.go": "// F is a function. Concurrency: any goroutine.\nfunc F() {}"},
			[]string{"logic/a.go:3: F does not say who may call it (Concurrency: …) (concurrency)"}},
		{"an empty line", map[string]string{"logic/a.go": "// F is a function.\n// Concurrency:\nfunc F() {}"},
			[]string{"logic/a.go:4: F does not say who may call it (Concurrency: …) (concurrency)"}},
		{"methods do not say", map[string]string{"logic/a.go": `
			// T is a type.
			type T struct{}
			// M does something.
			func (*T) M() {}
			// MarshalText does something.
			func (T) MarshalText() ([]byte, error) { return nil, nil }
			// String is no method.
			func String() {}`},
			[]string{"logic/a.go:6: T.M does not say who may call it (Concurrency: …) (concurrency)",
				"logic/a.go:8: T.MarshalText does not say who may call it (Concurrency: …) (concurrency)",
				"logic/a.go:10: String does not say who may call it (Concurrency: …) (concurrency)"}},
		{"a part of a package", map[string]string{"stress/load/a.go": "// F is a function.\nfunc F() {}"},
			[]string{"stress/load/a.go:3: F does not say who may call it (Concurrency: …) (concurrency)"}},
		{"an interface does not say", map[string]string{"logic/a.go": "// I is one.\ntype I interface {\n// M does something.\nM()\n}"},
			[]string{"logic/a.go:5: I.M does not say who may call it (Concurrency: …) (concurrency)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.ElementsMatch(t, test.want, problems(t, test.files))
		})
	}
}

func TestLoadReadsWhatTheGoCommandReads(t *testing.T) {
	fsys := module(map[string]string{
		"logic/a.go":             "",
		"logic/testdata/bad.go":  "not Go",
		"logic/_old.go":          "not Go",
		"logic/.hidden.go":       "not Go",
		"logic/notes.txt":        "not Go",
		"_old/a.go":              "not Go",
		".git/a.go":              "not Go",
		"tools/go.mod":           "module m/tools",
		"tools/doc.go":           leftOut,
		"logic/other_windows.go": "",
	})
	m, err := tidy.Load(fsys)
	require.NoError(t, err)
	require.Len(t, m.Packages, 1)
	var names []string
	for _, f := range m.Packages[0].Files {
		names = append(names, f.Name)
	}
	assert.Equal(t, []string{"logic/a.go", "logic/doc.go", "logic/other_windows.go"}, names)
}

func TestLoadReadsNestedModules(t *testing.T) {
	m, err := tidy.Load(module(map[string]string{
		"a/go.mod":     "module m/a",
		"a/x.go":       "",
		"a/b/x.go":     "",
		"a/b/c/go.mod": "module m/a/b/c",
		"a/b/c/x.go":   "",
		"ab/x.go":      "",
	}))
	require.NoError(t, err)
	nested := map[string]string{}
	for _, p := range m.Packages {
		nested[p.Dir] = p.Nested
	}
	assert.Equal(t, map[string]string{"a": "a", "a/b": "a", "a/b/c": "a/b/c", "ab": ""}, nested)

	_, err = tidy.Load(module(map[string]string{"a/go.mod": "module n/a", "b/go.mod": "", "c/go.mod": "module m/c"}))
	require.ErrorContains(t, err, `a/go.mod: the module is "n/a", not "m/a"`)
	require.ErrorContains(t, err, `b/go.mod: the module is "", not "m/b"`)
	require.NotContains(t, err.Error(), "c/go.mod")
}

func TestLoadNamesEachBrokenFile(t *testing.T) {
	_, err := tidy.Load(module(map[string]string{"logic/a.go": "func {", "views/b.go": "func {", "views/c.go": ""}))
	require.Error(t, err)
	assert.Contains(t, err.Error(), "logic/a.go:2")
	assert.Contains(t, err.Error(), "views/b.go:2")
	_, err = tidy.Load(fstest.MapFS{})
	require.Error(t, err)
	_, err = tidy.Load(fstest.MapFS{"go.mod": {Data: []byte("go 1.26\n")}})
	require.Error(t, err)
}
