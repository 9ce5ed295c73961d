package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

const (
	mergeAt           = "/projects/{id}/merge_requests/{merge_request_iid}"
	ruleAt            = "/projects/{id}/approval_rules"
	mergeDiscussionAt = mergeAt + "/discussions/{discussion_id}"
)

// mergeRows are the rows of merge requests. They use one that does not exist;
// TestMergeRoles has one.
var mergeRows = map[string]ciRow{
	"GET /groups/{id}/merge_requests":                                   seen("/merge_requests", 200),
	"POST /projects/{id}/merge_requests":                                {path: "/merge_requests", json: `{"source_branch":"none","target_branch":"main","title":"x"}`, code: true, need: project.Developer, ok: 400},
	"GET " + mergeAt:                                                    seen("/merge_requests/99", 404),
	"PUT " + mergeAt:                                                    doneBy(project.NoAccess, "/merge_requests/99", `{"title":"x"}`, 404),
	"DELETE " + mergeAt:                                                 doneBy(project.NoAccess, "/merge_requests/99", "", 404),
	"POST " + mergeAt + "/subscribe":                                    doneBy(project.NoAccess, "/merge_requests/99/subscribe", "", 404),
	"POST " + mergeAt + "/unsubscribe":                                  doneBy(project.NoAccess, "/merge_requests/99/unsubscribe", "", 404),
	"POST " + mergeAt + "/time_estimate":                                doneBy(project.NoAccess, "/merge_requests/99/time_estimate", `{"duration":"1h"}`, 404),
	"POST " + mergeAt + "/reset_time_estimate":                          doneBy(project.NoAccess, "/merge_requests/99/reset_time_estimate", "", 404),
	"POST " + mergeAt + "/add_spent_time":                               doneBy(project.NoAccess, "/merge_requests/99/add_spent_time", `{"duration":"1h"}`, 404),
	"POST " + mergeAt + "/reset_spent_time":                             doneBy(project.NoAccess, "/merge_requests/99/reset_spent_time", "", 404),
	"GET " + mergeAt + "/time_stats":                                    seen("/merge_requests/99/time_stats", 404),
	"GET " + mergeAt + "/resource_label_events":                         seen("/merge_requests/99/resource_label_events", 404),
	"GET " + mergeAt + "/resource_label_events/{resource_event_id}":     seen("/merge_requests/99/resource_label_events/1", 404),
	"GET " + mergeAt + "/resource_state_events":                         seen("/merge_requests/99/resource_state_events", 404),
	"GET " + mergeAt + "/resource_state_events/{resource_event_id}":     seen("/merge_requests/99/resource_state_events/1", 404),
	"GET " + mergeAt + "/resource_milestone_events":                     seen("/merge_requests/99/resource_milestone_events", 404),
	"GET " + mergeAt + "/resource_milestone_events/{resource_event_id}": seen("/merge_requests/99/resource_milestone_events/1", 404),
	"GET " + mergeAt + "/participants":                                  seen("/merge_requests/99/participants", 404),
	"GET " + mergeAt + "/reviewers":                                     seen("/merge_requests/99/reviewers", 404),
	"GET " + mergeAt + "/closes_issues":                                 seen("/merge_requests/99/closes_issues", 404),
	"GET " + mergeAt + "/related_issues":                                seen("/merge_requests/99/related_issues", 404),
	"GET " + mergeAt + "/notes":                                         seen("/merge_requests/99/notes", 404),
	"POST " + mergeAt + "/notes":                                        doneBy(project.NoAccess, "/merge_requests/99/notes", `{"body":"x"}`, 404),
	"GET " + mergeAt + "/notes/{note_id}":                               seen("/merge_requests/99/notes/1", 404),
	"PUT " + mergeAt + "/notes/{note_id}":                               doneBy(project.NoAccess, "/merge_requests/99/notes/1", `{"body":"x"}`, 404),
	"DELETE " + mergeAt + "/notes/{note_id}":                            doneBy(project.NoAccess, "/merge_requests/99/notes/1", "", 404),
	"GET " + mergeAt + "/discussions":                                   seen("/merge_requests/99/discussions", 404),
	"POST " + mergeAt + "/discussions":                                  doneBy(project.NoAccess, "/merge_requests/99/discussions", `{"body":"x"}`, 404),
	"GET " + mergeDiscussionAt:                                          seen("/merge_requests/99/discussions/x", 404),
	"PUT " + mergeDiscussionAt:                                          doneBy(project.NoAccess, "/merge_requests/99/discussions/x", `{"resolved":true}`, 404),
	"GET " + mergeDiscussionAt + "/notes":                               seen("/merge_requests/99/discussions/x/notes", 404),
	"GET " + mergeDiscussionAt + "/notes/{note_id}":                     seen("/merge_requests/99/discussions/x/notes/1", 404),
	"POST " + mergeDiscussionAt + "/notes":                              doneBy(project.NoAccess, "/merge_requests/99/discussions/x/notes", `{"body":"x"}`, 404),
	"PUT " + mergeDiscussionAt + "/notes/{note_id}":                     doneBy(project.NoAccess, "/merge_requests/99/discussions/x/notes/1", `{"body":"x"}`, 404),
	"DELETE " + mergeDiscussionAt + "/notes/{note_id}":                  doneBy(project.NoAccess, "/merge_requests/99/discussions/x/notes/1", "", 404),
	"GET " + mergeAt + "/draft_notes":                                   doneBy(project.NoAccess, "/merge_requests/99/draft_notes", "", 404),
	"POST " + mergeAt + "/draft_notes":                                  doneBy(project.NoAccess, "/merge_requests/99/draft_notes", `{"note":"x"}`, 404),
	"POST " + mergeAt + "/draft_notes/bulk_publish":                     doneBy(project.NoAccess, "/merge_requests/99/draft_notes/bulk_publish", "", 404),
	"GET " + mergeAt + "/draft_notes/{draft_note_id}":                   doneBy(project.NoAccess, "/merge_requests/99/draft_notes/1", "", 404),
	"PUT " + mergeAt + "/draft_notes/{draft_note_id}":                   doneBy(project.NoAccess, "/merge_requests/99/draft_notes/1", `{"note":"x"}`, 404),
	"DELETE " + mergeAt + "/draft_notes/{draft_note_id}":                doneBy(project.NoAccess, "/merge_requests/99/draft_notes/1", "", 404),
	"PUT " + mergeAt + "/draft_notes/{draft_note_id}/publish":           doneBy(project.NoAccess, "/merge_requests/99/draft_notes/1/publish", "", 404),
	"GET " + mergeAt + "/commits":                                       seen("/merge_requests/99/commits", 404),
	"GET " + mergeAt + "/changes":                                       seen("/merge_requests/99/changes", 404),
	"GET " + mergeAt + "/diffs":                                         seen("/merge_requests/99/diffs", 404),
	"GET " + mergeAt + "/raw_diffs":                                     seen("/merge_requests/99/raw_diffs", 404),
	"GET " + mergeAt + "/versions":                                      seen("/merge_requests/99/versions", 404),
	"GET " + mergeAt + "/versions/{version_id}":                         seen("/merge_requests/99/versions/1", 404),
	"GET " + mergeAt + "/pipelines":                                     seen("/merge_requests/99/pipelines", 404),
	"POST " + mergeAt + "/pipelines":                                    doneBy(project.NoAccess, "/merge_requests/99/pipelines", "", 404),
	"GET " + mergeAt + "/merge_ref":                                     seen("/merge_requests/99/merge_ref", 404),
	"PUT " + mergeAt + "/merge":                                         doneBy(project.NoAccess, "/merge_requests/99/merge", "", 404),
	"PUT " + mergeAt + "/rebase":                                        doneBy(project.NoAccess, "/merge_requests/99/rebase", "", 404),
	"POST " + mergeAt + "/cancel_merge_when_pipeline_succeeds":          doneBy(project.NoAccess, "/merge_requests/99/cancel_merge_when_pipeline_succeeds", "", 404),
	"GET /projects/{id}/merge_request_approval_setting":                 doneBy(project.NoAccess, "/merge_request_approval_setting", "", 200),
	"PUT /projects/{id}/merge_request_approval_setting":                 doneBy(project.Maintainer, "/merge_request_approval_setting", `{"retain_approvals_on_push":false}`, 200),
	"GET /projects/{id}/approvals":                                      doneBy(project.NoAccess, "/approvals", "", 200),
	"POST /projects/{id}/approvals":                                     doneBy(project.Maintainer, "/approvals", `{"reset_approvals_on_push":true}`, 201),
	"GET " + ruleAt:                                                     doneBy(project.NoAccess, "/approval_rules", "", 200),
	"POST " + ruleAt:                                                    {path: "/approval_rules", json: `{"name":"x","approvals_required":1,"user_ids":[999999]}`, need: project.Maintainer, ok: 400},
	"GET " + ruleAt + "/{approval_rule_id}":                             doneBy(project.NoAccess, "/approval_rules/999999", "", 404),
	"PUT " + ruleAt + "/{approval_rule_id}":                             doneBy(project.Maintainer, "/approval_rules/999999", `{"name":"x"}`, 404),
	"DELETE " + ruleAt + "/{approval_rule_id}":                          doneBy(project.Maintainer, "/approval_rules/999999", "", 404),
	"GET " + mergeAt + "/approvals":                                     doneBy(project.NoAccess, "/merge_requests/99/approvals", "", 404),
	"POST " + mergeAt + "/approvals":                                    doneBy(project.NoAccess, "/merge_requests/99/approvals", `{"approvals_required":1}`, 404),
	"GET " + mergeAt + "/approval_state":                                doneBy(project.NoAccess, "/merge_requests/99/approval_state", "", 404),
	"GET " + mergeAt + "/approval_settings":                             doneBy(project.NoAccess, "/merge_requests/99/approval_settings", "", 404),
	"POST " + mergeAt + "/approve":                                      doneBy(project.NoAccess, "/merge_requests/99/approve", "", 404),
	"POST " + mergeAt + "/unapprove":                                    doneBy(project.NoAccess, "/merge_requests/99/unapprove", "", 404),
	"PUT " + mergeAt + "/reset_approvals":                               doneBy(project.NoAccess, "/merge_requests/99/reset_approvals", "", 404),
	"GET " + mergeAt + "/approval_rules":                                doneBy(project.NoAccess, "/merge_requests/99/approval_rules", "", 404),
	"POST " + mergeAt + "/approval_rules":                               doneBy(project.NoAccess, "/merge_requests/99/approval_rules", `{"name":"x","approvals_required":1}`, 404),
	"GET " + mergeAt + "/approval_rules/{approval_rule_id}":             doneBy(project.NoAccess, "/merge_requests/99/approval_rules/1", "", 404),
	"PUT " + mergeAt + "/approval_rules/{approval_rule_id}":             doneBy(project.NoAccess, "/merge_requests/99/approval_rules/1", `{"name":"x"}`, 404),
	"DELETE " + mergeAt + "/approval_rules/{approval_rule_id}":          doneBy(project.NoAccess, "/merge_requests/99/approval_rules/1", "", 404),
	"GET " + mergeAt + "/context_commits":                               {path: "/merge_requests/99/context_commits", open: true, ok: 404},
	"POST " + mergeAt + "/context_commits":                              doneBy(project.NoAccess, "/merge_requests/99/context_commits", `{"commits":["0000000"]}`, 404),
	"DELETE " + mergeAt + "/context_commits":                            doneBy(project.NoAccess, "/merge_requests/99/context_commits", `{"commits":["0000000"]}`, 404),
	"GET " + mergeAt + "/blocks":                                        seen("/merge_requests/99/blocks", 404),
	"POST " + mergeAt + "/blocks":                                       doneBy(project.NoAccess, "/merge_requests/99/blocks", `{"blocking_merge_request_id":999999}`, 404),
	"GET " + mergeAt + "/blocks/{block_id}":                             seen("/merge_requests/99/blocks/1", 404),
	"DELETE " + mergeAt + "/blocks/{block_id}":                          doneBy(project.NoAccess, "/merge_requests/99/blocks/1", "", 404),
	"GET " + mergeAt + "/blockees":                                      seen("/merge_requests/99/blockees", 404),
	"GET " + issueAt + "/related_merge_requests":                        seen("/issues/99/related_merge_requests", 404),
	"GET " + issueAt + "/closed_by":                                     seen("/issues/99/closed_by", 404),
	"GET /projects/{id}/repository/commits/{sha}/merge_requests":        {path: "/repository/commits/none/merge_requests", code: true, open: true, ok: 404},
}

