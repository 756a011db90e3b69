package declare

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// kind is what a token is.
type kind uint8

const (
	tokEnd kind = iota
	tokBad      // reported by the lexer; whoever meets it says nothing more
	tokComment
	tokName
	tokNumber
	tokText
	tokSlot // #3 right behind a name
	tokMark // an operator or a bracket, by its text
)

// role is what the parser found a token to be, for the formatter.
type role uint8

const (
	roleBlock  role = 1 << iota // a brace, the first or last of a block
	roleStart                   // first of a statement
	rolePrefix                  // a unary minus
	roleCall                    // the bracket of a call
)

// token is a word of the source. The end of the source is a token too, with no text.
type token struct {
	kind      kind
	role      role
	off, end  uint32
	line, col uint32
}

func (t token) pos() Pos { return Pos{Line: int(t.line), Column: int(t.col)} }

// lexer splits a source into tokens, in one pass that never looks back.
type lexer struct {
	*faults
	at        int // offset
	line, col uint32
	tokens    []token
}

// lex returns the tokens of a source, the last of them tokEnd, comments among them.
func lex(f *faults) []token {
	x := &lexer{faults: f, line: 1, col: 1}
	for x.at < len(x.src) {
		x.next()
	}
	x.add(tokEnd, 0)
	return x.tokens
}

// add makes a token of the next n bytes, none of which ends a line.
func (x *lexer) add(k kind, n int) {
	columns := utf8.RuneCount(x.src[x.at : x.at+n])
	x.tokens = append(x.tokens, token{kind: k, off: uint32(x.at), end: uint32(x.at + n), line: x.line, col: x.col})
	x.at += n
	x.col += uint32(columns)
}

// rest is the number of bytes from offset from on for which ok holds.
func (x *lexer) rest(from int, ok func(rune) bool) int {
	n := 0
	for from+n < len(x.src) {
		r, size := utf8.DecodeRune(x.src[from+n:])
		if !ok(r) {
			break
		}
		n += size
	}
	return n
}

func (x *lexer) pos() Pos { return Pos{Line: int(x.line), Column: int(x.col)} }

// peek is the byte n places on, 0 at the end.
func (x *lexer) peek(n int) byte {
	if x.at+n < len(x.src) {
		return x.src[x.at+n]
	}
	return 0
}

func startsName(r rune) bool { return r == '_' || unicode.IsLetter(r) }
func inName(r rune) bool     { return startsName(r) || unicode.IsDigit(r) }
func digit(c byte) bool      { return c >= '0' && c <= '9' }
func digits(r rune) bool     { return r >= '0' && r <= '9' }
func inLine(r rune) bool     { return r != '\n' }

// next reads one token, or the space before it.
func (x *lexer) next() {
	c := x.peek(0)
	r, size := utf8.DecodeRune(x.src[x.at:])
	switch {
	case c == '\n':
		x.at++
		x.line, x.col = x.line+1, 1
	case c == ' ' || c == '\t' || c == '\r':
		x.at++
		x.col++
	case c == '#' && x.slotFollows():
		x.add(tokSlot, 1+x.rest(x.at+1, digits))
	case c == '#' || c == '/' && x.peek(1) == '/':
		x.add(tokComment, x.rest(x.at, inLine))
	case digit(c) || c == '.' && digit(x.peek(1)):
		x.number()
	case c == '"':
		x.text()
	case startsName(r):
		x.name()
	default:
		x.mark(r, size)
	}
}

// slotFollows reports whether the # at hand is right behind a name and right before a digit.
func (x *lexer) slotFollows() bool {
	last := len(x.tokens) - 1
	return last >= 0 && x.tokens[last].kind == tokName && int(x.tokens[last].end) == x.at && digit(x.peek(1))
}

func (x *lexer) name() {
	n := x.rest(x.at, inName)
	k := tokName
	if n > MaxName {
		x.addf(x.pos(), "a name of %d bytes; a name has up to %d", n, MaxName)
		k = tokBad
	}
	x.add(k, n)
}

