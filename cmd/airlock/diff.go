package main

import (
	"bytes"
	"fmt"
	"strings"
)

const (
	diffContext = 3    // equal lines shown round a change
	diffMost    = 1000 // lines that differ, beyond which no further equal ones are looked for between them
)

// change is a stretch of lines of one text in place of a stretch of the other.
type change struct{ from, to, newFrom, newTo int }

// unified is what would change in a file, in the form of diff -u.
func unified(name string, before, after []byte) []byte {
	a, b := lines(before), lines(after)
	var out bytes.Buffer
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", name, name)
	changes := compareLines(a, b)
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].from-changes[n-1].to <= 2*diffContext {
			n++
		}
		hunk(&out, a, b, changes[:n])
		changes = changes[n:]
	}
	return out.Bytes()
}

// lines cuts a text behind each line break.
func lines(text []byte) []string {
	list := strings.SplitAfter(string(text), "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// hunk writes changes that are near each other with the lines round them.
func hunk(out *bytes.Buffer, a, b []string, changes []change) {
	first, last := changes[0], changes[len(changes)-1]
	before, behind := min(first.from, diffContext), min(len(a)-last.to, diffContext)
	at, newAt := first.from-before, first.newFrom-before
	fmt.Fprintf(out, "@@ -%s +%s @@\n", hunkRange(at, last.to+behind), hunkRange(newAt, last.newTo+behind))
	for _, c := range changes {
		hunkLines(out, " ", a[at:c.from])
		hunkLines(out, "-", a[c.from:c.to])
		hunkLines(out, "+", b[c.newFrom:c.newTo])
		at = c.to
	}
	hunkLines(out, " ", a[at:at+behind])
}

func hunkRange(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func hunkLines(out *bytes.Buffer, mark string, list []string) {
	for _, line := range list {
		out.WriteString(mark + line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// compareLines finds what differs, by Myers' algorithm: the furthest places that can be reached with 0, 1, 2, … differences.
func compareLines(a, b []string) []change {
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	a, b = a[start:len(a)-end], b[start:len(b)-end]
	var traces [][]int // the furthest x by diagonal, from -d to d, before step d
	reach := []int{0, 0, 0}
	for d := 0; d <= min(len(a)+len(b), diffMost); d++ {
		// reach has the diagonals -d-1 to d+1.
		traces = append(traces, reach)
		next := make([]int, len(reach)+2)
		for k := -d; k <= d; k += 2 {
			x := step(reach, d, k)
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			next[k+d+2] = x
			if x >= len(a) && x-k >= len(b) {
				return walkBack(traces, len(a), len(b), start)
			}
		}
		reach = next
	}
	return []change{{start, start + len(a), start, start + len(b)}}
}

// step is where diagonal k begins in step d: one line of the new text further on the diagonal above, or one of the old text on that
// below.
func step(reach []int, d, k int) int {
	if d == 0 {
		return 0
	}
	above, below := reach[k+1+d+1], reach[k-1+d+1]
	if k == -d || k != d && below < above {
		return above
	}
	return below + 1
}

// walkBack goes from the ends of both texts to their starts, and collects what was left out or put in.
func walkBack(traces [][]int, x, y, start int) []change {
	var list []change // from the last to the first
	for d := len(traces) - 1; d > 0; d-- {
		k := x - y
		begun := step(traces[d], d, k)
		above, below := traces[d][k+1+d+1], traces[d][k-1+d+1]
		c := change{from: begun, to: begun, newFrom: begun - k - 1, newTo: begun - k}
		x, y = begun, begun-k-1
		if !(k == -d || k != d && below < above) {
			c = change{from: begun - 1, to: begun, newFrom: begun - k, newTo: begun - k}
			x, y = begun-1, begun-k
		}
		c.from, c.to, c.newFrom, c.newTo = c.from+start, c.to+start, c.newFrom+start, c.newTo+start
		if n := len(list); n > 0 && list[n-1].from == c.to && list[n-1].newFrom == c.newTo {
			list[n-1].from, list[n-1].newFrom = c.from, c.newFrom
			continue
		}
		list = append(list, c)
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}
