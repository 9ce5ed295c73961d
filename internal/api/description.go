package api

import (
	"net/http"
	"reflect"
	"strings"

	"svc/internal/openapi"
)

// document returns the OpenAPI document of this instance, generated from the route
// table.
func (a *API) document() *openapi.Document {
	server := openapi.Server{Name: a.Site.Name, URL: a.Site.URL, Prefix: prefix, Version: a.Site.Version, Backend: a.Site.Backend}
	for t := Free; t <= a.Site.Tier; t++ {
		server.Tiers = append(server.Tiers, t.String())
	}
	var shared []openapi.Error
	for _, r := range errorResponses {
		shared = append(shared, r.Error)
	}
	var list []openapi.Endpoint
	for _, e := range a.endpoints {
		if a.serves(e) {
			list = append(list, e.describe())
		}
	}
	return openapi.New(server, shared, list)
}

// serves reports whether this instance has an endpoint of the route table.
func (a *API) serves(e *endpoint) bool {
	return e.tier <= a.Site.Tier && !(e.hosted == selfManaged && a.Site.Hosted)
}

// describe returns an endpoint for the documentation.
func (e *endpoint) describe() openapi.Endpoint {
	d := openapi.Endpoint{
		Method: e.method, Path: e.path, Tag: e.tag, Summary: e.summary, Variant: e.variant,
		Public: e.access.anonymous, Scopes: e.access.scopes,
		Params: e.layout, Raw: e.limits.Raw, Status: e.status,
	}
	if e.tier > Free {
		d.Tier = e.tier.String()
	}
	d.Result, d.Types, d.Unchanged = resultOf(e.result)
	if e.returns != nil {
		d.Types = typesOf(e.returns...)
	}
	for _, r := range errorResponses {
		if r.of == nil || r.of(e) {
			d.Errors = append(d.Errors, r.Status)
		}
	}
	for _, n := range e.responses {
		r := openapi.Response{Status: n.status, Text: n.text}
		switch n.body.(type) {
		case nil:
		case streamed:
			r.Stream = true
		default:
			r.Type = reflect.TypeOf(n.body)
		}
		d.Responses = append(d.Responses, r)
	}
	return d
}

// resultOf returns the kind of a result and the type of its value or items.
func resultOf(t reflect.Type) (kind openapi.Result, types []reflect.Type, unchanged bool) {
	switch {
	case t == reflect.TypeFor[none]():
		return openapi.Empty, nil, false
	case t == reflect.TypeFor[accepted]():
		return openapi.Accepted, nil, false
	case t == reflect.TypeFor[streamed]():
		return openapi.Stream, nil, false
	case t.Implements(reflect.TypeFor[pager]()):
		items, _ := t.FieldByName("items")
		return openapi.List, []reflect.Type{items.Type.Elem()}, false
	case t.Implements(reflect.TypeFor[outcome]()):
		value, _ := t.FieldByName("value")
		return openapi.Value, []reflect.Type{value.Type}, true
	}
	return openapi.Value, []reflect.Type{t}, false
}

func typesOf(values ...any) []reflect.Type {
	var types []reflect.Type
	for _, v := range values {
		types = append(types, reflect.TypeOf(v))
	}
	return types
}

// errorResponse is an error that several endpoints return.
type errorResponse struct {
	openapi.Error
	of func(*endpoint) bool // the endpoints that return it; nil for all
}

