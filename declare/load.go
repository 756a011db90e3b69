package declare

import (
	"bytes"
	"unicode/utf8"
)

// Load reads a world file, checks it and binds its parameters: to the values in params where there is one, otherwise to
// those of the file. The name is for errors only. The caller keeps src and params.
//
// Errors: Errors, all that are found, up to MaxErrors.
// Concurrency: any goroutine. Allocates: yes, in proportion to the length of src.
func Load(name string, src []byte, params map[string]float64) (*Program, error) {
	f, parsed, _, err := read(name, src)
	if err != nil {
		return nil, err
	}
	prog := check(f, parsed, params)
	if err := f.err(); err != nil {
		return nil, err
	}
	return prog, nil
}

// read parses a source. The error is only for what is not worth parsing; other faults are kept in the faults.
func read(name string, src []byte) (*faults, *file, []token, error) {
	src = bytes.TrimPrefix(src, []byte("\uFEFF")) // a byte order mark is no character of the first line
	if len(src) > MaxSource {
		f := newFaults(name, src[:MaxSource])
		line := len(f.lines)
		at := Pos{Line: line, Column: utf8.RuneCount(f.src[f.lines[line-1]:]) + 1}
		f.addf(at, "%d bytes; a file has up to %d, which end here", len(src), MaxSource)
		return nil, nil, nil, f.err()
	}
	f := newFaults(name, src)
	f.checkUTF8()
	tokens := lex(f)
	parsed := parse(f, tokens)
	return f, parsed, tokens, nil
}
