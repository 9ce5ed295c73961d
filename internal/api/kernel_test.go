package api_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"svc/internal/actor"
	"svc/internal/app/apptest"
	"svc/internal/setting"
	"svc/internal/user"
)

const root = apptest.RootToken

// TestCredentials sends each kind of token in each form.
func TestCredentials(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, token := s.User(t, "alice")
		imp, err := s.Users.CreateImpersonationToken(t.Context(), actor.System(), id, user.NewToken{Name: "i", Scopes: []string{"api"}})
		if err != nil {
			t.Fatal(err)
		}
		basic := func(name, password string) string {
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
		}
		who := `{"username":"alice"}`
		refused := `{"message":"401 Unauthorized"}`
		s.Table(t, []apptest.Call{
			{Name: "header", Do: "GET /user", As: token, Status: 200, Want: who},
			{Name: "query", Do: "GET /user?private_token=" + token, Status: 200, Want: who},
			{Name: "bearer", Do: "GET /user", Header: map[string]string{"Authorization": "Bearer " + token}, Status: 200, Want: who},
			{Name: "bearer in lower case", Do: "GET /user", Header: map[string]string{"Authorization": "bearer " + token}, Status: 200, Want: who},
			{Name: "oauth query", Do: "GET /user?access_token=" + token, Status: 200, Want: who},
			{Name: "basic password", Do: "GET /user", Header: map[string]string{"Authorization": basic("alice", token)}, Status: 200, Want: who},
			{Name: "impersonation header", Do: "GET /user", As: imp.Secret, Status: 200, Want: who},
			{Name: "impersonation query", Do: "GET /user?private_token=" + imp.Secret, Status: 200, Want: who},
			{Name: "nothing", Do: "GET /user", Status: 401, Want: refused},
			{Name: "unknown", Do: "GET /user", As: "svcpat-nonsense", Status: 401, Want: refused},
			{Name: "unknown on a public endpoint", Do: "GET /users?username=alice", As: "svcpat-nonsense", Status: 401, Want: refused},
			{Name: "unknown query", Do: "GET /users?username=alice&private_token=x", Status: 401, Want: refused},
			{Name: "empty bearer", Do: "GET /user", Header: map[string]string{"Authorization": "Bearer "}, Status: 401, Want: refused},
			{Name: "strange scheme", Do: "GET /user", Header: map[string]string{"Authorization": "Digest x"}, Status: 401, Want: refused},
			{Name: "the account's password", Do: "GET /user", Header: map[string]string{"Authorization": basic("alice", "a good password")}, Status: 401, Want: refused},
			{Name: "a personal token is no job token", Do: "GET /user", Header: map[string]string{"JOB-TOKEN": token}, Status: 401, Want: refused},
			{Name: "a personal token is no job token, by query", Do: "GET /user?job_token=" + token, Status: 401, Want: refused},
			{Name: "a made-up cookie counts as none", Do: "GET /user", Header: map[string]string{"Cookie": "_svc_session=abc"}, Status: 401, Want: refused},
		})
		if strings.Contains(s.Log(), token) || strings.Contains(s.Log(), imp.Secret) {
			t.Error("a token stands in the log")
		}
	})
}

func TestTokenEnds(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, token := s.User(t, "alice")
		soon, err := s.Users.CreateToken(t.Context(), actor.System(), id, user.NewToken{
			Name: "short", Scopes: []string{"api"}, ExpiresAt: s.Clock.Now().AddDate(0, 0, 1).Format(time.DateOnly),
		})
		if err != nil {
			t.Fatal(err)
		}
		imp, err := s.Users.CreateImpersonationToken(t.Context(), actor.System(), id, user.NewToken{Name: "i", Scopes: []string{"api"}})
		if err != nil {
			t.Fatal(err)
		}
		refused := `{"message":"401 Unauthorized"}`
		s.Check(t, apptest.Call{Do: "GET /user", As: soon.Secret, Status: 200})
		s.Check(t, apptest.Call{Do: "GET /user", As: imp.Secret, Status: 200})
		s.Check(t, apptest.Call{Do: "PUT /application/settings?impersonation_enabled=false", As: root, Status: 200})
		s.Check(t, apptest.Call{Name: "impersonation is disabled", Do: "GET /user", As: imp.Secret, Status: 401, Want: refused})
		s.Check(t, apptest.Call{Do: "PUT /application/settings?impersonation_enabled=true", As: root, Status: 200})
		s.Check(t, apptest.Call{Do: "GET /user", As: imp.Secret, Status: 200})
		s.Check(t, apptest.Call{Do: "DELETE /personal_access_tokens/self", As: token, Status: 204})
		s.Check(t, apptest.Call{Name: "revoked", Do: "GET /user", As: token, Status: 401, Want: refused})
		s.Clock.Move(24 * time.Hour)
		s.Check(t, apptest.Call{Name: "expired", Do: "GET /user", As: soon.Secret, Status: 401, Want: refused})
	})
}

func TestSession(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		id, _ := s.User(t, "alice")
		session, _, err := s.Users.SignIn(t.Context(), user.SignInRequest{Login: "alice", Password: "a good password", IP: "127.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		cookie := map[string]string{"Cookie": "_svc_session=" + session.Token}
		both := map[string]string{"Cookie": "_svc_session=" + session.Token, "X-CSRF-Token": session.CSRF}
		wrong := map[string]string{"Cookie": "_svc_session=" + session.Token, "X-CSRF-Token": strings.Repeat("x", len(session.CSRF))}
		s.Table(t, []apptest.Call{
			{Name: "read", Do: "GET /user", Header: cookie, Status: 200, Want: `{"username":"alice","current_sign_in_at":"<any>"}`},
			{Name: "write without CSRF token", Do: "PUT /user/status?message=x", Header: cookie, Status: 401},
			{Name: "write with a wrong CSRF token", Do: "PUT /user/status?message=x", Header: wrong, Status: 401},
			{Name: "write", Do: "PUT /user/status?message=x", Header: both, Status: 200, Want: `{"message":"x"}`},
			{Name: "sudo needs a token", Do: "GET /user?sudo=root", Header: cookie, Status: 403},
			{Name: "seen by administrators", Do: fmt.Sprintf("GET /users/%d", id), As: root, Status: 200,
				Want: `{"sign_in_count":1,"current_sign_in_ip":"127.0.0.1","last_sign_in_at":"<any>"}`},
		})
		s.Check(t, apptest.Call{Do: fmt.Sprintf("POST /users/%d/block", id), As: root, Status: 201})
		s.Check(t, apptest.Call{Name: "blocked", Do: "GET /user", Header: cookie, Status: 401})
	})
}

