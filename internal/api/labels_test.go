package api_test

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

func TestLabels(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"visibility":"public","parent_id":%d`, top))
		id := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, sub))
		other := newProject(t, s, alice, "other", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, sub))
		own := newProject(t, s, alice, "own", `,"visibility":"public"`)
		enlist(t, s, id, bobID, project.Guest)
		made(t, s, alice, fmt.Sprintf("POST /projects/%d/labels", own), `{"name":"x","color":"red"}`)
		at, above := fmt.Sprintf("/projects/%d/labels", id), fmt.Sprintf("/groups/%d/labels", top)
		same := made(t, s, alice, fmt.Sprintf("POST /projects/%d/labels", other), `{"name":"bug","color":"red"}`)
		board := fmt.Sprintf("/projects/%d/boards/%d", other, made(t, s, alice, fmt.Sprintf("POST /projects/%d/boards", other), `{"name":"b"}`))
		made(t, s, alice, "POST "+board+"/lists", fmt.Sprintf(`{"label_id":%d}`, same))
		s.Table(t, []apptest.Call{
			{Name: "of a group", Do: "POST " + above, As: alice, JSON: `{"name":"area","color":"yellow","description":"<b>"}`, Status: 201,
				Want: `{"name":"area","color":"#ffff00","text_color":"#1F1E24","description":"<b>","description_html":"&lt;b&gt;","is_project_label":false,"priority":null,"subscribed":false}`},
			{Name: "of a project", Do: "POST " + at, As: alice, JSON: `{"name":"bug","color":"#F00","priority":2}`, Status: 201, Want: `{"name":"bug","color":"#ff0000","text_color":"#FFFFFF","priority":2,"is_project_label":true}`},
			{Name: "twice", Do: "POST " + at, As: alice, JSON: `{"name":"bug","color":"#F00"}`, Status: 409, Want: `{"message":"Label already exists"}`},
			{Name: "as one above", Do: "POST " + at, As: alice, JSON: `{"name":"area","color":"#F00"}`, Status: 409},
			{Name: "of no colour", Do: "POST " + at, As: alice, JSON: `{"name":"x","color":"#12"}`, Status: 400, Want: `{"message":{"color":["must be a valid color code"]}}`},
			{Name: "with a comma", Do: "POST " + at, As: alice, JSON: `{"name":"a,b","color":"#F00"}`, Status: 400},
			{Name: "as a guest", Do: "POST " + at, As: bob, JSON: `{"name":"x","color":"#F00"}`, Status: 403},
			{Name: "without a colour", Do: "POST " + at, As: alice, JSON: `{"name":"x"}`, Status: 400, Want: `{"error":"color is missing"}`},
			{Name: "all", Do: "GET " + at, Status: 200, Want: `[{"name":"area"},{"name":"bug"}]`},
			{Name: "its own", Do: "GET " + at + "?include_ancestor_groups=false", Status: 200, Want: `[{"name":"bug"}]`},
			{Name: "search", Do: "GET " + at + "?search=AR", Status: 200, Want: `[{"name":"area"}]`},
			{Name: "by name", Do: "GET " + at + "/area", Status: 200, Want: `{"name":"area"}`},
			{Name: "by name of the group", Do: fmt.Sprintf("GET /groups/%d/labels/area", sub), Status: 200, Want: `{"name":"area"}`},
			{Name: "another", Do: "GET " + at + "/none", Status: 404, Want: `{"message":"404 Label Not Found"}`},
			{Name: "change one above", Do: "PUT " + at + "/area", As: alice, JSON: `{"color":"red"}`, Status: 404},
			{Name: "but for its place", Do: "PUT " + at + "/area", As: alice, JSON: `{"priority":1}`, Status: 200, Want: `{"priority":1}`},
			{Name: "which is none elsewhere", Do: fmt.Sprintf("GET /projects/%d/labels/area", other), Status: 200, Want: `{"priority":null}`},
			{Name: "change", Do: "PUT " + at + "/bug", As: alice, JSON: `{"new_name":"big/bug","description":"x","priority":null}`, Status: 200, Want: `{"name":"big/bug","description":"x","priority":null}`},
			{Name: "by a path", Do: "GET " + at + "/big%2Fbug", Status: 200, Want: `{"name":"big/bug"}`},
			{Name: "named in the body", Do: "PUT " + at, As: alice, JSON: `{"name":"big/bug","new_name":"bug"}`, Status: 200, Want: `{"name":"bug"}`},
			{Name: "to one that is there", Do: "PUT " + at + "/bug", As: alice, JSON: `{"new_name":"area"}`, Status: 409},
			{Name: "subscribe", Do: "POST " + at + "/bug/subscribe", As: bob, Status: 201, Want: `{"subscribed":true}`},
			{Name: "again", Do: "POST " + at + "/bug/subscribe", As: bob, Status: 304},
			{Name: "unsubscribe", Do: "POST " + at + "/bug/unsubscribe", As: bob, Status: 201, Want: `{"subscribed":false}`},
			{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: `{"title":"x","labels":"bug"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: `{"title":"y","labels":"bug","confidential":true}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues", other), As: alice, JSON: `{"title":"z","labels":"bug"}`, Status: 201},
			{Name: "counts", Do: "GET " + at + "?with_counts=true&search=bug", As: alice, Status: 200, Want: `[{"open_issues_count":2,"closed_issues_count":0}]`},
			{Name: "of what one sees", Do: "GET " + at + "?with_counts=true&search=bug", As: bob, Status: 200, Want: `[{"open_issues_count":1}]`},
			{Name: "promote as a guest", Do: "PUT " + at + "/bug/promote", As: bob, Status: 403},
			{Name: "promote in no group", Do: fmt.Sprintf("PUT /projects/%d/labels/x/promote", own), As: alice, Status: 400},
			{Name: "promote nothing", Do: fmt.Sprintf("PUT /projects/%d/labels/y/promote", own), As: alice, Status: 404},
			{Do: fmt.Sprintf("POST /projects/%d/labels/bug/subscribe", other), As: bob, Status: 201},
			{Name: "promote", Do: "PUT " + at + "/bug/promote", As: alice, Status: 200, Want: `{"name":"bug","is_project_label":false}`},
			{Name: "with the same name", Do: fmt.Sprintf("GET /groups/%d/issues?labels=bug&confidential=false", sub), Status: 200, Want: `[{"title":"z"},{"title":"x"}]`},
			{Name: "in lists of boards", Do: "GET " + board, Status: 200, Want: `{"lists":[{"label":{"name":"bug","color":"#ff0000"}}]}`},
			{Name: "and who wants to hear of it", Do: fmt.Sprintf("GET /groups/%d/labels/bug", sub), As: bob, Status: 200, Want: `{"subscribed":true}`},
			{Name: "delete", Do: fmt.Sprintf("DELETE /groups/%d/labels/bug", sub), As: alice, Status: 204},
			{Name: "named in the query", Do: "DELETE " + above + "?name=area", As: alice, Status: 204},
			{Name: "none left", Do: "GET " + at, Status: 200, Want: `[]`},
			{Do: fmt.Sprintf("GET /projects/%d/issues", other), Status: 200, Want: `[{"labels":[]}]`},
		})
	})
}

func TestMilestones(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		id := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, top))
		enlist(t, s, id, bobID, project.Guest)
		at, above := fmt.Sprintf("/projects/%d/milestones", id), fmt.Sprintf("/groups/%d/milestones", top)
		first := made(t, s, alice, "POST "+at, `{"title":"v1","description":"d","start_date":"2024-01-01","due_date":"2024-02-01"}`)
		second := made(t, s, alice, "POST "+at, `{"title":"v2"}`)
		shared := made(t, s, alice, "POST "+above, `{"title":"all"}`)
		one := fmt.Sprintf("%s/%d", at, first)
		other := newProject(t, s, alice, "other", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, top))
		same := made(t, s, alice, fmt.Sprintf("POST /projects/%d/milestones", other), `{"title":"v1.0"}`)
		board := fmt.Sprintf("/projects/%d/boards/%d", other, made(t, s, alice, fmt.Sprintf("POST /projects/%d/boards", other), `{"name":"b"}`))
		s.Check(t, apptest.Call{Do: "PUT " + board, As: alice, JSON: fmt.Sprintf(`{"milestone_id":%d}`, same), Status: 200})
		made(t, s, alice, "POST "+board+"/lists", fmt.Sprintf(`{"milestone_id":%d}`, same))
		s.Table(t, []apptest.Call{
			{Name: "one", Do: "GET " + one, Status: 200, Want: fmt.Sprintf(`{"id":%d,"iid":1,"project_id":%d,"title":"v1","description":"d","state":"active","start_date":"2024-01-01","due_date":"2024-02-01","expired":true,
				"web_url":"%s/top/p/-/milestones/1"}`, first, id, s.URL), Not: []string{"group_id"}},
			{Name: "of the group", Do: fmt.Sprintf("GET %s/%d", above, shared), Status: 200, Want: fmt.Sprintf(`{"iid":1,"group_id":%d,"web_url":"%s/groups/top/-/milestones/1"}`, top, s.URL), Not: []string{"project_id"}},
			{Name: "not of the project", Do: fmt.Sprintf("GET %s/%d", at, shared), Status: 404},
			{Name: "list", Do: "GET " + at, Status: 200, Want: `[{"title":"v2"},{"title":"v1"}]`},
			{Name: "with those above", Do: "GET " + at + "?include_ancestors=true", Status: 200, Want: `[{"title":"all"},{"title":"v2"},{"title":"v1"}]`},
			{Name: "with those below", Do: "GET " + above + "?include_descendants=true", Status: 200, Want: `[{"title":"v1.0"},{"title":"all"},{"title":"v2"},{"title":"v1"}]`},
			{Name: "by number", Do: "GET " + at + "?iids[]=2", Status: 200, Want: `[{"title":"v2"}]`},
			{Name: "by title", Do: "GET " + at + "?title=v1", Status: 200, Want: `[{"iid":1}]`},
			{Name: "search", Do: "GET " + at + "?search=D", Status: 200, Want: `[{"iid":1}]`},
			{Name: "taken", Do: "POST " + at, As: alice, JSON: `{"title":"v1"}`, Status: 400},
			{Name: "taken above", Do: "POST " + at, As: alice, JSON: `{"title":"all"}`, Status: 400},
			{Name: "the wrong way round", Do: "PUT " + one, As: alice, JSON: `{"due_date":"2023-01-01"}`, Status: 400, Want: `{"message":{"due_date":["must be greater than start date"]}}`},
			{Name: "as a guest", Do: "PUT " + one, As: bob, JSON: `{"title":"x"}`, Status: 403},
			{Name: "close", Do: "PUT " + one, As: alice, JSON: `{"state_event":"close","title":"v1.0","due_date":"","start_date":null}`, Status: 200, Want: `{"state":"closed","title":"v1.0","due_date":null,"start_date":null,"expired":false}`},
			{Name: "by state", Do: "GET " + at + "?state=active", Status: 200, Want: `[{"title":"v2"}]`},
			{Name: "activate", Do: "PUT " + one, As: alice, JSON: `{"state_event":"activate"}`, Status: 200, Want: `{"state":"active"}`},
			{Name: "events", Do: fmt.Sprintf("GET /projects/%d/events?target_type=milestone", id), Status: 200,
				Want: `[{"action_name":"reopened","target_title":"v1.0"},{"action_name":"closed","target_title":"v1.0"},{"action_name":"opened","target_title":"v2"},{"action_name":"opened","target_title":"v1.0"}]`},
			{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: fmt.Sprintf(`{"title":"x","milestone_id":%d}`, first), Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: fmt.Sprintf(`{"title":"y","milestone_id":%d,"confidential":true}`, first), Status: 201},
			{Name: "its issues", Do: "GET " + one + "/issues", As: bob, Status: 200, Want: `[{"title":"x"}]`},
			{Name: "promote", Do: "POST " + one + "/promote", As: alice, Status: 200, Want: fmt.Sprintf(`{"group_id":%d,"iid":2,"title":"v1.0"}`, top)},
			{Name: "with its issues", Do: fmt.Sprintf("GET %s/%d/issues", above, first), As: alice, Status: 200, Want: `[{"title":"y"},{"title":"x"}]`},
			{Name: "in place of the duplicate", Do: "GET " + board, Status: 200, Want: fmt.Sprintf(`{"milestone":{"id":%d},"lists":[{"milestone":{"id":%[1]d}}]}`, first)},
			{Name: "without details", Do: fmt.Sprintf("GET /projects/%d/events?target_type=milestone", other), Status: 200, Want: `[]`},
			{Name: "another that the group has", Do: fmt.Sprintf("PUT %s/%d", at, second), As: alice, JSON: `{"title":"v1.0"}`, Status: 400},
			{Name: "delete", Do: fmt.Sprintf("DELETE %s/%d", at, second), As: alice, Status: 204},
			{Name: "notified", Do: fmt.Sprintf("GET /projects/%d/events?target_type=milestone", id), Status: 200, Want: `[{"action_name":"destroyed","target_title":"v2"}]`},
			{Name: "of the group too", Do: fmt.Sprintf("DELETE %s/%d", above, first), As: alice, Status: 204},
			{Do: fmt.Sprintf("GET /projects/%d/issues/1", id), Status: 200, Want: `{"milestone":null}`},
		})
	})
}

// TestLabelCounts counts the issues and merge requests with a label that the caller
// can see.
func TestLabelCounts(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		id := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public","initialize_with_readme":true`, top))
		other := newProject(t, s, alice, "q", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public","initialize_with_readme":true`, top))
		in := func(project int64) string { return fmt.Sprintf("/projects/%d", project) }
		made(t, s, alice, fmt.Sprintf("POST /groups/%d/labels", top), `{"name":"bug","color":"red"}`)
		for _, project := range []int64{id, id, other} {
			branch := fmt.Sprintf("b%d", made(t, s, alice, "POST "+in(project)+"/issues", `{"title":"x","labels":"bug"}`))
			s.Check(t, apptest.Call{Do: "POST " + in(project) + "/repository/files/" + branch, As: alice, Status: 201,
				JSON: fmt.Sprintf(`{"branch":%q,"start_branch":"main","content":"x","commit_message":"m"}`, branch)})
			s.Check(t, apptest.Call{Do: "POST " + in(project) + "/merge_requests", As: alice, Status: 201,
				JSON: fmt.Sprintf(`{"title":"x","source_branch":%q,"target_branch":"main","labels":"bug"}`, branch)})
		}
		s.Check(t, apptest.Call{Do: "PUT " + in(id) + "/merge_requests/2", As: alice, JSON: `{"state_event":"close"}`, Status: 200})
		counts := func(as, at, want string) {
			t.Helper()
			s.Check(t, apptest.Call{Do: "GET " + at + "/labels?with_counts=true", As: as, Status: 200, Want: "[" + want + "]"})
		}
		counts(bob, in(id), `{"open_issues_count":2,"closed_issues_count":0,"open_merge_requests_count":1}`)
		counts(bob, fmt.Sprintf("/groups/%d", top), `{"open_issues_count":3,"open_merge_requests_count":2}`)
		s.Check(t, apptest.Call{Do: "PUT " + in(id), As: alice, JSON: `{"merge_requests_access_level":"private"}`, Status: 200})
		counts(alice, in(id), `{"open_merge_requests_count":1}`)
		counts(bob, in(id), `{"open_issues_count":2,"open_merge_requests_count":0}`)
		counts(bob, fmt.Sprintf("/groups/%d", top), `{"open_merge_requests_count":1}`)
		s.Check(t, apptest.Call{Do: "GET " + in(id) + "/labels", As: alice, Status: 200, Want: `[{"open_merge_requests_count":0}]`})
	})
}

