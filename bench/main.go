package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"time"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/bench/report"
	"github.com/airlock-ecs/airlock/bench/work"
)

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are what the command line says.
type settings struct {
	contest.Options
	names *regexp.Regexp
	size  int
	quick bool
	write bool
	docs  string
}

// parse reads the command line.
func parse(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{Options: contest.Options{Least: 2 * time.Millisecond}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	names := flags.String("run", "", "measure only workloads whose name matches this `regexp`")
	flags.IntVar(&s.size, "size", math.MaxInt, "leave out sizes above this")
	flags.IntVar(&s.Passes, "passes", 21, "rounds in which each side has its turn")
	flags.DurationVar(&s.Budget, "budget", 20*time.Second, "fewer rounds, but five at least, if a row takes longer than this")
	flags.BoolVar(&s.quick, "quick", false, "a few short passes at the smallest size: to see that it works")
	flags.BoolVar(&s.write, "write", false, "write the table into PERFORMANCE.md, and the chart to bench.svg")
	flags.StringVar(&s.docs, "docs", filepath.Join("..", "docs"), "where -write finds `directory` docs")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	var err error
	s.names, err = regexp.Compile(*names)
	switch {
	case err != nil:
		return nil, fmt.Errorf("-run: %w", err)
	case flags.NArg() > 0:
		return nil, fmt.Errorf("what is %q?", flags.Arg(0))
	case s.Passes < 1:
		return nil, fmt.Errorf("-passes %d: at least one", s.Passes)
	case s.size < 1:
		return nil, fmt.Errorf("-size %d: at least one", s.size)
	case s.write && (s.quick || *names != ""):
		return nil, errors.New("-write is for all workloads, measured in full: not with -quick or -run")
	}
	if s.quick {
		s.Passes, s.Least, s.Budget = min(s.Passes, 3), 100*time.Microsecond, time.Second
	}
	return s, nil
}

// sizes are those that a workload is to be measured at.
func (s *settings) sizes(w *contest.Workload) (all []int) {
	if s.quick {
		const small = 1 << 10
		return []int{min(w.Sizes[0], small, s.size)}
	}
	for _, n := range w.Sizes {
		if n <= s.size {
			all = append(all, n)
		}
	}
	return all
}

// run measures and shows. What fails is left out of the table and told at the end.
func run(args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	// Garbage must not make the heap twice as big as what there is room for.
	available := report.AvailableBytes()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(available / 10 * 8))
	rows, failed := s.measure(available/10*7, stderr)
	if err := report.Table(stdout, rows); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	if s.write {
		return s.publish(rows)
	}
	return nil
}

// measure runs all workloads that were asked for and fit into the memory.
func (s *settings) measure(bytes int64, progress io.Writer) (rows []*contest.Row, failed error) {
	for _, w := range work.All() {
		if !s.names.MatchString(w.Name) {
			continue
		}
		for _, n := range s.sizes(w) {
			if w.Bytes != nil && w.Bytes(n) > bytes {
				fmt.Fprintf(progress, "%s at %d: left out, it might take %d MiB\n", w.Name, n, w.Bytes(n)>>20)
				continue
			}
			fmt.Fprintf(progress, "%s at %d\n", w.Name, n)
			row, err := contest.Measure(w, n, s.Options)
			if err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			rows = append(rows, row)
		}
	}
	return rows, failed
}

// publish writes the table and the chart into the documentation.
func (s *settings) publish(rows []*contest.Row) error {
	var chart bytes.Buffer
	if err := report.Chart(&chart, rows); err != nil {
		return err
	}
	page := filepath.Join(s.docs, "PERFORMANCE.md")
	document, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("`make bench-compare` wrote this, with at most %d passes a row.\n\n%s\n%s\n![ratios](bench.svg)\n",
		s.Passes, report.ThisMachine(s.docs).Markdown(), report.Markdown(rows))
	document, err = report.Section(document, text)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	if err := os.WriteFile(page, document, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.docs, "bench.svg"), chart.Bytes(), 0o644)
}
