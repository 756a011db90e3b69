package stress

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/airlock-ecs/airlock/logic"
)

// Report is what a run did, measured and found. Times are in milliseconds, memory in bytes.
type Report struct {
	Scenario    string            `json:"scenario"`
	Seed        uint64            `json:"seed"`
	Producers   int               `json:"producers"`
	Faults      bool              `json:"faults"`
	Race        bool              `json:"race"` // built with the race detector
	GOMAXPROCS  int               `json:"gomaxprocs"`
	Seconds     float64           `json:"seconds"`
	Interrupted bool              `json:"interrupted"`
	Operations  uint64            `json:"operations"` // submitted, and settled in the ledger
	Rate        float64           `json:"rate"`       // of them, that ran a second
	Outcomes    map[string]uint64 `json:"outcomes"`
	Spawned     uint64            `json:"spawned"`
	Destroyed   uint64            `json:"destroyed"`
	Counts      map[string]uint64 `json:"counts,omitempty"` // what only this scenario counts
	Frames      uint64            `json:"frames"`
	Dropped     uint64            `json:"droppedFrames"`
	Skipped     uint64            `json:"publishSkips"`
	Overruns    uint64            `json:"overruns"`
	Frame       Times             `json:"frame"`     // a frame's work
	Handshake   Times             `json:"handshake"` // from a caller's queueing to its grant
	Stall       Times             `json:"stall"`     // of Logic, for callers
	Heap        []HeapMark        `json:"heap"`      // what is in use after a collection: at the start, every minute, at the end
	Goroutines  [2]int            `json:"goroutines"`
	Figures     []Figure          `json:"figures,omitempty"`
	Violations  []Violation       `json:"violations"` // the first ones of each invariant
	Violated    int               `json:"violated"`   // all
}

// Times is a distribution of durations, in milliseconds.
type Times struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	Max   float64 `json:"max"`
}

// HeapMark is how much of the heap was in use at some time.
type HeapMark struct {
	Seconds float64 `json:"seconds"`
	Bytes   uint64  `json:"bytes"`
}

// Figure is a number that the engine is to reach on two cores that nobody shares. Missing one is no violation:
// it says as much about the machine.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Bound float64 `json:"bound"`
	Least bool    `json:"least"` // the bound is from below
	Met   bool    `json:"met"`
}

func atLeast(name string, value, bound float64) Figure {
	return Figure{name, value, bound, true, value >= bound}
}

func atMost(name string, value, bound float64) Figure {
	return Figure{name, value, bound, false, value <= bound}
}

// String is the figure with its bound.
func (f Figure) String() string {
	than, verdict := "at most", "missed"
	if f.Least {
		than = "at least"
	}
	if f.Met {
		verdict = "met"
	}
	return fmt.Sprintf("%s: %.4g, %s %.4g: %s", f.Name, f.Value, than, f.Bound, verdict)
}

func milliseconds(d time.Duration) float64 {
	return math.Round(d.Seconds()*1e6) / 1e3
}

func timesOf(h logic.Histogram) Times {
	return Times{h.Count, milliseconds(h.Quantile(0.5)), milliseconds(h.Quantile(0.9)), milliseconds(h.Quantile(0.99)), milliseconds(h.Max)}
}

// merge adds what another run did, as soak does with its pieces. Times are those of the worst piece.
func (r *Report) merge(piece Report) {
	r.Operations += piece.Operations
	r.Rate += piece.Rate * piece.Seconds // soak divides it
	r.Spawned += piece.Spawned
	r.Destroyed += piece.Destroyed
	r.Frames += piece.Frames
	r.Dropped += piece.Dropped
	r.Skipped += piece.Skipped
	r.Overruns += piece.Overruns
	add(&r.Outcomes, piece.Outcomes)
	add(&r.Counts, piece.Counts)
	add(&r.Counts, map[string]uint64{"runs of " + piece.Scenario: 1})
	for _, t := range []struct{ to, from *Times }{{&r.Frame, &piece.Frame}, {&r.Handshake, &piece.Handshake}, {&r.Stall, &piece.Stall}} {
		t.to.Count += t.from.Count
		t.to.P50, t.to.P90 = max(t.to.P50, t.from.P50), max(t.to.P90, t.from.P90)
		t.to.P99, t.to.Max = max(t.to.P99, t.from.P99), max(t.to.Max, t.from.Max)
	}
	for _, v := range piece.Violations {
		if len(r.Violations) < 4*mostOfAKind {
			v.Detail = fmt.Sprintf("%s, seed %d: %s", piece.Scenario, piece.Seed, v.Detail)
			r.Violations = append(r.Violations, v)
		}
	}
	r.Violated += piece.Violated
}