// TestSudo checks the rules of sudo.
func TestSudo(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		bob, _ := s.User(t, "Bob")
		noSudo := s.Token(t, 1, "api")
		onlySudo := s.Token(t, 1, "sudo")
		aliceSudo := s.Token(t, 3, "api", "sudo")
		s.Table(t, []apptest.Call{
			{Name: "by username", Do: "GET /user?sudo=alice", As: root, Status: 200, Want: `{"username":"alice"}`, Not: []string{"is_admin"}},
			{Name: "case does not matter", Do: "GET /user?sudo=ALICE", As: root, Status: 200, Want: `{"username":"alice"}`},
			{Name: "by id", Do: fmt.Sprintf("GET /user?sudo=%d", bob), As: root, Status: 200, Want: `{"username":"Bob"}`},
			{Name: "by header", Do: "GET /user", As: root, Header: map[string]string{"Sudo": "bob"}, Status: 200, Want: `{"username":"Bob"}`},
			{Name: "with their permissions", Do: "GET /application/settings?sudo=alice", As: root, Status: 403, Want: `{"message":"403 Forbidden"}`},
			{Name: "not an administrator", Do: "GET /user?sudo=root", As: alice, Status: 403, Want: `{"message":"403 Forbidden - Must be admin to use sudo"}`},
			{Name: "not an administrator, with the scope", Do: "GET /user?sudo=root", As: aliceSudo, Status: 403, Want: `{"message":"403 Forbidden - Must be admin to use sudo"}`},
			{Name: "without the scope", Do: "GET /user?sudo=alice", As: noSudo, Status: 403, Want: `{"error":"insufficient_scope","error_description":"<any>","scope":"sudo"}`},
			{Name: "the scope alone opens nothing", Do: "GET /user?sudo=alice", As: onlySudo, Status: 403, Want: `{"error":"insufficient_scope"}`},
			{Name: "unknown name", Do: "GET /user?sudo=nobody", As: root, Status: 404, Want: `{"message":"404 User with ID or username 'nobody' Not Found"}`},
			{Name: "unknown id", Do: "GET /user?sudo=99999", As: root, Status: 404, Want: `{"message":"404 User with ID or username '99999' Not Found"}`},
			{Name: "anonymous", Do: "GET /user?sudo=alice", Status: 401},
		})
		s.Check(t, apptest.Call{Do: "POST /users/4/block", As: root, Status: 201})
		s.Check(t, apptest.Call{Name: "blocked", Do: "GET /user?sudo=bob", As: root, Status: 403})
		s.Check(t, apptest.Call{Do: "POST /user/keys?sudo=alice", As: root, Status: 201, JSON: `{"title":"k","key":"` + testKey + `"}`})
		s.Check(t, apptest.Call{Name: "the record names both", Do: "GET /audit_events?entity_type=User&entity_id=3&per_page=1", As: root, Status: 200,
			Want: `[{"author_id":3,"details":{"impersonated_by":"root"}}]`})
	})
}

// testKey is a public key without a known private key.
const testKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqfkVTxjtFjIbnVNXXP3pLCLNpCbhHgoFKBhu7vVjGY test"

// TestScopes reads and writes with tokens that have a single scope.
func TestScopes(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.User(t, "alice")
		opens := map[string][]string{ // endpoints by scope
			"api":       {"GET /user", "GET /users", "GET /version", "GET /application/settings", "PUT /application/settings", "GET /personal_access_tokens/self"},
			"read_api":  {"GET /user", "GET /users", "GET /version", "GET /application/settings", "GET /personal_access_tokens/self"},
			"read_user": {"GET /user", "GET /users", "GET /version", "GET /personal_access_tokens/self"},
		}
		all := opens["api"]
		for _, scope := range user.Scopes() {
			token := s.Token(t, 1, scope)
			for _, do := range all {
				want := http.StatusForbidden
				for _, open := range append(opens[scope], "GET /personal_access_tokens/self") {
					if open == do {
						want = http.StatusOK
					}
				}
				c := apptest.Call{Name: scope + " " + do, Do: do, As: token, Status: want}
				if want == http.StatusForbidden {
					c.Want = `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"<any>"}`
				}
				t.Run(c.Name, func(t *testing.T) { s.Check(t, c) })
			}
		}
	})
}

