package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/registry"
)

// report prints states of a world, as text or as JSON. Errors of out are those of its Flush.
type report struct {
	command *runCommand
	runner  *declare.Runner
	out     *bufio.Writer
	line    []byte // used again
}

// head says what is run.
func (r *report) head() {
	p := r.runner.World().Program()
	if r.command.JSON {
		return
	}
	title := ""
	if p.Title != "" {
		title = ": " + strings.Join(strings.Fields(p.Title), " ") // a text may have line breaks
	}
	fmt.Fprintf(r.out, "%s%s\n", p.File, title)
}

// state prints the state after so many steps.
func (r *report) state(done uint64) error {
	var hash *uint64
	if r.command.Hash {
		h, err := r.runner.Hash()
		if err != nil {
			return err
		}
		hash = &h
	}
	print := r.text
	if r.command.JSON {
		print = r.json
	}
	if done > 0 {
		return look(r.runner, func(a registry.Access) {
			w := r.runner.World()
			print(done, hash, func(id uint32) ([]float64, bool) {
				state, active, _ := w.State(a, id)
				return state, active
			})
		})
	}
	p := r.runner.World().Program()
	print(0, hash, func(id uint32) ([]float64, bool) { return initial(p, id) })
	return nil
}

// initial is what an entity is before the first step.
func initial(p *declare.Program, id uint32) (state []float64, active bool) {
	i, _, _ := p.GroupOf(id)
	g := &p.Groups[i]
	for _, s := range g.Slots {
		state = append(state, s.Init)
	}
	return state, !g.Pool
}

// stateOf is the state of an entity, and whether it is active.
type stateOf func(id uint32) (state []float64, active bool)

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// text prints a line for the world, one for each pool, and one for each entity whose state is asked for.
func (r *report) text(done uint64, hash *uint64, state stateOf) {
	w := r.runner.World()
	p := w.Program()
	fmt.Fprintf(r.out, "step %d, t = %s: %d of %d active, %d stores refused", done, number(p.Time(done)), w.Active(), p.Len(), w.Refused())
	if r.command.CrossCheck {
		fmt.Fprint(r.out, ", both backends agree")
	}
	if hash != nil {
		fmt.Fprintf(r.out, ", hash %016x", *hash)
	}
	r.out.WriteByte('\n')
	width := 0
	for i := range p.Groups {
		g := &p.Groups[i]
		last := g.Name
		if g.Pool && r.command.States != "none" {
			last = p.Name(g.First + uint32(g.Count) - 1)
		}
		width = max(width, utf8.RuneCountInString(last))
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		if g.Pool {
			fmt.Fprintf(r.out, "  %-*s  %d of %d active\n", width, g.Name, w.ActiveIn(i), g.Count)
		}
		r.entities(g, state, func(id uint32, values []float64, active bool) {
			b := append(r.line[:0], "  "...)
			b = append(b, p.Name(id)...)
			for n := utf8.RuneCount(b); n < width+2; n++ {
				b = append(b, ' ')
			}
			for s, v := range values {
				b = append(append(b, "  "...), g.Slots[s].Name...)
				b = strconv.AppendFloat(append(b, " = "...), v, 'g', -1, 64)
			}
			if !active {
				b = append(b, "  inactive"...)
			} else if len(values) == 0 {
				b = append(b, "  active"...)
			}
			r.line = append(b, '\n')
			r.out.Write(r.line)
		})
	}
}

// entities goes through those of a group whose state is asked for, by ascending ids.
func (r *report) entities(g *declare.Group, state stateOf, f func(id uint32, state []float64, active bool)) {
	if r.command.States == "none" {
		return
	}
	for id := g.First; id < g.First+uint32(g.Count); id++ {
		if values, active := state(id); active || r.command.States == "all" {
			f(id, values, active)
		}
	}
}

// json prints an object in a line. Its keys are always in the same order.
func (r *report) json(done uint64, hash *uint64, state stateOf) {
	w := r.runner.World()
	p := w.Program()
	b := r.line[:0]
	b = quoted(append(b, `{"file":`...), p.File)
	b = quoted(append(b, `,"title":`...), p.Title)
	b = append(b, `,"params":{`...)
	for i, param := range p.Params {
		b = member(b, i, param.Name, param.Value)
	}
	b = fmt.Appendf(b, `},"backend":%q,"steps":%d,"step":%d,"t":%s,"active":%d,"entities":%d,"refused":%d`,
		r.command.Backend, r.command.Steps, done, number(p.Time(done)), w.Active(), p.Len(), w.Refused())
	if r.command.CrossCheck {
		b = append(b, `,"agree":true`...)
	}
	if hash != nil {
		b = fmt.Appendf(b, `,"hash":"%016x"`, *hash)
	}
	b = append(b, `,"groups":[`...)
	for i := range p.Groups {
		g := &p.Groups[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = quoted(append(b, `{"name":`...), g.Name)
		b = fmt.Appendf(b, `,"pool":%t,"count":%d,"active":%d}`, g.Pool, g.Count, w.ActiveIn(i))
	}
	b = append(b, `],"states":[`...)
	r.out.Write(b)
	first := true
	for i := range p.Groups {
		g := &p.Groups[i]
		r.entities(g, state, func(id uint32, values []float64, active bool) {
			b = b[:0]
			if !first {
				b = append(b, ',')
			}
			first = false
			b = quoted(fmt.Appendf(b, `{"id":%d,"name":`, id), p.Name(id))
			b = fmt.Appendf(b, `,"active":%t,"state":{`, active)
			for s, v := range values {
				b = member(b, s, g.Slots[s].Name, v)
			}
			b = append(b, "}}"...)
			r.out.Write(b)
		})
	}
	r.line = b
	r.out.WriteString("]}\n")
}

// quoted appends a text as JSON has it.
func quoted(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // no text fails
	return append(b, text...)
}

// member appends a name and a number, which is finite, as all numbers of a state are.
func member(b []byte, i int, name string, v float64) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return strconv.AppendFloat(append(quoted(b, name), ':'), v, 'g', -1, 64)
}
