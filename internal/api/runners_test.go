package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

func TestRunners(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		aliceID, alice := s.User(t, "alice")
		_, bob := s.User(t, "bob")
		only := s.Token(t, aliceID, "create_runner")
		g, p, q := group(t, s, alice, "g", ""), newProject(t, s, alice, "p", ""), newProject(t, s, alice, "q", "")
		note := strings.Repeat("n", 1025)
		s.Table(t, []apptest.Call{
			{Name: "no type", Do: "POST /user/runners", As: alice, JSON: `{}`, Status: 400, Want: `{"error":"runner_type is missing"}`},
			{Name: "no group", Do: "POST /user/runners", As: alice, JSON: `{"runner_type":"group_type"}`, Status: 400, Want: `{"error":"group_id is missing"}`},
			{Name: "no project", Do: "POST /user/runners", As: alice, JSON: `{"runner_type":"project_type"}`, Status: 400, Want: `{"error":"project_id is missing"}`},
			{Name: "not the instance", Do: "POST /user/runners", As: alice, JSON: `{"runner_type":"instance_type"}`, Status: 403, Want: `{"message":"403 Forbidden - Insufficient permissions"}`},
			{Name: "a hidden group", Do: "POST /user/runners", As: bob, JSON: fmt.Sprintf(`{"runner_type":"group_type","group_id":%d}`, g), Status: 404},
			{Name: "no tags", Do: "POST /user/runners", As: root, JSON: `{"runner_type":"instance_type","run_untagged":false}`, Status: 400,
				Want: `{"message":"400 Bad request - Tags list can not be empty when runner is not allowed to pick untagged jobs"}`},
			{Name: "a long note", Do: "POST /user/runners", As: root, JSON: `{"runner_type":"instance_type","maintenance_note":"` + note + `"}`, Status: 400,
				Want: `{"message":"400 Bad request - Maintenance note is too long (maximum is 1024 characters)"}`},
			{Name: "a short timeout", Do: "POST /user/runners", As: root, JSON: `{"runner_type":"instance_type","maximum_timeout":599}`, Status: 400},
			{Name: "a level that is none", Do: "POST /user/runners", As: root, JSON: `{"runner_type":"instance_type","access_level":"x"}`, Status: 400, Want: `{"error":"access_level does not have a valid value"}`},
			{Name: "by the scope for it", Do: "POST /user/runners", As: only, JSON: fmt.Sprintf(`{"runner_type":"group_type","group_id":%d,"description":"of g"}`, g), Status: 201,
				Want: `{"id":"<any>","token":"<any>","token_expires_at":null}`},
			{Name: "which opens nothing else", Do: "GET /runners", As: only, Status: 403},
		})
		var own struct {
			ID    int64
			Token string
		}
		s.Check(t, apptest.Call{Do: "POST /user/runners", As: alice, Status: 201, JSON: fmt.Sprintf(
			`{"runner_type":"project_type","project_id":%d,"description":"mine","tag_list":["b","a","b"],"locked":true,"access_level":"ref_protected","maximum_timeout":700,"paused":true}`, p)}).JSON(t, &own)
		if !strings.HasPrefix(own.Token, "glrt-") {
			t.Errorf("token is %q", own.Token)
		}
		newRunner(t, s, root, `{"runner_type":"instance_type","description":"for all"}`)
		one := fmt.Sprintf("/runners/%d", own.ID)
		names := func(list ...string) string {
			var parts []string
			for _, name := range list {
				parts = append(parts, fmt.Sprintf(`{"description":%q}`, name))
			}
			return "[" + strings.Join(parts, ",") + "]"
		}
		info := `{"name":"gitlab-runner","version":"17.5.1","revision":"abc","platform":"linux","architecture":"amd64","executor":"shell","features":{"two_phase_job_commit":true}}`
		s.Table(t, []apptest.Call{
			{Do: "GET " + one, As: alice, Status: 200, Want: fmt.Sprintf(`{"description":"mine","active":false,"paused":true,"is_shared":false,"runner_type":"project_type","ip_address":"",
				"name":null,"online":false,"status":"never_contacted","tag_list":["a","b"],"run_untagged":true,"locked":true,"maximum_timeout":700,"access_level":"ref_protected",
				"contacted_at":null,"projects":[{"id":%d,"path_with_namespace":"alice/p"}],"groups":[],"created_by":{"username":"alice"}}`, p)},
			{Name: "others", Do: "GET " + one, As: bob, Status: 403, Want: `{"message":"403 Forbidden - No access granted"}`},
			{Name: "anonymous", Do: "GET " + one, Status: 401},
			{Name: "none", Do: "GET /runners/99999", As: alice, Status: 404, Want: `{"message":"404 Runner Not Found"}`},
			{Name: "one's own", Do: "GET /runners", As: alice, Status: 200, Want: names("mine", "of g"), WantHeader: map[string]string{"X-Total": "2"}},
			{Name: "anonymous", Do: "GET /runners", As: bob, Status: 200, Want: `[]`},
			{Name: "all", Do: "GET /runners/all", As: root, Status: 200, Want: names("for all", "mine", "of g")},
			{Name: "all, to others", Do: "GET /runners/all", As: alice, Status: 403},
			{Name: "by type", Do: "GET /runners/all?type=group_type", As: root, Status: 200, Want: names("of g")},
			{Name: "by paused", Do: "GET /runners/all?paused=true", As: root, Status: 200, Want: names("mine")},
			{Name: "by tag", Do: "GET /runners/all?tag_list=a,b", As: root, Status: 200, Want: names("mine")},
			{Name: "by part of a tag", Do: "GET /runners/all?tag_list=A", As: root, Status: 200, Want: `[]`},
			{Name: "by state", Do: "GET /runners/all?status=online", As: root, Status: 200, Want: `[]`},
			{Name: "of the project", Do: fmt.Sprintf("GET /projects/%d/runners", p), As: alice, Status: 200, Want: names("for all", "mine")},
			{Name: "of the group", Do: fmt.Sprintf("GET /groups/%d/runners", g), As: alice, Status: 200, Want: names("for all", "of g")},
			{Name: "the runner says who it is", Do: "POST /runners/verify", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_1","info":%s}`, own.Token, info), Status: 200,
				Want: fmt.Sprintf(`{"id":%d,"token":%q,"token_expires_at":null}`, own.ID, own.Token)},
			{Name: "by a header", Do: "POST /runners/verify", Header: map[string]string{"RUNNER-TOKEN": own.Token}, JSON: `{"system_id":"s_2"}`, Status: 200},
			{Name: "a wrong token", Do: "POST /runners/verify", JSON: `{"token":"glrt-nothing"}`, Status: 403},
			{Name: "then it is known", Do: "GET " + one, As: alice, Status: 200, Want: `{"status":"paused","online":true,"contacted_at":"<any>"}`},
			{Name: "online", Do: "GET /runners/all?status=online&version_prefix=17.5", As: root, Status: 200, Want: names("mine")},
			{Name: "another version", Do: "GET /runners/all?version_prefix=17.6", As: root, Status: 200, Want: `[]`},
			{Name: "its machines", Do: "GET " + one + "/managers", As: alice, Status: 200, Want: `[{"system_id":"s_2"},{"system_id":"s_1","version":"17.5.1","platform":"linux","status":"online","job_execution_status":"idle"}]`},
			{Name: "forget one", Do: "DELETE /runners/managers", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_2"}`, own.Token), Status: 204},
			{Name: "once", Do: "DELETE /runners/managers", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_2"}`, own.Token), Status: 404},
			{Name: "active and paused", Do: "PUT " + one, As: alice, JSON: `{"active":true,"paused":false}`, Status: 400, Want: `{"error":"active, paused are mutually exclusive"}`},
			{Name: "change", Do: "PUT " + one, As: alice, JSON: `{"active":true,"tag_list":["c"],"description":"better","maximum_timeout":null}`, Status: 200,
				Want: `{"description":"better","paused":false,"active":true,"tag_list":["c"],"maximum_timeout":null,"status":"online","locked":true}`},
			{Name: "by others", Do: "PUT " + one, As: bob, JSON: `{"description":"x"}`, Status: 403},
			{Name: "locked", Do: fmt.Sprintf("POST /projects/%d/runners", q), As: alice, JSON: fmt.Sprintf(`{"runner_id":%d}`, own.ID), Status: 403, Want: `{"message":"403 Forbidden - Runner is locked"}`},
			{Name: "unlock", Do: "PUT " + one, As: alice, JSON: `{"locked":false}`, Status: 200},
			{Name: "enable", Do: fmt.Sprintf("POST /projects/%d/runners", q), As: alice, JSON: fmt.Sprintf(`{"runner_id":%d}`, own.ID), Status: 201, Want: `{"description":"better"}`},
			{Name: "again", Do: fmt.Sprintf("POST /projects/%d/runners", q), As: alice, JSON: fmt.Sprintf(`{"runner_id":%d}`, own.ID), Status: 400, Want: `{"message":{"runner":["has already been taken"]}}`},
			{Name: "the one that owns it", Do: fmt.Sprintf("DELETE /projects/%d/runners/%d", p, own.ID), As: alice, Status: 403},
			{Name: "not while it serves two", Do: "DELETE " + one, As: alice, Status: 403},
			{Name: "disable", Do: fmt.Sprintf("DELETE /projects/%d/runners/%d", q, own.ID), As: alice, Status: 204},
			{Name: "once more", Do: fmt.Sprintf("DELETE /projects/%d/runners/%d", q, own.ID), As: alice, Status: 404},
			{Name: "jobs", Do: "GET " + one + "/jobs", As: alice, Status: 200, Want: `[]`},
			{Name: "jobs, by others", Do: "GET " + one + "/jobs", As: bob, Status: 403},
		})
		s.Clock.Move(3 * time.Hour)
		s.Check(t, apptest.Call{Name: "offline", Do: "GET " + one, As: alice, Status: 200, Want: `{"status":"offline","online":false}`})
		var fresh struct{ Token string }
		s.Check(t, apptest.Call{Do: "POST " + one + "/reset_authentication_token", As: alice, Status: 201, Want: `{"token_expires_at":null}`}).JSON(t, &fresh)
		verify := func(token string, status int) apptest.Call {
			return apptest.Call{Do: "POST /runners/verify", JSON: fmt.Sprintf(`{"token":%q}`, token), Status: status}
		}
		s.Check(t, verify(own.Token, 403))
		s.Check(t, verify(fresh.Token, 200))
		s.Check(t, apptest.Call{Do: "POST /runners/reset_authentication_token", JSON: fmt.Sprintf(`{"token":%q}`, fresh.Token), Status: 201}).JSON(t, &fresh)
		s.Table(t, []apptest.Call{
			{Name: "unregister", Do: "DELETE /runners", JSON: fmt.Sprintf(`{"token":%q}`, fresh.Token), Status: 204},
			{Name: "once", Do: "DELETE /runners", JSON: fmt.Sprintf(`{"token":%q}`, fresh.Token), Status: 403},
			{Name: "gone", Do: "GET " + one, As: alice, Status: 404},
		})
		events(t, s, alice, fmt.Sprintf("/projects/%d", p), fmt.Sprintf("ci_runner_created by %d", aliceID), fmt.Sprintf("ci_runner_updated by %d", aliceID))
		if strings.Contains(s.Log(), own.Token) || strings.Contains(s.Log(), fresh.Token) {
			t.Error("a token is in the log")
		}
	})
}

