package openapi

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
)

// response is a response of an operation, or a reference to a shared one.
type response struct {
	Ref         string `json:"$ref,omitempty"`
	Description string `json:"description,omitempty"`
	Headers     Object `json:"headers,omitempty"`
	Content     Object `json:"content,omitempty"`
}

// responses returns the responses of an endpoint: success, then errors.
func (d *Document) responses(e *Endpoint) Object {
	var list Object
	add := func(status int, r response) { list = append(list, Member{strconv.Itoa(status), r}) }
	read := e.Method == http.MethodGet
	switch e.Result {
	case Empty:
		add(http.StatusNoContent, response{Description: "Success, without content."})
	case Accepted:
		add(http.StatusAccepted, response{Description: "Accepted; processing continues in the background.", Content: jsonContent(d.schemas.of(reflect.TypeFor[acceptedJSON]()))})
	case Stream:
		add(e.Status, response{Description: "The content.", Content: anyContent()})
		if read {
			add(http.StatusPartialContent, response{Description: "The requested range of the content.", Content: anyContent()})
		}
	case List:
		add(e.Status, response{Description: "One page of the list.", Headers: pageHeaders(), Content: jsonContent(d.schemas.result(e))})
	case Value:
		add(e.Status, response{Description: "Success.", Content: jsonContent(d.schemas.result(e))})
	}
	if read || e.Unchanged {
		add(http.StatusNotModified, reference("NotModified"))
	}
	own := func(status int) bool {
		return slices.ContainsFunc(e.Responses, func(r Response) bool { return r.Status == status })
	}
	for _, one := range d.errorsOf(e) {
		if !own(one.Status) {
			add(one.Status, reference(one.Name))
		}
	}
	for _, one := range e.Responses {
		r := response{Description: one.Text}
		switch {
		case one.Stream:
			r.Content = anyContent()
		case one.Type != nil:
			r.Content = jsonContent(d.schemas.of(one.Type))
		}
		add(one.Status, r)
	}
	return list
}

// errorsOf returns the shared errors of an endpoint.
func (d *Document) errorsOf(e *Endpoint) []Error {
	var list []Error
	for _, one := range d.errors {
		if slices.Contains(e.Errors, one.Status) {
			list = append(list, one)
		}
	}
	return list
}

// result returns the schema of a successful response with a JSON body.
func (s *Schemas) result(e *Endpoint) *Schema {
	if e.Result == List {
		return ArrayOf(s.oneOf(e.Types))
	}
	return s.oneOf(e.Types)
}

// oneOf returns a schema of values of any of the types.
func (s *Schemas) oneOf(types []reflect.Type) *Schema {
	var list []*Schema
	for _, t := range types {
		list = append(list, s.of(t))
	}
	return AnyOf(list...)
}

func jsonContent(body *Schema) Object { return Object{{"application/json", media{body}}} }

func anyContent() Object { return Object{{"*/*", media{binary()}}} }

// acceptedJSON is the body of a response of the kind Accepted.
type acceptedJSON struct {
	Message string `json:"message"`
}

func reference(name string) response {
	return response{Ref: "#/components/responses/" + name}
}

func (d *Document) sharedResponses() Object {
	list := Object{{"NotModified", response{Description: "Not modified."}}}
	for _, one := range d.errors {
		r := response{Description: one.Text, Headers: headerRefs(one.Headers...)}
		if one.Types != nil {
			r.Content = jsonContent(d.schemas.oneOf(one.Types))
			if one.Plain {
				r.Content = append(r.Content, jsonContent(&Schema{Type: Types{"string"}})...)
				r.Content[len(r.Content)-1].Name = "text/plain"
			}
		}
		list = append(list, Member{one.Name, r})
	}
	return list
}

type header struct {
	Ref         string  `json:"$ref,omitempty"`
	Description string  `json:"description,omitempty"`
	Schema      *Schema `json:"schema,omitempty"`
}

func pageHeaders() Object {
	return headerRefs("Link", "X-Page", "X-Per-Page", "X-Next-Page", "X-Prev-Page", "X-Total", "X-Total-Pages")
}

func headerRefs(names ...string) Object {
	var list Object
	for _, name := range names {
		list = append(list, Member{name, header{Ref: "#/components/headers/" + name}})
	}
	return list
}

// headers returns the response headers of lists and errors.
func headers() Object {
	text, number := &Schema{Type: Types{"string"}}, &Schema{Type: Types{"integer"}}
	return Object{
		{"Link", header{Description: "URLs of other pages by rel: prev, next, first, last. Keyset pages have only next; the last page has none.", Schema: text}},
		{"X-Page", header{Description: "The page number.", Schema: number}},
		{"X-Per-Page", header{Description: "Items per page.", Schema: number}},
		{"X-Next-Page", header{Description: "The number of the next page; empty on the last page.", Schema: text}},
		{"X-Prev-Page", header{Description: "The number of the previous page; empty on the first page.", Schema: text}},
		{"X-Total", header{Description: "The total number of items; omitted above 10,000.", Schema: number}},
		{"X-Total-Pages", header{Description: "The total number of pages; omitted above 10,000 items.", Schema: number}},
		{"Location", header{Description: "The URL to use instead.", Schema: text}},
		{"Allow", header{Description: "The allowed methods.", Schema: text}},
		{"WWW-Authenticate", header{Description: "The authentication scheme.", Schema: text}},
		{"Retry-After", header{Description: "Seconds to wait before the next request.", Schema: number}},
		{"RateLimit-Limit", header{Description: "Requests allowed per minute.", Schema: number}},
		{"RateLimit-Observed", header{Description: "Requests counted in the current period.", Schema: number}},
		{"RateLimit-Remaining", header{Description: "Requests remaining in the current period.", Schema: number}},
		{"RateLimit-Reset", header{Description: "Start of the next period, in Unix seconds.", Schema: number}},
	}
}
