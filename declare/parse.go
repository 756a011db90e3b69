package declare

import (
	"fmt"
	"slices"
	"strconv"
)

// parser reads tokens into a file. A fault sets failed, and every method returns at once while it is set; the
// statement that failed is left behind, and reading goes on with the next one.
type parser struct {
	*faults
	tokens []token
	at     int // token at hand, never a comment
	depth  int
	nodes  int
	round  int // round brackets open
	inside int // round brackets that were open at the fault
	failed bool
	lost   bool // the end was reached while skipping: what is not closed is no news
}

// parse reads a source. What it returns is as complete as the faults allow.
func parse(f *faults, tokens []token) *file {
	p := &parser{faults: f, tokens: tokens, at: -1}
	p.next()
	out := &file{}
	p.statements(false, func(word string, at Pos) {
		switch word {
		case "world":
			if p.once(&out.world, at, word) {
				p.world(out)
			}
		case "systems":
			if p.once(&out.systemsPos, at, word) {
				p.block(func(word string, at Pos) { p.system(out, word, at) })
			}
		default:
			p.unknown(at, fmt.Sprintf("a file has no %s", shown([]byte(word))), word, []string{"world", "systems"})
		}
	})
	out.end = p.token().pos()
	return out
}

func (p *parser) token() token { return p.tokens[p.at] }

func (p *parser) text() string { return string(p.src[p.token().off:p.token().end]) }

// next goes to the token after the one at hand, past comments. The last token stays.
func (p *parser) next() {
	for p.at < len(p.tokens)-1 {
		if p.at++; p.token().kind != tokComment {
			return
		}
	}
}

// failf reports a fault. There is at most one in a statement, and none where the lexer has told one.
func (p *parser) failf(at Pos, format string, args ...any) {
	if p.failed {
		return
	}
	if p.token().kind != tokBad {
		p.addf(at, format, args...)
	}
	p.failed, p.inside = true, p.round
}

// unexpected reports that the token at hand is not what it should be.
func (p *parser) unexpected(want string) {
	found := "the end of the file"
	if p.token().kind != tokEnd {
		found = shown(p.src[p.token().off:p.token().end])
	}
	p.failf(p.token().pos(), "expected %s, found %s", want, found)
}

// unknown reports a word that does not belong where it stands.
func (p *parser) unknown(at Pos, message, word string, names []string) {
	if !p.failed && !p.full() {
		message += nearest(word, names)
	}
	p.failf(at, "%s", message)
}

// is reports whether the token at hand is a mark.
func (p *parser) is(mark string) bool {
	return !p.failed && p.token().kind == tokMark && p.text() == mark
}

