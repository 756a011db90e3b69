package declare_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/declare"
)

func TestEachFaultIsToldAtItsPlace(t *testing.T) {
	// In a world of its own: world { is line 1, what is here starts at line 2.
	world := func(s string) string { return "world {\n" + s + "\n}" }
	// In an update of p: what is here starts at line 8.
	update := func(s string) string {
		return "world { params { k = 12 }\nentity e { state = (x = 1, vx = 2) }\npool p[4] { state = (x = 0, vx = 0) }\n}\n" +
			"systems {\n\nupdate { on = p\n" + s + "\n} }"
	}
	systems := func(s string) string {
		return "world { entity e { state = (x = 1) } pool p[4] { state = (x = 0) } }\nsystems {\n" + s + "\n}"
	}
	for _, test := range []struct {
		src  string
		want []string
	}{
		// The file as a whole.
		{"", []string{"1:1 a file needs world { … }"}},
		{"# nothing\n", []string{"2:1 a file needs world { … }"}},
		{"word { }", []string{"1:1 a file has no word; did you mean world?"}},
		{"world { } world { }", []string{"1:11 world is given twice, first in line 1"}},
		{"world { } systems { }\nsystems { }", []string{"2:1 systems is given twice, first in line 1"}},
		{"world {", []string{"1:7 this { is never closed"}},
		{"world { } }", []string{"1:11 this } closes nothing"}},
		{"world { } ) 3", []string{"1:11 expected a statement, found )"}},
		{"world", []string{"1:6 expected { to open a block, found the end of the file"}},

		// Words.
		{world("title = \"a"), []string{"2:9 a text without its closing quote"}},
		{world("title = \"a\\q\""), []string{"2:9 a text holds printable characters, \\\", \\\\, \\n and \\t, no other escapes"}},
		{world("title = \"\x01\""), []string{"2:9 a text holds printable characters, \\\", \\\\, \\n and \\t, no other escapes"}},
		{world("title = \"" + strings.Repeat("a", declare.MaxText) + "\""), []string{"2:9 a text of 1026 bytes; a text has up to 1024"}},
		{world("title = 3"), []string{"2:9 expected a text in quotes, found 3"}},
		{world("title = \"a\"\ntitle = \"b\""), []string{"3:1 title is given twice, first in line 2"}},
		{world("entity " + strings.Repeat("a", 129) + " { }"), []string{"2:8 a name of 129 bytes; a name has up to 128"}},
		{world("params { k = 1e999 }"), []string{"2:14 1e999 is beyond the range of a float64"}},
		{world("params { k = 12x }"), []string{"2:14 12x is neither a number nor a name"}},
		{world("params { k = 1 ! 2 }"), []string{"2:16 ! is not an operator; write not"}},
		{world("params { k = 1 && 2 }"), []string{"2:16 & is not an operator; write and, or"}},
		{world("params { k = $ }"), []string{"2:14 the language has no use for '$'"}},
		{world("# é \xff\xfe"), []string{"2:5 byte 0xff is not UTF-8"}},
		{world("title = \"é\xff\"\nparams { é\xc3 = 1 }"), []string{"2:11 byte 0xff is not UTF-8", "3:11 byte 0xc3 is not UTF-8"}},

		// Names.
		{world("entity a { }\npool a[3] { }"), []string{"3:6 a is declared twice, first in line 2"}},
		{world("entity a { state = (x = 1, y = 2,\nx = 3) }"), []string{"3:1 x is declared twice, first in line 2"}},
		{world("entity a { state = (x = 1)\nstate = (y = 1) }"), []string{"3:1 state is given twice, first in line 2"}},
		{world("params { k = 1\nk = 2 }"), []string{"3:1 k is declared twice, first in line 2"}},
		{world("params { k = 1 }\nentity a { state = (k = 2) }"), []string{"3:21 k is a parameter, declared in line 2"}},
		{world("entity a { state = (t = 2, s7 = 1, min = 1) }"), []string{
			"2:21 t is a word of the language, and so cannot be the name of a state slot",
			"2:28 s7 is a word of the language, and so cannot be the name of a state slot",
			"2:36 min is a word of the language, and so cannot be the name of a state slot"}},
		{world("params { dt = 2 }"), []string{"2:10 dt is a word of the language, and so cannot be the name of a parameter"}},
		{world("params { a = b; b = c; c = a }"), []string{"2:28 circular: a → b → c → a"}},
		{world("params { a = a }"), []string{"2:14 circular: a → a"}},
		{world("params { a = bb; bbb = 1 }"), []string{"2:14 nothing is called bb here: the value of a is a constant, of numbers and parameters; did you mean bbb?"}},
		{world("params { a = t }"), []string{"2:14 there is no t here: the value of a is a constant, of numbers and parameters"}},
		{world("params { a = sqrt(-1) }"), []string{"2:14 the value of a is not finite"}},
		{world("entity a { state = (x = 1e300 * 1e300) }"), []string{"2:31 the initial value of x is not finite"}},
		{world("entity a { state = (x = 1, y = x) }"), []string{"2:32 nothing is called x here: the initial value of y is a constant, of numbers and parameters"}},
		{world("entity a { state = (x = @a.x) }"), []string{"2:25 other entities cannot be looked at here: the initial value of x is a constant, of numbers and parameters"}},

		// Entities, pools, attributes.
		{world("entty a { }"), []string{"2:1 a world has no entty; did you mean entity?"}},
		{world("entity { }"), []string{"2:8 expected the name of an entity, found {"}},
		{world("entity a { sate = (x = 1) }"), []string{"2:12 an entity or pool has no sate; did you mean state?"}},
		{world("entity a { weight = 3 }"), []string{"2:12 an entity or pool has no weight"}},
		{world("pool p { }"), []string{"2:8 expected [ with the number of slots, found {"}},
		{world("pool p[0] { }"), []string{"2:8 the number of slots of p is 0; it goes from 1 to 1048576"}},
		{world("pool p[1.5] { }"), []string{"2:8 the number of slots of p is 1.5; it must be an integer"}},
		{world("pool p[1048577] { }"), []string{"2:8 the number of slots of p is 1048577; it goes from 1 to 1048576"}},
		{world(pools(17, "x = 0")), []string{"18:6 too large with p16: a world has up to 16777216 entities with slots of pools, and up to 67108864 state slots in all"}},
		{world("entity a { state = (" + slots(65) + ") }"), []string{"2:789 over 64 state slots"}},
		{world("entity a { size = (1, 2, 3, 4) }"), []string{"2:19 size takes 1 to 3 numbers, not 4"}},
		{world("entity a { color = (1, 2) }"), []string{"2:20 color takes 3 to 4 numbers, not 2"}},
		{world("entity a { shape = 3 }"), []string{"2:20 expected a text for shape, found 3"}},
		{world("entity a { position = (x, 1) }"), []string{"2:24 nothing is called x here: an attribute uses only the state of its own entity"}},
		{world("entity a { label = a\nlabel = b }"), []string{"3:1 label is given twice, first in line 2"}},
		{world("gravity = state.x"), []string{"2:11 there is no state here: the world has no state"}},

		// Systems.
		{systems("diffuse { on = p; grid = (3, 4) }"), []string{"3:1 diffuse is not a system of the language, which are spawn, update and despawn: " +
			"grid fields, neighbour queries and built-in physics are not part of it"}},
		{systems("spwan { on = e; pool = p }"), []string{"3:1 spwan is not a system of the language, which are spawn, update and despawn: " +
			"grid fields, neighbour queries and built-in physics are not part of it; did you mean spawn?"}},
		{systems("spawn { on = q; pool = p }"), []string{"3:14 there is no entity or pool q"}},
		{systems("spawn { on = e; pool = e }"), []string{"3:24 e is an entity; a spawn takes its slots from a pool"}},
		{systems("spawn { on = e }"), []string{"3:1 spawn without pool: where does it take slots from?"}},
		{systems("spawn { pool = p }"), []string{"3:1 spawn without on: what does it run on?"}},
		{systems("spawn { on = e on = e pool = p }"), []string{"3:16 on is given twice, first in line 3"}},
		{systems("spawn { on = e pool = p every = 0 phase = -1 count = 0.5 }"), []string{
			"3:33 every is 0; it goes from 1 to 2147483647", "3:43 phase is -1; it goes from 0 to 2147483647", "3:54 count is 0.5; it must be an integer"}},
		{systems("spawn { on = e pool = p delay = 0 }"), []string{"3:25 a spawn has no delay"}},
		{systems("despawn { on = p }"), []string{"3:1 despawn without when: what does it depend on?"}},
		{systems("despawn { on = p#1; when = 1 }"), []string{"3:17 on takes all of an entity or a pool, not one slot"}},
		{systems("despawn { on = p; when = inte(x) > dt }"), []string{
			"3:26 there is no inte here: only an update has a dt", "3:36 there is no dt here: only an update has one"}},
		{systems("update { on = p; dt = -1 }"), []string{"3:23 dt is -1; it must not be negative"}},
		{systems("update { on = p; dt = 1 dt = 2 }"), []string{"3:25 dt is given twice, first in line 3"}},

		// Rules.
		{update("x = y"), []string{"8:5 nothing is called y here"}},
		{update("vy = x"), []string{"8:1 p has no state slot vy; did you mean vx?"}},
		{update("x = 1 s0 = 2"), []string{"8:7 x is assigned twice, first in line 8"}},
		{update("s2 = s3"), []string{"8:1 there is no s2: p has 2 state slots", "8:6 there is no s3: p has 2 state slots"}},
		{update("k = 1"), []string{"8:1 k is a parameter; rules assign state slots"}},
		{update("let a = 1 a = 2"), []string{"8:11 a is a let; rules assign state slots"}},
		{update("let a = 1 let a = 2"), []string{"8:15 a is declared twice, first in line 8"}},
		{update("let x = 1 let k = 2"), []string{"8:5 x is a state slot of p, declared in line 3", "8:15 k is a parameter, declared in line 1"}},
		{update("let a = b let b = 1"), []string{"8:9 b is used before its let, in line 8"}},
		{update("let a = a"), []string{"8:9 circular: a is made of itself"}},
		{update("let a = b let b = c let c = 1 + a"), []string{"8:9 circular: b → … → a → b", "8:19 circular: c → … → b → c"}},
		{update("x = @e"), []string{"9:1 expected . and a state slot, found }"}},
		{update("x = @f.x + @e.y + @p.x + @p#4.x + @e#0.x"), []string{
			"8:6 there is no entity or pool f", "8:12 e has no state slot y",
			"8:20 p is a pool; name one of its slots, as in p#0", "8:27 p has the slots 0 to 3", "8:36 e is an entity and has no slots"}},
		{update("x = active(p) + active(q#1) + active(1)"), []string{"8:38 expected the name of an entity, or a slot of a pool such as p#0, found 1"}},
		{update("x = p#1 + e"), []string{"8:5 p#1 is not a number; write @p#1.NAME for its state"}},
		{update("x = e"), []string{"8:5 e is an entity or a pool; write @e.NAME for a state slot of an entity"}},
		{update("x = min(1) + sqrt + foo(2) + sqr(4)"), []string{
			"8:5 min takes 2 arguments, not 1", "8:14 sqrt is a function; write sqrt(…)", "8:21 there is no function foo",
			"8:30 there is no function sqr; did you mean sqrt?"}},
		{update("x = 1 < 2 < 3"), []string{"8:11 comparisons do not chain; write a < b and b < c"}},
		{update("x = 1 == 2 != 3"), []string{"8:12 comparisons do not chain; write a < b and b < c"}},
		{update("dt = 0.1 - x = 2"), []string{"8:14 an expression ends before this =; write == to compare, or the name of what is assigned"}},
		{update("x + 1"), []string{"8:1 expected a rule: NAME = …, state.NAME = …, active = … or let NAME = …"}},
		{update("x = 1 +"), []string{"9:1 expected a number, a name or a bracket, found }"}},
		{update("x = (1\nvx = 2"), []string{"9:1 expected ) to close the bracket, found vx"}},
		{update("x = and 3"), []string{"8:5 expected a number, a name or a bracket, found and"}},
		{update("state = 3"), []string{"8:7 expected . after state, found ="}},
		{update("when = 3"), []string{"8:1 p has no state slot when"}},

		// Several at once, and none that only follows from another.
		{world("entity a { state = (x = $, y = 1) }\nentity b { state = (x = 1, y = ) label = 3 }\nfoo = 1\npool c[2] { state = (z = q) }") +
			"\nsystems { update { on = a; x = y; z = 1 }\nupdate { on = b; q = y y = r }\nspawn { on = nobody; pool = c; count = x } }", []string{
			"2:25 the language has no use for '$'", "3:32 expected a number, a name or a bracket, found )",
			"3:42 expected a text for label, found 3", "4:1 a world has no foo",
			"5:26 nothing is called q here: the initial value of z is a constant, of numbers and parameters",
			"9:40 nothing is called x here: count is a constant, of numbers and parameters"}},
		{world("entity a { state = (\nx = @,\ny = 2\n) }\npool p[3] { state = (\nx = 1\n, y = (2\n}\nentity b { state = (z = 1 }"), []string{
			"3:6 expected the name of an entity, or a slot of a pool such as p#0, found ,", "9:1 expected ) to close the bracket, found }", "10:27 expected , or ) after a state slot, found }"}},
	} {
		assert.Equal(t, test.want, errorsOf(t, test.src, nil), "%s", test.src)
	}
}

