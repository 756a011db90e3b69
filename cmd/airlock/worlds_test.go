package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/declare"
)

const particles = `world {
  title = "Pooled particles"
  params { k = 12.0 }
  entity emitter { state = (x = -6.0, vx = 1.5) }
  pool p[24] { state = (x = 0.0, vx = 0.0) }
}
systems {
  spawn   { on = emitter; pool = p }              # count = 1, every = 1, phase = 0 by default
  update  { on = p; dt = 0.1 x = x + inte(0.0 + vx) }
  despawn { on = p; when = x > 6.0 }
}
`

// worldFile writes a file into a directory of its own, in which the test runs from then on.
func worldFile(t *testing.T, src string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	const name = "a.world"
	require.NoError(t, os.WriteFile(name, []byte(src), 0o600))
	return name
}

func TestRunPrintsTheStateByName(t *testing.T) {
	worldFile(t, strings.ReplaceAll(particles, "p[24]", "p[4]"))
	code, stdout, stderr := command(t.Context(), "run", "a.world", "--steps", "3")
	assert.Zero(t, code)
	assert.Empty(t, stderr)
	assert.Equal(t, `a.world: Pooled particles
step 3, t = 0.30000000000000004: 4 of 5 active, 0 stores refused
  emitter  x = -6  vx = 1.5
  p        3 of 4 active
  p#0      x = -5.549999999999999  vx = 1.5
  p#1      x = -5.699999999999999  vx = 1.5
  p#2      x = -5.85  vx = 1.5
`, stdout)

	code, stdout, _ = command(t.Context(), "run", "a.world", "--steps", "2", "--every", "1", "--states", "all", "--cross-check", "--hash")
	assert.Zero(t, code)
	assert.Regexp(t, `^a.world: Pooled particles
step 1, t = 0.1: 2 of 5 active, 0 stores refused, both backends agree, hash [0-9a-f]{16}
  emitter  x = -6  vx = 1.5
  p        1 of 4 active
  p#0      x = -5.85  vx = 1.5
  p#1      x = 0  vx = 0  inactive
  p#2      x = 0  vx = 0  inactive
  p#3      x = 0  vx = 0  inactive
step 2, t = 0.2: 3 of 5 active, 0 stores refused, both backends agree, hash [0-9a-f]{16}
`, stdout)
	assert.Equal(t, 2, strings.Count(stdout, "\nstep "), "the last one once")

	code, stdout, _ = command(t.Context(), "run", "a.world", "--steps", "0", "--states", "none")
	assert.Zero(t, code)
	assert.Equal(t, "a.world: Pooled particles\nstep 0, t = 0: 1 of 5 active, 0 stores refused\n  p        0 of 4 active\n",
		strings.ReplaceAll(stdout, "  p  0", "  p        0"))
}

// TestTheHashIsTheSameHoweverItIsComputed compares backends, workers, and whether it was asked for on the way.
func TestTheHashIsTheSameHoweverItIsComputed(t *testing.T) {
	worldFile(t, particles)
	hash := regexp.MustCompile(`hash ([0-9a-f]{16})`)
	want := ""
	for _, flags := range []string{
		"", "--backend interpreter", "--workers 1", "--workers 2", "--every 7", "--cross-check", "--states none", "--plot p.svg --slots p#0.x",
		"--backend interpreter --cross-check", "--param k=3",
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields("run a.world --hash --steps 100 "+flags)...)
		require.Zero(t, code, stderr)
		found := hash.FindAllStringSubmatch(stdout, -1)
		require.NotEmpty(t, found, flags)
		last := found[len(found)-1][1]
		if want == "" {
			want = last
		}
		assert.Equal(t, want, last, flags)
	}
}

