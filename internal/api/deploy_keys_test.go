package api_test

import (
	"fmt"
	"testing"

	"svc/internal/app/apptest"
)

func TestDeployKeys(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bobID, bob := s.User(t, "bob")
		p, q := newProject(t, s, alice, "p", ""), newProject(t, s, alice, "q", "")
		bobProject := newProject(t, s, bob, "bobProject", "")
		keys := func(project int64) string { return fmt.Sprintf("/projects/%d/deploy_keys", project) }
		key := newKey(t)
		s.Table(t, []apptest.Call{
			{Name: "all that is needed", Do: "POST " + keys(p), As: alice, JSON: `{}`, Status: 400, Want: `{"error":"title is missing, key is missing"}`},
			{Name: "no key", Do: "POST " + keys(p), As: alice, JSON: `{"title":"k","key":"ssh-rsa x"}`, Status: 400, Want: `{"message":{"key":["is invalid"]}}`},
			{Name: "expired", Do: "POST " + keys(p), As: alice, JSON: `{"title":"k","key":"` + key + `","expires_at":"2020-01-02T00:00:00Z"}`, Status: 400},
		})
		k := made(t, s, alice, "POST "+keys(p), `{"title":"CI","key":"`+key+` of a robot","can_push":true}`)
		public := made(t, s, root, "POST /deploy_keys", `{"title":"For all","key":"`+newKey(t)+`","expires_at":"2090-01-02T00:00:00Z"}`)
		one := func(project, id int64) string { return fmt.Sprintf("%s/%d", keys(project), id) }
		s.Table(t, []apptest.Call{
			{Do: "GET " + one(p, k), As: alice, Status: 200, Want: fmt.Sprintf(`{"id":%d,"title":"CI","key":"%s of a robot","fingerprint":"<any>","fingerprint_sha256":"<any>",
				"created_at":"<any>","expires_at":null,"can_push":true}`, k, key)},
			{Name: "in a second project", Do: "POST " + keys(q), As: alice, JSON: `{"title":"other","key":"` + key + `"}`, Status: 201, Want: fmt.Sprintf(`{"id":%d,"title":"CI","can_push":false}`, k)},
			{Name: "again", Do: "POST " + keys(q), As: alice, JSON: `{"title":"other","key":"` + key + `","can_push":true}`, Status: 201, Want: `{"can_push":false}`},
			{Name: "not by another user", Do: "POST " + keys(bobProject), As: bob, JSON: `{"title":"k","key":"` + key + `"}`, Status: 400, Want: `{"message":{"fingerprint_sha256":["has already been taken"]}}`},
			{Name: "nor by its id", Do: "POST " + one(bobProject, k) + "/enable", As: bob, Status: 404, Want: `{"message":"404 Deploy Key Not Found"}`},
			{Name: "nor as their own", Do: "POST /user/keys", As: bob, JSON: `{"title":"k","key":"` + key + `"}`, Status: 400},
			{Name: "a public one", Do: "POST " + one(bobProject, public) + "/enable", As: bob, Status: 201, Want: `{"title":"For all","can_push":false,"expires_at":"2090-01-02T00:00:00.000Z"}`},
			{Name: "another user's title", Do: "PUT " + one(bobProject, public), As: bob, JSON: `{"title":"Mine"}`, Status: 403},
			{Name: "but what it may", Do: "PUT " + one(bobProject, public), As: bob, JSON: `{"can_push":true}`, Status: 200, Want: `{"can_push":true,"title":"For all"}`},
			{Name: "nothing to change", Do: "PUT " + one(p, k), As: alice, JSON: `{}`, Status: 400},
			{Name: "blank", Do: "PUT " + one(p, k), As: alice, JSON: `{"title":""}`, Status: 400},
			{Name: "change", Do: "PUT " + one(p, k), As: alice, JSON: `{"title":"Robot","can_push":false}`, Status: 200, Want: `{"title":"Robot","can_push":false}`},
			{Name: "the title is the same everywhere", Do: "GET " + keys(q), As: alice, Status: 200, Want: `[{"title":"Robot","can_push":false}]`},
			{Name: "all of them", Do: "GET /deploy_keys", As: root, Status: 200, Want: `[
				{"title":"Robot","projects_with_write_access":[],"projects_with_readonly_access":[{"path_with_namespace":"alice/p"},{"path_with_namespace":"alice/q"}]},
				{"title":"For all","projects_with_write_access":[{"path_with_namespace":"bob/bobProject","name_with_namespace":"bob / bobProject"}],"projects_with_readonly_access":[]}]`},
			{Name: "public ones", Do: "GET /deploy_keys?public=true", As: root, Status: 200, Want: `[{"title":"For all"}]`},
			{Name: "nothing in common", Do: "GET /users/alice/project_deploy_keys", As: bob, Status: 403},
			{Name: "one's own", Do: "GET /users/alice/project_deploy_keys", As: alice, Status: 200, Want: `[{"title":"Robot"}]`, Not: []string{"can_push"}},
			{Name: "no such user", Do: "GET /users/nobody/project_deploy_keys", As: alice, Status: 404},
			{Name: "a guest", Do: fmt.Sprintf("POST /projects/%d/members", p), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":10}`, bobID), Status: 201},
			{Name: "cannot enable it", Do: "POST " + one(bobProject, k) + "/enable", As: bob, Status: 404},
			{Name: "approve", Do: fmt.Sprintf("PUT /projects/%d/members/%d", p, bobID), As: alice, JSON: `{"access_level":40}`, Status: 200},
			{Name: "in common", Do: "GET /users/alice/project_deploy_keys", As: bob, Status: 200, Want: `[{"title":"Robot"}]`},
			{Name: "now the user can enable it", Do: "POST " + one(bobProject, k) + "/enable", As: bob, Status: 201},
			{Name: "but not rename that of a project they do not maintain", Do: "PUT " + one(bobProject, k), As: bob, JSON: `{"title":"Mine"}`, Status: 403},
			{Name: "which keeps its title", Do: "GET " + one(q, k), As: alice, Status: 200, Want: `{"title":"Robot"}`},
			{Name: "only what it may here", Do: "PUT " + one(bobProject, k), As: bob, JSON: `{"title":"Robot","can_push":true}`, Status: 200, Want: `{"title":"Robot","can_push":true}`},
			{Name: "in the last project", Do: fmt.Sprintf("POST /projects/%d/members", q), As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":40}`, bobID), Status: 201},
			{Name: "rename", Do: "PUT " + one(bobProject, k), As: bob, JSON: `{"title":"Machine"}`, Status: 200},
			{Name: "by its creator", Do: "PUT " + one(p, k), As: alice, JSON: `{"title":"Robot"}`, Status: 200, Want: `{"title":"Robot"}`},
			{Name: "remove", Do: "DELETE " + one(bobProject, k), As: bob, Status: 204},
			{Name: "once", Do: "DELETE " + one(bobProject, k), As: bob, Status: 404},
			{Name: "it is still in others", Do: "DELETE " + one(p, k), As: alice, Status: 204},
			{Name: "the last", Do: "DELETE " + one(q, k), As: alice, Status: 204},
			{Name: "then it is gone", Do: "GET /deploy_keys", As: root, Status: 200, Want: `[{"title":"For all"}]`},
			{Name: "and free", Do: "POST /user/keys", As: bob, JSON: `{"title":"k","key":"` + key + `"}`, Status: 201},
			{Name: "a public one stays", Do: "DELETE " + one(bobProject, public), As: bob, Status: 204},
			{Name: "there", Do: "GET /deploy_keys", As: root, Status: 200, Want: `[{"title":"For all"}]`},
		})
		events(t, s, alice, fmt.Sprintf("/projects/%d", p), fmt.Sprintf("deploy_key_updated by %d", actorOf(t, s, alice).ID), fmt.Sprintf("deploy_key_removed by %d", actorOf(t, s, alice).ID))
	})
}
