package pool_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/airlock-ecs/airlock/pool"
)

func arenaFile(t testing.TB) []byte {
	src, err := os.ReadFile("../pools/arena.pools.ron")
	require.NoError(t, err)
	return src
}

// arenaPools is what arenaFile declares.
func arenaPools() []pool.Declared {
	return []pool.Declared{
		{Prefab: "Arrow", Capacity: 64, Grow: pool.Double(), Prewarm: true, Line: 3},
		{Prefab: "HitSpark", Capacity: 32, Grow: pool.Additive(16), Prewarm: true, Line: 4},
		{Prefab: "Grunt", Capacity: 24, Grow: pool.Fixed(), Line: 5},
	}
}

// withoutLines makes declarations of two files comparable.
func withoutLines(declared []pool.Declared) []pool.Declared {
	declared = slices.Clone(declared)
	for i := range declared {
		declared[i].Line = 0
	}
	return declared
}

// refused parses what must be an error with a place in src.
func refused(t require.TestingT, src []byte) *pool.FileError {
	declared, err := pool.ParseFile("a.ron", src)
	require.Error(t, err, "%q", src)
	require.Nil(t, declared)
	require.ErrorIs(t, err, pool.ErrFile)
	var file *pool.FileError
	require.ErrorAs(t, err, &file)
	placed(t, src, file)
	return file
}

// placed checks that the place of an error is one of its file, and that it is shown.
func placed(t require.TestingT, src []byte, err *pool.FileError) {
	lines := strings.Split(strings.TrimPrefix(string(src), "\uFEFF"), "\n")
	require.GreaterOrEqual(t, err.Line, 1)
	require.LessOrEqual(t, err.Line, len(lines), "%v in %q", err, src)
	require.GreaterOrEqual(t, err.Column, 1)
	require.LessOrEqual(t, err.Column, utf8.RuneCountInString(lines[err.Line-1])+1, "%v in %q", err, src)
	require.NotContains(t, err.Error(), "\n")
	require.True(t, utf8.ValidString(err.Detail()))
	shown := strings.Split(err.Detail(), "\n")
	require.Equal(t, err.Error(), shown[0])
	if len(shown) > 1 {
		require.Len(t, shown, 3)
		require.Equal(t, "^", strings.Trim(shown[2], " \t"))
		require.LessOrEqual(t, utf8.RuneCountInString(shown[2]), utf8.RuneCountInString(shown[1])+1)
	}
}

func TestTheArenasFileDeclaresItsPools(t *testing.T) {
	declared, err := pool.ParseFile("arena.pools.ron", arenaFile(t))
	require.NoError(t, err)
	assert.Equal(t, arenaPools(), declared)
	declared, err = pool.ReadFile("arena.pools.ron", iotest.OneByteReader(bytes.NewReader(arenaFile(t))))
	require.NoError(t, err)
	assert.Equal(t, arenaPools(), declared)
}

func TestAFileMayBeWrittenInManyWays(t *testing.T) {
	plain := pool.Declared{Prefab: "A", Capacity: 16, Line: 1}
	for src, want := range map[string][]pool.Declared{
		`Pools([])`:                                        nil,
		`Pools([],)`:                                       nil,
		`Pools([Pool(prefab:"A")])`:                        {plain},
		`Pools([Pool(prefab:"A",),],)`:                     {plain},
		"\uFEFFPools([Pool(prefab:\"A\")])":                {plain},
		"\tPools ( [ Pool ( prefab : \"A\" ) ] ) \r\n\r\n": {plain},
		"/**/Pools/*(*/([// ]\nPool(prefab/* /* */ \" */:\"A\")])//":     {{Prefab: "A", Capacity: 16, Line: 2}},
		"Pools([\r\n// x\r\nPool(\r\nprefab:\"A\",\r\ncapacity:1)\r\n])": {{Prefab: "A", Capacity: 1, Line: 3}},
		`Pools([Pool(max: 9, prewarm: true, grow: Additive( 3, ), capacity: 9, prefab: "A")])`: {
			{Prefab: "A", Capacity: 9, Grow: pool.Additive(3), Prewarm: true, Max: 9, Line: 1}},
		`Pools([Pool(prefab: "A", capacity: 0, grow: Fixed, prewarm: false, max: 0)])`: {
			{Prefab: "A", Grow: pool.Fixed(), Line: 1}},
		`Pools([Pool(prefab: "A", capacity: 16777216, grow: Additive(16777216), max: 16777216)])`: {
			{Prefab: "A", Capacity: 1 << 24, Grow: pool.Additive(1 << 24), Max: 1 << 24, Line: 1}},
		`Pools([Pool(prefab: "A", capacity: +0064)])`:   {{Prefab: "A", Capacity: 64, Line: 1}},
		`Pools([Pool(prefab: "a"), Pool(prefab: "A")])`: {{Prefab: "a", Capacity: 16, Line: 1}, plain},
		`Pools([Pool(prefab: "// \u{1F3F9}é\"\\\'\n\r\t\0\x41\xe9\u{0}\u{10fFfF} ,)]")])`: {
			{Prefab: "// 🏹é\"\\'\n\r\t\x00Aé\x00\U0010FFFF ,)]", Capacity: 16, Line: 1}},
	} {
		declared, err := pool.ParseFile("a.ron", []byte(src))
		require.NoError(t, err, src)
		assert.Equal(t, want, declared, src)
	}
}