// pools declares n pools of the largest size.
func pools(n int, state string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "pool p%d[%d] { state = (%s) }\n", i, declare.MaxPool, state)
	}
	return b.String()
}

// slots declares n state slots.
func slots(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "slot%02d = 0, ", i)
	}
	return b.String()
}

func TestAnErrorShowsItsLineAndACaret(t *testing.T) {
	_, err := declare.Load("a.world", []byte("world {\n\tentity é { state = (x = é\x1b) }\n}"), nil)
	require.EqualError(t, err, "a.world:2:26: nothing is called é here: the initial value of x is a constant, of numbers and parameters\n"+
		"\t entity é { state = (x = é\uFFFD) }\n\t                         ^\n"+
		"a.world:2:27: the language has no use for '\\x1b'\n"+
		"\t entity é { state = (x = é\uFFFD) }\n\t                          ^")

	long := "world { title = \"" + strings.Repeat("x", 900) + "\"; foo; title = \"" + strings.Repeat("y", 900) + "\" }\r\n"
	_, err = declare.Load("a.world", []byte(long), nil)
	var list declare.Errors
	require.ErrorAs(t, err, &list)
	assert.Len(t, list[0].Source, 101)
	assert.Equal(t, "foo", list[0].Source[list[0].Caret:][:3])
	var one *declare.Error
	require.ErrorAs(t, err, &one)
	assert.Same(t, list[0], one)
}

