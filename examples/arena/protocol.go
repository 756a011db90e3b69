package arena

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

const (
	maxLine   = 256 // bytes a line may have before its line end
	maxName   = 16
	maxNumber = 1_000_000 // of fire and move, so that no square overflows
)

// verbs are the commands, each with the number of words that follow. It is read only.
var verbs = []struct {
	word, usage string
	args        int
}{
	{"join", "join NAME", 1},
	{"fire", "fire DX DY", 2},
	{"move", "move DX DY", 2},
	{"look", "look", 0},
	{"help", "help", 0},
	{"quit", "quit", 0},
}

const usage = "join NAME, fire DX DY, move DX DY, look, help, quit"

// command is one parsed line.
type command struct {
	verb   string  // one of verbs
	name   string  // of join: printable, no spaces
	dx, dy float64 // of fire and move: finite, and not both zero
}

// parseLine reads one line without its line end. The error is one printable sentence.
func parseLine(line []byte) (command, error) {
	words := bytes.Fields(line)
	if len(words) == 0 {
		return command{}, errors.New("that line was empty, try help")
	}
	for _, v := range verbs {
		switch {
		case v.word != string(words[0]):
			continue
		case len(words)-1 != v.args:
			return command{}, fmt.Errorf("write it like this, and nothing else on the line: %s", v.usage)
		case v.args == 1:
			return parseName(v.word, words[1])
		case v.args == 2:
			return parseDirection(v.word, words[1], words[2])
		}
		return command{verb: v.word}, nil
	}
	return command{}, fmt.Errorf("there is no command %s, try help", quote(words[0]))
}

// parseName decides what reaches other people's terminals.
func parseName(verb string, name []byte) (command, error) {
	other := bytes.TrimLeft(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
	if len(other) > 0 || len(name) > maxName {
		return command{}, fmt.Errorf("a name is up to %d letters, digits, - or _, and %s is not", maxName, quote(name))
	}
	return command{verb: verb, name: string(name)}, nil
}

func parseDirection(verb string, words ...[]byte) (command, error) {
	var n [2]float64
	for i, word := range words {
		var err error
		if n[i], err = strconv.ParseFloat(string(word), 64); err != nil || !(math.Abs(n[i]) <= maxNumber) { // NaN fails too
			return command{}, fmt.Errorf("%s needs two numbers between -%d and %d, and %s is not one", verb, maxNumber, maxNumber, quote(word))
		}
	}
	if n[0] == 0 && n[1] == 0 {
		return command{}, fmt.Errorf("%s needs a direction, and 0 0 is none", verb)
	}
	return command{verb: verb, dx: n[0], dy: n[1]}, nil
}

// quote shows the beginning of what a client sent in a form that is safe to print.
func quote(b []byte) string {
	const most = 24
	if len(b) > most {
		return strconv.QuoteToASCII(string(b[:most])) + "..."
	}
	return strconv.QuoteToASCII(string(b))
}

// errLineTooLong reports a line that was dropped; the next one can be read.
var errLineTooLong = fmt.Errorf("that line was longer than %d bytes and was dropped", maxLine)

// lineReader reads lines of bounded length from a client that may send anything.
type lineReader struct {
	r *bufio.Reader // its buffer holds one longest line, "\r\n" included
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{bufio.NewReaderSize(r, maxLine+2)} }

// next returns the next line without its line end, valid until the following call. A last
// line without a line end counts as one.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	tooLong := false
	for errors.Is(err, bufio.ErrBufferFull) {
		tooLong = true
		_, err = l.r.ReadSlice('\n')
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
		return nil, err
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	if tooLong || len(line) > maxLine {
		return nil, errLineTooLong
	}
	return line, nil
}