func TestProtocol(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		long := strings.Repeat("x", 9000)
		s.Table(t, []apptest.Call{
			{Name: "unknown route", Do: "GET /nothing/here", Status: 404, Want: `{"error":"404 Not Found"}`},
			{Name: "version 3", Do: "GET //api/v3/user", As: root, Status: 404, Want: `{"error":"404 Not Found"}`},
			{Name: "version 5", Do: "GET //api/v5/user", As: root, Status: 404, Want: `{"error":"404 Not Found"}`},
			{Name: "no version", Do: "GET //api/user", As: root, Status: 404, Want: `{"error":"404 Not Found"}`},
			{Name: "wrong method", Do: "PATCH /version", As: root, Status: 405, Want: `{"error":"405 Not Allowed"}`, WantHeader: map[string]string{"Allow": "GET, HEAD, OPTIONS"}},
			{Name: "wrong method among others", Do: "POST /users/1", As: root, Status: 405, WantHeader: map[string]string{"Allow": "GET, HEAD, PUT, DELETE, OPTIONS"}},
			{Name: "json suffix", Do: "GET /version.json", As: root, Status: 200, Want: `{"version":"<any>"}`},
			{Name: "a suffix that belongs to the path", Do: "POST /openapi.json", As: root, Status: 405, WantHeader: map[string]string{"Allow": "GET, HEAD, OPTIONS"}},
			{Name: "trailing slash", Do: "GET /version/", As: root, Status: 200},
			{Name: "path parameter of the wrong type", Do: "GET /users/abc", As: root, Status: 400, Want: `{"error":"id is invalid"}`},
			{Name: "slash that should be encoded", Do: "GET /admin/ci/variables/a/b", As: root, Status: 404, Want: `{"error":"404 Not Found"}`},
			{Name: "encoded slash", Do: "GET /admin/ci/variables/a%2Fb", As: root, Status: 404, Want: `{"message":"404 InstanceVariable Not Found"}`},
			{Name: "encoded dot", Do: "GET /users/ro%2Eot/status", As: root, Status: 404},
			{Name: "overlong query", Do: "GET /users?search=" + long, As: root, Status: 414, Want: `{"message":"414 Request-URI Too Large"}`},
			{Name: "malformed JSON", Do: "POST /users", As: root, JSON: `{"name":`, Status: 400, Want: `{"error":"<any>"}`},
			{Name: "JSON that is no object", Do: "POST /users", As: root, JSON: `[1]`, Status: 400, Want: `{"error":"<any>"}`},
			{Name: "JSON null is no parameters", Do: "PUT /users/1", As: root, JSON: `null`, Status: 200},
			{Name: "body over the limit", Do: "POST /users", As: root, JSON: `{"bio":"` + strings.Repeat("x", 2<<20) + `"}`, Status: 413, Want: `{"error":"<any>"}`},
			{Name: "missing", Do: "POST /users", As: root, Status: 400,
				Want: `{"error":"email is missing, name is missing, username is missing, password, reset_password, force_random_password are missing, at least one parameter must be provided"}`},
			{Name: "preflight", Do: "OPTIONS /user", Header: map[string]string{"Origin": "https://x.example", "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "private-token"}, Status: 204,
				WantHeader: map[string]string{"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "private-token", "Access-Control-Allow-Credentials": "-"}},
			{Name: "cross-origin read", Do: "GET /version", As: root, Header: map[string]string{"Origin": "https://x.example"}, Status: 200,
				WantHeader: map[string]string{"Access-Control-Allow-Origin": "*", "Vary": "Origin"}},
			{Name: "same-origin read", Do: "GET /version", As: root, Status: 200, WantHeader: map[string]string{"Access-Control-Allow-Origin": "-",
				"Content-Type": "application/json", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "SAMEORIGIN"}},
		})
		a := s.Send(t, apptest.Call{Do: "GET /version", As: root, Header: map[string]string{"X-Request-Id": "0123456789abcdef"}})
		if got := a.Header.Get("X-Request-Id"); got != "0123456789abcdef" {
			t.Errorf("request id %q", got)
		}
		if !strings.Contains(s.Log(), `"request_id":"0123456789abcdef"`) {
			t.Error("the log does not name the request id")
		}
		if !regexp.MustCompile(`^\d+\.\d{6}$`).MatchString(a.Header.Get("X-Runtime")) {
			t.Errorf("X-Runtime %q", a.Header.Get("X-Runtime"))
		}
	})
}

func TestConditional(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		first := s.Check(t, apptest.Call{Do: "GET /users/1", As: root, Status: 200})
		tag := first.Header.Get("ETag")
		if !strings.HasPrefix(tag, `W/"`) {
			t.Fatalf("ETag %q", tag)
		}
		again := s.Check(t, apptest.Call{Do: "GET /users/1", As: root, Header: map[string]string{"If-None-Match": `"x", ` + tag}, Status: 304})
		if len(again.Body) != 0 {
			t.Errorf("304 has a body: %s", again.Body)
		}
		s.Check(t, apptest.Call{Do: "HEAD /users/1", As: root, Status: 200, WantHeader: map[string]string{"ETag": tag}})
		s.Check(t, apptest.Call{Do: "PUT /users/1?bio=new", As: root, Status: 200, WantHeader: map[string]string{"ETag": "-"}})
		s.Check(t, apptest.Call{Do: "GET /users/1", As: root, Header: map[string]string{"If-None-Match": tag}, Status: 200})

		id, _ := s.User(t, "alice")
		path := fmt.Sprintf("DELETE /users/%d", id)
		before := s.Clock.Now().Add(-time.Hour).Format(http.TimeFormat)
		after := s.Clock.Now().Add(time.Hour).Format(http.TimeFormat)
		s.Check(t, apptest.Call{Do: path, As: root, Header: map[string]string{"If-Unmodified-Since": before}, Status: 412, Want: `{"message":"412 Precondition Failed"}`})
		s.Check(t, apptest.Call{Do: path, As: root, Header: map[string]string{"If-Unmodified-Since": after}, Status: 204})
	})
}

