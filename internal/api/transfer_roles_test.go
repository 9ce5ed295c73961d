package api_test

import "svc/internal/project"

// transferRows are the rows of the export of groups and projects. TestGroupImport
// and TestProjectImport check who can import.
var transferRows = map[string]ciRow{
	"POST /groups/{id}/export":         doneBy(project.Owner, "/export", "", 202),
	"GET /groups/{id}/export":          doneBy(project.Owner, "/export", "", 200),
	"GET /groups/{id}/export/download": doneBy(project.Owner, "/export/download?later={n}", "", 404),

	"POST /projects/{id}/export":         doneBy(project.Maintainer, "/export", "", 202),
	"GET /projects/{id}/export":          doneBy(project.Maintainer, "/export", "", 200),
	"GET /projects/{id}/export/download": doneBy(project.Maintainer, "/export/download?later={n}", "", 404),
}

var (
	transferRoles = rowRoles(transferRows, map[string]role{
		"POST /groups/import":             own("POST /groups/import", `{}`, 400),
		"POST /projects/import":           own("POST /projects/import", `{}`, 400),
		"POST /projects/remote-import":    own("POST /projects/remote-import", `{}`, 400),
		"POST /projects/remote-import-s3": own("POST /projects/remote-import-s3", `{}`, 400),
		"GET /group_imports":              ownRead("GET /group_imports"),
		"GET /group_imports/{import_id}":  {"GET /group_imports/999999", "", 401, 404, 404, 404, 403},

		"POST /bulk_imports":                                          own("POST /bulk_imports", `{}`, 400),
		"GET /bulk_imports":                                           ownRead("GET /bulk_imports"),
		"GET /bulk_imports/entities":                                  ownRead("GET /bulk_imports/entities"),
		"GET /bulk_imports/{import_id}":                               {"GET /bulk_imports/999999", "", 401, 404, 404, 404, 403},
		"GET /bulk_imports/{import_id}/entities":                      {"GET /bulk_imports/999999/entities", "", 401, 404, 404, 404, 403},
		"GET /bulk_imports/{import_id}/entities/{entity_id}":          {"GET /bulk_imports/999999/entities/1", "", 401, 404, 404, 404, 403},
		"GET /bulk_imports/{import_id}/entities/{entity_id}/failures": {"GET /bulk_imports/999999/entities/1/failures", "", 401, 404, 404, 404, 403},
		"POST /bulk_imports/{import_id}/cancel":                       own("POST /bulk_imports/999999/cancel", "", 404),
	})
	transferPlaceRoles = rowPlaceRoles(transferRows)
)
