package api_test

import "svc/internal/project"

// errorRows are the rows of error tracking, in projects where it is not set up.
var errorRows = map[string]ciRow{
	"GET /projects/{id}/error_tracking/settings":                doneBy(project.Maintainer, "/error_tracking/settings", "", 404),
	"PUT /projects/{id}/error_tracking/settings":                doneBy(project.Maintainer, "/error_tracking/settings", `{"active":true,"integrated":true}`, 200),
	"PATCH /projects/{id}/error_tracking/settings":              doneBy(project.Maintainer, "/error_tracking/settings", `{"active":true}`, 404),
	"GET /projects/{id}/error_tracking/client_keys":             doneBy(project.Maintainer, "/error_tracking/client_keys", "", 200),
	"POST /projects/{id}/error_tracking/client_keys":            doneBy(project.Maintainer, "/error_tracking/client_keys", "", 201),
	"DELETE /projects/{id}/error_tracking/client_keys/{key_id}": doneBy(project.Maintainer, "/error_tracking/client_keys/999999", "", 404),
}

var (
	errorRoles      = rowRoles(errorRows, map[string]role{})
	errorPlaceRoles = rowPlaceRoles(errorRows)
)
