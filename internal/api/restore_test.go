package api_test

import (
	"fmt"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/db"
	"svc/internal/project"
)

// TestRestoreProject deletes projects, restores them and deletes them permanently.
func TestRestoreProject(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		id := newProject(t, s, alice, "p", `,"visibility":"public","initialize_with_readme":true`)
		enlist(t, s, id, bobID, project.Maintainer)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/issues", id), As: alice, JSON: `{"title":"Kept"}`, Status: 201})
		at := fmt.Sprintf("/projects/%d", id)
		today := s.Clock.Now().UTC().Format(time.DateOnly)
		marked := fmt.Sprintf(`{"id":%d,"path_with_namespace":"alice/p-deletion_scheduled-%[1]d","name":"p-deletion_scheduled-%[1]d","marked_for_deletion_on":%q,"marked_for_deletion_at":%[2]q}`, id, today)
		s.Table(t, []apptest.Call{
			{Name: "not marked", Do: "GET " + at, As: alice, Status: 200, Want: `{"marked_for_deletion_on":null,"marked_for_deletion_at":null}`},
			{Name: "not at once", Do: "DELETE " + at + "?permanently_remove=true&full_path=alice/p", As: alice, Status: 400, Want: `{"message":"Project must be marked for deletion first."}`},
			{Name: "nothing to restore", Do: "POST " + at + "/restore", As: alice, Status: 400, Want: `{"message":"Project has not been marked for deletion"}`},
			{Name: "delete", Do: "DELETE " + at, As: alice, Status: 202, Want: `{"message":"202 Accepted"}`},
			{Name: "owners see it", Do: "GET " + at, As: alice, Status: 200, Want: marked},
			{Name: "by its path", Do: fmt.Sprintf("GET /projects/alice%%2Fp-deletion_scheduled-%d", id), As: alice, Status: 200, Want: marked},
			{Name: "not by the old one", Do: "GET /projects/alice%2Fp", As: alice, Status: 404},
			{Name: "others do not", Do: "GET " + at, As: bob, Status: 404},
			{Name: "nor anonymous callers", Do: "GET " + at, Status: 404},
			{Name: "no change", Do: "PUT " + at, As: alice, JSON: `{"description":"x"}`, Status: 404},
			{Name: "no issue", Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"x"}`, Status: 404},
			{Name: "not in lists", Do: "GET /projects?membership=true", As: alice, Status: 200, Want: `[]`},
			{Name: "nor its issues", Do: "GET /issues?scope=all", As: alice, Status: 200, Want: `[]`},
			{Name: "but if asked for", Do: "GET /projects?membership=true&include_pending_delete=true", As: alice, Status: 200, Want: "[" + marked + "]"},
			{Name: "for owners", Do: "GET /projects?membership=true&include_pending_delete=true", As: bob, Status: 200, Want: `[]`},
			{Name: "by date", Do: "GET /projects?marked_for_deletion_on=" + today, As: alice, Status: 200, Want: "[" + marked + "]"},
			{Name: "for administrators", Do: "GET /projects?marked_for_deletion_on=" + today, As: root, Status: 200, Want: "[" + marked + "]"},
			{Name: "of strangers", Do: "GET /projects?marked_for_deletion_on=" + today, Status: 200, Want: `[]`},
			{Name: "another date", Do: "GET /projects?marked_for_deletion_on=2020-01-01", As: alice, Status: 200, Want: `[]`},
			{Name: "no date", Do: "GET /projects?marked_for_deletion_on=x", As: alice, Status: 400},
			{Name: "inactive", Do: "GET /projects?active=false", As: alice, Status: 200, Want: "[" + marked + "]"},
			{Name: "active", Do: "GET /projects?active=true", As: alice, Status: 200, Want: `[]`},
			{Name: "already", Do: "DELETE " + at, As: alice, Status: 400, Want: `{"message":"Project has been already marked for deletion"}`},
			{Name: "not by others", Do: "POST " + at + "/restore", As: bob, Status: 404},
			{Name: "restore", Do: "POST " + at + "/restore", As: alice, Status: 201, Want: `{"path_with_namespace":"alice/p","name":"p","marked_for_deletion_on":null}`},
			{Name: "whole", Do: "GET " + at + "/issues", As: bob, Status: 200, Want: `[{"title":"Kept"}]`},
			{Name: "with code", Do: "GET /projects/alice%2Fp/repository/files/README.md?ref=main", Status: 200},
			{Name: "delete again", Do: "DELETE " + at, As: alice, Status: 202},
			{Name: "the path is free", Do: "POST /projects", As: alice, JSON: `{"path":"p"}`, Status: 201, Want: `{"path_with_namespace":"alice/p"}`},
			{Name: "restore beside", Do: "POST " + at + "/restore", As: alice, Status: 201, Want: fmt.Sprintf(`{"path_with_namespace":"alice/p-restored-%d"}`, id)},
			{Name: "delete once more", Do: "DELETE " + at, As: alice, Status: 202},
			{Name: "another path", Do: "DELETE " + at + "?permanently_remove=true&full_path=alice/p", As: alice, Status: 400,
				Want: "{\"message\":\"`full_path` is incorrect. You must enter the complete path for the project.\"}"},
			{Name: "not others", Do: "DELETE " + at + "?permanently_remove=true&full_path=alice/p", As: bob, Status: 404},
			{Name: "permanently", Do: fmt.Sprintf("DELETE %s?permanently_remove=true&full_path=alice/p-restored-%d-deletion_scheduled-%[2]d", at, id), As: alice, Status: 202},
			{Name: "gone", Do: "GET " + at, As: alice, Status: 404},
			{Name: "not restored", Do: "POST " + at + "/restore", As: alice, Status: 404},
			{Name: "recorded", Do: auditOf(id), As: root, Status: 200, Want: `[{"event_type":"project_destroyed"},{"event_type":"project_deletion_marked"},{"event_type":"project_restored"}]`},
		})

		// A project that is not restored is deleted after the period.
		late := newProject(t, s, alice, "late", "")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /projects/%d", late), As: alice, Status: 202})
		s.Clock.Move(29 * 24 * time.Hour)
		sweep(t, s)
		s.Check(t, apptest.Call{Name: "there for 30 days", Do: fmt.Sprintf("GET /projects/%d", late), As: alice, Status: 200})
		s.Clock.Move(25 * time.Hour)
		sweep(t, s)
		s.Check(t, apptest.Call{Name: "and no longer", Do: fmt.Sprintf("GET /projects/%d", late), As: alice, Status: 404})
		if left, err := db.Exists(t.Context(), s.DB, `SELECT 1 FROM projects WHERE id IN (?, ?)`, id, late); left || err != nil {
			t.Errorf("rows are left: %t, %v", left, err)
		}

		// Without a period, projects and groups are deleted at once.
		now := newProject(t, s, alice, "now", "")
		s.Table(t, []apptest.Call{
			{Name: "too long", Do: "PUT /application/settings?deletion_adjourned_period=91", As: root, Status: 400},
			{Name: "at once", Do: "PUT /application/settings?deletion_adjourned_period=0", As: root, Status: 200, Want: `{"deletion_adjourned_period":0}`},
			{Do: fmt.Sprintf("DELETE /projects/%d", now), As: alice, Status: 202},
			{Do: fmt.Sprintf("GET /projects/%d", now), As: alice, Status: 404},
		})
	})
}

func auditOf(id int64) string {
	return fmt.Sprintf("GET /audit_events?entity_type=Project&entity_id=%d&per_page=3", id)
}

// sweep deletes projects and groups whose period is over.
func sweep(t *testing.T, s *apptest.Server) {
	t.Helper()
	if err := s.Projects.DeleteMarked(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Queue.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestRestoreGroup is TestRestoreProject for groups and their contents.
func TestRestoreGroup(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		g := group(t, s, alice, "g", `,"visibility":"public"`)
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"parent_id":%d,"visibility":"public"`, g))
		in := newProject(t, s, alice, "in", fmt.Sprintf(`,"namespace_id":%d,"visibility":"public"`, sub))
		own := newProject(t, s, alice, "own", fmt.Sprintf(`,"namespace_id":%d`, sub))
		at := fmt.Sprintf("/groups/%d", g)
		today := s.Clock.Now().UTC().Format(time.DateOnly)
		marked := fmt.Sprintf(`{"id":%d,"full_path":"g-deletion_scheduled-%[1]d","marked_for_deletion_on":%q}`, g, today)
		s.Table(t, []apptest.Call{
			{Name: "one of its projects", Do: fmt.Sprintf("DELETE /projects/%d", own), As: alice, Status: 202},
			{Name: "nothing to restore", Do: "POST " + at + "/restore", As: alice, Status: 400, Want: `{"message":"Group has not been marked for deletion"}`},
			{Name: "delete", Do: "DELETE " + at, As: alice, Status: 202},
			{Name: "owners see it", Do: "GET " + at, As: alice, Status: 200, Want: marked},
			{Name: "without projects", Do: "GET " + at + "?with_projects=false", As: alice, Status: 200, Want: marked},
			{Name: "others do not", Do: "GET " + at, As: bob, Status: 404},
			{Name: "what is in it is hidden", Do: fmt.Sprintf("GET /projects/%d", in), As: alice, Status: 404},
			{Name: "also what was marked", Do: fmt.Sprintf("GET /projects/%d", own), As: alice, Status: 404},
			{Name: "and cannot be restored alone", Do: fmt.Sprintf("POST /projects/%d/restore", own), As: alice, Status: 404},
			{Name: "nor in lists", Do: "GET /projects?include_pending_delete=true", As: alice, Status: 200, Want: `[]`},
			{Name: "groups below", Do: fmt.Sprintf("GET /groups/%d", sub), As: alice, Status: 404},
			{Name: "list", Do: "GET /groups", As: alice, Status: 200, Want: `[]`},
			{Name: "by date", Do: "GET /groups?marked_for_deletion_on=" + today, As: alice, Status: 200, Want: "[" + marked + "]"},
			{Name: "inactive", Do: "GET /groups?active=false", As: alice, Status: 200, Want: "[" + marked + "]"},
			{Name: "of others", Do: "GET /groups?active=false&all_available=true", As: bob, Status: 200, Want: `[]`},
			{Name: "nothing is created in it", Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":"x","namespace_id":%d}`, g), Status: 404},
			{Name: "already", Do: "DELETE " + at, As: alice, Status: 400, Want: `{"message":"Group has been already marked for deletion"}`},
			{Name: "not by others", Do: "POST " + at + "/restore", As: bob, Status: 404},
			{Name: "the path is free", Do: "POST /groups", As: bob, JSON: `{"name":"G","path":"g"}`, Status: 201},
			{Name: "restore beside", Do: "POST " + at + "/restore", As: alice, Status: 201, Want: fmt.Sprintf(`{"full_path":"g-restored-%d","marked_for_deletion_on":null}`, g)},
			{Name: "what is in it is back", Do: fmt.Sprintf("GET /projects/g-restored-%d%%2Fsub%%2Fin", g), Status: 200, Want: fmt.Sprintf(`{"id":%d,"name_with_namespace":"G-restored-%d / SUB / in"}`, in, g)},
			{Name: "but not what was marked alone", Do: fmt.Sprintf("GET /projects/%d", own), As: alice, Status: 200, Want: fmt.Sprintf(`{"marked_for_deletion_on":%q}`, today)},
			{Name: "which is restored alone", Do: fmt.Sprintf("POST /projects/%d/restore", own), As: alice, Status: 201, Want: fmt.Sprintf(`{"path_with_namespace":"g-restored-%d/sub/own"}`, g)},
			{Name: "a subgroup", Do: fmt.Sprintf("DELETE /groups/%d", sub), As: alice, Status: 202},
			{Name: "permanently", Do: fmt.Sprintf("DELETE /groups/%d?permanently_remove=true&full_path=g-restored-%d/sub-deletion_scheduled-%[1]d", sub, g), As: alice, Status: 202},
			{Name: "gone", Do: fmt.Sprintf("GET /groups/%d", sub), As: alice, Status: 404},
			{Name: "the group", Do: "DELETE " + at, As: alice, Status: 202},
		})
		s.Clock.Move(31 * 24 * time.Hour)
		sweep(t, s)
		if left, err := db.Exists(t.Context(), s.DB, `SELECT 1 FROM projects WHERE id IN (?, ?)`, in, own); left || err != nil {
			t.Errorf("projects are left: %t, %v", left, err)
		}
		if left, err := db.Exists(t.Context(), s.DB, `SELECT 1 FROM namespaces WHERE id IN (?, ?)`, g, sub); left || err != nil {
			t.Errorf("groups are left: %t, %v", left, err)
		}
	})
}

