package changelog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// template is the template of a section. Its tags are:
//
//	{{ commit.web_url }}                      prints a value
//	{% if author %} … {% else %} … {% end %}  one of two texts
//	{% each entries %} … {% end %}            a text for each item of a list
//
// A path selects from objects by name and from lists by index, relative to the
// current value. In a loop that is the item, which is also called "it". A {% %}
// tag removes a line break after it. A backslash at the end of a line removes
// the line break.
//
// The public description is
// https://docs.gitlab.com/user/project/changelogs/#custom-templates.
type template struct{ nodes []node }

// The limits of a template, which any user who may push can write.
const (
	maxTemplate     = 64 << 10 // bytes
	maxTemplateNest = 32       // nesting depth of statements
	maxRendered     = 8 << 20  // bytes of output
	maxSteps        = 10_000_000
)

// node is a part of a template.
type node interface{ render(*rendering, any) error }

type (
	textNode  string
	printNode selector
	ifNode    struct {
		cond        selector
		then, other []node
	}
	eachNode struct {
		list selector
		body []node
	}
)

// selector is the path of a value.
type selector []string

// parseTemplate parses a template. The error is for the author of the template.
func parseTemplate(text string) (*template, error) {
	if len(text) > maxTemplate {
		return nil, fmt.Errorf("the template is longer than %d bytes", maxTemplate)
	}
	p := templateParser{rest: text, line: 1}
	nodes, end, err := p.nodes(0)
	if err == nil && end != "" {
		err = fmt.Errorf("{%% %s %%} without a statement before it", end)
	}
	if err != nil {
		return nil, fmt.Errorf("the template cannot be parsed: line %d: %w", p.line, err)
	}
	return &template{nodes}, nil
}

type templateParser struct {
	rest string
	line int
}

// nodes parses until the end of the text, or until a tag that ends a block,
// which it returns.
func (p *templateParser) nodes(depth int) (list []node, end string, err error) {
	if depth > maxTemplateNest {
		return nil, "", fmt.Errorf("statements are nested more than %d deep", maxTemplateNest)
	}
	for {
		if text := p.text(); text != "" {
			list = append(list, textNode(text))
		}
		if p.rest == "" {
			return list, "", nil
		}
		var n node
		if strings.HasPrefix(p.rest, "{{") {
			n, err = p.print()
		} else {
			n, end, err = p.statement(depth)
		}
		if err != nil || end != "" {
			return list, end, err
		}
		list = append(list, n)
	}
}

// text returns the text before the next tag. A backslash at the end of a line
// joins it with the next.
func (p *templateParser) text() string {
	var out strings.Builder
	for p.rest != "" {
		at := strings.IndexAny(p.rest, "{\\")
		if at < 0 {
			at = len(p.rest)
		}
		out.WriteString(p.take(at))
		switch {
		case strings.HasPrefix(p.rest, "{{"), strings.HasPrefix(p.rest, "{%"):
			return out.String()
		case strings.HasPrefix(p.rest, "\\\n"):
			p.take(2)
		case strings.HasPrefix(p.rest, "\\\r\n"):
			p.take(3)
		case p.rest != "":
			out.WriteString(p.take(1))
		}
	}
	return out.String()
}

func (p *templateParser) take(n int) string {
	text := p.rest[:n]
	p.rest = p.rest[n:]
	p.line += strings.Count(text, "\n")
	return text
}

// tag parses a tag and returns its words.
func (p *templateParser) tag(open, end string) ([]string, error) {
	inside, _, closed := strings.Cut(p.rest[len(open):], end)
	if !closed {
		return nil, fmt.Errorf("%s is not closed by %s", open, end)
	}
	p.take(len(open) + len(inside) + len(end))
	words := strings.Fields(inside)
	return words, nil
}