func TestRunPrintsJSON(t *testing.T) {
	name := worldFile(t, `world { title = "<a> \"b\"\n" params { k = 1; j = -0.5 } entity é { state = (x = k, y = -0) } entity bare { } pool p[2] { state = (x = 0) } }
systems { spawn { on = é; pool = p phase = 1 } update { on = é; dt = 0.25 x = x * 2; y = -0 * x } update { on = p x = 1 / 3 + 1e300 * 1e300 } }`)
	code, stdout, stderr := command(t.Context(), "run", name, "--steps", "3", "--json", "--hash", "--param", "k=1e21", "--cross-check")
	assert.Zero(t, code)
	assert.Empty(t, stderr)
	assert.Equal(t, 1, strings.Count(stdout, "\n"))
	assert.Regexp(t, `^\{"file":"a.world","title":"[^}]*","params":\{"k":1e\+21,"j":-0.5\},"backend":"batch","steps":3,"step":3,"t":0.75,`+
		`"active":4,"entities":4,"refused":\d+,"agree":true,"hash":"[0-9a-f]{16}",`+
		`"groups":\[\{"name":"é","pool":false,"count":1,"active":1\},\{"name":"bare","pool":false,"count":1,"active":1\},\{"name":"p","pool":true,"count":2,"active":2\}\],`+
		`"states":\[\{"id":1,"name":"é","active":true,"state":\{"x":8e\+21,"y":-0\}\},\{"id":2,"name":"bare","active":true,"state":\{\}\},`+
		`\{"id":3,"name":"p#0","active":true,"state":\{"x":0\}\},\{"id":4,"name":"p#1","active":true,"state":\{"x":0\}\}\]\}\n$`, stdout)
	var parsed struct {
		Title   string
		Refused int
		Params  map[string]float64
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &parsed))
	assert.Equal(t, "<a> \"b\"\n", parsed.Title)
	assert.Equal(t, 3, parsed.Refused)
	assert.Equal(t, map[string]float64{"k": 1e21, "j": -0.5}, parsed.Params)

	code, stdout, _ = command(t.Context(), "run", name, "--steps", "5", "--json", "--every", "2", "--states", "all")
	assert.Zero(t, code)
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	require.Len(t, lines, 3)
	for i, step := range []int{2, 4, 5} {
		var line struct{ Step, Steps int }
		require.NoError(t, json.Unmarshal([]byte(lines[i]), &line))
		assert.Equal(t, step, line.Step)
		assert.Equal(t, 5, line.Steps)
	}
}

func TestAWrongCommandLineForAWorld(t *testing.T) {
	worldFile(t, particles)
	for args, want := range map[string]string{
		"run":                                           "--steps",
		"run a.world":                                   "--steps",
		"run --steps 3":                                 "file",
		"run a.world --steps many":                      "many",
		"run a.world --steps=-1":                        "--steps must be between 0 and 9007199254740992, not -1",
		"run a.world --steps 9007199254740993":          "--steps must be between",
		"run a.world --steps 99999999999999999999":      "99999999999999999999",
		"run a.world --steps 3 --every=-1":              "--every must not be negative, but it is -1",
		"run a.world --steps 3 --workers=-1":            "--workers must be between 1 and 1024, not -1",
		"run a.world --steps 3 --workers 1025":          "--workers must be between 1 and 1024, not 1025",
		"run a.world --steps 3 --backend gpu":           "gpu",
		"run a.world --steps 3 --states some":           "some",
		"run a.world --steps 3 --param k":               `--param needs K=V, such as k=3, not "k"`,
		"run a.world --steps 3 --param =3":              "--param needs K=V",
		"run a.world --steps 3 --param k=":              `--param k needs a finite number, not ""`,
		"run a.world --steps 3 --param k=x":             `--param k needs a finite number, not "x"`,
		"run a.world --steps 3 --param k=inf":           "needs a finite number",
		"run a.world --steps 3 --param k=NaN":           "needs a finite number",
		"run a.world --steps 3 --param k=1e999":         "needs a finite number",
		"run a.world --steps 3 --param k=1,k=2":         "needs a finite number",
		"run a.world --steps 3 --param k=1 --param=k=2": "--param k is given twice",
		"run a.world --steps 3 --plot=":                 "--plot needs the name of a file",
		"run a.world --steps 3 --plot p.png":            `--plot writes SVG: name a file that ends in .svg, not "p.png"`,
		"run a.world --steps 3 --slots p":               "--slots says what --plot draws",
		"run a.world --steps 3 --fast":                  "--fast",
		"check":                                         "file",
		"check --param k a.world":                       "--param needs K=V",
		"disasm":                                        "file",
		"disasm --param k a.world":                      "--param needs K=V",
		"fmt":                                           "file",
		"fmt -w -":                                      "-w cannot write to standard input",
		"fmt -w --check a.world":                        "-",
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields(args)...)
		assert.Equal(t, exitUsage, code, args)
		assert.Empty(t, stdout, args)
		assert.Contains(t, stderr, want, args)
		assert.Regexp(t, `^airlock: [^\n]+\n$`, stderr, args)
	}
}

