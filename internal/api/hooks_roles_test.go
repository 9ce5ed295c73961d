package api_test

import (
	"maps"
	"strings"

	"svc/internal/project"
)

// hookRows are the rows of webhooks and integrations of projects and groups.
var hookRows = func() map[string]ciRow {
	const webhook = `{"url":"https://hooks.example.org"}`
	rows := map[string]ciRow{}
	for at, manager := range map[string]project.Level{"/projects/{id}": project.Maintainer, "/groups/{id}": project.Owner} {
		one := "/hooks/{hook_id}"
		for endpoint, r := range map[string]struct {
			body string
			ok   int
		}{
			"GET /hooks": {"", 200}, "POST /hooks": {webhook, 201}, "GET " + one: {"", 404}, "PUT " + one: {webhook, 404}, "DELETE " + one: {"", 404},
			"POST " + one + "/test/{trigger}": {"", 404}, "GET " + one + "/events": {"", 404}, "POST " + one + "/events/{hook_log_id}/resend": {"", 404},
			"PUT " + one + "/custom_headers/{key}": {`{"value":"x"}`, 404}, "DELETE " + one + "/custom_headers/{key}": {"", 404},
			"PUT " + one + "/url_variables/{key}": {`{"value":"x"}`, 404}, "DELETE " + one + "/url_variables/{key}": {"", 404},
			"GET /integrations": {"", 200}, "GET /integrations/{slug}": {"", 404}, "DELETE /integrations/{slug}": {"", 404},
			"PUT /integrations/{slug}": {`{"webhook":"https://hooks.example.org/x"}`, 200},
			"GET /services":            {"", 200}, "GET /services/{slug}": {"", 404}, "DELETE /services/{slug}": {"", 404},
			"PUT /services/{slug}": {`{"webhook":"https://hooks.example.org/x"}`, 200},
		} {
			method, path, _ := strings.Cut(endpoint, " ")
			if strings.HasPrefix(at, "/groups") && strings.HasPrefix(path, "/services") {
				continue
			}
			// The slug of an integration that was not configured.
			slug := "mattermost"
			if method == "PUT" {
				slug = "slack"
			}
			filled := strings.NewReplacer("{hook_id}", "999999", "{trigger}", "push_events", "{hook_log_id}", "1", "{key}", "k", "{slug}", slug).Replace(path)
			rows[method+" "+at+path] = doneBy(manager, filled, r.body, r.ok)
		}
	}
	return rows
}()

var (
	hookRoles = func() map[string]role {
		rows := rowRoles(hookRows, map[string]role{})
		maps.Copy(rows, map[string]role{
			"GET /hooks":                                  adminRead("GET /hooks"),
			"POST /hooks":                                 admin("POST /hooks", `{"url":"https://hooks.example.org"}`, 201),
			"GET /hooks/{hook_id}":                        {"GET /hooks/999999", "", 401, 403, 404, 404, 403},
			"POST /hooks/{hook_id}":                       admin("POST /hooks/999999", "", 404),
			"PUT /hooks/{hook_id}":                        admin("PUT /hooks/999999", `{"name":"x"}`, 404),
			"DELETE /hooks/{hook_id}":                     admin("DELETE /hooks/999999", "", 404),
			"PUT /hooks/{hook_id}/url_variables/{key}":    admin("PUT /hooks/999999/url_variables/k", `{"value":"x"}`, 404),
			"DELETE /hooks/{hook_id}/url_variables/{key}": admin("DELETE /hooks/999999/url_variables/k", "", 404),
		})
		return rows
	}()
	hookPlaceRoles = rowPlaceRoles(hookRows)
)