// TestThrottleRefused sends invalid credentials to endpoints of runners, SDKs and monitoring
// systems. They are limited like anonymous requests and like invalid tokens; runners with a
// valid token are not.
func TestThrottleRefused(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		newProject(t, s, alice, "p", "")
		valid := newRunner(t, s, root, `{"runner_type":"instance_type"}`)
		s.Clock.Stop()
		for name, set := range map[string]func(*setting.Settings){
			"anonymous": func(st *setting.Settings) {
				st.UnauthenticatedAPI = setting.Throttle{Enabled: true, Requests: 1, Seconds: 60}
			},
			"tokens": func(st *setting.Settings) { st.FailedTokensPerMinute = 1 },
		} {
			var before setting.Settings
			_, err := s.Settings.Update(t.Context(), actor.System(), func(st *setting.Settings) { before = *st; set(st) })
			if err != nil {
				t.Fatal(err)
			}
			s.Clock.Move(time.Minute)
			s.Table(t, []apptest.Call{
				{Name: name, Do: "POST /runners/verify", JSON: `{"token":"wrong"}`, Status: 403},
				{Name: name + ": runner", Do: "POST /runners/verify", JSON: `{"token":"wrong"}`, Status: 429},
				{Name: name + ": SDK", Do: "POST /projects/1/trigger/pipeline", JSON: `{"token":"wrong","ref":"main"}`, Status: 429},
				{Name: name + ": alerts", Do: "POST //alice/p/alerts/notify.json", Header: map[string]string{"Authorization": "Bearer wrong"}, JSON: `{"title":"t"}`, Status: 429},
				{Name: name + ": a valid token", Do: "POST /runners/verify", JSON: `{"token":"` + valid + `"}`, Status: 200},
			})
			if _, err := s.Settings.Update(t.Context(), actor.System(), func(st *setting.Settings) { *st = before }); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestAuditors checks that auditors only read where they are not members.
func TestAuditors(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		id, auditor := s.User(t, "auditor")
		s.Check(t, apptest.Call{Do: fmt.Sprintf("PUT /users/%d?auditor=true", id), As: root, Status: 200})
		private := fmt.Sprintf("/projects/%d", newProject(t, s, alice, "private", ""))
		closed := fmt.Sprintf("/projects/%d", newProject(t, s, alice, "closed", `,"visibility":"public","issues_access_level":"private"`))
		open := fmt.Sprintf("/projects/%d", newProject(t, s, alice, "open", `,"visibility":"public"`))
		for _, at := range []string{private, closed, open} {
			s.Check(t, apptest.Call{Do: "POST " + at + "/issues", As: alice, JSON: `{"title":"i"}`, Status: 201})
			s.Check(t, apptest.Call{Do: "GET " + at + "/issues/1", As: auditor, Status: 200})
			status := 403
			if at == open {
				status = 201
			}
			for path, body := range map[string]string{"/issues": `{"title":"j"}`, "/issues/1/notes": `{"body":"n"}`, "/issues/1/award_emoji": `{"name":"tada"}`} {
				s.Check(t, apptest.Call{Do: "POST " + at + path, As: auditor, JSON: body, Status: status})
			}
		}
		s.Table(t, []apptest.Call{
			{Do: "POST " + private + "/members", As: alice, JSON: fmt.Sprintf(`{"user_id":%d,"access_level":10}`, id), Status: 201},
			{Name: "a member", Do: "POST " + private + "/issues", As: auditor, JSON: `{"title":"j"}`, Status: 201},
		})
	})
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Name: "off", Do: "GET /user", As: alice, Status: 200, WantHeader: map[string]string{"RateLimit-Limit": "-"}})
		_, err := s.Settings.Update(t.Context(), actor.System(), func(st *setting.Settings) {
			st.AuthenticatedAPI = setting.Throttle{Enabled: true, Requests: 3, Seconds: 60}
			st.UnauthenticatedAPI = setting.Throttle{Enabled: true, Requests: 1, Seconds: 60}
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Clock.Stop()
		for i := range 3 {
			s.Check(t, apptest.Call{Do: "GET /user", As: alice, Status: 200, WantHeader: map[string]string{"RateLimit-Limit": "3", "RateLimit-Remaining": fmt.Sprint(2 - i), "Retry-After": "-"}})
		}
		a := s.Check(t, apptest.Call{Do: "GET /user", As: alice, Status: 429, Want: `{"message":{"error":"This endpoint has been requested too many times. Try again later."}}`,
			WantHeader: map[string]string{"RateLimit-Remaining": "0"}})
		if a.Header.Get("Retry-After") == "" || a.Header.Get("RateLimit-Reset") == "" {
			t.Errorf("headers %v", a.Header)
		}
		s.Check(t, apptest.Call{Name: "others are not held", Do: "GET /user", As: root, Status: 200})
		s.Check(t, apptest.Call{Do: "GET /users?username=alice", Status: 200})
		s.Check(t, apptest.Call{Do: "GET /users?username=alice", Status: 429})
		s.Clock.Move(time.Minute)
		s.Check(t, apptest.Call{Name: "after a while", Do: "GET /user", As: alice, Status: 200})
	})
}