func TestWhatIsWrongWithAWorldIsToldLineByLine(t *testing.T) {
	worldFile(t, "world {\n\tentity e { state = (x = y) }\n}\nsystems { update { on = f; x = 1 } }\n")
	require.NoError(t, os.WriteFile("empty.world", nil, 0o600))
	require.NoError(t, os.WriteFile("good.world", []byte(particles), 0o600))
	require.NoError(t, os.WriteFile("large.world", []byte(strings.Repeat(" ", declare.MaxSource+1)), 0o600))
	const faults = `a.world:2:26: nothing is called y here: the initial value of x is a constant, of numbers and parameters
	 entity e { state = (x = y) }
	                         ^
a.world:4:25: there is no entity or pool f
	systems { update { on = f; x = 1 } }
	                        ^
`
	for _, c := range []struct{ args, want string }{
		{"run --steps 3 a.world", faults},
		{"check a.world", faults},
		{"check good.world a.world good.world", faults},
		{"disasm a.world", faults},
		{"check empty.world", "empty.world:1:1: a file needs world { … }\n\t\n\t^\n"},
		{"check good.world --param kk=3", "good.world: the world has no parameter kk; did you mean k?\n"},
		{"run --steps 3 good.world --param kk=3", "good.world: the world has no parameter kk; did you mean k?\n"},
		{"check nowhere.world a.world .", "airlock: there is no file nowhere.world\n" + faults + "airlock: . is a directory\n"},
		{"run --steps 3 nowhere.world", "airlock: there is no file nowhere.world\n"},
		{"run --steps 3 .", "airlock: . is a directory\n"},
		{"disasm nowhere.world", "airlock: there is no file nowhere.world\n"},
		{"fmt nowhere.world", "airlock: there is no file nowhere.world\n"},
		{"run --steps 3 good.world --plot nowhere/p.svg", "airlock: nowhere/p.svg cannot be written: open "},
		{"run --steps 3 good.world --plot .", "airlock: . is a directory\n"},
		{"run --steps 3 good.world --plot p.svg --slots p#24.x", "airlock: --slots p#24.x: p is a pool with the slots p#0 to p#23\n"},
		{"run --steps 3 good.world --plot p.svg --slots p,emitter.y", "airlock: --slots emitter.y: emitter has no state slot y\n"},
		{"run --steps 3 good.world --plot p.svg --slots p.x", "airlock: --slots p.x: p is a pool with the slots p#0 to p#23\n"},
		{"run --steps 3 good.world --plot p.svg --slots q", "airlock: --slots q: there is no entity or pool q\n"},
		{"run --steps 3 good.world --plot p.svg --slots p#0", "airlock: --slots p#0: which slot of it? Such as p#0.x\n"},
		{"run --steps 3 good.world --plot p.svg --slots p" + strings.Repeat(",p", 16), "airlock: --plot draws up to 16 lines, not 17: choose with --slots\n"},
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields(c.args)...)
		assert.Equal(t, exitFailed, code, c.args)
		assert.Empty(t, stdout, c.args)
		if strings.HasSuffix(c.want, "\n") {
			assert.Equal(t, c.want, stderr, c.args)
		} else {
			assert.Regexp(t, "^"+regexp.QuoteMeta(c.want)+"[^\n]+\n$", stderr, c.args)
		}
	}
	code, _, stderr := command(t.Context(), "check", "large.world")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, fmt.Sprintf("large.world:1:%d: %d bytes; a file has up to", declare.MaxSource+1, declare.MaxSource+1))
	files, err := filepath.Glob("*")
	require.NoError(t, err)
	assert.Len(t, files, 4, "nothing else was written")

	code, stdout, stderr := command(t.Context(), "check", "good.world")
	assert.Zero(t, code)
	assert.Empty(t, stdout+stderr)
}

func TestWorldsAreReadFromStandardInput(t *testing.T) {
	for _, args := range []string{"run --steps 3 --states none -", "check -", "disasm -", "fmt -"} {
		w := typed(t)
		_, err := io.WriteString(w, particles)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		code, stdout, stderr := command(t.Context(), strings.Fields(args)...)
		assert.Zero(t, code, args)
		assert.Empty(t, stderr, args)
		assert.Equal(t, args != "check -", stdout != "", args)
	}
	typed(t) // closed when the test is over, so that the reader ends too
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	code, _, stderr := command(ctx, "check", "-")
	assert.Equal(t, exitFailed, code)
	assert.Equal(t, "airlock: stopped while reading <stdin>\n", stderr)
}

func TestAnInterruptEndsARunWithTheStateItHasReached(t *testing.T) {
	worldFile(t, particles)
	ctx, interrupt := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var errs strings.Builder
	code := make(chan int)
	go func() {
		defer in.Close()
		code <- run(ctx, strings.Fields("run a.world --steps 1000000000000 --every 100 --states none --plot p.svg"), in, &errs)
	}()
	var seen strings.Builder
	for buf := make([]byte, 256); !strings.Contains(seen.String(), "step 300,"); {
		n, err := out.Read(buf)
		require.NoError(t, err)
		seen.Write(buf[:n])
	}
	interrupt()
	go io.Copy(&seen, out)
	select {
	case got := <-code:
		assert.Equal(t, exitFailed, got)
	case <-time.After(20 * time.Second):
		t.Fatal("the run does not end")
	}
	assert.Regexp(t, `^airlock: stopped after step \d+ of 1000000000000\n$`, errs.String())
	assert.FileExists(t, "p.svg")
}

func TestADifferenceOfTheBackendsIsAFailure(t *testing.T) {
	difference := &declare.CrossCheckError{Step: 2, ID: 3, Entity: "p#1", Slot: "x", Batch: 1, Interpreter: math.Nextafter(1, 2)}
	done, err := stepwise(t.Context(), 9, func() error { return nil }, func(done uint64) error {
		if done == 3 {
			return difference
		}
		return nil
	})
	assert.Equal(t, uint64(3), done)
	assert.EqualError(t, told(err), "the backends differ after step 3, in p#1.x: batch 1 (3ff0000000000000), interpreter 1.0000000000000002 (3ff0000000000001)")
	assert.EqualError(t, told(&declare.CrossCheckError{Step: 4, Detail: "the clock"}), "the backends differ after step 5: the clock")
	other := errors.New("other")
	done, err = stepwise(t.Context(), 9, func() error { return other }, func(uint64) error { return nil })
	assert.Zero(t, done)
	assert.Equal(t, other, told(err))
}

func TestFmtLaysOutFiles(t *testing.T) {
	worldFile(t, "world { pool p [ 3 ]{state=(x=1)}\n}")
	const laidOut = "world {\n\tpool p[3] { state = (x = 1) }\n}\n"
	require.NoError(t, os.WriteFile("good.world", []byte(laidOut), 0o640))
	require.NoError(t, os.WriteFile("bad.world", []byte("world {"), 0o600))
	require.NoError(t, os.Symlink("a.world", "link.world"))
	const diff = "--- a.world\n+++ a.world\n@@ -1,2 +1,3 @@\n-world { pool p [ 3 ]{state=(x=1)}\n-}\n\\ No newline at end of file\n" +
		"+world {\n+\tpool p[3] { state = (x = 1) }\n+}\n"
	const bad = "bad.world:1:7: this { is never closed\n\tworld {\n\t      ^\n"
	before, err := os.Stat("good.world")
	require.NoError(t, err)
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"fmt a.world good.world", 0, laidOut + laidOut, ""},
		{"fmt --check good.world", 0, "", ""},
		{"fmt --check good.world a.world", exitFailed, "a.world\n", ""},
		{"fmt -d good.world a.world", 0, diff, ""},
		{"fmt -d --check good.world a.world", exitFailed, "a.world\n" + diff, ""},
		{"fmt bad.world good.world", exitFailed, laidOut, bad},
		{"fmt -w bad.world link.world good.world", exitFailed, "", bad},
		{"fmt --check a.world", 0, "", ""},
		{"fmt -w -d a.world", 0, "", ""},
	} {
		code, stdout, stderr := command(t.Context(), strings.Fields(c.args)...)
		assert.Equal(t, c.code, code, c.args)
		assert.Equal(t, c.stdout, stdout, c.args)
		assert.Equal(t, c.stderr, stderr, c.args)
	}
	after, err := os.Stat("good.world")
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "what is laid out already is not written")
	link, err := os.Readlink("link.world")
	require.NoError(t, err)
	assert.Equal(t, "a.world", link)
	info, err := os.Stat("a.world")
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	assert.Len(t, files, 4)
}

func TestADiffMakesOneTextOfTheOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() (list []string) {
		for range random.IntN(12) {
			list = append(list, string(rune('a'+random.IntN(4)))+"\n")
		}
		return list
	}
	for range 3000 {
		a, b := text(), text()
		var got []string
		at := 0
		for _, c := range compareLines(a, b) {
			require.True(t, c.from < c.to || c.newFrom < c.newTo)
			require.True(t, at == 0 || c.from > at, "changes that touch are one")
			got = append(append(got, a[at:c.from]...), b[c.newFrom:c.newTo]...)
			require.Len(t, got, c.newTo)
			at = c.to
		}
		require.Equal(t, strings.Join(b, ""), strings.Join(append(got, a[at:]...), ""))
	}
	far := compareLines(slicesOf("a\n", 3*diffMost), slicesOf("b\n", 3*diffMost))
	assert.Equal(t, []change{{0, 3 * diffMost, 0, 3 * diffMost}}, far)

	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, i)
		}
		return b.String()
	}
	after := strings.Replace(strings.Replace(lines(30), "2\n", "two\n", 1), "20\n", "", 1)
	assert.Equal(t, "--- f\n+++ f\n@@ -1,6 +1,6 @@\n 0\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -18,7 +18,6 @@\n 17\n 18\n 19\n-20\n 21\n 22\n 23\n",
		string(unified("f", []byte(lines(30)), []byte(after))))
	assert.Equal(t, "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+a\n", string(unified("f", nil, []byte("a\n"))))
}

func slicesOf(s string, n int) []string { return strings.SplitAfter(strings.Repeat(s, n), "\n")[:n] }

func TestDisasmPrintsTheCode(t *testing.T) {
	worldFile(t, particles)
	code, stdout, stderr := command(t.Context(), "disasm", "a.world")
	assert.Zero(t, code)
	assert.Empty(t, stderr)
	assert.Regexp(t, `(?m)^ +\d+ +227 +findfree`, stdout)
	assert.Regexp(t, `(?m)^ +\d+ +228 +spawninto`, stdout)
}

// svgFile is what the tests want to know of a plot.
type svgFile struct {
	Title string `xml:"title"`
	Texts []struct {
		Text string `xml:",chardata"`
		Full string `xml:"title"`
	} `xml:"text"`
	Paths []struct {
		Class  string `xml:"class,attr"`
		Stroke string `xml:"stroke,attr"`
		D      string `xml:"d,attr"`
	} `xml:"path"`
}

// plotted runs a world with --plot, and reads the picture.
func plotted(t *testing.T, flags string) (f svgFile, curves []string) {
	t.Helper()
	code, _, stderr := command(t.Context(), strings.Fields("run a.world --states none --plot p.svg "+flags)...)
	require.Zero(t, code, stderr)
	src, err := os.ReadFile("p.svg")
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(src, &f))
	for _, p := range f.Paths {
		if p.Class == "curve" && !strings.HasSuffix(p.D, "h24") {
			curves = append(curves, p.D)
		}
	}
	return f, curves
}

func TestAPlotDrawsSlotsOverTime(t *testing.T) {
	worldFile(t, strings.Replace(particles, "Pooled particles", "<Pooled> & 'so on'", 1))
	f, curves := plotted(t, "--steps 200 --slots p#0.x,emitter.s1,p")
	assert.Equal(t, "<Pooled> & 'so on'", f.Title)
	require.Len(t, curves, 3)
	// p#0 is taken in the first step, crosses in 80 of them and is taken again: three journeys, after a gap of its own.
	assert.Equal(t, 3, strings.Count(curves[0], "M"))
	assert.Equal(t, 1, strings.Count(curves[1], "M"))
	assert.Equal(t, 1, strings.Count(curves[2], "M"))
	assert.Equal(t, 200, strings.Count(curves[2], "L"))
	var names []string
	for _, text := range f.Texts {
		if text.Full != "" {
			names = append(names, text.Full)
		}
	}
	assert.Equal(t, []string{"p#0.x", "emitter.s1", "p"}, names)

	_, curves = plotted(t, "--steps 0")
	require.Len(t, curves, 1, "the pool")
	assert.Regexp(t, `^M[\d.]+ [\d.]+h0$`, curves[0], "a point")

	_, curves = plotted(t, "--steps 0 --slots p#3.x")
	assert.Empty(t, curves, "never active")
}

