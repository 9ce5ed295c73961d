package api_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		carolID, carol := s.User(t, "carol")
		daveID, dave := s.User(t, "dave")
		g := group(t, s, alice, "g", `,"visibility":"public"`)
		sub := made(t, s, alice, "POST /groups", fmt.Sprintf(`{"name":"Sub","path":"sub","parent_id":%d}`, g))
		p := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d`, sub))
		inGroup, inProject := fmt.Sprintf("/groups/%d/members", g), fmt.Sprintf("/projects/%d/members", p)
		tomorrow := s.Clock.Now().AddDate(0, 0, 1).Format(time.DateOnly)
		add := func(id int64, level int) string { return fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, id, level) }
		s.Table(t, []apptest.Call{
			{Name: "the maker owns it", Do: "GET " + inGroup, As: alice, Status: 200, Want: `[{"username":"alice","access_level":50,"expires_at":null,"membership_state":"active","created_by":{"username":"alice"}}]`},
			{Name: "add", Do: "POST " + inGroup, As: alice, JSON: add(bobID, 30), Status: 201, Want: `{"username":"bob","access_level":30,"created_by":{"username":"alice"},"created_at":"<any>"}`},
			{Name: "add again", Do: "POST " + inGroup, As: alice, JSON: add(bobID, 30), Status: 409, Want: `{"message":"Member already exists"}`},
			{Name: "a level that is none", Do: "POST " + inGroup, As: alice, JSON: add(carolID, 33), Status: 400, Want: `{"message":{"access_level":["is not included in the list"]}}`},
			{Name: "a user who is none", Do: "POST " + inGroup, As: alice, JSON: add(99999, 30), Status: 404, Want: `{"message":"404 User Not Found"}`},
			{Name: "no user named", Do: "POST " + inGroup, As: alice, JSON: `{"access_level":30}`, Status: 400},
			{Name: "a day that is past", Do: "POST " + inGroup, As: alice, JSON: `{"user_id":` + fmt.Sprint(carolID) + `,"access_level":30,"expires_at":"2020-01-01"}`, Status: 400,
				Want: `{"message":{"expires_at":["cannot be a date in the past"]}}`},
			{Name: "a developer cannot add members", Do: "POST " + inGroup, As: bob, JSON: add(carolID, 10), Status: 403},
			{Name: "sees the project", Do: fmt.Sprintf("GET /projects/%d", p), As: bob, Status: 200, Want: `{"permissions":{"project_access":null,"group_access":{"access_level":30}}}`},
			{Name: "not a direct member", Do: fmt.Sprintf("GET %s/%d", inProject, bobID), As: bob, Status: 404, Want: `{"message":"404 Not found"}`},
			{Name: "but one by the group", Do: fmt.Sprintf("GET %s/all/%d", inProject, bobID), As: bob, Status: 200, Want: `{"access_level":30}`},
			{Name: "less than inherited", Do: "POST " + inProject, As: alice, JSON: add(bobID, 20), Status: 400,
				Want: `{"message":{"access_level":["should be greater than or equal to Developer inherited membership from group G"]}}`},
			{Name: "more than inherited", Do: "POST " + inProject, As: alice, JSON: add(bobID, 40), Status: 201, Want: `{"access_level":40}`},
			{Name: "the highest counts", Do: "GET " + inProject + "/all", As: alice, Status: 200, Want: `[{"username":"alice","access_level":50},{"username":"bob","access_level":40}]`},
			{Name: "a maintainer adds", Do: "POST " + inProject, As: bob, JSON: fmt.Sprintf(`{"username":"carol","access_level":20,"expires_at":"%s"}`, tomorrow), Status: 201,
				Want: fmt.Sprintf(`{"username":"carol","access_level":20,"expires_at":"%s"}`, tomorrow)},
			{Name: "but no owners", Do: "POST " + inProject, As: bob, JSON: add(daveID, 50), Status: 403},
			{Name: "a private project of others", Do: "GET " + inProject, As: dave, Status: 404},
			{Name: "several at once", Do: "POST " + inGroup, As: alice, JSON: fmt.Sprintf(`{"user_id":"%d, 99999,%d","access_level":10}`, daveID, bobID), Status: 201,
				Want: fmt.Sprintf(`{"status":"error","message":{"99999":"404 User Not Found","%d":"Member already exists"}}`, bobID)},
			{Name: "the rest is in", Do: fmt.Sprintf("GET %s/%d", inGroup, daveID), As: dave, Status: 200, Want: `{"access_level":10}`},
			{Name: "found", Do: "GET " + inGroup + "?query=DAV", As: dave, Status: 200, Want: `[{"username":"dave"}]`},
			{Name: "chosen", Do: fmt.Sprintf("GET %s?user_ids[]=%d&user_ids[]=%d&skip_users=%d", inGroup, daveID, bobID, bobID), As: dave, Status: 200, Want: `[{"username":"dave"}]`},
			{Name: "change", Do: fmt.Sprintf("PUT %s/%d", inGroup, daveID), As: alice, JSON: `{"access_level":50}`, Status: 200, Want: `{"access_level":50}`},
			{Name: "a maintainer does not touch an owner", Do: fmt.Sprintf("PUT %s/%d", inProject, carolID), As: bob, JSON: `{"access_level":50}`, Status: 403},
			{Name: "a day", Do: fmt.Sprintf("PUT %s/%d", inProject, carolID), As: bob, JSON: `{"expires_at":""}`, Status: 200, Want: `{"access_level":20,"expires_at":null}`},
			{Name: "leave", Do: fmt.Sprintf("DELETE %s/%d", inGroup, daveID), As: dave, Status: 204},
			{Name: "gone", Do: fmt.Sprintf("DELETE %s/%d", inGroup, daveID), As: alice, Status: 404},
			{Name: "the last owner stays", Do: fmt.Sprintf("DELETE %s/%d", inGroup, aliceID), As: alice, Status: 403},
			{Name: "as owner", Do: fmt.Sprintf("PUT %s/%d", inGroup, aliceID), As: alice, JSON: `{"access_level":40}`, Status: 403},
			{Name: "nor for a time", Do: fmt.Sprintf("PUT %s/%d", inGroup, aliceID), As: alice, JSON: fmt.Sprintf(`{"expires_at":"%s"}`, tomorrow), Status: 403},
			{Name: "not even for an administrator", Do: fmt.Sprintf("DELETE %s/%d", inGroup, aliceID), As: root, Status: 403},
			{Name: "remove with all below", Do: fmt.Sprintf("DELETE %s/%d", inGroup, bobID), As: alice, Status: 204},
			{Name: "also from the project", Do: fmt.Sprintf("GET /projects/%d", p), As: bob, Status: 404},
			{Name: "carol is still there", Do: fmt.Sprintf("GET /projects/%d", p), As: carol, Status: 200},
			{Name: "memberships", Do: fmt.Sprintf("GET /users/%d/memberships", carolID), As: root, Status: 200,
				Want: fmt.Sprintf(`[{"source_id":%d,"source_name":"p","source_type":"Project","access_level":"20"}]`, p)},
			{Name: "of groups", Do: fmt.Sprintf("GET /users/%d/memberships?type=Namespace", aliceID), As: root, Status: 200, Want: `[{"source_type":"Namespace","access_level":"50"},{"source_type":"Namespace"}]`},
			{Name: "of something else", Do: fmt.Sprintf("GET /users/%d/memberships?type=Issue", carolID), As: root, Status: 400},
			{Name: "anonymous", Do: "GET /users/99999/memberships", As: root, Status: 404},
			{Name: "for others", Do: fmt.Sprintf("GET /users/%d/memberships", carolID), As: carol, Status: 403},
		})
	})
}

// TestMemberExpires checks that a membership ends at the start of its
// expiration date.
func TestMemberExpires(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		p := newProject(t, s, alice, "p", "")
		day := s.Clock.Now().AddDate(0, 0, 2).Format(time.DateOnly)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/members", p), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30,"expires_at":"%s"}`, bobID, day), Status: 201})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d", p), As: bob, Status: 200})
		s.Clock.Move(48 * time.Hour)
		s.Table(t, []apptest.Call{
			{Name: "no longer seen", Do: fmt.Sprintf("GET /projects/%d", p), As: bob, Status: 404},
			{Name: "nor listed", Do: "GET /projects?membership=true", As: bob, Status: 200, Want: `[]`},
			{Name: "nor a member", Do: fmt.Sprintf("GET /projects/%d/members", p), As: alice, Status: 200, Want: `[{"username":"alice"}]`},
		})
	})
}