func add(to *map[string]uint64, from map[string]uint64) {
	if *to == nil {
		*to = map[string]uint64{}
	}
	for k, n := range from {
		(*to)[k] += n
	}
}

// counted is a map of counts in one line.
func counted(m map[string]uint64) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(parts, ", ")
}

// Command is the command that repeats the run.
//
// Concurrency: any goroutine. Allocates: the string.
func (r Report) Command() string {
	run := "go run ./cmd/airlock"
	if r.Race {
		run = "go run -race ./cmd/airlock"
	}
	s := fmt.Sprintf("GOMAXPROCS=%d %s stress --scenario %s --for %s --seed %d", r.GOMAXPROCS, run, r.Scenario,
		time.Duration(max(r.Seconds, 0.1)*float64(time.Second)).Round(100*time.Millisecond), r.Seed)
	if r.Producers > 0 {
		s += fmt.Sprintf(" --producers %d", r.Producers)
	}
	if r.Faults && r.Scenario != "soak" {
		s += " --faults"
	}
	return s
}

// String is the report for people.
func (r Report) String() string {
	var b strings.Builder
	interrupted := ""
	if r.Interrupted {
		interrupted = ", interrupted"
	}
	producers := fmt.Sprintf(" by %d producers", r.Producers)
	if r.Producers == 0 {
		producers = ""
	}
	fmt.Fprintf(&b, "%s: %d operations%s in %.1f s%s, %.0f ran a second; seed %d, GOMAXPROCS %d, race detector %v, faults %v\n",
		r.Scenario, r.Operations, producers, r.Seconds, interrupted, r.Rate, r.Seed, r.GOMAXPROCS, r.Race, r.Faults)
	fmt.Fprintf(&b, "  outcomes: %s\n", counted(r.Outcomes))
	fmt.Fprintf(&b, "  entities: %d spawned, %d destroyed\n", r.Spawned, r.Destroyed)
	if len(r.Counts) > 0 {
		fmt.Fprintf(&b, "  counts: %s\n", counted(r.Counts))
	}
	fmt.Fprintf(&b, "  frames: %d, %d dropped, %d not published, %d overruns\n", r.Frames, r.Dropped, r.Skipped, r.Overruns)
	for _, t := range []struct {
		name string
		of   Times
	}{{"frame", r.Frame}, {"handshake", r.Handshake}, {"stall", r.Stall}} {
		fmt.Fprintf(&b, "  %s: p50 %.3f ms, p90 %.3f ms, p99 %.3f ms, max %.3f ms\n", t.name, t.of.P50, t.of.P90, t.of.P99, t.of.Max)
	}
	b.WriteString("  heap:")
	for _, m := range r.Heap {
		fmt.Fprintf(&b, " %.1f MiB at %.0f s;", float64(m.Bytes)/(1<<20), m.Seconds)
	}
	fmt.Fprintf(&b, " goroutines: %d before, %d after\n", r.Goroutines[0], r.Goroutines[1])
	for _, f := range r.Figures {
		fmt.Fprintf(&b, "  %v\n", f)
	}
	if r.Violated == 0 {
		b.WriteString("  no violation\n")
		return b.String()
	}
	fmt.Fprintf(&b, "  %d VIOLATIONS, the first:\n", r.Violated)
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "    %s: %s\n", v.Invariant, strings.ReplaceAll(v.Detail, "\n", "\n      "))
	}
	fmt.Fprintf(&b, "  to repeat: %s\n", r.Command())
	return b.String()
}