func TestTiers(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		s.Table(t, []apptest.Call{
			{Do: "GET /audit_events", As: root, Status: 404, Want: `{"error":"404 Not Found"}`},
			{Do: "GET /admin/ci/variables", As: root, Status: 404, Want: `{"error":"404 Not Found"}`},
			{Do: "GET /user", As: root, Status: 200, Not: []string{"is_auditor", "shared_runners_minutes_limit", "scim_identities"}},
			{Do: "PUT /users/1?auditor=true", As: root, Status: 200, Not: []string{"is_auditor"}},
			{Do: "GET /metadata", As: root, Status: 200, Want: `{"enterprise":false}`},
		})
	}, apptest.Tier("free"), apptest.Hosted)
}

var linkPattern = regexp.MustCompile(`<([^>]+)>; rel="(\w+)"`)

func links(t *testing.T, h http.Header) map[string]*url.URL {
	t.Helper()
	found := map[string]*url.URL{}
	for _, m := range linkPattern.FindAllStringSubmatch(h.Get("Link"), -1) {
		u, err := url.Parse(m[1])
		if err != nil {
			t.Fatal(err)
		}
		found[m[2]] = u
	}
	return found
}

func TestOffsetPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		for i := range 5 {
			s.User(t, fmt.Sprintf("user%d", i))
		}
		// The five users, and the ghost user, whose name is Ghost User.
		a := s.Check(t, apptest.Call{Do: "GET /users?per_page=3&page=2&search=user&private_token=" + root, Status: 200, WantHeader: map[string]string{
			"X-Page": "2", "X-Per-Page": "3", "X-Next-Page": "", "X-Prev-Page": "1", "X-Total": "6", "X-Total-Pages": "2",
		}})
		got := links(t, a.Header)
		for rel, page := range map[string]string{"prev": "1", "first": "1", "last": "2"} {
			u := got[rel]
			if u == nil {
				t.Fatalf("no link %s: %s", rel, a.Header.Get("Link"))
			}
			if q := u.Query(); q.Get("page") != page || q.Get("per_page") != "3" || q.Get("search") != "user" || q.Has("private_token") {
				t.Errorf("link %s: %s", rel, u)
			}
			if u.Scheme+"://"+u.Host != s.URL || u.Path != "/api/v4/users" {
				t.Errorf("link %s does not lead to the external address: %s", rel, u)
			}
		}
		if got["next"] != nil {
			t.Errorf("a next link on the last page: %s", got["next"])
		}
		s.Table(t, []apptest.Call{
			{Name: "first", Do: "GET /users?per_page=2", As: root, Status: 200, WantHeader: map[string]string{"X-Next-Page": "2", "X-Prev-Page": "", "X-Total": "7", "X-Total-Pages": "4"}},
			{Name: "beyond the end", Do: "GET /users?per_page=2&page=9", As: root, Status: 200, Want: `[]`, WantHeader: map[string]string{"X-Total": "7", "X-Next-Page": ""}},
			{Name: "clamped", Do: "GET /users?per_page=1000", As: root, Status: 200, WantHeader: map[string]string{"X-Per-Page": "100"}},
			{Name: "zero", Do: "GET /users?per_page=0", As: root, Status: 400, Want: `{"error":"per_page has a value not allowed"}`},
			{Name: "negative", Do: "GET /users?per_page=-1&page=-2", As: root, Status: 400, Want: `{"error":"page does not have a valid value, per_page does not have a valid value"}`},
			{Name: "not a number", Do: "GET /users?per_page=x", As: root, Status: 400, Want: `{"error":"per_page is invalid"}`},
			{Name: "too deep", Do: "GET /users?per_page=100&page=502", As: root, Status: 405, Want: `{"error":"Offset pagination has a maximum allowed offset of 50000 for requests that return objects of type User. Remaining records can be retrieved using keyset pagination."}`},
			{Name: "huge", Do: "GET /users?page=9223372036854775807", As: root, Status: 405},
			{Name: "huge, without keyset", Do: "GET /admin/ci/variables?page=9223372036854775807", As: root, Status: 200, Want: `[]`},
			{Name: "deprecated", Do: "GET /users", As: root, Status: 200, WantHeader: map[string]string{"Deprecation": "@1697932800"}},
			{Name: "by form in a body", Do: "GET /users", As: root, JSON: `{"per_page":2}`, Status: 200, WantHeader: map[string]string{"X-Per-Page": "2"}},
		})
	})
}

