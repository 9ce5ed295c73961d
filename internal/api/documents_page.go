package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"svc/internal/bind"
)

// docsData is what the pages of the documentation show.
type docsData struct {
	Site     *Site
	Base     string // the address of the API
	Groups   []*docsGroup
	Refusals []docsRefusal

	Group *docsGroup // whose page it is; nil for the first page
	Up    string     // leads from the page to Base
}

type docsGroup struct {
	Slug      string // in the address of its page
	Title     string
	Endpoints []docsEndpoint
	Shapes    []docsShape // of what they answer
}

type docsEndpoint struct {
	ID      string
	Method  string
	Path    []docsPart
	Title   string
	Open    bool // to those who have not signed in
	Scopes  []string
	Tier    string
	Rules   []docsText
	Params  []docsParams
	Curl    string
	Results []docsResult
	Errors  []docsRefusal
}

// docsPart is a piece of a path; parameters stand out.
type docsPart struct {
	Text  string
	Param bool
}

// docsText is words with names of the API among them.
type docsText []docsWord

type docsWord struct {
	Text string
	Code bool
}

// docsParams are the parameters that are sent in one place.
type docsParams struct {
	Title string
	Items []docsParam
}

type docsParam struct {
	Name     string
	In       string
	Kind     string // for the console: which input it gets
	Type     string
	Required bool
	Enum     []string
	Default  string
	Limit    string
	Text     docsText
	Secret   bool
}

// docsResult is an answer of success.
type docsResult struct {
	Status int
	Text   string
	Shape  docsType
	JSON   string // an example
}

// docsType is a type in words, with a link if the page tells of it.
type docsType struct {
	Text string
	Link string // the name of a shape
}

type docsRefusal struct {
	Status int
	Title  string
	Text   string
}

type docsShape struct {
	Name   string
	Fields []docsField
	JSON   string
}

type docsField struct {
	Name     string
	Types    []docsType
	Nullable bool
	Optional bool
	Text     docsText
}

func newDocs(site *Site, d *document) *docsData {
	p := &docsData{Site: site, Base: site.URL + prefix}
	x := &examples{schemas: d.schemas, site: site}
	for _, op := range d.operations {
		title := op.Tags[0]
		i := slices.IndexFunc(p.Groups, func(g *docsGroup) bool { return g.Title == title })
		if i < 0 {
			i = len(p.Groups)
			p.Groups = append(p.Groups, &docsGroup{Slug: strings.ReplaceAll(strings.ToLower(title), " ", "-"), Title: title})
		}
		p.Groups[i].Endpoints = append(p.Groups[i].Endpoints, newDocsEndpoint(x, op))
	}
	for _, r := range refusals {
		p.Refusals = append(p.Refusals, newDocsRefusal(r))
	}
	var shapes []docsShape
	for _, m := range d.Components[0].value.(members) {
		if strings.HasSuffix(m.name, "Body") || strings.HasSuffix(m.name, "BodyFiles") {
			continue // told with its endpoint
		}
		shapes = append(shapes, newDocsShape(x, m.name, m.value.(*schema)))
	}
	for _, g := range p.Groups {
		g.Shapes = g.within(shapes)
	}
	return p
}

// within chooses the shapes that the endpoints of a group answer in, and those
// inside of them.
func (g *docsGroup) within(all []docsShape) []docsShape {
	named := map[string]bool{}
	for _, e := range g.Endpoints {
		for _, r := range e.Results {
			named[r.Shape.Link] = true
		}
	}
	for grown := true; grown; {
		before := len(named)
		for _, s := range all {
			if !named[s.Name] {
				continue
			}
			for _, f := range s.Fields {
				for _, t := range f.Types {
					named[t.Link] = true
				}
			}
		}
		grown = len(named) > before
	}
	var list []docsShape
	for _, s := range all {
		if named[s.Name] {
			list = append(list, s)
		}
	}
	return list
}

func newDocsEndpoint(x *examples, op *operation) docsEndpoint {
	e := op.endpoint
	d := docsEndpoint{
		ID: op.ID, Method: e.method, Title: e.summary, Path: pathParts(e.path),
		Open: e.access.nobody, Scopes: e.access.scopes, Tier: op.Tier,
		Params: newDocsParams(x.schemas, e), Curl: x.curl(op), Results: x.results(e),
	}
	if d.Title == "" {
		d.Title = op.ID
	}
	for _, text := range ruleTexts(e.layout.Rules) {
		d.Rules = append(d.Rules, words(text))
	}
	for _, r := range refusals {
		if r.of == nil || r.of(e) {
			d.Errors = append(d.Errors, newDocsRefusal(r))
		}
	}
	return d
}

