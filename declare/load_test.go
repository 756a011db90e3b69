package declare_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/declare"
)

// pooled is the particles file as the documentation of the package shows it.
const pooled = `world {
  title = "Pooled particles"
  params { k = 12.0 }
  entity emitter { state = (x = -6.0, vx = 1.5) }
  pool p[24] { state = (x = 0.0, vx = 0.0) }
}
systems {
  spawn   { on = emitter; pool = p }              # count = 1, every = 1, phase = 0 by default
  update  { on = p; dt = 0.1 x = x + inte(0.0 + vx) }
  despawn { on = p; when = x > 6.0 }
}
`

// rich uses all that the language has.
const rich = `# A file of everything.
systems { // before the world
  update { on = emitter
    let next = clamp(x + inte(vx), -k, k)   # a let
    let turn = if(next >= k or not (next > -k), -1, 1)
    x = next; state.vx = vx * turn
    active = t < 100 and active
    s2 = @p#3.x + active(@p#3) + active(emitter) + active(p#0) + @emitter.s0 % 3 - sign(-x) / pi
  }
  spawn { on = emitter; pool = p }
}
world {
  title = "Everything \"here\""
  params { k = 2 * half; half = 6 n = 24 }
  gravity = (0, -9.81)
  entity emitter {
    state = (
      x = -6.0,   // left
      vx = 1.5 * k,
      load = sqrt(abs(-4)) + min(1, 2) + max(1, 2) + floor(2.5),
    )
    position = (x, 1) color = red label = "an emitter" size = (1 + k) * 2
    hidden = x > 3
  }
  pool p[n] { state = (x = 0.0); hidden; shape = circle; color = (1, 0, x / k) }
  entity other { }
}
`

// load reads a file that must be sound.
func load(t *testing.T, src string, params map[string]float64) *declare.Program {
	t.Helper()
	p, err := declare.Load("file.world", []byte(src), params)
	require.NoError(t, err)
	return p
}

// errorsOf reads a file that must not be sound, and returns its errors as line:column message.
func errorsOf(t *testing.T, src string, params map[string]float64) []string {
	t.Helper()
	p, err := declare.Load("file.world", []byte(src), params)
	require.Error(t, err)
	require.Nil(t, p)
	var list declare.Errors
	require.ErrorAs(t, err, &list)
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprintf("%d:%d %s", e.Pos.Line, e.Pos.Column, e.Message))
	}
	return out
}

// unplaced sets all positions to zero, and NaN to a number, so that programs of different layouts can be compared.
func unplaced(p *declare.Program) *declare.Program {
	var clear func(v reflect.Value)
	clear = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				clear(v.Elem())
			}
		case reflect.Float64:
			if math.IsNaN(v.Float()) {
				v.SetFloat(-987.125)
			}
		case reflect.Slice:
			for i := range v.Len() {
				clear(v.Index(i))
			}
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[declare.Pos]() {
				v.SetZero()
				return
			}
			for i := range v.NumField() {
				clear(v.Field(i))
			}
		}
	}
	clear(reflect.ValueOf(p))
	return p
}

func TestTheParticlesFileIsRead(t *testing.T) {
	p := unplaced(load(t, pooled, nil))
	x, vx := &declare.Own{Slot: 0}, &declare.Own{Slot: 1}
	assert.Equal(t, &declare.Program{
		File: "file.world", Title: "Pooled particles", Dt: 0.1,
		Params: []declare.Param{{Name: "k", Value: 12}},
		Groups: []declare.Group{
			{Name: "emitter", First: 1, Count: 1, Slots: []declare.Slot{{Name: "x", Init: -6}, {Name: "vx", Init: 1.5}}},
			{Name: "p", Pool: true, First: 2, Count: 24, Slots: []declare.Slot{{Name: "x"}, {Name: "vx"}}},
		},
		Systems: []declare.System{
			{Kind: declare.Spawn, On: 0, Pool: 1, Count: 1, Every: 1},
			{Kind: declare.Update, On: 1, Dt: 0.1, Assigns: []declare.Assign{{Slot: 0, Expr: &declare.Binary{
				Op: declare.Add, X: x, Y: &declare.Binary{
					Op: declare.Mul, X: &declare.Const{Value: 0.1},
					Y: &declare.Binary{Op: declare.Add, X: &declare.Const{}, Y: vx},
				},
			}}}},
			{Kind: declare.Despawn, On: 1, When: &declare.Binary{Op: declare.Gt, X: x, Y: &declare.Const{Value: 6}}},
		},
	}, p)
	assert.Equal(t, 25, p.Len())
	dt, steps := 0.1, 3.0
	assert.Equal(t, float64(dt*steps), p.Time(3)) // not 0.3
}

