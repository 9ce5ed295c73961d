package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

const (
	issueAt      = "/projects/{id}/issues/{issue_iid}"
	discussionAt = issueAt + "/discussions/{discussion_id}"
)

// planRows are the rows of issues, boards, milestones and labels. Those of issues
// use one that does not exist; TestIssueRoles has one.
var planRows = func() map[string]ciRow {
	rows := map[string]ciRow{
		"GET /projects/{id}/issues":                                         seen("/issues", 200),
		"GET /groups/{id}/issues":                                           seen("/issues", 200),
		"GET /projects/{id}/issues_statistics":                              seen("/issues_statistics", 200),
		"GET /groups/{id}/issues_statistics":                                seen("/issues_statistics", 200),
		"POST /projects/{id}/issues":                                        doneBy(project.NoAccess, "/issues", `{"title":"x"}`, 201),
		"GET " + issueAt:                                                    seen("/issues/99", 404),
		"PUT " + issueAt:                                                    doneBy(project.NoAccess, "/issues/99", `{"title":"x"}`, 404),
		"DELETE " + issueAt:                                                 doneBy(project.NoAccess, "/issues/99", "", 404),
		"PUT " + issueAt + "/reorder":                                       doneBy(project.NoAccess, "/issues/99/reorder", `{"move_after_id":1}`, 404),
		"POST " + issueAt + "/move":                                         doneBy(project.NoAccess, "/issues/99/move", `{"to_project_id":1}`, 404),
		"POST " + issueAt + "/clone":                                        doneBy(project.NoAccess, "/issues/99/clone", `{"to_project_id":1}`, 404),
		"POST " + issueAt + "/subscribe":                                    doneBy(project.NoAccess, "/issues/99/subscribe", "", 404),
		"POST " + issueAt + "/unsubscribe":                                  doneBy(project.NoAccess, "/issues/99/unsubscribe", "", 404),
		"POST " + issueAt + "/time_estimate":                                doneBy(project.NoAccess, "/issues/99/time_estimate", `{"duration":"1h"}`, 404),
		"POST " + issueAt + "/reset_time_estimate":                          doneBy(project.NoAccess, "/issues/99/reset_time_estimate", "", 404),
		"POST " + issueAt + "/add_spent_time":                               doneBy(project.NoAccess, "/issues/99/add_spent_time", `{"duration":"1h"}`, 404),
		"POST " + issueAt + "/reset_spent_time":                             doneBy(project.NoAccess, "/issues/99/reset_spent_time", "", 404),
		"GET " + issueAt + "/time_stats":                                    seen("/issues/99/time_stats", 404),
		"GET " + issueAt + "/resource_label_events":                         seen("/issues/99/resource_label_events", 404),
		"GET " + issueAt + "/resource_label_events/{resource_event_id}":     seen("/issues/99/resource_label_events/1", 404),
		"GET " + issueAt + "/resource_state_events":                         seen("/issues/99/resource_state_events", 404),
		"GET " + issueAt + "/resource_state_events/{resource_event_id}":     seen("/issues/99/resource_state_events/1", 404),
		"GET " + issueAt + "/resource_milestone_events":                     seen("/issues/99/resource_milestone_events", 404),
		"GET " + issueAt + "/resource_milestone_events/{resource_event_id}": seen("/issues/99/resource_milestone_events/1", 404),
		"GET " + issueAt + "/resource_weight_events":                        seen("/issues/99/resource_weight_events", 404),
		"GET " + issueAt + "/resource_weight_events/{resource_event_id}":    seen("/issues/99/resource_weight_events/1", 404),
		"GET /projects/{id}/templates/{type}":                               {path: "/templates/issues", open: true, code: true, ok: 200},
		"GET /projects/{id}/templates/{type}/{name}":                        {path: "/templates/issues/none", open: true, code: true, ok: 404},
		"GET " + issueAt + "/participants":                                  seen("/issues/99/participants", 404),
		"GET " + issueAt + "/links":                                         seen("/issues/99/links", 404),
		"POST " + issueAt + "/links":                                        doneBy(project.NoAccess, "/issues/99/links", `{"target_project_id":1,"target_issue_iid":1}`, 404),
		"GET " + issueAt + "/links/{issue_link_id}":                         seen("/issues/99/links/1", 404),
		"DELETE " + issueAt + "/links/{issue_link_id}":                      doneBy(project.NoAccess, "/issues/99/links/1", "", 404),
		"GET " + issueAt + "/notes":                                         seen("/issues/99/notes", 404),
		"POST " + issueAt + "/notes":                                        doneBy(project.NoAccess, "/issues/99/notes", `{"body":"x"}`, 404),
		"GET " + issueAt + "/notes/{note_id}":                               seen("/issues/99/notes/1", 404),
		"PUT " + issueAt + "/notes/{note_id}":                               doneBy(project.NoAccess, "/issues/99/notes/1", `{"body":"x"}`, 404),
		"DELETE " + issueAt + "/notes/{note_id}":                            doneBy(project.NoAccess, "/issues/99/notes/1", "", 404),
		"GET " + issueAt + "/discussions":                                   seen("/issues/99/discussions", 404),
		"POST " + issueAt + "/discussions":                                  doneBy(project.NoAccess, "/issues/99/discussions", `{"body":"x"}`, 404),
		"GET " + discussionAt:                                               seen("/issues/99/discussions/x", 404),
		"PUT " + discussionAt:                                               doneBy(project.NoAccess, "/issues/99/discussions/x", `{"resolved":true}`, 404),
		"GET " + discussionAt + "/notes":                                    seen("/issues/99/discussions/x/notes", 404),
		"GET " + discussionAt + "/notes/{note_id}":                          seen("/issues/99/discussions/x/notes/1", 404),
		"POST " + discussionAt + "/notes":                                   doneBy(project.NoAccess, "/issues/99/discussions/x/notes", `{"body":"x"}`, 404),
		"PUT " + discussionAt + "/notes/{note_id}":                          doneBy(project.NoAccess, "/issues/99/discussions/x/notes/1", `{"body":"x"}`, 404),
		"DELETE " + discussionAt + "/notes/{note_id}":                       doneBy(project.NoAccess, "/issues/99/discussions/x/notes/1", "", 404),
		"PUT /projects/{id}/labels/{name}/promote":                          doneBy(project.Planner, "/labels/none/promote", "", 404),
		"POST /projects/{id}/milestones/{milestone_id}/promote":             doneBy(project.Planner, "/milestones/999999/promote", "", 404),
	}
	const files = "/projects/{id}/uploads"
	for endpoint, r := range map[string]ciRow{
		"POST " + files:                            {path: "/uploads", json: `{}`, ok: 400, bad: true},
		"GET " + files:                             doneBy(project.Maintainer, "/uploads", "", 200),
		"GET " + files + "/{upload_id}":            doneBy(project.Maintainer, "/uploads/999999", "", 404),
		"DELETE " + files + "/{upload_id}":         doneBy(project.Maintainer, "/uploads/999999", "", 404),
		"GET " + files + "/{secret}/{filename}":    seen("/uploads/0123/x.png", 404),
		"DELETE " + files + "/{secret}/{filename}": doneBy(project.Maintainer, "/uploads/0123/x.png", "", 404),
	} {
		rows[endpoint] = r
	}
	for _, at := range []string{"/projects/{id}", "/groups/{id}"} {
		manager := project.Maintainer
		if at == "/groups/{id}" {
			manager = project.Owner
		}
		const badge, list = `{"link_url":"https://example.org","image_url":"https://example.org/x.png"}`, "{at}/boards/{board_id}/lists"
		for endpoint, r := range map[string]ciRow{
			"GET {at}/labels":                                   seen("/labels", 200),
			"POST {at}/labels":                                  doneBy(project.Planner, "/labels", `{"name":"x","color":"red"}`, 201),
			"PUT {at}/labels":                                   doneBy(project.Planner, "/labels", `{"name":"none","color":"red"}`, 404),
			"DELETE {at}/labels":                                doneBy(project.Planner, "/labels?name=none", "", 404),
			"GET {at}/labels/{name}":                            seen("/labels/none", 404),
			"PUT {at}/labels/{name}":                            doneBy(project.Planner, "/labels/none", `{"color":"red"}`, 404),
			"DELETE {at}/labels/{name}":                         doneBy(project.Planner, "/labels/none", "", 404),
			"POST {at}/labels/{name}/subscribe":                 doneBy(project.NoAccess, "/labels/none/subscribe", "", 404),
			"POST {at}/labels/{name}/unsubscribe":               doneBy(project.NoAccess, "/labels/none/unsubscribe", "", 404),
			"GET {at}/boards":                                   seen("/boards", 200),
			"POST {at}/boards":                                  doneBy(project.Planner, "/boards", `{"name":"x"}`, 201),
			"GET {at}/boards/{board_id}":                        seen("/boards/999999", 404),
			"PUT {at}/boards/{board_id}":                        doneBy(project.Planner, "/boards/999999", `{"name":"x"}`, 404),
			"DELETE {at}/boards/{board_id}":                     doneBy(project.Planner, "/boards/999999", "", 404),
			"GET " + list:                                       seen("/boards/999999/lists", 404),
			"POST " + list:                                      doneBy(project.Planner, "/boards/999999/lists", `{"label_id":1}`, 404),
			"GET " + list + "/{list_id}":                        seen("/boards/999999/lists/1", 404),
			"PUT " + list + "/{list_id}":                        doneBy(project.Planner, "/boards/999999/lists/1", `{"position":1}`, 404),
			"DELETE " + list + "/{list_id}":                     doneBy(project.Planner, "/boards/999999/lists/1", "", 404),
			"GET {at}/badges":                                   seen("/badges", 200),
			"POST {at}/badges":                                  doneBy(manager, "/badges", badge, 201),
			"GET {at}/badges/render":                            doneBy(manager, "/badges/render?link_url=https://a.example&image_url=https://a.example", "", 200),
			"GET {at}/badges/{badge_id}":                        seen("/badges/999999", 404),
			"PUT {at}/badges/{badge_id}":                        doneBy(manager, "/badges/999999", `{"name":"x"}`, 404),
			"DELETE {at}/badges/{badge_id}":                     doneBy(manager, "/badges/999999", "", 404),
			"GET {at}/milestones":                               seen("/milestones", 200),
			"POST {at}/milestones":                              doneBy(project.Planner, "/milestones", `{"title":"x"}`, 201),
			"GET {at}/milestones/{milestone_id}":                seen("/milestones/999999", 404),
			"PUT {at}/milestones/{milestone_id}":                doneBy(project.Planner, "/milestones/999999", `{"title":"x"}`, 404),
			"DELETE {at}/milestones/{milestone_id}":             doneBy(project.Planner, "/milestones/999999", "", 404),
			"GET {at}/milestones/{milestone_id}/issues":         seen("/milestones/999999/issues", 404),
			"GET {at}/milestones/{milestone_id}/merge_requests": seen("/milestones/999999/merge_requests", 404),
		} {
			rows[strings.Replace(endpoint, "{at}", at, 1)] = r
		}
	}
	return rows
}()

