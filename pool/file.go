package pool

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxFileBytes is the size of the longest pool file that is read.
	MaxFileBytes = 1 << 20

	// defaultCapacity is that of a pool whose declaration leaves it out.
	defaultCapacity = 16

	// maxDeclared bounds every number in a pool file. No registry has more entities by default, and a number above it
	// is a slip of the hand that would take the machine's memory.
	maxDeclared = 1 << 24
)

// ErrFile reports a pool file that says nothing that could be applied. The error is a *FileError.
var ErrFile = errors.New("pool: bad pool file")

// Declared is a pool as a file declares it.
type Declared struct {
	Prefab   string // never empty, and unique in its file
	Capacity int    // 0 to 1<<24; 16 if the file doesn't say
	Grow     Grow   // Double if the file doesn't say
	Prewarm  bool
	Max      int // 0: no limit; else at least Capacity
	Line     int // where the declaration begins
}

// ParseFile reads the pools that src declares, in their order there. The name is what errors call the file. A file
// looks like this:
//
//	// Comments end with the line; /* these may be long, and /* nested */ */.
//	Pools([
//	    Pool( prefab: "Arrow", capacity: 64, grow: Additive(16), prewarm: true, max: 256 ),
//	    Pool( prefab: "Grunt" ), // the others have defaults: capacity 16, Double, not pre-warmed, no max
//	])
//
// That is a piece of RON (Rusty Object Notation): fields in any order, a comma after the last of a list if you like,
// grow one of Fixed, Double and Additive(n). Strings stay on their line and have RON's escapes: \" \' \\ \n \r \t \0,
// \x41 and \u{1F3F9}. Numbers are decimal and go to 1<<24, n of Additive starts at 1, and a max of 0 is none. Lines
// may end in CRLF, and a byte order mark before the first is skipped.
//
// Errors: a *FileError, which wraps ErrFile, with the place of the first thing that is wrong. There are no pools then:
// a file counts whole or not at all.
//
// Concurrency: any goroutine. Allocates: yes.
func ParseFile(name string, src []byte) ([]Declared, error) {
	p := &parser{name: name, src: string(src), line: 1, names: map[string]int{}}
	return p.parse()
}

// ReadFile is ParseFile of what r has to say. Of a source without an end it reads no more than it takes to refuse it.
//
// Errors: those of ParseFile, and of r.
// Concurrency: any goroutine that may read r. Allocates: yes.
func ReadFile(name string, r io.Reader) ([]Declared, error) {
	src, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("pool: reading %s: %w", name, err)
	}
	return ParseFile(name, src)
}

// FormatFile writes pools as a file that ParseFile reads as the same pools, one on each line. What is no UTF-8 in a
// prefab's name becomes U+FFFD, for such a name cannot be declared.
//
// Concurrency: any goroutine. Allocates: yes.
func FormatFile(pools []Declared) []byte {
	b := []byte("Pools([\n")
	for _, d := range pools {
		b = fmt.Appendf(b, "    Pool( prefab: %s, capacity: %d, grow: %v, prewarm: %t", quote(d.Prefab), d.Capacity, d.Grow, d.Prewarm)
		if d.Max != 0 {
			b = fmt.Appendf(b, ", max: %d", d.Max)
		}
		b = append(b, " ),\n"...)
	}
	return append(b, "])\n"...)
}

// quote is s as a string of RON. strconv.Quote won't do: it knows escapes that RON doesn't.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if i := strings.IndexRune(escaped, r); i >= 0 {
			b.WriteByte('\\')
			b.WriteByte(escapes[i])
		} else if !unicode.IsPrint(r) {
			fmt.Fprintf(&b, `\u{%X}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// FileError says what is wrong with a pool file, and where. It wraps ErrFile.
type FileError struct {
	File         string // as ParseFile was given it
	Line, Column int    // from 1; a column is a character, whatever its width or its bytes
	Problem      string // a sentence without its full stop

	excerpt string // what is shown of the line
	caret   int    // characters before the place in it
}

// Error is one line: file:line:column: problem.
func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// Unwrap is ErrFile.
func (e *FileError) Unwrap() error { return ErrFile }

// Detail is Error, and below it the line of the file with a caret under the place. Of a long line it shows the
// surroundings. It doesn't end with a newline.
//
// Concurrency: any goroutine. Allocates: yes.
func (e *FileError) Detail() string {
	if e.excerpt == "" {
		return e.Error()
	}
	// A tab stays one, so that the caret is below its character however wide tabs are.
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string([]rune(e.excerpt)[:e.caret]))
	return e.Error() + "\n" + e.excerpt + "\n" + indent + "^"
}

const (
	excerptBefore = 60 // characters of a line shown before the place
	excerptAfter  = 40
)

// newFileError is the error at an offset of src.
func newFileError(name, src string, offset int, problem string) *FileError {
	start := strings.LastIndexByte(src[:offset], '\n') + 1
	line, _, _ := strings.Cut(src[start:], "\n")
	column := utf8.RuneCountInString(src[start:offset])
	shown := []rune(printable(strings.TrimSuffix(line, "\r")))
	caret := min(column, len(shown)) // the bytes of a character cut in two have counted as several
	if len(shown)-caret > excerptAfter {
		shown = append(shown[:caret+excerptAfter], '…')
	}
	if cut := caret - excerptBefore; cut > 0 {
		shown = append([]rune{'…'}, shown[cut:]...)
		caret -= cut - 1
	}
	return &FileError{
		File: name, Line: strings.Count(src[:offset], "\n") + 1, Column: column + 1, Problem: problem,
		excerpt: string(shown), caret: caret,
	}
}

// printable is s without what would upset a terminal or the place of the caret: each such character is one U+FFFD.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}
