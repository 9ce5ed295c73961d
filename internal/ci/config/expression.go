package config

import (
	"errors"
	"strings"
)

// Expression is a condition of rules:if.
type Expression struct{ root operand }

// ParseExpression parses a condition: variables, strings, null and /patterns/, compared
// with ==, !=, =~ and !~, combined with && and ||, with parentheses.
func ParseExpression(in string) (*Expression, error) {
	tokens, err := lex(in)
	if err != nil {
		return nil, err
	}
	p := &expressionParser{tokens: tokens}
	root, err := p.either()
	if err != nil {
		return nil, err
	}
	if len(p.tokens) > 0 {
		return nil, errors.New("unexpected " + p.tokens[0].text)
	}
	return &Expression{root}, nil
}

// True evaluates the condition. A value on its own is true if it is not blank. The values
// of variables are not expanded.
func (e *Expression) True(variables Lookup) bool { return e.root.eval(variables).true() }

// result is a value during evaluation: null, a text, a boolean or a pattern.
type result struct {
	kind    resultKind
	text    string
	truth   bool
	pattern *storedPattern
}

type resultKind uint8

const (
	nothing resultKind = iota
	words
	truth
	pattern
)

func (r result) true() bool {
	switch r.kind {
	case words:
		return strings.TrimSpace(r.text) != ""
	case truth:
		return r.truth
	case pattern:
		return true
	}
	return false
}

func (r result) equal(to result) bool {
	if r.kind != to.kind {
		return false
	}
	switch r.kind {
	case words:
		return r.text == to.text
	case truth:
		return r.truth == to.truth
	case pattern:
		return r.pattern.body == to.pattern.body
	}
	return true
}

// matches matches a text against a pattern; known is false if the right side is neither
// a pattern nor a text that contains one.
func (r result) matches(right result) (match, known bool) {
	p := right.pattern
	if right.kind == words {
		var err error
		if p, err = newPattern(right.text); err != nil {
			return false, false
		}
	}
	if p == nil {
		return false, false
	}
	return p.match(r.text), true
}

type operand interface{ eval(variables Lookup) result }

type literal struct{ result }

func (l literal) eval(Lookup) result { return l.result }

type variableOperand struct{ name string }

func (v variableOperand) eval(variables Lookup) result {
	found, ok := variables(v.name)
	if !ok {
		return result{}
	}
	return result{kind: words, text: found.Value}
}

type operation struct {
	operator    string
	left, right operand
}

func (o operation) eval(variables Lookup) result {
	left := o.left.eval(variables)
	switch o.operator {
	case "&&":
		if !left.true() {
			return result{kind: truth}
		}
		return o.right.eval(variables)
	case "||":
		if left.true() {
			return left
		}
		return o.right.eval(variables)
	}
	right := o.right.eval(variables)
	switch o.operator {
	case "==":
		return result{kind: truth, truth: left.equal(right)}
	case "!=":
		return result{kind: truth, truth: !left.equal(right)}
	}
	match, known := left.matches(right)
	if o.operator == "!~" {
		return result{kind: truth, truth: !known || !match}
	}
	return result{kind: truth, truth: known && match}
}

type expressionParser struct{ tokens []token }

// next consumes the next token if it is one of the operators.
func (p *expressionParser) next(operators ...string) (string, bool) {
	if len(p.tokens) == 0 || p.tokens[0].value != nil {
		return "", false
	}
	for _, o := range operators {
		if p.tokens[0].text == o {
			p.tokens = p.tokens[1:]
			return o, true
		}
	}
	return "", false
}

func (p *expressionParser) binary(operand1 func() (operand, error), operators ...string) (operand, error) {
	left, err := operand1()
	if err != nil {
		return nil, err
	}
	for {
		operator, ok := p.next(operators...)
		if !ok {
			return left, nil
		}
		right, err := operand1()
		if err != nil {
			return nil, err
		}
		left = operation{operator, left, right}
	}
}

func (p *expressionParser) either() (operand, error) { return p.binary(p.both, "||") }
func (p *expressionParser) both() (operand, error)   { return p.binary(p.comparison, "&&") }
func (p *expressionParser) comparison() (operand, error) {
	return p.binary(p.value, "==", "!=", "=~", "!~")
}

func (p *expressionParser) value() (operand, error) {
	if _, ok := p.next("("); ok {
		inner, err := p.either()
		if err != nil {
			return nil, err
		}
		if _, ok := p.next(")"); !ok {
			return nil, errors.New("a parenthesis is not closed")
		}
		return inner, nil
	}
	if len(p.tokens) == 0 || p.tokens[0].value == nil {
		return nil, errors.New("a value is missing")
	}
	v := p.tokens[0].value
	p.tokens = p.tokens[1:]
	return v, nil
}