func TestOnlySoManyErrorsAreTold(t *testing.T) {
	list := errorsOf(t, "world {\n"+strings.Repeat("foo = 1\n", 50)+"}", nil)
	assert.Len(t, list, declare.MaxErrors+1)
	assert.Equal(t, "21:1 a world has no foo", list[declare.MaxErrors-1])
	assert.Equal(t, "0:0 and 30 more errors; only 20 are told", list[declare.MaxErrors])
	list = errorsOf(t, "world { pool p[3] { state = (x = "+strings.Repeat("y + ", 50)+"1) } }", nil)
	assert.Equal(t, "0:0 and 30 more errors; only 20 are told", list[declare.MaxErrors])
}

// wellPlaced fails unless a file is read, or all errors have places inside it.
func wellPlaced(t testing.TB, src []byte) {
	_, err := declare.Load("f", src, nil)
	if err == nil {
		return
	}
	var list declare.Errors
	if !errors.As(err, &list) || len(list) == 0 || len(list) > declare.MaxErrors+1 {
		t.Fatalf("%d errors, not Errors: %v", len(list), err)
	}
	lines := strings.Split(strings.TrimPrefix(string(src), "\uFEFF"), "\n")
	for i, e := range list {
		if i == declare.MaxErrors && e.Pos == (declare.Pos{}) {
			continue // and more
		}
		if e.Pos.Line < 1 || e.Pos.Line > len(lines) || e.Pos.Column < 1 || e.Pos.Column > utf8.RuneCountInString(lines[e.Pos.Line-1])+1 {
			t.Fatalf("outside the file: %v", e)
		}
		if e.Message == "" || strings.Contains(e.Message, "\n") || e.Caret >= e.Pos.Column {
			t.Fatalf("misshapen: %q", e.Error())
		}
	}
}

