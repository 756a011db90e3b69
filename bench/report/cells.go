package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/airlock-ecs/airlock/bench/contest"
)

// heading are the columns of the table.
var heading = []string{"workload", "size", "ours", "best peer", "raw", "to peer", "to raw", "allocs", "spread", "target", "met"}

// cells are a row of the table.
func cells(r *contest.Row) []string {
	peer, toPeer := figure(r.Peer, r.Unit)
	raw, toRaw := figure(r.Raw, r.Unit)
	return []string{
		r.Workload, size(r.Size), amount(r.Ours) + " " + r.Unit, peer, raw, toPeer, toRaw,
		allocations(r.Allocs), percent(r.Spread), target(r), met(r),
	}
}

// figure is what a side cost, with its name, and ours as a multiple of it.
func figure(f *contest.Figure, unit string) (cost, ratio string) {
	if f == nil {
		return "", ""
	}
	return fmt.Sprintf("%s %s (%s)", amount(f.Cost), unit, f.Name), times(f.Ratio)
}

// size is a number of entities: a power of two in k or M, 10 million as 10M.
func size(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + "M"
	case n >= 1_000_000 && n%1_000_000 == 0:
		return strconv.Itoa(n/1_000_000) + "M"
	case n >= 1<<10 && n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + "k"
	case n >= 1_000 && n%1_000 == 0:
		return strconv.Itoa(n/1_000) + "k"
	}
	return strconv.Itoa(n)
}

// amount is a figure with three digits that matter, and its thousands apart.
func amount(x float64) string {
	switch {
	case x >= 1000:
		return grouped(strconv.FormatFloat(x, 'f', 0, 64))
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// grouped puts commas between the thousands of digits.
func grouped(digits string) string {
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// times is a ratio. It is rounded to the third digit, so that nothing that misses a target seems to meet it.
func times(x float64) string {
	if x < 10 {
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}

func percent(x float64) string { return strconv.FormatFloat(100*x, 'f', 0, 64) + " %" }

// allocations are those of one operation.
func allocations(x float64) string {
	switch {
	case math.IsNaN(x):
		return ""
	case x < 0.0005:
		return "0"
	case x >= 1:
		return amount(x)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// target is the bound in words.
func target(r *contest.Row) string {
	var bounds []string
	if r.Target.Peer > 0 {
		bounds = append(bounds, fmt.Sprintf("%g × peer", r.Target.Peer))
	}
	if r.Target.Raw > 0 {
		bounds = append(bounds, fmt.Sprintf("%g × raw", r.Target.Raw))
	}
	if r.Target.Value > 0 {
		bounds = append(bounds, fmt.Sprintf("%g %s", r.Target.Value, r.Unit))
	}
	return strings.Join(bounds, ", ")
}

// met says whether the target is reached. One that is reached by noisy figures is not said to be.
func met(r *contest.Row) string {
	switch {
	case !r.Bound() && r.Noisy():
		return "noisy"
	case !r.Bound():
		return ""
	case !r.Met() && r.Noisy():
		return "no, noisy"
	case !r.Met():
		return "no"
	case r.Noisy():
		return "noisy"
	}
	return "yes"
}
