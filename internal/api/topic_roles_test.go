package api_test

import "svc/internal/project"

// storagePlaceRoles are the rows of where repositories lie.
var storagePlaceRoles = map[string]placeRole{
	"POST /projects/{id}/housekeeping": {do: "POST {at}/housekeeping", need: project.Maintainer, ok: 201},
	"GET /projects/{id}/storage":       {do: "GET {at}/storage", need: project.Owner + 1, ok: 200},
}

// templateRoles are the rows of what belongs to the whole installation and is
// neither a user's nor a project's.
var templateRoles = map[string]role{
	"GET /templates/gitlab_ci_ymls":       openAPI("GET /templates/gitlab_ci_ymls"),
	"GET /templates/gitlab_ci_ymls/{key}": openAPI("GET /templates/gitlab_ci_ymls/Go"),

	"GET /topics":         openAPI("GET /topics"),
	"GET /topics/{id}":    {"GET /topics/999999", "", 404, 404, 404, 404, 403},
	"POST /topics":        admin("POST /topics", `{"name":"t{n}"}`, 201),
	"PUT /topics/{id}":    admin("PUT /topics/999999", `{"title":"x"}`, 404),
	"DELETE /topics/{id}": admin("DELETE /topics/999999", "", 404),
	"POST /topics/merge":  admin("POST /topics/merge", `{"source_topic_id":999998,"target_topic_id":999999}`, 404),

	"POST /projects/{id}/housekeeping": admin("POST /projects/{project}/housekeeping", "", 201),
	"GET /projects/{id}/storage":       adminRead("GET /projects/{project}/storage"),

	"GET /users/{user_id}/contributed_projects": openAPI("GET /users/{user}/contributed_projects"),
}
