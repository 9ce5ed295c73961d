package config

import (
	"strings"

	"svc/internal/expand"
)

// Expander puts the values of variables in place of $NAME, ${NAME} and %NAME%.
// When the budget is used up it returns texts as they are written, and the budget
// says why: callers ask for its error when they are done.
type Expander struct{ engine expand.Expander }

// Nested makes an expander that expands values by each other, however deep they
// are nested. A value that refers to itself is inserted as it is written.
func Nested(b *expand.Budget, variables Lookup) *Expander {
	e := Flat(b, variables)
	e.engine.Nested = escaped
	return e
}

// Flat makes an expander that inserts values as they are written.
func Flat(b *expand.Budget, variables Lookup) *Expander {
	return &Expander{expand.Expander{Budget: b, Syntax: unescaped, Variables: func(name string) (expand.Variable, bool) {
		v, ok := variables(name)
		return expand.Variable{Value: v.Value, Raw: v.Raw, Kept: v.File}, ok
	}}}
}

// All expands a text. References to unknown variables become the empty string.
func (e *Expander) All(text string) string { return e.engine.Text(text, false) }

// Existing expands a text. References to unknown variables stay.
func (e *Expander) Existing(text string) string { return e.engine.Text(text, true) }

// Each is Existing for each text of a list.
func (e *Expander) Each(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = e.Existing(s)
	}
	return out
}

// Value is the expanded value of a variable.
func (e *Expander) Value(name string) (string, error) { return e.engine.Value(name) }

func unescaped(in string, with func(match, name string) string) string {
	return replace(in, false, with)
}
func escaped(in string, with func(match, name string) string) string { return replace(in, true, with) }

// replace finds the references in a text from left to right. With escapes, $$
// and %% are no start of a reference and stay as they are, for anyone who reads
// the result last to undo; without, only the second sign counts.
func replace(in string, escapes bool, with func(match, name string) string) string {
	if !strings.ContainsAny(in, "$%") {
		return in
	}
	var out strings.Builder
	for in != "" {
		i := strings.IndexAny(in, "$%")
		if i < 0 {
			break
		}
		out.WriteString(in[:i])
		in = in[i:]
		if escapes && len(in) > 1 && in[1] == in[0] {
			out.WriteString(in[:2])
			in = in[2:]
			continue
		}
		name, size := referenceAt(in)
		if size == 0 {
			out.WriteByte(in[0])
			in = in[1:]
			continue
		}
		out.WriteString(with(in[:size], name))
		in = in[size:]
	}
	out.WriteString(in)
	return out.String()
}

// referenceAt reads a reference that starts at the $ or % at the beginning of
// the text: its name, and its length or 0.
func referenceAt(in string) (name string, size int) {
	switch {
	case in[0] == '%':
		if name = nameAt(in[1:]); name != "" && strings.HasPrefix(in[1+len(name):], "%") {
			return name, len(name) + 2
		}
	case strings.HasPrefix(in, "${"):
		if name = nameAt(in[2:]); name != "" && strings.HasPrefix(in[2+len(name):], "}") {
			return name, len(name) + 3
		}
	default:
		if name = nameAt(in[1:]); name != "" {
			return name, len(name) + 1
		}
	}
	return "", 0
}

func nameAt(in string) string {
	for i := range len(in) {
		c := in[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return in[:i]
		}
	}
	return in
}

// Resolve expands the values of variables by each other, however deep they are
// nested, as they are handed to a job. Of two variables of one name the later
// one counts, and the list holds it once. Raw values are not expanded, and a
// name that no one knows, $$, and a reference to a file stay: the shell of the
// job makes sense of them. It fails when values refer to each other in a
// circle, or the budget is used up.
func Resolve(b *expand.Budget, variables []Variable) ([]Variable, error) {
	e := Nested(b, LookupIn(variables))
	result := make([]Variable, 0, len(variables))
	for _, v := range overlay(nil, variables) {
		value, err := e.Value(v.Key)
		if err != nil {
			return nil, err
		}
		v.Value = value
		result = append(result, v)
	}
	return result, nil
}
