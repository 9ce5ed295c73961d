package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
)

// schema is a JSON Schema, draft 2020-12, as far as the document needs it.
// The zero schema allows anything.
type schema struct {
	Ref                  string    `json:"$ref,omitempty"`
	Description          string    `json:"description,omitempty"`
	Type                 typeNames `json:"type,omitempty"`
	Format               string    `json:"format,omitempty"`
	ContentEncoding      string    `json:"contentEncoding,omitempty"`
	Enum                 []any     `json:"enum,omitempty"`
	Default              any       `json:"default,omitempty"`
	MinLength            int       `json:"minLength,omitempty"`
	MaxLength            int       `json:"maxLength,omitempty"`
	MinItems             int       `json:"minItems,omitempty"`
	MaxItems             int       `json:"maxItems,omitempty"`
	Items                *schema   `json:"items,omitempty"`
	Properties           members   `json:"properties,omitempty"`
	Required             []string  `json:"required,omitempty"`
	AdditionalProperties any       `json:"additionalProperties,omitempty"` // false, or a schema
	AnyOf                []*schema `json:"anyOf,omitempty"`
	WriteOnly            bool      `json:"writeOnly,omitempty"`
}

// typeNames are the JSON types of a value. A single one is written as text,
// which older tools expect.
type typeNames []string

// MarshalJSON writes the names.
func (t typeNames) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return encode(t[0])
	}
	return encode([]string(t))
}

// members are the parts of a JSON object whose order people will read.
type members []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (m members) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, one := range m {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := encode(one.name)
		if err != nil {
			return nil, err
		}
		value, err := encode(one.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// encode is json.Marshal that leaves < and > as they are.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// described is a type that says itself how it looks in JSON: one that writes
// itself, or whose members are named after the installation. It is asked on
// its zero value.
type described interface{ describe(*schemas) *schema }

// schemas makes the schemas of Go types. A named struct becomes a component
// of the document, and other schemas refer to it.
type schemas struct {
	site  *Site
	names map[reflect.Type]string
	named map[string]*schema
}

func newSchemas(site *Site) *schemas {
	return &schemas{site: site, names: map[reflect.Type]string{}, named: map[string]*schema{}}
}

// of gives the schema of what encoding/json writes for a type. A type that
// it can not know is a fault of the program, so it panics.
func (s *schemas) of(t reflect.Type) *schema {
	if t.Kind() == reflect.Pointer {
		return nullable(s.of(t.Elem()))
	}
	if d, ok := reflect.Zero(t).Interface().(described); ok {
		return d.describe(s)
	}
	switch t {
	case reflect.TypeFor[stamp](), reflect.TypeFor[time.Time]():
		return &schema{Type: typeNames{"string"}, Format: "date-time"}
	case reflect.TypeFor[day]():
		return &schema{Type: typeNames{"string"}, Format: "date"}
	case reflect.TypeFor[json.RawMessage]():
		return &schema{}
	}
	if t.Kind() != reflect.Interface && (t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())) {
		panic(fmt.Sprintf("schema of %v: it writes itself, so it needs a method describe", t))
	}
	switch t.Kind() {
	case reflect.Interface:
		return &schema{}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return &schema{Type: typeNames{"string"}, ContentEncoding: "base64"}
		}
		return arrayOf(s.of(t.Elem()))
	case reflect.Map:
		return &schema{Type: typeNames{"object"}, AdditionalProperties: s.of(t.Elem())}
	case reflect.Struct:
		return s.component(t)
	}
	return scalar(t)
}

// scalar is the schema of a type that is neither list nor object.
func scalar(t reflect.Type) *schema {
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: typeNames{"boolean"}}
	case reflect.String:
		return &schema{Type: typeNames{"string"}}
	case reflect.Int64:
		return &schema{Type: typeNames{"integer"}, Format: "int64"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &schema{Type: typeNames{"integer"}}
	case reflect.Float32, reflect.Float64:
		return &schema{Type: typeNames{"number"}}
	}
	panic(fmt.Sprintf("schema of %v: no JSON is written for it", t))
}

func arrayOf(items *schema) *schema { return &schema{Type: typeNames{"array"}, Items: items} }

func refTo(name string) *schema { return &schema{Ref: "#/components/schemas/" + name} }

// anyOf is a value in one of several shapes.
func anyOf(shapes ...*schema) *schema {
	if len(shapes) == 1 {
		return shapes[0]
	}
	return &schema{AnyOf: shapes}
}

