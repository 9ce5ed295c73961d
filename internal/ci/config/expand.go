package config

import (
	"strings"

	"svc/internal/expand"
)

// Expander replaces $NAME, ${NAME} and %NAME% by the values of variables. When the budget
// is used up it returns texts unchanged; callers check the error of the budget when they
// are done.
type Expander struct{ engine expand.Expander }

// Nested returns an expander that also expands the values of variables, at any depth. A
// value that refers to itself is inserted as written.
func Nested(b *expand.Budget, variables Lookup) *Expander {
	e := Flat(b, variables)
	e.engine.Nested = escaped
	return e
}

// Flat returns an expander that inserts values as they are written.
func Flat(b *expand.Budget, variables Lookup) *Expander {
	return &Expander{expand.Expander{Budget: b, Syntax: unescaped, Variables: func(name string) (expand.Variable, bool) {
		v, ok := variables(name)
		return expand.Variable{Value: v.Value, Raw: v.Raw, Kept: v.File}, ok
	}}}
}

// All expands a text. References to unknown variables become the empty string.
func (e *Expander) All(text string) string { return e.engine.Text(text, false) }

// Existing expands a text. References to unknown variables are kept.
func (e *Expander) Existing(text string) string { return e.engine.Text(text, true) }

// Each is Existing for each text of a list.
func (e *Expander) Each(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = e.Existing(s)
	}
	return out
}

// Value returns the expanded value of a variable.
func (e *Expander) Value(name string) (string, error) { return e.engine.Value(name) }

func unescaped(in string, with func(match, name string) string) string {
	return replace(in, false, with)
}
func escaped(in string, with func(match, name string) string) string { return replace(in, true, with) }

// replace finds the references in a text from left to right. With escapes, $$ and %% do
// not start a reference and are kept, so that the last reader of the text can unescape
// them; without escapes, the second sign starts a reference.
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

// referenceAt parses the reference at the beginning of a text that starts with $ or %: its
// name, and its length or 0.
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

// Resolve expands the values of variables by each other, at any depth, as they are passed
// to a job. If two variables have the same name, the later one is used, and the result
// contains the name once. Raw values are not expanded. Unknown names, $$ and references to
// file variables are kept for the shell of the job. It fails if values refer to each other
// in a cycle, or the budget is used up.
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
