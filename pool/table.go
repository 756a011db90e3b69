package pool

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tableColumns are the columns of FormatTable; those of numbers end below the end of their heading. The last has no
// heading: it is where a Fixed pool in which everything is in use is marked.
var tableColumns = [...]struct {
	heading string
	number  bool
}{
	{"Prefab", false}, {"Cap", true}, {"In-use", true}, {"Free", true}, {"Peak", true}, {"Grow", false}, {"Warm", false}, {"", false},
}

type tableRow = [len(tableColumns)]string

// FormatTable writes a line for each pool, below a line of headings, in the order of rows:
//
//	Prefab  Cap  In-use  Free  Peak  Grow  Warm
//	Arrow    64      12    52    40  ×2    ✓
//	Grunt    24      24     0    24  fix         at its cap, 3 refused
//
// Grow is ×2 for Double, +n for Additive(n), and fix for Fixed; Warm marks pools whose instances were made up front. A
// Fixed pool at its cap is marked, with the number of those it has refused. Columns are aligned by characters; a name
// that cannot be seen as it is, is quoted.
//
// Errors: those of w, which is written to once.
// Concurrency: any goroutine that may write to w. Allocates: yes.
func FormatTable(w io.Writer, rows iter.Seq2[string, Stats]) error {
	var headings tableRow
	for i, c := range tableColumns {
		headings[i] = c.heading
	}
	table := []tableRow{headings}
	for name, s := range rows {
		table = append(table, newTableRow(name, s))
	}
	var widths [len(tableColumns)]int
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b bytes.Buffer
	for _, row := range table {
		line := ""
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if tableColumns[i].number {
				line += space + cell + "  "
			} else {
				line += cell + space + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("pool: writing the table: %w", err)
	}
	return nil
}

func newTableRow(name string, s Stats) tableRow {
	warm, mark := "", ""
	if s.Warm {
		warm = "✓"
	}
	if s.Grow == Fixed() && s.InUse >= s.Cap {
		mark = fmt.Sprintf("at its cap, %d refused", s.Refused)
	}
	return tableRow{
		tableName(name), strconv.Itoa(s.Cap), strconv.Itoa(s.InUse), strconv.Itoa(s.Free), strconv.Itoa(s.Peak),
		s.Grow.Short(), warm, mark,
	}
}

// tableName is a name as it can stand in a table: one that would break the lines or look like nothing is quoted.
func tableName(name string) string {
	visible := strings.TrimSpace(name) == name && name != "" && utf8.ValidString(name)
	for _, r := range name {
		visible = visible && unicode.IsPrint(r)
	}
	if visible {
		return name
	}
	return strconv.Quote(name)
}
