package declare_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/declare"
)

// steady fails if what Format makes of a source reads otherwise, or is not left as it is.
func steady(t testing.TB, src []byte) {
	once, err := declare.Format("f", src)
	if err != nil {
		return
	}
	twice, err := declare.Format("f", once)
	if err != nil || string(twice) != string(once) {
		t.Fatalf("formatted again: %v\n%s\nformatted once:\n%s\nsource:\n%s", err, twice, once, src)
	}
	p, err := declare.Load("f", src, nil)
	q, again := declare.Load("f", once, nil)
	if (err == nil) != (again == nil) {
		t.Fatalf("read: %v\nread when formatted: %v\n%s", err, again, once)
	}
	if err == nil && !reflect.DeepEqual(unplaced(p), unplaced(q)) {
		t.Fatalf("another program:\n%s", once)
	}
}

func TestFormat(t *testing.T) {
	for _, test := range []struct{ src, want string }{
		{"", ""},
		{" # only this  \r\n\r\n\r\n", "# only this\n"},
		{pooled, `world {
	title = "Pooled particles"
	params { k = 12.0 }
	entity emitter { state = (x = -6.0, vx = 1.5) }
	pool p[24] { state = (x = 0.0, vx = 0.0) }
}
systems {
	spawn { on = emitter; pool = p } # count = 1, every = 1, phase = 0 by default
	update { on = p; dt = 0.1; x = x + inte(0.0 + vx) }
	despawn { on = p; when = x > 6.0 }
}
`},
		{"world{}systems{}", "world { }\nsystems { }\n"},
		{"world {\n\n\n # a\n\n\n\n # b\n title=\"t\" // c\n\n\n\n}\n\n\n\n", "world {\n\t# a\n\n\t# b\n\ttitle = \"t\" // c\n}\n"},
		{"world { params { a=1;;b = 2\n} }", "world {\n\tparams {\n\t\ta = 1\n\t\tb = 2\n\t}\n}\n"},
		{"world { entity e { state=(\nx=1, // one\n\n  y = -(2),\n) ; hidden } }",
			"world {\n\tentity e {\n\t\tstate = (\n\t\t\tx = 1, // one\n\t\t\ty = -(2),\n\t\t)\n\t\thidden\n\t}\n}\n"},
		{"world { } systems { update { on = e\nx = if ( a , - b , @ p#3 . x ) +\nnot 3*-  4 state . x = active(@p#1) } }",
			"world { }\nsystems {\n\tupdate {\n\t\ton = e\n\t\tx = if(a, -b, @p#3.x) +\n\t\t\tnot 3 * -4\n\t\tstate.x = active(@p#1)\n\t}\n}\n"},
	} {
		got, err := declare.Format("f", []byte(test.src))
		require.NoError(t, err)
		assert.Equal(t, test.want, string(got))
		steady(t, []byte(test.src))
	}
	steady(t, []byte(rich))
}

func TestFormatKeepsEveryComment(t *testing.T) {
	// A comment behind every word.
	var b strings.Builder
	words := strings.Fields(strings.ReplaceAll(pooled, "# count = 1, every = 1, phase = 0 by default", ""))
	n := 0
	for _, w := range words {
		if strings.Contains(w, "Pooled") {
			w += " particles\""
		} else if w == `particles"` {
			continue
		}
		n++
		fmt.Fprintf(&b, "%s # %d.\n", w, n)
	}
	steady(t, []byte(b.String()))
	out, err := declare.Format("f", []byte(b.String()))
	require.NoError(t, err)
	for i := range n {
		assert.Equal(t, 1, strings.Count(string(out), fmt.Sprintf("# %d.\n", i+1)))
	}
}

func TestFormatRefusesWhatDoesNotParse(t *testing.T) {
	_, err := declare.Format("f", []byte("world { title = }"))
	var list declare.Errors
	require.ErrorAs(t, err, &list)
	_, err = declare.Format("f", []byte("world { entity a { state = (x = unknown) } }"))
	require.NoError(t, err, "a name that means nothing is laid out all the same")
}
