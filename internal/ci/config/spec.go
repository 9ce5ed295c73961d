package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"svc/internal/re2"
)

// inputSpec is one entry of spec:inputs.
type inputSpec struct {
	name    string
	pos     Pos
	kind    string // string, number, boolean, array
	fill    *node  // the default; nil if the input is required
	options []*node
	regex   string
	// description is for the pipeline form.
	description string
}

// headerSpec is the header of a file.
type headerSpec struct {
	inputs []inputSpec
	// component are the component values that the file requests.
	component   []string
	description string
}

// componentValues are the values that a component can request.
var componentValues = []string{"name", "sha", "version", "reference"}

// readSpec reads the header of a file.
func readSpec(header *node) (headerSpec, error) {
	var h headerSpec
	if key, pos := unknownKey(header, "spec"); key != "" {
		return h, failAt(pos, "header", "header config contains unknown keys: %s", key)
	}
	spec := header.get("spec")
	if spec == nil {
		return h, nil
	}
	if spec.kind != table {
		return h, failAt(spec.pos, "header:spec", "header:spec config should be a hash")
	}
	if key, pos := unknownKey(spec, "component", "description", "inputs"); key != "" {
		return h, failAt(pos, "header:spec", "header:spec config contains unknown keys: %s", key)
	}
	if d := spec.get("description"); d != nil && d.kind != null {
		if d.kind != text {
			return h, failAt(d.pos, "header:spec:description", "header:spec:description config should be a string")
		}
		h.description = d.text
	}
	var err error
	if h.component, err = readComponentValues(spec.get("component")); err != nil {
		return h, err
	}
	h.inputs, err = readInputs(spec.get("inputs"))
	return h, err
}

func readComponentValues(n *node) ([]string, error) {
	if n == nil || n.kind == null {
		return nil, nil
	}
	const key = "header:spec:component"
	if n.kind != list {
		return nil, failAt(n.pos, key, "%s config should be an array of strings", key)
	}
	var names []string
	for _, item := range n.items {
		if item.kind != text {
			return nil, failAt(item.pos, key, "%s config should be an array of strings", key)
		}
		if !slices.Contains(componentValues, item.text) {
			return nil, failAt(item.pos, key, "%s config contains unknown values: %s", key, item.text)
		}
		names = append(names, item.text)
	}
	return names, nil
}

func readInputs(inputs *node) ([]inputSpec, error) {
	if inputs == nil {
		return nil, nil
	}
	if inputs.kind != table {
		return nil, failAt(inputs.pos, "header:spec:inputs", "header:spec:inputs config should be a hash")
	}
	specs := make([]inputSpec, 0, len(inputs.fields))
	for _, f := range inputs.fields {
		s, err := readInput(f)
		if err != nil {
			return nil, err
		}
		specs = append(specs, s)
	}
	return specs, nil
}

func readInput(f field) (inputSpec, error) {
	s := inputSpec{name: f.key, pos: f.pos, kind: "string"}
	key := "header:spec:inputs:" + f.key
	n := f.value
	if n.kind == null {
		return s, nil
	}
	if n.kind != table {
		return s, failAt(n.pos, key, "%s config should be a hash", key)
	}
	if unknown, pos := unknownKey(n, "default", "description", "options", "regex", "type"); unknown != "" {
		return s, failAt(pos, key, "%s config contains unknown keys: %s", key, unknown)
	}
	if d := n.get("description"); d != nil && d.kind == text {
		s.description = d.text
	}
	if t := n.get("type"); t != nil {
		if !slices.Contains([]string{"string", "number", "boolean", "array"}, t.text) {
			return s, failAt(t.pos, key, "%s input type unknown value: %s", key, t.text)
		}
		s.kind = t.text
	}
	if r := n.get("regex"); r != nil {
		if r.kind != text || s.kind != "string" {
			return s, failAt(r.pos, key, "%s `regex` can only be used with a string, and must be one", key)
		}
		s.regex = r.text
		if looksLikePattern(r.text) {
			s.regex, _, _ = checkPattern(r.text)
		}
		if _, err := re2.Steps(s.regex); err != nil {
			return s, failAt(r.pos, key, "%s must be a regular expression with re2 syntax", key)
		}
	}
	if o := n.get("options"); o != nil {
		if o.kind != list || len(o.items) > 50 {
			return s, failAt(o.pos, key, "%s options should be an array of at most 50 values", key)
		}
		s.options = o.items
	}
	if i := n.find("default"); i >= 0 {
		s.fill = n.fields[i].value
		if s.fill.kind == null {
			s.fill = newScalar(text, "", s.fill.pos)
		}
		if err := s.check(s.fill, "default"); err != nil {
			return s, err
		}
	}
	return s, nil
}

