package githttp_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"svc/internal/app/apptest"
)

// TestPasswordGuesses guesses passwords and tokens with many logins and from many
// addresses of one network.
func TestPasswordGuesses(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		_, alice := s.User(t, "alice")
		s.Check(t, apptest.Call{Do: "POST /projects", As: alice, JSON: `{"path":"p"}`, Status: 201})
		s.Check(t, apptest.Call{Do: "PUT /application/settings", As: apptest.RootToken, Status: 200,
			JSON: `{"failed_passwords_per_minute":30,"failed_tokens_per_minute":20}`, Want: `{"sign_in_attempts_per_minute":10,"failed_sign_in_retention_days":90}`})
		git := func(from, login, password string) apptest.Answer {
			return s.Send(t, apptest.Call{Do: "GET //alice/p.git/info/refs?service=git-upload-pack", Header: map[string]string{
				"X-Forwarded-For": from, "Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(login+":"+password)),
			}})
		}
		grant := func(from, login, password string) apptest.Answer {
			return s.Send(t, apptest.Call{Do: "POST //oauth/token", Header: map[string]string{"X-Forwarded-For": from},
				Form: url.Values{"grant_type": {"password"}, "username": {login}, "password": {password}}})
		}
		want := func(what string, a apptest.Answer, status int) {
			t.Helper()
			if a.Status != status || status == 429 && a.Header.Get("Retry-After") == "" {
				t.Errorf("%s: status %d, Retry-After %q, want %d: %s", what, a.Status, a.Header.Get("Retry-After"), status, a.Body)
			}
		}
		const good = "a good password"
		s.Clock.Stop()
		for network, address := range map[string]func(int) string{
			"IPv4": func(int) string { return "203.0.113.7" },
			"IPv6": func(i int) string { return fmt.Sprintf("2001:db8:1:2:%x::%x", i, i) },
		} {
			for i := range 15 {
				want(network+", git", git(address(i), fmt.Sprintf("user%d", i), "guess"), 401)
				want(network+", password grant", grant(address(i), fmt.Sprintf("user%d", 100+i), "guess"), 400)
			}
			want(network+", git, another login", git(address(90), "alice", "guess"), 429)
			want(network+", git, the right password", git(address(91), "alice", good), 429)
			want(network+", password grant, the right password", grant(address(92), "alice", good), 429)
			want(network+", a valid token", git(address(93), "alice", alice), 200)
			want(network+", a valid token at the API", s.Send(t, apptest.Call{Do: "GET /user", As: alice, Header: map[string]string{"X-Forwarded-For": address(94)}}), 200)
		}
		for _, elsewhere := range []string{"203.0.113.8", "2001:db8:1:3::1"} {
			want(elsewhere, git(elsewhere, "alice", good), 200)
			want(elsewhere, grant(elsewhere, "alice", good), 200)
		}
		// One login has its own limit.
		for range 10 {
			want("one login", git("203.0.113.9", "nobody", "guess"), 401)
		}
		want("one login too often", git("203.0.113.9", "NOBODY", "guess"), 429)
		want("another login", git("203.0.113.9", "somebody", "guess"), 401)

		// Tokens of all kinds share a limit; valid ones are not refused.
		token := func(header, value string) apptest.Answer {
			return s.Send(t, apptest.Call{Do: "GET /job", Header: map[string]string{"X-Forwarded-For": "203.0.113.10", header: value}})
		}
		for i := range 10 {
			want("personal token", token("PRIVATE-TOKEN", fmt.Sprintf("svcpat-guess%d", i)), 401)
			want("job token", token("JOB-TOKEN", fmt.Sprintf("guess%d", i)), 401)
		}
		want("personal token", token("PRIVATE-TOKEN", "svcpat-guess"), 429)
		want("job token", token("JOB-TOKEN", "guess"), 429)
		want("OAuth token", token("Authorization", "Bearer svcoat-guess"), 429)
		want("job token over git", git("203.0.113.10", "gitlab-ci-token", "guess"), 429)
		want("code", s.Send(t, apptest.Call{Do: "POST //oauth/token", Header: map[string]string{"X-Forwarded-For": "203.0.113.10"},
			Form: url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}, "client_id": {"x"}}}), 429)
		want("a valid token", s.Send(t, apptest.Call{Do: "GET /user", As: alice, Header: map[string]string{"X-Forwarded-For": "203.0.113.10"}}), 200)

		t.Run("audit events", func(t *testing.T) {
			events := func(query string) apptest.Answer {
				return s.Check(t, apptest.Call{Do: "GET /audit_events?entity_type=Svc::Audit::InstanceScope&per_page=100" + query, As: apptest.RootToken, Status: 200})
			}
			// Each network has one event for each of 20 logins, and one for the ten
			// others.
			body := string(events("").Body)
			for what, n := range map[string]int{
				`"failed_login"`: 3 * 44, `"(several logins)"`: 4, `(10 attempts, last at `: 3, `"target_details":"nobody"`: 2, `"ip_address":"2001:db8:1:2::/64"`: 42,
			} {
				if got := strings.Count(body, what); got != n {
					t.Errorf("%s is there %d times, want %d", what, got, n)
				}
			}
			s.Clock.Move(91 * 24 * time.Hour)
			if err := s.Users.PurgeFailedLogins(t.Context()); err != nil {
				t.Fatal(err)
			}
			if body := string(events("").Body); strings.Contains(body, "failed_login") {
				t.Errorf("old failures are kept: %.300s", body)
			}
		})
	}, apptest.BehindProxy)
}

// TestServiceNamesAreNotCounted requests unknown services: if their names became
// labels of a metric, each would stay in memory until the server stops.
func TestServiceNamesAreNotCounted(t *testing.T) {
	t.Parallel()
	apptest.Each(t, func(t *testing.T, s *apptest.Server) {
		for _, service := range []string{"made-up", "%ff", "git-upload-pack%00", "x%0ay"} {
			if got := s.Send(t, apptest.Call{Do: "GET //nowhere/p.git/info/refs?service=" + service}); got.Status != 403 {
				t.Errorf("%s: status %d: %s", service, got.Status, got.Body)
			}
		}
		s.Send(t, apptest.Call{Do: "GET //nowhere/p.git/info/refs?service=git-upload-pack"})
		metrics := string(s.Check(t, apptest.Call{Do: "GET //-/metrics", As: apptest.RootToken, Status: 200}).Body)
		if !strings.Contains(metrics, `service="git-upload-pack"`) || strings.Contains(metrics, "made-up") {
			t.Errorf("%.2000s", metrics)
		}
	})
}
