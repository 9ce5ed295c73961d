package api_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/errs"
	"svc/internal/plan"
	"svc/internal/project"
)

// enlist adds a member to a project.
func enlist(t testing.TB, s *apptest.Server, projectID, userID int64, level project.Level) {
	t.Helper()
	s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", projectID), As: root, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, userID, level), Status: 201})
}

func TestIssues(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		danID, dan := s.User(t, "dan")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		id := newProject(t, s, alice, "plan", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, top))
		other := newProject(t, s, alice, "other", `,"visibility":"private"`)
		enlist(t, s, id, bobID, project.Guest)
		at := fmt.Sprintf("/projects/%d/issues", id)
		goal := made(t, s, alice, fmt.Sprintf("POST /projects/%d/milestones", id), `{"title":"v1","due_date":"2030-01-01"}`)
		foreign := made(t, s, alice, fmt.Sprintf("POST /projects/%d/milestones", other), `{"title":"v1"}`)
		s.Table(t, []apptest.Call{
			{Name: "by a member", Do: "POST " + at, As: bob, JSON: fmt.Sprintf(`{"title":" First ","description":"- [x] a\n- [ ] b","labels":"bug,new one","assignee_ids":[%d,%d,999999],"milestone_id":%d,"due_date":"2030-02-03"}`, aliceID, danID, goal), Status: 201,
				Want: fmt.Sprintf(`{"iid":1,"project_id":%d,"title":"First","state":"opened","labels":[],"author":{"username":"bob"},"assignees":[{"username":"alice"},{"username":"dan"}],
					"assignee":{"username":"alice"},"milestone":{"title":"v1","iid":1,"expired":false,"web_url":"%s/top/plan/-/milestones/1"},"due_date":"2030-02-03","confidential":false,"discussion_locked":null,
					"issue_type":"issue","type":"ISSUE","web_url":"%[2]s/top/plan/-/issues/1","references":{"short":"#1","relative":"#1","full":"top/plan#1"},"closed_at":null,"closed_by":null,
					"task_completion_status":{"count":2,"completed_count":1},"has_tasks":true,"user_notes_count":0,"subscribed":true,"time_stats":{"time_estimate":0},"moved_to_id":null}`, id, s.URL)},
			{Name: "by a stranger, who plans nothing", Do: "POST " + at, As: dan, JSON: fmt.Sprintf(`{"title":"Second","labels":["bug"],"assignee_id":%d,"milestone_id":%d}`, danID, goal), Status: 201,
				Want: `{"iid":2,"labels":[],"assignees":[],"assignee":null,"milestone":null,"description":null}`},
			{Name: "labels are made by who may", Do: "POST " + at, As: alice, JSON: `{"title":"Third","labels":"bug,needs work","weight":3,"confidential":false}`, Status: 201, Want: `{"iid":3,"labels":["bug","needs work"],"weight":3}`},
			{Name: "without a title", Do: "POST " + at, As: alice, JSON: `{}`, Status: 400, Want: `{"error":"title is missing"}`},
			{Name: "a milestone of elsewhere", Do: "POST " + at, As: alice, JSON: fmt.Sprintf(`{"title":"x","milestone_id":%d}`, foreign), Status: 400, Want: `{"message":{"milestone_id":["is invalid"]}}`},
			{Name: "a number of one's own", Do: "POST " + at, As: alice, JSON: `{"title":"Seventh","iid":7,"created_at":"2020-01-02T00:00:00Z"}`, Status: 201, Want: `{"iid":7,"created_at":"2020-01-02T00:00:00.000Z"}`},
			{Name: "that is taken", Do: "POST " + at, As: alice, JSON: `{"title":"x","iid":7}`, Status: 409},
			{Name: "that others do not choose", Do: "POST " + at, As: bob, JSON: `{"title":"Eighth","iid":99}`, Status: 201, Want: `{"iid":8}`},
			{Name: "anonymous", Do: "POST " + at, JSON: `{"title":"x"}`, Status: 401},
			{Name: "by number", Do: "GET " + at + "/3", Status: 200, Want: `{"title":"Third","subscribed":false}`},
			{Name: "of no number", Do: "GET " + at + "/4", Status: 404},
		})
		s.Table(t, []apptest.Call{
			{Name: "the newest first", Do: "GET " + at, Status: 200, Want: `[{"iid":8},{"iid":3},{"iid":2},{"iid":1},{"iid":7}]`, WantHeader: map[string]string{"X-Total": "5"}},
			{Name: "labels", Do: "GET " + at + "?labels=bug,needs%20work&with_labels_details=true", Status: 200, Want: `[{"iid":3,"labels":[{"name":"bug","color":"#428bca"},{"name":"needs work"}]}]`},
			{Name: "no labels", Do: "GET " + at + "?labels=None&sort=asc", Status: 200, Want: `[{"iid":7},{"iid":1},{"iid":2},{"iid":8}]`},
			{Name: "too many labels", Do: "GET " + at + "?not[labels]=" + strings.Repeat("a,", 100) + "b", Status: 400, Want: `{"message":"400 Bad request - A filter must have at most 100 labels"}`},
			{Name: "too many users", Do: "GET " + at + "?not[assignee_username]=" + strings.Repeat("a,", 100) + "b", Status: 400, Want: `{"message":"400 Bad request - A filter must have at most 100 users"}`},
			{Name: "not a label", Do: "GET " + at + "?not[labels]=bug&not[author_username]=dan&order_by=title&sort=asc", Status: 200, Want: `[{"iid":8},{"iid":1},{"iid":7}]`},
			{Name: "milestone", Do: "GET " + at + "?milestone=v1", Status: 200, Want: `[{"iid":1}]`},
			{Name: "milestone by id", Do: fmt.Sprintf("GET %s?milestone_id=%d", at, goal), Status: 200, Want: `[{"iid":1}]`},
			{Name: "coming milestone", Do: "GET " + at + "?milestone_id=Upcoming", Status: 200, Want: `[{"iid":1}]`},
			{Name: "no milestone", Do: "GET " + at + "?milestone=None&iids[]=1&iids[]=2", Status: 200, Want: `[{"iid":2}]`},
			{Name: "both ways", Do: "GET " + at + "?milestone=None&milestone_id=1", Status: 400},
			{Name: "author", Do: fmt.Sprintf("GET %s?author_id=%d", at, danID), Status: 200, Want: `[{"iid":2}]`},
			{Name: "assignee", Do: fmt.Sprintf("GET %s?assignee_id=%d", at, danID), Status: 200, Want: `[{"iid":1}]`},
			{Name: "assignees", Do: "GET " + at + "?assignee_username[]=dan&assignee_username[]=alice", Status: 200, Want: `[{"iid":1}]`},
			{Name: "unassigned", Do: "GET " + at + "?assignee_id=None&search=SECOND", Status: 200, Want: `[{"iid":2}]`},
			{Name: "text", Do: "GET " + at + "?search=b&in=description", Status: 200, Want: `[{"iid":1}]`},
			{Name: "due", Do: "GET " + at + "?due_date=any", Status: 200, Want: `[{"iid":1}]`},
			{Name: "weight", Do: "GET " + at + "?weight=3", Status: 200, Want: `[{"iid":3}]`},
			{Name: "time", Do: "GET " + at + "?created_before=2021-01-01T00:00:00Z", Status: 200, Want: `[{"iid":7}]`},
			{Name: "of a group", Do: fmt.Sprintf("GET /groups/%d/issues?author_username=bob", top), As: dan, Status: 200, Want: `[{"iid":8},{"iid":1}]`},
			{Name: "one's own", Do: "GET /issues", As: dan, Status: 200, Want: `[{"iid":2}]`},
			{Name: "for oneself", Do: "GET /issues?scope=assigned_to_me", As: dan, Status: 200, Want: `[{"iid":1}]`},
			{Name: "all", Do: "GET /issues?scope=all&labels=bug", As: dan, Status: 200, Want: `[{"iid":3}]`},
			{Name: "counts", Do: fmt.Sprintf("GET /projects/%d/issues_statistics?labels=None", id), Status: 200, Want: `{"statistics":{"counts":{"all":4,"opened":4,"closed":0}}}`},
			{Name: "of a milestone", Do: fmt.Sprintf("GET /projects/%d/milestones/%d/issues", id, goal), Status: 200, Want: `[{"iid":1}]`},
		})
		s.Table(t, []apptest.Call{
			{Name: "nothing said", Do: "PUT " + at + "/1", As: alice, JSON: `{}`, Status: 400},
			{Name: "a stranger", Do: "PUT " + at + "/1", As: dan, JSON: `{"title":"x","labels":"bug"}`, Status: 200, Want: `{"title":"x","labels":[]}`}, // the assignee
			{Name: "who has nothing to do with it", Do: "PUT " + at + "/2", As: bob, JSON: `{"title":"x"}`, Status: 403},
			{Name: "its author", Do: "PUT " + at + "/2", As: dan, JSON: `{"state_event":"close","confidential":true}`, Status: 200, Want: `{"state":"closed","closed_by":{"username":"dan"},"closed_at":"<any>","confidential":false}`},
			{Name: "again", Do: "PUT " + at + "/2", As: dan, JSON: `{"state_event":"reopen"}`, Status: 200, Want: `{"state":"opened","closed_by":null,"closed_at":null}`},
			{Name: "who plans", Do: "PUT " + at + "/1", As: alice, JSON: `{"title":"First","add_labels":"bug,late","assignee_ids":[],"milestone_id":0,"due_date":"","discussion_locked":true,"weight":null}`, Status: 200,
				Want: `{"labels":["bug","late"],"assignees":[],"milestone":null,"due_date":null,"discussion_locked":true,"weight":null}`},
			{Name: "and less", Do: "PUT " + at + "/1", As: alice, JSON: `{"remove_labels":["late"],"assignee_id":` + fmt.Sprint(bobID) + `}`, Status: 200, Want: `{"labels":["bug"],"assignees":[{"username":"bob"}]}`},
			{Name: "none", Do: "PUT " + at + "/1", As: alice, JSON: `{"labels":""}`, Status: 200, Want: `{"labels":[]}`},
			{Name: "what was done", Do: "GET " + at + "/1/notes?sort=asc&activity_filter=only_activity", Status: 200, Want: `[{"body":"changed title from **First** to **x**","system":true,"author":{"username":"dan"},"resolvable":false},
				{"body":"changed title from **x** to **First**"},{"body":"added ~bug ~late labels"},{"body":"unassigned @alice, @dan"},{"body":"removed milestone"},{"body":"removed due date"},
				{"body":"locked the discussion in this issue"},{"body":"removed ~late label"},{"body":"assigned to @bob"},{"body":"removed ~bug label"}]`},
			{Name: "locked for strangers", Do: "POST " + at + "/1/notes", As: dan, JSON: `{"body":"x"}`, Status: 403},
			{Name: "who took part", Do: "GET " + at + "/1/participants", Status: 200, Want: `[{"username":"bob"}]`},
			{Name: "subscribed before", Do: "POST " + at + "/1/subscribe", As: bob, Status: 304},
			{Name: "subscribe", Do: "POST " + at + "/3/subscribe", As: bob, Status: 201, Want: `{"subscribed":true}`},
			{Name: "unsubscribe", Do: "POST " + at + "/3/unsubscribe", As: bob, Status: 201, Want: `{"subscribed":false}`},
			{Name: "and again", Do: "POST " + at + "/3/unsubscribe", As: bob, Status: 304},
			{Name: "delete as a guest", Do: "DELETE " + at + "/8", As: bob, Status: 403},
			{Name: "changed since", Do: "DELETE " + at + "/8", As: alice, Header: map[string]string{"If-Unmodified-Since": "Mon, 01 Jan 2024 00:00:00 GMT"}, Status: 412},
			{Name: "delete", Do: "DELETE " + at + "/8", As: alice, Status: 204},
			{Name: "gone", Do: "GET " + at + "/8", As: alice, Status: 404},
			{Name: "recorded", Do: fmt.Sprintf("GET /projects/%d/audit_events?per_page=1", id), As: alice, Status: 200, Want: `[{"event_type":"delete_issue","details":{"remove":"issue","target_details":"Eighth"}}]`},
			{Name: "events", Do: fmt.Sprintf("GET /projects/%d/events?target_type=issue", id), Status: 200, Want: `[{"action_name":"reopened","target_iid":2,"target_type":"Issue","target_title":"Second"},{"action_name":"closed"},
				{"action_name":"opened","target_iid":7},{"action_name":"opened","target_iid":3},{"action_name":"opened","target_iid":2},{"action_name":"opened","target_iid":1,"target_title":"First"}]`},
			{Name: "of milestones", Do: fmt.Sprintf("GET /projects/%d/events?target_type=milestone", id), Status: 200, Want: `[{"action_name":"opened","target_iid":1,"target_title":"v1"}]`},
		})
		var list []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + at + "?iids=1,2,3&sort=asc", Status: 200}).JSON(t, &list)
		s.Table(t, []apptest.Call{
			{Name: "order by hand", Do: "PUT " + at + "/3/reorder", As: alice, JSON: fmt.Sprintf(`{"move_after_id":%d,"move_before_id":%d}`, list[0].ID, list[1].ID), Status: 200},
			{Do: "GET " + at + "?order_by=relative_position&sort=asc&iids=1,2,3", Status: 200, Want: `[{"iid":1},{"iid":3},{"iid":2}]`},
			{Name: "link", Do: "POST " + at + "/1/links", As: alice, JSON: fmt.Sprintf(`{"target_project_id":%d,"target_issue_iid":2,"link_type":"blocks"}`, id), Status: 201,
				Want: `{"source_issue":{"iid":1},"target_issue":{"iid":2},"link_type":"blocks"}`},
			{Name: "note of a blocking issue", Do: "GET " + at + "/1/notes?activity_filter=only_activity&order_by=created_at&sort=desc&per_page=1", Status: 200, Want: `[{"body":"marked this issue as blocking #2"}]`},
			{Name: "note of a blocked issue", Do: "GET " + at + "/2/notes?activity_filter=only_activity&order_by=created_at&sort=desc&per_page=1", Status: 200, Want: `[{"body":"marked this issue as blocked by #1"}]`},
			{Name: "linked", Do: "POST " + at + "/2/links", As: alice, JSON: fmt.Sprintf(`{"target_project_id":%d,"target_issue_iid":1}`, id), Status: 409},
			{Name: "from the other side", Do: "GET " + at + "/2/links", Status: 200, Want: `[{"iid":1,"link_type":"is_blocked_by","issue_link_id":"<any>"}]`},
			{Name: "by a stranger", Do: "POST " + at + "/1/links", As: dan, JSON: fmt.Sprintf(`{"target_project_id":%d,"target_issue_iid":3}`, id), Status: 403},
			{Name: "move without a right", Do: "POST " + at + "/3/move", As: bob, JSON: fmt.Sprintf(`{"to_project_id":%d}`, other), Status: 403},
			{Name: "move into nothing", Do: "POST " + at + "/3/move", As: alice, JSON: `{"to_project_id":999999}`, Status: 404},
			{Name: "move to where it is", Do: "POST " + at + "/3/move", As: alice, JSON: fmt.Sprintf(`{"to_project_id":%d}`, id), Status: 400},
			{Name: "say something", Do: "POST " + at + "/3/notes", As: bob, JSON: `{"body":"kept"}`, Status: 201},
			{Name: "a label that both have", Do: fmt.Sprintf("POST /projects/%d/labels", other), As: alice, JSON: `{"name":"bug","color":"#ff0000"}`, Status: 201},
			{Name: "a milestone that both have", Do: "PUT " + at + "/3", As: alice, JSON: fmt.Sprintf(`{"milestone_id":%d}`, goal), Status: 200, Want: `{"labels":["bug","needs work"]}`},
			{Name: "move", Do: "POST " + at + "/3/move", As: alice, JSON: fmt.Sprintf(`{"to_project_id":%d}`, other), Status: 201, Want: fmt.Sprintf(`{"iid":1,"project_id":%d,"title":"Third","weight":3,"labels":["bug"],"milestone":{"id":`+fmt.Sprint(foreign)+`},"user_notes_count":1,"author":{"username":"alice"}}`, other)},
			{Name: "move again", Do: "POST " + at + "/3/move", As: alice, JSON: fmt.Sprintf(`{"to_project_id":%d}`, other), Status: 400, Want: `{"message":"400 Bad request - Cannot move issue that has been moved already!"}`},
			{Name: "no label was made", Do: fmt.Sprintf("GET /projects/%d/labels", other), As: alice, Status: 200, Want: `[{"name":"bug"}]`},
			{Name: "what it left", Do: "GET " + at + "/3", As: alice, Status: 200, Want: `{"state":"closed","moved_to_id":"<any>"}`},
			{Name: "without a redirect", Do: "GET " + at + "/3/notes?per_page=1&activity_filter=only_activity", Status: 200, Want: `[{"body":"moved to an issue of another project"}]`},
			{Name: "its notes went along", Do: fmt.Sprintf("GET /projects/%d/issues/1/notes?activity_filter=only_comments", other), As: alice, Status: 200, Want: `[{"body":"kept","author":{"username":"bob"},"noteable_iid":1}]`},
			{Name: "clone", Do: "POST " + at + "/1/clone", As: alice, JSON: fmt.Sprintf(`{"to_project_id":%d,"with_notes":true}`, other), Status: 201, Want: `{"iid":2,"title":"First","author":{"username":"alice"}}`},
		})
		var links []struct {
			ID int64 `json:"issue_link_id"`
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/1/links", Status: 200}).JSON(t, &links)
		s.Table(t, []apptest.Call{
			{Name: "unlink", Do: fmt.Sprintf("DELETE %s/1/links/%d", at, links[0].ID), As: alice, Status: 200, Want: `{"link_type":"blocks"}`},
			{Do: "GET " + at + "/1/links", Status: 200, Want: `[]`},
			{Name: "turned off", Do: fmt.Sprintf("PUT /projects/%d", id), As: alice, JSON: `{"issues_access_level":"disabled"}`, Status: 200},
			{Do: "GET " + at, As: alice, Status: 404},
			{Do: "GET " + at + "/1/notes", As: alice, Status: 404},
			{Do: fmt.Sprintf("GET /groups/%d/issues", top), As: alice, Status: 200, Want: `[]`},
		})
	})
}