func TestBrokenSources(t *testing.T) {
	t.Run("declare-3", func(t *testing.T) {
		for _, src := range []string{pooled, rich} {
			for n := range len(src) {
				wellPlaced(t, []byte(src[:n]))
				wellPlaced(t, []byte(src[:n]+[]string{"", "\xff", "("}[n%3]+src[n+1:]))
			}
		}
		deep := func(s string) []string {
			return errorsOf(t, "world { pool p[3] { state = (x = "+strings.Repeat(s, 100_000), nil)
		}
		for _, s := range []string{"(", "-", "not ", "min(", "abs(", "if(1,", "((-"} {
			list := deep(s)
			assert.Len(t, list, 1, s)
			assert.Contains(t, list[0], "nested over 64 levels", s)
		}
		for _, s := range []string{"{", "[", "@", ")", "}", "\"", "p#", "x = (\n", "let ", "1 + ", "1 < ", "\x00", "\xff", "é", "#", "/*", "\n\r"} {
			src := []byte("world { entity e { } } systems { update { on = e " + strings.Repeat(s, 3_000))
			wellPlaced(t, src)
			wellPlaced(t, []byte(strings.Repeat(s, 3_000)))
			wellPlaced(t, []byte(strings.Repeat("world {"+s, 2_000)))
		}
	})
}

