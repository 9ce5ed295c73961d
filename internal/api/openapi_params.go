package api

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// parameter is one that is sent in the path or the query.
type parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Style       string  `json:"style,omitempty"`
	Explode     *bool   `json:"explode,omitempty"`
	Schema      *schema `json:"schema"`
}

// requestBody is the other parameters.
type requestBody struct {
	Required bool    `json:"required,omitempty"`
	Content  members `json:"content"`
}

// media is a body of one content type.
type media struct {
	Schema *schema `json:"schema"`
}

// fields gives the parameters that this installation has.
func (s *schemas) fields(o *object) []*field {
	var fields []*field
	for i := range o.fields {
		if f := &o.fields[i]; tierNamed(f.tier) <= s.site.Tier {
			fields = append(fields, f)
		}
	}
	return fields
}

// where says in which part of a request the documentation puts a parameter.
func (e *endpoint) where(f *field) location {
	at := f.location(e.method)
	if at == inBody && e.limits.Raw {
		return inQuery
	}
	return at
}

// parameters splits the parameters into those with a place of their own and
// the body.
func (s *schemas) parameters(e *endpoint) ([]parameter, *requestBody) {
	var list []parameter
	var body []*field
	for _, f := range s.fields(&e.layout.object) {
		switch at := e.where(f); at {
		case inBody:
			body = append(body, f)
		default:
			list = append(list, s.parameter(f, at))
		}
	}
	switch {
	case e.limits.Raw && e.method != http.MethodGet:
		return list, &requestBody{Content: members{{"application/octet-stream", media{binary()}}}}
	case body == nil:
		return list, nil
	}
	return list, s.body(e, body)
}

func (s *schemas) parameter(f *field, at location) parameter {
	p := parameter{Name: f.name, In: string(at), Description: f.about(), Required: f.required || at == inPath, Schema: s.input(f, f.shape)}
	if at == inPath {
		return p
	}
	whole := false
	switch {
	case f.csv:
		p.Style, p.Explode = "form", &whole
	case f.shape.kind == kindList:
		p.Name += "[]"
	case f.shape.kind == kindHash, f.shape.kind == kindObject:
		whole = true
		p.Style, p.Explode = "deepObject", &whole
	}
	return p
}