// TestRunnerJobsOfOtherProjects checks that a Maintainer of one project of a runner
// does not see the jobs of its other projects.
func TestRunnerJobsOfOtherProjects(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		b := newBench(t, s, "a: {script: [x]}")
		other := b.newProject("secret", "hidden: {script: [x]}")
		bobID, bob := s.User(t, "bob")
		member(t, s, b.owner, b.project, bobID, 40)
		runner := newRunner(t, s, b.owner, fmt.Sprintf(`{"runner_type":"project_type","project_id":%d}`, b.project))
		var list []struct{ ID int64 }
		s.Check(t, apptest.Call{Do: "GET /runners", As: b.owner, Status: 200}).JSON(t, &list)
		if len(list) != 1 {
			t.Fatalf("%d runners", len(list))
		}
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/runners", other), As: b.owner, JSON: fmt.Sprintf(`{"runner_id":%d}`, list[0].ID), Status: 201})
		b.pipeline(b.project)
		b.pipeline(other)
		b.take(runner, 201, "")
		b.take(runner, 201, "")
		jobs := fmt.Sprintf("GET /runners/%d/jobs", list[0].ID)
		s.Table(t, []apptest.Call{
			{Name: "owner of both", Do: jobs, As: b.owner, Status: 200, Want: `[{},{}]`, WantHeader: map[string]string{"X-Total": "2"}},
			{Name: "administrator", Do: jobs, As: root, Status: 200, Want: `[{},{}]`},
			{Name: "maintainer of one", Do: jobs, As: bob, Status: 200, Want: `[{"name":"a"}]`, WantHeader: map[string]string{"X-Total": "1"}, Not: []string{"hidden"}},
			{Name: "by page", Do: jobs + "?per_page=1&page=2", As: bob, Status: 200, Want: `[]`},
		})
		member(t, s, b.owner, other, bobID, 20)
		s.Check(t, apptest.Call{Name: "reporter of the other", Do: jobs, As: bob, Status: 200, Want: `[{},{}]`})
	})
}