func TestABadFileIsOneErrorWithItsPlace(t *testing.T) {
	const fields = ": a Pool has prefab, capacity, grow, prewarm and max"
	const escapes = `a \ in a string begins one of \" \' \\ \n \r \t \0, \x41 and \u{1F3F9}`
	one := func(field string) string { return "Pools([\n Pool(prefab: \"A\", " + field + " ),\n])" } // field is at 2:20
	for _, c := range []struct{ src, want string }{
		{"", "1:1: expected Pools, found the end of the file"},
		{"\n\n // nothing\n", "1:1: expected Pools, found the end of the file"},
		{"\uFEFF", "1:1: expected Pools, found the end of the file"},
		{"pools([])", "1:1: expected Pools, found pools"},
		{`"Pools"([])`, `1:1: expected Pools, found "Pools"`},
		{"[]", "1:1: expected Pools, found ["},
		{"Pools[]", "1:6: expected (, found ["},
		{"Pools()", "1:7: expected [, found )"},
		{"Pools([\n\n\n", "1:8: expected Pool, found the end of the file"},
		{"Pools([,])", "1:8: expected Pool, found ,"},
		{"Pools([Pools([])])", "1:8: expected Pool, found Pools"},
		{"Pools([(prefab: \"A\")])", "1:8: expected Pool, found ("},
		{"Pools([)", "1:8: expected Pool, found )"},
		{"Pools([]", "1:9: expected ), found the end of the file"},
		{"Pools([],,)", "1:10: expected ), found ,"},
		{"Pools([])\nPools([])", "2:1: expected the end of the file, found Pools"},
		{"Pools([]))", "1:10: expected the end of the file, found )"},
		{"Pools([ Pool(prefab: \"A\") Pool(prefab: \"B\") ])", "1:27: expected , or ], found Pool"},
		{"Pools([ Pool(prefab: \"A\"),, ])", "1:27: expected Pool, found ,"},
		{"Pools([ Pool() ])", "1:9: this Pool has no prefab"},
		{"Pools([ Pool(capacity: 1) ])", "1:9: this Pool has no prefab"},
		{"Pools([ Pool([ ])", "1:14: expected the name of a field, found ["},
		{"Pools([ Pool(,) ])", "1:14: expected the name of a field, found ,"},
		{"Pools([ Pool(\"prefab\": \"A\") ])", `1:14: expected the name of a field, found "prefab"`},
		{"Pools([ Pool(prefab \"A\") ])", `1:21: expected :, found "A"`},
		{"Pools([ Pool(prefab = \"A\") ])", "1:21: there is no place for the character = outside of strings and comments"},
		{"Pools([ Pool(prefab: A) ])", "1:22: prefab is a string, not A"},
		{"Pools([ Pool(prefab: \"\") ])", "1:22: the name of a prefab is not empty"},
		{"Pools([ Pool(prefab: ) ])", "1:22: prefab is a string, not )"},
		{"Pools([\n Pool(prefab: \"A\"),\n\n Pool(prefab: \"B\"), Pool(prefab: \"\\x41\") ])", `4:34: "\x41" is declared twice, first on line 2`},

		{one("capcity: 1"), "2:20: there is no field capcity" + fields},
		{one("Capacity: 1"), "2:20: there is no field Capacity" + fields},
		{one("prefab: \"B\""), "2:20: prefab is given twice, first on line 2"},
		{one("grow: Fixed,\n\n grow: Fixed"), "4:2: grow is given twice, first on line 2"},
		{one("capacity: 1 grow: Fixed"), "2:32: expected , or ), found grow"},
		{one("capacity: -1"), "2:30: capacity is between 0 and 16777216, not -1"},
		{one("capacity: 16777217"), "2:30: capacity is between 0 and 16777216, not 16777217"},
		{one("capacity: 99999999999999999999"), "2:30: capacity is between 0 and 16777216, not 99999999999999999999"},
		{one("capacity: " + strings.Repeat("9", 50)), "2:30: capacity is between 0 and 16777216, not " + strings.Repeat("9", 32) + "…"},
		{one("capacity: -"), "2:30: capacity is a whole number in decimal digits, not -"},
		{one("capacity: 1.5"), "2:30: capacity is a whole number in decimal digits, not 1.5"},
		{one("capacity: 1e3"), "2:30: capacity is a whole number in decimal digits, not 1e3"},
		{one("capacity: 0x10"), "2:30: capacity is a whole number in decimal digits, not 0x10"},
		{one("capacity: 1_000"), "2:30: capacity is a whole number in decimal digits, not 1_000"},
		{one("capacity: \"64\""), `2:30: capacity is a whole number in decimal digits, not "64"`},
		{one("capacity: Some(64)"), "2:30: capacity is a whole number in decimal digits, not Some"},
		{one("capacity:"), "2:30: capacity is a whole number in decimal digits, not )"},
		{one("grow: double"), "2:26: grow is Fixed, Additive(n) or Double, not double"},
		{one("grow: \"Fixed\""), `2:26: grow is Fixed, Additive(n) or Double, not "Fixed"`},
		{one("grow: Additive"), "2:35: expected (, found )"},
		{one("grow: Additive()"), "2:35: n of Additive(n) is a whole number in decimal digits, not )"},
		{one("grow: Additive(0)"), "2:35: n of Additive(n) is between 1 and 16777216, not 0"},
		{one("grow: Additive(-16)"), "2:35: n of Additive(n) is between 1 and 16777216, not -16"},
		{one("grow: Additive(1, 2)"), "2:38: expected ), found 2"},
		{one("grow: Fixed()"), "2:31: expected , or ), found ("},
		{one("prewarm: yes"), "2:29: prewarm is true or false, not yes"},
		{one("prewarm: 1"), "2:29: prewarm is true or false, not 1"},
		{one("max: -1"), "2:25: max is between 0 and 16777216, not -1"},
		{one("max: 63, capacity: 64"), "2:20: max is 63, below the capacity, which is 64"},
		{one("max: 15"), "2:20: max is 15, below the capacity, which is 16 if a Pool doesn't say it"},

		{"Pools([ /* /* */ ])", "1:9: this comment is never closed"},
		{"Pools([ Pool(prefab: \"A", "1:22: this string is never closed"},
		{"Pools([ Pool(prefab: \"A\\", "1:24: " + escapes},
		{"Pools([ Pool(prefab: \"A\n\")])", "1:22: this string is not closed on its line"},
		{"Pools([ Pool(prefab: \"A\r\n\")])", "1:22: this string is not closed on its line"},
		{`Pools([ Pool(prefab: "é\q") ])`, "1:24: " + escapes},
		{`Pools([ Pool(prefab: "\x4") ])`, "1:23: " + escapes},
		{`Pools([ Pool(prefab: "\x+4") ])`, "1:23: " + escapes},
		{`Pools([ Pool(prefab: "\u0041") ])`, "1:23: " + escapes},
		{`Pools([ Pool(prefab: "\u{}") ])`, "1:23: " + escapes},
		{`Pools([ Pool(prefab: "\u{1F3F9") ])`, "1:23: " + escapes},
		{`Pools([ Pool(prefab: "\u{0000041}") ])`, "1:23: " + escapes},
		{`Pools([ Pool(prefab: "\u{D800}") ])`, "1:23: " + escapes},
		{`Pools([ Pool(prefab: "\u{110000}") ])`, "1:23: " + escapes},
		{"Pools([ Pool(prefab: 'A') ])", "1:22: there is no place for the character ' outside of strings and comments"},
		{"Pools([]) / x", "1:11: there is no place for the character / outside of strings and comments"},
		{"Pools([])\n\x00", "2:1: there is no place for the character U+0000 outside of strings and comments"},
		{"Pools(\u00A0[])", "1:7: there is no place for the character U+00A0 outside of strings and comments"},
		{"Pools([])\uFEFF", "1:10: there is no place for the character U+FEFF outside of strings and comments"},
		{"Pools([])\uFFFD", "1:10: there is no place for the character \uFFFD outside of strings and comments"},
		{"Pools(ö[])", "1:7: there is no place for the character ö outside of strings and comments"},
		{"// é\n/* é\xff */Pools([])", "2:5: here is no UTF-8"},
		{"Pools([ Pool(prefab: \"\xc3\") ])", "1:23: here is no UTF-8"},
		{"P\x00o\x00o\x00l\x00s\x00\xff", "1:11: here is no UTF-8"},
		{"Pools([" + strings.Repeat("[", 100_000), "1:8: expected Pool, found ["},
		{"Pools([ Pool(grow: " + strings.Repeat("Additive(", 100_000), "1:29: n of Additive(n) is a whole number in decimal digits, not Additive"},
		{strings.Repeat("/*", 100_000), "1:1: this comment is never closed"},
		{strings.Repeat("x", 100_000), "1:1: expected Pools, found " + strings.Repeat("x", 32) + "…"},
		{strings.Repeat("é\n", 1<<20/3) + "Pools([])", "349526:2: a pool file has at most 1048576 bytes, and this one goes on"},
	} {
		assert.Equal(t, "a.ron:"+c.want, refused(t, []byte(c.src)).Error(), "%.80q", c.src)
	}
}

