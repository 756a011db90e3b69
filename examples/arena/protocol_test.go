package arena

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseLineReadsEachCommand(t *testing.T) {
	for line, want := range map[string]command{
		"join bob":              {verb: "join", name: "bob"},
		"join A-b_9":            {verb: "join", name: "A-b_9"},
		"join aaaaaaaaaaaaaaaa": {verb: "join", name: "aaaaaaaaaaaaaaaa"},
		"  fire\t1   -2.5  ":    {verb: "fire", dx: 1, dy: -2.5},
		"fire 0 1e-300":         {verb: "fire", dy: 1e-300},
		"fire 1e6 -1e6":         {verb: "fire", dx: 1e6, dy: -1e6},
		"move .5 0":             {verb: "move", dx: .5},
		"look":                  {verb: "look"},
		"help":                  {verb: "help"},
		"quit":                  {verb: "quit"},
	} {
		got, err := parseLine([]byte(line))
		require.NoError(t, err, line)
		assert.Equal(t, want, got, line)
	}
}

func TestParseLineAnswersNonsenseWithOneSentence(t *testing.T) {
	for line, want := range map[string]string{
		"":                       "empty",
		" \t ":                   "empty",
		"jump":                   `no command "jump"`,
		"JOIN bob":               `no command "JOIN"`,
		"\x00\xff\x1b[2J":        `no command "\x00\xff\x1b[2J"`,
		strings.Repeat("x", 200): `"xxxxxxxxxxxxxxxxxxxxxxxx"...`,
		"join":                   "nothing else on the line: join NAME",
		"join a b":               "nothing else on the line: join NAME",
		"join b\xc3\xb6b":        `letters`,
		"join \x1b[31m":          `letters`,
		"join aaaaaaaaaaaaaaaaa": `up to 16`,
		"fire":                   "nothing else on the line: fire DX DY",
		"fire 1":                 "nothing else on the line: fire DX DY",
		"fire 1 2 3":             "nothing else on the line: fire DX DY",
		"fire 1 north":           `"north" is not one`,
		"fire NaN 1":             `"NaN" is not one`,
		"fire 1 -Inf":            `"-Inf" is not one`,
		"fire 1e999 1":           `"1e999" is not one`,
		"fire 1000001 1":         `"1000001" is not one`,
		"fire 0 -0":              "direction",
		"move 0 0":               "direction",
		"look around":            "nothing else on the line: look",
		"quit now":               "nothing else on the line: quit",
	} {
		_, err := parseLine([]byte(line))
		require.Error(t, err, line)
		assert.Contains(t, err.Error(), want, line)
		assertSentence(t, err.Error())
	}
}

func assertSentence(t *testing.T, s string) {
	t.Helper()
	assert.Less(t, len(s), 250, s)
	for _, r := range s {
		assert.True(t, r < 128 && unicode.IsPrint(r), "%q in %q", r, s)
	}
}

func TestLineReaderSkipsOverLongLinesAndGoesOn(t *testing.T) {
	most, over := strings.Repeat("m", maxLine), strings.Repeat("o", maxLine+1)
	const long = "\x00long"
	for _, c := range []struct {
		input string
		want  []string
	}{
		{"", nil},
		{"a\nb\r\n\nc", []string{"a", "b", "", "c"}},
		{most + "\n" + most + "\r\n" + most, []string{most, most, most}},
		{over + "\na\n", []string{long, "a"}},
		{over + "\r\na\n", []string{long, "a"}},
		{strings.Repeat(over, 100) + "\na\n", []string{long, "a"}},
		{"a\n" + strings.Repeat(over, 3), []string{"a", long}},
	} {
		for name, r := range map[string]io.Reader{
			"whole":   strings.NewReader(c.input),
			"in bits": iotest.OneByteReader(strings.NewReader(c.input)),
		} {
			var got []string
			in := newLineReader(r)
			for {
				line, err := in.next()
				if errors.Is(err, io.EOF) {
					break
				}
				if errors.Is(err, errLineTooLong) {
					line = []byte(long)
				} else {
					require.NoError(t, err)
				}
				got = append(got, string(line))
			}
			assert.Equal(t, c.want, got, "%s: %.40q", name, c.input)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	for _, s := range []string{"join bob", "fire 1 2", "move -1e6 .5", "look", "help\r", "quit", "fire NaN 0x1p-2", "\xff\x00", strings.Repeat("a ", 300)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := newLineReader(bytes.NewReader(data))
		for {
			line, err := in.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if errors.Is(err, errLineTooLong) {
				continue
			}
			require.NoError(t, err)
			require.LessOrEqual(t, len(line), maxLine)
			require.NotContains(t, string(line), "\n")
			c, err := parseLine(line)
			if err != nil {
				assertSentence(t, err.Error())
				continue
			}
			text := c.verb
			switch c.verb {
			case "join":
				require.Regexp(t, "^[a-zA-Z0-9_-]{1,16}$", c.name)
				text += " " + c.name
			case "fire", "move":
				require.Greater(t, math.Hypot(c.dx, c.dy), 0.0)
				require.LessOrEqual(t, math.Hypot(c.dx, c.dy), 2.0*maxNumber)
				text += fmt.Sprintf(" %v %v", c.dx, c.dy)
			}
			again, err := parseLine([]byte(text))
			require.NoError(t, err, text)
			require.Equal(t, c, again)
		}
	})
}