func TestShares(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		_, carol := s.User(t, "carol")
		team := group(t, s, alice, "team", "")
		g := group(t, s, alice, "g", "")
		p := newProject(t, s, alice, "p", "")
		q := newProject(t, s, alice, "q", fmt.Sprintf(`,"namespace_id":%d`, g))
		secret := group(t, s, root, "secret", "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", team), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, bobID), Status: 201})
		share := func(id int64, level int) string { return fmt.Sprintf(`{"group_id":%d,"group_access":%d}`, id, level) }
		until := func(days int) string {
			return fmt.Sprintf(`{"group_id":%d,"group_access":20,"expires_at":%q}`, team, s.Clock.Now().UTC().AddDate(0, 0, days).Format("2006-01-02"))
		}
		s.Table(t, []apptest.Call{
			{Name: "before", Do: fmt.Sprintf("GET /projects/%d", p), As: bob, Status: 404},
			{Name: "a group that is not seen", Do: fmt.Sprintf("POST /projects/%d/share", p), As: alice, JSON: share(secret, 30), Status: 404},
			{Name: "a level that is none", Do: fmt.Sprintf("POST /projects/%d/share", p), As: alice, JSON: share(team, 31), Status: 400},
			{Name: "share", Do: fmt.Sprintf("POST /projects/%d/share", p), As: alice, JSON: share(team, 30), Status: 201, Want: fmt.Sprintf(`{"project_id":%d,"group_id":%d,"group_access":30,"expires_at":null}`, p, team)},
			{Name: "twice", Do: fmt.Sprintf("POST /projects/%d/share", p), As: alice, JSON: share(team, 30), Status: 409},
			{Name: "no more than the share", Do: fmt.Sprintf("GET /projects/%d", p), As: bob, Status: 200,
				Want: fmt.Sprintf(`{"permissions":{"project_access":null,"group_access":{"access_level":30}},"shared_with_groups":[{"group_id":%d,"group_name":"TEAM","group_full_path":"team","group_access_level":30}]}`, team)},
			{Name: "open it", Do: fmt.Sprintf("PUT /projects/%d", p), As: alice, JSON: `{"visibility":"public"}`, Status: 200, Want: `{"shared_with_groups":["<any>"]}`},
			{Name: "strangers do not learn of the group", Do: fmt.Sprintf("GET /projects/%d", p), As: carol, Status: 200, Want: `{"shared_with_groups":[]}`, Not: []string{"team"}},
			{Name: "listed", Do: "GET /projects?min_access_level=30", As: bob, Status: 200, Want: `[{"path":"p"}]`},
			{Name: "not as more", Do: "GET /projects?min_access_level=40", As: bob, Status: 200, Want: `[]`},
			{Name: "in the group's list", Do: fmt.Sprintf("GET /groups/%d/projects", team), As: bob, Status: 200, Want: `[{"path":"p"}]`},
			{Name: "unless not asked for", Do: fmt.Sprintf("GET /groups/%d/projects?with_shared=false", team), As: bob, Status: 200, Want: `[]`},
			{Name: "with itself", Do: fmt.Sprintf("POST /groups/%d/share", g), As: alice, JSON: share(g, 30), Status: 400},
			{Name: "a group", Do: fmt.Sprintf("POST /groups/%d/share", g), As: alice, JSON: share(team, 20), Status: 201, Want: `{"shared_with_groups":[{"group_access_level":20}]}`},
			{Name: "reaches what is in it", Do: fmt.Sprintf("GET /projects/%d", q), As: bob, Status: 200, Want: `{"permissions":{"group_access":{"access_level":20}}}`},
			{Name: "all members", Do: fmt.Sprintf("GET /projects/%d/members/all/%d", q, bobID), As: alice, Status: 200, Want: `{"access_level":20}`},
			{Name: "by one who may not", Do: fmt.Sprintf("DELETE /groups/%d/share/%d", g, team), As: bob, Status: 403},
			{Name: "unshare", Do: fmt.Sprintf("DELETE /groups/%d/share/%d", g, team), As: alice, Status: 204},
			{Name: "unshare again", Do: fmt.Sprintf("DELETE /groups/%d/share/%d", g, team), As: alice, Status: 404},
			{Name: "after", Do: fmt.Sprintf("GET /projects/%d", q), As: bob, Status: 404},
			{Name: "until yesterday", Do: fmt.Sprintf("POST /groups/%d/share", g), As: alice, JSON: until(-1), Status: 400, Want: `{"message":{"expires_at":["cannot be a date in the past"]}}`},
			{Name: "until today", Do: fmt.Sprintf("POST /groups/%d/share", g), As: alice, JSON: until(0), Status: 201},
			{Name: "it has expired", Do: fmt.Sprintf("GET /projects/%d", q), As: bob, Status: 404},
			{Name: "unshare what has expired", Do: fmt.Sprintf("DELETE /groups/%d/share/%d", g, team), As: alice, Status: 204},
			{Name: "locked", Do: fmt.Sprintf("PUT /groups/%d", g), As: alice, JSON: `{"share_with_group_lock":true}`, Status: 200},
			{Name: "no more shares", Do: fmt.Sprintf("POST /projects/%d/share", q), As: alice, JSON: share(team, 20), Status: 403},
		})
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"parent_id":%d`, g))
		s.Table(t, []apptest.Call{
			{Name: "nor below", Do: fmt.Sprintf("POST /projects/%d/share", newProject(t, s, alice, "r", fmt.Sprintf(`,"namespace_id":%d`, sub))), As: alice, JSON: share(team, 20), Status: 403},
			{Name: "nor of a subgroup", Do: fmt.Sprintf("POST /groups/%d/share", sub), As: alice, JSON: share(team, 20), Status: 403},
		})
		// Members see the groups that they can see, managers all.
		hidden := group(t, s, alice, "hidden", "")
		both := fmt.Sprintf(`{"shared_with_groups":[{"group_id":%d},{"group_id":%d}]}`, team, hidden)
		only := fmt.Sprintf(`{"shared_with_groups":[{"group_id":%d}]}`, team)
		shared := group(t, s, alice, "shared", "")
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("POST /projects/%d/share", p), As: alice, JSON: share(hidden, 10), Status: 201},
			{Name: "a manager", Do: fmt.Sprintf("GET /projects/%d", p), As: alice, Status: 200, Want: both},
			{Name: "a member", Do: fmt.Sprintf("GET /projects/%d", p), As: bob, Status: 200, Want: only, Not: []string{"hidden"}},
			{Do: fmt.Sprintf("POST /groups/%d/share", shared), As: alice, JSON: share(team, 30), Status: 201},
			{Do: fmt.Sprintf("POST /groups/%d/share", shared), As: alice, JSON: share(hidden, 10), Status: 201, Want: both},
			{Name: "an owner of the group", Do: fmt.Sprintf("GET /groups/%d", shared), As: alice, Status: 200, Want: both},
			{Name: "a member of the group", Do: fmt.Sprintf("GET /groups/%d", shared), As: bob, Status: 200, Want: only, Not: []string{"hidden"}},
			{Name: "an administrator", Do: fmt.Sprintf("GET /groups/%d", shared), As: root, Status: 200, Want: both},
		})
	})
}

func TestAccessRequests(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		carolID, carol := s.User(t, "carol")
		g := group(t, s, alice, "g", `,"visibility":"public"`)
		p := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, g))
		for _, at := range []string{fmt.Sprintf("/groups/%d", g), fmt.Sprintf("/projects/%d", p)} {
			s.Table(t, []apptest.Call{
				{Name: "a member does not ask", Do: "POST " + at + "/access_requests", As: alice, Status: 403},
				{Name: "ask", Do: "POST " + at + "/access_requests", As: carol, Status: 201, Want: `{"username":"carol","requested_at":"<any>"}`},
				{Name: "ask again", Do: "POST " + at + "/access_requests", As: carol, Status: 409},
				{Name: "this gives nothing", Do: fmt.Sprintf("GET %s/members/all/%d", at, carolID), As: carol, Status: 404},
				{Name: "list", Do: "GET " + at + "/access_requests", As: alice, Status: 200, Want: `[{"username":"carol"}]`},
				{Name: "not for those who ask", Do: "GET " + at + "/access_requests", As: carol, Status: 403},
				{Name: "approve oneself", Do: fmt.Sprintf("PUT %s/access_requests/%d/approve", at, carolID), As: carol, Status: 403},
				{Name: "take it back", Do: fmt.Sprintf("DELETE %s/access_requests/%d", at, carolID), As: carol, Status: 204},
				{Name: "nothing to approve", Do: fmt.Sprintf("PUT %s/access_requests/%d/approve", at, carolID), As: alice, Status: 404},
			})
		}
		// Adding a user approves their request, and replaces an expired membership.
		danID, dan := s.User(t, "dan")
		tomorrow := func() string { return s.Clock.Now().UTC().Add(24 * time.Hour).Format(time.DateOnly) }
		for _, at := range []string{fmt.Sprintf("/projects/%d", p), fmt.Sprintf("/groups/%d", g)} {
			one := fmt.Sprintf("%s/members/%d", at, danID)
			s.Table(t, []apptest.Call{
				{Name: "ask", Do: "POST " + at + "/access_requests", As: dan, Status: 201},
				{Name: "add", Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":20,"expires_at":%q}`, danID, tomorrow()), Status: 201, Want: `{"access_level":20}`},
				{Name: "no request is left", Do: "GET " + at + "/access_requests", As: alice, Status: 200, Want: `[]`},
				{Name: "a member", Do: "GET " + one, As: dan, Status: 200, Want: `{"access_level":20}`},
				{Name: "add again", Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, danID), Status: 409},
			})
			s.Clock.Move(48 * time.Hour)
			s.Table(t, []apptest.Call{
				{Name: "expired", Do: "GET " + one, As: alice, Status: 404},
				{Name: "add after the expiration", Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":15,"expires_at":%q}`, danID, tomorrow()), Status: 201,
					Want: `{"access_level":15}`},
			})
			s.Clock.Move(48 * time.Hour)
			s.Table(t, []apptest.Call{
				{Name: "ask after the expiration", Do: "POST " + at + "/access_requests", As: dan, Status: 201},
				{Name: "take it back", Do: fmt.Sprintf("DELETE %s/access_requests/%d", at, danID), As: dan, Status: 204},
			})
		}
		at := fmt.Sprintf("/projects/%d", p)
		s.Table(t, []apptest.Call{
			{Name: "ask", Do: "POST " + at + "/access_requests", As: bob, Status: 201},
			{Name: "approve", Do: fmt.Sprintf("PUT %s/access_requests/%d/approve", at, bobID), As: alice, JSON: `{"access_level":20}`, Status: 201, Want: `{"username":"bob","access_level":20}`},
			{Name: "a member", Do: fmt.Sprintf("GET %s/members/%d", at, bobID), As: bob, Status: 200},
			{Name: "not wanted", Do: "PUT " + at, As: alice, JSON: `{"request_access_enabled":false}`, Status: 200},
			{Name: "do not ask", Do: "POST " + at + "/access_requests", As: carol, Status: 403},
		})
	})
}

