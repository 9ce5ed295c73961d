package api_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/errortrack"
	"svc/internal/project"
)

// monitorRows returns the rows of alerts, error tracking and exports of groups.
func monitorRows(t *testing.T) map[string]ciRow {
	t.Helper()
	return joined(t, alertRows, errorRows, transferRows)
}

// TestMonitorTokens sends requests to the endpoints of alerts, error tracking and
// exports with credentials that TestPlaceRoles does not use. Job tokens are in
// TestJobTokenMatrix.
func TestMonitorTokens(t *testing.T) {
	t.Parallel()
	rows := monitorRows(t)
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		auditorID, auditor := s.User(t, "auditor")
		maintainerID, _ := s.User(t, "maintainer")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d?auditor=true", auditorID), As: root, Status: 200})
		elsewhere := newProject(t, s, alice, "elsewhere", "")
		for i, tt := range []struct {
			who     string
			token   func(group, id int64) string
			status  int           // for all requests, unless 0
			scope   bool          // read-only
			project project.Level // role in the project
			group   project.Level // role in the group of the project
		}{
			{who: "an auditor", token: func(int64, int64) string { return auditor }, status: 403},
			{who: "a deploy token", status: 401, token: func(_, id int64) string {
				return secretOf(t, s, alice, fmt.Sprintf("POST /projects/%d/deploy_tokens", id), `{"name":"t","scopes":["read_repository"]}`, 201).Token
			}},
			{who: "a feed of nobody", status: 401, token: func(int64, int64) string { return "svcpat-unknown" }},
			{who: "a project's token from elsewhere", status: 404, token: func(int64, int64) string {
				return secretOf(t, s, alice, fmt.Sprintf("POST /projects/%d/access_tokens", elsewhere), `{"name":"t","scopes":["api"],"access_level":40}`, 201).Token
			}},
			{who: "a project's token that reads code", status: 403, token: func(_, id int64) string {
				return botToken(t, s, alice, "projects", id, project.Maintainer, "read_repository")
			}},
			{who: "a Developer's token of the project", project: project.Developer, token: func(_, id int64) string { return botToken(t, s, alice, "projects", id, project.Developer, "api") }},
			{who: "a Maintainer's token of the project", project: project.Maintainer, token: func(_, id int64) string { return botToken(t, s, alice, "projects", id, project.Maintainer, "api") }},
			{who: "one that reads", project: project.Maintainer, scope: true, token: func(_, id int64) string { return botToken(t, s, alice, "projects", id, project.Maintainer, "read_api") }},
			{who: "a Maintainer's token of the group", project: project.Maintainer, group: project.Maintainer, token: func(in, _ int64) string { return botToken(t, s, alice, "groups", in, project.Maintainer, "api") }},
			{who: "an Owner's token of the group", project: project.Owner, group: project.Owner, token: func(in, _ int64) string { return botToken(t, s, alice, "groups", in, project.Owner, "api") }},
			{who: "one that reads the group", project: project.Owner, group: project.Owner, scope: true, token: func(in, _ int64) string { return botToken(t, s, alice, "groups", in, project.Owner, "read_api") }},
			{who: "a person's token that reads", project: project.Maintainer, scope: true, token: func(_, id int64) string {
				enlist(t, s, id, maintainerID, project.Maintainer)
				return s.Token(t, maintainerID, "read_api")
			}},
			{who: "a person's token for users", status: 403, token: func(_, id int64) string { return s.Token(t, maintainerID, "read_user") }},
		} {
			in := group(t, s, alice, fmt.Sprintf("g%d", i), `,"visibility":"private"`)
			id := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"private"`, in))
			token := tt.token(in, id)
			for _, endpoint := range inOrder(rows) {
				r := rows[endpoint]
				method, path, _ := strings.Cut(endpoint, " ")
				at, level := fmt.Sprintf("/projects/%d", id), tt.project
				if strings.HasPrefix(path, "/groups/") {
					at, level = fmt.Sprintf("/groups/%d", in), tt.group
				}
				want := r.ok
				switch {
				case tt.status != 0:
					want = tt.status
				case tt.scope && method != "GET", level < r.need, r.bad && level < project.Developer:
					want = 403
				}
				var got apptest.Answer
				if r.bad { // without a file it would be refused before permissions are checked
					got = sendFile(t, s, method+" "+at+r.path, token)
					if want == r.ok {
						want = 404 // the alert does not exist
					}
				} else {
					got = s.Send(t, apptest.Call{Do: method + " " + at + r.path, JSON: r.json, As: token})
				}
				if got.Status != want {
					t.Errorf("%s, %s: %d, want %d: %s", tt.who, endpoint, got.Status, want, got.Body)
				}
			}
		}
	})
}

// botToken creates an access token of a project or group.
func botToken(t *testing.T, s *apptest.Server, as, places string, id int64, level project.Level, scope string) string {
	t.Helper()
	body := fmt.Sprintf(`{"name":"t","scopes":["%s"],"access_level":%d}`, scope, level)
	return secretOf(t, s, as, fmt.Sprintf("POST /%s/%d/access_tokens", places, id), body, 201).Token
}

// inOrder returns the endpoints in an order in which none changes the responses of
// later ones.
func inOrder(rows map[string]ciRow) []string {
	methods := []string{"GET", "PATCH", "DELETE", "POST", "PUT"}
	return slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		first, _, _ := strings.Cut(a, " ")
		second, _, _ := strings.Cut(b, " ")
		if first != second {
			return slices.Index(methods, first) - slices.Index(methods, second)
		}
		return strings.Compare(a, b)
	})
}

// TestMonitorAudit makes every change of alerts, error tracking and transfers of
// groups, and checks for its audit event.
func TestMonitorAudit(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		by := actorOf(t, s, alice)
		in := group(t, s, alice, "g", "")
		id := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d`, in))
		at := fmt.Sprintf("/projects/%d", id)
		one, _, _ := integration(t, s, alice, id, `{"name":"w"}`)
		integrations := fmt.Sprintf("%s/alert_management/http_integrations/%d", at, one)
		tr := &tracked{s, id, "", alice}
		s.Table(t, []apptest.Call{
			{Do: "PUT " + integrations, As: alice, JSON: `{"name":"v"}`, Status: 200},
			{Do: "POST " + integrations + "/test", As: alice, Status: 200},
			{Do: "POST " + integrations + "/reset_token", As: alice, Status: 201},
			{Do: "PUT " + at + "/alert_management_alerts/1", As: alice, JSON: fmt.Sprintf(`{"status":"acknowledged","assignee_id":%d}`, aliceID), Status: 200},
			{Do: "PUT " + at + "/alert_management/settings", As: alice, JSON: `{"send_email":false}`, Status: 200},
			{Name: "the same again", Do: "PUT " + at + "/alert_management_alerts/1", As: alice, JSON: `{"status":"acknowledged"}`, Status: 200},
			{Do: "DELETE " + integrations, As: alice, Status: 204},
			{Do: "PUT " + at + "/error_tracking/settings", As: alice, JSON: `{"active":true,"integrated":true}`, Status: 200},
		})
		ref := project.RefTo(id)
		if _, err := s.Alerts.CreateIncident(t.Context(), by, ref, 1); err != nil {
			t.Fatal(err)
		}
		var keys []struct {
			ID     int64
			Public string `json:"public_key"`
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/error_tracking/client_keys", As: alice, Status: 200}).JSON(t, &keys)
		tr.key = keys[0].Public
		tr.post(t, "envelope/", envelope(fmt.Sprintf(aPanic, 1, 1)), tr.auth())
		if err := s.Errors.Mark(t.Context(), by, ref, tr.errors(t, errortrack.Filter{})[0].ID, errortrack.Resolved); err != nil {
			t.Fatal(err)
		}
		if err := s.Errors.TurnKey(t.Context(), by, ref, keys[0].ID, false); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/error_tracking/client_keys/%d", at, keys[0].ID), As: alice, Status: 204})
		var list []struct {
			EventType string `json:"event_type"`
			AuthorID  int64  `json:"author_id"`
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/audit_events?per_page=100", As: alice, Status: 200}).JSON(t, &list)
		got := map[string]int{}
		for _, e := range list {
			if e.AuthorID == aliceID {
				got[e.EventType]++
			}
		}
		for kind, want := range map[string]int{
			"alert_integration_created": 1, "alert_integration_updated": 1, "alert_integration_tested": 1, "alert_integration_token_reset": 1, "alert_integration_deleted": 1,
			"alert_settings_updated": 1, "alert_updated": 2, "alert_incident_created": 1,
			"error_tracking_settings_updated": 2, "error_tracking_client_key_created": 1, "error_tracking_client_key_updated": 1, "error_tracking_client_key_destroyed": 1,
			"error_tracking_error_updated": 1,
		} {
			if got[kind] != want {
				t.Errorf("%s is recorded %d times, want %d: %v", kind, got[kind], want, got)
			}
		}

		id = imported(t, s, alice, exported(t, s, alice, in), "name", "Copy", "path", "copy")
		var made struct {
			GroupID int64 `json:"group_id"`
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /group_imports/%d", id), As: alice, Status: 200}).JSON(t, &made)
		events(t, s, alice, fmt.Sprintf("/groups/%d", in), fmt.Sprintf("group_export_created by %d", aliceID))
		events(t, s, alice, fmt.Sprintf("/groups/%d", made.GroupID), fmt.Sprintf("group_imported by %d", aliceID))
		events(t, s, root, "", fmt.Sprintf("group_import_created by %d", aliceID))
	})
}
