package declare

import (
	"bytes"
	"slices"
	"strings"
)

// Format lays out a source: a statement to a line with tabs for the blocks round it, or a block that stands in one line in one
// line with semicolons. It changes nothing but space and semicolons, keeps comments, the breaks within a
// statement and single empty lines, and gives back what it made itself as it is. The name is for errors only. The caller keeps src.
//
// Errors: Errors, if src does not parse. Whether names mean something does not matter.
// Concurrency: any goroutine. Allocates: yes, in proportion to the length of src.
func Format(name string, src []byte) ([]byte, error) {
	f, _, tokens, err := read(name, src)
	if err != nil {
		return nil, err
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	w := &formatter{src: f.src, tokens: tokens}
	for i := range tokens {
		w.token(i)
	}
	if len(w.out) > 0 {
		w.out = append(w.out, '\n')
	}
	return w.out, nil
}

// formatter writes the tokens of a sound source.
type formatter struct {
	src    []byte
	tokens []token
	out    []byte
	inline []bool // for each open block: it stays in one line
	round  int    // open round and square brackets
	last   int    // token written last, as a number from 1; 0 for none
	ended  bool   // the last token was a comment, so that the line ends
}

func (w *formatter) text(i int) string {
	return strings.TrimRight(string(w.src[w.tokens[i].off:w.tokens[i].end]), " \t\r")
}

// token writes a token with the space before it.
func (w *formatter) token(i int) {
	t, text := w.tokens[i], w.text(i)
	if t.kind == tokEnd || text == ";" && t.kind == tokMark {
		return
	}
	opens, closes := t.role&roleBlock != 0 && text == "{", t.role&roleBlock != 0 && text == "}"
	inline := len(w.inline) > 0 && w.inline[len(w.inline)-1]
	if closes {
		w.inline = w.inline[:len(w.inline)-1]
	}
	if closing := text == ")" || text == "]"; closing && t.kind == tokMark {
		w.round--
	}
	switch {
	case w.last == 0:
	case w.breaks(i, closes, inline):
		w.newline(i, closes)
	case t.role&roleStart != 0 && !w.after("{"):
		w.out = append(w.out, "; "...)
	case w.spaced(i):
		w.out = append(w.out, ' ')
	}
	w.out = append(w.out, text...)
	if opens {
		w.inline = append(w.inline, w.staysInline(i))
	}
	if opening := text == "(" || text == "["; opening && t.kind == tokMark {
		w.round++
	}
	w.last, w.ended = i+1, t.kind == tokComment
}

// after reports whether the token written last is a mark.
func (w *formatter) after(mark string) bool {
	return w.last > 0 && w.tokens[w.last-1].kind == tokMark && w.text(w.last-1) == mark
}

// breaks reports whether a token goes to a new line.
func (w *formatter) breaks(i int, closes, inline bool) bool {
	switch t := w.tokens[i]; {
	case w.ended:
		return true
	case t.kind == tokComment || t.role&roleStart == 0 && !closes:
		return t.line != w.tokens[i-1].line // as it was written
	case closes && w.tokens[w.last-1].role&roleBlock != 0 && w.after("{"):
		return false // an empty block
	default:
		return !inline
	}
}

// newline ends the line and indents the next one. One empty line stays where there were some, but not at the edges of a block.
func (w *formatter) newline(i int, closes bool) {
	t := w.tokens[i]
	starts := t.role&roleStart != 0 || t.kind == tokComment && w.round == 0
	if starts && t.line > w.tokens[i-1].line+1 && !(w.after("{") && w.tokens[w.last-1].role&roleBlock != 0) {
		w.out = append(w.out, '\n')
	}
	indent := len(w.inline) + w.round
	if bracket := w.src[t.off]; !starts && !closes && w.round == 0 && bracket != ')' && bracket != ']' {
		indent++ // what goes on with a statement
	}
	w.out = append(w.out, '\n')
	w.out = append(w.out, bytes.Repeat([]byte{'\t'}, indent)...)
}

// staysInline reports whether the block that a token opens begins and ends in one line, as do those in it.
func (w *formatter) staysInline(open int) bool {
	depth := 0
	for i := open; i < len(w.tokens) && w.tokens[i].line == w.tokens[open].line; i++ {
		if w.tokens[i].role&roleBlock == 0 {
			continue
		}
		if w.text(i) == "{" {
			depth++
		} else if depth--; depth == 0 {
			return true
		}
	}
	return false
}

// spaced reports whether a space stands between a token and the one before it in its line.
func (w *formatter) spaced(i int) bool {
	t, text := w.tokens[i], w.text(i)
	last, before := w.tokens[w.last-1], w.text(w.last-1)
	switch {
	case t.kind == tokComment:
		return true
	case t.kind == tokSlot || t.role&roleCall != 0 || last.role&rolePrefix != 0:
		return false
	case t.kind == tokMark && slices.Contains([]string{")", "]", "[", ",", "."}, text):
		return false
	case last.kind == tokMark && slices.Contains([]string{"(", "[", "@", "."}, before):
		return false
	}
	return true
}