func TestALongPlotKeepsItsExtremes(t *testing.T) {
	worldFile(t, `world { entity e { state = (n = 0, spike = 0) } }
systems { update { on = e; dt = 1 n = n + 1 spike = if(n == 1321, -7, if(n == 2777, 9, 0)) } }`)
	f, curves := plotted(t, "--steps 3000 --slots e.spike")
	require.Len(t, curves, 1)
	points := strings.Count(curves[0], "L") + strings.Count(curves[0], "M")
	assert.Less(t, points, 2*mostExtents)
	assert.Greater(t, points, mostExtents/2)
	least, most := math.Inf(1), math.Inf(-1)
	for _, m := range regexp.MustCompile(`[\d.]+ ([\d.]+)`).FindAllStringSubmatch(curves[0], -1) {
		y, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		least, most = min(least, y), max(most, y)
	}
	assert.InDelta(t, float64(plotSpanY)*10/11, most-least, 0.2, "from -7 to 9, in what a margin leaves")
	assert.NotEmpty(t, f.Texts)
}

func TestExtentsAreThoseOfTheirStretches(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, mostExtents, mostExtents + 1, 3*mostExtents + 5, 9*mostExtents + 1} {
		var e extents
		values, present := make([]float64, n), make([]bool, n)
		for i := range values {
			values[i], present[i] = random.NormFloat64(), random.IntN(10) > 0
			e.add(uint64(i), values[i], present[i])
		}
		require.LessOrEqual(t, len(e.list), mostExtents)
		at := 0
		for i, x := range e.list {
			if i < len(e.list)-1 {
				require.Equal(t, e.length, x.steps)
			}
			want := extent{steps: x.steps, lo: math.Inf(1), hi: math.Inf(-1), empty: true}
			for range x.steps {
				if !present[at] {
					want.broken = true
				} else {
					want.empty = false
					want.lo, want.hi = min(want.lo, values[at]), max(want.hi, values[at])
				}
				at++
			}
			require.Equal(t, want.empty, x.empty)
			require.Equal(t, want.broken, x.broken)
			if !x.empty {
				require.Equal(t, []float64{want.lo, want.hi, want.lo, want.hi}, []float64{x.lo, x.hi, values[x.loAt], values[x.hiAt]})
			}
		}
		require.Equal(t, n, at)
	}
}

func TestTicksAreRoundAndInRange(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		full   bool
		want   string
	}{
		{0, 30, true, "0 5 10 15 20 25 30"},
		{-6, 24, false, "−5 0 5 10 15 20 25"},
		{0, 0.3, true, "0 0.05 0.1 0.15 0.2 0.25 0.3"},
		{1e6, 1e6 + 3, true, "1e+06 1.0000005e+06"},
		{5, 5, false, "4.6 4.8 5 5.2 5.4"},
		{0, 0, true, "0 0.1 0.2 0.3 0.4 0.5"},
		{-math.MaxFloat64, math.MaxFloat64, false, "−4e+307 −3e+307 −2e+307 −1e+307 0 1e+307 2e+307 3e+307 4e+307"},
		{0, 5e-324, false, "−0.4 −0.2 0 0.2 0.4"},
		{1e300, 1e301, true, "1e+300 2e+300"},
		{math.MaxFloat64, math.MaxFloat64, false, ""},
	} {
		s := newScale(c.lo, c.hi, c.full)
		var labels []string
		for _, v := range s.ticks(6) {
			labels = append(labels, v.label)
			part := s.part(v.value)
			require.True(t, part >= 0 && part <= 1, "%v: %v", c, v)
		}
		require.LessOrEqual(t, len(labels), 24)
		assert.True(t, strings.HasPrefix(strings.Join(labels, " "), c.want), "%v to %v: %v, not %v", c.lo, c.hi, labels, c.want)
		for _, v := range []float64{c.lo, c.hi} {
			require.False(t, math.IsNaN(s.part(v)), c)
		}
	}
}

// TestColoursStandOut computes the contrast ratio of WCAG, which is to be 3 for graphics.
func TestColoursStandOut(t *testing.T) {
	luminance := func(colour string) float64 {
		n, err := strconv.ParseUint(colour[1:], 16, 32)
		require.NoError(t, err)
		sum := 0.0
		for i, weight := range []float64{0.0722, 0.7152, 0.2126} {
			v := float64(n>>(8*i)&255) / 255
			if v <= 0.04045 {
				v /= 12.92
			} else {
				v = math.Pow((v+0.055)/1.055, 2.4)
			}
			sum += v * weight
		}
		return sum
	}
	contrast := func(a, b string) float64 {
		x, y := luminance(a), luminance(b)
		return (max(x, y) + 0.05) / (min(x, y) + 0.05)
	}
	for _, c := range plotColours {
		assert.Greater(t, contrast(c, "#ffffff"), 3.0, c)
		assert.Greater(t, contrast(c, "#16181d"), 3.0, c)
	}
}
