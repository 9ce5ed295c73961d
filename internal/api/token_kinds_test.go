package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// TestRulesByTokenKind sends requests about hidden refs, pipeline variables,
// settings and archived projects with every kind of token.
func TestRulesByTokenKind(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		h := newHidden(t, s)
		owner, developer, at := h.tokens["owner"], h.ids["developer"], fmt.Sprintf("/projects/%d", h.id)
		token := func(do, as, body string) string {
			t.Helper()
			var made struct{ Token string }
			s.Check(t, apptest.Call{Do: do, As: as, JSON: body, Status: 201}).JSON(t, &made)
			return made.Token
		}
		g := group(t, s, owner, "partners", "")
		s.Check(t, apptest.Call{Do: "POST " + at + "/share", As: owner, JSON: fmt.Sprintf(`{"group_id":%d,"group_access":30}`, g), Status: 201})
		other := group(t, s, h.tokens["outsider"], "strangers", "")
		bot := `{"name":"bot","scopes":["api"],"access_level":%d}`
		bearer := func(token string) map[string]string { return map[string]string{"Authorization": "Bearer " + token} }

		// The status of each request.
		kinds := []struct {
			name, token string
			header      map[string]string
			read        int // a commit that is only reachable from a merge request
			variables   int // a pipeline with variables, for Maintainers
			settings    int // of the instance
			schedule    int // in the archived project
		}{
			{name: "personal, Developer", token: h.tokens["developer"], read: 200, variables: 400, settings: 403, schedule: 403},
			{name: "personal, Guest", token: h.tokens["guest"], read: 404, variables: 403, settings: 403, schedule: 403},
			{name: "personal, no role", token: h.tokens["outsider"], read: 404, variables: 403, settings: 403, schedule: 403},
			{name: "read_api", token: s.Token(t, developer, "read_api"), read: 200, variables: 403, settings: 403, schedule: 403},
			{name: "read_user", token: s.Token(t, developer, "read_user"), read: 403, variables: 403, settings: 403, schedule: 403},
			{name: "read_repository of no role", token: s.Token(t, h.ids["outsider"], "read_repository"), read: 403, variables: 403, settings: 403, schedule: 403},
			{name: "OAuth, Developer", header: bearer(oauthToken(t, s, developer, "developer", "api")), read: 200, variables: 400, settings: 403, schedule: 403},
			{name: "OAuth, no role", header: bearer(oauthToken(t, s, h.ids["outsider"], "outsider", "api")), read: 404, variables: 403, settings: 403, schedule: 403},
			{name: "impersonation, Developer", token: token(fmt.Sprintf("POST /users/%d/impersonation_tokens", developer), root, `{"name":"i","scopes":["api"]}`),
				read: 200, variables: 400, settings: 403, schedule: 403},
			{name: "project access token, Maintainer", token: token("POST "+at+"/access_tokens", owner, fmt.Sprintf(bot, 40)), read: 200, variables: 201, settings: 403, schedule: 403},
			{name: "project access token, Guest", token: token("POST "+at+"/access_tokens", owner, fmt.Sprintf(bot, 10)), read: 404, variables: 403, settings: 403, schedule: 403},
			{name: "group access token, through a share", token: token(fmt.Sprintf("POST /groups/%d/access_tokens", g), owner, fmt.Sprintf(bot, 40)),
				read: 200, variables: 400, settings: 403, schedule: 403},
			{name: "group access token, another group", token: token(fmt.Sprintf("POST /groups/%d/access_tokens", other), h.tokens["outsider"], fmt.Sprintf(bot, 50)),
				read: 404, variables: 403, settings: 403, schedule: 403},
			{name: "deploy token", token: token("POST "+at+"/deploy_tokens", owner, `{"name":"d","scopes":["read_repository"]}`), read: 401, variables: 401, settings: 401, schedule: 401},
			{name: "job token", header: map[string]string{"JOB-TOKEN": h.jobToken("developer")}, read: 401, variables: 401, settings: 401, schedule: 401},
			{name: "runner token", token: token("POST /user/runners", root, `{"runner_type":"instance_type"}`), read: 401, variables: 401, settings: 401, schedule: 401},
			{name: "anonymous", read: 404, variables: 401, settings: 401, schedule: 401},
			{name: "administrator", token: root, read: 200, variables: 201, settings: 200, schedule: 403},
		}
		check := func(what, do, body string, want func(i int) int) {
			for i, k := range kinds {
				s.Check(t, apptest.Call{Name: k.name + ": " + what, Do: do, As: k.token, Header: k.header, JSON: body, Status: want(i)})
			}
		}
		s.Check(t, apptest.Call{Do: "PUT " + at, As: owner, JSON: `{"ci_pipeline_variables_minimum_override_role":"maintainer"}`, Status: 200})
		s.Check(t, apptest.Call{Do: "POST " + at + "/repository/files/.gitlab-ci.yml", As: owner, Status: 201,
			JSON: `{"branch":"main","commit_message":"ci","content":"test: {script: [x]}\n"}`})
		check("hidden commit", h.call("GET {at}/repository/commits/{rev}", h.head), "", func(i int) int { return kinds[i].read })
		check("variables", "POST "+at+"/pipeline", `{"ref":"main","variables":[{"key":"A","value":"b"}]}`, func(i int) int { return kinds[i].variables })
		check("settings", "GET /application/settings", "", func(i int) int { return kinds[i].settings })
		s.Check(t, apptest.Call{Do: "POST " + at + "/archive", As: owner, Status: 201})
		check("schedule in an archived project", "POST "+at+"/pipeline_schedules", `{"description":"d","ref":"main","cron":"0 1 * * *"}`, func(i int) int { return kinds[i].schedule })
	})
}
