package openapi

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"svc/internal/bind"
)

// parameter is a path or query parameter.
type parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"`
	Description string  `json:"description,omitempty"`
	Required    bool    `json:"required,omitempty"`
	Style       string  `json:"style,omitempty"`
	Explode     *bool   `json:"explode,omitempty"`
	Schema      *Schema `json:"schema"`
}

// requestBody contains the parameters that are sent in the body.
type requestBody struct {
	Required bool   `json:"required,omitempty"`
	Content  Object `json:"content"`
}

// media is a body of one media type.
type media struct {
	Schema *Schema `json:"schema"`
}

// fields returns the parameters of the served tiers.
func (s *Schemas) fields(o *bind.Object) []*bind.Field {
	var fields []*bind.Field
	for i := range o.Fields {
		if f := &o.Fields[i]; f.Tier == "" || slices.Contains(s.Server.Tiers, f.Tier) {
			fields = append(fields, f)
		}
	}
	return fields
}

// where returns the part of a request that a parameter is documented in.
func (e *Endpoint) where(f *bind.Field) bind.Location {
	at := f.Location(e.Method)
	if at == bind.InBody && e.Raw {
		return bind.InQuery
	}
	return at
}

// parameters returns the path and query parameters, and the body.
func (s *Schemas) parameters(e *Endpoint) ([]parameter, *requestBody) {
	var list []parameter
	var body []*bind.Field
	for _, f := range s.fields(&e.Params.Object) {
		switch at := e.where(f); at {
		case bind.InBody:
			body = append(body, f)
		default:
			list = append(list, s.parameter(f, at))
		}
	}
	switch {
	case e.Raw && e.Method != http.MethodGet:
		return list, &requestBody{Content: Object{{"application/octet-stream", media{binary()}}}}
	case body == nil:
		return list, nil
	}
	return list, s.body(e, body)
}

func (s *Schemas) parameter(f *bind.Field, at bind.Location) parameter {
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

// about returns the description of a parameter.
func about(f *bind.Field) string {
	parts := []string{f.Doc}
	if f.CSV {
		parts = append(parts, "Also accepted as one string, separated by commas.")
	}
	if f.Aliases != nil {
		parts = append(parts, "Alias: "+quoted(f.Aliases)+".")
	}
	if f.Tier != "" {
		parts = append(parts, tierText(f.Tier))
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// body returns the body with the parameters. JSON and form bodies have the same
// parameters; files require multipart.
func (s *Schemas) body(e *Endpoint, fields []*bind.Field) *requestBody {
	all := s.inputs(fields)
	b := &requestBody{Required: len(all.Required) > 0 || slices.ContainsFunc(e.Params.Rules, func(r bind.Rule) bool {
		return r.Kind == bind.RuleAtLeastOne || r.Kind == bind.RuleExactlyOne
	})}
	plain := slices.DeleteFunc(slices.Clone(fields), func(f *bind.Field) bool { return f.Shape.Kind == bind.KindFile })
	name := operationID(e.Method, e.Path) + "Body"
	name = strings.ToUpper(name[:1]) + name[1:]
	if len(plain) > 0 {
		s.named[name] = s.inputs(plain)
		b.Content = Object{{"application/json", media{refTo(name)}}, {"application/x-www-form-urlencoded", media{refTo(name)}}}
	}
	if len(plain) < len(fields) {
		s.named[name+"Files"] = all
		name += "Files"
		b.Content = append(b.Content, Member{"multipart/form-data", media{refTo(name)}})
		return b
	}
	b.Content = append(b.Content, Member{"multipart/form-data", media{refTo(name)}})
	return b
}

// inputs returns the schema of an object of parameters. It allows other members:
// the binder ignores them.
func (s *Schemas) inputs(fields []*bind.Field) *Schema {
	o := &Schema{Type: Types{"object"}}
	for _, f := range fields {
		one := *s.input(f, f.Shape)
		one.Description = strings.TrimSpace(about(f) + " " + one.Description)
		one.WriteOnly = f.Secret
		o.Properties = append(o.Properties, Member{f.Name, &one})
		if f.Required {
			o.Required = append(o.Required, f.Name)
		}
	}
	return o
}

// input returns the schema of a parameter, or of its elements.
func (s *Schemas) input(f *bind.Field, sh *bind.Shape) *Schema {
	one := s.inputShape(f, sh)
	if sh == f.Shape {
		one.Default = f.DefaultValue()
	}
	if sh.Wrap == bind.WrapOpt && !f.Nonblank {
		return nullable(one)
	}
	return one
}

func (s *Schemas) inputShape(f *bind.Field, sh *bind.Shape) *Schema {
	switch sh.Kind {
	case bind.KindFile:
		return binary()
	case bind.KindTime:
		return &Schema{Type: Types{"string"}, Format: "date-time"}
	case bind.KindDate:
		return &Schema{Type: Types{"string"}, Format: "date"}
	case bind.KindList:
		list := ArrayOf(s.input(f, sh.Elem))
		list.MaxItems = f.Max
		if f.RefusesBlank() {
			list.MinItems = 1
		}
		return list
	case bind.KindHash:
		return &Schema{Type: Types{"object"}, AdditionalProperties: s.input(&bind.Field{}, sh.Elem)}
	case bind.KindObject:
		o := s.inputs(s.fields(sh.Object))
		o.Description = strings.Join(ruleTexts(sh.Object.Rules), " ")
		return o
	case bind.KindJSON:
		return &Schema{}
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

// custom returns the schema of a parameter type with its own parser: its Describer
// schema, or that of its underlying type.
func (s *Schemas) custom(f *bind.Field, sh *bind.Shape) *Schema {
	one := &Schema{Type: Types{"string"}}
	if d, ok := reflect.Zero(sh.Type).Interface().(Describer); ok {
		one = d.DescribeSchema(s)
	} else if kind := sh.Type.Kind(); kind == reflect.Bool || kind == reflect.Int64 {
		one = scalar(sh.Type)
	}
	if f.Enum != nil {
		one.Enum = f.EnumValues(sh.Kind)
	}
	return one
}

func binary() *Schema { return &Schema{Type: Types{"string"}, Format: "binary"} }

// ruleTexts returns sentences for rules on several parameters.
func ruleTexts(rules []bind.Rule) []string {
	var texts []string
	for _, r := range rules {
		names := quoted(r.Names)
		switch r.Kind {
		case bind.RuleExclusive:
			texts = append(texts, "At most one of "+names+" is allowed.")
		case bind.RuleAtLeastOne:
			texts = append(texts, "At least one of "+names+" is required.")
		case bind.RuleExactlyOne:
			texts = append(texts, "Exactly one of "+names+" is required.")
		case bind.RuleAllOrNone:
			texts = append(texts, "All or none of "+names+" are required.")
		}
	}
	return texts
}

// tierText returns the note that something requires a tier.
func tierText(tier string) string { return "Requires the " + tier + " tier or higher." }

func quoted(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }
