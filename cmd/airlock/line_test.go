package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// grammar is the command line alone.
func grammar(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := kong.New(&commands{}, kong.Name("airlock"), kong.Exit(func(int) {}))
	require.NoError(t, err)
	return parser
}

func TestUnknownFlagsAndCommandsNameTheNearest(t *testing.T) {
	for args, want := range map[string]string{
		"arena --prot 1":                "unknown flag --prot, did you mean --port?",
		"arena --frames 3":              "unknown flag --frames (airlock",
		"run a.world --step 3":          "unknown flag --step, did you mean --steps?",
		"run a.world --croscheck":       "unknown flag --croscheck, did you mean --cross-check?",
		"run a.world --s 1":             "unknown flag --s (airlock",
		"stress --senario sync":         "unknown flag --senario, did you mean --scenario?",
		"stress --producer 3":           "unknown flag --producer, did you mean --producers?",
		"version --jsno":                "unknown flag --jsno, did you mean --json?",
		"arean":                         "unexpected argument arean, did you mean arena?",
		"poosl":                         "unexpected argument poosl, did you mean pools?",
		"disasmm":                       "unexpected argument disasmm, did you mean disasm?",
		"completion bash extra":         "unexpected argument extra (airlock",
		"--helpp":                       "unknown flag --helpp, did you mean --help?",
		"completion tcsh":               "bash",
		"run a.world --states everyone": "--states",
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Empty(t, stdout, args)
		assert.Contains(t, stderr, want, args)
		assert.Regexp(t, `^airlock: [^\n]+\n$`, stderr, args)
	}
}

// What kong says of a bad value names the states of its scanner, such as EOL; these sentences do not.
func TestBadValuesAreToldInPlainWords(t *testing.T) {
	for args, want := range map[string]string{
		"":                     "a command is missing, such as arena or run",
		"run":                  "--steps=N is missing",
		"run --steps 3":        "<file> is missing",
		"check":                "<file> ... is missing",
		"replay":               "<dir> is missing",
		"completion":           "<shell> is missing",
		"arena --for":          "--for needs a value",
		"arena --for 10":       `--for needs a time such as 10s or 5m, not "10"`,
		"arena --for=soon":     `--for needs a time such as 10s or 5m, not "soon"`,
		"arena --bots many":    `--bots needs a whole number, not "many"`,
		"arena --bots 1.5":     `--bots needs a whole number, not "1.5"`,
		"arena --bots -1":      "--bots needs a value, and -1 looks like a flag: write --bots=-1",
		"arena --seed=-1":      `--seed needs a whole number from 0 on, not "-1"`,
		"stress --seed x":      `--seed needs a whole number from 0 on, not "x"`,
		"pools --watch":        "--watch needs a value",
		"pools a --every soon": `--every needs a time such as 10s or 5m, not "soon"`,
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Empty(t, stdout, args)
		assert.Equal(t, "airlock: "+want+" (airlock --help shows what there is)\n", stderr, args)
	}
	for _, args := range []string{"arena --rate 0", "arena --for=-1s", "arena --journal=", "arena --pools=", "arena --inspect="} {
		code, _, stderr := command(t.Context(), strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Regexp(t, `^airlock: --[^\n:]+\n$`, stderr, "the flag comes first")
	}
}

func TestDistanceIsAMetricOfEdits(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("ab-")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		require.Equal(t, a == b, distance(a, b) == 0)
		require.Equal(t, distance(a, b), distance(b, a))
		require.LessOrEqual(t, distance(a, b), max(len(a), len(b)))
		require.GreaterOrEqual(t, distance(a, b), max(len(a), len(b))-min(len(a), len(b)))
		i := rapid.IntRange(0, len(a)).Draw(t, "i")
		require.Equal(t, 1, distance(a, a[:i]+"c"+a[i:]), "a letter more")
		if i+1 < len(a) && a[i] != a[i+1] {
			require.Equal(t, 1, distance(a, a[:i]+a[i+1:i+2]+a[i:i+1]+a[i+2:]), "two letters swapped")
		}
	})
}