func TestLimitsOfAFile(t *testing.T) {
	comment := "#" + strings.Repeat("x", 99) + "\n"
	long := pooled + strings.Repeat(comment, declare.MaxSource/len(comment)+1)
	assert.NotEmpty(t, load(t, long[:declare.MaxSource], nil))
	line, column := strings.Count(long[:declare.MaxSource], "\n")+1, declare.MaxSource-strings.LastIndexByte(long[:declare.MaxSource], '\n')
	assert.Equal(t, []string{fmt.Sprintf("%d:%d %d bytes; a file has up to 1048576, which end here", line, column, declare.MaxSource+1)},
		errorsOf(t, long[:declare.MaxSource+1], nil))

	sum := func(terms int) string {
		return "world { entity e { state = (x = 0) } } systems { update { on = e; x = s0" + strings.Repeat(" + s0", terms-1) + " } }"
	}
	assert.NotEmpty(t, load(t, sum(declare.MaxNodes/2), nil))
	assert.Equal(t, []string{"1:163911 expressions of over 65536 numbers, names and operators in one file"}, errorsOf(t, sum(declare.MaxNodes), nil))
	nested := func(levels int) string {
		return "world { params { k = " + strings.Repeat("(", levels) + "1" + strings.Repeat(")", levels) + " } }"
	}
	assert.NotEmpty(t, load(t, nested(declare.MaxNesting-2), nil))
	assert.Equal(t, []string{"1:84 nested over 64 levels"}, errorsOf(t, nested(declare.MaxNesting-1), nil))
}

func TestRandomTokensEndInAProgramOrErrors(t *testing.T) {
	words := strings.Fields(rich)
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var b strings.Builder
		at := r.IntN(len(words))
		for range r.IntN(60) {
			if r.IntN(4) == 0 {
				at = r.IntN(len(words))
			}
			b.WriteString(words[at%len(words)])
			b.WriteByte(" \n"[r.IntN(2)])
			at++
		}
		wellPlaced(t, []byte(b.String()))
		steady(t, []byte(b.String()))
	}
}
