package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// document is the OpenAPI description, version 3.1, of what this
// installation serves. It is made from the table of routes alone.
type document struct {
	OpenAPI    string                `json:"openapi"`
	Info       documentInfo          `json:"info"`
	Servers    []documentHost        `json:"servers"`
	Security   []map[string][]string `json:"security"`
	Tags       []documentTag         `json:"tags"`
	Paths      members               `json:"paths"`
	Components members               `json:"components"`

	operations []*operation
	schemas    *schemas
}

type documentInfo struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

type documentHost struct {
	URL string `json:"url"`
}

type documentTag struct {
	Name string `json:"name"`
}

// operation is an endpoint in the document.
type operation struct {
	ID          string                `json:"operationId"`
	Tags        []string              `json:"tags"`
	Summary     string                `json:"summary,omitempty"`
	Description string                `json:"description,omitempty"`
	Security    []map[string][]string `json:"security,omitempty"`       // unless that of the document
	Scopes      []string              `json:"x-token-scopes,omitempty"` // one of them is enough
	Tier        string                `json:"x-tier,omitempty"`
	Parameters  []parameter           `json:"parameters,omitempty"`
	Body        *requestBody          `json:"requestBody,omitempty"`
	Responses   members               `json:"responses"`

	endpoint *endpoint
}

func (a *API) document() *document {
	s := newSchemas(&a.Site)
	d := &document{
		OpenAPI: "3.1.0",
		Info: documentInfo{
			Title: a.Site.Name + " API", Version: a.Site.Version,
			Description: "The REST API, version 4. Parameters may be sent in the query, as a form or as JSON alike; those that an endpoint does not know are passed over.",
		},
		Servers:  []documentHost{{a.Site.URL + prefix}},
		Security: waysIn(),
		Paths:    members{},
		schemas:  s,
	}
	for _, e := range a.endpoints {
		if !a.serves(e) {
			continue
		}
		op := s.operation(e)
		d.operations = append(d.operations, op)
		d.addPath(e, op)
		if tag := (documentTag{op.Tags[0]}); !slices.Contains(d.Tags, tag) {
			d.Tags = append(d.Tags, tag)
		}
	}
	shared := s.sharedResponses()
	var named members
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		named = append(named, member{name, s.named[name]})
	}
	d.Components = members{
		{"schemas", named}, {"responses", shared}, {"headers", sharedHeaders()}, {"securitySchemes", securitySchemes(a.Site.Name)},
	}
	return d
}

// bytes writes the document. What can not be written is a fault of the
// program.
func (d *document) bytes() []byte {
	text, err := encode(d)
	if err != nil {
		panic(fmt.Sprintf("the OpenAPI document: %v", err))
	}
	return text
}

// serves tells whether an endpoint of the table is there on this
// installation.
func (a *API) serves(e *endpoint) bool {
	return e.tier <= a.Site.Tier && !(e.hosted == selfManaged && a.Site.Hosted)
}

func (d *document) addPath(e *endpoint, op *operation) {
	method := strings.ToLower(e.method)
	i := slices.IndexFunc(d.Paths, func(m member) bool { return m.name == e.path })
	if i < 0 {
		d.Paths = append(d.Paths, member{e.path, members{{method, op}}})
		return
	}
	d.Paths[i].value = append(d.Paths[i].value.(members), member{method, op})
}

func (s *schemas) operation(e *endpoint) *operation {
	op := &operation{
		ID: operationID(e.method, e.path), Tags: []string{groupTitle(e.group)}, Summary: e.summary,
		Scopes: e.access.scopes, endpoint: e,
	}
	if e.access.nobody {
		op.Security = append([]map[string][]string{{}}, waysIn()...)
	}
	if e.tier > Free {
		op.Tier = e.tier.String()
	}
	op.Description = strings.Join(op.notes(), " ")
	op.Parameters, op.Body = s.parameters(e)
	op.Responses = s.responses(e)
	return op
}

// notes is what there is to know of an endpoint beside its parameters.
func (op *operation) notes() []string {
	e := op.endpoint
	var notes []string
	if e.access.nobody {
		notes = append(notes, "Needs no sign-in.")
	}
	if len(e.access.scopes) > 0 {
		notes = append(notes, "A token needs one of the scopes "+quoted(e.access.scopes)+".")
	} else if !e.access.nobody {
		notes = append(notes, "Any token will do, whatever its scopes.")
	}
	notes = append(notes, ruleTexts(e.layout.Rules)...)
	if op.Tier != "" {
		notes = append(notes, "From "+op.Tier+" on.")
	}
	return notes
}

// operationID names an operation after its method and path, the only names
// that never change: GET /users/{id}/keys is getUsersByIdKeys.
func operationID(method, path string) string {
	id := []byte(strings.ToLower(method))
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if strings.HasPrefix(part, "{") {
			id = append(id, "By"...)
		}
		start := true
		for _, c := range []byte(part) {
			switch {
			case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
				if start && c >= 'a' && c <= 'z' {
					c -= 'a' - 'A'
				}
				id, start = append(id, c), false
			default:
				start = true
			}
		}
	}
	return string(id)
}

// groupTitle makes the name of a resource's file readable.
func groupTitle(group string) string {
	words := strings.Split(group, "_")
	for i, word := range words {
		switch word {
		case "ci", "ssh", "gpg", "api":
			words[i] = strings.ToUpper(word)
		case "oauth":
			words[i] = "OAuth"
		default:
			if i == 0 {
				words[i] = strings.ToUpper(word[:1]) + word[1:]
			}
		}
	}
	return strings.Join(words, " ")
}

// waysIn lists the ways in, one of which is enough, in the order in which
// they win. OpenAPI can only say that all scopes of a list are needed, so the
// scopes of tokens, of which one is enough, stand apart.
func waysIn() []map[string][]string {
	return []map[string][]string{{"privateToken": {}}, {"bearer": {}}, {"privateTokenQuery": {}}, {"accessTokenQuery": {}}, {"session": {}}}
}

type securityScheme struct {
	Type        string `json:"type"`
	Description string `json:"description"`
	In          string `json:"in,omitempty"`
	Name        string `json:"name,omitempty"`
	Scheme      string `json:"scheme,omitempty"`
}

func securitySchemes(service string) members {
	return members{
		{"privateToken", securityScheme{Type: "apiKey", In: "header", Name: "PRIVATE-TOKEN", Description: "A personal, project, group or impersonation access token."}},
		{"bearer", securityScheme{Type: "http", Scheme: "bearer", Description: "Any access token."}},
		{"privateTokenQuery", securityScheme{Type: "apiKey", In: "query", Name: "private_token", Description: "As the header PRIVATE-TOKEN. Addresses are kept in logs and histories: a header is safer."}},
		{"accessTokenQuery", securityScheme{Type: "apiKey", In: "query", Name: "access_token", Description: "An access token of an application. A header is safer."}},
		{"session", securityScheme{Type: "apiKey", In: "cookie", Name: "_" + service + "_session", Description: "The session of the web application. Writes need the header X-CSRF-Token too."}},
	}
}
