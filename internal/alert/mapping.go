package alert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"svc/internal/errs"
)

// Field is a field of an alert that a payload may set.
type Field string

// The fields that can be mapped.
const (
	TitleField       Field = "title"
	DescriptionField Field = "description"
	StartField       Field = "start_time"
	EndField         Field = "end_time"
	ServiceField     Field = "service"
	ToolField        Field = "monitoring_tool"
	HostsField       Field = "hosts"
	SeverityField    Field = "severity"
	FingerprintField Field = "fingerprint"
	// EnvironmentField is prefixed with the name of the service in payloads.
	EnvironmentField Field = "environment_name"
)

// Fields returns all fields, in the order of the form.
func Fields() []Field {
	return []Field{
		TitleField, DescriptionField, StartField, EndField, ServiceField, ToolField, HostsField, SeverityField, FingerprintField, EnvironmentField,
	}
}

// Path is the path of a value in a payload: names of members and indexes of lists.
type Path []string

// Mapping lists where the value of a field can be in a payload. The first path that
// exists is used.
type Mapping struct {
	Field Field
	Paths []Path
}

// Limits of an integration.
const (
	maxExample  = 64 << 10 // bytes
	maxPaths    = 6        // of a field
	maxSteps    = 16
	maxStepSize = 255 // characters
)

// mappingJSON is a mapping as it is sent, stored and shown.
type mappingJSON struct {
	Field     string `json:"field_name"`
	Path      Path   `json:"path"`
	Fallbacks []Path `json:"fallback_paths,omitempty"`
}

// UnmarshalJSON reads a list of names and positions, or a single name.
func (p *Path) UnmarshalJSON(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	*p = Path{}
	for _, item := range list {
		switch item := item.(type) {
		case string:
			*p = append(*p, item)
		case float64:
			*p = append(*p, strconv.FormatFloat(item, 'f', -1, 64))
		default:
			return fmt.Errorf("a path has names and positions, and no %T", item)
		}
	}
	return nil
}

// ParseMappings parses mappings: a list of objects with field_name, path and
// fallback_paths, or an object with such objects, without field_name, by the name of
// the field. name is the name of the service. Invalid.
func ParseMappings(text []byte, name string) ([]Mapping, error) {
	bad := func(format string, args ...any) error {
		return errs.InvalidField("payload_attribute_mappings", format, args...)
	}
	var list []mappingJSON
	if strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
		var byField map[string]mappingJSON
		if err := json.Unmarshal(text, &byField); err != nil {
			return nil, bad("is invalid")
		}
		for field, m := range byField {
			m.Field = field
			list = append(list, m)
		}
		slices.SortFunc(list, func(a, b mappingJSON) int { return strings.Compare(a.Field, b.Field) })
	} else if err := json.Unmarshal(text, &list); err != nil {
		return nil, bad("is invalid")
	}
	var mappings []Mapping
	for _, m := range list {
		field := knownField(m.Field, name)
		if field == "" {
			return nil, bad("has an unknown field: %s", clip(line(m.Field), 50))
		}
		if slices.ContainsFunc(mappings, func(other Mapping) bool { return other.Field == field }) {
			return nil, bad("has %s twice", field)
		}
		paths := slices.DeleteFunc(append([]Path{m.Path}, m.Fallbacks...), func(p Path) bool { return len(p) == 0 })
		if len(paths) == 0 {
			return nil, bad("has no path for %s", field)
		}
		if len(paths) > maxPaths {
			return nil, bad("has more than %d paths for %s", maxPaths, field)
		}
		for _, p := range paths {
			if !p.fits() {
				return nil, bad("has a path for %s that is too long", field)
			}
		}
		mappings = append(mappings, Mapping{field, paths})
	}
	slices.SortFunc(mappings, func(a, b Mapping) int { return slices.Index(Fields(), a.Field) - slices.Index(Fields(), b.Field) })
	return mappings, nil
}

