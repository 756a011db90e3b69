package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/airlock-ecs/airlock/stress"
)

type stressCommand struct {
	Scenario  string        `placeholder:"NAME" complete:"scenario" help:"What to do; --list shows what there is."`
	For       time.Duration `default:"10s" help:"How long."`
	Producers int           `placeholder:"N" help:"Goroutines that ask the engine for things; without it, as many as the scenario says."`
	Seed      *uint64       `placeholder:"S" help:"Of every random choice; without it, one is drawn, and printed."`
	Faults    bool          `help:"Failing and panicking callbacks, contexts that end, small queues, producers that vanish."`
	JSON      bool          `name:"json" help:"Print the report, or the list, as JSON."`
	List      bool          `help:"List the scenarios."`
	Write     *string       `placeholder:"FILE.md" help:"Add the run to this page of runs, docs/RELIABILITY.md say."`
	Log       bool          `help:"Let the engine log to standard error."`
	Flight    *string       `placeholder:"DIR" help:"When a frame takes longer than a 60th of a second, write a trace of the last seconds to a file in this directory, for go tool trace."`
}

// Run ends early when ctx does, and prints what was done until then. That is no failure; a violation is.
func (c *stressCommand) Run(ctx context.Context, stdout io.Writer, stderr stderrWriter) error {
	if c.List {
		return c.list(stdout)
	}
	s, ok := stress.Find(c.Scenario)
	switch {
	case c.Scenario == "":
		return usagef("--scenario is missing; --list shows what there is")
	case !ok:
		return usagef("there is no scenario %q; there are %s", c.Scenario, strings.Join(scenarioNames(), ", "))
	case c.For <= 0:
		return usagef("--for must be above zero, but it is %v", c.For)
	case c.Producers < 0 || c.Producers > mostProducers:
		return usagef("--producers must be between 1 and %d, not %d", mostProducers, c.Producers)
	case c.Write != nil && *c.Write == "":
		return usagef("--write needs the name of a file")
	}
	if c.Write != nil { // what cannot be written is found out here, and not after hours
		if _, err := readRuns(*c.Write); err != nil {
			return err
		}
		out, err := replace(*c.Write)
		if err != nil {
			return err
		}
		out.discard()
	}
	o := stress.Options{For: c.For, Producers: c.Producers, Faults: c.Faults}
	if c.Seed != nil {
		o.Seed = *c.Seed
	} else {
		o.Seed = uint64(time.Now().UnixNano())
	}
	if c.Log {
		o.Logger = slog.New(slog.NewTextHandler(stderr, nil))
	}
	var err error
	if o.Flight, err = flightTo(c.Flight, time.Second/60, stderr); err != nil {
		return err
	}
	b := newBar(stderr, "")
	if b.on {
		o.Progress = func(p stress.Progress) { b.draw(stressProgress(p)) }
	}
	report, err := s.Run(ctx, o)
	b.end()
	if err != nil {
		return err
	}
	return c.tell(report, stdout, stderr)
}

// tell prints what a run came to, writes it down, and fails if something was violated.
func (c *stressCommand) tell(report stress.Report, stdout io.Writer, stderr stderrWriter) (err error) {
	if c.JSON {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(report)
	} else {
		_, err = io.WriteString(stdout, report.String())
	}
	if c.Write != nil {
		err = errors.Join(err, writeRun(*c.Write, report))
	}
	if err != nil && report.Violated == 0 {
		return err
	}
	if report.Violated > 0 {
		if c.JSON { // the text says it already
			fmt.Fprintf(stderr, "airlock: %d violations; to repeat: %s\n", report.Violated, report.Command())
		}
		return errTold
	}
	return nil
}

// mostProducers is what a program with the race detector can have, which is at most 8128 goroutines.
const mostProducers = 8000

func scenarioNames() (names []string) {
	for _, s := range stress.Scenarios() {
		names = append(names, s.Name)
	}
	return names
}

func (c *stressCommand) list(out io.Writer) error {
	if c.JSON {
		type row struct {
			Name      string `json:"name"`
			Producers int    `json:"producers"` // 0: each scenario its own
			About     string `json:"about"`
		}
		var rows []row
		for _, s := range stress.Scenarios() {
			rows = append(rows, row{s.Name, s.Producers, s.About})
		}
		return printJSON(out, rows)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range stress.Scenarios() {
		producers := fmt.Sprintf("%d producers", s.Producers)
		if s.Producers < 2 {
			producers = strings.TrimSuffix(producers, "s")
		}
		if s.Producers == 0 {
			producers = "each its own"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, producers, s.About)
	}
	return t.Flush()
}

// stressProgress is how far a run has come, in a share of its time and in words.
func stressProgress(p stress.Progress) (share float64, text string) {
	text = fmt.Sprintf("%s: %v of %v, %d operations, frame %d", p.Scenario, p.Elapsed.Round(100*time.Millisecond), p.For, p.Operations, p.Frame)
	if p.Violations > 0 {
		text += fmt.Sprintf(", %d VIOLATIONS", p.Violations)
	}
	return float64(p.Elapsed) / float64(p.For), text
}

const (
	runsHead = `# Reliability

What was run, and what came of it: a row for each run of ` + "`airlock stress --write`" + `, added by the run itself when it
ended. What is not here was not run.

An operation is a callback that was submitted to the engine and settled in the ledger of package [stress](../stress);
a failure is an invariant that did not hold. Figures are for two cores that nobody shares; a missed one says as much
about the machine. The load of the machine is the average of the last minute, where the system tells it.

`
	runsTable = `| date | scenario | seconds | operations | ran a second | outcomes | seed | producers | GOMAXPROCS | race | faults | load | missed figures | failures |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
`
)

// readRuns reads a page of runs, or begins one.
func readRuns(name string) ([]byte, error) {
	page, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []byte(runsHead + runsTable), nil
	case err != nil:
		return nil, err
	case !bytes.Contains(page, []byte(runsTable)):
		return nil, fmt.Errorf("%s is no page of runs: it has no table of them", name)
	}
	return page, nil
}

// writeRun adds a row to a page of runs.
func writeRun(name string, r stress.Report) error {
	page, err := readRuns(name)
	if err != nil {
		return err
	}
	var missed, outcomes []string
	for _, f := range r.Figures {
		if !f.Met {
			missed = append(missed, f.String())
		}
	}
	for _, o := range slices.Sorted(maps.Keys(r.Outcomes)) {
		outcomes = append(outcomes, fmt.Sprintf("%d %s", r.Outcomes[o], o))
	}
	failures := "none"
	if r.Violated > 0 {
		failures = fmt.Sprintf("%d, the first: %s: %s", r.Violated, r.Violations[0].Invariant, r.Violations[0].Detail)
	}
	if r.Interrupted {
		failures += " (interrupted)"
	}
	cells := []any{
		time.Now().UTC().Format(time.DateOnly), r.Scenario, int(r.Seconds), r.Operations, int(r.Rate), strings.Join(outcomes, ", "), r.Seed,
		r.Producers, r.GOMAXPROCS, r.Race, r.Faults, machineLoad(), strings.Join(missed, "; "), failures,
	}
	for _, cell := range cells {
		text := strings.NewReplacer("|", `\|`, "\n", " ").Replace(fmt.Sprint(cell))
		page = append(page, "| "+text+" "...)
	}
	page = append(page, "|\n"...)
	out, err := replace(name)
	if err != nil {
		return err
	}
	_, err = out.Write(page)
	return out.commit(err)
}

// machineLoad is the load average of the last minute, where there is one.
func machineLoad() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
