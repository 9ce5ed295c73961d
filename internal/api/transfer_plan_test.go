package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

// TestTransferLabels moves a project, and then its group, away from a private group
// whose labels and milestones they use. They keep them when the group is deleted, and
// nothing refers to those of the group.
func TestTransferLabels(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		s.Check(t, apptest.Call{Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200})
		for _, asGroup := range []bool{false, true} {
			name := map[bool]string{false: "project", true: "group"}[asGroup]
			from := group(t, s, alice, "from-"+name, `,"visibility":"private"`)
			to := group(t, s, alice, "to-"+name, `,"visibility":"private"`)
			sub := from
			if asGroup {
				sub = group(t, s, alice, "sub", fmt.Sprintf(`,"visibility":"private","parent_id":%d`, from))
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/labels", sub), As: alice, JSON: `{"name":"inner","color":"red"}`, Status: 201})
			}
			id := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"initialize_with_readme":true`, sub))
			enlist(t, s, id, bobID, project.Reporter)
			at := fmt.Sprintf("/projects/%d", id)
			labels := fmt.Sprintf("/groups/%d/labels", from)
			x := made(t, s, alice, "POST "+labels, `{"name":"x","color":"#112233","description":"secret"}`)
			both := made(t, s, alice, "POST "+labels, `{"name":"both","color":"red"}`)
			made(t, s, alice, "POST "+labels, `{"name":"unused","color":"red"}`)
			target := made(t, s, alice, fmt.Sprintf("POST /groups/%d/labels", to), `{"name":"both","color":"blue"}`)
			milestone := made(t, s, alice, fmt.Sprintf("POST /groups/%d/milestones", from), `{"title":"m","due_date":"2030-01-02"}`)
			own := `,"labels":"x,both"`
			if asGroup {
				own = `,"labels":"x,both,inner"`
			}
			s.Check(t, apptest.Call{Do: "POST " + at + "/issues", As: alice, JSON: fmt.Sprintf(`{"title":"i","milestone_id":%d%s}`, milestone, own), Status: 201})
			s.Check(t, apptest.Call{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"j"}`, Status: 201})
			s.Check(t, apptest.Call{Do: "PUT " + at + "/issues/2", As: alice, JSON: fmt.Sprintf(`{"milestone_id":%d%s}`, milestone, own), Status: 200})
			s.Check(t, apptest.Call{Do: "PUT " + at + "/labels/x", As: alice, JSON: `{"priority":3}`, Status: 200})
			request := proposed(t, s, alice, id, "work", fmt.Sprintf(`,"milestone_id":%d%s`, milestone, own))
			s.Check(t, apptest.Call{Do: "POST " + at + "/releases", As: alice, JSON: `{"tag_name":"v1","ref":"main","milestones":["m"]}`, Status: 201})
			board := fmt.Sprintf("%s/boards/%d", at, made(t, s, alice, "POST "+at+"/boards", `{"name":"b"}`))
			for _, label := range []int64{x, both} {
				made(t, s, alice, "POST "+board+"/lists", fmt.Sprintf(`{"label_id":%d}`, label))
			}
			s.Check(t, apptest.Call{Do: "PUT " + board, As: alice, JSON: fmt.Sprintf(`{"milestone_id":%d}`, milestone), Status: 200})

			if asGroup {
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/transfer", sub), As: alice, JSON: fmt.Sprintf(`{"group_id":%d}`, to), Status: 201})
			} else {
				s.Check(t, apptest.Call{Do: "PUT " + at + "/transfer", As: alice, JSON: fmt.Sprintf(`{"namespace":%d}`, to), Status: 200})
			}
			// A project gets what is missing, a group gets it for all its projects.
			in := fmt.Sprintf(`"project_id":%d`, id)
			if asGroup {
				in = fmt.Sprintf(`"group_id":%d`, sub)
			}
			names := `"both","x"`
			list := fmt.Sprintf(`{"id":%d,"name":"both","color":"#0000ff"},{"name":"x","color":"#112233","description":"secret","priority":3,"is_project_label":%t}`, target, !asGroup)
			if asGroup {
				names, list = `"both","inner","x"`, fmt.Sprintf(`{"id":%d,"name":"both"},{"name":"inner"},{"name":"x","color":"#112233","priority":3}`, target)
			}
			want := `{"labels":[` + names + `],"milestone":{"title":"m","due_date":"2030-01-02",` + in + `}}`
			check := func(t *testing.T) {
				s.Table(t, []apptest.Call{
					{Name: "issue", Do: "GET " + at + "/issues/1", As: bob, Status: 200, Want: want},
					{Name: "merge request", Do: "GET " + request, As: bob, Status: 200, Want: want},
					{Name: "labels", Do: "GET " + at + "/labels", As: bob, Status: 200, Want: `[` + list + `]`},
					{Name: "filter", Do: "GET " + at + "/issues?labels=x,both&milestone=m", As: bob, Status: 200, Want: `["<any>","<any>"]`},
					{Name: "board", Do: "GET " + board, As: bob, Status: 200, Want: `{"milestone":{"title":"m",` + in + `},"lists":[{"label":{"name":"x"}},{"label":{"name":"both"}}]}`},
					{Name: "release", Do: "GET " + at + "/releases/v1", As: bob, Status: 200, Want: `{"milestones":[{"title":"m",` + in + `}]}`},
					{Name: "milestone events", Do: "GET " + at + "/issues/2/resource_milestone_events", As: bob, Status: 200, Want: `[{"action":"add","milestone":{"title":"m"}}]`},
					{Name: "label events", Do: "GET " + at + "/issues/2/resource_label_events?per_page=1", As: bob, Status: 200, Want: `[{"label":{"name":"<any>"}}]`},
				})
			}
			t.Run(name, check)
			s.Check(t, apptest.Call{Name: "the group keeps its own", Do: "GET " + labels, As: alice, Status: 200, Want: `[{"name":"both"},{"name":"unused"},{"name":"x"}]`})
			s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /groups/%d", from), As: alice, Status: 202})
			if err := s.Queue.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /groups/%d", from), As: alice, Status: 404})
			t.Run(name+" after the deletion", check)
		}
	})
}