func (p Path) fits() bool {
	return len(p) <= maxSteps && !slices.ContainsFunc(p, func(step string) bool {
		return utf8.RuneCountInString(step) > maxStepSize || strings.ContainsRune(step, 0)
	})
}

// knownField finds a field by its name; empty for none. The environment is
// known by the service's own name and by the one that public clients use.
func knownField(word, name string) Field {
	word = strings.ToLower(word)
	for _, prefix := range []string{name, "gitlab"} {
		if word == prefix+"_"+string(EnvironmentField) {
			return EnvironmentField
		}
	}
	if slices.Contains(Fields(), Field(word)) {
		return Field(word)
	}
	return ""
}

// Name returns the name of the field in payloads and mappings, for this name of the
// service.
func (f Field) Name(service string) string {
	if f == EnvironmentField && service != "" {
		return service + "_" + string(f)
	}
	return string(f)
}

// WriteMappings writes mappings in the format of ParseMappings.
func WriteMappings(list []Mapping, name string) string {
	out := []mappingJSON{}
	for _, m := range list {
		out = append(out, mappingJSON{m.Field.Name(name), m.Paths[0], m.Paths[1:]})
	}
	return encode(out)
}

// find returns the value at a path; nil if there is none.
func (p Path) find(v any) any {
	for _, step := range p {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(at) {
				return nil
			}
			v = at[n]
		default:
			return nil
		}
	}
	return v
}

// remove removes the value at a path.
func (p Path) remove(v any) {
	if len(p) == 0 {
		return
	}
	last := p[len(p)-1]
	switch at := p[:len(p)-1].find(v).(type) {
	case map[string]any:
		delete(at, last)
	case []any:
		if n, err := strconv.Atoi(last); err == nil && n >= 0 && n < len(at) {
			at[n] = nil
		}
	}
}

// suits reports whether a value is valid for a field.
func (f Field) suits(v any) bool {
	switch f {
	case StartField, EndField:
		_, ok := moment(v)
		return ok
	case HostsField, FingerprintField:
		return len(scalars(v)) > 0
	}
	return scalar(v) != ""
}

// checkMappings checks mappings with an example: it must have a valid value for each
// field. Invalid.
func checkMappings(list []Mapping, example string) error {
	if len(list) == 0 {
		return nil
	}
	if example == "" {
		return errs.InvalidField("payload_attribute_mappings", "need a payload_example")
	}
	doc, err := decode([]byte(example))
	if err != nil {
		return err
	}
	for _, m := range list {
		found := false
		for _, p := range m.Paths {
			v := p.find(doc)
			if v == nil {
				continue
			}
			if found = true; !m.Field.suits(v) {
				return errs.InvalidField("payload_attribute_mappings", "has a path for %s whose value does not suit it: %s", m.Field, clip(strings.Join(p, "/"), 100))
			}
		}
		if !found {
			return errs.InvalidField("payload_attribute_mappings", "has no path for %s that is in the payload_example", m.Field)
		}
	}
	return nil
}

// Leaf is a value of a sample payload, with its path.
type Leaf struct {
	Path  Path
	Value string
}

// Name returns the path as users see it.
func (l Leaf) Name() string { return strings.Join(l.Path, "/") }

// Leaves lists the scalar values of a payload, and the lists of scalars, in order.
// The number is limited. Invalid.
func Leaves(payload string) ([]Leaf, error) {
	doc, err := decode([]byte(payload))
	if err != nil {
		return nil, err
	}
	const most = 300
	var list []Leaf
	var walk func(at Path, v any)
	walk = func(at Path, v any) {
		if len(list) >= most || len(at) > maxSteps {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				walk(append(slices.Clip(at), key), v[key])
			}
		case []any:
			if texts := scalars(v); len(texts) > 0 && len(texts) == len(v) {
				list = append(list, Leaf{at, strings.Join(texts, ", ")})
				return
			}
			for i, item := range v {
				walk(append(slices.Clip(at), strconv.Itoa(i)), item)
			}
		default:
			list = append(list, Leaf{at, scalar(v)})
		}
	}
	walk(nil, doc)
	return list, nil
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