// accept goes past a mark if it is at hand.
func (p *parser) accept(mark string) bool {
	if !p.is(mark) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(mark, where string) {
	if !p.failed && !p.accept(mark) {
		p.unexpected(mark + " " + where)
	}
}

// name reads a name; what it is for is said if there is none.
func (p *parser) name(what string) (string, Pos) {
	at := p.token().pos()
	if p.failed {
		return "", at
	}
	if p.token().kind != tokName {
		p.unexpected(what)
		return "", at
	}
	name := p.text()
	p.next()
	return name, at
}

// newName reads a name that is declared here.
func (p *parser) newName(what string) (string, Pos) {
	name, at := p.name(what)
	if !p.failed && (reserved[name] || slotNumber(name) >= 0) {
		p.addf(at, "%s is a word of the language, and so cannot be %s", name, what)
	}
	return name, at
}

// reserved are the words that mean something in expressions and rules.
var reserved = func() map[string]bool {
	words := map[string]bool{}
	for _, w := range []string{"t", "dt", "pi", "true", "false", "and", "or", "not", "active", "state", "let", "on", "when"} {
		words[w] = true
	}
	for w := range functions {
		words[w] = true
	}
	return words
}()

// slotNumber is the N of the name sN; -1 for other names.
func slotNumber(name string) int {
	if len(name) < 2 || name[0] != 's' || !digit(name[1]) {
		return -1
	}
	n, err := strconv.ParseUint(name[1:], 10, 31)
	if err != nil {
		if e, ok := err.(*strconv.NumError); ok && e.Err == strconv.ErrRange {
			return MaxState // as wrong as any
		}
		return -1
	}
	return int(n)
}

// deeper counts a level of nesting; the caller takes it back from depth.
func (p *parser) deeper() {
	if p.depth++; p.depth > MaxNesting && !p.failed {
		p.failf(p.token().pos(), "nested over %d levels", MaxNesting)
	}
}

// once reports whether something is given for the first time, and keeps where.
func (p *parser) once(seen *Pos, at Pos, what string) bool {
	if seen.Line > 0 {
		p.failf(at, "%s is given twice, first in line %d", what, seen.Line)
		return false
	}
	*seen = at
	return true
}

// block reads { statements }.
func (p *parser) block(statement func(word string, at Pos)) (ok bool) {
	open := p.at
	p.expect("{", "to open a block")
	if p.failed {
		return false
	}
	p.tokens[open].role |= roleBlock
	p.deeper()
	defer func() { p.depth-- }()
	if p.failed {
		return false
	}
	ok = p.statements(true, statement)
	if p.is("}") {
		p.tokens[p.at].role |= roleBlock
		p.next()
		return ok
	}
	if !p.lost {
		p.failf(p.tokens[open].pos(), "this { is never closed")
	}
	p.failed, p.lost = false, true
	return false
}

// statements reads statements up to the } of a block, or the end of the file. It reports whether all were sound.
func (p *parser) statements(nested bool, statement func(word string, at Pos)) (ok bool) {
	ok = true
	for {
		t := p.token()
		switch {
		case t.kind == tokEnd || nested && p.is("}"):
			return ok
		case p.accept(";"):
			continue
		case t.kind == tokName:
			p.tokens[p.at].role |= roleStart
			word, at := p.name("")
			statement(word, at)
		case p.is("}"):
			p.failf(t.pos(), "this } closes nothing")
			p.next()
		default:
			p.unexpected("a statement")
		}
		if p.failed {
			ok = false
			p.skip()
		}
	}
}

// skip leaves a faulty statement behind: it goes to where the next one seems to start.
func (p *parser) skip() {
	p.failed = false
	if p.leave(p.inside) && p.token().kind == tokName {
		if _, infix := infixes[p.text()]; !infix {
			return
		}
	}
	braces := 0
	for moved := false; ; moved = true {
		t := p.token()
		switch {
		case t.kind == tokEnd:
			p.lost = true
			return
		case p.is("{"):
			braces++
		case p.is("}"):
			if braces == 0 {
				return
			}
			if braces--; braces == 0 {
				p.next()
				return
			}
		case braces > 0:
		case p.is(";"):
			return
		case t.kind == tokName && p.startsLine() && (moved || t.role&roleStart == 0):
			return
		}
		p.next()
	}
}

// leave goes past the brackets that are open if they are closed soon, for the lines between them are no statements. It
// reports whether it did.
func (p *parser) leave(open int) bool {
	const soon = 256 // tokens; to look further each time would take long in a file of nothing but faults
	for i := p.at; open > 0 && i < min(len(p.tokens), p.at+soon); i++ {
		t := p.tokens[i]
		if t.kind != tokMark {
			continue
		}
		switch p.src[t.off] {
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				p.at = i
				p.next()
				return true
			}
		case '{', '}', ';':
			return false
		}
	}
	return false
}

// startsLine reports whether nothing stands before the token at hand in its line.
func (p *parser) startsLine() bool {
	return p.at == 0 || p.tokens[p.at-1].line != p.token().line
}

// world reads the block of the world.
func (p *parser) world(out *file) {
	p.block(func(word string, at Pos) {
		switch {
		case word == "title":
			if p.once(&out.titlePos, at, word) {
				p.expect("=", "after title")
				out.title = p.quoted("a text in quotes")
			}
		case word == "params":
			if !p.block(func(word string, at Pos) { p.param(out, word, at) }) {
				out.paramsBroken = true
			}
		case word == "entity" || word == "pool":
			p.group(out, word == "pool")
		case isAttribute(word):
			out.attributes = p.attribute(out.attributes, word, at)
		default:
			out.groupsBroken = true
			p.unknown(at, fmt.Sprintf("a world has no %s", shown([]byte(word))), word,
				append([]string{"title", "params", "entity", "pool"}, attributeNames...))
		}
	})
	if p.lost {
		out.paramsBroken, out.groupsBroken = true, true
	}
}

func (p *parser) param(out *file, word string, at Pos) {
	if reserved[word] || slotNumber(word) >= 0 {
		p.addf(at, "%s is a word of the language, and so cannot be the name of a parameter", word)
	}
	f := &field{name: word, pos: at, expr: &node{}}
	p.expect("=", "after "+shown([]byte(word)))
	if len(out.params) == MaxParams {
		p.failf(at, "over %d parameters", MaxParams)
		return
	}
	out.params = append(out.params, f)
	f.expr = p.expr()
}

// quoted reads a text.
func (p *parser) quoted(what string) string {
	if p.failed {
		return ""
	}
	if p.token().kind != tokText {
		p.unexpected(what)
		return ""
	}
	text, _ := unquote(p.src[p.token().off:p.token().end])
	p.next()
	return text
}

