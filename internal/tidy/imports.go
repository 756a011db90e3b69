package tidy

import (
	"slices"
	"strings"
)

// topLayer is the layer of what nobody imports: commands, examples, and tests in the root.
const topLayer = 7

// layerOf returns the unit that the package in dir belongs to, and its layer. A unit is a package
// of the table with all directories below it; within a unit imports are free.
func layerOf(dir string) (unit string, layer int, known bool) {
	table := map[string]int{
		"internal/check":   0,
		"internal/bitset":  0,
		"internal/caller":  0,
		"internal/fault":   0,
		"internal/sim":     0,
		"internal/planted": 0,
		"internal/browser": topLayer,
		"internal/tidy":    0,
		"handles":          1,
		"flight":           1,
		"archetype":        2,
		"registry":         3,
		"views":            4,
		"defrag":           4,
		"pool":             4,
		"snapshot":         4,
		"logic":            5,
		"declare":          6,
		"inspect":          6,
		"stress":           6,
		"bench":            topLayer,
	}
	for unit := dir; unit != "."; unit = parent(unit) {
		if layer, known := table[unit]; known {
			return unit, layer, true
		}
	}
	switch first, rest, _ := strings.Cut(dir, "/"); first {
	case ".":
		return ".", topLayer, true
	case "cmd", "examples":
		name, _, _ := strings.Cut(rest, "/")
		return strings.TrimSuffix(first+"/"+name, "/"), topLayer, true
	}
	return "", 0, false
}

// parent returns the directory above dir, "." above the first.
func parent(dir string) string {
	if i := strings.LastIndexByte(dir, '/'); i >= 0 {
		return dir[:i]
	}
	return "."
}

// layers is the rule that a package imports only packages of a lower layer. There are two ways round
// it: the command runs the arena, and tests in a package of their own may use the load
// generators and models of stress, whatever layer they test.
func layers(m *Module, report report) {
	for _, p := range m.Packages {
		unit, layer, known := layerOf(p.Dir)
		if !known {
			report(p.Dir, "a package without a layer: give it one in docs/ARCHITECTURE.md and in this rule")
			continue
		}
		for _, f := range p.Files {
			for _, spec := range f.Syntax.Imports {
				target, ours := strings.CutPrefix(importPath(spec)+"/", m.Path+"/")
				if !ours {
					continue
				}
				target = strings.TrimSuffix(target, "/")
				if target == "" {
					target = "."
				}
				other, below, known := layerOf(target)
				switch {
				case !known:
					report(m.at(spec), "imports %s, which has no layer", target)
				case other == unit, below < layer,
					unit == "cmd/airlock" && other == "examples/arena",
					f.External && other == "stress":
				default:
					report(m.at(spec), "%s of layer %d imports %s of layer %d", unit, layer, target, below)
				}
			}
		}
	}
}

// foreignModules is the rule that only chosen modules are imported: few by the library, some
// more by tests, one by commands. Anything heavier lives in a nested module, which has what was chosen for it besides, and
// which nobody outside of it imports.
func foreignModules(m *Module, report report) {
	library := []string{"go.uber.org/atomic", "github.com/puzpuzpuz/xsync/v3", "github.com/zeebo/xxh3"}
	tests := []string{"github.com/stretchr/testify", "pgregory.net/rapid", "github.com/anishathalye/porcupine", "go.uber.org/goleak"}
	commands := []string{"github.com/alecthomas/kong"}
	nested := map[string][]string{
		"snapshot/zstd": {"github.com/klauspost/compress"},
		"bench":         {"github.com/mlange-42/ark", "gonum.org/v1/plot"},
	}
	for _, p := range m.Packages {
		for _, f := range p.Files {
			allowed, kind := slices.Clone(library), "the library"
			if strings.HasPrefix(p.Dir, "cmd/") {
				allowed, kind = append(allowed, commands...), "a command"
			}
			if p.Nested != "" {
				allowed, kind = append(allowed, nested[p.Nested]...), "the module "+p.Nested
			}
			if f.Test {
				allowed, kind = append(allowed, tests...), "tests"
			}
			for _, spec := range f.Syntax.Imports {
				target := importPath(spec)
				first, _, _ := strings.Cut(target, "/")
				switch {
				case target == "C":
					report(m.at(spec), "imports C: the module is pure Go")
				case below(target, m.Path):
					if other := m.nestedAt(strings.TrimPrefix(target[len(m.Path):], "/")); other != "" && other != p.Nested {
						report(m.at(spec), "imports %s, which is a module of its own", target)
					}
				case !strings.Contains(first, "."):
				case !slices.ContainsFunc(allowed, func(module string) bool { return below(target, module) }):
					report(m.at(spec), "%s may not import %s", kind, target)
				}
			}
		}
	}
}

// below reports whether a package is in the module with that path.
func below(target, module string) bool {
	return target == module || strings.HasPrefix(target, module+"/")
}

// unsafeUse is the rule that unsafe stays in three packages, in tests too.
func unsafeUse(m *Module, report report) {
	for _, p := range m.Packages {
		if slices.Contains([]string{"archetype", "registry", "views"}, p.Dir) {
			continue
		}
		for _, f := range p.Files {
			for _, spec := range f.Syntax.Imports {
				if importPath(spec) == "unsafe" {
					report(m.at(spec), "unsafe outside of archetype, registry and views")
				}
			}
		}
	}
}
