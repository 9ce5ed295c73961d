package openapi

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

// Schema is a JSON Schema, draft 2020-12, with the keywords that the document
// needs. The zero Schema allows anything.
type Schema struct {
	Ref                  string    `json:"$ref,omitempty"`
	Description          string    `json:"description,omitempty"`
	Type                 Types     `json:"type,omitempty"`
	Format               string    `json:"format,omitempty"`
	ContentEncoding      string    `json:"contentEncoding,omitempty"`
	Enum                 []any     `json:"enum,omitempty"`
	Default              any       `json:"default,omitempty"`
	MinLength            int       `json:"minLength,omitempty"`
	MaxLength            int       `json:"maxLength,omitempty"`
	MinItems             int       `json:"minItems,omitempty"`
	MaxItems             int       `json:"maxItems,omitempty"`
	Items                *Schema   `json:"items,omitempty"`
	Properties           Object    `json:"properties,omitempty"`
	Required             []string  `json:"required,omitempty"`
	AdditionalProperties any       `json:"additionalProperties,omitempty"` // false, or a schema
	AnyOf                []*Schema `json:"anyOf,omitempty"`
	WriteOnly            bool      `json:"writeOnly,omitempty"`
}

// Types are the JSON types of a value. A single one is encoded as a string, which
// older tools expect.
type Types []string

// MarshalJSON encodes the names.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return encode(t[0])
	}
	return encode([]string(t))
}

// Object is a JSON object with ordered members.
type Object []Member

// Member is a member of an Object.
type Member struct {
	Name  string
	Value any
}

// Field returns a Member.
func Field(name string, value any) Member { return Member{name, value} }

// MarshalJSON encodes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, one := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := encode(one.Name)
		if err != nil {
			return nil, err
		}
		value, err := encode(one.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Name, err)
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// encode is json.Marshal without escapes of < and >.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// Describer is a type with its own schema: a type that implements json.Marshaler, or
// whose members are named after the server. The method is called on the zero value.
type Describer interface {
	DescribeSchema(s *Schemas) *Schema
}

// Schemas creates schemas of Go types. A named struct becomes a component of the
// document, and other schemas refer to it.
type Schemas struct {
	Server Server
	names  map[reflect.Type]string
	named  map[string]*Schema
}

func newSchemas(server Server) *Schemas {
	return &Schemas{Server: server, names: map[reflect.Type]string{}, named: map[string]*Schema{}}
}

// Define adds a component and returns a reference to it.
func (s *Schemas) Define(name string, component *Schema) *Schema {
	s.named[name] = component
	return refTo(name)
}

// of returns the schema of the JSON that encoding/json writes for a type. It panics
// for a type that has no schema, which is a bug.
func (s *Schemas) of(t reflect.Type) *Schema {
	if t.Kind() == reflect.Pointer {
		return nullable(s.of(t.Elem()))
	}
	if d, ok := reflect.Zero(t).Interface().(Describer); ok {
		return d.DescribeSchema(s)
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return &Schema{Type: Types{"string"}, Format: "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return &Schema{}
	}
	if t.Kind() != reflect.Interface && (t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())) {
		panic(fmt.Sprintf("schema of %v: a type that encodes itself must be a Describer", t))
	}
	switch t.Kind() {
	case reflect.Interface:
		return &Schema{}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Kind() == reflect.Slice {
			return &Schema{Type: Types{"string"}, ContentEncoding: "base64"}
		}
		return ArrayOf(s.of(t.Elem()))
	case reflect.Map:
		return &Schema{Type: Types{"object"}, AdditionalProperties: s.of(t.Elem())}
	case reflect.Struct:
		return s.component(t)
	}
	return scalar(t)
}

// scalar returns the schema of a type that is neither an array nor an object.
func scalar(t reflect.Type) *Schema {
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: Types{"boolean"}}
	case reflect.String:
		return &Schema{Type: Types{"string"}}
	case reflect.Int64:
		return &Schema{Type: Types{"integer"}, Format: "int64"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: Types{"integer"}}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: Types{"number"}}
	}
	panic(fmt.Sprintf("schema of %v: the type has no JSON", t))
}

// ArrayOf returns the schema of an array.
func ArrayOf(items *Schema) *Schema { return &Schema{Type: Types{"array"}, Items: items} }

func refTo(name string) *Schema { return &Schema{Ref: "#/components/schemas/" + name} }

// AnyOf returns a schema of values that match one of the schemas.
func AnyOf(list ...*Schema) *Schema {
	if len(list) == 1 {
		return list[0]
	}
	return &Schema{AnyOf: list}
}

// nullable returns a schema that also allows null.
func nullable(s *Schema) *Schema {
	null := &Schema{Type: Types{"null"}}
	switch {
	case s.Ref != "":
		return AnyOf(s, null)
	case s.AnyOf != nil:
		return AnyOf(append(slices.Clone(s.AnyOf), null)...)
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

// component returns a reference to the schema of a struct, which is created on first
// use. The schema of an unnamed struct is inline.
func (s *Schemas) component(t reflect.Type) *Schema {
	if t.Name() == "" {
		return s.object(t)
	}
	name, known := s.names[t]
	if known {
		return refTo(name)
	}
	name = componentName(t)
	if _, taken := s.named[name]; taken {
		panic(fmt.Sprintf("schema of %v: the name %s is taken by another type", t, name))
	}
	// The name is reserved before the fields are read, because types may be
	// recursive.
	s.names[t], s.named[name] = name, nil
	s.named[name] = s.object(t)
	return refTo(name)
}

// componentName returns the name of a type in the document: UserAdmin for
// userAdminJSON.
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

// object returns the schema of a struct. It allows no other members.
func (s *Schemas) object(t reflect.Type) *Schema {
	o := &Schema{Type: Types{"object"}, AdditionalProperties: false}
	for _, f := range jsonFields(t) {
		o.Properties = append(o.Properties, Member{f.name, s.field(f)})
		if !f.optional {
			o.Required = append(o.Required, f.name)
		}
	}
	return o
}

func (s *Schemas) field(f jsonField) *Schema {
	typ := f.typ
	if f.omitted && typ.Kind() == reflect.Pointer {
		typ = typ.Elem() // nil is omitted, so null is never written
	}
	one := s.of(typ)
	if f.quoted {
		one = &Schema{Type: Types{"string"}}
	}
	if f.doc == "" && f.enum == "" {
		return one
	}
	described := *one // a copy: the description is that of the field, not of its type
	described.Description = f.doc
	if f.enum != "" {
		for name := range strings.SplitSeq(f.enum, ",") {
			described.Enum = append(described.Enum, name)
		}
		if slices.Contains(described.Type, "null") {
			described.Enum = append(described.Enum, nil)
		}
	}
	return &described
}

// jsonField is a member that encoding/json writes for a struct. Its tags are
// `json`, and for the documentation `doc:"…"` and `enum:"a,b"`.
type jsonField struct {
	name     string
	typ      reflect.Type
	omitted  bool // if it is empty
	optional bool // omitted, or a field of an embedded pointer
	quoted   bool // encoded as a string
	doc      string
	enum     string
	depth    int
}

// jsonFields returns the members of a struct, including those of embedded
// structs. Names are resolved as in encoding/json: the shallowest field wins, and
// two fields at the same depth hide each other.
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