var (
	planRoles = rowRoles(planRows, map[string]role{
		"POST /markdown":         own("POST /markdown", `{"text":"x"}`, 201),
		"GET /issues":            openAPI("GET /issues"),
		"GET /issues/{issue_id}": {"GET /issues/999999", "", 401, 403, 404, 404, 403},
		"GET /issues_statistics": openAPI("GET /issues_statistics"),
	})
	planPlaceRoles = rowPlaceRoles(planRows)
)

// issueCall is a request about an existing issue, and the callers that can send it.
type issueCall struct {
	do, json string // {note} is a note of the author, {foreign} one of the owner, {discussion} a thread
	need     project.Level
	mine     bool // also for the author and the assignee
	open     bool // also for anonymous callers
	ok       int
	fresh    bool // it can only be done once
}

// TestIssueRoles sends requests about an open and a confidential issue as each role,
// in a public and a private project.
func TestIssueRoles(t *testing.T) {
	t.Parallel()
	calls := []issueCall{
		{do: "GET {at}", open: true, ok: 200},
		{do: "GET {at}/notes", open: true, ok: 200},
		{do: "GET {at}/discussions", open: true, ok: 200},
		{do: "GET {at}/discussions/{talk}", open: true, ok: 200},
		{do: "GET {at}/discussions/{talk}/notes", open: true, ok: 200},
		{do: "GET {at}/notes/{note}", open: true, ok: 200},
		{do: "GET {at}/participants", open: true, ok: 200},
		{do: "GET {at}/links", open: true, ok: 200},
		{do: "PUT {at}", json: `{"title":"x"}`, need: project.Planner, mine: true, ok: 200},
		{do: "GET {at}/award_emoji", open: true, ok: 200},
		{do: "GET {at}/notes/{note}/award_emoji", open: true, ok: 200},
		{do: "POST {at}/award_emoji", json: `{"name":"tada"}`, ok: 201},
		{do: "POST {at}/notes/{note}/award_emoji", json: `{"name":"tada"}`, ok: 201},
		{do: "POST {at}/notes", json: `{"body":"x"}`, ok: 201},
		{do: "POST {at}/discussions", json: `{"body":"x"}`, ok: 201},
		{do: "POST {at}/discussions/{talk}/notes", json: `{"body":"x"}`, ok: 201},
		{do: "PUT {at}/discussions/{talk}", json: `{"resolved":true}`, need: project.Planner, mine: true, ok: 200},
		{do: "PUT {at}/notes/{foreign}", json: `{"body":"x"}`, need: project.Maintainer, ok: 200},
		{do: "PUT {at}/discussions/{talk}/notes/{foreign}", json: `{"body":"x"}`, need: project.Maintainer, ok: 200},
		{do: "PUT {at}/reorder", json: `{"move_after_id":{id}}`, need: project.Planner, ok: 200},
		{do: "POST {at}/links", json: `{"target_project_id":{project},"target_issue_iid":1}`, need: project.Guest, ok: 409},
		{do: "DELETE {at}/notes/{foreign}", need: project.Maintainer, ok: 204, fresh: true},
		{do: "DELETE {at}", need: project.Owner, ok: 204, fresh: true},
	}
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		levels := map[string]project.Level{
			"nobody": 0, "outsider": 0, "author": project.Guest, "assignee": project.Guest, "guest": project.Guest, "planner": project.Planner, "reporter": project.Reporter,
			"developer": project.Developer, "maintainer": project.Maintainer, "owner": project.Owner,
		}
		ids, tokens := map[string]int64{}, map[string]string{"admin": root}
		for name := range levels {
			if name != "nobody" {
				ids[name], tokens[name] = s.User(t, name)
			}
		}
		for _, visibility := range []string{"public", "private"} {
			p := newProject(t, s, root, "roles-"+visibility, fmt.Sprintf(`,"visibility":%q`, visibility))
			for name, level := range levels {
				if level > 0 {
					enlist(t, s, p, ids[name], level)
				}
			}
			at := fmt.Sprintf("/projects/%d/issues", p)
			first := made(t, s, tokens["owner"], "POST "+at, `{"title":"first"}`)
			for _, confidential := range []bool{false, true} {
				newIssue := func() *strings.Replacer {
					var i struct{ IID, ID int64 }
					s.Check(t, apptest.Call{Do: "POST " + at, As: tokens["author"], JSON: fmt.Sprintf(`{"title":"t","confidential":%t,"assignee_ids":[%d]}`, confidential, ids["assignee"]), Status: 201}).JSON(t, &i)
					place := fmt.Sprintf("%s/%d", at, i.IID)
					var discussion struct{ ID string }
					note := made(t, s, tokens["author"], "POST "+place+"/notes", `{"body":"x"}`)
					foreign := made(t, s, tokens["owner"], "POST "+place+"/notes", `{"body":"x"}`)
					s.Check(t, apptest.Call{Do: "POST " + place + "/discussions", As: tokens["author"], JSON: `{"body":"x"}`, Status: 201}).JSON(t, &discussion)
					s.Check(t, apptest.Call{Do: "POST " + place + "/links", As: tokens["owner"], JSON: fmt.Sprintf(`{"target_project_id":%d,"target_issue_iid":1}`, p), Status: 201})
					return strings.NewReplacer("{at}", place, "{note}", fmt.Sprint(note), "{foreign}", fmt.Sprint(foreign), "{talk}", discussion.ID,
						"{id}", fmt.Sprint(first), "{project}", fmt.Sprint(p))
				}
				shared := newIssue()
				for _, c := range calls {
					for name := range tokens {
						checkIssueCall(t, s, c, name, tokens[name], levels[name], visibility == "public", confidential, shared, newIssue)
					}
					checkIssueCall(t, s, c, "nobody", "", 0, visibility == "public", confidential, shared, newIssue)
				}
			}
		}
	})
}

