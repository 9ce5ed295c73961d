package api_test

import (
	"strings"

	"svc/internal/project"
)

// snippetWikiRows are the rows of snippets and wikis. Most use one that does not
// exist; TestSnippetNoteRoles has some.
var snippetWikiRows = func() map[string]ciRow {
	const snippets, one = "/projects/{id}/snippets", "/projects/{id}/snippets/{snippet_id}"
	const thread = one + "/discussions/{discussion_id}"
	rows := map[string]ciRow{
		"GET " + snippets:                   seen("/snippets", 200),
		"POST " + snippets:                  doneBy(project.Reporter, "/snippets", `{"title":"x","content":"x"}`, 201),
		"GET " + one:                        seen("/snippets/999999", 404),
		"PUT " + one:                        doneBy(project.NoAccess, "/snippets/999999", `{"title":"x"}`, 404),
		"DELETE " + one:                     doneBy(project.NoAccess, "/snippets/999999", "", 404),
		"GET " + one + "/raw":               seen("/snippets/999999/raw", 404),
		"GET " + one + "/user_agent_detail": doneBy(project.Owner+1, "/snippets/999999/user_agent_detail", "", 404),
		"GET " + one + "/files/{ref}/{file_path}/raw": seen("/snippets/999999/files/main/x/raw", 404),
		"GET " + one + "/notes":                       seen("/snippets/999999/notes", 404),
		"POST " + one + "/notes":                      doneBy(project.NoAccess, "/snippets/999999/notes", `{"body":"x"}`, 404),
		"GET " + one + "/notes/{note_id}":             seen("/snippets/999999/notes/1", 404),
		"PUT " + one + "/notes/{note_id}":             doneBy(project.NoAccess, "/snippets/999999/notes/1", `{"body":"x"}`, 404),
		"DELETE " + one + "/notes/{note_id}":          doneBy(project.NoAccess, "/snippets/999999/notes/1", "", 404),
		"GET " + one + "/discussions":                 seen("/snippets/999999/discussions", 404),
		"POST " + one + "/discussions":                doneBy(project.NoAccess, "/snippets/999999/discussions", `{"body":"x"}`, 404),
		"GET " + thread:                               seen("/snippets/999999/discussions/x", 404),
		"GET " + thread + "/notes":                    seen("/snippets/999999/discussions/x/notes", 404),
		"GET " + thread + "/notes/{note_id}":          seen("/snippets/999999/discussions/x/notes/1", 404),
		"POST " + thread + "/notes":                   doneBy(project.NoAccess, "/snippets/999999/discussions/x/notes", `{"body":"x"}`, 404),
		"PUT " + thread + "/notes/{note_id}":          doneBy(project.NoAccess, "/snippets/999999/discussions/x/notes/1", `{"body":"x"}`, 404),
		"DELETE " + thread + "/notes/{note_id}":       doneBy(project.NoAccess, "/snippets/999999/discussions/x/notes/1", "", 404),
	}
	for _, at := range []string{"/projects/{id}", "/groups/{id}"} {
		for endpoint, r := range map[string]ciRow{
			"GET {at}/wikis":              seen("/wikis", 200),
			"POST {at}/wikis":             doneBy(project.Developer, "/wikis", `{"title":"p{n}","content":"x"}`, 201),
			"GET {at}/wikis/{slug}":       seen("/wikis/none", 404),
			"PUT {at}/wikis/{slug}":       doneBy(project.Developer, "/wikis/none", `{"content":"x"}`, 404),
			"DELETE {at}/wikis/{slug}":    doneBy(project.Developer, "/wikis/none", "", 404),
			"POST {at}/wikis/attachments": {path: "/wikis/attachments", json: `{}`, ok: 400, bad: true},
		} {
			rows[strings.Replace(endpoint, "{at}", at, 1)] = r
		}
	}
	return rows
}()

var (
	snippetWikiRoles = rowRoles(snippetWikiRows, map[string]role{
		"GET /snippets":                                  ownRead("GET /snippets"),
		"POST /snippets":                                 own("POST /snippets", `{"title":"x","content":"x"}`, 201),
		"GET /snippets/public":                           ownRead("GET /snippets/public"),
		"GET /snippets/all":                              ownRead("GET /snippets/all"),
		"GET /snippets/{id}":                             {"GET /snippets/999999", "", 404, 404, 404, 404, 403},
		"PUT /snippets/{id}":                             own("PUT /snippets/999999", `{"title":"x"}`, 404),
		"DELETE /snippets/{id}":                          own("DELETE /snippets/999999", "", 404),
		"GET /snippets/{id}/raw":                         {"GET /snippets/999999/raw", "", 404, 404, 404, 404, 403},
		"GET /snippets/{id}/files/{ref}/{file_path}/raw": {"GET /snippets/999999/files/main/x/raw", "", 404, 404, 404, 404, 403},
		"GET /snippets/{id}/user_agent_detail":           {"GET /snippets/999999/user_agent_detail", "", 401, 403, 404, 404, 403},
	})
	snippetWikiPlaceRoles = rowPlaceRoles(snippetWikiRows)
)
