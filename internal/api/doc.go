// Package api is the door for the REST API, version 4, and its JSON.
//
// Each resource has a file, named after its page in the public
// documentation: its routes stand in a table at the top, then come the
// handlers, then the JSON shapes. A route gives the method and path, who may
// come in, a struct of parameters and a result; router.go makes of it the
// matching, the checks, the binding and the OpenAPI document.
package api