func TestEachProblemIsShownInItsLine(t *testing.T) {
	long := strings.Repeat("é", 200)
	for _, c := range []struct{ src, want string }{
		{"", "a.ron:1:1: expected Pools, found the end of the file"},
		{"Pools([\r\n\t\tPool( /* 🏹 */ prefab: 7 ),\r\n])", "a.ron:2:25: prefab is a string, not 7\n" +
			"\t\tPool( /* 🏹 */ prefab: 7 ),\n" +
			"\t\t                      ^"},
		{"// \x1b[31m\nPools(\x1b)", "a.ron:2:7: there is no place for the character U+001B outside of strings and comments\n" +
			"Pools(\uFFFD)\n" +
			"      ^"},
		{"Pools([ Pool(", "a.ron:1:14: expected the name of a field, found the end of the file\n" +
			"Pools([ Pool(\n" +
			"             ^"},
		{"/*" + long + "*/ ? //" + long, "a.ron:1:206: there is no place for the character ? outside of strings and comments\n" +
			"…" + strings.Repeat("é", 57) + "*/ ? //" + strings.Repeat("é", 36) + "…\n" +
			strings.Repeat(" ", 61) + "^"},
	} {
		assert.Equal(t, c.want, refused(t, []byte(c.src)).Detail())
	}
}