// nullable allows null beside what the schema allows.
func nullable(s *schema) *schema {
	null := &schema{Type: typeNames{"null"}}
	switch {
	case s.Ref != "":
		return anyOf(s, null)
	case s.AnyOf != nil:
		return anyOf(append(slices.Clone(s.AnyOf), null)...)
	case s.Type == nil:
		return s // anything, so null as well
	}
	wider := *s
	wider.Type = append(slices.Clone(s.Type), "null")
	if s.Enum != nil {
		wider.Enum = append(slices.Clone(s.Enum), nil)
	}
	return &wider
}

// component gives a reference to the schema of a struct, which is made when
// it is asked for first. A struct without a name is written where it stands.
func (s *schemas) component(t reflect.Type) *schema {
	if t.Name() == "" {
		return s.object(t)
	}
	name, known := s.names[t]
	if known {
		return refTo(name)
	}
	name = componentName(t)
	if _, taken := s.named[name]; taken {
		panic(fmt.Sprintf("schema of %v: there is another type for the name %s", t, name))
	}
	// The name is taken before the fields are read: they may lead back here.
	s.names[t], s.named[name] = name, nil
	s.named[name] = s.object(t)
	return refTo(name)
}

// componentName makes userAdminJSON to UserAdmin.
func componentName(t reflect.Type) string {
	name := []rune(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, strings.TrimSuffix(t.Name(), "JSON")))
	name[0] = unicode.ToUpper(name[0])
	return string(name)
}

// Object is the schema of a struct. It is closed: a member that it does not
// have is an error.
func (s *schemas) object(t reflect.Type) *schema {
	o := &schema{Type: typeNames{"object"}, AdditionalProperties: false}
	for _, f := range jsonFields(t) {
		o.Properties = append(o.Properties, member{f.name, s.field(f)})
		if !f.optional {
			o.Required = append(o.Required, f.name)
		}
	}
	return o
}

func (s *schemas) field(f jsonField) *schema {
	typ := f.typ
	if f.omitted && typ.Kind() == reflect.Pointer {
		typ = typ.Elem() // a nil is left out, so null is never written
	}
	one := s.of(typ)
	if f.quoted {
		one = &schema{Type: typeNames{"string"}}
	}
	if f.doc == "" && f.enum == "" {
		return one
	}
	told := *one // what is said of the field is not said of its type
	told.Description = f.doc
	if f.enum != "" {
		for name := range strings.SplitSeq(f.enum, ",") {
			told.Enum = append(told.Enum, name)
		}
		if slices.Contains(told.Type, "null") {
			told.Enum = append(told.Enum, nil)
		}
	}
	return &told
}

// jsonField is a member that encoding/json writes for a struct. Its tags are
// `json`, and for the documentation `doc:"…"` and `enum:"a,b"`.
type jsonField struct {
	name     string
	typ      reflect.Type
	omitted  bool // without a value
	optional bool // omitted, or inside of an embedded struct that may be nil
	quoted   bool // written as text
	doc      string
	enum     string
	depth    int
}

// jsonFields gives the members of a struct, those of embedded structs among
// them. Of several with one name the shallowest counts, and none if there is
// more than one of those: this is how encoding/json has it.
func jsonFields(t reflect.Type) []jsonField {
	all := embeddedFields(nil, t, 0, false)
	var fields []jsonField
	for _, f := range all {
		hidden := slices.ContainsFunc(all, func(o jsonField) bool { return o.name == f.name && o.depth < f.depth })
		same := 0
		for _, o := range all {
			if o.name == f.name && o.depth == f.depth {
				same++
			}
		}
		if !hidden && same == 1 {
			fields = append(fields, f)
		}
	}
	return fields
}

func embeddedFields(fields []jsonField, t reflect.Type, depth int, optional bool) []jsonField {
	for sf := range t.Fields() {
		tag := sf.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if sf.Anonymous && name == "" {
			inner, pointer := sf.Type, sf.Type.Kind() == reflect.Pointer
			if pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				fields = embeddedFields(fields, inner, depth+1, optional || pointer)
				continue
			}
		}
		if !sf.IsExported() {
			continue
		}
		f := jsonField{name: name, typ: sf.Type, depth: depth, doc: sf.Tag.Get("doc"), enum: sf.Tag.Get("enum")}
		if name == "" {
			f.name = sf.Name
		}
		for option := range strings.SplitSeq(options, ",") {
			f.omitted = f.omitted || option == "omitempty" || option == "omitzero"
			f.quoted = f.quoted || option == "string"
		}
		f.optional = optional || f.omitted
		fields = append(fields, f)
	}
	return fields
}
