package config

import (
	"fmt"
	"strings"
)

// maxExpansion is the most that a text may grow to by its variables. What
// comes after it stays as it is written.
const maxExpansion = 256 << 10

// Expand puts the values of variables in place of $NAME, ${NAME} and %NAME%.
// A name that nobody knows becomes nothing. Values are not expanded again.
func Expand(in string, variables Lookup) string {
	return replace(in, false, func(match, name string) string {
		v, _ := variables(name)
		return v.Value
	})
}

// ExpandExisting is Expand, but leaves names that nobody knows as they are.
func ExpandExisting(in string, variables Lookup) string {
	return replace(in, false, func(match, name string) string {
		if v, ok := variables(name); ok {
			return v.Value
		}
		return match
	})
}

// replace finds the references in a text from left to right. With escapes, $$
// and %% are no start of a reference and stay as they are, for whoever reads
// the result last to undo; without, only the second sign counts.
func replace(in string, escapes bool, with func(match, name string) string) string {
	if !strings.ContainsAny(in, "$%") {
		return in
	}
	var out strings.Builder
	for in != "" {
		i := strings.IndexAny(in, "$%")
		if i < 0 || out.Len() > maxExpansion {
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
// name that nobody knows, $$, and a reference to a file stay: the shell of the
// job makes sense of them. It fails when values refer to each other in a
// circle, or grow beyond measure.
func Resolve(variables []Variable) ([]Variable, error) {
	r := newResolver(LookupIn(variables))
	result := make([]Variable, 0, len(variables))
	for _, v := range overlay(nil, variables) {
		value, err := r.value(v.Key)
		if err != nil {
			return nil, err
		}
		v.Value = value
		result = append(result, v)
	}
	return result, nil
}

// nested is a lookup that gives values expanded by each other. A value that
// can not be expanded is given as it is written.
func nested(variables Lookup) Lookup {
	r := newResolver(variables)
	return func(name string) (Variable, bool) {
		v, ok := variables(name)
		if value, err := r.value(name); ok && err == nil {
			v.Value = value
		}
		return v, ok
	}
}

type resolver struct {
	variables Lookup
	values    map[string]string
	chain     []string // names whose values are being expanded
	busy      map[string]bool
}

func newResolver(variables Lookup) *resolver {
	return &resolver{variables: variables, values: map[string]string{}, busy: map[string]bool{}}
}

func (r *resolver) value(name string) (string, error) {
	if value, ok := r.values[name]; ok {
		return value, nil
	}
	v, _ := r.variables(name)
	if v.Raw || !strings.ContainsAny(v.Value, "$%") {
		r.values[name] = v.Value
		return v.Value, nil
	}
	r.busy[name] = true
	r.chain = append(r.chain, name)
	var fault error
	value := replace(v.Value, true, func(match, inner string) string {
		if fault != nil {
			return match
		}
		known, ok := r.variables(inner)
		if !ok || known.File {
			return match
		}
		if r.busy[inner] {
			fault = fmt.Errorf("circular variable reference detected: %s", strings.Join(append(r.chain, inner), " -> "))
			return match
		}
		var value string
		value, fault = r.value(inner)
		return value
	})
	r.chain = r.chain[:len(r.chain)-1]
	delete(r.busy, name)
	if fault == nil && len(value) > maxExpansion && len(v.Value) <= maxExpansion {
		fault = fmt.Errorf("the value of variable %s is too long when expanded", name)
	}
	if fault != nil {
		return "", fault
	}
	r.values[name] = value
	return value, nil
}
