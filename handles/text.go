package handles

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// ErrSyntax reports a text that is not a handle of the wanted space.
var ErrSyntax = errors.New("handles: malformed handle")

// String is the handle as text: G, index, point, generation, as in "G5.1".
//
// Concurrency: any goroutine; never waits. Allocates: the string.
func (g Global) String() string { return string(g.text(nil)) }

// AppendText adds the text of String to buf.
//
// Concurrency: any goroutine; never waits. Allocates: as append does.
func (g Global) AppendText(buf []byte) ([]byte, error) { return g.text(buf), nil }

// MarshalText is the text of String: as JSON a handle is a string, for no browser holds 64 bits.
//
// Concurrency: any goroutine; never waits. Allocates: the text.
func (g Global) MarshalText() ([]byte, error) { return g.text(nil), nil }

// UnmarshalText reads exactly what MarshalText writes, and nothing else; on an error g stays as it was.
//
// Errors: ErrSyntax.
// Concurrency: g's owner; never waits. Allocates: only for an error.
func (g *Global) UnmarshalText(text []byte) error {
	index, generation, ok := parsePair(text, 'G', math.MaxUint32)
	if !ok {
		return fmt.Errorf("%w: %q is not a global handle such as G5.1", ErrSyntax, clip(text))
	}
	*g = NewGlobal(index, generation)
	return nil
}

func (g Global) text(buf []byte) []byte {
	return appendPair(append(buf, 'G'), g.Index(), g.Generation())
}

// String is the handle as text: L, index, point, generation, as in "L5.1".
//
// Concurrency: any goroutine; never waits. Allocates: the string.
func (l Local) String() string { return string(l.text(nil)) }

// AppendText adds the text of String to buf.
//
// Concurrency: any goroutine; never waits. Allocates: as append does.
func (l Local) AppendText(buf []byte) ([]byte, error) { return l.text(buf), nil }

// MarshalText is the text of String: as JSON a handle is a string, for no browser holds 64 bits.
//
// Concurrency: any goroutine; never waits. Allocates: the text.
func (l Local) MarshalText() ([]byte, error) { return l.text(nil), nil }

// UnmarshalText reads exactly what MarshalText writes, and nothing else; on an error l stays as it was.
//
// Errors: ErrSyntax.
// Concurrency: l's owner; never waits. Allocates: only for an error.
func (l *Local) UnmarshalText(text []byte) error {
	index, generation, ok := parsePair(text, 'L', math.MaxUint32)
	if !ok {
		return fmt.Errorf("%w: %q is not a local handle such as L5.1", ErrSyntax, clip(text))
	}
	*l = NewLocal(index, generation)
	return nil
}

func (l Local) text(buf []byte) []byte {
	return appendPair(append(buf, 'L'), l.Index(), l.Generation())
}

// String is the handle as text: N, owner, colon, index, point, generation, as in "N0:7.3".
//
// Concurrency: any goroutine; never waits. Allocates: the string.
func (n Net) String() string { return string(n.text(nil)) }

// AppendText adds the text of String to buf.
//
// Concurrency: any goroutine; never waits. Allocates: as append does.
func (n Net) AppendText(buf []byte) ([]byte, error) { return n.text(buf), nil }

// MarshalText is the text of String: as JSON a handle is a string, for no browser holds 64 bits.
//
// Concurrency: any goroutine; never waits. Allocates: the text.
func (n Net) MarshalText() ([]byte, error) { return n.text(nil), nil }

// UnmarshalText reads exactly what MarshalText writes, and nothing else; on an error n stays as it was.
//
// Errors: ErrSyntax.
// Concurrency: n's owner; never waits. Allocates: only for an error.
func (n *Net) UnmarshalText(text []byte) error {
	owner, index, generation, ok := parseNetText(text)
	if !ok {
		return fmt.Errorf("%w: %q is not a net handle such as N0:7.3", ErrSyntax, clip(text))
	}
	*n = NewNet(owner, index, generation)
	return nil
}

func (n Net) text(buf []byte) []byte {
	buf = strconv.AppendUint(append(buf, 'N'), uint64(n.Owner()), 10)
	return appendPair(append(buf, ':'), n.Index(), n.Generation())
}

func parseNetText(text []byte) (owner uint8, index, generation uint32, ok bool) {
	if len(text) == 0 || text[0] != 'N' {
		return 0, 0, 0, false
	}
	o, rest, ok := parseNumber(text[1:], math.MaxUint8)
	if !ok {
		return 0, 0, 0, false
	}
	index, generation, ok = parsePair(rest, ':', MaxNetIndex)
	return uint8(o), index, generation, ok
}

func appendPair(buf []byte, index, generation uint32) []byte {
	buf = strconv.AppendUint(buf, uint64(index), 10)
	return strconv.AppendUint(append(buf, '.'), uint64(generation), 10)
}

// parsePair reads lead, index, point, generation, and wants nothing after it.
func parsePair(text []byte, lead byte, maxIndex uint32) (index, generation uint32, ok bool) {
	if len(text) == 0 || text[0] != lead {
		return 0, 0, false
	}
	index, text, ok = parseNumber(text[1:], maxIndex)
	if !ok || len(text) == 0 || text[0] != '.' {
		return 0, 0, false
	}
	generation, text, ok = parseNumber(text[1:], math.MaxUint32)
	return index, generation, ok && len(text) == 0
}

// parseNumber reads digits up to the first byte that is none. No sign, no leading zero, no
// overflow: a handle has one spelling, so that equal texts and equal handles are the same thing.
func parseNumber(text []byte, limit uint32) (n uint32, rest []byte, ok bool) {
	var sum uint64
	digits := 0
	for digits < len(text) && text[digits]-'0' <= 9 {
		if sum = sum*10 + uint64(text[digits]-'0'); sum > uint64(limit) {
			return 0, nil, false
		}
		digits++
	}
	if digits == 0 || digits > 1 && text[0] == '0' {
		return 0, nil, false
	}
	return uint32(sum), text[digits:], true
}

// clip keeps an error message short, whatever somebody sent.
func clip(text []byte) []byte { return text[:min(len(text), 48)] }