func unknownKey(n *node, known ...string) (string, Pos) {
	for _, f := range n.fields {
		if !slices.Contains(known, f.key) {
			return f.key, f.pos
		}
	}
	return "", Pos{}
}

// check returns an error if a value is not valid; what is "default" or "provided".
func (s inputSpec) check(v *node, what string) error {
	fits := false
	article := "a " + s.kind
	switch s.kind {
	case "string":
		fits = v.kind == text
	case "number":
		fits = v.kind == integer || v.kind == float
	case "boolean":
		fits = v.kind == boolean
	case "array":
		fits, article = v.kind == list, "an array"
	}
	key := "header:spec:inputs:" + s.name
	if !fits {
		return failAt(v.pos, key, "`%s` input: %s value is not %s", s.name, what, article)
	}
	same := func(o *node) bool { return o.text == v.text }
	if len(s.options) > 0 && !slices.ContainsFunc(s.options, same) {
		return failAt(v.pos, key, "`%s` input: `%s` cannot be used because it is not in the list of allowed options", s.name, v.text)
	}
	if s.regex == "" {
		return nil
	}
	re, err := regexp.Compile(s.regex)
	if err != nil || !re.MatchString(v.text) {
		return failAt(v.pos, key, "`%s` input: %s value does not match required RegEx pattern", s.name, what)
	}
	return nil
}

// cast converts texts to the type of the input.
func (s inputSpec) cast(v *node) *node {
	one := ""
	if len(v.items) > 0 {
		one = v.items[0].text
	}
	switch {
	case s.kind == "array":
		var list []any
		if len(v.items) == 1 && strings.HasPrefix(one, "[") && json.Unmarshal([]byte(one), &list) == nil {
			if made, err := nodeOf(list, v.pos); err == nil {
				return made
			}
		}
		items := make([]*node, len(v.items))
		for i, item := range v.items {
			k, printed := resolve(item.text)
			items[i] = newScalar(k, printed, v.pos)
		}
		return newList(v.kind, items, v.pos)
	case len(v.items) > 1:
		return v
	case s.kind == "string":
		return newScalar(text, one, v.pos)
	}
	k, printed := resolve(one)
	return newScalar(k, printed, v.pos)
}

// fillInputs combines the given values with the defaults. loose are the inputs whose
// values were given as texts.
func fillInputs(specs []inputSpec, given map[string]*node, loose map[string]bool, at Pos) (map[string]*node, error) {
	values := make(map[string]*node, len(specs))
	for _, s := range specs {
		v, ok := given[s.name]
		if loose[s.name] {
			v = s.cast(v)
		}
		switch {
		case ok:
			if err := s.check(v, "provided"); err != nil {
				return nil, err
			}
			values[s.name] = v
		case s.fill != nil:
			values[s.name] = s.fill
		default:
			if at.Line == 0 { // the file is not included: it is the main file
				at = s.pos
			}
			return nil, failAt(at, "header:spec:inputs:"+s.name, "`%s` input: required value has not been provided", s.name)
		}
	}
	var unknown []string
	for name := range given {
		if _, ok := values[name]; !ok {
			unknown = append(unknown, "`"+name+"`")
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, failAt(at, "header:spec:inputs", "unknown input arguments: %s", strings.Join(unknown, ", "))
	}
	return values, nil
}

// nodeOf converts a value as package encoding/json decodes it to a node.
func nodeOf(v any, pos Pos) (*node, error) {
	switch v := v.(type) {
	case nil:
		return newScalar(null, "", pos), nil
	case string:
		return newScalar(text, v, pos), nil
	case Texts:
		items := make([]*node, len(v))
		for i, item := range v {
			items[i] = newScalar(text, item, pos)
		}
		return newList(list, items, pos), nil
	case bool:
		return newScalar(boolean, strconv.FormatBool(v), pos), nil
	case int:
		return newScalar(integer, strconv.Itoa(v), pos), nil
	case int64:
		return newScalar(integer, strconv.FormatInt(v, 10), pos), nil
	case json.Number:
		k, printed := resolve(v.String())
		return newScalar(k, printed, pos), nil
	case float64:
		if v == float64(int64(v)) {
			return newScalar(integer, strconv.FormatInt(int64(v), 10), pos), nil
		}
		return newScalar(float, printFloat(v), pos), nil
	case []any:
		items := make([]*node, len(v))
		for i, item := range v {
			var err error
			if items[i], err = nodeOf(item, pos); err != nil {
				return nil, err
			}
		}
		return newList(list, items, pos), nil
	case map[string]any:
		return tableOf(v, pos)
	}
	return nil, fmt.Errorf("an input of type %T", v)
}

func tableOf(v map[string]any, pos Pos) (*node, error) {
	var fields []field
	for key, item := range v {
		value, err := nodeOf(item, pos)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field{key: key, pos: pos, value: value})
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.key, b.key) })
	return newTable(fields, pos), nil
}
