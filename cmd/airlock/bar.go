package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// bar shows on a terminal how far something long has come, in a line that overwrites itself. Anywhere else it shows nothing.
type bar struct {
	out   io.Writer
	on    bool
	unit  string    // of what show counts
	next  time.Time // when there is something to show again
	width int       // of the line that is shown; 0: none
}

const (
	barEvery = 100 * time.Millisecond
	barWidth = 24
)

func newBar(out stderrWriter, unit string) *bar {
	return &bar{out: out.Writer, on: terminal(out.Writer), unit: unit, next: time.Now().Add(barEvery)}
}

// terminal reports whether what is written is shown at once.
func terminal(out io.Writer) bool {
	if o, ok := out.(*output); ok {
		out = o.Writer
	}
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// show is called after every step. What is over at once needs no bar.
func (b *bar) show(done, of uint64) {
	if !b.on {
		return
	}
	if now := time.Now(); now.After(b.next) || b.width > 0 && done == of {
		b.next = now.Add(barEvery)
		b.draw(float64(done)/float64(max(of, 1)), fmt.Sprintf("%s %d of %d", b.unit, done, of))
	}
}

// draw draws the line, whatever the time.
func (b *bar) draw(share float64, text string) {
	full := int(min(max(share, 0), 1) * barWidth)
	line := fmt.Sprintf("[%s%s] %s", strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), text)
	fmt.Fprintf(b.out, "\r%-*s", b.width, line)
	b.width = len(line)
}

// end leaves the line.
func (b *bar) end() {
	if b.width > 0 {
		fmt.Fprintln(b.out)
	}
}
