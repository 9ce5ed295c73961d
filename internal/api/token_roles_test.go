package api_test

import "svc/internal/project"

// tokenRoles are the rows of access tokens, deploy tokens, deploy keys, avatars and
// project users.
var tokenRoles = map[string]role{
	"GET /projects/{id}/access_tokens":                                                      adminRead("GET /projects/{project}/access_tokens"),
	"POST /projects/{id}/access_tokens":                                                     admin("POST /projects/{project}/access_tokens", `{"name":"t","scopes":["api"]}`, 201),
	"GET /projects/{id}/access_tokens/{token_id}":                                           {"GET /projects/{project}/access_tokens/99999", "", 401, 403, 404, 404, 403},
	"DELETE /projects/{id}/access_tokens/{token_id}":                                        admin("DELETE /projects/{project}/access_tokens/99999", "", 404),
	"POST /projects/{id}/access_tokens/{token_id}/rotate":                                   admin("POST /projects/{project}/access_tokens/99999/rotate", "", 404),
	"POST /projects/{id}/access_tokens/self/rotate":                                         own("POST /projects/{project}/access_tokens/self/rotate", "", 405),
	"GET /service_accounts":                                                                 adminRead("GET /service_accounts"),
	"POST /service_accounts":                                                                admin("POST /service_accounts", `{"name":"s"}`, 201),
	"PATCH /service_accounts/{user_id}":                                                     admin("PATCH /service_accounts/99999", `{"name":"s"}`, 404),
	"GET /groups/{id}/service_accounts":                                                     adminRead("GET /groups/{group}/service_accounts"),
	"POST /groups/{id}/service_accounts":                                                    admin("POST /groups/{group}/service_accounts", `{"name":"s"}`, 201),
	"PATCH /groups/{id}/service_accounts/{user_id}":                                         admin("PATCH /groups/{group}/service_accounts/99999", `{"name":"s"}`, 404),
	"DELETE /groups/{id}/service_accounts/{user_id}":                                        admin("DELETE /groups/{group}/service_accounts/99999", "", 404),
	"GET /groups/{id}/service_accounts/{user_id}/personal_access_tokens":                    {"GET /groups/{group}/service_accounts/99999/personal_access_tokens", "", 401, 403, 404, 404, 403},
	"POST /groups/{id}/service_accounts/{user_id}/personal_access_tokens":                   admin("POST /groups/{group}/service_accounts/99999/personal_access_tokens", `{"name":"t","scopes":["api"]}`, 404),
	"DELETE /groups/{id}/service_accounts/{user_id}/personal_access_tokens/{token_id}":      admin("DELETE /groups/{group}/service_accounts/99999/personal_access_tokens/1", "", 404),
	"POST /groups/{id}/service_accounts/{user_id}/personal_access_tokens/{token_id}/rotate": admin("POST /groups/{group}/service_accounts/99999/personal_access_tokens/1/rotate", "", 404),
	"GET /groups/{id}/merge_request_approval_setting":                                       {"GET /groups/{group}/merge_request_approval_setting", "", 401, 403, 200, 200, 403},
	"PUT /groups/{id}/merge_request_approval_setting":                                       admin("PUT /groups/{group}/merge_request_approval_setting", `{"allow_author_approval":true}`, 200),
	"GET /groups/{id}/push_rule":                                                            {"GET /groups/{group}/push_rule", "", 401, 403, 404, 404, 403},
	"POST /groups/{id}/push_rule":                                                           admin("POST /groups/{group}/push_rule", `{"max_file_size":1}`, 201),
	"PUT /groups/{id}/push_rule":                                                            admin("PUT /groups/{group}/push_rule", `{"max_file_size":2}`, 404),
	"DELETE /groups/{id}/push_rule":                                                         admin("DELETE /groups/{group}/push_rule", "", 404),
	"GET /groups/{id}/protected_branches":                                                   adminRead("GET /groups/{group}/protected_branches"),
	"POST /groups/{id}/protected_branches":                                                  admin("POST /groups/{group}/protected_branches", `{"name":"x"}`, 201),
	"GET /groups/{id}/protected_branches/{name}":                                            {"GET /groups/{group}/protected_branches/none", "", 401, 403, 404, 404, 403},
	"PATCH /groups/{id}/protected_branches/{name}":                                          admin("PATCH /groups/{group}/protected_branches/none", `{"allow_force_push":true}`, 404),
	"DELETE /groups/{id}/protected_branches/{name}":                                         admin("DELETE /groups/{group}/protected_branches/none", "", 404),
	"GET /groups/{id}/access_tokens":                                                        adminRead("GET /groups/{group}/access_tokens"),
	"POST /groups/{id}/access_tokens":                                                       admin("POST /groups/{group}/access_tokens", `{"name":"t","scopes":["api"]}`, 201),
	"GET /groups/{id}/access_tokens/{token_id}":                                             {"GET /groups/{group}/access_tokens/99999", "", 401, 403, 404, 404, 403},
	"DELETE /groups/{id}/access_tokens/{token_id}":                                          admin("DELETE /groups/{group}/access_tokens/99999", "", 404),
	"POST /groups/{id}/access_tokens/{token_id}/rotate":                                     admin("POST /groups/{group}/access_tokens/99999/rotate", "", 404),
	"POST /groups/{id}/access_tokens/self/rotate":                                           own("POST /groups/{group}/access_tokens/self/rotate", "", 405),

	"GET /deploy_tokens":                             adminRead("GET /deploy_tokens"),
	"GET /projects/{id}/deploy_tokens":               adminRead("GET /projects/{project}/deploy_tokens"),
	"POST /projects/{id}/deploy_tokens":              admin("POST /projects/{project}/deploy_tokens", `{"name":"t","scopes":["read_repository"]}`, 201),
	"GET /projects/{id}/deploy_tokens/{token_id}":    {"GET /projects/{project}/deploy_tokens/99999", "", 401, 403, 404, 404, 403},
	"DELETE /projects/{id}/deploy_tokens/{token_id}": admin("DELETE /projects/{project}/deploy_tokens/99999", "", 404),
	"GET /groups/{id}/deploy_tokens":                 adminRead("GET /groups/{group}/deploy_tokens"),
	"POST /groups/{id}/deploy_tokens":                admin("POST /groups/{group}/deploy_tokens", `{"name":"t","scopes":["read_repository"]}`, 201),
	"GET /groups/{id}/deploy_tokens/{token_id}":      {"GET /groups/{group}/deploy_tokens/99999", "", 401, 403, 404, 404, 403},
	"DELETE /groups/{id}/deploy_tokens/{token_id}":   admin("DELETE /groups/{group}/deploy_tokens/99999", "", 404),

	"GET /deploy_keys":                                adminRead("GET /deploy_keys"),
	"POST /deploy_keys":                               admin("POST /deploy_keys", `{"title":"k","key":"{key}"}`, 201),
	"GET /users/{user_id}/project_deploy_keys":        {"GET /users/{user}/project_deploy_keys", "", 401, 403, 403, 403, 403},
	"GET /projects/{id}/deploy_keys":                  adminRead("GET /projects/{project}/deploy_keys"),
	"POST /projects/{id}/deploy_keys":                 admin("POST /projects/{project}/deploy_keys", `{"title":"k","key":"{key}"}`, 201),
	"GET /projects/{id}/deploy_keys/{key_id}":         {"GET /projects/{project}/deploy_keys/99999", "", 401, 403, 404, 404, 403},
	"PUT /projects/{id}/deploy_keys/{key_id}":         admin("PUT /projects/{project}/deploy_keys/99999", `{"title":"x"}`, 404),
	"DELETE /projects/{id}/deploy_keys/{key_id}":      admin("DELETE /projects/{project}/deploy_keys/99999", "", 404),
	"POST /projects/{id}/deploy_keys/{key_id}/enable": admin("POST /projects/{project}/deploy_keys/99999/enable", "", 404),

	"GET /projects/{id}/avatar":               {"GET /projects/{project}/avatar", "", 404, 404, 404, 404, 403},
	"GET /groups/{id}/avatar":                 {"GET /groups/{group}/avatar", "", 404, 404, 404, 404, 403},
	"GET /projects/{id}/users":                ownRead("GET /projects/{project}/users"),
	"GET /projects/{id}/groups":               openAPI("GET /projects/{project}/groups"),
	"GET /projects/{id}/invited_groups":       openAPI("GET /projects/{project}/invited_groups"),
	"GET /groups/{id}/invited_groups":         openAPI("GET /groups/{group}/invited_groups"),
	"GET /groups/{id}/projects/shared":        openAPI("GET /groups/{group}/projects/shared"),
	"POST /groups/{id}/projects/{project_id}": admin("POST /groups/{group}/projects/{project}", "", 201),
	"POST /projects/user/{user_id}":           admin("POST /projects/user/{user}", `{"path":"p{n}"}`, 201),
}

