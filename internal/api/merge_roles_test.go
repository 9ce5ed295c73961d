package api_test

import (
	"svc/internal/project"
)

const mergeAt = "/projects/{id}/merge_requests/{merge_request_iid}"

// mergeRows are the rows of merge requests. They ask for one that is not there:
// TestMergeRoles has one.
var mergeRows = map[string]ciRow{
	"GET /groups/{id}/merge_requests":                            seen("/merge_requests", 200),
	"POST /projects/{id}/merge_requests":                         {path: "/merge_requests", json: `{"source_branch":"none","target_branch":"main","title":"x"}`, code: true, need: project.Developer, ok: 400},
	"GET " + mergeAt:                                             seen("/merge_requests/99", 404),
	"PUT " + mergeAt:                                             doneBy(project.NoAccess, "/merge_requests/99", `{"title":"x"}`, 404),
	"DELETE " + mergeAt:                                          doneBy(project.NoAccess, "/merge_requests/99", "", 404),
	"POST " + mergeAt + "/subscribe":                             doneBy(project.NoAccess, "/merge_requests/99/subscribe", "", 404),
	"POST " + mergeAt + "/unsubscribe":                           doneBy(project.NoAccess, "/merge_requests/99/unsubscribe", "", 404),
	"GET " + mergeAt + "/participants":                           seen("/merge_requests/99/participants", 404),
	"GET " + mergeAt + "/reviewers":                              seen("/merge_requests/99/reviewers", 404),
	"GET " + mergeAt + "/closes_issues":                          seen("/merge_requests/99/closes_issues", 404),
	"GET " + mergeAt + "/related_issues":                         seen("/merge_requests/99/related_issues", 404),
	"GET " + mergeAt + "/commits":                                seen("/merge_requests/99/commits", 404),
	"GET " + mergeAt + "/changes":                                seen("/merge_requests/99/changes", 404),
	"GET " + mergeAt + "/diffs":                                  seen("/merge_requests/99/diffs", 404),
	"GET " + mergeAt + "/raw_diffs":                              seen("/merge_requests/99/raw_diffs", 404),
	"GET " + mergeAt + "/versions":                               seen("/merge_requests/99/versions", 404),
	"GET " + mergeAt + "/versions/{version_id}":                  seen("/merge_requests/99/versions/1", 404),
	"GET " + mergeAt + "/pipelines":                              seen("/merge_requests/99/pipelines", 404),
	"POST " + mergeAt + "/pipelines":                             doneBy(project.NoAccess, "/merge_requests/99/pipelines", "", 404),
	"GET " + mergeAt + "/merge_ref":                              seen("/merge_requests/99/merge_ref", 404),
	"PUT " + mergeAt + "/merge":                                  doneBy(project.NoAccess, "/merge_requests/99/merge", "", 404),
	"PUT " + mergeAt + "/rebase":                                 doneBy(project.NoAccess, "/merge_requests/99/rebase", "", 404),
	"POST " + mergeAt + "/cancel_merge_when_pipeline_succeeds":   doneBy(project.NoAccess, "/merge_requests/99/cancel_merge_when_pipeline_succeeds", "", 404),
	"GET " + issueAt + "/related_merge_requests":                 seen("/issues/99/related_merge_requests", 404),
	"GET " + issueAt + "/closed_by":                              seen("/issues/99/closed_by", 404),
	"GET /projects/{id}/repository/commits/{sha}/merge_requests": {path: "/repository/commits/none/merge_requests", code: true, open: true, ok: 404},
}

var (
	mergeRoles = rowRoles(mergeRows, map[string]role{
		"GET /merge_requests":               openAPI("GET /merge_requests"),
		"GET /projects/{id}/merge_requests": publicRole("GET", " /projects/{project}/merge_requests", "", true, project.NoAccess, 200),
	})
	mergePlaceRoles = func() map[string]placeRole {
		rows := rowPlaceRoles(mergeRows)
		rows["GET /projects/{id}/merge_requests"] = placeRole{do: "GET {at}/merge_requests", open: true, ok: 200, part: true}
		return rows
	}()
)
