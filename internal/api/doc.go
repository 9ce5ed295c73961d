// Package api is the interface for the REST API, version 4.
//
// Each resource has a file, named after its page in the public documentation: a
// table of routes at the top, then the handlers and the JSON representations. A
// route has a method and path, an access rule, a struct of parameters, a handler
// and a result type. endpoint.go adds routes; serve.go matches requests, checks
// access and binds parameters; description.go describes the routes for the OpenAPI
// document.
package api
