package openapi

import (
	"reflect"

	"svc/internal/bind"
)

// Server is the server whose API is described.
type Server struct {
	Name    string // of the service
	URL     string // the external URL, without a trailing slash
	Prefix  string // the path of the API below URL
	Version string
	Backend string   // the name of the external error tracking service, a part of field names
	Tiers   []string // the tiers that are served; parameters of other tiers are omitted
}

// Endpoint is a method and path of the API.
type Endpoint struct {
	Method  string
	Path    string // below the prefix, with {names}
	Tag     string // the group of endpoints
	Summary string
	// Variant distinguishes endpoints whose paths give the same operation ID.
	Variant string
	Tier    string   // empty for all tiers
	Public  bool     // anonymous callers are allowed
	Scopes  []string // a token needs one of them; empty: any token is allowed

	Params *bind.Layout
	Raw    bool // the request body is not parsed into parameters

	Result Result
	// Types are the types of the result, or of the items of a List. There are
	// several if the result depends on the caller.
	Types     []reflect.Type
	Status    int        // of success
	Unchanged bool       // a write may return 304
	Errors    []int      // statuses of the shared Errors that the endpoint may return
	Responses []Response // in addition to the result, or in place of a shared error
}

// Result is the kind of a successful response.
type Result int

// The kinds of successful responses.
const (
	Value    Result = iota // a JSON value
	List                   // one page of a JSON array
	Empty                  // 204 without a body
	Accepted               // 202 with a message
	Stream                 // content of any type
)

// Response is a response of one endpoint.
type Response struct {
	Status int
	Text   string
	Type   reflect.Type // of the JSON body; nil without one
	Stream bool         // the body is content of any type
}

// Error is an error response that several endpoints return. It is a component
// of the document.
type Error struct {
	Status  int
	Name    string // of the component
	Text    string
	Types   []reflect.Type // of the JSON body; none without one
	Plain   bool           // the body may also be plain text
	Headers []string       // see headers
}