func TestPlaceAuditEvents(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		devID, dev := s.User(t, "dev")
		maintainerID, maintainer := s.User(t, "maintainer")
		guestID, guest := s.User(t, "guest")
		g := group(t, s, alice, "g", "")
		p := newProject(t, s, alice, "p", fmt.Sprintf(`,"namespace_id":%d`, g))
		for id, level := range map[int64]int{devID: 30, maintainerID: 40, guestID: 10} {
			s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", g), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":%d}`, id, level), Status: 201})
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /projects/%d", p), As: maintainer, JSON: `{"merge_method":"ff"}`, Status: 200})
		var events []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /projects/%d/audit_events", p), As: alice, Status: 200,
			Want: `[{"event_type":"project_merge_method_updated","entity_type":"Project"},{"event_type":"project_created"}]`}).JSON(t, &events)
		s.Table(t, []apptest.Call{
			{Name: "maintainers see all of a project", Do: fmt.Sprintf("GET /projects/%d/audit_events", p), As: maintainer, Status: 200, Want: `["<any>","<any>"]`},
			{Name: "developers their own", Do: fmt.Sprintf("GET /projects/%d/audit_events", p), As: dev, Status: 200, Want: `[]`},
			{Name: "guests none", Do: fmt.Sprintf("GET /projects/%d/audit_events", p), As: guest, Status: 403},
			{Name: "one", Do: fmt.Sprintf("GET /projects/%d/audit_events/%d", p, events[0].ID), As: maintainer, Status: 200, Want: `{"event_type":"project_merge_method_updated"}`},
			{Name: "one, as a developer", Do: fmt.Sprintf("GET /projects/%d/audit_events/%d", p, events[0].ID), As: dev, Status: 403},
			{Name: "one of something else", Do: fmt.Sprintf("GET /groups/%d/audit_events/%d", g, events[0].ID), As: alice, Status: 404},
			{Name: "owners see all of a group", Do: fmt.Sprintf("GET /groups/%d/audit_events?pagination=keyset&order_by=id&sort=desc", g), As: alice, Status: 200, Want: `["<any>","<any>","<any>",{"event_type":"group_created"}]`},
			{Name: "maintainers their own", Do: fmt.Sprintf("GET /groups/%d/audit_events", g), As: maintainer, Status: 200, Want: `[]`},
			{Name: "keyset the other way", Do: fmt.Sprintf("GET /groups/%d/audit_events?pagination=keyset&sort=asc", g), As: alice, Status: 405},
			{Name: "before", Do: fmt.Sprintf("GET /groups/%d/audit_events?created_before=2020-01-01T00:00:00Z", g), As: alice, Status: 200, Want: `[]`},
		})
	})
}

func TestNamespaces(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		g := group(t, s, alice, "crew", "")
		made(t, s, alice, "POST /groups", fmt.Sprintf(`{"name":"Sub","path":"sub","parent_id":%d}`, g))
		s.Table(t, []apptest.Call{
			{Name: "one's own", Do: "GET /namespaces", As: alice, Status: 200, Want: `[{"kind":"user","full_path":"alice"},{"kind":"group","full_path":"crew","parent_id":null},{"full_path":"crew/sub"}]`},
			{Name: "search", Do: "GET /namespaces?search=CRE&top_level_only=true", As: alice, Status: 200, Want: `[{"path":"crew"}]`},
			{Name: "of another", Do: "GET /namespaces", As: bob, Status: 200, Want: `[{"path":"bob"}]`},
			{Name: "all", Do: "GET /namespaces", As: root, Status: 200, WantHeader: map[string]string{"X-Total": "6"}},
			{Name: "one", Do: "GET /namespaces/crew%2Fsub", As: alice, Status: 200, Want: `{"path":"sub"}`},
			{Name: "unseen", Do: fmt.Sprintf("GET /namespaces/%d", g), As: bob, Status: 404, Want: `{"message":"404 Namespace Not Found"}`},
			{Name: "of a user", Do: "GET /namespaces/alice", As: bob, Status: 404},
			{Name: "taken", Do: "GET /namespaces/Crew/exists", As: bob, Status: 200, Want: `{"exists":true,"suggests":["Crew1"]}`},
			{Name: "free", Do: "GET /namespaces/sub/exists", As: bob, Status: 200, Want: `{"exists":false,"suggests":[]}`},
			{Name: "taken in a group", Do: fmt.Sprintf("GET /namespaces/sub/exists?parent_id=%d", g), As: alice, Status: 200, Want: `{"exists":true,"suggests":["sub1"]}`},
		})
	})
}

// TestDeleteUserWithProjects checks that the personal namespace and the memberships
// of a deleted user are deleted; a hard deletion also deletes groups that have no
// other owner.
func TestDeleteUserWithProjects(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		own := newProject(t, s, alice, "own", "")
		g := group(t, s, alice, "g", "")
		shared := newProject(t, s, bob, "shared", `,"visibility":"public"`)
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("POST /projects/%d/members", shared), As: bob, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, aliceID), Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/star", shared), As: alice, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues", shared), As: alice, JSON: `{"title":"hers"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues/1/notes", shared), As: bob, JSON: `{"body":"on hers"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues", shared), As: bob, JSON: `{"title":"his"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues/2/notes", shared), As: bob, JSON: `{"body":"on his own"}`, Status: 201},
			{Do: fmt.Sprintf("POST /projects/%d/issues/2/notes", shared), As: alice, JSON: `{"body":"hers on his"}`, Status: 201},
			{Name: "alone", Do: fmt.Sprintf("DELETE /users/%d", aliceID), As: root, Status: 409},
			{Name: "hard", Do: fmt.Sprintf("DELETE /users/%d?hard_delete=true", aliceID), As: root, Status: 204},
		})
		if err := s.Queue.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("GET /projects/%d", own), As: root, Status: 404},
			{Do: fmt.Sprintf("GET /groups/%d", g), As: root, Status: 404},
			{Do: fmt.Sprintf("GET /projects/%d/members", shared), As: bob, Status: 200, Want: fmt.Sprintf(`[{"id":%d}]`, bobID)},
			{Do: fmt.Sprintf("GET /projects/%d", shared), As: bob, Status: 200, Want: `{"star_count":0}`},
			{Name: "the issues of others", Do: fmt.Sprintf("GET /projects/%d/issues", shared), As: bob, Status: 200, Want: `[{"title":"his","user_notes_count":1}]`},
			{Name: "nothing tells of hers", Do: fmt.Sprintf("GET /projects/%d/events?target_type=note", shared), As: bob, Status: 200, Want: `[{"target_title":"his"}]`},
		})
		for _, table := range []string{"notes", "subscriptions"} {
			var n int
			if err := s.DB.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil || n != 1 {
				t.Errorf("%s: %d rows are left, %v", table, n, err)
			}
		}
		for _, table := range []string{"members WHERE user_id", "namespaces WHERE user_id", "projects WHERE creator_id"} {
			var n int
			if err := s.DB.QueryRowContext(t.Context(), "SELECT count(*) FROM "+table+" = ?", aliceID).Scan(&n); err != nil || n != 0 {
				t.Errorf("%s: %d rows are left, %v", table, n, err)
			}
		}
	})
}

// TestSharesAreLimited checks the number of groups that can be invited.
func TestSharesAreLimited(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		g, p := group(t, s, root, "g", ""), newProject(t, s, root, "p", "")
		for i := range 200 {
			invited := group(t, s, root, fmt.Sprintf("invited-%d", i), "")
			for _, to := range []string{fmt.Sprintf("projects/%d", p), fmt.Sprintf("groups/%d", g)} {
				s.Check(t, apptest.Call{Do: "POST /" + to + "/share", As: root, JSON: fmt.Sprintf(`{"group_id":%d,"group_access":30}`, invited), Status: 201})
			}
		}
		more := group(t, s, root, "more", "")
		s.Table(t, []apptest.Call{
			{Name: "project", Do: fmt.Sprintf("POST /projects/%d/share", p), As: root, JSON: fmt.Sprintf(`{"group_id":%d,"group_access":30}`, more), Status: 400,
				Want: `{"message":"400 Bad request - At most 200 groups can be invited: remove one first"}`},
			{Name: "group", Do: fmt.Sprintf("POST /groups/%d/share", g), As: root, JSON: fmt.Sprintf(`{"group_id":%d,"group_access":30}`, more), Status: 400},
		})
	})
}