func newDocsRefusal(r refusal) docsRefusal {
	return docsRefusal{Status: r.status, Title: http.StatusText(r.status), Text: r.text}
}

// pathParts cuts a path so that its parameters can be set off.
func pathParts(path string) []docsPart {
	var parts []docsPart
	for path != "" {
		plain, rest, found := strings.Cut(path, "{")
		parts = append(parts, docsPart{Text: plain})
		if !found {
			break
		}
		name, after, _ := strings.Cut(rest, "}")
		parts, path = append(parts, docsPart{Text: "{" + name + "}", Param: true}), after
	}
	return parts
}

// words sets what stands in backquotes apart.
func words(text string) docsText {
	var list docsText
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			list = append(list, docsWord{Text: part, Code: i%2 == 1})
		}
	}
	return list
}

func newDocsParams(s *schemas, e *endpoint) []docsParams {
	titles := map[bind.Location]string{bind.InPath: "Path", bind.InQuery: "Query", bind.InBody: "Body"}
	var lists []docsParams
	for _, at := range []bind.Location{bind.InPath, bind.InQuery, bind.InBody} {
		list := docsParams{Title: titles[at]}
		for _, f := range s.fields(&e.layout.Object) {
			if e.where(f) == at {
				list.Items = append(list.Items, newDocsParam(s, f, at))
			}
		}
		if list.Items != nil {
			lists = append(lists, list)
		}
	}
	return lists
}

func newDocsParam(s *schemas, f *bind.Field, at bind.Location) docsParam {
	p := docsParam{
		Name: f.Name, In: string(at), Required: f.Required || at == bind.InPath, Enum: f.Enum, Default: f.Default, Text: words(about(f)), Secret: f.Secret,
	}
	p.Kind, p.Type = inputWords(s, f)
	switch {
	case f.Max > 0 && f.Shape.Kind == bind.KindList:
		p.Limit = fmt.Sprintf("at most %d items", f.Max)
	case f.Max > 0:
		p.Limit = fmt.Sprintf("at most %d characters", f.Max)
	}
	if f.Shape.Kind == bind.KindList && at == bind.InQuery && !f.CSV {
		p.Name += "[]"
	}
	return p
}

// inputWords gives the type of a parameter, for the console and for people.
func inputWords(s *schemas, f *bind.Field) (kind, text string) {
	if f.Shape.Kind == bind.KindFile {
		return "file", "file"
	}
	var names []string
	list, _ := types(s.input(f, f.Shape))
	for _, t := range list {
		names = append(names, t.Text)
	}
	text = strings.Join(names, " or ")
	switch f.Shape.Kind {
	case bind.KindList:
		return "list", text
	case bind.KindHash, bind.KindObject:
		return "object", text
	}
	return names[0], text
}

func newDocsShape(x *examples, name string, s *schema) docsShape {
	d := docsShape{Name: name, JSON: x.text(s)}
	for _, m := range s.Properties {
		one := m.value.(*schema)
		f := docsField{Name: m.name, Optional: !slices.Contains(s.Required, m.name), Text: words(one.Description)}
		f.Types, f.Nullable = types(one)
		d.Fields = append(d.Fields, f)
	}
	return d
}

// types names the types that a schema allows, null apart.
func types(s *schema) (list []docsType, null bool) {
	if s.AnyOf != nil {
		for _, one := range s.AnyOf {
			inner, n := types(one)
			list, null = append(list, inner...), null || n
		}
		return list, null
	}
	if s.Ref != "" {
		name := refName(s)
		return []docsType{{name, name}}, false
	}
	if s.Type == nil {
		return []docsType{{Text: "anything"}}, false
	}
	for _, name := range s.Type {
		switch {
		case name == "null":
			null = true
		case name == "array":
			list = append(list, within("list of ", s.Items)...)
		case name == "object" && s.AdditionalProperties != nil && s.AdditionalProperties != false:
			list = append(list, within("map of ", s.AdditionalProperties.(*schema))...)
		case s.Format == "date-time", s.Format == "date":
			list = append(list, docsType{Text: s.Format})
		default:
			list = append(list, docsType{Text: name})
		}
	}
	return list, null
}

func within(outer string, s *schema) []docsType {
	list, _ := types(s)
	for i := range list {
		list[i].Text = outer + list[i].Text
	}
	return list
}

func refName(s *schema) string { return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:] }

// pretty writes an example with two spaces a level.
func pretty(v any) string {
	text, err := encode(v)
	if err != nil {
		panic(fmt.Sprintf("an example of the documentation: %v", err))
	}
	var out bytes.Buffer
	_ = json.Indent(&out, text, "", "  ") // it has just been written
	return out.String()
}
