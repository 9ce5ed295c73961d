package api_test

import (
	"strings"

	"svc/internal/project"
)

// refRow is an endpoint of branches, tags, commits, files or their rules, and the
// callers that can use it in the repository that fillRepository creates.
type refRow struct {
	path string // below the project
	json string
	code bool          // requires access to the repository
	open bool          // also for anonymous callers
	need project.Level // NoAccess: anyone who can see the project
	ok   int
}

const (
	commitAt           = "/projects/{id}/repository/commits/{sha}"
	commitDiscussionAt = commitAt + "/discussions/{discussion_id}"
	fileAt             = "/projects/{id}/repository/files/{file_path}"
)

func refRead(path string) refRow { return refRow{path: path, code: true, open: true, ok: 200} }

// refLacks returns the row of a read of an object that does not exist.
func refLacks(path string) refRow { return refRow{path: path, code: true, open: true, ok: 404} }

func refWrite(path, json string, ok int) refRow {
	return refRow{path: path, json: json, code: true, need: project.Developer, ok: ok}
}

func ruleRow(path, json string, need project.Level, ok int) refRow {
	return refRow{path: path, json: json, need: need, ok: ok}
}

var refRows = map[string]refRow{
	"GET /projects/{id}/repository/branches":             refRead("/repository/branches"),
	"GET /projects/{id}/repository/branches/{branch}":    refRead("/repository/branches/main"),
	"POST /projects/{id}/repository/branches":            refWrite("/repository/branches", `{"branch":"b","ref":"main"}`, 201),
	"DELETE /projects/{id}/repository/branches/{branch}": refWrite("/repository/branches/gone", "", 404),
	"DELETE /projects/{id}/repository/merged_branches":   refWrite("/repository/merged_branches", "", 202),

	"GET /projects/{id}/repository/tags":                      refRead("/repository/tags"),
	"GET /projects/{id}/repository/tags/{tag_name}":           refRead("/repository/tags/v1.0.0"),
	"GET /projects/{id}/repository/tags/{tag_name}/signature": refLacks("/repository/tags/v1.0.0/signature"),
	"POST /projects/{id}/repository/tags":                     refWrite("/repository/tags", `{"tag_name":"v2","ref":"main"}`, 201),
	"DELETE /projects/{id}/repository/tags/{tag_name}":        refWrite("/repository/tags/v1.0.0", "", 204),

	"GET /projects/{id}/repository/commits": refRead("/repository/commits"),
	"POST /projects/{id}/repository/commits": refWrite("/repository/commits",
		`{"branch":"main","commit_message":"m","actions":[{"action":"create","file_path":"z","content":"z"}]}`, 201),
	"GET " + commitAt:                   refRead("/repository/commits/main"),
	"GET " + commitAt + "/diff":         refRead("/repository/commits/main/diff"),
	"GET " + commitAt + "/refs":         refRead("/repository/commits/main/refs"),
	"GET " + commitAt + "/sequence":     refRead("/repository/commits/main/sequence"),
	"GET " + commitAt + "/signature":    refLacks("/repository/commits/main/signature"),
	"GET " + commitAt + "/comments":     refRead("/repository/commits/main/comments"),
	"GET " + commitAt + "/statuses":     refRead("/repository/commits/main/statuses"),
	"POST " + commitAt + "/cherry_pick": refWrite("/repository/commits/v1.0.0/cherry_pick", `{"branch":"gone"}`, 404),
	"POST " + commitAt + "/revert":      refWrite("/repository/commits/main/revert", `{"branch":"main"}`, 201),
	"POST " + commitAt + "/comments":    {path: "/repository/commits/main/comments", json: `{"note":"n"}`, code: true, ok: 201},

	"GET " + commitAt + "/discussions":                  refRead("/repository/commits/main/discussions"),
	"POST " + commitAt + "/discussions":                 {path: "/repository/commits/main/discussions", json: `{"body":"n"}`, code: true, ok: 201},
	"GET " + commitDiscussionAt:                         refLacks("/repository/commits/main/discussions/x"),
	"GET " + commitDiscussionAt + "/notes":              refLacks("/repository/commits/main/discussions/x/notes"),
	"POST " + commitDiscussionAt + "/notes":             {path: "/repository/commits/main/discussions/x/notes", json: `{"body":"n"}`, code: true, ok: 404},
	"GET " + commitDiscussionAt + "/notes/{note_id}":    refLacks("/repository/commits/main/discussions/x/notes/1"),
	"PUT " + commitDiscussionAt + "/notes/{note_id}":    {path: "/repository/commits/main/discussions/x/notes/1", json: `{"body":"n"}`, code: true, ok: 404},
	"DELETE " + commitDiscussionAt + "/notes/{note_id}": {path: "/repository/commits/main/discussions/x/notes/1", code: true, ok: 404},
	"POST /projects/{id}/statuses/{sha}":                refWrite("/statuses/main", `{"state":"success"}`, 201),

	"GET " + fileAt:            refRead("/repository/files/x?ref=main"),
	"GET " + fileAt + "/raw":   refRead("/repository/files/x/raw?ref=main"),
	"GET " + fileAt + "/blame": refRead("/repository/files/x/blame?ref=main"),
	"POST " + fileAt:           refWrite("/repository/files/z", `{"branch":"main","commit_message":"m","content":"z"}`, 201),
	"PUT " + fileAt:            refWrite("/repository/files/x", `{"branch":"main","commit_message":"m","content":"z"}`, 200),
	"DELETE " + fileAt:         refWrite("/repository/files/x?branch=main&commit_message=m", "", 204),

	"PUT /projects/{id}/repository/submodules/{submodule}": refWrite("/repository/submodules/none",
		`{"branch":"main","commit_sha":"1111111111111111111111111111111111111111"}`, 400),

	"GET /projects/{id}/protected_branches":           ruleRow("/protected_branches", "", project.Developer, 200),
	"POST /projects/{id}/protected_branches":          ruleRow("/protected_branches", `{"name":"x"}`, project.Maintainer, 201),
	"GET /projects/{id}/protected_branches/{name}":    ruleRow("/protected_branches/x", "", project.Developer, 404),
	"PATCH /projects/{id}/protected_branches/{name}":  ruleRow("/protected_branches/x", `{"allow_force_push":true}`, project.Maintainer, 404),
	"DELETE /projects/{id}/protected_branches/{name}": ruleRow("/protected_branches/x", "", project.Maintainer, 404),
	"GET /projects/{id}/protected_tags":               ruleRow("/protected_tags", "", project.Developer, 200),
	"POST /projects/{id}/protected_tags":              ruleRow("/protected_tags", `{"name":"x"}`, project.Maintainer, 201),
	"GET /projects/{id}/protected_tags/{name}":        ruleRow("/protected_tags/x", "", project.Developer, 404),
	"DELETE /projects/{id}/protected_tags/{name}":     ruleRow("/protected_tags/x", "", project.Maintainer, 404),
	"GET /projects/{id}/push_rule":                    ruleRow("/push_rule", "", project.Maintainer, 200),
	"POST /projects/{id}/push_rule":                   ruleRow("/push_rule", `{"max_file_size":1}`, project.Maintainer, 201),
	"PUT /projects/{id}/push_rule":                    ruleRow("/push_rule", `{"max_file_size":1}`, project.Maintainer, 404),
	"DELETE /projects/{id}/push_rule":                 ruleRow("/push_rule", "", project.Maintainer, 404),
}

var refRoles = func() map[string]role {
	rows := map[string]role{}
	for endpoint, r := range refRows {
		method, _, _ := strings.Cut(endpoint, " ")
		place := " /projects/{project}"
		if r.code {
			place = " /projects/{code}"
		}
		rows[endpoint] = publicRole(method, place+r.path, r.json, r.open, r.need, r.ok)
	}
	return rows
}()

var refPlaceRoles = func() map[string]placeRole {
	rows := map[string]placeRole{}
	for endpoint, r := range refRows {
		method, _, _ := strings.Cut(endpoint, " ")
		rows[endpoint] = placeRole{do: method + " {at}" + r.path, json: r.json, open: r.open, need: r.need, ok: r.ok, code: r.code}
	}
	return rows
}()
