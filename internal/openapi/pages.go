package openapi

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"svc/internal/bind"
)

//go:embed docs
var docs embed.FS

// File returns a static file of the pages: page.css, page.js or icon.svg.
func File(name string) []byte {
	text, err := docs.ReadFile("docs/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return text
}

// indentation is the white space at the start of a line.
var indentation = regexp.MustCompile(`\n +`)

// pageTemplate has no indentation, because it would be sent with every endpoint.
var pageTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("page.html").Parse(indentation.ReplaceAllString(string(File("page.html")), "\n")))
})

// Pages are the HTML pages of a document: an index, and one for each group of
// endpoints. A single page would have megabytes.
type Pages struct {
	Server Server
	Base   string // the URL of the API
	Groups []*Group
	Errors []docsError
}

// pageData is the data of one page.
type pageData struct {
	*Pages
	Group *Group // nil for the index
	Up    string // relative path from the page to Base
}

// Index renders the first page.
func (p *Pages) Index() []byte { return render(pageData{Pages: p}) }

// Page renders the page of a group.
func (p *Pages) Page(g *Group) []byte { return render(pageData{Pages: p, Group: g, Up: "../"}) }

func render(data pageData) []byte {
	var out bytes.Buffer
	if err := pageTemplate().Execute(&out, data); err != nil {
		panic(fmt.Sprintf("render a page of the API documentation: %v", err))
	}
	return out.Bytes()
}

// Group is a tag with its endpoints. It has a page.
type Group struct {
	Slug      string // in the URL of its page
	Title     string
	Endpoints []docsEndpoint
	Shapes    []docsShape // of the responses
}

type docsEndpoint struct {
	ID      string
	Method  string
	Path    []docsPart
	Title   string
	Open    bool // to anonymous callers
	Scopes  []string
	Tier    string
	Rules   []docsText
	Params  []docsParams
	Curl    string
	Results []docsResult
	Errors  []docsError
}

// docsPart is a part of a path: a parameter or a text.
type docsPart struct {
	Text  string
	Param bool
}

// docsText is a text with code spans.
type docsText []docsWord

type docsWord struct {
	Text string
	Code bool
}

// docsParams are the parameters in one part of a request.
type docsParams struct {
	Title string
	Items []docsParam
}

type docsParam struct {
	Name     string
	In       string
	Kind     string // kind of the input in the console
	Type     string
	Required bool
	Enum     []string
	Default  string
	Limit    string
	Text     docsText
	Secret   bool
}

// docsResult is a successful response.
type docsResult struct {
	Status int
	Text   string
	Shape  docsType
	JSON   string // an example
}

// docsType is a type as text, with a link if the page describes it.
type docsType struct {
	Text string
	Link string // the name of a shape
}

type docsError struct {
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

// NewPages returns the pages of a document.
func NewPages(d *Document) *Pages {
	server := d.schemas.Server
	p := &Pages{Server: server, Base: server.URL + server.Prefix}
	x := &examples{schemas: d.schemas}
	for _, op := range d.operations {
		title := op.Tags[0]
		i := slices.IndexFunc(p.Groups, func(g *Group) bool { return g.Title == title })
		if i < 0 {
			i = len(p.Groups)
			p.Groups = append(p.Groups, &Group{Slug: strings.ReplaceAll(strings.ToLower(title), " ", "-"), Title: title})
		}
		p.Groups[i].Endpoints = append(p.Groups[i].Endpoints, newDocsEndpoint(x, d, op))
	}
	for _, one := range d.errors {
		p.Errors = append(p.Errors, newDocsError(one))
	}
	var shapes []docsShape
	for _, m := range d.Components[0].Value.(Object) {
		if strings.HasSuffix(m.Name, "Body") || strings.HasSuffix(m.Name, "BodyFiles") {
			continue // shown with its endpoint
		}
		shapes = append(shapes, newDocsShape(x, m.Name, m.Value.(*Schema)))
	}
	for _, g := range p.Groups {
		g.Shapes = g.within(shapes)
	}
	return p
}

// within returns the shapes of the responses of a group, and the shapes that
// these contain.
func (g *Group) within(all []docsShape) []docsShape {
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

func newDocsEndpoint(x *examples, of *Document, op *operation) docsEndpoint {
	e := op.endpoint
	d := docsEndpoint{
		ID: op.ID, Method: e.Method, Title: e.Summary, Path: pathParts(e.Path),
		Open: e.Public, Scopes: e.Scopes, Tier: op.Tier,
		Params: newDocsParams(x.schemas, e), Curl: x.curl(op), Results: x.results(e),
	}
	if d.Title == "" {
		d.Title = op.ID
	}
	for _, text := range ruleTexts(e.Params.Rules) {
		d.Rules = append(d.Rules, words(text))
	}
	for _, one := range of.errorsOf(e) {
		d.Errors = append(d.Errors, newDocsError(one))
	}
	return d
}

func newDocsError(e Error) docsError {
	return docsError{Status: e.Status, Title: http.StatusText(e.Status), Text: e.Text}
}

// pathParts splits a path at its parameters.
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

// words splits a text at code in backquotes.
func words(text string) docsText {
	var list docsText
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			list = append(list, docsWord{Text: part, Code: i%2 == 1})
		}
	}
	return list
}

func newDocsParams(s *Schemas, e *Endpoint) []docsParams {
	titles := map[bind.Location]string{bind.InPath: "Path", bind.InQuery: "Query", bind.InBody: "Body"}
	var lists []docsParams
	for _, at := range []bind.Location{bind.InPath, bind.InQuery, bind.InBody} {
		list := docsParams{Title: titles[at]}
		for _, f := range s.fields(&e.Params.Object) {
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

func newDocsParam(s *Schemas, f *bind.Field, at bind.Location) docsParam {
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

// inputWords returns the type of a parameter: the kind of its input in the
// console, and a text.
func inputWords(s *Schemas, f *bind.Field) (kind, text string) {
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

func newDocsShape(x *examples, name string, s *Schema) docsShape {
	d := docsShape{Name: name, JSON: x.text(s)}
	for _, m := range s.Properties {
		one := m.Value.(*Schema)
		f := docsField{Name: m.Name, Optional: !slices.Contains(s.Required, m.Name), Text: words(one.Description)}
		f.Types, f.Nullable = types(one)
		d.Fields = append(d.Fields, f)
	}
	return d
}

// types returns the types that a schema allows, and whether it allows null.
func types(s *Schema) (list []docsType, null bool) {
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
		return []docsType{{Text: "any"}}, false
	}
	for _, name := range s.Type {
		switch {
		case name == "null":
			null = true
		case name == "array":
			list = append(list, within("list of ", s.Items)...)
		case name == "object" && s.AdditionalProperties != nil && s.AdditionalProperties != false:
			list = append(list, within("map of ", s.AdditionalProperties.(*Schema))...)
		case s.Format == "date-time", s.Format == "date":
			list = append(list, docsType{Text: s.Format})
		default:
			list = append(list, docsType{Text: name})
		}
	}
	return list, null
}

func within(outer string, s *Schema) []docsType {
	list, _ := types(s)
	for i := range list {
		list[i].Text = outer + list[i].Text
	}
	return list
}

func refName(s *Schema) string { return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:] }

// pretty returns an example as indented JSON.
func pretty(v any) string {
	text, err := encode(v)
	if err != nil {
		panic(fmt.Sprintf("encode an example: %v", err))
	}
	var out bytes.Buffer
	_ = json.Indent(&out, text, "", "  ") // it is valid: encode wrote it
	return out.String()
}