func TestTheQuotedSystemsAreRead(t *testing.T) {
	p := unplaced(load(t, `world { pool particles[3] { state = (x = 0, vx = 1) } }
		systems { despawn { on = particles; when = state.x > 10 }
		update { on = particles; dt = 0.1 vx = -0.5 } }`, nil))
	assert.Equal(t, []declare.System{
		{Kind: declare.Despawn, When: &declare.Binary{Op: declare.Gt, X: &declare.Own{}, Y: &declare.Const{Value: 10}}},
		{Kind: declare.Update, Dt: 0.1, Assigns: []declare.Assign{{Slot: 1, Expr: &declare.Const{Value: -0.5}}}},
	}, p.Systems)
}

func TestParametersAreBound(t *testing.T) {
	src := `world { params { a = b * 2; b = 3 } pool p[a] { state = (x = a + b) } }
		systems { spawn { on = p pool = p count = b phase = a every = 2 } update { on = p; dt = b / 4 x = a } }`
	p := load(t, src, nil)
	assert.Equal(t, 6, p.Groups[0].Count)
	assert.Equal(t, 9.0, p.Groups[0].Slots[0].Init)
	p = load(t, src, map[string]float64{"b": 5})
	assert.Equal(t, 10, p.Groups[0].Count)
	assert.Equal(t, 15.0, p.Groups[0].Slots[0].Init)
	assert.Equal(t, 1.25, p.Dt)
	s := p.Systems[0]
	assert.Equal(t, 5, s.Count)
	var due []uint64
	for step := range uint64(15) {
		if s.Due(step) {
			due = append(due, step)
		}
	}
	assert.Equal(t, []uint64{10, 12, 14}, due)

	assert.Equal(t, []string{"0:0 the world has no parameter bb; did you mean b?", "0:0 the world has no parameter zzz"},
		errorsOf(t, src, map[string]float64{"bb": 1, "zzz": 2}))
	assert.Equal(t, []string{"0:0 parameter b is given a value that is not finite"}, errorsOf(t, src, map[string]float64{"b": math.Inf(1)})[:1])
}

func TestIdsFollowEntitiesThenPools(t *testing.T) {
	p := load(t, `world { pool q[3] { } entity a { } pool r[2] { } entity b { } }`, nil)
	var names []string
	for id := range uint32(p.Len()) {
		name := p.Name(id + 1)
		names = append(names, name)
		back, ok := p.ID(name)
		assert.True(t, ok && back == id+1, name)
	}
	assert.Equal(t, []string{"a", "b", "q#0", "q#1", "q#2", "r#0", "r#1"}, names)
	for _, name := range []string{"", "c", "q", "a#0", "q#3", "q#", "q#-1", "q#01", "#", "q#99999999999"} {
		_, ok := p.ID(name)
		assert.False(t, ok, name)
	}
	for _, id := range []uint32{0, 8, math.MaxUint32} {
		_, _, ok := p.GroupOf(id)
		assert.False(t, ok, id)
	}
}

func TestAttributesAreKeptAndDoNotTouchTheState(t *testing.T) {
	p := load(t, rich, nil)
	attributes := p.Groups[0].Attributes
	var names []string
	for _, a := range attributes {
		names = append(names, a.Name)
	}
	assert.Equal(t, []string{"position", "color", "label", "size", "hidden"}, names)
	state := []float64{5, 0, 0}
	assert.Equal(t, 5.0, attributes[0].Values[0].Eval(state))
	assert.Equal(t, 1.0, attributes[0].Values[1].Eval(state))
	assert.Equal(t, "red", attributes[1].Values[0].Text)
	assert.Equal(t, "an emitter", attributes[2].Values[0].Text)
	assert.Equal(t, 26.0, attributes[3].Values[0].Eval(state))
	assert.Equal(t, 1.0, attributes[4].Values[0].Eval(state))
	assert.Equal(t, 0.0, attributes[4].Values[0].Eval(make([]float64, 3)))
	assert.Equal(t, -9.81, p.Attributes[0].Values[1].Eval(nil))
	assert.Len(t, p.Groups[2].Attributes[2].Values, 3)
	assert.Equal(t, `Everything "here"`, p.Title)
}

// constant is the value of an expression of constants.
func constant(t *testing.T, expr string) float64 {
	t.Helper()
	p := load(t, "world { entity e { state = (y = 0) hidden = "+expr+" } }", nil)
	return p.Groups[0].Attributes[0].Values[0].Eval([]float64{0})
}