func TestAFileThatIsCutOffIsAnErrorInItsLastLine(t *testing.T) {
	src := bytes.TrimSpace(arenaFile(t))
	for n := range src {
		cut := src[:n]
		assert.Equal(t, bytes.Count(bytes.TrimSpace(cut), []byte{'\n'})+1, refused(t, cut).Line, "%q", cut)
	}
	_, err := pool.ParseFile("a.ron", src)
	require.NoError(t, err)
}

func TestEveryByteMayBeAnother(t *testing.T) {
	src := arenaFile(t)
	for i := range src {
		mutated := slices.Clone(src)
		for b := range 256 {
			mutated[i] = byte(b)
			if declared, err := pool.ParseFile("a.ron", mutated); err == nil {
				require.Len(t, declared, 3, "byte %d is %q", i, b)
			} else if b%16 == i%16 { // these checks take longer than all the rest
				refused(t, mutated)
			}
		}
	}
}

func TestAFileOfOneMebibyteIsRead(t *testing.T) {
	src := bytes.Repeat([]byte(" "), pool.MaxFileBytes)
	copy(src, "Pools([])")
	declared, err := pool.ReadFile("a.ron", bytes.NewReader(src))
	require.NoError(t, err)
	assert.Empty(t, declared)

	_, err = pool.ReadFile("a.ron", endless{})
	assert.EqualError(t, err, "a.ron:1:1048577: a pool file has at most 1048576 bytes, and this one goes on")
	broken := errors.New("broken")
	_, err = pool.ReadFile("a.ron", iotest.ErrReader(broken))
	assert.ErrorIs(t, err, broken)
	assert.EqualError(t, err, "pool: reading a.ron: broken")
}