func (p *templateParser) print() (node, error) {
	words, err := p.tag("{{", "}}")
	if err != nil {
		return nil, err
	}
	if len(words) != 1 {
		return nil, errors.New("{{ }} must contain one variable")
	}
	at, err := parseSelector(words[0])
	return printNode(at), err
}

func (p *templateParser) statement(depth int) (n node, end string, err error) {
	words, err := p.tag("{%", "%}")
	if err != nil {
		return nil, "", err
	}
	if strings.HasPrefix(p.rest, "\n") {
		p.take(1)
	} else if strings.HasPrefix(p.rest, "\r\n") {
		p.take(2)
	}
	word := strings.Join(words, " ")
	if word == "else" || word == "end" {
		return nil, word, nil
	}
	if len(words) != 2 || words[0] != "if" && words[0] != "each" {
		return nil, "", fmt.Errorf("{%% %.50s %%} is not a statement", word)
	}
	at, err := parseSelector(words[1])
	if err != nil {
		return nil, "", err
	}
	body, closed, err := p.nodes(depth + 1)
	if err != nil {
		return nil, "", err
	}
	if words[0] == "each" {
		n = eachNode{at, body}
	} else {
		choice := ifNode{cond: at, then: body}
		if closed == "else" {
			if choice.other, closed, err = p.nodes(depth + 1); err != nil {
				return nil, "", err
			}
		}
		n = choice
	}
	if closed != "end" {
		return nil, "", fmt.Errorf("{%% %.50s %%} has no {%% end %%}", word)
	}
	return n, "", nil
}

func parseSelector(text string) (selector, error) {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			return nil, fmt.Errorf("%.50q is not a variable", text)
		}
	}
	return parts, nil
}

// render expands a template. The data consists of strings, numbers, booleans,
// lists ([]any) and objects (map[string]any).
func (t *template) render(data any) (string, error) {
	r := rendering{}
	if err := r.all(t.nodes, data); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// rendering counts the cost of a template.
type rendering struct {
	out   strings.Builder
	steps int
}

func (r *rendering) all(nodes []node, data any) error {
	for _, n := range nodes {
		if r.steps++; r.steps > maxSteps {
			return errors.New("the template takes too long")
		}
		if err := n.render(r, data); err != nil {
			return err
		}
	}
	return nil
}

func (r *rendering) write(text string) error {
	if r.out.Len()+len(text) > maxRendered {
		return fmt.Errorf("the output of the template exceeds %d bytes", maxRendered)
	}
	r.out.WriteString(text)
	return nil
}

func (n textNode) render(r *rendering, _ any) error { return r.write(string(n)) }

func (n printNode) render(r *rendering, data any) error {
	switch v := selector(n).find(data).(type) {
	case string:
		return r.write(v)
	case int:
		return r.write(strconv.Itoa(v))
	case bool:
		return r.write(strconv.FormatBool(v))
	}
	return nil
}

func (n ifNode) render(r *rendering, data any) error {
	if truth(n.cond.find(data)) {
		return r.all(n.then, data)
	}
	return r.all(n.other, data)
}

func (n eachNode) render(r *rendering, data any) error {
	list, _ := n.list.find(data).([]any)
	for _, item := range list {
		if r.steps++; r.steps > maxSteps {
			return errors.New("the template takes too long")
		}
		if err := r.all(n.body, item); err != nil {
			return err
		}
	}
	return nil
}

// find returns the value at the path; nil if there is none.
func (p selector) find(data any) any {
	for _, step := range p {
		switch v := data.(type) {
		case map[string]any:
			next, ok := v[step]
			if !ok && step != "it" {
				return nil
			}
			if ok {
				data = next
			}
		case []any:
			if step == "it" {
				continue
			}
			at, err := strconv.Atoi(step)
			if err != nil || at < 0 || at >= len(v) {
				return nil
			}
			data = v[at]
		default:
			if step != "it" {
				return nil
			}
		}
	}
	return data
}

// truth reports whether a value is true for an if: all values except nil, false
// and empty ones.
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