// TestTheExamplesOfHelpAreCommandLines also sees to it that each command has some.
func TestTheExamplesOfHelpAreCommandLines(t *testing.T) {
	k := grammar(t)
	for _, node := range append([]*kong.Node{k.Model.Node}, k.Model.Children...) {
		examples := 0
		for _, line := range strings.Split(node.Detail, "\n") {
			example, ok := strings.CutPrefix(line, "  airlock ")
			if !ok {
				continue
			}
			examples++
			example, _, _ = strings.Cut(example, " > ")
			example, _, _ = strings.Cut(example, " < ")
			args := strings.Fields(example)
			_, err := grammar(t).Parse(args)
			assert.NoError(t, err, line)
			if node != k.Model.Node {
				assert.Equal(t, node.Name, args[0])
			}
			for _, arg := range args {
				if strings.HasPrefix(arg, "examples/") || strings.HasPrefix(arg, "pools/") {
					assert.FileExists(t, filepath.Join("..", "..", arg))
				}
			}
		}
		assert.Positive(t, examples, node.Name)
		args := []string{"--help"}
		if node != k.Model.Node {
			args = []string{node.Name, "--help"}
		}
		code, stdout, stderr := command(t.Context(), args...)
		assert.Zero(t, code)
		assert.Empty(t, stderr)
		assert.Contains(t, stdout, "Examples:")
		if node.Name != "version" && node.Name != "completion" {
			assert.Contains(t, stdout, "Exit status: 0")
		}
	}
}

func TestJSONForPrograms(t *testing.T) {
	code, stdout, stderr := command(t.Context(), "version", "--json")
	require.Zero(t, code, stderr)
	var version map[string]string
	require.NoError(t, json.Unmarshal([]byte(stdout), &version))
	for _, key := range []string{"version", "go", "os", "arch"} {
		assert.NotEmpty(t, version[key], key)
	}

	bad := poolFile(t, "Pools([\n\tPool( prefab: \"Arrow\", capcity: 64 ),\n])\n")
	code, stdout, stderr = command(t.Context(), "pools", "--json", arenaPoolFile, bad, "/nowhere")
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stderr, "it is in the JSON")
	var found []checkedFile
	require.NoError(t, json.Unmarshal([]byte(stdout), &found))
	require.Len(t, found, 3)
	assert.True(t, found[0].OK)
	assert.Equal(t, poolRow{Prefab: "Arrow", Cap: 64, Free: 64, Grow: "Double", Warm: true}, found[0].Pools[0])
	assert.Equal(t, []fileFault{{2, 25, "there is no field capcity: a Pool has prefab, capacity, grow, prewarm and max"}}, found[1].Faults)
	assert.Equal(t, "there is no file /nowhere", found[2].Error)

	world := "../../examples/worlds/fountain.world"
	code, stdout, stderr = command(t.Context(), "check", "--json", world, bad)
	assert.Equal(t, exitFailed, code)
	assert.Empty(t, stderr)
	found = nil
	require.NoError(t, json.Unmarshal([]byte(stdout), &found))
	require.Len(t, found, 2)
	assert.Equal(t, checkedFile{File: world, OK: true}, found[0])
	require.NotEmpty(t, found[1].Faults)
	assert.Positive(t, found[1].Faults[0].Line)
	code, stdout, _ = command(t.Context(), "check", "--json", world)
	assert.Zero(t, code)
	assert.Contains(t, stdout, `"ok": true`)
}

func TestTheDocumentationNamesEveryFlag(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, c := range grammar(t).Model.Children {
		var lines string // of this command
		in := false
		for _, line := range strings.Split(string(doc), "\n") {
			if command, ok := strings.CutPrefix(line, "//\tairlock "); ok {
				in = strings.HasPrefix(command+" ", c.Name+" ")
			}
			if in {
				lines += line
			}
		}
		assert.NotEmpty(t, lines, c.Name)
		for _, f := range flagsOf(c) {
			if f.Short == 0 {
				assert.Contains(t, lines, "--"+f.Name, c.Name)
			}
		}
	}
}

