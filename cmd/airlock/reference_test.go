package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/registry"
)

// block is what stands between fences in the reference of the language.
type block struct{ kind, text string }

// reference reads docs/DECLARE.md.
func reference(t *testing.T) (text string, blocks []block) {
	t.Helper()
	src, err := os.ReadFile("../../docs/DECLARE.md")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(src), -1) {
		blocks = append(blocks, block{m[1], m[2]})
	}
	return string(src), blocks
}

// crossChecked runs some steps of a world with both backends.
func crossChecked(t *testing.T, src string, steps int) *declare.Runner {
	t.Helper()
	p, err := declare.Load("a.world", []byte(src), nil)
	require.NoError(t, err, src)
	r, err := declare.NewRunner(p, declare.RunnerOptions{CrossCheck: true, Workers: 1})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	for range steps {
		require.NoError(t, r.Step(), src)
	}
	return r
}

// TestTheBlocksOfTheReferenceRun runs whole files, and what is put into one; compares the messages of faulty ones, and the
// output of commands.
func TestTheBlocksOfTheReferenceRun(t *testing.T) {
	_, blocks := reference(t)
	counts := map[string]int{}
	for i, b := range blocks {
		counts[b.kind]++
		switch b.kind {
		case "world":
			crossChecked(t, b.text, 20)
			formatted, err := declare.Format("a.world", []byte(b.text))
			require.NoError(t, err)
			assert.Equal(t, string(formatted), b.text)
		case "declarations":
			crossChecked(t, "world {\n"+b.text+"}", 20)
		case "systems":
			crossChecked(t, "world { entity emitter { state = (x = -6, vx = 1.5) } pool p[4] { state = (x = 0, vx = 0) } }\n"+
				"systems { spawn { on = emitter; pool = p }\n"+b.text+"}", 20)
		case "faulty":
			_, err := declare.Load("a.world", []byte(b.text), nil)
			require.Error(t, err)
			assert.Equal(t, block{"text", err.Error() + "\n"}, blocks[i+1])
		case "console":
			line, want, _ := strings.Cut(b.text, "\n")
			args, ok := strings.CutPrefix(line, "$ airlock ")
			require.True(t, ok, line)
			t.Chdir("../..")
			code, stdout, stderr := command(t.Context(), strings.Fields(args)...)
			assert.Zero(t, code, stderr)
			assert.Equal(t, want, stdout)
		case "text":
		default:
			t.Errorf("a block of %q: what is to be done with it?", b.kind)
		}
	}
	for _, kind := range []string{"world", "declarations", "systems", "faulty", "console"} {
		assert.Positive(t, counts[kind], kind)
	}
}

// rows are the cells of the rows of tables below a heading.
func rows(t *testing.T, text, heading string) (list [][]string) {
	t.Helper()
	_, section, found := strings.Cut(text, "\n## "+heading+"\n")
	require.True(t, found, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, line := range strings.Split(section, "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| -") {
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), " | ") {
			cells = append(cells, strings.Trim(cell, " `"))
		}
		list = append(list, cells)
	}
	return list[1:] // the first one is the head
}

func TestTheNumbersOfTheReferenceAreWhatComesOut(t *testing.T) {
	text, _ := reference(t)
	table := rows(t, text, "Numbers")
	require.Greater(t, len(table), 20)
	for _, row := range table {
		src := fmt.Sprintf("world { entity e { state = (r = 99, x = 2, z = -0) } }\nsystems { update { on = e; dt = 0.5; r = %s } }", row[0])
		r := crossChecked(t, src, 1)
		var got float64
		require.NoError(t, look(r, func(a registry.Access) {
			state, _, _ := r.World().State(a, 1)
			got = state[0]
		}))
		want := row[1]
		if want == "x as it was" {
			want = "99"
		}
		assert.Equal(t, want, number(got), row[0])
	}
}

func TestTheLimitsOfTheReferenceAreThoseOfThePackage(t *testing.T) {
	text, _ := reference(t)
	constants := map[string]int{
		"MaxSource": declare.MaxSource, "MaxNesting": declare.MaxNesting, "MaxNodes": declare.MaxNodes, "MaxName": declare.MaxName,
		"MaxText": declare.MaxText, "MaxParams": declare.MaxParams, "MaxState": declare.MaxState, "MaxRules": declare.MaxRules,
		"MaxPool": declare.MaxPool, "MaxEntities": declare.MaxEntities, "MaxCells": declare.MaxCells, "MaxSteps": declare.MaxSteps,
		"MaxErrors": declare.MaxErrors,
	}
	for _, row := range rows(t, text, "Limits") {
		assert.Equal(t, fmt.Sprint(constants[row[2]]), row[0], row[2])
		delete(constants, row[2])
	}
	assert.Empty(t, constants)
}
