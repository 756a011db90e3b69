package declare

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error is one fault of a source.
type Error struct {
	File    string
	Pos     Pos // zero where no place in the file is at fault
	Message string
	Source  string // the line, or what is near Pos of a long one, fit to be printed
	Caret   int    // characters of Source before the one at fault
}

// Error is the place and the fault, then the line and a caret under the place.
func (e *Error) Error() string {
	if e.Pos.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s\n\t%s\n\t%s^", e.File, e.Pos.Line, e.Pos.Column, e.Message, e.Source,
		strings.Repeat(" ", e.Caret))
}

// Errors are all faults of a source, in the order of their places. It is never empty.
type Errors []*Error

// Error is all of them, one below the other.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each of them to errors.As.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// faults collects the errors of one source. It keeps MaxErrors of them and counts the others.
type faults struct {
	file  string
	src   []byte
	lines []int // offsets of the starts of the lines
	found Errors
	more  int
}

// newFaults reads where the lines of a source start.
func newFaults(file string, src []byte) *faults {
	f := &faults{file: file, src: src, lines: []int{0}}
	for i, c := range src {
		if c == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// checkUTF8 reports the first byte of each line that is not UTF-8.
func (f *faults) checkUTF8() {
	for i, start := range f.lines {
		line, _, _ := bytes.Cut(f.src[start:], []byte{'\n'})
		if utf8.Valid(line) {
			continue
		}
		column := 1
		for r, size := utf8.DecodeRune(line); r != utf8.RuneError || size != 1; r, size = utf8.DecodeRune(line) {
			line, column = line[size:], column+1
		}
		f.addf(Pos{Line: i + 1, Column: column}, "byte 0x%02x is not UTF-8", line[0])
	}
}

func (f *faults) addf(at Pos, format string, args ...any) {
	if len(f.found) >= MaxErrors {
		f.more++
		return
	}
	e := &Error{File: f.file, Pos: at, Message: fmt.Sprintf(format, args...)}
	if at.Line > 0 {
		e.Source, e.Caret = f.excerpt(at)
	}
	f.found = append(f.found, e)
}

// full reports whether another error would only be counted, so that no work is worth doing for it.
func (f *faults) full() bool { return len(f.found) >= MaxErrors }

// err returns the errors found, sorted; nil if there are none.
func (f *faults) err() error {
	if len(f.found) == 0 {
		return nil
	}
	slices.SortStableFunc(f.found, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	if f.more > 0 {
		f.found = append(f.found, &Error{File: f.file, Message: fmt.Sprintf("and %d more errors; only %d are told", f.more, MaxErrors)})
		f.more = 0
	}
	return f.found
}

// Characters of a long line that an error shows before and after the place of the fault.
const (
	excerptBefore = 60
	excerptAfter  = 40
)

// excerpt returns the line of a place, cut to what is near it, and the characters in it before the place.
func (f *faults) excerpt(at Pos) (string, int) {
	line := f.src[f.lines[at.Line-1]:]
	var b strings.Builder
	caret := at.Column - 1
	for i := 0; len(line) > 0; i++ {
		r, size := utf8.DecodeRune(line)
		if r == '\n' || i > caret+excerptAfter {
			break
		}
		line = line[size:]
		switch {
		case i < caret-excerptBefore:
		case r == '\r' && (len(line) == 0 || line[0] == '\n'):
		case r == '\t':
			b.WriteByte(' ')
		case !unicode.IsPrint(r):
			b.WriteRune(utf8.RuneError)
		default:
			b.WriteRune(r)
		}
	}
	return strings.TrimRight(b.String(), " "), min(caret, excerptBefore)
}

// nearest returns the name closest to what was written, as the end of a message; nothing if none is close.
func nearest(written string, names []string) string {
	const longest, most = 32, 4096 // beyond, a suggestion is not worth the time
	if len(written) > longest {
		return ""
	}
	best, distance := "", max(len(written)/3, 1)
	for _, name := range names[:min(len(names), most)] {
		if len(name) > longest || name == written {
			continue
		}
		if d := edits(written, name); d < distance || d == distance && best == "" {
			best, distance = name, d
		}
	}
	if best == "" || distance >= len(written) {
		return ""
	}
	return "; did you mean " + best + "?"
}

// edits is the number of bytes to insert, remove or replace to make b of a, two neighbours swapped counting as one.
func edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
