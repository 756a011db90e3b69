package declare

import "slices"

// attributeForm says what the value of an attribute may be.
type attributeForm struct {
	name     string
	text     bool // a text, or a bare word
	min, max int  // numbers; 0 for none
}

var attributeForms = []attributeForm{
	{name: "position", min: 1, max: 3},
	{name: "color", text: true, min: 3, max: 4},
	{name: "size", min: 1, max: 3},
	{name: "shape", text: true},
	{name: "label", text: true},
	{name: "gravity", min: 1, max: 3},
	{name: "hidden", min: 1, max: 1},
}

var attributeNames = func() []string {
	names := make([]string, len(attributeForms))
	for i, f := range attributeForms {
		names[i] = f.name
	}
	return names
}()

func isAttribute(word string) bool { return slices.Contains(attributeNames, word) }

// attribute reads an attribute, from behind its name, and adds it to those before it.
func (p *parser) attribute(list []*attribute, word string, at Pos) []*attribute {
	for _, old := range list {
		if old.name == word {
			p.failf(at, "%s is given twice, first in line %d", word, old.pos.Line)
			return list
		}
	}
	a := &attribute{name: word, pos: at}
	list = append(list, a)
	if word == "hidden" && !p.is("=") {
		a.values = []attributeValue{{expr: &node{kind: nodeNumber, number: 1, pos: at}}}
		return list
	}
	form := attributeForms[slices.Index(attributeNames, word)]
	p.expect("=", "after "+word)
	start := p.token().pos()
	switch {
	case p.failed:
		return list
	case form.text && p.token().kind == tokText:
		a.values = []attributeValue{{text: p.quoted("")}}
		return list
	case form.text && p.token().kind == tokName:
		text, _ := p.name("")
		a.values = []attributeValue{{text: text}}
		return list
	case form.max == 0:
		p.unexpected("a text for " + word)
	case p.startsList():
		p.next()
		p.round++
		defer func() { p.round-- }()
		for !p.failed && !p.accept(")") {
			a.values = append(a.values, attributeValue{expr: p.expr()})
			if !p.is(")") {
				p.expect(",", "or ) after a number")
			}
		}
	default:
		a.values = []attributeValue{{expr: p.expr()}}
	}
	if n := len(a.values); !p.failed && (n < form.min || n > form.max) {
		p.failf(start, "%s takes %d to %d numbers, not %d", word, form.min, form.max, n)
	}
	return list
}

// startsList reports whether the bracket at hand opens a list: no operator stands behind the one that closes it.
func (p *parser) startsList() bool {
	if !p.is("(") {
		return false
	}
	depth := 0
	for i := p.at; i < len(p.tokens); i++ {
		t := p.tokens[i]
		switch text := string(p.src[t.off:t.end]); {
		case t.kind == tokComment:
		case depth == 0 && i > p.at:
			_, infix := infixes[text]
			return !infix
		case t.kind != tokMark:
		case text == "(":
			depth++
		case text == ")":
			depth--
		case text == "{" || text == "}":
			return true
		}
	}
	return true
}
