package api

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"svc/internal/bind"
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

// Fields gives the parameters that this installation has.
func (s *schemas) fields(o *bind.Object) []*bind.Field {
	var fields []*bind.Field
	for i := range o.Fields {
		if f := &o.Fields[i]; tierNamed(f.Tier) <= s.site.Tier {
			fields = append(fields, f)
		}
	}
	return fields
}

// where says in which part of a request the documentation puts a parameter.
func (e *endpoint) where(f *bind.Field) bind.Location {
	at := f.Location(e.method)
	if at == bind.InBody && e.limits.Raw {
		return bind.InQuery
	}
	return at
}

// parameters splits the parameters into those with a place of their own and
// the body.
func (s *schemas) parameters(e *endpoint) ([]parameter, *requestBody) {
	var list []parameter
	var body []*bind.Field
	for _, f := range s.fields(&e.layout.Object) {
		switch at := e.where(f); at {
		case bind.InBody:
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

func (s *schemas) parameter(f *bind.Field, at bind.Location) parameter {
	p := parameter{Name: f.Name, In: string(at), Description: about(f), Required: f.Required || at == bind.InPath, Schema: s.input(f, f.Shape)}
	if at == bind.InPath {
		return p
	}
	whole := false
	switch {
	case f.CSV:
		p.Style, p.Explode = "form", &whole
	case f.Shape.Kind == bind.KindList:
		p.Name += "[]"
	case f.Shape.Kind == bind.KindHash, f.Shape.Kind == bind.KindObject:
		whole = true
		p.Style, p.Explode = "deepObject", &whole
	}
	return p
}

// about is what is said of a parameter in words.
func about(f *bind.Field) string {
	parts := []string{f.Doc}
	if f.CSV {
		parts = append(parts, "Also taken as one text, separated by commas.")
	}
	if f.Aliases != nil {
		parts = append(parts, "Also called "+quoted(f.Aliases)+".")
	}
	if f.Tier != "" {
		parts = append(parts, "From "+f.Tier+" on.")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// body writes the parameters of a body. JSON and forms take the same ones;
// files can only be sent as multipart.
func (s *schemas) body(e *endpoint, fields []*bind.Field) *requestBody {
	all := s.members(fields)
	b := &requestBody{Required: len(all.Required) > 0 || slices.ContainsFunc(e.layout.Rules, func(r bind.Rule) bool {
		return r.Kind == bind.RuleAtLeastOne || r.Kind == bind.RuleExactlyOne
	})}
	plain := slices.DeleteFunc(slices.Clone(fields), func(f *bind.Field) bool { return f.Shape.Kind == bind.KindFile })
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
func (s *schemas) members(fields []*bind.Field) *schema {
	o := &schema{Type: typeNames{"object"}}
	for _, f := range fields {
		one := *s.input(f, f.Shape)
		one.Description = strings.TrimSpace(about(f) + " " + one.Description)
		one.WriteOnly = f.Secret
		o.Properties = append(o.Properties, member{f.Name, &one})
		if f.Required {
			o.Required = append(o.Required, f.Name)
		}
	}
	return o
}

// Input is the schema of a parameter, or of its elements.
func (s *schemas) input(f *bind.Field, sh *bind.Shape) *schema {
	one := s.inputShape(f, sh)
	if sh == f.Shape {
		one.Default = f.DefaultValue()
	}
	if sh.Wrap == bind.WrapOpt && !f.Nonblank {
		return nullable(one)
	}
	return one
}

func (s *schemas) inputShape(f *bind.Field, sh *bind.Shape) *schema {
	switch sh.Kind {
	case bind.KindFile:
		return binary()
	case bind.KindTime:
		return &schema{Type: typeNames{"string"}, Format: "date-time"}
	case bind.KindDate:
		return &schema{Type: typeNames{"string"}, Format: "date"}
	case bind.KindList:
		list := arrayOf(s.input(f, sh.Elem))
		list.MaxItems = f.Max
		if f.RefusesBlank() {
			list.MinItems = 1
		}
		return list
	case bind.KindHash:
		return &schema{Type: typeNames{"object"}, AdditionalProperties: s.input(&bind.Field{}, sh.Elem)}
	case bind.KindObject:
		o := s.members(s.fields(sh.Object))
		o.Description = strings.Join(ruleTexts(sh.Object.Rules), " ")
		return o
	case bind.KindJSON:
		return &schema{}
	case bind.KindCustom:
		return s.custom(f, sh)
	}
	one := scalar(sh.Type)
	one.Enum = f.EnumValues(sh.Kind)
	if sh.Kind == bind.KindText && sh == f.Shape {
		one.MaxLength = f.Max
		if f.RefusesBlank() {
			one.MinLength = 1
		}
	}
	return one
}

// custom is a parameter that reads itself: it looks as it says, or else as
// the JSON type that it is made of.
func (s *schemas) custom(f *bind.Field, sh *bind.Shape) *schema {
	one := &schema{Type: typeNames{"string"}}
	if d, ok := reflect.Zero(sh.Type).Interface().(described); ok {
		one = d.describe(s)
	} else if kind := sh.Type.Kind(); kind == reflect.Bool || kind == reflect.Int64 {
		one = scalar(sh.Type)
	}
	if f.Enum != nil {
		one.Enum = f.EnumValues(sh.Kind)
	}
	return one
}

func binary() *schema { return &schema{Type: typeNames{"string"}, Format: "binary"} }

// ruleTexts puts rules about groups of parameters into words.
func ruleTexts(rules []bind.Rule) []string {
	var texts []string
	for _, r := range rules {
		names := quoted(r.Names)
		switch r.Kind {
		case bind.RuleExclusive:
			texts = append(texts, "At most one of "+names+" may be sent.")
		case bind.RuleAtLeastOne:
			texts = append(texts, "At least one of "+names+" must be sent.")
		case bind.RuleExactlyOne:
			texts = append(texts, "Exactly one of "+names+" must be sent.")
		case bind.RuleAllOrNone:
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