var (
	mergeRoles = rowRoles(mergeRows, map[string]role{
		"GET /merge_requests":               openAPI("GET /merge_requests"),
		"PUT /suggestions/{id}/apply":       own("PUT /suggestions/999999/apply", "", 404),
		"PUT /suggestions/batch_apply":      own("PUT /suggestions/batch_apply", `{"ids":[999999]}`, 404),
		"GET /projects/{id}/merge_requests": publicRole("GET", " /projects/{project}/merge_requests", "", true, project.NoAccess, 200),
	})
	mergePlaceRoles = func() map[string]placeRole {
		rows := rowPlaceRoles(mergeRows)
		for endpoint, row := range rows { // the settings are visible to users who can see merge requests
			if strings.Contains(endpoint, ruleAt) || strings.HasSuffix(endpoint, "/projects/{id}/approvals") || strings.HasSuffix(endpoint, "/merge_request_approval_setting") {
				row.part = true
				rows[endpoint] = row
			}
		}
		rows["GET /projects/{id}/merge_requests"] = placeRole{do: "GET {at}/merge_requests", open: true, ok: 200, part: true}
		return rows
	}()
)

// mergeCall is a request about an existing merge request, and the callers that can
// send it.
type mergeCall struct {
	do, json string
	need     project.Level
	mine     bool // also for its author and its assignee
	open     bool // also for anonymous callers
	refused  int  // the status for other callers, if it is not 403
	ok       int
}

