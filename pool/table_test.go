package pool_test

import (
	"bytes"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/pool"
)

type tableLine struct {
	name  string
	stats pool.Stats
}

// tableRows yields lines as FormatTable wants them.
func tableRows(lines ...tableLine) iter.Seq2[string, pool.Stats] {
	return func(yield func(string, pool.Stats) bool) {
		for _, l := range lines {
			if !yield(l.name, l.stats) {
				return
			}
		}
	}
}

func TestTheTableIsAlignedAndMarksFixedPoolsAtTheirCap(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, pool.FormatTable(&b, tableRows(
		tableLine{"Flèche🏹", pool.Stats{Cap: 128, InUse: 100, Free: 28, Peak: 111, Warm: true}},
		tableLine{"HitSpark", pool.Stats{Cap: 32, InUse: 32, Peak: 32, Grow: pool.Additive(16), Warm: true, Refused: 9}},
		tableLine{"Grunt", pool.Stats{Cap: 24, InUse: 24, Peak: 24, Grow: pool.Fixed(), Refused: 3}},
		tableLine{"Boss", pool.Stats{Cap: 2, InUse: 1, Free: 1, Peak: 2, Grow: pool.Fixed(), Warm: true, Refused: 1}},
		tableLine{"Big", pool.Stats{Cap: 12345678, InUse: 12345678, Peak: 12345678, Grow: pool.Fixed(), Warm: true}},
		tableLine{"", pool.Stats{}},
		tableLine{"a\nb", pool.Stats{}},
		tableLine{"two words", pool.Stats{}},
		tableLine{" led", pool.Stats{}},
		tableLine{"\xff", pool.Stats{}},
	)))
	assert.Equal(t, `Prefab          Cap    In-use  Free      Peak  Grow  Warm
Flèche🏹         128       100    28       111  ×2    ✓
HitSpark         32        32     0        32  +16   ✓
Grunt            24        24     0        24  fix         at its cap, 3 refused
Boss              2         1     1         2  fix   ✓
Big        12345678  12345678     0  12345678  fix   ✓     at its cap, 0 refused
""                0         0     0         0  ×2
"a\nb"            0         0     0         0  ×2
two words         0         0     0         0  ×2
" led"            0         0     0         0  ×2
"\xff"            0         0     0         0  ×2
`, b.String())
}

func TestATableWithoutRowsHasItsHeadings(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, pool.FormatTable(&b, tableRows()))
	assert.Equal(t, "Prefab  Cap  In-use  Free  Peak  Grow  Warm\n", b.String())
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestATableThatCannotBeWrittenIsAnError(t *testing.T) {
	broken := errors.New("broken")
	assert.ErrorIs(t, pool.FormatTable(brokenWriter{broken}, tableRows()), broken)
}