// aKey is a public key; adding it again is a conflict.
const aKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJwf+yr9myVn/8sKyQGMwFHrvoXuvFKuC2Zm/cSfVY7C"

// administratorsOnly is a level above all roles: only administrators pass it.
const administratorsOnly = project.Owner + 1

// tokenPlaceRoles are the rows of the same endpoints for members.
var tokenPlaceRoles = map[string]placeRole{
	"GET /projects/{id}/deploy_tokens":               {do: "GET {at}/deploy_tokens", need: project.Maintainer, ok: 200},
	"POST /projects/{id}/deploy_tokens":              {do: "POST {at}/deploy_tokens", json: `{"name":"t","scopes":["read_repository"]}`, need: project.Maintainer, ok: 201},
	"GET /projects/{id}/deploy_tokens/{token_id}":    {do: "GET {at}/deploy_tokens/99999", need: project.Maintainer, ok: 404},
	"DELETE /projects/{id}/deploy_tokens/{token_id}": {do: "DELETE {at}/deploy_tokens/99999", need: project.Maintainer, ok: 404},
	"GET /groups/{id}/deploy_tokens":                 {do: "GET {at}/deploy_tokens", need: project.Maintainer, ok: 200},
	"POST /groups/{id}/deploy_tokens":                {do: "POST {at}/deploy_tokens", json: `{"name":"t","scopes":["read_repository"]}`, need: project.Owner, ok: 201},
	"GET /groups/{id}/deploy_tokens/{token_id}":      {do: "GET {at}/deploy_tokens/99999", need: project.Maintainer, ok: 404},
	"DELETE /groups/{id}/deploy_tokens/{token_id}":   {do: "DELETE {at}/deploy_tokens/99999", need: project.Owner, ok: 404},

	"GET /projects/{id}/deploy_keys":                  {do: "GET {at}/deploy_keys", need: project.Maintainer, ok: 200},
	"POST /projects/{id}/deploy_keys":                 {do: "POST {at}/deploy_keys", json: `{"title":"k","key":"` + aKey + `"}`, need: project.Maintainer, ok: 201},
	"GET /projects/{id}/deploy_keys/{key_id}":         {do: "GET {at}/deploy_keys/99999", need: project.Maintainer, ok: 404},
	"PUT /projects/{id}/deploy_keys/{key_id}":         {do: "PUT {at}/deploy_keys/99999", json: `{"title":"x"}`, need: project.Maintainer, ok: 404},
	"DELETE /projects/{id}/deploy_keys/{key_id}":      {do: "DELETE {at}/deploy_keys/99999", need: project.Maintainer, ok: 404},
	"POST /projects/{id}/deploy_keys/{key_id}/enable": {do: "POST {at}/deploy_keys/99999/enable", need: project.Maintainer, ok: 404},

	"GET /projects/{id}/avatar":               {do: "GET {at}/avatar", open: true, ok: 404},
	"GET /groups/{id}/avatar":                 {do: "GET {at}/avatar", open: true, ok: 404},
	"GET /projects/{id}/users":                {do: "GET {at}/users", ok: 200},
	"GET /projects/{id}/groups":               {do: "GET {at}/groups", open: true, ok: 200},
	"GET /projects/{id}/invited_groups":       {do: "GET {at}/invited_groups", open: true, ok: 200},
	"GET /groups/{id}/invited_groups":         {do: "GET {at}/invited_groups", open: true, ok: 200},
	"GET /groups/{id}/projects/shared":        {do: "GET {at}/projects/shared", open: true, ok: 200},
	"POST /groups/{id}/projects/{project_id}": {do: "POST {at}/projects/99999", need: administratorsOnly, ok: 404},
}

// accessTokenRoles returns the rows that projects and groups have in common; manager
// is the level that can manage tokens.
func accessTokenRoles(at string, manager project.Level) map[string]placeRole {
	return map[string]placeRole{
		"GET " + at + "/access_tokens":                    {do: "GET {at}/access_tokens", need: manager, ok: 200},
		"POST " + at + "/access_tokens":                   {do: "POST {at}/access_tokens", json: `{"name":"t","scopes":["api"],"access_level":40}`, need: manager, ok: 201},
		"GET " + at + "/access_tokens/{token_id}":         {do: "GET {at}/access_tokens/99999", need: manager, ok: 404},
		"DELETE " + at + "/access_tokens/{token_id}":      {do: "DELETE {at}/access_tokens/99999", need: manager, ok: 404},
		"POST " + at + "/access_tokens/{token_id}/rotate": {do: "POST {at}/access_tokens/99999/rotate", need: manager, ok: 404},
		// A personal access token is not a token of the place.
		"POST " + at + "/access_tokens/self/rotate": {do: "POST {at}/access_tokens/self/rotate", ok: 405},
	}
}
