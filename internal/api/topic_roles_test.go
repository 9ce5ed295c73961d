package api_test

import "svc/internal/project"

// storagePlaceRoles are the rows of housekeeping, storage and storage moves.
var storagePlaceRoles = map[string]placeRole{
	"POST /projects/{id}/housekeeping": {do: "POST {at}/housekeeping", need: project.Maintainer, ok: 201},
	"GET /projects/{id}/storage":       {do: "GET {at}/storage", need: project.Owner + 1, ok: 200},

	"GET /projects/{id}/repository_storage_moves":                              {do: "GET {at}/repository_storage_moves", need: project.Owner + 1, ok: 200},
	"POST /projects/{id}/repository_storage_moves":                             {do: "POST {at}/repository_storage_moves", need: project.Owner + 1, ok: 400},
	"GET /projects/{id}/repository_storage_moves/{repository_storage_move_id}": {do: "GET {at}/repository_storage_moves/999999", need: project.Owner + 1, ok: 404},
	"GET /groups/{id}/repository_storage_moves":                                {do: "GET {at}/repository_storage_moves", need: project.Owner + 1, ok: 200},
	"POST /groups/{id}/repository_storage_moves":                               {do: "POST {at}/repository_storage_moves", need: project.Owner + 1, ok: 400},
	"GET /groups/{id}/repository_storage_moves/{repository_storage_move_id}":   {do: "GET {at}/repository_storage_moves/999999", need: project.Owner + 1, ok: 404},
}

// templateRoles are the rows of endpoints of the instance that belong to no user or
// project.
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

	"GET /project_repository_storage_moves":                                    adminRead("GET /project_repository_storage_moves"),
	"POST /project_repository_storage_moves":                                   admin("POST /project_repository_storage_moves", `{"source_storage_name":"none"}`, 400),
	"GET /project_repository_storage_moves/{repository_storage_move_id}":       {"GET /project_repository_storage_moves/999999", "", 401, 403, 404, 404, 403},
	"GET /projects/{id}/repository_storage_moves":                              adminRead("GET /projects/{project}/repository_storage_moves"),
	"POST /projects/{id}/repository_storage_moves":                             admin("POST /projects/{project}/repository_storage_moves", "", 400),
	"GET /projects/{id}/repository_storage_moves/{repository_storage_move_id}": {"GET /projects/{project}/repository_storage_moves/999999", "", 401, 403, 404, 404, 403},

	"GET /snippet_repository_storage_moves":                                    adminRead("GET /snippet_repository_storage_moves"),
	"POST /snippet_repository_storage_moves":                                   admin("POST /snippet_repository_storage_moves", `{"source_storage_name":"none"}`, 400),
	"GET /snippet_repository_storage_moves/{repository_storage_move_id}":       {"GET /snippet_repository_storage_moves/999999", "", 401, 403, 404, 404, 403},
	"GET /snippets/{id}/repository_storage_moves":                              {"GET /snippets/999999/repository_storage_moves", "", 401, 404, 404, 404, 403},
	"POST /snippets/{id}/repository_storage_moves":                             own("POST /snippets/999999/repository_storage_moves", "", 404),
	"GET /snippets/{id}/repository_storage_moves/{repository_storage_move_id}": {"GET /snippets/999999/repository_storage_moves/999999", "", 401, 404, 404, 404, 403},

	"GET /group_repository_storage_moves":                                    adminRead("GET /group_repository_storage_moves"),
	"POST /group_repository_storage_moves":                                   admin("POST /group_repository_storage_moves", `{"source_storage_name":"none"}`, 400),
	"GET /group_repository_storage_moves/{repository_storage_move_id}":       {"GET /group_repository_storage_moves/999999", "", 401, 403, 404, 404, 403},
	"GET /groups/{id}/repository_storage_moves":                              adminRead("GET /groups/{group}/repository_storage_moves"),
	"POST /groups/{id}/repository_storage_moves":                             admin("POST /groups/{group}/repository_storage_moves", "", 400),
	"GET /groups/{id}/repository_storage_moves/{repository_storage_move_id}": {"GET /groups/{group}/repository_storage_moves/999999", "", 401, 403, 404, 404, 403},

	"GET /users/{user_id}/contributed_projects": openAPI("GET /users/{user}/contributed_projects"),
}