// number reads digits, a fraction and an exponent, as strconv.ParseFloat takes them.
func (x *lexer) number() {
	n := x.rest(x.at, digits)
	if x.peek(n) == '.' {
		n += 1 + x.rest(x.at+n+1, digits)
	}
	if c := x.peek(n); c == 'e' || c == 'E' {
		exp := 1
		if c := x.peek(n + 1); c == '+' || c == '-' {
			exp++
		}
		if more := x.rest(x.at+n+exp, digits); more > 0 {
			n += exp + more
		}
	}
	if more := x.rest(x.at+n, inName); more > 0 {
		x.addf(x.pos(), "%s is neither a number nor a name", shown(x.src[x.at:x.at+n+more]))
		x.add(tokBad, n+more)
		return
	}
	k := tokNumber
	if _, err := strconv.ParseFloat(string(x.src[x.at:x.at+n]), 64); err != nil {
		x.addf(x.pos(), "%s is beyond the range of a float64", shown(x.src[x.at:x.at+n]))
		k = tokBad
	}
	x.add(k, n)
}

// text reads what stands in quotes. It ends in its line.
func (x *lexer) text() {
	n, k := 1, tokText
	for ; ; n++ {
		c := x.peek(n)
		if c == '"' {
			n++
			break
		}
		if c == '\n' || x.at+n >= len(x.src) {
			x.addf(x.pos(), "a text without its closing quote")
			k = tokBad
			break
		}
		if c == '\\' && x.peek(n+1) != '\n' && x.at+n+1 < len(x.src) {
			n++
		}
	}
	if k == tokText && n > MaxText {
		x.addf(x.pos(), "a text of %d bytes; a text has up to %d", n, MaxText)
		k = tokBad
	}
	if k == tokText {
		if _, ok := unquote(x.src[x.at : x.at+n]); !ok {
			x.addf(x.pos(), `a text holds printable characters, \", \\, \n and \t, no other escapes`)
			k = tokBad
		}
	}
	x.add(k, n)
}

// unquote returns what a quoted text says.
func unquote(quoted []byte) (string, bool) {
	out := make([]rune, 0, len(quoted))
	escaped := false
	for _, r := range string(quoted[1 : len(quoted)-1]) {
		switch {
		case escaped:
			i := bytes.IndexRune([]byte(`"\nt`), r)
			if i < 0 {
				return "", false
			}
			out, escaped = append(out, rune("\"\\\n\t"[i])), false
		case r == '\\':
			escaped = true
		case !unicode.IsPrint(r):
			return "", false
		default:
			out = append(out, r)
		}
	}
	return string(out), !escaped
}

// mark reads an operator or a bracket.
func (x *lexer) mark(r rune, size int) {
	if size == 1 && x.peek(1) == '=' && bytes.IndexByte([]byte("=!<>"), byte(r)) >= 0 {
		x.add(tokMark, 2)
		return
	}
	if size == 1 && bytes.IndexByte([]byte("{}()[]=;,.@+-*/%<>"), byte(r)) >= 0 {
		x.add(tokMark, 1)
		return
	}
	switch {
	case r == utf8.RuneError && size == 1: // told before
	case r == '!':
		x.addf(x.pos(), "! is not an operator; write not")
	case r == '&' || r == '|':
		x.addf(x.pos(), "%c is not an operator; write and, or", r)
	default:
		x.addf(x.pos(), "the language has no use for %s", strconv.QuoteRune(r))
	}
	// All of one kind together are one fault.
	x.add(tokBad, x.rest(x.at, func(next rune) bool { return next == r }))
}

// shown is a piece of the source, fit to be part of a message.
func shown(piece []byte) string {
	const longest = 40
	out := make([]rune, 0, longest)
	for i, r := range string(piece) {
		if i >= longest {
			out = append(out, '…')
			break
		}
		if !unicode.IsPrint(r) {
			r = utf8.RuneError
		}
		out = append(out, r)
	}
	return string(out)
}
