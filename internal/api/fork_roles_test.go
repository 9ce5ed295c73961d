package api_test

import "svc/internal/project"

// forkRoles are the rows of forks. They set a path, because a fork in the namespace
// of its source needs another path.
var forkRoles = map[string]role{
	"POST /projects/{id}/fork":                  {"POST /projects/{project}/fork", `{"path":"fork-{n}"}`, 401, 201, 201, 403, 403},
	"POST /projects/{id}/fork/{forked_from_id}": admin("POST /projects/{project}/fork/99999", "", 404),
	"DELETE /projects/{id}/fork":                admin("DELETE /projects/{project}/fork", "", 204),
}

// forkPlaceRoles are the rows of forks for members.
var forkPlaceRoles = map[string]placeRole{
	"POST /projects/{id}/fork":                  {do: "POST {at}/fork", json: `{"path":"fork-{id}"}`, code: true, ok: 201, also: map[string]int{"external": 403}},
	"POST /projects/{id}/fork/{forked_from_id}": {do: "POST {at}/fork/99999", need: administratorsOnly, ok: 404},
	"DELETE /projects/{id}/fork":                {do: "DELETE {at}/fork", need: project.Owner, ok: 204},
}