func TestRegistrationTokens(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		g, p := group(t, s, alice, "g", ""), newProject(t, s, alice, "p", "")
		reset := func(as, at string) string {
			var got struct{ Token string }
			s.Check(t, apptest.Call{Do: "POST " + at + "/reset_registration_token", As: as, Status: 201}).JSON(t, &got)
			return got.Token
		}
		register := func(token, more string, status int) apptest.Call {
			return apptest.Call{Do: "POST /runners", JSON: fmt.Sprintf(`{"token":%q%s}`, token, more), Status: status}
		}
		for at, kind := range map[string]string{"/runners": "instance_type", fmt.Sprintf("/groups/%d/runners", g): "group_type", fmt.Sprintf("/projects/%d/runners", p): "project_type"} {
			token := reset(root, at)
			var made struct {
				ID    int64
				Token string
			}
			s.Check(t, register(token, `,"description":"legacy","tag_list":"x,y","system_id":"s_9","info":{"version":"16.0"}`, 201)).JSON(t, &made)
			if strings.HasPrefix(made.Token, "glrt-") {
				t.Errorf("the public runner takes %q for one that the API made", made.Token)
			}
			s.Check(t, apptest.Call{Do: fmt.Sprintf("GET /runners/%d", made.ID), As: root, Status: 200, Want: fmt.Sprintf(`{"runner_type":%q,"tag_list":["x","y"],"version":"16.0","created_by":null}`, kind)})
			s.Check(t, apptest.Call{Do: "POST /runners/verify", JSON: fmt.Sprintf(`{"token":%q}`, made.Token), Status: 200})
			reset(root, at)
			s.Check(t, register(token, "", 403))
		}
		token := reset(alice, fmt.Sprintf("/projects/%d/runners", p))
		s.Table(t, []apptest.Call{
			{Name: "no token", Do: "POST /runners", JSON: `{}`, Status: 400, Want: `{"error":"token is missing"}`},
			{Name: "the instance is for administrators", Do: "POST /runners/reset_registration_token", As: alice, Status: 403},
			{Name: "turn it off", Do: "PUT /application/settings", As: root, JSON: `{"allow_runner_registration_token":false}`, Status: 200, Want: `{"allow_runner_registration_token":false}`},
			register(token, "", 410),
		})
	})
}