// TestMergeRoles sends requests about a merge request as every kind of caller, to a
// public and to a private project. It is a draft with a conflict, so that no request
// changes it and all can use the same one.
func TestMergeRoles(t *testing.T) {
	t.Parallel()
	calls := []mergeCall{
		{do: "GET {at}", open: true, ok: 200},
		{do: "GET {at}/commits", open: true, ok: 200},
		{do: "GET {at}/changes", open: true, ok: 200},
		{do: "GET {at}/diffs", open: true, ok: 200},
		{do: "GET {at}/raw_diffs", open: true, ok: 200},
		{do: "GET {at}/versions", open: true, ok: 200},
		{do: "GET {at}/participants", open: true, ok: 200},
		{do: "GET {at}/reviewers", open: true, ok: 200},
		{do: "GET {at}/draft_notes", ok: 200},
		{do: "POST {at}/draft_notes", json: `{"note":"x"}`, ok: 201},
		{do: "GET {at}/draft_notes/999999", ok: 404},
		{do: "POST {at}/draft_notes/bulk_publish", json: `{"reviewer_state":"reviewed"}`, ok: 204},
		{do: "GET {at}/closes_issues", open: true, ok: 200},
		{do: "GET {at}/related_issues", open: true, ok: 200},
		{do: "GET {at}/merge_ref", open: true, ok: 400},
		{do: "GET {at}/pipelines", open: true, ok: 200},
		{do: "POST {at}/pipelines", need: project.Developer, ok: 400},
		{do: "PUT {at}", json: `{"description":"x"}`, need: project.Developer, mine: true, ok: 200},
		{do: "PUT {at}/merge", need: project.Maintainer, refused: 401, ok: 405},
		{do: "POST {at}/cancel_merge_when_pipeline_succeeds", need: project.Maintainer, mine: true, refused: 401, ok: 406},
		{do: "GET {at}/blocks", open: true, ok: 200},
		{do: "GET {at}/context_commits", open: true, ok: 200},
		{do: "POST {at}/context_commits", json: `{"commits":["0000000"]}`, need: project.Developer, mine: true, ok: 400},
		{do: "DELETE {at}/context_commits", json: `{"commits":["0000000"]}`, need: project.Developer, mine: true, ok: 404},
		{do: "GET {at}/blockees", open: true, ok: 200},
		{do: "GET {at}/blocks/999999", open: true, ok: 404},
		{do: "POST {at}/blocks", json: `{"blocking_merge_request_id":999999}`, need: project.Developer, mine: true, ok: 404},
		{do: "DELETE {at}/blocks/999999", need: project.Developer, mine: true, ok: 404},
		{do: "GET {at}/approvals", ok: 200},
		{do: "GET {at}/approval_state", ok: 200},
		{do: "GET {at}/approval_settings", ok: 200},
		{do: "GET {at}/approval_rules", ok: 200},
		{do: "GET {at}/approval_rules/999999", ok: 404},
		{do: "POST {at}/approvals", json: `{"approvals_required":-1}`, need: project.Developer, ok: 400},
		{do: "POST {at}/approval_rules", json: `{"name":"x","approvals_required":-1}`, need: project.Developer, ok: 400},
		{do: "POST {at}/approve", json: `{"sha":"0000000000000000000000000000000000000000"}`, ok: 409},
		{do: "POST {at}/approve", need: project.Developer, refused: 401, ok: 201},
		{do: "POST {at}/unapprove", need: project.Developer, refused: 404, ok: 201},
		{do: "PUT {at}/reset_approvals", ok: 401},
		{do: "PUT {at}/rebase", need: project.Developer, ok: 202},
		{do: "DELETE {at}", need: project.Owner, ok: 412}, // it was changed since
	}
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		levels := map[string]project.Level{
			"nobody": 0, "outsider": 0, "author": project.Reporter, "guest": project.Guest, "planner": project.Planner, "reporter": project.Reporter,
			"developer": project.Developer, "maintainer": project.Maintainer, "owner": project.Owner, "admin": project.Owner,
		}
		ids, tokens := map[string]int64{}, map[string]string{"nobody": "", "admin": root}
		for name := range levels {
			if name != "nobody" && name != "admin" {
				ids[name], tokens[name] = s.User(t, name)
			}
		}
		for _, visibility := range []string{"public", "private"} {
			p := code(t, s, root, "roles-"+visibility, `,"visibility":"`+visibility+`"`)
			for name, id := range ids {
				level := levels[name]
				if name == "author" {
					level = project.Developer // required to create it
				}
				if level > 0 {
					enlist(t, s, p, id, level)
				}
			}
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/protected_branches", p), As: root, JSON: `{"name":"main","push_access_level":40,"merge_access_level":40}`, Status: 201})
			commitTo(t, s, tokens["author"], p, "work", "a.txt", "work\n", "Work")
			commitTo(t, s, root, p, "main", "a.txt", "main\n", "Main")
			at := requested(t, s, tokens["author"], p, "work", "")
			s.Check(t, apptest.Call{Do: "PUT " + at, As: tokens["author"], JSON: `{"title":"Draft: Work"}`, Status: 200})
			s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d/members/%d", p, ids["author"]), As: root, JSON: `{"access_level":20}`, Status: 200})
			for _, c := range calls {
				for name, level := range levels {
					want := c.ok
					switch {
					case name == "nobody" && !c.open:
						want = 401
					case visibility == "private" && level < project.Reporter:
						want = 404
					case level < c.need && !(c.mine && name == "author"):
						if want = c.refused; want == 0 {
							want = 403
						}
					}
					call := apptest.Call{Do: strings.Replace(c.do, "{at}", at, 1), JSON: c.json, As: tokens[name], Header: map[string]string{"If-Unmodified-Since": "Mon, 01 Jan 2024 00:00:00 GMT"}}
					if got := s.Send(t, call); got.Status != want && (c.ok != 202 || got.Status != 409) { // another request is rebasing it
						t.Errorf("%s as %s, %s: status %d, want %d: %s", c.do, name, visibility, got.Status, want, got.Body)
					}
				}
			}
		}
	})
}

