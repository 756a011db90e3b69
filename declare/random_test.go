package declare_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/declare"
)

// writer writes random programs. All are sound: names exist, and nothing is constant that is not finite.
type writer struct {
	*rand.Rand
	groups []writtenGroup
	lets   int // that can be used
	own    int // slots of the group
	b      strings.Builder
}

type writtenGroup struct {
	name  string
	slots int
	count int // 0 for an ordinary entity
}

// program is a world of a few groups and systems.
func (w *writer) program() string {
	var systems strings.Builder
	full := w.IntN(3) == 0 // a small pool in which the oldest make room
	w.b.WriteString("world {\n")
	for i := range 2 + w.IntN(4) {
		g := writtenGroup{name: fmt.Sprintf("g%d", i), slots: w.IntN(4)}
		if i == 1 || i > 1 && w.IntN(2) == 0 {
			g.count = []int{1, 3, 64, 70, 200, 1100, 1 + w.IntN(300)}[w.IntN(7)]
		}
		if i < 2 {
			g.slots = 2
		}
		if i == 1 && full {
			g.count = 2 + w.IntN(3)
		}
		if g.count > 0 {
			fmt.Fprintf(&w.b, "pool %s[%d] { state = (", g.name, g.count)
		} else {
			fmt.Fprintf(&w.b, "entity %s { state = (", g.name)
		}
		for s := range g.slots {
			fmt.Fprintf(&w.b, "v%d = %s,", s, w.number())
		}
		w.b.WriteString(") }\n")
		w.groups = append(w.groups, g)
	}
	w.b.WriteString("}\nsystems {\n")
	for range 1 + w.IntN(7) {
		w.system()
	}
	if full {
		w.turnover()
	}
	w.b.WriteString("}\n")
	w.b.WriteString(systems.String())
	return w.b.String()
}

func (w *writer) system() {
	g := w.groups[w.IntN(len(w.groups))]
	w.own, w.lets = g.slots, 0
	switch w.IntN(4) {
	case 0, 1:
		var pools []string
		for _, p := range w.groups {
			if p.count > 0 {
				pools = append(pools, p.name)
			}
		}
		fmt.Fprintf(&w.b, "spawn { on = %s; pool = %s; count = %d; every = %d; phase = %d }\n",
			g.name, pools[w.IntN(len(pools))], w.IntN(70), 1+w.IntN(4), w.IntN(3))
	case 2:
		fmt.Fprintf(&w.b, "update { on = %s; dt = %s\n", g.name, []string{"0.1", "1", "0", "1/60"}[w.IntN(4)])
		w.letsOf()
		assigned := false
		for s := range g.slots {
			if w.IntN(3) > 0 {
				assigned = true
				fmt.Fprintf(&w.b, "  state.v%d = %s\n", s, w.expr(w.IntN(5)))
			}
		}
		if w.IntN(6) == 0 || !assigned {
			fmt.Fprintf(&w.b, "  active = %s\n", w.expr(w.IntN(4)))
		}
		w.b.WriteString("}\n")
	default:
		fmt.Fprintf(&w.b, "despawn { on = %s\n", g.name)
		fmt.Fprintf(&w.b, "  when = %s }\n", w.expr(1+w.IntN(4)))
	}
}

// turnover has the first entity spawn into the pool behind it whenever there is room, and ends who is there for long: in turn
// each slot is the only free one. It counts in the entity's first value, unless that is too large or another system writes it.
func (w *writer) turnover() {
	w.b.WriteString("update { on = g0; dt = 1\n  state.v0 = (state.v0) + (1)\n}\n")
	w.b.WriteString("spawn { on = g0; pool = g1; count = 1; every = 1; phase = 0 }\n")
	fmt.Fprintf(&w.b, "despawn { on = g1\n  when = (state.v0) < ((@g0.v0) - (%d)) }\n", 2+w.IntN(5))
}

func (w *writer) letsOf() {
	for i := range w.IntN(3) {
		fmt.Fprintf(&w.b, "  let k%d = %s\n", i, w.expr(w.IntN(4)))
		w.lets = i + 1
	}
}

// number is a constant, often one at which something changes.
func (w *writer) number() string {
	if w.IntN(3) == 0 {
		return strconv.FormatFloat(w.NormFloat64()*100, 'g', -1, 64)
	}
	list := []string{"0", "-0", "1", "-1", "2", "0.1", "0.5", "3", "1e308", "-1e308", "5e-324", "9007199254740993", "1e16", "0.3333333333333333"}
	return list[w.IntN(len(list))]
}

