package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
	"svc/internal/project"
	"svc/internal/waittest"
)

// mergeID returns the ID of a merge request.
func mergeID(t testing.TB, s *apptest.Server, as, at string) int64 {
	t.Helper()
	var m struct{ ID int64 }
	s.Check(t, apptest.Call{Do: "GET " + at, As: as, Status: 200}).JSON(t, &m)
	return m.ID
}

// blocks returns the body of a new dependency on a merge request.
func blocks(t testing.TB, s *apptest.Server, as, at string) string {
	t.Helper()
	return fmt.Sprintf(`{"blocking_merge_request_id":%d}`, mergeID(t, s, as, at))
}

func TestMergeDependencies(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		_, dan := s.User(t, "dan")
		id := code(t, s, alice, "code", `,"visibility":"public"`)
		secret := code(t, s, alice, "secret", "")
		enlist(t, s, id, bobID, project.Developer)
		lib, use, top := proposed(t, s, alice, id, "lib", ""), proposed(t, s, bob, id, "use", ""), proposed(t, s, bob, id, "top", "")
		hidden := proposed(t, s, alice, secret, "hidden", "")
		var made struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "POST " + use + "/blocks", As: bob, JSON: blocks(t, s, bob, lib), Status: 201,
			Want: fmt.Sprintf(`{"project_id":%d,"blocking_merge_request":{"iid":1,"state":"opened","auto_merge":false},"blocked_merge_request":{"iid":2,"detailed_merge_status":"merge_request_blocked"}}`, id)}).JSON(t, &made)
		one := fmt.Sprintf("%s/blocks/%d", use, made.ID)
		s.Table(t, []apptest.Call{
			{Name: "blocked", Do: "GET " + use, As: dan, Status: 200, Want: `{"detailed_merge_status":"merge_request_blocked","merge_status":"can_be_merged"}`},
			{Name: "in lists", Do: fmt.Sprintf("GET /projects/%d/merge_requests?source_branch=use", id), Status: 200, Want: `[{"detailed_merge_status":"merge_request_blocked"}]`},
			{Name: "not merged", Do: "PUT " + use + "/merge", As: alice, Status: 405},
			{Name: "note", Do: "GET " + use + "/notes?activity_filter=only_activity&per_page=1", Status: 200, Want: `[{"body":"added a dependency on !1"}]`},
			{Name: "list", Do: "GET " + use + "/blocks", Status: 200, Want: fmt.Sprintf(`[{"id":%d,"blocking_merge_request":{"iid":1}}]`, made.ID)},
			{Name: "one", Do: "GET " + one, Status: 200, Want: `{"blocking_merge_request":{"iid":1},"blocked_merge_request":{"iid":2}}`},
			{Name: "of another", Do: fmt.Sprintf("GET %s/blocks/%d", lib, made.ID), Status: 404},
			{Name: "the other side", Do: "GET " + lib + "/blockees", Status: 200, Want: fmt.Sprintf(`[{"id":%d,"blocked_merge_request":{"iid":2}}]`, made.ID)},
			{Name: "again", Do: "POST " + use + "/blocks", As: bob, JSON: blocks(t, s, bob, lib), Status: 409, Want: `{"message":"Block already exists"}`},
			{Name: "itself", Do: "POST " + use + "/blocks", As: bob, JSON: blocks(t, s, bob, use), Status: 400},
			{Name: "each other", Do: "POST " + lib + "/blocks", As: alice, JSON: blocks(t, s, bob, use), Status: 400},
			{Name: "chain", Do: "POST " + top + "/blocks", As: bob, JSON: blocks(t, s, bob, use), Status: 201},
			{Name: "circle", Do: "POST " + lib + "/blocks", As: alice, JSON: blocks(t, s, bob, top), Status: 400},
			{Name: "unseen", Do: "POST " + use + "/blocks", As: bob, JSON: blocks(t, s, alice, hidden), Status: 404},
			{Name: "without", Do: "POST " + use + "/blocks", As: bob, JSON: `{}`, Status: 400},
			{Name: "outsider", Do: "POST " + use + "/blocks", As: dan, JSON: blocks(t, s, alice, lib), Status: 403},
			{Name: "outsider", Do: "DELETE " + one, As: dan, Status: 403},
			{Name: "anonymous", Do: "DELETE " + one, Status: 401},
			{Name: "of another", Do: fmt.Sprintf("DELETE %s/blocks/%d", top, made.ID), As: bob, Status: 404},
			{Name: "closed still blocks", Do: "PUT " + lib, As: alice, JSON: `{"state_event":"close"}`, Status: 200},
			{Name: "closed still blocks", Do: "GET " + use, Status: 200, Want: `{"detailed_merge_status":"merge_request_blocked"}`},
			{Name: "reopened", Do: "PUT " + lib, As: alice, JSON: `{"state_event":"reopen"}`, Status: 200},
			{Name: "removed", Do: "DELETE " + one, As: bob, Status: 204},
			{Name: "note", Do: "GET " + use + "/notes?activity_filter=only_activity&per_page=1", Status: 200, Want: `[{"body":"removed the dependency on !1"}]`},
			{Name: "free", Do: "GET " + use, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`},
			{Name: "gone", Do: "GET " + one, Status: 404},
			{Name: "audit events", Do: fmt.Sprintf("GET /projects/%d/audit_events?per_page=3", id), As: alice, Status: 200, Want: fmt.Sprintf(`[
				{"event_name":"merge_request_dependency_deleted","details":{"remove":"merge_request_dependency","target_id":%d,"target_type":"MergeRequestBlock"}},
				{"event_name":"merge_request_dependency_created"},{"event_name":"merge_request_dependency_created","details":{"add":"merge_request_dependency","target_id":%[1]d}}]`, made.ID)},

			// A dependency on a merge request of a private project.
			{Name: "away", Do: "POST " + use + "/blocks", As: alice, JSON: blocks(t, s, alice, hidden), Status: 201},
			{Name: "not named", Do: "GET " + use + "/notes?activity_filter=only_activity&per_page=1", Status: 200, Want: `[{"body":"added a dependency on a merge request of another project"}]`},
			{Name: "blocks", Do: "GET " + use, As: bob, Status: 200, Want: `{"detailed_merge_status":"merge_request_blocked"}`},
		})
		var list []map[string]any
		s.Check(t, apptest.Call{Do: "GET " + use + "/blocks", As: bob, Status: 200}).JSON(t, &list)
		if len(list) != 1 || list[0]["blocking_merge_request"] != nil || list[0]["project_id"] != nil {
			t.Fatalf("a hidden merge request is shown: %v", list)
		}
		s.Table(t, []apptest.Call{
			{Name: "seen by members", Do: "GET " + use + "/blocks", As: alice, Status: 200, Want: fmt.Sprintf(`[{"project_id":%d,"blocking_merge_request":{"iid":1}}]`, secret)},
			{Name: "removed by those who do not see it", Do: fmt.Sprintf("DELETE %s/blocks/%.0f", use, list[0]["id"]), As: bob, Status: 204},
			{Name: "merged", Do: "PUT " + use + "/merge", As: alice, Status: 200, Want: `{"state":"merged"}`},
			{Name: "no longer blocks", Do: "GET " + top, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`},
			{Name: "deletion", Do: "POST " + top + "/blocks", As: bob, JSON: blocks(t, s, bob, lib), Status: 201},
			{Name: "deletion", Do: "DELETE " + lib, As: alice, Status: 204},
			{Name: "deletion frees", Do: "GET " + top, Status: 200, Want: `{"detailed_merge_status":"mergeable"}`},
			{Name: "archived", Do: fmt.Sprintf("POST /projects/%d/archive", id), As: alice, Status: 201},
			{Name: "archived", Do: "POST " + top + "/blocks", As: bob, JSON: blocks(t, s, bob, use), Status: 403},
		})
	})
}