// endless never comes to an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestOneLineMayDeclareManyPools(t *testing.T) {
	const n = 40_000 // a scan of the line for each of them would take many seconds
	var b strings.Builder
	b.WriteString("Pools([")
	for i := range n {
		fmt.Fprintf(&b, "Pool(prefab:\"%d\"),", i)
	}
	b.WriteString("])")
	declared, err := pool.ParseFile("a.ron", []byte(b.String()))
	require.NoError(t, err)
	assert.Len(t, declared, n)
}

func TestFormatFileWritesWhatParseFileReads(t *testing.T) {
	declared, err := pool.ParseFile("a.ron", pool.FormatFile(arenaPools()))
	require.NoError(t, err)
	assert.Equal(t, withoutLines(arenaPools()), withoutLines(declared))
	assert.Equal(t, `Pools([
    Pool( prefab: "Arrow", capacity: 64, grow: Double, prewarm: true ),
    Pool( prefab: "HitSpark", capacity: 32, grow: Additive(16), prewarm: true ),
    Pool( prefab: "Grunt", capacity: 24, grow: Fixed, prewarm: false ),
    Pool( prefab: "\"\\\n\r\t\0'é\u{1B}\u{202E}`+"\uFFFD"+`", capacity: 0, grow: Double, prewarm: false, max: 7 ),
])
`, string(pool.FormatFile(append(arenaPools(), pool.Declared{Prefab: "\"\\\n\r\t\x00'é\x1b\u202e\xff", Max: 7}))))

	rapid.Check(t, func(t *rapid.T) {
		grow := rapid.OneOf(rapid.Just(pool.Fixed()), rapid.Just(pool.Double()), rapid.Map(rapid.IntRange(1, 1<<24), pool.Additive))
		names := rapid.SliceOfDistinct(rapid.StringN(1, 20, -1), func(s string) string { return s }).Draw(t, "names")
		pools := make([]pool.Declared, len(names))
		for i, name := range names {
			capacity := rapid.IntRange(0, 1<<24).Draw(t, "capacity")
			pools[i] = pool.Declared{
				Prefab: name, Capacity: capacity, Grow: grow.Draw(t, "grow"), Prewarm: rapid.Bool().Draw(t, "prewarm"),
				Max:  rapid.SampledFrom([]int{0, capacity, 1 << 24}).Draw(t, "max"),
				Line: i + 2,
			}
		}
		declared, err := pool.ParseFile("a.ron", pool.FormatFile(pools))
		require.NoError(t, err)
		require.Equal(t, pools, append([]pool.Declared{}, declared...))
	})
}

func FuzzParsePoolFile(f *testing.F) {
	f.Add(arenaFile(f))
	for _, s := range []string{
		"", "Pools([])", "\uFEFFPools([\r\n],)", "Pools([Pool(prefab:\"\\x41\\u{1F3F9}\\\"\",max:9,capacity:+9,grow:Additive(1,),),])",
		"/* /* */ */Pools([//\n]", "Pools([Pool(prefab:\"\xff\")])", "Pools([Pool(capacity:-1e9", "((((((((", "/*/*/*/*",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		declared, err := pool.ParseFile("a.ron", src)
		if err != nil {
			refused(t, src)
			return
		}
		names := map[string]bool{}
		for _, d := range declared {
			require.NotEmpty(t, d.Prefab)
			require.False(t, names[d.Prefab], d.Prefab)
			names[d.Prefab] = true
			require.GreaterOrEqual(t, d.Capacity, 0)
			require.True(t, d.Max == 0 || d.Max >= d.Capacity)
			require.LessOrEqual(t, max(d.Capacity, d.Max), 1<<24)
		}
		formatted := pool.FormatFile(declared)
		if len(formatted) > pool.MaxFileBytes {
			return
		}
		again, err := pool.ParseFile("a.ron", formatted)
		require.NoError(t, err)
		require.Equal(t, withoutLines(declared), withoutLines(again))
		require.Equal(t, string(formatted), string(pool.FormatFile(again)))
	})
}
