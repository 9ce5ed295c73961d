package api_test

import (
	"strings"

	"svc/internal/project"
)

// inboxRows are the rows of to-do items and emoji reactions. They use objects that
// do not exist; TestIssueRoles and TestAwards use existing ones.
var inboxRows = func() map[string]ciRow {
	rows := map[string]ciRow{
		"POST " + issueAt + "/todo": doneBy(project.NoAccess, "/issues/99/todo", "", 404),
		"POST " + mergeAt + "/todo": doneBy(project.NoAccess, "/merge_requests/99/todo", "", 404),
	}
	for at, path := range map[string]string{
		issueAt: "/issues/99", mergeAt: "/merge_requests/99", "/projects/{id}/snippets/{snippet_id}": "/snippets/999999",
	} {
		for _, on := range []string{"", "/notes/{note_id}"} {
			there := path + strings.Replace(on, "{note_id}", "1", 1) + "/award_emoji"
			rows["GET "+at+on+"/award_emoji"] = seen(there, 404)
			rows["GET "+at+on+"/award_emoji/{award_id}"] = seen(there+"/1", 404)
			rows["POST "+at+on+"/award_emoji"] = doneBy(project.NoAccess, there, `{"name":"tada"}`, 404)
			rows["DELETE "+at+on+"/award_emoji/{award_id}"] = doneBy(project.NoAccess, there+"/1", "", 404)
		}
	}
	return rows
}()

var (
	inboxRoles = rowRoles(inboxRows, map[string]role{
		"GET /user/preferences":         userRead("GET /user/preferences"),
		"PUT /user/preferences":         own("PUT /user/preferences", `{"view_diffs_file_by_file":true}`, 200),
		"GET /todos":                    ownRead("GET /todos"),
		"POST /todos/{id}/mark_as_done": own("POST /todos/999999/mark_as_done", "", 404),
		"POST /todos/mark_as_done":      own("POST /todos/mark_as_done", "", 204),
	})
	inboxPlaceRoles = rowPlaceRoles(inboxRows)
)
