// Package openapi describes the endpoints of the REST API: as an OpenAPI 3.1
// document and as HTML pages.
//
// New returns a Document from a list of endpoints, which the API derives from
// its route table. Schemas of parameters come from bind.Layout, schemas of
// responses from Go types by reflection. NewPages renders a Document as pages
// with examples.
package openapi
