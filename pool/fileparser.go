package pool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parser reads a pool file. The first problem is kept and ends the file: whatever is read after it is the end, so
// that no step needs to ask whether the one before went well. Nothing recurses.
type parser struct {
	name   string
	src    string
	offset int            // of what scan reads next
	line   int            // of offset
	end    int            // behind the last token, where a file that is cut off is told so
	token  token          // the next to be used
	names  map[string]int // the line of each prefab so far
	err    *FileError
}

// fail keeps the problem at an offset if it is the first.
func (p *parser) fail(offset int, format string, args ...any) {
	if p.err == nil {
		p.err = newFileError(p.name, p.src, offset, fmt.Sprintf(format, args...))
		p.token = token{}
	}
}

// parse reads the whole file.
func (p *parser) parse() ([]Declared, error) {
	if len(p.src) > MaxFileBytes {
		p.fail(MaxFileBytes, "a pool file has at most %d bytes, and this one goes on", MaxFileBytes)
	}
	p.src = strings.TrimPrefix(p.src, "\uFEFF")
	if at := badUTF8(p.src); at >= 0 {
		p.fail(at, "here is no UTF-8")
	}
	p.advance()
	var pools []Declared
	p.expect("Pools")
	p.expect("(")
	p.expect("[")
	p.list("]", func() { pools = append(pools, p.pool()) })
	p.take(",")
	p.expect(")")
	if p.token.kind != endToken {
		p.fail(p.token.offset, "expected the end of the file, found %v", p.token)
	}
	if p.err != nil { // not returned as it is: a nil *FileError would be an error
		return nil, p.err
	}
	return pools, nil
}

// badUTF8 is the offset of the first byte that is not UTF-8, or -1. Where it takes three bytes, U+FFFD is itself.
func badUTF8(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}

func (p *parser) advance() { p.token = p.scan() }

// take passes the next token if it is written like this. No string is: it has its quotes.
func (p *parser) take(text string) bool {
	if p.token.text != text {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(text string) {
	if !p.take(text) {
		p.fail(p.token.offset, "expected %s, found %v", text, p.token)
	}
}

// list passes the members of a list, each by a call of member, and the token that closes it.
func (p *parser) list(closing string, member func()) {
	for p.err == nil && !p.take(closing) {
		member()
		if !p.take(",") && p.token.text != closing {
			p.fail(p.token.offset, "expected , or %s, found %v", closing, p.token)
		}
	}
}

// pool reads one declaration.
func (p *parser) pool() Declared {
	start := p.token
	d := Declared{Capacity: defaultCapacity, Line: start.line}
	given := map[string]token{} // the name of each field so far, where it stands
	p.expect("Pool")
	p.expect("(")
	p.list(")", func() { p.field(&d, given) })
	if d.Prefab == "" {
		p.fail(start.offset, "this Pool has no prefab")
	}
	if d.Max != 0 && d.Max < d.Capacity {
		unless := ""
		if _, said := given["capacity"]; !said {
			unless = " if a Pool doesn't say it"
		}
		p.fail(given["max"].offset, "max is %d, below the capacity, which is %d%s", d.Max, d.Capacity, unless)
	}
	return d
}

// field reads one field of a declaration, by its name.
func (p *parser) field(d *Declared, given map[string]token) {
	field := p.token
	first, twice := given[field.text]
	switch field.text {
	case "prefab", "capacity", "grow", "prewarm", "max":
	default:
		if field.kind == wordToken {
			p.fail(field.offset, "there is no field %v: a Pool has prefab, capacity, grow, prewarm and max", field)
		} else {
			p.fail(field.offset, "expected the name of a field, found %v", field)
		}
	}
	if twice {
		p.fail(field.offset, "%v is given twice, first on line %d", field, first.line)
	}
	p.advance()
	p.expect(":")
	given[field.text] = field
	switch field.text {
	case "prefab":
		d.Prefab = p.prefab()
	case "capacity":
		d.Capacity = p.number("capacity", 0)
	case "grow":
		d.Grow = p.grow()
	case "prewarm":
		if d.Prewarm = p.take("true"); !d.Prewarm && !p.take("false") {
			p.fail(p.token.offset, "prewarm is true or false, not %v", p.token)
		}
	case "max":
		d.Max = p.number("max", 0)
	}
}

// prefab reads a name that no pool before has.
func (p *parser) prefab() string {
	t := p.token
	switch first, twice := p.names[t.value]; {
	case t.kind != stringToken:
		p.fail(t.offset, "prefab is a string, not %v", t)
	case t.value == "":
		p.fail(t.offset, "the name of a prefab is not empty")
	case twice:
		p.fail(t.offset, "%v is declared twice, first on line %d", t, first)
	default:
		p.names[t.value] = t.line
		p.advance()
	}
	return t.value
}

func (p *parser) grow() Grow {
	switch {
	case p.take("Fixed"):
		return Fixed()
	case p.take("Additive"):
		p.expect("(")
		n := p.number("n of Additive(n)", 1)
		p.take(",")
		p.expect(")")
		return Additive(n)
	case !p.take("Double"):
		p.fail(p.token.offset, "grow is Fixed, Additive(n) or Double, not %v", p.token)
	}
	return Double()
}

// number reads a number from least to maxDeclared; after a problem it returns least.
func (p *parser) number(what string, least int) int {
	t := p.token
	n, err := strconv.Atoi(t.text)
	switch {
	case t.kind != numberToken, err != nil && !errors.Is(err, strconv.ErrRange):
		p.fail(t.offset, "%s is a whole number in decimal digits, not %v", what, t)
	case err != nil, n < least, n > maxDeclared:
		p.fail(t.offset, "%s is between %d and %d, not %v", what, least, maxDeclared, t)
	default:
		p.advance()
		return n
	}
	return least
}
