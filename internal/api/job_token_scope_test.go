package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

// TestJobTokenScopeMatrix downloads an artifact of another project with a job token,
// for every combination of visibility, job token scope and allowlist.
func TestJobTokenScopeMatrix(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, withArtifacts)
		g := group(t, s, b.owner, "g", "")
		sub := group(t, s, b.owner, "sub", fmt.Sprintf(`,"parent_id":%d`, g))
		_, mary := s.User(t, "mary")
		s.Check(t, apptest.Call{Do: "PUT " + fmt.Sprintf("/projects/%d/transfer", b.project), As: b.owner, JSON: fmt.Sprintf(`{"namespace":%d}`, sub), Status: 200})
		other := b.newProject("other", withArtifacts)
		b.pipeline(other)
		theirs := b.run()
		b.upload(theirs, "artifact_type=archive&artifact_format=zip", zipped(t, map[string]string{"a": "A"}), 201)
		b.update(theirs, 200, `{"state":"success"}`)
		b.pipeline(b.project)
		token := map[string]string{"JOB-TOKEN": b.run().Token}
		away, scope := fmt.Sprintf("/projects/%d", other), fmt.Sprintf("/projects/%d/job_token_scope", other)
		lists := map[string][2]string{ // how the project is added to the list, and removed from it
			"nobody": {}, "project": {fmt.Sprintf(`{"target_project_id":%d}`, b.project), fmt.Sprintf("/allowlist/%d", b.project)},
			"group above": {fmt.Sprintf(`{"target_group_id":%d}`, g), fmt.Sprintf("/groups_allowlist/%d", g)},
			"group":       {fmt.Sprintf(`{"target_group_id":%d}`, sub), fmt.Sprintf("/groups_allowlist/%d", sub)},
		}
		put := func(do, body string, status int) {
			t.Helper()
			s.Check(t, apptest.Call{Do: do, As: b.owner, JSON: body, Status: status})
		}
		for _, visibility := range []string{"private", "internal", "public"} {
			put("PUT "+away, fmt.Sprintf(`{"visibility":%q}`, visibility), 200)
			for _, inbound := range []bool{true, false} {
				put("PATCH "+scope, fmt.Sprintf(`{"enabled":%t}`, inbound), 204)
				for _, home := range []bool{true, false} {
					put("PUT "+fmt.Sprintf("/projects/%d", b.project), fmt.Sprintf(`{"ci_job_token_scope_enabled":%t}`, home), 200)
					for listed, change := range lists {
						if listed != "nobody" {
							list := scope + "/allowlist"
							if listed != "project" {
								list = scope + "/groups_allowlist"
							}
							put("POST "+list, change[0], 201)
						}
						want := 404
						if visibility == "public" || !home && (!inbound || listed != "nobody") {
							want = 200
						}
						s.Check(t, apptest.Call{Name: fmt.Sprint(visibility, " inbound ", inbound, " at home ", home, " listed: ", listed),
							Do: fmt.Sprintf("GET %s/jobs/%d/artifacts", away, theirs.ID), Header: token, Status: want})
						if listed != "nobody" {
							put("DELETE "+scope+change[1], "", 204)
						}
					}
				}
			}
		}
		// The list gives no role: a user who is not a member has no access to the
		// other project.
		put("PUT "+away, `{"visibility":"private"}`, 200)
		put("PATCH "+scope, `{"enabled":false}`, 204)
		put("POST "+fmt.Sprintf("/projects/%d/members", b.project), `{"username":"mary","access_level":40}`, 201)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/pipeline", b.project), As: mary, JSON: `{"ref":"main"}`, Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET %s/jobs/%d/artifacts", away, theirs.ID), Header: map[string]string{"JOB-TOKEN": b.run().Token}, Status: 404})
	})
}

// TestJobTokenGroupsBeingDeleted checks that a group that is being deleted does not hide
// the other groups of the allowlist.
func TestJobTokenGroupsBeingDeleted(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		list := fmt.Sprintf("/projects/%d/job_token_scope/groups_allowlist", newProject(t, s, alice, "p", ""))
		kept, gone := group(t, s, alice, "kept", ""), group(t, s, alice, "gone", "")
		for _, id := range []int64{gone, kept} {
			s.Check(t, apptest.Call{Do: "POST " + list, As: alice, JSON: fmt.Sprintf(`{"target_group_id":%d}`, id), Status: 201})
		}
		// The state between the deletion of a group and that of its row in the background.
		if _, err := s.DB.ExecContext(t.Context(), `UPDATE namespaces SET deleted_at = ? WHERE id = ?`, s.Clock.Now(), gone); err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET " + list, As: alice, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, kept), WantHeader: map[string]string{"X-Total": "1"}})
	})
}