// about is what is said of a parameter in words.
func (f *field) about() string {
	parts := []string{f.doc}
	if f.csv {
		parts = append(parts, "Also taken as one text, separated by commas.")
	}
	if f.aliases != nil {
		parts = append(parts, "Also called "+quoted(f.aliases)+".")
	}
	if f.tier != "" {
		parts = append(parts, "From "+f.tier+" on.")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// body writes the parameters of a body. JSON and forms take the same ones;
// files can only be sent as multipart.
func (s *schemas) body(e *endpoint, fields []*field) *requestBody {
	all := s.members(fields)
	b := &requestBody{Required: len(all.Required) > 0 || slices.ContainsFunc(e.layout.rules, func(r rule) bool {
		return r.kind == ruleAtLeastOne || r.kind == ruleExactlyOne
	})}
	plain := slices.DeleteFunc(slices.Clone(fields), func(f *field) bool { return f.shape.kind == kindFile })
	name := operationID(e.method, e.path) + "Body"
	name = strings.ToUpper(name[:1]) + name[1:]
	if len(plain) > 0 {
		s.named[name] = s.members(plain)
		b.Content = members{{"application/json", media{refTo(name)}}, {"application/x-www-form-urlencoded", media{refTo(name)}}}
	}
	if len(plain) < len(fields) {
		s.named[name+"Files"] = all
		name += "Files"
		b.Content = append(b.Content, member{"multipart/form-data", media{refTo(name)}})
		return b
	}
	b.Content = append(b.Content, member{"multipart/form-data", media{refTo(name)}})
	return b
}

// members is the schema of an object of parameters. It is open: the binder
// passes over what it does not know.
func (s *schemas) members(fields []*field) *schema {
	o := &schema{Type: typeNames{"object"}}
	for _, f := range fields {
		one := *s.input(f, f.shape)
		one.Description = strings.TrimSpace(f.about() + " " + one.Description)
		one.WriteOnly = f.secret
		o.Properties = append(o.Properties, member{f.name, &one})
		if f.required {
			o.Required = append(o.Required, f.name)
		}
	}
	return o
}

// input is the schema of a parameter, or of its elements.
func (s *schemas) input(f *field, sh *shape) *schema {
	one := s.inputShape(f, sh)
	if sh == f.shape {
		one.Default = f.defaultValue()
	}
	if sh.wrap == wrapOpt && !f.nonblank {
		return nullable(one)
	}
	return one
}

func (s *schemas) inputShape(f *field, sh *shape) *schema {
	switch sh.kind {
	case kindFile:
		return binary()
	case kindTime:
		return &schema{Type: typeNames{"string"}, Format: "date-time"}
	case kindDate:
		return &schema{Type: typeNames{"string"}, Format: "date"}
	case kindList:
		list := arrayOf(s.input(f, sh.elem))
		list.MaxItems = f.max
		if f.refusesBlank() {
			list.MinItems = 1
		}
		return list
	case kindHash:
		return &schema{Type: typeNames{"object"}, AdditionalProperties: s.input(&field{}, sh.elem)}
	case kindObject:
		o := s.members(s.fields(sh.object))
		o.Description = strings.Join(ruleTexts(sh.object.rules), " ")
		return o
	case kindJSON:
		return &schema{}
	case kindCustom:
		return s.custom(f, sh)
	}
	one := scalar(sh.typ)
	one.Enum = f.enumValues(sh.kind)
	if sh.kind == kindText && sh == f.shape {
		one.MaxLength = f.max
		if f.refusesBlank() {
			one.MinLength = 1
		}
	}
	return one
}

// custom is a parameter that reads itself: it looks as it says, or else as
// the JSON type that it is made of.
func (s *schemas) custom(f *field, sh *shape) *schema {
	one := &schema{Type: typeNames{"string"}}
	if d, ok := reflect.Zero(sh.typ).Interface().(described); ok {
		one = d.describe(s)
	} else if kind := sh.typ.Kind(); kind == reflect.Bool || kind == reflect.Int64 {
		one = scalar(sh.typ)
	}
	if f.enum != nil {
		one.Enum = f.enumValues(sh.kind)
	}
	return one
}

func binary() *schema { return &schema{Type: typeNames{"string"}, Format: "binary"} }

// enumValues are the values that a parameter of a kind may have, as JSON has
// them.
func (f *field) enumValues(k kind) []any {
	var values []any
	for i, text := range f.enum {
		switch k {
		case kindInt:
			values = append(values, f.enumInts[i])
		case kindBool:
			values = append(values, text == "true")
		default:
			values = append(values, text)
		}
	}
	return values
}

// defaultValue is the default as JSON has it, nil for none.
func (f *field) defaultValue() any {
	if !f.defValue.IsValid() {
		return nil
	}
	switch f.shape.kind {
	case kindTime, kindDate, kindCustom:
		return f.def
	}
	return f.defValue.Interface()
}

// ruleTexts puts rules about groups of parameters into words.
func ruleTexts(rules []rule) []string {
	var texts []string
	for _, r := range rules {
		names := quoted(r.names)
		switch r.kind {
		case ruleExclusive:
			texts = append(texts, "At most one of "+names+" may be sent.")
		case ruleAtLeastOne:
			texts = append(texts, "At least one of "+names+" must be sent.")
		case ruleExactlyOne:
			texts = append(texts, "Exactly one of "+names+" must be sent.")
		case ruleAllOrNone:
			texts = append(texts, "All of "+names+" are sent, or none.")
		}
	}
	return texts
}

func quoted(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }

func tierNamed(name string) Tier {
	switch name {
	case "premium":
		return Premium
	case "ultimate":
		return Ultimate
	}
	return Free
}

func (t Tier) String() string {
	switch t {
	case Premium:
		return "premium"
	case Ultimate:
		return "ultimate"
	}
	return "free"
}