// completions asks bash what it would put in place of the last word.
func completions(t *testing.T, script string, words ...string) []string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	ask := script + "\nCOMP_WORDS=(airlock \"$@\"); COMP_CWORD=$#; _airlock; printf '%s\\n' \"${COMPREPLY[@]}\""
	out, err := exec.CommandContext(t.Context(), bash, append([]string{"--norc", "-c", ask, "bash"}, words...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.Fields(string(out))
}

func TestBashCompletesCommandsFlagsAndValues(t *testing.T) {
	code, script, stderr := command(t.Context(), "completion", "bash")
	require.Zero(t, code, stderr)
	k := grammar(t)
	var names []string
	for _, c := range k.Model.Children {
		names = append(names, c.Name)
	}
	assert.Equal(t, names, completions(t, script, ""))
	for _, c := range []struct{ line, want string }{
		{"re", "replay"},
		{"-", "--help"},
		{"arena --po", "--port --pools"},
		{"arena --port ", ""},
		{"run a.world --states ", "active all none"},
		{"run a.world --states = a", "active all"},
		{"run a.world --states =", "active all none"},
		{"run --backend batch --c", "--cross-check"},
		{"stress --scenario so", "soak"},
		{"completion ", "bash zsh fish"},
		{"version x", ""},
		{"pools --json --w", "--watch"},
	} {
		assert.Equal(t, strings.Fields(c.want), completions(t, script, strings.Split(c.line, " ")...), c.line)
	}
	for _, c := range k.Model.Children {
		var flags []string
		for _, f := range flagsOf(c) {
			flags = append(flags, spellings(f)...)
		}
		assert.Equal(t, flags, completions(t, script, c.Name, "-"), c.Name)
	}
}

// TestEveryShellKnowsEveryFlag has zsh and fish read their scripts, if they are there.
func TestEveryShellKnowsEveryFlag(t *testing.T) {
	k := grammar(t)
	for _, shell := range []string{"zsh", "fish"} {
		code, script, stderr := command(t.Context(), "completion", shell)
		require.Zero(t, code, stderr)
		for _, c := range k.Model.Children {
			assert.Contains(t, script, c.Name, shell)
			for _, f := range flagsOf(c) {
				want := map[string]string{"zsh": "'--" + f.Name, "fish": " -l " + f.Name + " "}[shell]
				assert.Contains(t, script, want, shell)
			}
		}
		quoted := map[string]string{"zsh": `'\''`, "fish": `\'`}[shell] // a quote inside of quotes
		assert.Zero(t, strings.Count(strings.ReplaceAll(script, quoted, ""), "'")%2, "quotes of %s", shell)
		if path, err := exec.LookPath(shell); err == nil {
			out, err := exec.CommandContext(t.Context(), path, "-n", "-c", script).CombinedOutput()
			assert.NoError(t, err, string(out))
		}
	}
}

// asked is what a shell, if it is there, offers in place of the last word of each line.
func asked(t *testing.T, shell string, lines []string) (offered [][]string) {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skip("there is no " + shell)
	}
	code, script, stderr := command(t.Context(), "completion", shell)
	require.Zero(t, code, stderr)
	file := filepath.Join(t.TempDir(), "completions")
	require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
	args := map[string][]string{
		"zsh":  {"-f", "testdata/complete.zsh", file},
		"fish": {"--no-config", "testdata/complete.fish", file},
	}[shell]
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	out, err := exec.CommandContext(ctx, path, append(args, lines...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	for part := range strings.SplitSeq(strings.TrimSuffix(string(out), "--\n"), "--\n") {
		offered = append(offered, strings.Split(strings.TrimSuffix(part, "\n"), "\n"))
	}
	require.Len(t, offered, len(lines), string(out))
	return offered
}

func TestZshAndFishCompleteCommandsFlagsAndValues(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "supper.world"), nil, 0o600))
	names := []string{"arena", "check", "completion", "disasm", "fmt", "pools", "replay", "run", "stress", "version"}
	under := func(names ...string) []string { // zsh offers the last parts of paths, fish whole ones
		for i, name := range names {
			names[i] = dir + "/" + name
		}
		return names
	}
	cases := []struct {
		line      string
		zsh, fish []string
	}{
		{"airlock ", names, names},
		{"airlock re", []string{"replay"}, []string{"replay"}},
		{"airlock -", []string{"--help"}, []string{"--help", "-h"}},
		{"airlock arena --po", []string{"--pools", "--port"}, []string{"--pools", "--port"}},
		{"airlock arena --port ", []string{""}, []string{""}},
		{"airlock run --states ", []string{"active", "all", "none"}, []string{"active", "all", "none"}},
		{"airlock run --states=", []string{"active", "all", "none"}, []string{"--states=active", "--states=all", "--states=none"}},
		{"airlock stress --scenario s", []string{"soak", "sync"}, []string{"soak", "sync"}},
		{"airlock completion ", []string{"bash", "fish", "zsh"}, []string{"bash", "fish", "zsh"}},
		{"airlock check " + dir + "/su", []string{"sub", "supper.world"}, under("sub/", "supper.world")},
		{"airlock replay " + dir + "/su", []string{"sub"}, under("sub/")},
		{"airlock fmt -", []string{"--check", "--diff", "--help", "--write", "-d", "-h", "-w"}, []string{"--check", "--diff", "--help", "--write", "-d", "-h", "-w"}},
	}
	for _, shell := range []string{"zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			var lines []string
			for _, c := range cases {
				lines = append(lines, c.line)
			}
			for i, got := range asked(t, shell, lines) {
				slices.Sort(got)
				want := cases[i].zsh
				if shell == "fish" {
					want = cases[i].fish
				}
				assert.Equal(t, want, slices.Compact(got), cases[i].line)
			}
		})
	}
}

// pipe is an output whose reader goes away after some bytes.
type pipe struct {
	left int
	seen bytes.Buffer
}

