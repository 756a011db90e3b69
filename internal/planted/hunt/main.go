package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/airlock-ecs/airlock/internal/planted"
)

const (
	leastGeneral = 30               // bugs that general checks have to find
	testLimit    = time.Minute      // of a check, told to the tests
	grace        = 20 * time.Second // behind it hunt ends the process
)

func main() {
	bugs := flag.String("bugs", "", "names of bugs, separated by commas; without it, all")
	at := flag.Int("j", min(2, runtime.GOMAXPROCS(0)), "bugs that are hunted at one time")
	write := flag.String("write", "", "a page of which the section on planted bugs is written anew")
	verbose := flag.Bool("v", false, "print what the checks that fail print")
	dir := flag.String("dir", "", "a directory of test binaries: those that are not there are built, and stay")
	clean := flag.Bool("clean", true, "run all checks without a bug first")
	flag.Parse()
	if err := run(options{*bugs, *at, *write, *verbose, *dir, *clean}); err != nil {
		fmt.Fprintln(os.Stderr, "hunt:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	bugs    string
	at      int
	write   string
	verbose bool
	dir     string
	clean   bool
}

func run(o options) error {
	began := time.Now()
	hunted, err := choose(o.bugs)
	if err != nil {
		return err
	}
	dir := o.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "planted"); err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
	}
	if dir, err = filepath.Abs(dir); err != nil { // tests run elsewhere
		return err
	}
	if err := build(dir, hunted); err != nil {
		return err
	}
	fmt.Printf("built in %.0f s\n", time.Since(began).Seconds())
	h := &hunter{dir: dir}
	if o.clean {
		if err := h.clean(hunted, o.at); err != nil {
			return err
		}
	}
	results := make([]result, len(hunted))
	each(o.at, len(hunted), func(i int) {
		results[i] = h.hunt(hunted[i])
		h.say("%s\n", results[i])
		if o.verbose {
			h.say("%s\n", results[i].output)
		}
	})
	t := table(results, time.Since(began))
	fmt.Print("\n", t)
	if o.write != "" {
		if err := writeSection(o.write, t); err != nil {
			return err
		}
	}
	return judge(results, o.bugs == "")
}

// choose finds bugs by their names.
func choose(names string) (list []planted.Bug, err error) {
	if names == "" {
		for b := planted.None + 1; int(b) < planted.Bugs; b++ {
			list = append(list, b)
		}
		return list, nil
	}
	for name := range strings.SplitSeq(names, ",") {
		b, ok := planted.Find(name)
		if !ok || b == planted.None {
			return nil, fmt.Errorf("there is no bug %q", name)
		}
		list = append(list, b)
	}
	return list, nil
}

// build makes the test binaries that the checks of some bugs need, and that are not there.
func build(dir string, bugs []planted.Bug) error {
	plain := []string{"test", "-c", "-tags", "planted", "-o", dir + string(filepath.Separator)}
	none := len(plain)
	for _, c := range needed(bugs) {
		file := filepath.Join(dir, c.binary()+".test")
		if _, err := os.Stat(file); err == nil || slices.Contains(plain, "./"+c.pkg) && c.binary() == c.pkg {
			continue
		}
		if c.binary() == c.pkg {
			plain = append(plain, "./"+c.pkg)
			continue
		}
		args := []string{"test", "-c", "-tags", strings.Trim("planted,"+c.tags, ","), "-o", file}
		if c.race {
			args = append(args, "-race")
		}
		if err := goTool(append(args, "./"+c.pkg)...); err != nil {
			return err
		}
	}
	if len(plain) == none {
		return nil
	}
	return goTool(plain...)
}