// TestKeysetPages follows the links of a list to its end, in every order that
// supports keyset pagination.
func TestKeysetPages(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		for i := range 7 {
			s.User(t, fmt.Sprintf("user%d", i))
		}
		_, alice := s.User(t, "alice")
		for _, as := range []string{root, alice} {
			for _, order := range []string{"id", "name", "username"} {
				for _, sort := range []string{"asc", "desc"} {
					path := "/users?pagination=keyset&per_page=3&without_project_bots=true&order_by=" + order + "&sort=" + sort
					var all []string
					for range 10 {
						a := s.Check(t, apptest.Call{Do: "GET " + path, As: as, Status: 200, WantHeader: map[string]string{
							"X-Page": "-", "X-Total": "-", "X-Next-Page": "-", "X-Per-Page": "-", "Deprecation": "-"}})
						var list []map[string]any
						a.JSON(t, &list)
						for _, u := range list {
							all = append(all, u["username"].(string))
						}
						next := links(t, a.Header)["next"]
						if next == nil {
							break
						}
						if q := next.Query(); q.Get("order_by") != order || q.Get("sort") != sort || q.Get("without_project_bots") != "true" || q.Get("cursor") == "" {
							t.Fatalf("next: %s", next)
						}
						path = strings.TrimPrefix(next.RequestURI(), "/api/v4")
					}
					if len(all) != 10 {
						t.Errorf("order %s %s: %d users: %v", order, sort, len(all), all)
					}
					seen := map[string]bool{}
					for _, name := range all {
						seen[name] = true
					}
					if len(seen) != len(all) {
						t.Errorf("order %s %s: a user twice: %v", order, sort, all)
					}
				}
			}
		}
		s.Table(t, []apptest.Call{
			{Name: "unsupported order", Do: "GET /users?pagination=keyset&order_by=created_at&sort=asc", As: root, Status: 405, Want: `{"error":"Keyset pagination is not yet available for this type of request"}`},
			{Name: "unsupported order of audit events", Do: "GET /audit_events?pagination=keyset&order_by=id&sort=asc", As: root, Status: 405},
			{Name: "bad cursor", Do: "GET /users?pagination=keyset&order_by=id&sort=asc&cursor=abc", As: root, Status: 400, Want: `{"error":"cursor is invalid"}`},
			{Name: "cursor of another order", Do: "GET /users?pagination=keyset&order_by=id&sort=asc&cursor=" + base64.RawURLEncoding.EncodeToString([]byte(`{"id":"x"}`)), As: root, Status: 400},
			{Name: "anonymous, by username", Do: "GET /users?pagination=keyset&order_by=id&sort=asc&username=alice", Status: 200, Want: `[{"username":"alice"}]`},
		})
	})
}

