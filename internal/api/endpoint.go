package api

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"svc/internal/bind"
)

// endpoint is an entry of the route table.
type endpoint struct {
	method    string
	path      string // below the prefix, with {names}
	access    access
	tier      Tier
	hosted    hosting
	layout    *bind.Layout
	result    reflect.Type
	returns   []any // the types of a result that depends on the caller
	status    int
	summary   string
	tag       string // its group in the documentation
	variant   string // part of the operation ID: see variant
	limits    bind.Limits
	most      func(context.Context) (int64, error) // replaces limits.File if the limit is a setting
	names     []string                             // of the path parameters
	rest      string                               // the parameter for the rest of the path
	responses []extraResponse
	refused   []refusedParam
	serve     func(c *call, bind func(into any) error) (any, error)
}

// hosting is the kind of instances that have an endpoint.
type hosting int

const (
	anywhere hosting = iota
	selfManaged
)

// option changes an endpoint.
type option func(*endpoint)

// status sets the success status, if it is not the default of the method.
func status(code int) option { return func(e *endpoint) { e.status = code } }

// tier sets the lowest tier that has the endpoint.
func tier(t Tier) option { return func(e *endpoint) { e.tier = t } }

// onlySelfManaged removes the endpoint from hosted instances.
func onlySelfManaged(e *endpoint) { e.hosted = selfManaged }

// returns sets the types of a result that depends on the caller.
func returns(shapes ...any) option { return func(e *endpoint) { e.returns = shapes } }

// files allows uploads with a limit in bytes.
func files(bytes int64) option { return func(e *endpoint) { e.limits.File = bytes } }

// filesWithin is files with a limit from the settings; 0 means no limit.
func filesWithin(most func(context.Context) (int64, error)) option {
	return func(e *endpoint) { e.limits.File, e.most = 1<<50, most }
}

// raw leaves the request body to the handler.
func raw(e *endpoint) { e.limits.Raw = true }

// extraResponse is an additional response of an endpoint.
type extraResponse struct {
	status int
	text   string
	body   any // a value of its type; nil without a body
}

// response documents an additional response.
func response(status int, text string, body any) option {
	return func(e *endpoint) { e.responses = append(e.responses, extraResponse{status, text, body}) }
}

// summary sets the title of an endpoint in the documentation: the imperative that
// the public documentation uses, such as "Retry a job".
func summary(text string) option { return func(e *endpoint) { e.summary = text } }

// variant sets a part of the operation ID, for an endpoint whose operation ID would
// be that of another path.
func variant(text string) option { return func(e *endpoint) { e.variant = text } }

// tag sets the documentation group of the endpoints that are added next. Each
// resource calls it before its first route.
func (a *API) tag(name string) { a.currentTag = name }

// handle adds an endpoint: "METHOD /path", the allowed callers, and the handler.
// It is instantiated for each handler, so it contains only what needs the
// handler's types; add does the rest.
func handle[P, R any](a *API, route string, acc access, h func(*call, P) (R, error), opts ...option) {
	a.add(route, &endpoint{
		access: acc, result: reflect.TypeFor[R](), tag: a.currentTag,
		serve: func(c *call, bind func(into any) error) (any, error) {
			p := new(P)
			if err := bind(p); err != nil {
				return nil, err
			}
			return h(c, *p)
		},
	}, reflect.TypeFor[P](), opts)
}

// add adds an endpoint to the routes. params is the struct type of its parameters.
// add panics if the route is invalid.
func (a *API) add(route string, e *endpoint, params reflect.Type, opts []option) {
	method, path, ok := strings.Cut(route, " ")
	if !ok {
		panic("route " + route + ": want METHOD /path")
	}
	if e.tag == "" {
		panic("route " + route + ": no tag")
	}
	pattern := path
	if at := strings.LastIndex(path, "{"); strings.HasSuffix(path, "*}") { // {name*} matches slashes too
		e.rest = path[at+1 : len(path)-2]
		pattern, path = path[:at]+"*", path[:at]+"{"+e.rest+"}"
	}
	e.method, e.path, e.names = method, path, pathNames(path)
	e.status = http.StatusOK
	e.limits = bind.Limits{Body: maxBody, TempDir: a.TempDir}
	if method == http.MethodPost {
		e.status = http.StatusCreated
	}
	for _, o := range opts {
		o(e)
	}
	var err error
	if e.layout, err = bind.NewLayout(params, e.names...); err != nil {
		panic(fmt.Sprintf("route %s: %v", route, err))
	}
	e.refused = e.unbound(a.refused[method+" "+path])
	a.endpoints = append(a.endpoints, e)
	if !a.serves(e) {
		return
	}
	serve := func(w http.ResponseWriter, r *http.Request) { a.serve(w, r, e) }
	a.mux.MethodFunc(method, prefix+pattern, serve)
	if bare, ok := strings.CutSuffix(pattern, "/"); ok { // the trailing slash is optional
		a.mux.MethodFunc(method, prefix+bare, serve)
	}
	if method == http.MethodGet {
		a.mux.MethodFunc(http.MethodHead, prefix+pattern, serve)
	}
}

// bind sets the parameters of an endpoint from a request and validates them.
func (e *endpoint) bind(in *bind.Input, into any) error {
	if err := e.refuse(in); err != nil {
		return err
	}
	if err := e.layout.Bind(in, into); err != nil {
		return err
	}
	if c, ok := into.(checked); ok {
		return c.check()
	}
	return nil
}

// checked is a parameters struct with rules that tags cannot express.
type checked interface{ check() error }

func pathNames(path string) []string {
	var names []string
	for part := range strings.SplitSeq(path, "/") {
		if _, name, ok := strings.Cut(part, "{"); ok { // also in archive.{format}
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}