// other names an entity or a slot of a pool.
func (w *writer) other() (string, writtenGroup) {
	g := w.groups[w.IntN(len(w.groups))]
	if g.count > 0 {
		return fmt.Sprintf("%s#%d", g.name, w.IntN(g.count)), g
	}
	return g.name, g
}

// expr is an expression of some depth.
func (w *writer) expr(depth int) string {
	if depth == 0 {
		switch n := w.IntN(10); {
		case n < 4 && w.own > 0:
			return fmt.Sprintf("state.v%d", w.IntN(w.own))
		case n == 4 && w.lets > 0:
			return fmt.Sprintf("k%d", w.IntN(w.lets))
		case n == 5:
			return "t"
		case n == 6:
			name, _ := w.other()
			return "active(" + name + ")"
		case n == 7:
			if name, g := w.other(); g.slots > 0 {
				return fmt.Sprintf("@%s.v%d", name, w.IntN(g.slots))
			}
		}
		return "(" + w.number() + ")"
	}
	x, y := w.expr(w.IntN(depth)), w.expr(depth-1)
	if w.IntN(2) == 0 {
		x, y = y, x
	}
	switch n := w.IntN(24); {
	case n < 13:
		ops := []string{"+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"}
		return "((" + x + ") " + ops[n] + " (" + y + "))"
	case n < 15:
		return []string{"min", "max"}[n-13] + "(" + x + ", " + y + ")"
	case n < 19:
		return []string{"abs", "sqrt", "floor", "sign"}[n-15] + "(" + x + ")"
	case n == 19:
		return "(-(" + x + "))"
	case n == 20:
		return "(not (" + x + "))"
	case n == 21:
		return "clamp(" + x + ", " + y + ", " + w.expr(0) + ")"
	case n == 22:
		return "if(" + x + ", " + y + ", " + w.expr(0) + ")"
	}
	return "(" + x + " + (" + w.number() + ") * (" + w.number() + " + " + y + "))" // a form that is fused
}

// programs is how many random programs are run, and for how many steps: a few, unless DECLARE_PROGRAMS says more.
func programs(t *testing.T) (count, steps int) {
	if s := os.Getenv("DECLARE_PROGRAMS"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		return n, 256
	}
	if raced {
		return 20, 16
	}
	return 120, 24
}

// TestRandomProgramsAgree runs random programs with the interpreter, and with the batch backend and 1, 2 and 4 workers, and
// compares the state hash after every step. DECLARE_SEED repeats one.
func TestRandomProgramsAgree(t *testing.T) {
	count, n := programs(t)
	first := uint64(1)
	if s := os.Getenv("DECLARE_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
		first, count = seed, 1
	}
	ran, faulty := 0, 0
	for seed := first; seed < first+uint64(count); seed++ {
		w := writer{Rand: rand.New(rand.NewPCG(seed, 7))}
		src := w.program()
		p, err := declare.Load("random.world", []byte(src), nil)
		if err != nil {
			faulty++ // a constant that is not finite where it has to be
			continue
		}
		ran++
		agree(t, p, n, seed, src)
	}
	t.Logf("%d programs of %d steps, %d of them not sound", ran, n, faulty)
	require.Greater(t, 10*ran, 8*count)
}

func agree(t *testing.T, p *declare.Program, n int, seed uint64, src string) {
	t.Helper()
	var all []*declare.Runner
	ring := []int{0, 8}[seed%2] // with a ring, entities that are there from the start have other handles
	for _, o := range []declare.RunnerOptions{
		{CrossCheck: true, Workers: 1},
		{Workers: 2},
		{Workers: 4},
	} {
		o.TemporalFrames = ring
		r, err := declare.NewRunner(p, o)
		require.NoError(t, err)
		if o.Workers > 1 {
			r.SpreadFrom(1)
		}
		all = append(all, r)
	}
	for step := range n {
		var want uint64
		for i, r := range all {
			require.NoError(t, r.Step(), "seed %d, step %d\n%s", seed, step, src)
			hash, err := r.Hash()
			require.NoError(t, err)
			if i == 0 {
				want = hash
			}
			require.Equal(t, want, hash, "seed %d, step %d, runner %d\n%s", seed, step, i, src)
		}
	}
	for _, r := range all {
		require.Equal(t, all[0].World().Refused(), r.World().Refused(), "seed %d\n%s", seed, src)
		require.NoError(t, r.Engine().Registry().Verify())
		require.NoError(t, r.Close())
	}
}