// TestLongList checks that a list of more than 10,000 rows has no total, and that
// its rows are not counted.
func TestLongList(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		fill := func(from, to int) {
			t.Helper()
			_, err := s.DB.ExecContext(t.Context(), `
				WITH RECURSIVE n (i) AS (SELECT CAST(? AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?)
				INSERT INTO audit_events (event_type, author_id, author_name, author_email, author_class, entity_type, entity_id,
					entity_path, target_type, target_id, target_details, ip_address, details, created_at)
				SELECT 'test', 1, 'x', 'x', 'User', 'Group', 7, 'g', 'Group', 7, 'g', '', '{}', i FROM n`, int64(from), int64(to))
			if err != nil {
				t.Fatal(err)
			}
		}
		fill(1, 10000)
		path := "GET /audit_events?entity_type=Group&entity_id=7&per_page=100"
		a := s.Check(t, apptest.Call{Name: "exactly 10,000", Do: path, As: root, Status: 200, WantHeader: map[string]string{"X-Total": "10000", "X-Total-Pages": "100", "X-Next-Page": "2"}})
		if links(t, a.Header)["last"] == nil {
			t.Error("no link to the last page")
		}
		fill(10001, 10001)
		a = s.Check(t, apptest.Call{Name: "one more", Do: path, As: root, Status: 200, WantHeader: map[string]string{"X-Total": "-", "X-Total-Pages": "-", "X-Next-Page": "2", "X-Page": "1"}})
		if got := links(t, a.Header); got["last"] != nil || got["next"] == nil || got["first"] == nil {
			t.Errorf("links %s", a.Header.Get("Link"))
		}
		s.Check(t, apptest.Call{Name: "its last page", Do: path + "&page=101", As: root, Status: 200, Want: `[{"event_type":"test"}]`, WantHeader: map[string]string{"X-Total": "-", "X-Next-Page": "", "X-Prev-Page": "100"}})
	})
}

// TestSudoIsText passes a user name with bytes that databases do not accept as text.
func TestSudoIsText(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		want := `{"error":"sudo is invalid"}`
		s.Table(t, []apptest.Call{
			{Name: "NUL", Do: "GET /user?sudo=a%00b", As: root, Status: 400, Want: want},
			{Name: "no UTF-8", Do: "GET /user?sudo=%FF", As: root, Status: 400, Want: want},
			{Name: "no UTF-8 in the header", Do: "GET /user", As: root, Header: map[string]string{"Sudo": "a\xff"}, Status: 400, Want: want},
		})
	})
}