func checkIssueCall(t *testing.T, s *apptest.Server, c issueCall, name, token string, level project.Level, public, confidential bool, at *strings.Replacer, anew func() *strings.Replacer) {
	t.Helper()
	if name == "admin" {
		level = project.Owner
	}
	mine := name == "author" || name == "assignee"
	want := c.ok
	switch {
	case name == "nobody" && !c.open:
		want = 401
	case !public && level == 0, confidential && level < project.Planner && !mine:
		want = 404
	case strings.HasPrefix(c.do, "DELETE {at}") && c.do == "DELETE {at}" && name == "planner":
	case level < c.need && !(c.mine && mine):
		want = 403
	}
	if c.fresh && want < 300 {
		at = anew()
	}
	call := apptest.Call{Do: at.Replace(c.do), JSON: at.Replace(c.json), As: token}
	if got := s.Send(t, call); got.Status != want {
		t.Errorf("%s as %s, public %t, confidential %t: status %d, want %d: %s", c.do, name, public, confidential, got.Status, want, got.Body)
	}
}

// TestConfidential checks that the title and the text of a confidential issue, and
// an internal note, are in no response to users without access.
func TestConfidential(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		carolID, carol := s.User(t, "carol")
		_, dan := s.User(t, "dan")
		erinID, erin := s.User(t, "erin")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		p := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, top))
		at := fmt.Sprintf("/projects/%d", p)
		enlist(t, s, p, bobID, project.Guest)
		enlist(t, s, p, carolID, project.Planner)
		enlist(t, s, p, erinID, project.Guest)
		goal := made(t, s, alice, "POST "+at+"/milestones", `{"title":"v1"}`)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"open talk"}`, Status: 201},
			// The issue was public before, so that it has public events.
			{Do: "POST " + at + "/issues", As: erin, JSON: fmt.Sprintf(`{"title":"SECRET","description":"SECRET","milestone_id":%d}`, goal), Status: 201},
			{Do: "POST " + at + "/issues/2/notes", As: alice, JSON: `{"body":"SECRET note"}`, Status: 201},
			{Do: "PUT " + at + "/issues/2", As: alice, JSON: `{"labels":"bug","state_event":"close"}`, Status: 200},
			{Do: "PUT " + at + "/issues/2", As: alice, JSON: `{"confidential":true,"state_event":"reopen"}`, Status: 200},
			{Do: "POST " + at + "/issues/2/notes", As: alice, JSON: `{"body":"another SECRET note"}`, Status: 201},
			{Do: "POST " + at + "/issues/1/notes", As: alice, JSON: `{"body":"SECRET inside","internal":true}`, Status: 201},
			{Do: "POST " + at + "/issues/1/links", As: alice, JSON: fmt.Sprintf(`{"target_project_id":%d,"target_issue_iid":2}`, p), Status: 201},
			{Do: "POST " + at + "/issues/2/subscribe", As: alice, Status: 304},
		})
		reads := []string{
			"GET " + at + "/issues", "GET " + at + "/issues?search=SECRET", "GET " + at + "/issues?labels=bug&with_labels_details=true", "GET " + at + "/issues?confidential=true",
			"GET " + at + "/issues?iids=2", "GET " + at + "/issues?milestone=v1", "GET /issues?scope=all", "GET /issues?scope=all&search=secret", fmt.Sprintf("GET /groups/%d/issues", top),
			fmt.Sprintf("GET /groups/%d/issues?search=secret", top), "GET " + at + "/events", "GET " + at + "/events?target_type=issue", "GET " + at + "/events?target_type=note",
			"GET " + at + "/issues/1/notes", "GET " + at + "/issues/1/discussions", "GET " + at + "/issues/1/links", fmt.Sprintf("GET %s/milestones/%d/issues", at, goal),
			"GET " + at + "/issues/2", "GET " + at + "/issues/2/notes", "GET " + at + "/issues/2/discussions", "GET " + at + "/issues/2/links", "GET " + at + "/issues/2/participants",
		}
		signed := []string{"GET /users/alice/events", "GET /users/erin/events", "GET /events?scope=all", "GET /events"}
		look := func(name, token string, paths []string, knows bool) {
			t.Helper()
			found := 0
			for _, do := range paths {
				body := string(s.Send(t, apptest.Call{Do: do, As: token}).Body)
				switch has := strings.Contains(body, "SECRET"); {
				case has && !knows:
					t.Errorf("%s as %s tells: %s", do, name, body)
				case has:
					found++
				}
			}
			if knows && found < len(paths)/2 {
				t.Errorf("%s finds it in %d of %d", name, found, len(paths))
			}
		}
		look("nobody", "", reads, false)
		look("dan", dan, append(reads, signed...), false)
		look("bob", bob, append(reads, signed...), false)
		look("carol", carol, append(reads, signed...), true)
		look("alice", alice, append(reads, signed...), true)
		s.Table(t, []apptest.Call{
			{Name: "not counted", Do: "GET " + at + "/issues_statistics?milestone=v1", As: bob, Status: 200, Want: `{"statistics":{"counts":{"all":0}}}`},
			{Name: "nor with its label", Do: "GET " + at + "/labels/bug", As: bob, Status: 200, Want: `{"open_issues_count":0}`},
			{Name: "counted for its author", Do: "GET " + at + "/issues_statistics?milestone=v1", As: erin, Status: 200, Want: `{"statistics":{"counts":{"all":1}}}`},
			{Name: "who reads her issue", Do: "GET " + at + "/issues/2/notes?activity_filter=only_comments", As: erin, Status: 200, Want: `[{"body":"another SECRET note"},{"body":"SECRET note"}]`},
			{Name: "and its events, but not those of an internal note", Do: "GET " + at + "/events?action=commented", As: erin, Status: 200, Want: `[{"target_title":"SECRET"},{"target_title":"SECRET"}]`},
			{Name: "of a project of one's own", Do: "GET /events?scope=all&action=closed", As: erin, Status: 200, Want: `[{"target_title":"SECRET"}]`},
			{Name: "as does an assignee", Do: "PUT " + at + "/issues/2", As: alice, JSON: fmt.Sprintf(`{"assignee_ids":[%d]}`, bobID), Status: 200},
			{Do: "GET " + at + "/events?action=closed", As: bob, Status: 200, Want: `[{"target_title":"SECRET"}]`},
			{Do: "GET /issues?scope=assigned_to_me", As: bob, Status: 200, Want: `[{"title":"SECRET"}]`},
			{Name: "open again", Do: "PUT " + at + "/issues/2", As: alice, JSON: `{"confidential":false}`, Status: 200},
			{Do: "GET " + at + "/events?action=closed", Status: 200, Want: `[{"target_title":"SECRET"}]`},
		})
	})
}