// TestMoveAtOnce moves an issue with concurrent requests: it is moved once.
func TestMoveAtOnce(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, other := newProject(t, s, alice, "plan", ""), newProject(t, s, alice, "other", "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: `{"title":"x"}`, Status: 201})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				s.Send(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues/1/move", id), As: alice, JSON: fmt.Sprintf(`{"to_project_id":%d}`, other)})
			})
		}
		wg.Wait()
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/issues", other), As: alice, Status: 200, Want: `[{"iid":1}]`})
	})
}

// TestIssueNumbers creates issues concurrently and checks that their numbers have no
// gaps or duplicates.
func TestIssueNumbers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := newProject(t, s, alice, "plan", "")
		const writers, each = 4, 5
		var wg sync.WaitGroup
		numbers := make([][]int64, writers)
		for w := range writers {
			wg.Go(func() {
				for range each {
					var i struct{ IID int64 }
					s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: `{"title":"x"}`, Status: 201}).JSON(t, &i)
					numbers[w] = append(numbers[w], i.IID)
				}
			})
		}
		wg.Wait()
		all := slices.Concat(numbers...)
		slices.Sort(all)
		for n, got := range all {
			if got != int64(n+1) {
				t.Fatalf("numbers %v", all)
			}
		}
	})
}

func TestNotes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id := newProject(t, s, alice, "plan", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Guest)
		at := fmt.Sprintf("/projects/%d/issues/1", id)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: `{"title":"Talk"}`, Status: 201})
		note := made(t, s, bob, "POST "+at+"/notes", `{"body":"Hello"}`)
		inside := made(t, s, alice, "POST "+at+"/notes", `{"body":"between us","internal":true}`)
		var thread struct{ ID string }
		s.Check(t, apptest.Call{Do: "POST " + at + "/discussions", As: bob, JSON: `{"body":"A thread"}`, Status: 201,
			Want: `{"individual_note":false,"notes":[{"type":"DiscussionNote","body":"A thread","resolvable":true,"resolved":false}]}`}).JSON(t, &thread)
		discussion := at + "/discussions/" + thread.ID
		reply := made(t, s, alice, "POST "+discussion+"/notes", `{"body":"A reply"}`)
		s.Table(t, []apptest.Call{
			{Name: "one", Do: fmt.Sprintf("GET %s/notes/%d", at, note), Status: 200, Want: fmt.Sprintf(`{"id":%d,"type":null,"body":"Hello","attachment":null,"author":{"username":"bob"},"system":false,
				"noteable_type":"Issue","noteable_iid":1,"project_id":%d,"resolvable":false,"internal":false,"confidential":false,"commands_changes":{}}`, note, id)},
			{Name: "an internal one, for a guest", Do: fmt.Sprintf("GET %s/notes/%d", at, inside), As: bob, Status: 404},
			{Name: "and for who may", Do: fmt.Sprintf("GET %s/notes/%d", at, inside), As: alice, Status: 200, Want: `{"internal":true,"confidential":true}`},
			{Name: "which a guest does not write", Do: "POST " + at + "/notes", As: bob, JSON: `{"body":"x","internal":true}`, Status: 403},
			{Name: "all", Do: "GET " + at + "/notes?sort=asc", As: bob, Status: 200, Want: `[{"body":"Hello"},{"body":"A thread"},{"body":"A reply"}]`, WantHeader: map[string]string{"X-Total": "3"}},
			{Name: "with the internal one", Do: "GET " + at + "/notes", As: alice, Status: 200, Want: `[{"body":"A reply"},{"body":"A thread"},{"body":"between us"},{"body":"Hello"}]`},
			{Name: "discussions", Do: "GET " + at + "/discussions", As: bob, Status: 200, Want: `[{"individual_note":true,"notes":[{"body":"Hello"}]},{"individual_note":false,"notes":[{"body":"A thread"},{"body":"A reply"}]}]`},
			{Name: "who took part", Do: "GET " + at + "/participants", As: bob, Status: 200, Want: `[{"username":"alice"},{"username":"bob"}]`},
			{Name: "resolve as a guest", Do: "PUT " + discussion, As: bob, JSON: `{"resolved":true}`, Status: 403},
			{Name: "resolve", Do: "PUT " + discussion, As: alice, JSON: `{"resolved":true}`, Status: 200, Want: `{"notes":[{"resolved":true,"resolved_by":{"username":"alice"},"resolved_at":"<any>"},{"resolved":true}]}`},
			{Name: "and not", Do: "PUT " + discussion, As: alice, JSON: `{"resolved":false}`, Status: 200, Want: `{"notes":[{"resolved":false},{"resolved":false}]}`},
			{Name: "no such discussion", Do: "GET " + at + "/discussions/0123", As: bob, Status: 404},
			{Name: "reply to none", Do: "POST " + at + "/discussions/0123/notes", As: bob, JSON: `{"body":"x"}`, Status: 404},
			{Name: "change another's", Do: fmt.Sprintf("PUT %s/notes/%d", at, reply), As: bob, JSON: `{"body":"x"}`, Status: 403},
			{Name: "change one's own", Do: fmt.Sprintf("PUT %s/notes/%d", at, note), As: bob, JSON: `{"body":"Hello there"}`, Status: 200, Want: `{"body":"Hello there"}`},
			{Name: "as a maintainer", Do: fmt.Sprintf("PUT %s/notes/%d", discussion, reply), As: alice, JSON: `{"body":"Another reply"}`, Status: 200},
			{Name: "nothing said", Do: "POST " + at + "/notes", As: bob, JSON: `{"body":" "}`, Status: 400},
			{Name: "counted", Do: "GET " + at, As: bob, Status: 200, Want: `{"user_notes_count":4}`},
			{Name: "events for a guest", Do: "GET /users/alice/events?target_type=note", As: bob, Status: 200, Want: `[{"action_name":"commented on","target_type":"DiscussionNote","target_title":"Talk",
				"note":{"body":"Another reply","noteable_type":"Issue","noteable_iid":1,"system":false,"attachment":null,"author":{"username":"alice"}}}]`},
			{Name: "events for an insider", Do: fmt.Sprintf("GET /projects/%d/events?action=commented", id), As: alice, Status: 200, Want: `["<any>","<any>",{"note":{"body":"between us"}},{"target_type":"Note","target_iid":` + fmt.Sprint(note) + `}]`},
			{Name: "delete", Do: fmt.Sprintf("DELETE %s/notes/%d", at, note), As: bob, Status: 204},
			{Name: "in a discussion", Do: fmt.Sprintf("DELETE %s/notes/%d", discussion, reply), As: alice, Status: 204},
			{Name: "counted again", Do: "GET " + at, As: bob, Status: 200, Want: `{"user_notes_count":2}`},
			{Name: "their events went along", Do: fmt.Sprintf("GET /projects/%d/events?action=commented", id), As: bob, Status: 200, Want: `[{"note":{"body":"A thread"}}]`},
		})
		// A note becomes a thread with the first reply.
		single := made(t, s, bob, "POST "+at+"/notes", `{"body":"Alone"}`)
		var list []struct {
			ID    string
			Notes []struct{ ID int64 }
		}
		s.Check(t, apptest.Call{Do: "GET " + at + "/discussions", As: bob, Status: 200}).JSON(t, &list)
		last := list[len(list)-1]
		if last.Notes[0].ID != single {
			t.Fatalf("the last discussion is %+v", last)
		}
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/discussions/" + last.ID + "/notes", As: alice, JSON: `{"body":"Not any more"}`, Status: 201},
			{Do: "GET " + at + "/discussions/" + last.ID, Status: 200, Want: `{"individual_note":false,"notes":[{"type":"DiscussionNote"},{"type":"DiscussionNote"}]}`},
			{Name: "of an archived project", Do: fmt.Sprintf("POST /projects/%d/archive", id), As: alice, Status: 201},
			{Do: "POST " + at + "/notes", As: alice, JSON: `{"body":"x"}`, Status: 403},
			{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: `{"title":"x"}`, Status: 403},
		})
	})
}