// TestMergeDependencyLimits adds as many dependencies as a merge request can have.
func TestMergeDependencyLimits(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := code(t, s, alice, "code", "")
		all := make([]string, 12)
		for i := range all {
			all[i] = proposed(t, s, alice, id, fmt.Sprintf("b%d", i), "")
		}
		for _, other := range all[1:11] {
			s.Check(t, apptest.Call{Do: "POST " + all[0] + "/blocks", As: alice, JSON: blocks(t, s, alice, other), Status: 201})
		}
		s.Table(t, []apptest.Call{
			{Name: "too many", Do: "POST " + all[0] + "/blocks", As: alice, JSON: blocks(t, s, alice, all[11]), Status: 400, Want: `{"message":"400 Bad request - A merge request can have at most 10 dependencies"}`},
			{Name: "paged", Do: "GET " + all[0] + "/blocks?per_page=4&page=3", As: alice, Status: 200, Want: `[{"blocking_merge_request":{"iid":10}},{"blocking_merge_request":{"iid":11}}]`},
		})
	})
}

// TestMergeDependencyAuto sets a blocked merge request to auto-merge: it is merged
// when its dependency is merged or deleted.
func TestMergeDependencyAuto(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id := code(t, s, alice, "code", "")
		lib, use := proposed(t, s, alice, id, "lib", ""), proposed(t, s, alice, id, "use", "")
		gone, next, free := proposed(t, s, alice, id, "gone", ""), proposed(t, s, alice, id, "next", ""), proposed(t, s, alice, id, "free", "")
		for blocked, blocking := range map[string]string{use: lib, next: gone, free: gone} {
			s.Check(t, apptest.Call{Do: "POST " + blocked + "/blocks", As: alice, JSON: blocks(t, s, alice, blocking), Status: 201})
			s.Check(t, apptest.Call{Do: "PUT " + blocked + "/merge", As: alice, JSON: `{"auto_merge":true}`, Status: 200, Want: `{"state":"opened","merge_when_pipeline_succeeds":true}`})
		}
		merged := func(at string) {
			t.Helper()
			waittest.For(t, "merge of "+at, func() bool {
				var m struct{ State string }
				s.Check(t, apptest.Call{Do: "GET " + at, As: alice, Status: 200}).JSON(t, &m)
				return m.State == "merged"
			})
		}
		s.Check(t, apptest.Call{Do: "PUT " + lib + "/merge", As: alice, Status: 200})
		merged(use)
		var list []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET " + free + "/blocks", As: alice, Status: 200}).JSON(t, &list)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE %s/blocks/%d", free, list[0].ID), As: alice, Status: 204})
		merged(free)
		s.Check(t, apptest.Call{Name: "still blocked", Do: "GET " + next, As: alice, Status: 200, Want: `{"state":"opened","detailed_merge_status":"merge_request_blocked"}`})
		s.Check(t, apptest.Call{Do: "DELETE " + gone, As: alice, Status: 204})
		merged(next)
	})
}