// group reads an entity or a pool, from its name.
func (p *parser) group(out *file, pool bool) {
	g := &group{pool: pool, count: &node{kind: nodeNumber, number: 1}}
	what := "the name of an entity"
	if pool {
		what = "the name of a pool"
	}
	g.name, g.pos = p.newName(what)
	if p.failed {
		out.groupsBroken = true
		return
	}
	out.groups = append(out.groups, g)
	g.broken = true
	if pool {
		g.count = &node{}
		p.expect("[", "with the number of slots")
		count := p.expr()
		p.expect("]", "after the number of slots")
		g.count = count
	}
	g.broken = !p.block(func(word string, at Pos) {
		switch {
		case word == "state":
			if p.once(&g.state, at, word) {
				p.expect("=", "after state")
				p.state(g)
			}
		case isAttribute(word):
			g.attributes = p.attribute(g.attributes, word, at)
		default:
			p.unknown(at, fmt.Sprintf("an entity or pool has no %s", shown([]byte(word))), word, append([]string{"state"}, attributeNames...))
		}
	})
}

// state reads (name = expr, …).
func (p *parser) state(g *group) {
	p.expect("(", "before the state slots")
	p.round++
	defer func() { p.round-- }()
	for !p.failed && !p.accept(")") {
		f := &field{expr: &node{}}
		f.name, f.pos = p.newName("the name of a state slot")
		if p.failed {
			return
		}
		if len(g.slots) == MaxState {
			p.failf(f.pos, "over %d state slots", MaxState)
			return
		}
		g.slots = append(g.slots, f)
		p.expect("=", "after "+f.name)
		f.expr = p.expr()
		if !p.is(")") {
			p.expect(",", "or ) after a state slot")
		}
	}
}

// system reads one system, from behind its first word.
func (p *parser) system(out *file, word string, at Pos) {
	kinds := map[string]SystemKind{"spawn": Spawn, "update": Update, "despawn": Despawn}
	s := &system{kind: kinds[word], pos: at, keys: map[string]*field{}}
	if s.kind == 0 {
		p.unknown(at, fmt.Sprintf("%s is not a system of the language, which are spawn, update and despawn: "+
			"grid fields, neighbour queries and built-in physics are not part of it", shown([]byte(word))),
			word, []string{"spawn", "update", "despawn"})
		return
	}
	out.systems = append(out.systems, s)
	s.broken = !p.block(func(word string, at Pos) {
		switch {
		case word == "on":
			p.reference(&s.on, at, word)
		case word == "pool" && s.kind == Spawn:
			p.reference(&s.pool, at, word)
		case slices.Contains(systemKeys[s.kind], word):
			if old := s.keys[word]; old != nil {
				p.failf(at, "%s is given twice, first in line %d", word, old.pos.Line)
				return
			}
			f := &field{name: word, pos: at, expr: &node{}}
			s.keys[word] = f
			p.expect("=", "after "+word)
			f.expr = p.expr()
		case word == "let" && s.kind != Spawn:
			p.let(s)
		case s.kind == Update:
			p.rule(s, word, at)
		default:
			p.unknown(at, fmt.Sprintf("a %s has no %s", s.kind, shown([]byte(word))), word,
				append([]string{"on", "pool"}, systemKeys[s.kind]...))
		}
	})
}

// systemKeys are the words that each kind of system gives a value, besides on and pool.
var systemKeys = map[SystemKind][]string{
	Spawn:   {"count", "every", "phase"},
	Update:  {"dt", "active"},
	Despawn: {"when"},
}

// reference reads = NAME.
func (p *parser) reference(r *ref, at Pos, word string) {
	if r.name != "" {
		p.failf(at, "%s is given twice, first in line %d", word, r.pos.Line)
		return
	}
	p.expect("=", "after "+word)
	r.name, r.pos = p.name("the name of an entity or a pool")
	if !p.failed && p.token().kind == tokSlot {
		p.failf(p.token().pos(), "%s takes all of an entity or a pool, not one slot", word)
	}
}

func (p *parser) let(s *system) {
	f := &field{expr: &node{}}
	f.name, f.pos = p.newName("the name of a let")
	if p.failed {
		return
	}
	if len(s.lets) == MaxRules {
		p.failf(f.pos, "over %d lets", MaxRules)
		return
	}
	s.lets = append(s.lets, f)
	p.expect("=", "after "+f.name)
	f.expr = p.expr()
}

// rule reads the assignment of a slot.
func (p *parser) rule(s *system, word string, at Pos) {
	name := word
	if word == "state" {
		p.expect(".", "after state")
		name, _ = p.name("the name of a state slot")
	}
	if !p.failed && !p.is("=") {
		p.failf(at, "expected a rule: NAME = …, state.NAME = …, active = … or let NAME = …")
	}
	p.expect("=", "in a rule")
	if p.failed {
		return
	}
	if len(s.assigns) == MaxRules {
		p.failf(at, "over %d rules", MaxRules)
		return
	}
	s.assigns = append(s.assigns, &assign{name: name, pos: at, expr: p.expr()})
}
