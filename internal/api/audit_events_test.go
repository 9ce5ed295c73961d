package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
	"svc/internal/git/gittest"
	"svc/internal/user"
)

func TestAuditEvents(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d?admin=true", id), As: root, Status: 200})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d?admin=false", id), As: root, Status: 200})
		past := s.Clock.Now().Add(-time.Hour).Format(time.RFC3339)
		future := s.Clock.Now().Add(time.Hour).Format(time.RFC3339)
		s.Table(t, []apptest.Call{
			{Do: "GET /audit_events", Status: 401},
			{Do: "GET /audit_events", As: alice, Status: 403},
			{Do: "GET /audit_events/1", As: alice, Status: 403},
			{Name: "newest first", Do: "GET /audit_events?per_page=1", As: root, Status: 200,
				Want: fmt.Sprintf(`[{"author_id":1,"entity_id":%d,"entity_type":"User","event_type":"user_admin_status_updated","created_at":"<any>",
					"details":{"change":"admin status","from":"true","to":"false","author_name":"Administrator","author_email":"root@localhost","author_class":"User",
					"target_id":%d,"target_type":"User","target_details":"alice","ip_address":"127.0.0.1","entity_path":"alice"}}]`, id, id)},
			{Name: "one", Do: "GET /audit_events/1", As: root, Status: 200, Want: `{"id":1,"event_type":"user_created"}`},
			{Name: "unknown", Do: "GET /audit_events/999", As: root, Status: 404, Want: `{"message":"404 Audit Event Not Found"}`},
			{Name: "of an entity", Do: fmt.Sprintf("GET /audit_events?entity_type=User&entity_id=%d", id), As: root, Status: 200, WantHeader: map[string]string{"X-Total": "4"}},
			{Name: "of a level", Do: "GET /audit_events?entity_type=Group", As: root, Status: 200, Want: `[]`},
			{Name: "id without type", Do: "GET /audit_events?entity_id=3", As: root, Status: 400, Want: `{"error":"entity_type is missing"}`},
			{Name: "bad type", Do: "GET /audit_events?entity_type=Robot", As: root, Status: 400, Want: `{"error":"entity_type does not have a valid value"}`},
			{Name: "after", Do: "GET /audit_events?created_after=" + future, As: root, Status: 200, Want: `[]`},
			{Name: "before", Do: "GET /audit_events?created_before=" + past, As: root, Status: 200, Want: `[]`},
			{Name: "between", Do: "GET /audit_events?created_after=" + past + "&created_before=" + future + "&per_page=1", As: root, Status: 200, Want: `[{}]`},
			{Name: "bad date", Do: "GET /audit_events?created_after=x", As: root, Status: 400, Want: `{"error":"created_after is invalid"}`},
		})
		if _, _, err := s.Users.SignIn(t.Context(), user.SignInRequest{Login: "alice", Password: "wrong", IP: "192.0.2.1"}); err == nil {
			t.Fatal("signed in")
		}
		s.Check(t, apptest.Call{Name: "a failed sign-in", Do: "GET /audit_events?entity_type=Svc::Audit::InstanceScope&per_page=1", As: root, Status: 200, Not: []string{"wrong"},
			Want: `[{"entity_type":"Svc::Audit::InstanceScope","event_type":"failed_login","ip_address":"192.0.2.1","author_name":"<any>","entity_path":"<any>","target_details":"alice","target_type":"User"}]`})

		path, n := "/audit_events?pagination=keyset&order_by=id&sort=desc&per_page=2", 0
		for path != "" && n < 100 {
			a := s.Check(t, apptest.Call{Do: "GET " + path, As: root, Status: 200, WantHeader: map[string]string{"X-Total": "-"}})
			var page []map[string]any
			a.JSON(t, &page)
			n += len(page)
			path = ""
			if next := links(t, a.Header)["next"]; next != nil {
				path = strings.TrimPrefix(next.RequestURI(), "/api/v4")
			}
		}
		var all int
		if err := s.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM audit_events`).Scan(&all); err != nil || n != all {
			t.Errorf("keyset gave %d events of %d, %v", n, all, err)
		}
	})
}

func TestServiceName(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Check(t, apptest.Call{Do: "PUT /application/settings?max_login_attempts=5", As: root, Status: 200})
		for _, scope := range []string{"Gitlab::Audit::InstanceScope", "Svc::Audit::InstanceScope"} {
			s.Check(t, apptest.Call{Do: "GET /audit_events?entity_type=" + scope, As: root, Status: 200, Want: `[{"entity_type":"Gitlab::Audit::InstanceScope","details":{"change":"max_login_attempts","from":"10","to":"5"}}]`})
		}
		id, _ := s.User(t, "alice")
		if token := s.Token(t, id); !strings.HasPrefix(token, "glpat-") {
			t.Errorf("token %s", token)
		}
		session, _, err := s.Users.SignIn(t.Context(), user.SignInRequest{Login: "alice", Password: "a good password"})
		if err != nil {
			t.Fatal(err)
		}
		s.Check(t, apptest.Call{Do: "GET /user", Header: map[string]string{"Cookie": "_gitlab_session=" + session.Token}, Status: 200})
		s.Check(t, apptest.Call{Do: "GET /user", Header: map[string]string{"Cookie": "_svc_session=" + session.Token}, Status: 401})
	}, apptest.ServiceName("gitlab"))
}

// TestPrefixes creates tokens of all kinds and a session on servers with custom
// prefixes of tokens and cookies.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, tokens, cookie string
		options              []apptest.Option
	}{
		{"by the service name", "gl", "_gitlab_session", []apptest.Option{apptest.ServiceName("gitlab")}},
		{"by the options", "gl", "_forge_session", []apptest.Option{apptest.TokenPrefix("gl"), apptest.CookiePrefix("forge")}},
		{"tokens alone", "x", "_svc_session", []apptest.Option{apptest.TokenPrefix("x")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			apptest.Each(t, func(t *testing.T, s *apptest.Server) {
				id, alice := s.User(t, "alice")
				project := func(path, file string) int64 {
					var made struct{ ID int64 }
					s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: fmt.Sprintf(`{"path":%q}`, path), Status: 201}).JSON(t, &made)
					s.Repository(t, made.ID, gittest.Commit{Seconds: 1_600_000_000, Changes: []gittest.Change{{Path: ".gitlab-ci.yml", Content: file}}})
					return made.ID
				}
				p := project("p", "job: {script: [x]}\n")
				tokenOf := func(kind string, c apptest.Call) string {
					t.Helper()
					var made struct{ Token string }
					c.As, c.Status = alice, 201
					s.Check(t, c).JSON(t, &made)
					if !strings.HasPrefix(made.Token, kind) {
						t.Errorf("%s: the token is %q, want the prefix %s", c.Do, made.Token, kind)
					}
					return made.Token
				}
				tokenOf(tt.tokens+"pat-", apptest.Call{Do: fmt.Sprintf("POST /projects/%d/access_tokens", p), JSON: `{"name":"a","scopes":["api"]}`})
				tokenOf(tt.tokens+"dt-", apptest.Call{Do: fmt.Sprintf("POST /projects/%d/deploy_tokens", p), JSON: `{"name":"d","scopes":["read_repository"]}`})
				trigger := tokenOf(tt.tokens+"ptt-", apptest.Call{Do: fmt.Sprintf("POST /projects/%d/triggers", p), JSON: `{"description":"t"}`})
				runner := tokenOf("glrt-", apptest.Call{Do: "POST /user/runners", JSON: fmt.Sprintf(`{"runner_type":"project_type","project_id":%d}`, p)})
				if token := s.Token(t, id); !strings.HasPrefix(token, tt.tokens+"pat-") {
					t.Errorf("personal access token %s", token)
				}
				s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /projects/%d/trigger/pipeline?ref=main&token=%s", p, trigger), Status: 201})
				var job struct {
					ID    int64
					Token string
				}
				s.Check(t, apptest.Call{Do: "POST /jobs/request", JSON: fmt.Sprintf(`{"token":%q,"system_id":"s_1"}`, runner), Status: 201}).JSON(t, &job)
				if !strings.HasPrefix(job.Token, tt.tokens+"cbt-") {
					t.Errorf("job token %s", job.Token)
				}
				s.Check(t, apptest.Call{Name: "job token as a bearer token", Do: "GET /job", Header: map[string]string{"Authorization": "Bearer " + job.Token}, Status: 200})
				s.Check(t, apptest.Call{Name: "job token as a trigger token", Do: fmt.Sprintf("POST /projects/%d/trigger/pipeline?ref=main&token=%s", p, job.Token), Status: 201})

				session, _, err := s.Users.SignIn(t.Context(), user.SignInRequest{Login: "alice", Password: "a good password"})
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"_gitlab_session", "_forge_session", "_svc_session"} {
					status := 401
					if name == tt.cookie {
						status = 200
					}
					s.Check(t, apptest.Call{Do: "GET /user", Header: map[string]string{"Cookie": name + "=" + session.Token}, Status: status})
				}
			}, tt.options...)
		})
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Table(t, []apptest.Call{
			{Do: "GET /application/settings", Status: 401},
			{Do: "GET /application/settings", As: alice, Status: 403},
			{Do: "PUT /application/settings", As: alice, Status: 403},
			{Do: "GET /application/settings", As: root, Status: 200, Want: `{"impersonation_enabled":true,"max_personal_access_token_lifetime":365,"minimum_password_length":8}`},
			{Name: "out of range", Do: "PUT /application/settings", As: root, JSON: `{"minimum_password_length":1,"max_login_attempts":0}`, Status: 400,
				Want: `{"message":{"minimum_password_length":["must be greater than or equal to 8"],"max_login_attempts":["must be greater than or equal to 1"]}}`},
			{Name: "wrong type", Do: "PUT /application/settings", As: root, JSON: `{"minimum_password_length":"many"}`, Status: 400, Want: `{"error":"minimum_password_length is invalid"}`},
			{Name: "no such value", Do: "PUT /application/settings", As: root, JSON: `{"email_confirmation_setting":"later"}`, Status: 400, Want: `{"error":"email_confirmation_setting does not have a valid value"}`},
			{Name: "one of the values", Do: "PUT /application/settings", As: root, JSON: `{"email_confirmation_setting":"soft"}`, Status: 200, Want: `{"email_confirmation_setting":"soft"}`},
			{Name: "change", Do: "PUT /application/settings", As: root, JSON: `{"minimum_password_length":12,"default_projects_limit":3,"user_default_external":true,"can_create_group":false,"user_defaults_to_private_profile":true}`, Status: 200,
				Want: `{"minimum_password_length":12,"default_projects_limit":3}`},
			{Name: "kept", Do: "GET /application/settings", As: root, Status: 200, Want: `{"minimum_password_length":12,"max_login_attempts":10}`},
			{Name: "in force", Do: "POST /users", As: root, JSON: `{"email":"b@example.org","name":"B","username":"bob","password":"only-eight"}`, Status: 400},
			{Name: "defaults of new users", Do: "POST /users", As: root, JSON: `{"email":"b@example.org","name":"B","username":"bob","password":"twelve characters"}`, Status: 201,
				Want: `{"projects_limit":3,"external":true,"can_create_group":false,"private_profile":true}`},
		})
	})
}