func TestOperatorsBindAndCompute(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	minusZero := math.Copysign(0, -1)
	for expr, want := range map[string]float64{
		"1 + 2 * 3": 7, "(1 + 2) * 3": 9, "8 - 4 - 2": 2, "16 / 4 / 2": 2, "-2 * -3": 6, "- - 2": 2, "2 - -2": 4,
		"1 + 1 == 2 and 3 > 2": 1, "not 1 == 2": 1, "not 1 and 0": 0, "1 or 0 and 0": 1, "not not 5": 1, "3 and 4": 1,
		"1 + not 2 == 3": 2, "(1 < 2) == (2 < 3)": 1, "1 != 1": 0, "2 <= 2": 1, "2 >= 3": 0,
		"1 / 0": 0, "0 / 0": 0, "1 / -0": 0, "5 % 0": 0, "7 % 3": 1, "-7 % 3": 2, "7 % -3": -2, "5.5 % 2": 1.5,
		"-0": minusZero, "-0 + 0": 0, "min(0, -0)": minusZero, "max(0, -0)": 0, "min(1, sqrt(-1))": nan,
		"abs(-3)": 3, "sqrt(2.25)": 1.5, "floor(-1.5)": -2, "sign(-3)": -1, "sign(0)": 0, "sign(-0)": 0, "sign(sqrt(-1))": 0,
		"clamp(5, 0, 1)": 1, "clamp(-5, 0, 1)": 0, "clamp(0.5, 3, 1)": 1, "if(2, 3, 4)": 3, "if(0, 3, 4)": 4, "if(-0, 3, 4)": 4,
		"if(sqrt(-1), 3, 4)": 3, "not sqrt(-1)": 0, "sqrt(-1) == sqrt(-1)": 0, "sqrt(-1) != sqrt(-1)": 1,
		"1e308 * 10": inf, "true + true - false": 2, ".5 + 1.": 1.5, "1e-2": 0.01, "1e-999": 0, "pi": math.Pi,
		"0.1 * 3 - 0.3": float64(float64(0.1)*3) - 0.3 + 0, "y": 0, "if(y, 1, 2)": 2, "state.y + s0": 0,
	} {
		if expr == "0.1 * 3 - 0.3" { // constants of Go are exact
			a, b := 0.1, 3.0
			want = float64(a*b) - 0.3
		}
		got := constant(t, expr)
		if math.IsNaN(want) {
			assert.True(t, math.IsNaN(got), expr)
			continue
		}
		assert.Equal(t, math.Float64bits(want), math.Float64bits(got), "%s is %v, want %v", expr, got, want)
	}
}

func TestProductsAreNotFused(t *testing.T) {
	// (1+e)(1-e) is 1-e*e, which rounds to 1: fused with -1 it would leave -e*e.
	assert.Zero(t, constant(t, "(1 + 1.4901161193847656e-08 / 4) * (1 - 1.4901161193847656e-08 / 4) - 1"))
}

func TestSpaceAndSemicolonsDoNotMatter(t *testing.T) {
	pooled := strings.ReplaceAll(pooled, "# count = 1, every = 1, phase = 0 by default", "# by default")
	want := unplaced(load(t, pooled, nil))
	for name, src := range map[string]string{
		"windows lines": strings.ReplaceAll(pooled, "\n", "\r\n"),
		"byte order":    "\uFEFF" + pooled,
		"one line":      strings.ReplaceAll(strings.ReplaceAll(pooled, "\n", " "), "# by default", ""),
		"semicolons":    strings.ReplaceAll(strings.ReplaceAll(pooled, "\n", ";;\n"), "default;;", "default"),
		"no spaces":     strings.ReplaceAll(strings.ReplaceAll(pooled, " = ", "="), ", ", ","),
		"tabs":          strings.ReplaceAll(pooled, "  ", "\t"),
		"comments":      strings.ReplaceAll(pooled, " = ", " // one\n = # two\n"),
	} {
		p, err := declare.Load("file.world", []byte(src), nil)
		if assert.NoError(t, err, name) {
			assert.Equal(t, want, unplaced(p), name)
		}
	}
}

func TestAnUpdateSeesItsLetsAndOthers(t *testing.T) {
	p := unplaced(load(t, rich, nil))
	s := p.Systems[0]
	require.Len(t, s.Lets, 2)
	assert.Equal(t, "next", s.Lets[0].Name)
	assert.Equal(t, &declare.Local{Let: 0}, s.Assigns[0].Expr)
	assert.Equal(t, 1, s.Assigns[1].Slot)
	assert.Equal(t, 2, s.Assigns[2].Slot)
	assert.Equal(t, declare.DefaultDt, s.Dt)
	assert.Equal(t, &declare.Binary{
		Op: declare.And, X: &declare.Binary{Op: declare.Lt, X: &declare.Time{}, Y: &declare.Const{Value: 100}}, Y: &declare.Const{Value: 1},
	}, s.Active)
	var others []uint32
	var find func(e declare.Expr)
	find = func(e declare.Expr) {
		switch e := e.(type) {
		case *declare.Binary:
			find(e.X)
			find(e.Y)
		case *declare.Other:
			others = append(others, e.ID)
		case *declare.ActiveOf:
			others = append(others, e.ID)
		}
	}
	find(s.Assigns[2].Expr)
	assert.Equal(t, []uint32{6, 6, 1, 3, 1}, others)
}