// TestNoteOnChangedIssue checks that a note on an issue that becomes confidential or
// is deleted meanwhile notifies no one.
func TestNoteOnChangedIssue(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		_, dan := s.User(t, "dan")
		id := newProject(t, s, alice, "plan", `,"visibility":"public"`)
		at := fmt.Sprintf("/projects/%d/issues", id)
		s.Check(t, apptest.Call{Do: "POST " + at, As: alice, JSON: `{"title":"Talk"}`, Status: 201})
		by := actor.Actor{ID: aliceID}
		on, err := s.Plan.OnIssue(t.Context(), by, project.RefTo(id), 1)
		if err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "PUT " + at + "/1", As: alice, JSON: `{"confidential":true}`, Status: 200})
		if _, err := s.Plan.CreateNote(t.Context(), by, on, plan.NewNote{Body: "x"}); err != nil {
			t.Fatal(err)
		}
		events := fmt.Sprintf("GET /projects/%d/events?target_type=note", id)
		s.Table(t, []apptest.Call{
			{Name: "who plans", Do: events, As: alice, Status: 200, Want: `[{"action_name":"commented on"}]`},
			{Name: "a stranger", Do: events, As: dan, Status: 200, Want: `[]`},
			{Name: "delete", Do: "DELETE " + at + "/1", As: alice, Status: 204},
		})
		if _, err := s.Plan.CreateNote(t.Context(), by, on, plan.NewNote{Body: "x"}); !errs.Is(err, errs.KindNotFound) {
			t.Errorf("a note on nothing: %v", err)
		}
		s.Check(t, apptest.Call{Name: "nothing is left", Do: events, As: alice, Status: 200, Want: `[]`})
	})
}