// TestPlansOfHiddenSubgroups lists the labels and milestones of a group whose
// subgroups the caller cannot see, or only in part.
func TestPlansOfHiddenSubgroups(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		guestID, guest := s.User(t, "guest")
		pub := group(t, s, alice, "pub", `,"visibility":"public"`)
		priv := group(t, s, alice, "priv", "")
		for at, parent := range map[string]int64{"open": pub, "secret": pub, "seen": priv, "hidden": priv} {
			visibility := "private"
			if at == "open" {
				visibility = "public"
			}
			id := group(t, s, alice, at, fmt.Sprintf(`,"parent_id":%d,"visibility":%q`, parent, visibility))
			made(t, s, alice, fmt.Sprintf("POST /groups/%d/labels", id), fmt.Sprintf(`{"name":%q,"color":"red"}`, at))
			made(t, s, alice, fmt.Sprintf("POST /groups/%d/milestones", id), fmt.Sprintf(`{"title":%q}`, at))
			if at == "seen" {
				enlist(t, s, newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d`, id)), guestID, project.Guest)
			}
		}
		list := func(as string, in int64, names ...string) {
			t.Helper()
			labels, milestones := []string{}, []string{}
			for _, name := range names {
				labels, milestones = append(labels, fmt.Sprintf(`{"name":%q}`, name)), append(milestones, fmt.Sprintf(`{"title":%q}`, name))
			}
			at := fmt.Sprintf("GET /groups/%d", in)
			s.Check(t, apptest.Call{Do: at + "/labels?include_descendant_groups=true", As: as, Status: 200, Want: "[" + strings.Join(labels, ",") + "]"})
			s.Check(t, apptest.Call{Do: at + "/milestones?include_descendants=true&search=e", As: as, Status: 200, Want: "[" + strings.Join(milestones, ",") + "]"})
			if as != "" {
				s.Check(t, apptest.Call{Do: at + "/search?scope=milestones&search=e", As: as, Status: 200, Want: "[" + strings.Join(milestones, ",") + "]"})
			}
		}
		list("", pub, "open")
		list(bob, pub, "open")
		list(guest, priv, "seen")
	})
}