// TestSharesOfDeletedGroup checks that an invited group gives no access while it is
// marked for deletion.
func TestSharesOfDeletedGroup(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		team, top := group(t, s, alice, "team", `,"visibility":"private"`), group(t, s, alice, "top", `,"visibility":"private"`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/members", team), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":30}`, bobID), Status: 201})
		one := newProject(t, s, alice, "one", `,"visibility":"private"`)
		two := newProject(t, s, alice, "two", fmt.Sprintf(`,"visibility":"private","namespace_id":%d`, top))
		share := fmt.Sprintf(`{"group_id":%d,"group_access":30}`, team)
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("POST /projects/%d/share", one), As: alice, JSON: share, Status: 201},
			{Do: fmt.Sprintf("POST /groups/%d/share", top), As: alice, JSON: share, Status: 201},
		})
		check := func(name string, status int, projects, groups string) {
			t.Helper()
			s.Table(t, []apptest.Call{
				{Name: name + ": project", Do: fmt.Sprintf("GET /projects/%d", one), As: bob, Status: status},
				{Name: name + ": project of the group", Do: fmt.Sprintf("GET /projects/%d", two), As: bob, Status: status},
				{Name: name + ": group", Do: fmt.Sprintf("GET /groups/%d", top), As: bob, Status: status},
				{Name: name + ": projects", Do: "GET /projects?membership=true&order_by=id&sort=asc", As: bob, Status: 200, Want: projects},
				{Name: name + ": groups", Do: "GET /groups?min_access_level=10", As: bob, Status: 200, Want: groups},
				{Name: name + ": member", Do: fmt.Sprintf("GET /projects/%d/members/all/%d", one, bobID), As: alice, Status: status},
			})
		}
		check("before", 200, `[{"path":"one"},{"path":"two"}]`, `[{"path":"team"},{"path":"top"}]`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("DELETE /groups/%d", team), As: alice, Status: 202})
		check("deleted", 404, `[]`, `[]`)
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /groups/%d/restore", team), As: alice, Status: 201})
		check("restored", 200, `[{"path":"one"},{"path":"two"}]`, `[{"path":"team"},{"path":"top"}]`)
	})
}

// TestRestoreIntoPrivateGroup checks that what is restored is not more visible than
// the group that contains it.
func TestRestoreIntoPrivateGroup(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		top := group(t, s, alice, "top", `,"visibility":"public"`)
		sub := group(t, s, alice, "sub", fmt.Sprintf(`,"visibility":"public","parent_id":%d`, top))
		one := newProject(t, s, alice, "one", fmt.Sprintf(`,"visibility":"public","namespace_id":%d`, top))
		two := newProject(t, s, alice, "two", fmt.Sprintf(`,"visibility":"public","namespace_id":%d`, sub))
		s.Table(t, []apptest.Call{
			{Do: fmt.Sprintf("DELETE /projects/%d", one), As: alice, Status: 202},
			{Do: fmt.Sprintf("DELETE /groups/%d", sub), As: alice, Status: 202},
			{Do: fmt.Sprintf("PUT /groups/%d", top), As: alice, JSON: `{"visibility":"private"}`, Status: 200},
			{Name: "restore a project", Do: fmt.Sprintf("POST /projects/%d/restore", one), As: alice, Status: 201, Want: `{"visibility":"private"}`},
			{Name: "restore a group", Do: fmt.Sprintf("POST /groups/%d/restore", sub), As: alice, Status: 201, Want: `{"visibility":"private"}`},
			{Name: "project of the group", Do: fmt.Sprintf("GET /projects/%d", two), As: alice, Status: 200, Want: `{"visibility":"private"}`},
			{Name: "anonymous", Do: fmt.Sprintf("GET /projects/%d", one), Status: 404},
			{Name: "anonymous, of the group", Do: fmt.Sprintf("GET /projects/%d", two), Status: 404},
		})
	})
}

// TestUnshareAbove checks that a Maintainer cannot remove Owners by removing an
// invited group or an invitation.
func TestUnshareAbove(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		mayaID, maya := s.User(t, "maya")
		leads, team := group(t, s, alice, "leads", ""), group(t, s, alice, "team", "")
		id := newProject(t, s, alice, "p", "")
		at := fmt.Sprintf("/projects/%d", id)
		s.Table(t, []apptest.Call{
			{Do: "POST " + at + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, mayaID), Status: 201},
			{Do: "POST " + at + "/share", As: alice, JSON: fmt.Sprintf(`{"group_id":%d,"group_access":50}`, leads), Status: 201},
			{Do: "POST " + at + "/share", As: alice, JSON: fmt.Sprintf(`{"group_id":%d,"group_access":40}`, team), Status: 201},
			{Do: "POST " + at + "/invitations", As: alice, JSON: `{"email":"owner@example.org","access_level":50}`, Status: 201},
			{Do: "POST " + at + "/invitations", As: alice, JSON: `{"email":"maintainer@example.org","access_level":40}`, Status: 201},
			{Name: "share above", Do: fmt.Sprintf("DELETE %s/share/%d", at, leads), As: maya, Status: 403},
			{Name: "share", Do: fmt.Sprintf("DELETE %s/share/%d", at, team), As: maya, Status: 204},
			{Name: "share as Owner", Do: fmt.Sprintf("DELETE %s/share/%d", at, leads), As: alice, Status: 204},
			{Name: "invitation above", Do: "DELETE " + at + "/invitations/owner@example.org", As: maya, Status: 403},
			{Name: "invitation", Do: "DELETE " + at + "/invitations/maintainer@example.org", As: maya, Status: 204},
			{Name: "invitation as Owner", Do: "DELETE " + at + "/invitations/owner@example.org", As: alice, Status: 204},
		})
	})
}