func (p *pipe) Write(b []byte) (int, error) {
	if p.left <= 0 {
		return 0, fmt.Errorf("write |1: %w", syscall.EPIPE)
	}
	p.left -= len(b)
	return p.seen.Write(b)
}

// TestNobodyWhoReadsIsNoFailure runs every command with an output that is closed at once, or after the first line.
func TestNobodyWhoReadsIsNoFailure(t *testing.T) {
	world, dir := "../../examples/worlds/fountain.world", journaled(t)
	lines := []string{
		"--help", "arena --help", "version", "completion bash", "pools " + arenaPoolFile, "pools --json " + arenaPoolFile,
		"check --json " + world, "fmt " + world, "disasm " + world, "run " + world + " --steps 1000000000 --every 1",
		"replay " + dir, "replay --hashes " + dir, "replay --json " + dir, "stress --list", "stress --scenario sync --for 50ms", "stress --scenario sync --for 50ms --json",
		"arena --port 0 --bots 2",
	}
	for _, line := range lines {
		for _, left := range []int{0, 1} {
			var stderr bytes.Buffer
			code := run(t.Context(), strings.Fields(line), &pipe{left: left}, &stderr)
			assert.Zero(t, code, line)
			assert.Empty(t, stderr.String(), line)
		}
	}
	for _, name := range reflect.VisibleFields(reflect.TypeFor[commands]()) {
		assert.True(t, slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, strings.ToLower(name.Name)) }), name.Name)
	}
	misspelt := poolFile(t, "Pools([\n")
	code := run(t.Context(), []string{"pools", "--json", misspelt}, &pipe{}, io.Discard)
	assert.Equal(t, exitFailed, code, "what is found stays found")
}

// full is an output that takes nothing, as a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestAnOutputThatFailsIsNoMistakeOfTheCommandLine(t *testing.T) {
	for _, line := range []string{"--help", "arena --help", "version", "completion fish", "stress --list"} {
		var stderr bytes.Buffer
		assert.Equal(t, exitFailed, run(t.Context(), strings.Fields(line), full{}, &stderr), line)
		assert.Equal(t, "airlock: no space left on device\n", stderr.String(), line)
	}
}

// TestSignalsAndClosedPipesOfTheProgram is about what only a process has.
func TestSignalsAndClosedPipesOfTheProgram(t *testing.T) {
	binary, err := os.Executable()
	require.NoError(t, err)
	t.Setenv(asCommand, "1")
	bash, err := exec.LookPath("bash")
	if err == nil {
		for _, line := range []string{
			"run ../../examples/worlds/fountain.world --steps 1000000000 --every 1", "arena --port 0 --bots 2", "completion bash",
		} {
			out, err := exec.CommandContext(t.Context(), bash, "-c", "set -o pipefail; "+binary+" "+line+" | head -1").CombinedOutput()
			assert.NoError(t, err, line)
			said := slices.DeleteFunc(strings.SplitAfter(string(out), "\n"), func(line string) bool {
				return line == "" || strings.Contains(line, "airlock: callback overran the watchdog") // where the machine stands still
			})
			assert.Len(t, said, 1, string(out))
		}
	}
	for line, want := range map[string]int{
		"arena --port 0 --bots 2": 0,
		"run ../../examples/worlds/fountain.world --steps 1000000000 --every 1": 1,
	} {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			cmd := exec.Command(binary, strings.Fields(line)...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			_, err = io.ReadFull(stdout, make([]byte, 10)) // it runs
			require.NoError(t, err)
			require.NoError(t, cmd.Process.Signal(signal))
			_, err = io.Copy(io.Discard, stdout)
			require.NoError(t, err)
			_ = cmd.Wait() // its status is looked at
			assert.Equal(t, want, cmd.ProcessState.ExitCode(), "%s: %s", line, stderr.String())
			assert.NotContains(t, stderr.String(), "goroutine ", line)
		}
	}
}

func TestTheArenaWritesItsOverruns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "flights")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	code, stdout, stderr := command(ctx, "arena", "--port", "0", "--bots", "2", "--for", "300ms", "--rate", "1000", "--flight", dir)
	require.Zero(t, code, stdout+stderr)
	require.DirExists(t, dir)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	assert.LessOrEqual(t, len(files), 1)
	if len(files) == 1 { // a machine may be too fast for any
		assert.Regexp(t, regexp.MustCompile(`^time=\S+ level=WARN msg="airlock: a trace of an overrun was written" frame=\d+ cause=`), stderr)
	}
	code, _, stderr = command(t.Context(), "arena", "--port", "0", "--flight=")
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "--flight needs the name of a directory")
}