var errorResponses = []errorResponse{
	{openapi.Error{
		Status: http.StatusMovedPermanently, Name: "Moved", Text: "The path of the project or group changed. The Location header has the URL with its ID.",
		Types: typesOf(messageJSON{}), Headers: []string{"Location"},
	}, func(e *endpoint) bool {
		return reads(e) && (strings.HasPrefix(e.path, "/projects/{") || strings.HasPrefix(e.path, "/groups/{"))
	}},
	{openapi.Error{
		Status: http.StatusBadRequest, Name: "BadRequest", Text: "A parameter is missing or invalid.",
		Types: typesOf(errorJSON{}, messageJSON{}),
	}, nil},
	{openapi.Error{
		Status: http.StatusUnauthorized, Name: "Unauthorized", Text: "The credential is missing or invalid.",
		Types: typesOf(messageJSON{}), Headers: []string{"WWW-Authenticate"},
	}, nil},
	{openapi.Error{
		Status: http.StatusForbidden, Name: "Forbidden", Text: "The user is not allowed to do this, or the token does not have the scope.",
		Types: typesOf(messageJSON{}, scopeJSON{}),
	}, nil},
	{openapi.Error{
		Status: http.StatusNotFound, Name: "NotFound", Text: "The resource does not exist, or the user does not have access to it.",
		Types: typesOf(messageJSON{}, errorJSON{}),
	}, nil},
	{openapi.Error{
		Status: http.StatusMethodNotAllowed, Name: "NotAllowed", Text: "The method, the kind of pagination or the kind of token is not supported.",
		Types: typesOf(errorJSON{}), Headers: []string{"Allow"},
	}, func(e *endpoint) bool {
		return e.result.Implements(reflect.TypeFor[pager]()) || strings.HasSuffix(e.path, "/self/rotate")
	}},
	{openapi.Error{
		Status: http.StatusConflict, Name: "Conflict", Text: "The request conflicts with another resource or with the state of this one.",
		Types: typesOf(messageJSON{}),
	}, writes},
	{openapi.Error{
		Status: http.StatusPreconditionFailed, Name: "PreconditionFailed", Text: "The resource was changed after the time in If-Unmodified-Since.",
		Types: typesOf(messageJSON{}),
	}, func(e *endpoint) bool { return e.method == http.MethodDelete }},
	{openapi.Error{
		Status: http.StatusRequestEntityTooLarge, Name: "TooLarge", Text: "The body or a file exceeds its size limit.",
		Types: typesOf(errorJSON{}, messageJSON{}),
	}, writes},
	{openapi.Error{
		Status: http.StatusRequestURITooLong, Name: "URITooLong", Text: "The URL is longer than 8 KiB. Send the parameters in the body.",
		Types: typesOf(messageJSON{}),
	}, nil},
	{openapi.Error{
		Status: http.StatusUnsupportedMediaType, Name: "UnsupportedMediaType", Text: "The body is neither JSON nor a form.",
		Types: typesOf(errorJSON{}),
	}, writes},
	{openapi.Error{
		Status: http.StatusRequestedRangeNotSatisfiable, Name: "RangeNotSatisfiable", Text: "The requested range is outside the content.",
	}, func(e *endpoint) bool { return reads(e) && e.result == reflect.TypeFor[streamed]() }},
	{openapi.Error{
		Status: http.StatusUnprocessableEntity, Name: "Unprocessable", Text: "The request is well formed but cannot be processed.",
		Types: typesOf(messageJSON{}),
	}, func(e *endpoint) bool {
		return writes(e) || strings.HasSuffix(e.path, "/changelog") || strings.Contains(e.path, "{artifact_path")
	}},
	{openapi.Error{
		Status: http.StatusTooManyRequests, Name: "TooManyRequests", Text: "The rate limit is exceeded. The body is plain text if rate_limiting_response_text is set.",
		Types:   typesOf(messageJSON{}),
		Plain:   true,
		Headers: []string{"Retry-After", "RateLimit-Limit", "RateLimit-Observed", "RateLimit-Remaining", "RateLimit-Reset"},
	}, nil},
	{openapi.Error{
		Status: http.StatusInternalServerError, Name: "ServerError", Text: "Internal server error.",
		Types: typesOf(messageJSON{}),
	}, nil},
	{openapi.Error{
		Status: http.StatusServiceUnavailable, Name: "Unavailable", Text: "The server, or a service it depends on, is temporarily unavailable.",
		Types: typesOf(messageJSON{}),
	}, nil},
}

func reads(e *endpoint) bool { return e.method == http.MethodGet }

func writes(e *endpoint) bool { return e.method != http.MethodGet }

// DescribeSchema describes a message: a sentence, or the errors of each attribute.
func (messageJSON) DescribeSchema(s *openapi.Schemas) *openapi.Schema {
	text := &openapi.Schema{Type: openapi.Types{"string"}, MinLength: 1}
	fields := &openapi.Schema{
		Description: "Errors by attribute.", Type: openapi.Types{"object"},
		AdditionalProperties: openapi.AnyOf(text, openapi.ArrayOf(text)),
	}
	return s.Define("Message", &openapi.Schema{
		Type: openapi.Types{"object"}, Required: []string{"message"}, AdditionalProperties: false,
		Properties: openapi.Object{openapi.Field("message", openapi.AnyOf(text, fields))},
	})
}

// DescribeSchema describes a time.
func (stamp) DescribeSchema(*openapi.Schemas) *openapi.Schema {
	return &openapi.Schema{Type: openapi.Types{"string"}, Format: "date-time"}
}

// DescribeSchema describes a date.
func (day) DescribeSchema(*openapi.Schemas) *openapi.Schema {
	return &openapi.Schema{Type: openapi.Types{"string"}, Format: "date"}
}

// String returns the name of the tier in the configuration and the documentation.
func (t Tier) String() string {
	switch t {
	case Premium:
		return "premium"
	case Ultimate:
		return "ultimate"
	}
	return "free"
}
