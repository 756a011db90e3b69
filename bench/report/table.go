package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/airlock-ecs/airlock/bench/contest"
)

// Table writes the rows for a terminal.
func Table(w io.Writer, rows []*contest.Row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(heading, "\t")) // Flush tells
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(cells(r), "\t"))
	}
	return t.Flush()
}

// Markdown is the table as Markdown. What misses its target is bold.
func Markdown(rows []*contest.Row) string {
	var b strings.Builder
	line := func(columns []string) { b.WriteString("| " + strings.Join(columns, " | ") + " |\n") }
	line(heading)
	b.WriteString(strings.Repeat("|---", len(heading)) + "|\n")
	for _, r := range rows {
		columns := cells(r)
		if r.Bound() && !r.Met() {
			last := len(columns) - 1
			columns[last] = "**" + columns[last] + "**"
		}
		line(columns)
	}
	return b.String()
}