// TestMergeCutOff creates the state after a crash during a merge. If the target
// branch was updated, the merge is recorded at the next start; otherwise it can be
// merged again later.
func TestMergeCutOff(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		alice, token := s.User(t, "alice")
		id := code(t, s, token, "code", "")
		moved, still := proposed(t, s, token, id, "moved", ""), proposed(t, s, token, id, "still", "")
		r := s.Repository(t, id)
		var m struct{ ID int64 }
		for _, one := range []struct{ path, branch string }{{moved, "moved"}, {still, "still"}} {
			s.Check(t, apptest.Call{Do: "GET " + one.path, As: token, Status: 200}).JSON(t, &m)
			old, head := r.Tip("refs/heads/main"), r.Tip("refs/heads/"+one.branch)
			if one.branch == "moved" {
				r.Git("update-ref", "refs/heads/main", head)
			}
			what := fmt.Sprintf(`{"Changes":[{"Ref":"refs/heads/main","Old":%q,"New":%q}],"About":"{\"merge_request_id\":%d,\"merge\":\"%s\"}"}`, old, head, m.ID, head)
			for query, args := range map[string][]any{
				`INSERT INTO pushes (project_id, actor, push, created_at) VALUES (?, ?, ?, ?)`: {id, fmt.Sprintf(`{"ID":%d,"Username":"alice"}`, alice), what, s.Clock.Now()},
				`UPDATE merge_requests SET merging_at = ? WHERE id = ?`:                        {s.Clock.Now(), m.ID},
			} {
				if _, err := s.DB.ExecContext(t.Context(), query, args...); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := s.Repos.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Name: "recorded", Do: "GET " + moved, As: token, Status: 200, Want: `{"state":"merged","merged_by":{"username":"alice"},"merge_commit_sha":"` + r.Tip("refs/heads/moved") + `"}`},
			{Name: "once", Do: fmt.Sprintf("GET /projects/%d/events?action=merged", id), As: token, Status: 200, Want: `[{"target_iid":1}]`},
			{Name: "nothing has happened", Do: "GET " + still, As: token, Status: 200, Want: `{"state":"opened"}`},
			{Name: "the one who was killed may still be at it", Do: "PUT " + still + "/merge", As: token, Status: 409},
		})
		s.Clock.Move(11 * time.Minute)
		// A push whose recording was interrupted is recorded after a later push.
		base := r.Tip("refs/heads/still")
		first := commitTo(t, s, token, id, "still", "still.txt", "first\n", "First")
		last := commitTo(t, s, token, id, "still", "still.txt", "last\n", "Last")
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.DB.ExecContext(t.Context(), `INSERT INTO pushes (project_id, actor, push, created_at) VALUES (?, ?, ?, ?)`, id, fmt.Sprintf(`{"ID":%d,"Username":"alice"}`, alice),
			fmt.Sprintf(`{"Changes":[{"Ref":"refs/heads/still","Old":%q,"New":%q}]}`, base, first), s.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		if err := s.Repos.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		becomes(t, s, apptest.Call{Do: "GET " + still, As: token, Status: 200, Want: fmt.Sprintf(`{"sha":%q,"detailed_merge_status":"mergeable"}`, last)})
		s.Check(t, apptest.Call{Do: "PUT " + still + "/merge", As: token, Status: 200, Want: `{"state":"merged"}`})
	})
}
