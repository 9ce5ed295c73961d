package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

func TestResourceEvents(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		const at = "/projects/alice%2Fp"
		s.Table(t, []apptest.Call{
			{Do: "POST /projects", As: alice, JSON: `{"name":"p","visibility":"public","initialize_with_readme":true}`, Status: 201},
			{Do: "POST " + at + "/labels", As: alice, JSON: `{"name":"bug","color":"#ff0000","description":"broken"}`, Status: 201},
		})
		var milestones [2]struct {
			ID int64 `json:"id"`
		}
		for n := range milestones {
			s.Check(t, apptest.Call{Do: "POST " + at + "/milestones", As: alice, JSON: fmt.Sprintf(`{"title":"m%d"}`, n), Status: 201}).JSON(t, &milestones[n])
		}
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/repository/branches?branch=work&ref=main", As: alice, Status: 201},
			{Do: "POST " + at + "/repository/commits", As: alice, JSON: `{"branch":"work","commit_message":"x","actions":[{"action":"create","file_path":"x","content":"x"}]}`, Status: 201},
			{Do: "POST " + at + "/issues", As: alice, JSON: fmt.Sprintf(`{"title":"one","labels":"bug","milestone_id":%d,"weight":2}`, milestones[0].ID), Status: 201},
			{Do: "POST " + at + "/merge_requests", As: alice, JSON: fmt.Sprintf(`{"title":"one","source_branch":"work","target_branch":"main","labels":"bug","milestone_id":%d}`, milestones[0].ID), Status: 201},
		})
		for _, on := range []string{"/issues/1", "/merge_requests/1"} {
			kind := "Issue"
			if on != "/issues/1" {
				kind = "MergeRequest"
			}
			s.Table(t, []apptest.Call{
				{Do: "PUT " + at + on, As: alice, JSON: fmt.Sprintf(`{"labels":"new","milestone_id":%d}`, milestones[1].ID), Status: 200},
				{Do: "PUT " + at + on, As: alice, JSON: `{"milestone_id":0,"state_event":"close"}`, Status: 200},
				{Name: "the same again", Do: "PUT " + at + on, As: alice, JSON: `{"milestone_id":0,"state_event":"close","labels":"new"}`, Status: 200},
				{Do: "PUT " + at + on, As: alice, JSON: `{"state_event":"reopen"}`, Status: 200},
				{Name: "labels", Do: "GET " + at + on + "/resource_label_events", As: bob, Status: 200, Want: fmt.Sprintf(`[
					{"action":"add","label":{"name":"bug","color":"#ff0000","text_color":"#FFFFFF","description":"broken"},"resource_type":%q,"user":{"id":%d,"username":"alice"},"created_at":"<any>"},
					{"action":"add","label":{"name":"new"}},{"action":"remove","label":{"name":"bug"}}]`, kind, aliceID)},
				{Name: "milestones", Do: "GET " + at + on + "/resource_milestone_events", Status: 200,
					Want: `[{"action":"add","milestone":{"title":"m0"}},{"action":"add","milestone":{"title":"m1"}},{"action":"remove","milestone":{"title":"m1"}}]`},
				{Name: "states", Do: "GET " + at + on + "/resource_state_events", Status: 200, Want: `[{"state":"closed","user":{"username":"alice"}},{"state":"reopened"}]`},
				{Name: "a page", Do: "GET " + at + on + "/resource_state_events?per_page=1&page=2", Status: 200, Want: `[{"state":"reopened"}]`},
				{Name: "no event", Do: "GET " + at + on + "/resource_state_events/999999", Status: 404},
			})
			var states []struct {
				ID int64 `json:"id"`
			}
			s.Check(t, apptest.Call{Do: "GET " + at + on + "/resource_state_events", As: alice, Status: 200}).JSON(t, &states)
			s.Table(t, []apptest.Call{
				{Name: "one", Do: fmt.Sprintf("GET %s%s/resource_state_events/%d", at, on, states[0].ID), Status: 200, Want: `{"state":"closed"}`},
				{Name: "of another kind", Do: fmt.Sprintf("GET %s%s/resource_label_events/%d", at, on, states[0].ID), Status: 404},
			})
		}
		s.Table(t, []apptest.Call{
			{Do: "PUT " + at + "/issues/1", As: alice, JSON: `{"weight":5}`, Status: 200},
			{Do: "PUT " + at + "/issues/1", As: alice, JSON: `{"weight":null}`, Status: 200},
			{Name: "weights", Do: "GET " + at + "/issues/1/resource_weight_events", Status: 200, Want: `[{"weight":2,"issue_id":"<any>"},{"weight":5},{"weight":null}]`},
			{Name: "no weights of merge requests", Do: "GET " + at + "/merge_requests/1/resource_weight_events", As: alice, Status: 404},
			{Do: "DELETE " + at + "/labels/bug", As: alice, Status: 204},
			{Name: "deleted label", Do: "GET " + at + "/issues/1/resource_label_events", Status: 200, Want: `[{"label":null},{"label":{"name":"new"}},{"label":null}]`},
			{Do: "PUT " + at + "/merge_requests/1/merge", As: alice, Status: 200},
			{Name: "merged", Do: "GET " + at + "/merge_requests/1/resource_state_events", Status: 200, Want: `[{"state":"closed"},{"state":"reopened"},{"state":"merged","user":{"username":"alice"}}]`},
			{Do: "PUT " + at + "/issues/1", As: alice, JSON: `{"confidential":true}`, Status: 200},
			{Name: "confidential", Do: "GET " + at + "/issues/1/resource_label_events", As: bob, Status: 404},
			{Do: "DELETE " + at + "/issues/1", As: alice, Status: 204},
			{Name: "deleted issue", Do: "GET " + at + "/issues/1/resource_label_events", As: alice, Status: 404},
		})
	})
}
