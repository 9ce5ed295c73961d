package api

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// response is an answer of an endpoint, or a reference to one that many
// share.
type response struct {
	Ref         string  `json:"$ref,omitempty"`
	Description string  `json:"description,omitempty"`
	Headers     members `json:"headers,omitempty"`
	Content     members `json:"content,omitempty"`
}

// responses are what an endpoint may answer: its result, and the refusals.
func (s *schemas) responses(e *endpoint) members {
	var list members
	add := func(status int, r response) { list = append(list, member{strconv.Itoa(status), r}) }
	read := e.method == http.MethodGet
	switch {
	case e.result == reflect.TypeFor[none]():
		add(http.StatusNoContent, response{Description: "Done."})
	case e.result == reflect.TypeFor[accepted]():
		add(http.StatusAccepted, response{Description: "The work goes on in the background.", Content: jsonContent(s.of(reflect.TypeFor[acceptedJSON]()))})
	case e.result == reflect.TypeFor[streamed]():
		add(e.status, response{Description: "The content.", Content: members{{"*/*", media{binary()}}}})
		if read {
			add(http.StatusPartialContent, response{Description: "The part of the content that was asked for.", Content: members{{"*/*", media{binary()}}}})
		}
	default:
		result, list := s.result(e)
		r := response{Description: "Done.", Content: jsonContent(result)}
		if list {
			r.Description, r.Headers = "One page of the list.", pageHeaders()
		}
		add(e.status, r)
	}
	if read || e.result.Implements(reflect.TypeFor[outcome]()) {
		add(http.StatusNotModified, sharedRef(http.StatusNotModified))
	}
	own := func(status int) bool {
		return slices.ContainsFunc(e.also, func(n answerNote) bool { return n.status == status })
	}
	for _, r := range refusals {
		if (r.of == nil || r.of(e)) && !own(r.status) {
			add(r.status, sharedRef(r.status))
		}
	}
	for _, n := range e.also {
		r := response{Description: n.text}
		switch n.body.(type) {
		case nil:
		case streamed:
			r.Content = members{{"*/*", media{binary()}}}
		default:
			r.Content = jsonContent(s.of(reflect.TypeOf(n.body)))
		}
		add(n.status, r)
	}
	return list
}

// result is the schema of what an endpoint answers with, and whether it is a
// page of a list.
func (s *schemas) result(e *endpoint) (result *schema, list bool) {
	t := e.result
	if t.Implements(reflect.TypeFor[pager]()) {
		items, _ := t.FieldByName("items")
		return arrayOf(s.shown(items.Type.Elem(), e.forms)), true
	}
	if t.Implements(reflect.TypeFor[outcome]()) {
		value, _ := t.FieldByName("value")
		t = value.Type
	}
	return s.shown(t, e.forms), false
}

// shown is the schema of a type, or of the forms that stand for it.
func (s *schemas) shown(t reflect.Type, forms []any) *schema {
	if len(forms) == 0 {
		return s.of(t)
	}
	var shapes []*schema
	for _, f := range forms {
		shapes = append(shapes, s.of(reflect.TypeOf(f)))
	}
	return anyOf(shapes...)
}

func jsonContent(body *schema) members { return members{{"application/json", media{body}}} }

// acceptedJSON is the body that goes with accepted.
type acceptedJSON struct {
	Message string `json:"message"`
}

// refusal is an answer that many endpoints share.
type refusal struct {
	status  int
	name    string
	text    string
	bodies  []any
	headers []string
	of      func(*endpoint) bool // which endpoints give it; nil for all
}

var refusals = []refusal{
	{status: 301, name: "Moved", text: "The project or group has another path now; the address names it by its id.", bodies: []any{messageJSON{}}, headers: []string{"Location"}, of: func(e *endpoint) bool {
		return e.method == http.MethodGet && (strings.HasPrefix(e.path, "/projects/{") || strings.HasPrefix(e.path, "/groups/{"))
	}},
	{status: 400, name: "BadRequest", text: "A parameter is missing or has a value that can not be accepted.", bodies: []any{errorJSON{}, messageJSON{}}},
	{status: 401, name: "Unauthorized", text: "There is no credential, or one that opens nothing.", bodies: []any{messageJSON{}}, headers: []string{"WWW-Authenticate"}},
	{status: 403, name: "Forbidden", text: "The caller may not do this, or the token lacks the scope.", bodies: []any{messageJSON{}, scopeJSON{}}},
	{status: 404, name: "NotFound", text: "There is no such thing, or the caller may not see it.", bodies: []any{messageJSON{}, errorJSON{}}},
	{status: 405, name: "NotAllowed", text: "The address does not have this method, the list can not be paged in this way, or the token is of another kind.", bodies: []any{errorJSON{}}, headers: []string{"Allow"}, of: func(e *endpoint) bool {
		return e.result.Implements(reflect.TypeFor[pager]()) || strings.HasSuffix(e.path, "/self/rotate")
	}},
	{status: 409, name: "Conflict", text: "Another thing, or the state of this one, stands in the way.", bodies: []any{messageJSON{}}, of: writes},
	{status: 412, name: "PreconditionFailed", text: "The thing has changed since the time in If-Unmodified-Since.", bodies: []any{messageJSON{}}, of: func(e *endpoint) bool {
		return e.method == http.MethodDelete
	}},
	{status: 413, name: "TooLarge", text: "The body or a file is over its limit.", bodies: []any{errorJSON{}, messageJSON{}}, of: writes},
	{status: 414, name: "URITooLong", text: "The address is longer than 8 KiB; send the parameters in the body.", bodies: []any{messageJSON{}}},
	{status: 415, name: "UnsupportedMediaType", text: "The body is neither JSON nor a form.", bodies: []any{errorJSON{}}, of: writes},
	{status: 416, name: "RangeNotSatisfiable", text: "The content has no such part.", of: func(e *endpoint) bool {
		return e.method == http.MethodGet && e.result == reflect.TypeFor[streamed]()
	}},
	{status: 422, name: "Unprocessable", text: "The request is well formed but can not be worked off.", bodies: []any{messageJSON{}}, of: func(e *endpoint) bool {
		return writes(e) || strings.HasSuffix(e.path, "/changelog") || strings.Contains(e.path, "{artifact_path")
	}},
	{status: 429, name: "TooManyRequests", text: "The caller asks too often.", bodies: []any{messageJSON{}},
		headers: []string{"Retry-After", "RateLimit-Limit", "RateLimit-Observed", "RateLimit-Remaining", "RateLimit-Reset"}},
	{status: 500, name: "ServerError", text: "A fault of the server.", bodies: []any{messageJSON{}}},
	{status: 503, name: "Unavailable", text: "The server, or a part of it, can not answer now.", bodies: []any{messageJSON{}}},
}

func writes(e *endpoint) bool { return e.method != http.MethodGet }

func sharedRef(status int) response {
	name := "NotModified"
	if i := slices.IndexFunc(refusals, func(r refusal) bool { return r.status == status }); i >= 0 {
		name = refusals[i].name
	}
	return response{Ref: "#/components/responses/" + name}
}

func (s *schemas) sharedResponses() members {
	list := members{{"NotModified", response{Description: "Nothing has changed."}}}
	for _, r := range refusals {
		answer := response{Description: r.text, Headers: headerRefs(r.headers...)}
		if r.bodies != nil {
			answer.Content = jsonContent(s.shown(nil, r.bodies))
		}
		list = append(list, member{r.name, answer})
	}
	return list
}

// describe tells that a message is a sentence, or says for each attribute
// what is wrong with it.
func (messageJSON) describe(s *schemas) *schema {
	const name = "Message"
	text := &schema{Type: typeNames{"string"}, MinLength: 1}
	s.named[name] = &schema{
		Type: typeNames{"object"}, Required: []string{"message"}, AdditionalProperties: false,
		Properties: members{{"message", anyOf(text, &schema{
			Description: "What is wrong with each attribute.", Type: typeNames{"object"}, AdditionalProperties: anyOf(text, arrayOf(text)),
		})}},
	}
	return refTo(name)
}

type header struct {
	Ref         string  `json:"$ref,omitempty"`
	Description string  `json:"description,omitempty"`
	Schema      *schema `json:"schema,omitempty"`
}

func pageHeaders() members {
	return headerRefs("Link", "X-Page", "X-Per-Page", "X-Next-Page", "X-Prev-Page", "X-Total", "X-Total-Pages")
}

func headerRefs(names ...string) members {
	var list members
	for _, name := range names {
		list = append(list, member{name, header{Ref: "#/components/headers/" + name}})
	}
	return list
}

func sharedHeaders() members {
	text, number := &schema{Type: typeNames{"string"}}, &schema{Type: typeNames{"integer"}}
	return members{
		{"Link", header{Description: "The addresses of other pages, by rel: prev, next, first, last. A keyset page has next alone, the last one none.", Schema: text}},
		{"X-Page", header{Description: "The number of this page.", Schema: number}},
		{"X-Per-Page", header{Description: "Items per page.", Schema: number}},
		{"X-Next-Page", header{Description: "The number of the next page; empty on the last.", Schema: text}},
		{"X-Prev-Page", header{Description: "The number of the page before; empty on the first.", Schema: text}},
		{"X-Total", header{Description: "Items in all; left out above 10,000.", Schema: number}},
		{"X-Total-Pages", header{Description: "Pages in all; left out above 10,000 items.", Schema: number}},
		{"Location", header{Description: "The address to use instead.", Schema: text}},
		{"Allow", header{Description: "The methods that the address has.", Schema: text}},
		{"WWW-Authenticate", header{Description: "How to sign in.", Schema: text}},
		{"Retry-After", header{Description: "Seconds to wait.", Schema: number}},
		{"RateLimit-Limit", header{Description: "Requests allowed per minute.", Schema: number}},
		{"RateLimit-Observed", header{Description: "Requests counted so far.", Schema: number}},
		{"RateLimit-Remaining", header{Description: "Requests left.", Schema: number}},
		{"RateLimit-Reset", header{Description: "When the count starts anew, in Unix seconds.", Schema: number}},
	}
}
