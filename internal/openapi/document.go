package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Document is an OpenAPI 3.1 document.
type Document struct {
	OpenAPI    string                `json:"openapi"`
	Info       documentInfo          `json:"info"`
	Servers    []documentHost        `json:"servers"`
	Security   []map[string][]string `json:"security"`
	Tags       []documentTag         `json:"tags"`
	Paths      Object                `json:"paths"`
	Components Object                `json:"components"`

	operations []*operation
	schemas    *Schemas
	errors     []Error
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
	Security    []map[string][]string `json:"security,omitempty"`       // if not that of the document
	Scopes      []string              `json:"x-token-scopes,omitempty"` // one of them is sufficient
	Tier        string                `json:"x-tier,omitempty"`
	Parameters  []parameter           `json:"parameters,omitempty"`
	Body        *requestBody          `json:"requestBody,omitempty"`
	Responses   Object                `json:"responses"`

	endpoint *Endpoint
}

// New returns the document of a server with the endpoints and the errors that they
// share.
func New(server Server, errors []Error, endpoints []Endpoint) *Document {
	s := newSchemas(server)
	d := &Document{
		OpenAPI: "3.1.0",
		Info: documentInfo{
			Title: server.Name + " API", Version: server.Version,
			Description: "The REST API, version 4. Parameters can be sent in the query string, as a form or as JSON. Unknown parameters are ignored.",
		},
		Servers:  []documentHost{{server.URL + server.Prefix}},
		Security: credentials(),
		Paths:    Object{},
		schemas:  s,
		errors:   errors,
	}
	for i := range endpoints {
		e := &endpoints[i]
		op := d.operation(e)
		d.operations = append(d.operations, op)
		d.addPath(e, op)
		if tag := (documentTag{e.Tag}); !slices.Contains(d.Tags, tag) {
			d.Tags = append(d.Tags, tag)
		}
	}
	shared := d.sharedResponses()
	var named Object
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		named = append(named, Member{name, s.named[name]})
	}
	d.Components = Object{
		{"schemas", named}, {"responses", shared}, {"headers", headers()}, {"securitySchemes", securitySchemes(server.Name)},
	}
	return d
}

// JSON returns the encoded document. It panics if the document cannot be encoded,
// which is a bug.
func (d *Document) JSON() []byte {
	text, err := encode(d)
	if err != nil {
		panic(fmt.Sprintf("encode the OpenAPI document: %v", err))
	}
	return text
}

func (d *Document) addPath(e *Endpoint, op *operation) {
	method := strings.ToLower(e.Method)
	i := slices.IndexFunc(d.Paths, func(m Member) bool { return m.Name == e.Path })
	if i < 0 {
		d.Paths = append(d.Paths, Member{e.Path, Object{{method, op}}})
		return
	}
	d.Paths[i].Value = append(d.Paths[i].Value.(Object), Member{method, op})
}

func (d *Document) operation(e *Endpoint) *operation {
	op := &operation{
		ID: operationID(e.Method, e.Path) + e.Variant, Tags: []string{e.Tag}, Summary: e.Summary,
		Scopes: e.Scopes, Tier: e.Tier, endpoint: e,
	}
	if e.Public {
		op.Security = append([]map[string][]string{{}}, credentials()...)
	}
	op.Description = strings.Join(op.notes(), " ")
	op.Parameters, op.Body = d.schemas.parameters(e)
	op.Responses = d.responses(e)
	return op
}

// notes returns the sentences of the description about access, rules on parameters
// and the tier.
func (op *operation) notes() []string {
	e := op.endpoint
	var notes []string
	switch scopes := scopeText(e.Scopes); {
	case e.Public && len(e.Scopes) > 0:
		notes = append(notes, "Authentication is optional. A token must have "+scopes+".")
	case e.Public:
		notes = append(notes, "Authentication is not required.")
	default:
		notes = append(notes, "Requires a token with "+scopes+".")
	}
	notes = append(notes, ruleTexts(e.Params.Rules)...)
	if op.Tier != "" {
		notes = append(notes, tierText(op.Tier))
	}
	return notes
}

// scopeText returns the scopes of which a token needs one.
func scopeText(scopes []string) string {
	switch len(scopes) {
	case 0:
		return "any scope"
	case 1:
		return "the scope " + quoted(scopes)
	}
	return "one of the scopes " + quoted(scopes)
}

// operationID derives the ID of an operation from its method and path, which
// never change: getUsersByIdKeys for GET /users/{id}/keys.
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

// credentials returns the security requirements, in order of precedence; one is
// sufficient. OpenAPI can only express that all scopes of a list are required, so
// the scopes of tokens, of which one is sufficient, are in x-token-scopes.
func credentials() []map[string][]string {
	return []map[string][]string{{"privateToken": {}}, {"bearer": {}}, {"privateTokenQuery": {}}, {"accessTokenQuery": {}}, {"session": {}}}
}

type securityScheme struct {
	Type        string `json:"type"`
	Description string `json:"description"`
	In          string `json:"in,omitempty"`
	Name        string `json:"name,omitempty"`
	Scheme      string `json:"scheme,omitempty"`
}

func securitySchemes(service string) Object {
	return Object{
		{"privateToken", securityScheme{Type: "apiKey", In: "header", Name: "PRIVATE-TOKEN", Description: "A personal, project, group or impersonation access token."}},
		{"bearer", securityScheme{Type: "http", Scheme: "bearer", Description: "Any access token."}},
		{"privateTokenQuery", securityScheme{Type: "apiKey", In: "query", Name: "private_token", Description: "The same as the PRIVATE-TOKEN header. Prefer the header: URLs are stored in logs and browser histories."}},
		{"accessTokenQuery", securityScheme{Type: "apiKey", In: "query", Name: "access_token", Description: "An OAuth access token. Prefer the header."}},
		{"session", securityScheme{Type: "apiKey", In: "cookie", Name: "_" + service + "_session", Description: "The session cookie of the web interface. Writes also require the X-CSRF-Token header."}},
	}
}
