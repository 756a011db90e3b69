package pool

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	endToken tokenKind = iota
	wordToken
	numberToken
	stringToken
	markToken // one of ( ) [ ] , :
)

// token is the smallest piece of a pool file that means something.
type token struct {
	kind   tokenKind
	text   string // as it is written; "" at the end
	value  string // what a string means
	offset int
	line   int
}

const maxShown = 32 // characters of a token in a sentence

// String is the token as a sentence has it.
func (t token) String() string {
	if t.kind == endToken {
		return "the end of the file"
	}
	// A name may be as long as the file: only the beginning is looked at.
	text := t.text[:min(len(t.text), (maxShown+1)*utf8.UTFMax)]
	if shown := []rune(text); len(shown) > maxShown {
		text = string(shown[:maxShown]) + "…"
	}
	return printable(text)
}

// The escapes of a string of one letter, and what each means. An apostrophe may be escaped and needn't be, so it
// comes last, where quote doesn't look.
const (
	escapes = `"\nrt0`
	escaped = "\"\\\n\r\t\x00"
)

// scan returns the next token. After an error there is only the end.
func (p *parser) scan() token {
	p.skip()
	t := token{offset: p.offset, line: p.line}
	if p.err != nil || p.offset == len(p.src) {
		t.offset = p.end
		return t
	}
	switch c := p.src[p.offset]; {
	case strings.IndexByte("()[],:", c) >= 0:
		t.kind = markToken
		p.offset++
	case c == '"':
		t.kind, t.value = stringToken, p.text()
	case isDigit(c), c == '-', c == '+':
		// What runs on behind the digits belongs to them, so that 0x10 and 1.5 are one wrong number each.
		t.kind = numberToken
		for p.offset++; p.offset < len(p.src) && (isWord(p.src[p.offset]) || p.src[p.offset] == '.'); p.offset++ {
		}
	case isWord(c):
		t.kind = wordToken
		for p.offset++; p.offset < len(p.src) && isWord(p.src[p.offset]); p.offset++ {
		}
	default:
		r, _ := utf8.DecodeRuneInString(p.src[p.offset:])
		p.fail(p.offset, "there is no place for the character %s outside of strings and comments", character(r))
	}
	if p.err != nil {
		return token{}
	}
	t.text = p.src[t.offset:p.offset]
	p.end = p.offset
	return t
}

// skip passes what is between tokens.
func (p *parser) skip() {
	for p.err == nil && p.offset < len(p.src) {
		switch rest := p.src[p.offset:]; {
		case rest[0] == '\n':
			p.line++
			p.offset++
		case rest[0] == ' ', rest[0] == '\t', rest[0] == '\r':
			p.offset++
		case strings.HasPrefix(rest, "//"):
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				p.offset += n
			} else {
				p.offset = len(p.src)
			}
		case strings.HasPrefix(rest, "/*"):
			p.comment()
		default:
			return
		}
	}
}

// comment passes a comment of /* and */, and those inside it: it counts, for a file may nest them as deep as it is long.
func (p *parser) comment() {
	start, depth := p.offset, 0
	for p.offset < len(p.src) {
		switch rest := p.src[p.offset:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			p.offset += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			p.offset += 2
			if depth == 0 {
				return
			}
		default:
			if rest[0] == '\n' {
				p.line++
			}
			p.offset++
		}
	}
	p.fail(start, "this comment is never closed")
}

// text passes a string and returns what it means.
func (p *parser) text() string {
	start := p.offset
	var b strings.Builder
	for p.offset++; p.offset < len(p.src); {
		switch c := p.src[p.offset]; c {
		case '"':
			p.offset++
			return b.String()
		case '\n', '\r':
			p.fail(start, "this string is not closed on its line")
			return ""
		case '\\':
			r, n := escape(p.src[p.offset:])
			if n == 0 {
				p.fail(p.offset, `a \ in a string begins one of \" \' \\ \n \r \t \0, \x41 and \u{1F3F9}`)
				return ""
			}
			b.WriteRune(r)
			p.offset += n
		default:
			b.WriteByte(c)
			p.offset++
		}
	}
	p.fail(start, "this string is never closed")
	return ""
}

// escape returns the character that an escape at the beginning of s means, and its length; 0 if it is none.
func escape(s string) (rune, int) {
	if len(s) < 2 {
		return 0, 0
	}
	if i := strings.IndexByte(escapes, s[1]); i >= 0 {
		return rune(escaped[i]), 2
	}
	digits, length := "", 0
	switch s[1] {
	case '\'':
		return '\'', 2
	case 'x':
		if length = len(`\x41`); len(s) >= length {
			digits = s[2:length]
		}
	case 'u':
		if most := s[2:min(len(s), len(`\u{10FFFF}`))]; strings.HasPrefix(most, "{") {
			if n := strings.IndexByte(most, '}'); n > 0 {
				digits, length = most[1:n], n+3
			}
		}
	}
	r, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !utf8.ValidRune(rune(r)) {
		return 0, 0
	}
	return rune(r), length
}

// character names a character, also one that cannot be seen.
func character(r rune) string {
	if printable(string(r)) == string(r) && r > ' ' {
		return string(r)
	}
	return fmt.Sprintf("%U", r)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWord(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