func goTool(args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// needed are the checks of some bugs, each once.
func needed(bugs []planted.Bug) (list []check) {
	for _, b := range bugs {
		for _, c := range checksFor(b) {
			if !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	return list
}

// each calls fn for 0 to n-1, so many at one time.
func each(at, n int, fn func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range max(at, 1) {
		wg.Go(func() {
			for i := range next {
				fn(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

type hunter struct {
	dir string

	mu sync.Mutex // guards the standard output
}

func (h *hunter) say(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fmt.Printf(format, args...)
}

// clean runs all checks without a bug.
func (h *hunter) clean(bugs []planted.Bug, at int) error {
	began := time.Now()
	list := needed(bugs)
	errs := make([]error, len(list))
	each(at, len(list), func(i int) {
		c := list[i]
		v := h.try(c, planted.None)
		if v.failed && c.kind == own { // on a busy machine a test about timing fails now and then
			h.say("%s: %s fail without a bug, once more\n", c.pkg, strings.Join(v.tests, ", "))
			v = h.try(c, planted.None)
		}
		if v.failed || v.hung {
			errs[i] = fmt.Errorf("%s %s fails without a bug:\n%s", c.pkg, cmpOr(c.kind, "tests"), v.output)
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	h.say("%d checks pass without a bug, in %.0f s\n", len(list), time.Since(began).Seconds())
	return nil
}

func cmpOr(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// result is what became of a bug.
type result struct {
	bug    planted.Bug
	by     check  // who found it
	test   string // which of its tests; "" if nobody did
	why    string // a line of what it said
	output string
	took   time.Duration
}

func (r result) String() string {
	if r.test == "" {
		return fmt.Sprintf("%v: ESCAPED, %.1f s", r.bug, r.took.Seconds())
	}
	return fmt.Sprintf("%v: %s.%s (%s), %.1f s", r.bug, r.by.pkg, r.test, cmpOr(r.by.kind, "own"), r.took.Seconds())
}

// hunt puts a bug through its checks.
func (h *hunter) hunt(b planted.Bug) (r result) {
	began := time.Now()
	r.bug = b
	defer func() { r.took = time.Since(began) }()
	for _, c := range checksFor(b) {
		v := h.try(c, b)
		switch {
		case v.hung:
			h.say("%v: %s %s had to be ended\n", b, c.pkg, c.kind)
		case v.failed:
			for _, test := range v.tests {
				again := check{pkg: c.pkg, tests: "^" + test + "$", kind: "again", race: c.race, tags: c.tags}
				if w := h.try(again, planted.None); w.failed || w.hung {
					h.say("%v: %s.%s fails without it, too\n", b, c.pkg, test)
					continue
				}
				if !h.confirm(again, b) {
					h.say("%v: %s.%s does not fail again\n", b, c.pkg, test)
					continue
				}
				r.by, r.test, r.why, r.output = c, test, v.why, v.output
				return r
			}
		}
	}
	return r
}

// confirm says whether a check fails with the bug again: what competes does not each time.
func (h *hunter) confirm(c check, b planted.Bug) bool {
	for range 5 {
		if v := h.try(c, b); v.failed {
			return true
		}
	}
	return false
}

// verdict is what came of a check.
type verdict struct {
	failed, hung bool
	tests        []string // those that failed
	why          string
	output       string
}

// try runs a check with a bug.
func (h *hunter) try(c check, b planted.Bug) (v verdict) {
	ctx, cancel := context.WithTimeout(context.Background(), testLimit+grace)
	defer cancel()
	binary := filepath.Join(h.dir, c.binary()+".test")
	args := []string{"-test.v", "-test.short", "-test.timeout=" + testLimit.String()}
	if c.kind != own { // else all of them, in case that the first to fail does so without the bug, too
		args = append(args, "-test.failfast", "-test.run="+c.tests)
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = c.pkg // where its testdata is
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), planted.Variable+"=", "RAPID_NOFAILFILE=1", "RAPID_CHECKS=60", "RAPID_SHRINKTIME=1s",
		"AIRLOCK_SIM_FIRST=1", "AIRLOCK_SIM_SEEDS=16", "AIRLOCK_SIM_SAVED="+filepath.Join(h.dir, "seeds.txt")) // the same seeds each time
	if c.race {
		cmd.Env = append(cmd.Env, "GORACE=halt_on_error=1") // what goes on may hang
	}
	if b != planted.None {
		cmd.Env = append(cmd.Env, planted.Variable+"="+b.String())
	}
	out, err := cmd.CombinedOutput()
	v.output = string(out)
	v.hung = ctx.Err() != nil
	v.failed = err != nil && !v.hung
	if v.failed {
		v.tests, v.why = read(v.output)
	}
	return v
}

var (
	failLine  = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	runLine   = regexp.MustCompile(`(?m)^=== RUN   (\w+)`)
	timedOut  = regexp.MustCompile(`panic: test timed out after [^\n]*\n\s+running tests:\n\s+(\w+)`)
	panicLine = regexp.MustCompile(`(?m)^\s*(panic: .*|fatal error: .*|WARNING: DATA RACE)$`)
)

// read finds the tests that failed in what a test binary printed, and a line that says why.
func read(out string) (tests []string, why string) {
	if m := panicLine.FindStringSubmatch(out); m != nil {
		why = m[1]
	}
	for _, m := range failLine.FindAllStringSubmatch(out, -1) {
		tests = append(tests, m[1])
	}
	if m := timedOut.FindStringSubmatch(out); m != nil {
		return append(tests, m[1]), why
	}
	if len(tests) > 0 {
		return tests, why
	}
	if m := runLine.FindAllStringSubmatch(out, -1); m != nil { // a panic of another goroutine ends the process before the test
		return []string{m[len(m)-1][1]}, why
	}
	return nil, why
}

// judge says whether the checks are good enough.
func judge(results []result, all bool) error {
	general, escaped := 0, []string(nil)
	for _, r := range results {
		switch {
		case r.test == "":
			escaped = append(escaped, r.bug.String())
		case r.by.kind != own:
			general++
		}
	}
	if len(escaped) > 0 {
		return fmt.Errorf("escaped: %s", strings.Join(escaped, ", "))
	}
	if all && general < leastGeneral {
		return fmt.Errorf("general checks find %d bugs, and should find %d", general, leastGeneral)
	}
	return nil
}

// table is what came of it, as Markdown.
func table(results []result, took time.Duration) string {
	var b strings.Builder
	general, found := 0, 0
	for _, r := range results {
		if r.test != "" {
			found++
			if r.by.kind != own {
				general++
			}
		}
	}
	fmt.Fprintf(&b, "Run on %s in %.0f s: %d bugs, %d found, %d of them by general checks.\n\n",
		time.Now().Format(time.DateOnly), took.Seconds(), len(results), found, general)
	b.WriteString("| bug | package | what goes wrong | found by | check | seconds |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		d := planted.Describe(r.bug)
		by, kind := "nobody", ""
		if r.test != "" {
			by, kind = r.by.pkg+"."+r.test, cmpOr(r.by.kind, "own")
			if strings.HasPrefix(r.why, "panic: test timed out") {
				by += " (its limit of time)"
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %.1f |\n", d.Name, d.Package, d.Wrong, by, kind, r.took.Seconds())
	}
	return b.String()
}

const heading = "## Planted bugs\n\n"

const preface = `Bugs that are put into the engine on purpose, one at a time: see package internal/planted. ` + "`make planted`" + ` runs the
tests with each of them and writes this section. A check that is called own is a test of the bug's package; all others are
general: models, seeds of fuzz targets, goroutines that compete, simulated schedules, loads and histories of package stress, and
comparisons of two ways to the same end. A check called race runs with the race detector, for bugs that are a missing
happens-before edge. The seconds are those from the first check to the one that found the bug.

`

// writeSection puts a table into the section of a page. There has to be one: a page to which runs are added ends with their table.
func writeSection(page, t string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), heading)
	if !ok {
		return fmt.Errorf("%s has no section on planted bugs", page)
	}
	after := ""
	if i := strings.Index(rest, "## "); i >= 0 {
		after = "\n" + rest[i:]
	}
	return os.WriteFile(page, []byte(before+heading+preface+t+after), 0o666)
}
