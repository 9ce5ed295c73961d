package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
)

// TestAutoMergeWithoutSuccess checks that auto_merge does not merge at once unless
// the head pipeline succeeded: a client may ask before the pipeline exists.
func TestAutoMergeWithoutSuccess(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		w := newNamedJobs(t, s, "build:\n  script: [\"true\"]\n")
		auto := func(m, name string, status int, want string) apptest.Call {
			return apptest.Call{Name: name, Do: "PUT " + m + "/merge", As: w.owner, JSON: `{"auto_merge":true}`, Status: status, Want: want}
		}
		offer := func(branch string) string {
			w.push(branch, branch, map[string]string{branch: "work\n"})
			m := requested(t, s, w.owner, w.project, branch, "")
			w.settled()
			return m
		}
		finish := func(state string) {
			for j := range w.taken() {
				w.update(j, 200, fmt.Sprintf(`{"state":%q}`, state))
			}
			w.settled()
		}
		failed := offer("failed")
		finish("failed")
		s.Table(t, []apptest.Call{
			auto(failed, "after a failure", 405, `{"message":"405 Method Not Allowed"}`),
			{Name: "not merged", Do: "GET " + failed, As: w.owner, Status: 200, Want: `{"state":"opened","merge_when_pipeline_succeeds":false,"detailed_merge_status":"mergeable"}`},
			{Name: "merged without it", Do: "PUT " + failed + "/merge", As: w.owner, Status: 200, Want: `{"state":"merged"}`},
		})
		finish("success") // the pipeline of the merge
		succeeded := offer("succeeded")
		finish("success")
		s.Check(t, auto(succeeded, "after a success", 200, `{"state":"merged"}`))

		plain := code(t, s, w.owner, "plain", "")
		one, two := proposed(t, s, w.owner, plain, "one", ""), proposed(t, s, w.owner, plain, "two", "")
		s.Table(t, []apptest.Call{
			auto(one, "without a pipeline", 405, ""),
			{Name: "not merged", Do: "GET " + one, As: w.owner, Status: 200, Want: `{"state":"opened"}`},
			{Name: "by a quick action", Do: "POST " + one + "/notes", As: w.owner, JSON: `{"body":"/merge"}`, Status: 202},
			{Name: "merged", Do: "GET " + one, As: w.owner, Status: 200, Want: `{"state":"merged"}`},
			{Name: "required", Do: fmt.Sprintf("PUT /projects/%d", plain), As: w.owner, JSON: `{"only_allow_merge_if_pipeline_succeeds":true}`, Status: 200},
			auto(two, "waits for a required pipeline", 200, `{"state":"opened","merge_when_pipeline_succeeds":true,"detailed_merge_status":"ci_must_pass"}`),
		})
	})
}

// TestAutoMergeWaitsForChecks checks that auto-merge can be set for a draft, and with
// unresolved threads and requested changes, and that it merges after that.
func TestAutoMergeWaitsForChecks(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id := code(t, s, alice, "code", `,"only_allow_merge_if_all_discussions_are_resolved":true`)
		enlist(t, s, id, bobID, project.Developer)
		set := func(m, why string) apptest.Call {
			return apptest.Call{Name: "set with " + why, Do: "PUT " + m + "/merge", As: alice, JSON: `{"auto_merge":true}`, Status: 200,
				Want: fmt.Sprintf(`{"state":"opened","merge_when_pipeline_succeeds":true,"detailed_merge_status":%q}`, why)}
		}
		merged := func(m string) {
			t.Helper()
			becomes(t, s, apptest.Call{Do: "GET " + m, As: alice, Status: 200, Want: `{"state":"merged","merge_user":{"username":"alice"}}`})
		}
		thread := func(m string) (found struct {
			ID    string
			Notes []struct{ ID int64 }
		}) {
			s.Check(t, apptest.Call{Do: "POST " + m + "/discussions", As: bob, JSON: `{"body":"Why?"}`, Status: 201}).JSON(t, &found)
			return found
		}

		draft := proposed(t, s, alice, id, "draft", "")
		s.Table(t, []apptest.Call{
			{Name: "a draft", Do: "PUT " + draft, As: alice, JSON: `{"title":"Draft: x"}`, Status: 200},
			set(draft, "draft_status"),
			{Name: "described", Do: "PUT " + draft, As: alice, JSON: `{"description":"x"}`, Status: 200, Want: `{"merge_when_pipeline_succeeds":true}`},
		})
		becomes(t, s, apptest.Call{Name: "still open", Do: "GET " + draft, As: alice, Status: 200, Want: `{"state":"opened"}`})
		s.Check(t, apptest.Call{Name: "ready", Do: "PUT " + draft, As: alice, JSON: `{"title":"x"}`, Status: 200})
		merged(draft)

		again := proposed(t, s, alice, id, "again", "")
		s.Table(t, []apptest.Call{
			{Do: "PUT " + again, As: alice, JSON: `{"title":"Draft: x"}`, Status: 200},
			set(again, "draft_status"),
			{Do: "PUT " + again, As: alice, JSON: `{"title":"x","target_branch":"draft"}`, Status: 200, Want: `{"merge_when_pipeline_succeeds":false}`},
			{Name: "marked as draft later", Do: "PUT " + again, As: alice, JSON: `{"title":"Draft: y"}`, Status: 200, Want: `{"merge_when_pipeline_succeeds":false}`},
		})

		resolved := proposed(t, s, alice, id, "resolved", "")
		open := thread(resolved)
		s.Table(t, []apptest.Call{
			set(resolved, "discussions_not_resolved"),
			{Name: "resolve", Do: "PUT " + resolved + "/discussions/" + open.ID + "?resolved=true", As: bob, Status: 200},
		})
		merged(resolved)
		deleted := proposed(t, s, alice, id, "deleted", "")
		open = thread(deleted)
		s.Table(t, []apptest.Call{
			set(deleted, "discussions_not_resolved"),
			{Name: "delete", Do: fmt.Sprintf("DELETE %s/notes/%d", deleted, open.Notes[0].ID), As: bob, Status: 204},
		})
		merged(deleted)

		changes := proposed(t, s, alice, id, "changes", "")
		s.Table(t, []apptest.Call{
			{Name: "request changes", Do: "POST " + changes + "/draft_notes/bulk_publish", As: bob, JSON: `{"reviewer_state":"requested_changes"}`, Status: 204},
			set(changes, "requested_changes"),
			{Name: "approve", Do: "POST " + changes + "/approve", As: bob, Status: 201},
		})
		merged(changes)

		clash := proposed(t, s, alice, id, "clash", "")
		commitTo(t, s, alice, id, "main", "clash.txt", "main\n", "Clash")
		s.Table(t, []apptest.Call{
			{Do: "PUT " + clash, As: alice, JSON: `{"title":"Draft: x"}`, Status: 200},
			{Name: "conflicts do not pass by themselves", Do: "PUT " + clash + "/merge", As: alice, JSON: `{"auto_merge":true}`, Status: 405},
		})
	})
}
